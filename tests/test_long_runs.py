"""Long runs: memory, descriptors and threads stay as they are. Much longer with SEQFLOW_TESTS=thorough."""

import gc
import os
import threading
import time
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from marks import THOROUGH

import seqflow as sf
from seqflow import ops

BATCHES, LOADERS, FORKS = (200_000, 1_000, 50) if THOROUGH else (1_000, 24, 3)
MEGABYTES = 16
"""What a process may grow by: allocators keep some."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux says what a process has")


@pytest.fixture
def docs(tmp_path):
    table = pa.table({"tokens": pa.array([[1, 2, 3], [], [4]] * 400, pa.list_(pa.int32()))})
    pq.write_table(table, tmp_path / "docs.parquet", row_group_size=300)
    return tmp_path


def in_use():
    """Resident megabytes, open descriptors, threads."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE") >> 20, len(os.listdir("/proc/self/fd")), threading.active_count()


def grows_not(run, *, warm_up):
    warm_up()
    megabytes, descriptors, threads = in_use()
    run()
    end = time.monotonic() + 60  # threads that were told to end do so when a processor is theirs
    while (after := in_use())[1] > descriptors or after[2] > threads:
        assert time.monotonic() < end, (descriptors, threads, after)
        time.sleep(0.1)
    assert after[0] <= megabytes + MEGABYTES


def drain(loader, count):
    left = count
    while left > 0:
        left -= sum(1 for _ in islice(loader, left))


@pytest.mark.slow
def test_many_batches(docs):
    loader = sf.Loader(
        docs, batch=sf.Rows(2), net="x, mask = pad(tokens.values, tokens.lengths)\nreturn x, mask"
    )
    grows_not(lambda: drain(loader, BATCHES), warm_up=lambda: drain(loader, BATCHES // 4))


@pytest.mark.slow
@pytest.mark.parametrize("window", ["64 MiB", 500])  # whole row groups, and slices of them
def test_loaders_that_are_opened_and_left(docs, window):
    def abandon(count):
        for _ in range(count):
            next(iter(sf.Loader(docs, batch=sf.Rows(2), window=window)))

    grows_not(lambda: abandon(LOADERS), warm_up=lambda: abandon(LOADERS // 4))


@pytest.mark.slow
def test_exceptions_in_the_middle(docs):
    def fail(record):
        raise OSError("in the middle")

    def run(count):
        for _ in range(count):
            with suppress(OSError, sf.SeqflowError):
                list(sf.Loader(docs, batch=sf.Rows(2), prepare=fail))

    grows_not(lambda: run(LOADERS), warm_up=lambda: run(LOADERS // 4))


@pytest.mark.slow
def test_forks_in_the_middle_of_an_epoch(docs):
    def fork(count):
        loader = sf.Loader(docs, batch=sf.Rows(2), window=500, threads=2)
        for _ in zip(range(count), loader, strict=False):
            child = os.fork()
            if child == 0:
                os._exit(0 if sum(batch.num_rows for batch in loader) == 1200 else 1)
            assert os.waitpid(child, 0)[1] == 0

    grows_not(lambda: fork(FORKS), warm_up=lambda: fork(2))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # of jax, where another test has imported it
def test_forks_with_a_running_pool():
    data, lengths = np.ones(1 << 20), np.full(1 << 10, 1 << 10)

    def fork(count):
        for _ in range(count):
            ops.lengths_sum(data, lengths)
            child = os.fork()
            if child == 0:
                os._exit(0 if ops.lengths_sum(data, lengths)[0] == 1 << 10 else 1)
            assert os.waitpid(child, 0)[1] == 0

    grows_not(lambda: fork(FORKS), warm_up=lambda: fork(2))
