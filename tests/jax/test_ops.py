"""The tests of ops in jax, which are in `jax_ops.py`: in a process of their own, since jax and forks do not agree."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.skipif(find_spec("jax") is None, reason="jax is not installed")
def test_ops_in_jax():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "jax_ops.py")]
    found = subprocess.run(command, cwd=HERE.parents[1], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout[-5000:]
