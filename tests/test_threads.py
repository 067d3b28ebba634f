"""Other threads: at the end of Python, and writing to the arrays of a call."""

import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import seqflow as sf

ROOT = Path(__file__).parents[1]


def runs_quietly(program, *arguments):
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "ignore:This process:DeprecationWarning",
            "-c",
            textwrap.dedent(program),
            *arguments,
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("seconds", ["0.01", "0.1"])
def test_python_ends_quietly_while_a_daemon_is_inside_of_a_kernel(seconds):
    program = """
        import sys, threading, time
        import numpy as np
        from seqflow import ops

        data, lengths = np.ones(1 << 22), np.full(1 << 10, 1 << 12)
        started = threading.Event()

        def work():
            while True:
                ops.lengths_sum(data, lengths)
                started.set()

        for _ in range(2):
            threading.Thread(target=work, daemon=True).start()
        started.wait()
        time.sleep(float(sys.argv[1]))
    """
    runs_quietly(program, seconds)


LOADER = """
        import os, sys
        import numpy as np
        import seqflow as sf

        data, lengths = np.ones(1 << 22), np.full(1 << 10, 1 << 12)

        def prepare(record):
            sf.ops.lengths_sum(data, lengths)
            return {"x": record["x"]}

        loader = sf.Loader(
            {"x": np.arange(1 << 16)}, prepare=prepare, batch=16, window=1 << 12, batch_bytes=1 << 12, threads=2
        )
        batches = iter(loader)
        next(batches)
"""


@pytest.mark.slow
def test_python_ends_quietly_while_a_loader_is_open():
    runs_quietly(LOADER)


@pytest.mark.slow
def test_a_forked_child_has_no_loaders_of_its_parent_to_wait_for():
    program = """
        child = os.fork()
        if child == 0:
            sys.exit(0)
        assert os.waitpid(child, 0)[1] == 0
"""
    runs_quietly(LOADER + program)


SHARED = {
    "loader": lambda: iter(sf.Loader({"id": list(range(500))}, batch=1, threads=2)),
    "tensors": lambda: iter(sf.Loader({"id": list(range(500))}, batch=1).to("torch")),
    "dataset": lambda: iter(sf.torch.iterable(sf.Loader({"id": list(range(500))}, batch=1))),
    "mix": lambda: iter(sf.Mix({"a": {"id": list(range(500))}}, weights={"a": 1}, batch=1)),
}


@pytest.mark.parametrize("name", SHARED)
def test_threads_that_share_an_iterator_get_each_batch_once_or_an_error(name):
    if name in ("tensors", "dataset"):
        pytest.importorskip("torch")
    batches, found = SHARED[name](), []

    def take():
        for batch in batches:
            found.append(batch.number)

    with ThreadPoolExecutor(4) as threads:
        errors = [one.exception() for one in [threads.submit(take) for _ in range(4)]]
    assert all(error is None or "another thread takes a batch" in str(error) for error in errors)
    assert sorted(found) == list(range(500))
