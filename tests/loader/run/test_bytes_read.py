"""Ranks with streams of their own read their part of the data, and a resumed loader the windows it needs."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from marks import thorough

import seqflow as sf

IO = Path("/proc/self/io")
pytestmark = pytest.mark.skipif(not IO.exists(), reason="Linux counts what a process reads")
PLANS = {"rows": sf.Rows(512), "tokens": sf.TokenBudget(16_384), "packed": sf.Packed(512, rows=32)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two files of 128 row groups, each of about 0.1 MB."""
    path = tmp_path_factory.mktemp("docs")
    rng = np.random.default_rng(0)
    for number in range(2):
        offsets = np.concatenate([[0], np.cumsum(rng.integers(1, 128, 128 * 400))]).astype(np.int32)
        values = rng.integers(0, 2**31 - 1, offsets[-1], np.int32)
        table = pa.table({"tokens": pa.ListArray.from_arrays(offsets, values)})
        pq.write_table(table, path / f"{number}.parquet", row_group_size=400, use_dictionary=False)
    return path


def bytes_read(run):
    """What the process asked the file system for in the meantime."""

    def now():
        return int(IO.read_text().split("rchar: ")[1].split()[0])

    before = now()
    run()
    return now() - before


def drain(loader):
    for _ in loader:
        pass


SHUFFLED, SLICED = {"shuffle": True, "window": "120 kB"}, {"window": "60 kB"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("plan", "threads", "options", "files"),
    [
        ("rows", 2, SLICED, "0.parquet"),
        ("packed", 2, SHUFFLED, "*.parquet"),
        *thorough(("rows", 2, SHUFFLED, "*.parquet"), ("tokens", 0, SHUFFLED, "*.parquet")),
    ],
)
def test_eight_ranks_together_read_little_more_than_one_alone(
    folder, tmp_path, plan, threads, options, files
):
    def loader(**ranks):
        index = tmp_path / "lengths.arrow"
        return sf.Loader(
            folder / files, batch=PLANS[plan], streams=8, index=index, format=sf.Parquet(memory_map=False), threads=threads,
            **options, **ranks,
        )  # fmt: skip

    assert len(loader()) > 100
    loader().take(1)  # whatever is imported late
    alone = bytes_read(lambda: drain(loader()))
    size = sum(path.stat().st_size for path in folder.glob(files))
    assert size < alone < 1.05 * size
    together = sum(bytes_read(lambda rank=rank: drain(loader(rank=rank, world_size=8))) for rank in range(8))
    assert together <= 1.2 * alone


@pytest.mark.each_choice
@pytest.mark.parametrize("batch", [sf.Rows(100), sf.TokenBudget(6600)])
@pytest.mark.parametrize("shuffle", [False, True])
def test_a_resumed_loader_reads_two_windows_at_most(folder, batch, shuffle):
    window = 1 << 20
    options = {
        "batch": batch,
        "shuffle": shuffle,
        "window": window,
        "format": sf.Parquet(memory_map=False),
        "threads": 0,
    }
    loader = sf.Loader(folder, **options)
    states = [loader.state_dict()]
    for _ in loader:
        states.append(loader.state_dict())
    assert len(states) > 1000
    for state, remaining in ((states[0], 1), (states[500], 1), (states[-2], 1), (states[-3], 2)):
        resumed = sf.Loader(folder, **options)
        resumed.load_state_dict(state)
        footers = bytes_read(lambda: sf.Loader(folder, **options).state_dict())
        batches = iter(resumed)
        found = bytes_read(lambda batches=batches, count=remaining: [next(batches) for _ in range(count)])
        assert 0 < found <= 2 * window + footers
    first = bytes_read(lambda: next(iter(sf.Loader(folder, **options))))
    assert first <= 1.2 * (window + footers)


@pytest.mark.parametrize("plan", ["rows", "tokens"])
def test_a_batch_by_its_number_reads_the_windows_that_it_lies_in(folder, tmp_path, plan):
    options = {"index": tmp_path / "lengths.arrow"} if plan == "tokens" else {}
    loader = sf.Loader(
        str(folder / "*.parquet"),
        batch=PLANS[plan],
        threads=0,
        format=sf.Parquet(memory_map=False),
        **SHUFFLED,
        **options,
    )
    number = len(loader) // 2
    everything = bytes_read(lambda: drain(loader))
    loader.set_epoch(0)
    loader.batch_at(0)
    assert bytes_read(lambda: loader.batch_at(number)) < everything / 50  # of about 250 windows
