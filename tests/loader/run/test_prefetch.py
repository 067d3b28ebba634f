"""How much is read ahead: one object, or its fields by themselves; it changes no batch."""

import time

import pyarrow as pa
import pytest

import seqflow as sf

TABLE = pa.table({"x": range(10)})


def test_prefetching_changes_no_batch():
    loaders = [
        sf.Loader(TABLE, batch=3, prefetch=sf.Prefetch(threads=2, memory="1 GiB", reuse=True)),
        sf.Loader(TABLE, batch=3, threads=2, memory="1 GiB", reuse=True),
        sf.Loader(TABLE, batch=3, prefetch=sf.Prefetch(threads=0)),
        sf.Loader(TABLE, batch=3, threads=4),
    ]
    found = [[batch["x"].tolist() for batch in loader] for loader in loaders]
    assert found == [[[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]] * 4
    assert [loader.memory for loader in loaders] == [2**30, 2**30, 4 * 2**26, 7 * 2**26]
    assert loaders[0].prefetch == loaders[1].prefetch == sf.Prefetch(2, 2**30, True)


def test_the_next_window_is_read_as_soon_as_there_is_room():
    """Batches are made by several in a task; reading ahead does not wait until all of them are handed out."""
    read = []

    def prepare(record):
        read.append(record.num_rows)
        return {"x": record["x"]}

    table = pa.table({"x": range(48)})  # windows of 4 rows and 32 bytes, of which 4 are in memory
    loader = sf.Loader(
        table, batch=2, batch_bytes=32, window=32, memory=144, threads=1, prepare=prepare, version="1"
    )
    batches = iter(loader)
    next(batches)
    next(batches)  # the first window has shown how much is room for
    _wait_for(lambda: len(read) == 4)
    for _ in range(4):
        next(batches)
    _wait_for(lambda: len(read) == 6)


def _wait_for(is_true):
    deadline = time.monotonic() + 20
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.001)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": -1}, "Prefetch: threads is -1, expected an integer, 0 to 256"),
        ({"threads": True}, "Prefetch: threads is True"),
        ({"memory": "much"}, "Prefetch: memory: "),
        ({"memory": 100, "window": 1000}, "window is 1000 B, expected no more than memory, 100 B"),
        ({"threads": 1, "prefetch": sf.Prefetch()}, "threads is given in addition to prefetch"),
        ({"prefetch": 4}, r"prefetch is 4, expected Prefetch\(threads, memory, reuse\)"),
    ],
)
def test_what_is_no_prefetching_is_an_error(options, message):
    with pytest.raises((sf.OpError, TypeError), match=message):
        sf.Loader(TABLE, **options)


def test_a_source_says_what_nulls_become():
    table = pa.table({"x": pa.array([1, None, 3])})
    opened = sf.open(table, fill=-1, valid=["x"])
    (batch,) = sf.Loader(opened)
    assert (batch["x"].tolist(), batch["x.valid"].tolist()) == ([1, -1, 3], [True, False, True])
    assert sf.Loader(opened).pipeline.settings() == sf.Loader(table, fill=-1, valid=["x"]).pipeline.settings()
    with pytest.raises(sf.ProviderError, match="null value"):
        list(sf.Loader(sf.open(table)))
    with pytest.raises(sf.SeqflowError, match="there is no column 'z'"):
        sf.open(table, valid=["z"])
