"""What a consumer does to a batch in place shows in no other batch, in no later epoch, and in no array of the user."""

import contextlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf

torch = pytest.importorskip("torch")

TABLE = pa.table(
    {
        "x": list(range(6)),
        "l": [[i] * (i % 3 + 1) for i in range(6)],
        "d": pa.array(list("abcabc")).dictionary_encode(),
        "s": ["text"] * 6,
        "v": pa.array([1.5, None] * 3),
    }
)
POSITIONS = np.arange(2)
CONSTANT = np.arange(3.0)
DOUBLE = "y = x * 2\nreturn y, x, l.lengths, l.values"


def same_array(record):
    return {"x": record["x"], "positions": POSITIONS[: len(record["x"])]}


def kept_block(record, kept={}):  # noqa: B006
    return kept.setdefault(int(record["x"][0]), {"x": record["x"].copy()})


LOADERS = {
    "rows": {},
    "short rows": {"batch": sf.Rows(4)},
    "shuffled": {"shuffle": True},
    "prepared": {"prepare": DOUBLE},
    "prepared and shuffled": {"prepare": DOUBLE, "shuffle": True},
    "prepared in several windows": {"prepare": DOUBLE, "window": 50},
    "view of rows": {"net": "z = reshape(x, shape=[-1, 1])\nreturn z, x"},
    "view of prepared rows": {"prepare": DOUBLE, "net": "z = reshape(y, shape=[-1, 1])\nreturn z"},
    "constant": {"net": "return x, c", "constants": {"c": CONSTANT}},
    "view of a constant": {"net": "z = reshape(c, shape=[1, -1])\nreturn x, z", "constants": {"c": CONSTANT}},
    "literal": {"net": "z = reshape([1, 2], shape=[1, 2])\nreturn x, z"},
    "function with an array of its own": {"net": same_array},
    "function as prepare that keeps its result": {"prepare": kept_block},
    "packed": {"columns": ["l"], "batch": sf.Packed(4)},
    "budget": {"batch": sf.TokenBudget(6, lengths="l.lengths")},
    "buckets": {"batch": sf.Buckets((2,), sf.TokenBudget(6, lengths="l.lengths"))},
    "padded": {"pad": {"l": sf.Pad(0)}},
    "repeated tail": {"tail": "repeat", "world_size": 2, "rank": 1, "batch": 2},
    "repeated tail of prepared rows": {
        "prepare": DOUBLE,
        "tail": "repeat",
        "world_size": 2,
        "rank": 1,
        "batch": 2,
    },
    "no threads": {"prepare": DOUBLE, "threads": 0},
}


def plain(batches):
    return [{name: np.asarray(value).tolist() for name, value in batch.items()} for batch in batches]


def change(batch):
    for value in batch.values():
        with contextlib.suppress(ValueError, TypeError):
            value += type(value.flat[0] if isinstance(value, np.ndarray) else value.flatten()[0].item())(1)


def changed(batches):
    """What each batch was when it was handed out; each is changed in place after that."""
    found = []
    for batch in batches:
        found += plain([batch])
        change(batch)
    return found


def source_of(kind, tmp_path):
    if kind == "table":
        return TABLE
    pq.write_table(TABLE, tmp_path / "x.parquet", row_group_size=3)
    return tmp_path / "x.parquet"


@pytest.mark.each_choice
@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("library", ["numpy", "torch"])
@pytest.mark.parametrize("source", ["table", "parquet"])
def test_a_change_in_place_shows_nowhere_else(name, library, source, tmp_path):
    columns = {"columns": ["x", "l", "d", "s"]} | {"batch": 3} | LOADERS[name]
    path = source_of(source, tmp_path)
    expected = [plain(loader) for loader in [sf.Loader(path, **columns)] for _ in range(2)]
    loader = sf.Loader(path, **columns)
    batches = loader if library == "numpy" else loader.to("torch")
    assert [changed(batches) for _ in range(2)] == expected
    assert POSITIONS.tolist() == [0, 1]
    assert CONSTANT.tolist() == [0, 1, 2]


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_nor_in_a_mix(library, tmp_path):
    sources = {}
    for name in "ab":
        pq.write_table(TABLE.select(["x"]), tmp_path / f"{name}.parquet")
        sources[str(tmp_path / f"{name}.parquet")] = 1.0

    def mix(**options):
        return sf.Mix(sources, batch=2, **options)

    for options in ({}, {"prepare": "y = x * 2\nreturn y"}, {"stop": "all"}):
        expected = [plain(one) for one in [mix(**options)] for _ in range(2)]
        mixed = mix(**options)
        batches = mixed if library == "numpy" else mixed.to("torch")
        assert [changed(batches) for _ in range(2)] == expected


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_an_array_of_the_user_as_the_source_keeps_its_values(library):
    values = np.arange(6)
    loader = sf.Loader({"x": values}, batch=3)
    changed(loader if library == "numpy" else loader.to("torch"))
    assert values.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_batch_that_shares_memory_says_so_when_it_is_written_to():
    batch = next(iter(sf.Loader(TABLE, columns=["x", "l"], batch=3, prepare=DOUBLE)))
    for name in batch:
        assert not batch[name].flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            batch[name] += 1


def test_a_batch_with_memory_of_its_own_can_be_written_to():
    batch = next(iter(sf.Loader(TABLE, columns=["x", "l"], batch=3, shuffle=True, net="y = x * 2")))
    assert {name for name in batch if batch[name].flags.writeable} == set(batch)


def test_a_constant_may_be_changed_by_its_owner():
    """Weights that are trained between batches are a constant, which is not copied."""
    weights = np.zeros(3)
    batches = iter(sf.Loader(TABLE, columns=["x"], batch=1, threads=0, net="y = gather(w, x % 3)\nreturn y",
                             constants={"w": weights}))  # fmt: skip
    net = sf.Net("y = w + 1\nreturn y").bind(w=weights)
    weights += 1
    assert sf.run(net, {})["y"].tolist() == [2, 2, 2]
    assert next(batches)["y"].tolist() == [1]
