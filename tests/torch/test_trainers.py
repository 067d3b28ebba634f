"""The programs of `examples/` for trainers train, and continue where they were stopped."""

import os
import subprocess
import sys

import pytest
from pages import ROOT

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow
EXAMPLES = ROOT / "examples"


def printed(folder, *arguments):
    """The output of a program that runs in a folder."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def trained(folder, *epochs):
    """The checkpoint that torchrun leaves, run once for each number of epochs."""
    pytest.importorskip("transformers")
    folder.mkdir()
    torchrun = ("-m", "torch.distributed.run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0")
    for number in epochs:
        shown = printed(
            folder, *torchrun, "--nproc-per-node", "2", str(EXAMPLES / "train_torchrun.py"), str(number)
        )
        assert "step 5, loss of rank 0" in shown
    return torch.load(folder / "checkpoint.pt")


def test_two_ranks_of_torchrun_go_on_where_they_were_stopped(tmp_path):
    resumed, straight = trained(tmp_path / "twice", 1, 2), trained(tmp_path / "once", 2)
    assert resumed["loader"]["epoch"] == 2
    assert all(
        torch.allclose(straight["model"][name], one, atol=1e-5) for name, one in resumed["model"].items()
    )


@pytest.mark.parametrize(
    ("program", "package", "shown"),
    [
        ("packed_llama", "transformers", "documents are apart"),
        ("train_accelerate", "accelerate", "28 losses, 22 after resuming, equal: True"),
        ("train_trainer", "accelerate", "21 steps, eval_loss"),
        ("train_lightning", "lightning", "42 losses, 22 after resuming, equal: True"),
    ],
)
def test_a_program_goes_on_after_its_last_step(program, package, shown, tmp_path):
    pytest.importorskip("transformers")
    pytest.importorskip(package)
    found = printed(tmp_path, str(EXAMPLES / f"{program}.py"))
    assert shown in found
    assert "equal: False" not in found
