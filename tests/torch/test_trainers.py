"""The programs of `examples/` for trainers train, and continue where they were stopped."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pytest
from pages import ROOT

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow
EXAMPLES = ROOT / "examples"


KEEPING = """
import runpy, shutil, sys
import torch

def save(state, path, save=torch.save):
    save(state, path)
    shutil.copy(path, f"epoch{state['loader']['epoch']}.pt")

torch.save = save
sys.path.insert(0, sys.argv[1])
sys.argv[:] = ["train_torchrun.py", sys.argv[2]]
runpy.run_path(f"{sys.path[0]}/train_torchrun.py", run_name="__main__")
"""
"""The program, of which the checkpoint of each epoch is kept."""
PROGRAMS = {
    "packed_llama": ("transformers", "documents are apart"),
    "train_accelerate": ("accelerate", "28 losses, 22 after resuming, equal: True"),
    "train_trainer": ("accelerate", "21 steps, eval_loss"),
    "train_lightning": ("lightning", "42 losses, 22 after resuming, equal: True"),
}
FORKING = """
import os, runpy, sys
examples, *programs = sys.argv[1:]
sys.path.insert(0, examples)
import transformers.trainer
import packed_llama
for program in programs:
    if child := os.fork():
        print(program, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        continue
    for number in (1, 2):
        os.dup2(os.open(f"{program}.txt", os.O_CREAT | os.O_WRONLY | os.O_APPEND), number)
    runpy.run_path(f"{examples}/{program}.py", run_name="__main__")
    sys.stdout.flush()
    os._exit(0)
"""
"""Each program in a copy of a process that has imported what takes most of their time."""


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


def trained(folder, number):
    """Let two ranks of torchrun train up to a number of epochs."""
    torchrun = ("-m", "torch.distributed.run", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0")
    program = (str(folder / "keeping.py"), str(EXAMPLES), str(number))
    assert "step 5, loss of rank 0" in printed(folder, *torchrun, "--nproc-per-node", "2", *program)
    return torch.load(folder / "checkpoint.pt")


def test_two_ranks_of_torchrun_go_on_where_they_were_stopped(tmp_path):
    pytest.importorskip("transformers")
    (tmp_path / "keeping.py").write_text(KEEPING)
    straight = trained(tmp_path, 2)
    shutil.copy(tmp_path / "epoch1.pt", tmp_path / "checkpoint.pt")
    resumed = trained(tmp_path, 2)
    assert resumed["loader"]["epoch"] == 2
    assert all(
        torch.allclose(straight["model"][name], one, atol=1e-5) for name, one in resumed["model"].items()
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_programs_go_on_after_their_last_step(tmp_path):
    pytest.importorskip("transformers")
    here = [program for program, (package, _) in PROGRAMS.items() if find_spec(package)]
    ended = printed(tmp_path, "-c", FORKING, str(EXAMPLES), *here).splitlines()
    for program in here:
        found = (tmp_path / f"{program}.txt").read_text()
        assert f"{program} 0" in ended, found
        assert PROGRAMS[program][1] in found, found
        assert "equal: False" not in found
