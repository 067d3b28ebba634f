"""Running notebooks. `python tests/shared/notebook_runs.py [NOTEBOOK …]` runs them and stores their outputs."""

import sys
from pathlib import Path

import nbclient
import nbformat

FOLDER = Path(__file__).parents[2] / "notebooks"
VARIES = "varies"
"""The tag of cells whose text is not the same in every run: times, counts of a library's files."""


def executed(path: Path) -> nbformat.NotebookNode:
    """The notebook with the outputs of a run from clean."""
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(
        notebook, record_timing=False, resources={"metadata": {"path": path.parent}}
    ).execute()
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count = None
            cell.outputs = [_kept(output) for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def _kept(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    if "execution_count" in output:
        output.execution_count = None
    return output


def texts(cell: nbformat.NotebookNode) -> list[str]:
    """What a cell printed, and the value of its last line; a picture has none."""
    # Lines that are printed one after another may come in one message or in several.
    printed = "".join(output.text for output in cell.outputs if output.output_type == "stream")
    values = [output.data["text/plain"] for output in cell.outputs if output.output_type == "execute_result"]
    return [*([printed] if printed else []), *values]


def pictures(notebook: nbformat.NotebookNode) -> int:
    """How many pictures its outputs have."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return sum("image/png" in output.get("data", {}) for output in outputs)


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:] or sorted(FOLDER.glob("*.ipynb"))):
        nbformat.write(executed(path), path)
        print(path)
