"""How much is read ahead: one object, or its fields by themselves; it changes no batch."""

import pyarrow as pa
import pytest

import seqflow as sf

TABLE = pa.table({"x": range(10)})


def test_prefetching_changes_no_batch():
    loaders = [
        sf.Loader(TABLE, batch=3, prefetch=sf.Prefetch(threads=2, memory="1 GiB", reuse=True)),
        sf.Loader(TABLE, batch=3, threads=2, memory="1 GiB", reuse=True),
        sf.Loader(TABLE, batch=3, prefetch=sf.Prefetch(threads=0)),
        sf.Loader(TABLE, batch=3),
    ]
    found = [[batch["x"].tolist() for batch in loader] for loader in loaders]
    assert found == [[[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]] * 4
    assert [loader.memory for loader in loaders] == [2**30, 2**30, 2**28, 2**28]
    assert loaders[0].prefetch == loaders[1].prefetch == sf.Prefetch(2, 2**30, True)


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
