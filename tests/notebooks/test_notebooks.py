"""Every notebook runs from clean, and says what it said when its outputs were stored."""

import pytest
from marks import slow, thorough

nbformat = pytest.importorskip("nbformat")
from notebook_runs import FOLDER, VARIES, executed, pictures, texts  # noqa: E402


def trains(path):
    return "import torch" in path.read_text(encoding="utf-8")


SHORTEST, *OTHERS = NOTEBOOKS = sorted(
    FOLDER.glob("*.ipynb"), key=lambda path: (trains(path), path.stat().st_size)
)
THOROUGH = ("learned_features", "nlp_batches", "recurrent_chains", "tagger")
"""Those that take the most time. Of the notebooks that train with torch, one is left."""
SLOW = [path for path in OTHERS if path.stem not in THOROUGH]
LARGEST = 300_000
"""Bytes of a notebook with its outputs."""


@pytest.mark.parametrize(
    "path",
    [SHORTEST, *slow(*SLOW), *thorough(*(path for path in OTHERS if path not in SLOW))],
    ids=lambda path: path.stem,
)
def test_a_notebook_says_what_it_said(path):
    stored = nbformat.read(path, as_version=4)
    if any("import torch" in cell.source for cell in stored.cells):
        pytest.importorskip("torch")
    found = executed(path)
    for before, after in zip(stored.cells, found.cells, strict=True):
        if before.cell_type == "code" and VARIES not in before.metadata.get("tags", ()):
            assert texts(after) == texts(before), (
                f"{before.source}\nstore it: python tests/shared/notebook_runs.py {path}"
            )
    assert pictures(found) == pictures(stored) > 0


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_few_and_not_all_may_vary(path):
    assert path.stat().st_size < LARGEST
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert any(texts(cell) for cell in cells if VARIES not in cell.metadata.get("tags", ()))
    assert all(output.get("name") != "stderr" for cell in cells for output in cell.outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_begins_with_an_import_and_ends_in_a_picture(path):
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert cells[0].source.startswith(("import ", "from "))
    assert any("image/png" in output.get("data", {}) for output in cells[-1].outputs)
