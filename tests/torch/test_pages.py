"""What docs/loader.md and docs/trainers.md show of PyTorch and is no doctest."""

import doctest
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pages import ROOT, code_of

import seqflow as sf

torch = pytest.importorskip("torch")


def test_a_loader_gives_tensors_and_a_dataset_as_its_page_says():
    import seqflow.torch

    loader = sf.Loader(pa.table({"tokens": [[1, 2], [3]]}), batch=2, pad={"tokens": sf.Pad()})
    scope = {"loader": loader, "model": lambda tokens, mask: (tokens * mask).sum(), "seqflow": seqflow}
    exec(code_of("docs/loader.md", 'for batch in loader.to("torch"'), scope)
    assert scope["loss"].item() == 6
    loader.set_epoch(0)
    assert [batch["tokens"].shape for batch in scope["dataset"]] == [(2, 2)]


@pytest.fixture(scope="module")
def first_examples():
    """The names that the first section of docs/trainers.md makes."""
    pytest.importorskip("transformers")
    text = (ROOT / "docs" / "trainers.md").read_text(encoding="utf-8").partition("## torchrun")[0]
    scope = {}
    for example in doctest.DocTestParser().get_examples(text):
        exec(example.source, scope)
    return scope


def trained(folder: Path, documents: pa.Table, commands: list[str]):
    """The checkpoint that torchrun's commands leave, run one after another."""
    folder.mkdir()
    pq.write_table(documents, folder / "docs.parquet", row_group_size=64)
    (folder / "train.py").write_text(code_of("docs/trainers.md", "# train.py"))
    variables = {**os.environ, "OMP_NUM_THREADS": "1"}
    for command in commands:
        name, *arguments = shlex.split(command, comments=True)
        assert name == "torchrun"
        done = subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", *arguments],
            cwd=folder, env=variables, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "step 5, loss of rank 0" in done.stdout
    return torch.load(folder / "checkpoint.pt")


@pytest.mark.slow
def test_two_ranks_of_torchrun_go_on_where_they_were_stopped(tmp_path, first_examples):
    commands = code_of("docs/trainers.md", "torchrun").splitlines()
    resumed = trained(tmp_path / "twice", first_examples["docs"], commands)
    straight = trained(tmp_path / "once", first_examples["docs"], commands[1:])
    assert resumed["loader"]["epoch"] == 2
    assert all(
        torch.allclose(straight["model"][name], one, atol=1e-5) for name, one in resumed["model"].items()
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Lightning's use of PyTorch
def test_lightning_goes_on_behind_the_last_step(tmp_path, first_examples):
    pytest.importorskip("lightning")
    import numpy as np

    scope = {**first_examples, "np": np, "folder": str(tmp_path), "index": str(tmp_path / "lengths.arrow")}
    exec(code_of("docs/trainers.md", "import lightning"), scope)
    assert len(scope["losses"]) == 42
