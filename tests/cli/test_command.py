"""The command itself."""

import subprocess
import sys

import pytest
from command import seqflow

import seqflow as sf


def test_the_version() -> None:
    done = seqflow("--version")
    assert (done.returncode, done.stdout) == (0, f"seqflow {sf.__version__}\n")


@pytest.mark.slow
def test_a_process_that_is_started_is_the_same_as_one_that_is_forked() -> None:
    command = [sys.executable, "-m", "seqflow", "run", "nowhere.toml"]
    started = subprocess.run(command, capture_output=True, text=True, check=False)
    forked = seqflow("run", "nowhere.toml")
    assert (started.returncode, started.stdout, started.stderr) == (forked.returncode, "", forked.stderr)


def test_starting_the_command_imports_nothing_heavy() -> None:
    program = "import sys, seqflow.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {
        "pyarrow.dataset",
        "pyarrow.parquet",
        "pyarrow.compute",
        "rich",
        "pyarrow.lib",
    }


def test_starting_a_run_does_not_search_the_ops() -> None:
    """`from seqflow import room` asks the package for an attribute first, whose error names similar ops."""
    program = "import sys, seqflow.job; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "seqflow.registry.search" not in done.stdout.split()
