"""Rows of a request become the batch that the loader would make of them."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import OpError, OpTypeError, ProviderError, UnknownColumnError
from seqflow.record import Record

WORDS = ["a", "bc", "ü"]
VALUES: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "n": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "x": (pa.float32(), st.floats(width=32)),
    "flag": (pa.bool_(), st.booleans()),
    "likes": (pa.list_(pa.int16()), st.lists(st.integers(-9, 9), max_size=3)),
    "deep": (pa.large_list(pa.list_(pa.float64())), st.lists(st.lists(st.floats(), max_size=2), max_size=2)),
    "text": (pa.string(), st.sampled_from(WORDS)),
    "words": (pa.list_(pa.string()), st.lists(st.sampled_from(WORDS), max_size=3)),
    "code": (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(WORDS)),
    "codes": (pa.list_(pa.dictionary(pa.int8(), pa.string())), st.lists(st.sampled_from(WORDS), max_size=3)),
    "at": (pa.timestamp("us"), st.datetimes()),
    "turn": (pa.struct([("role", pa.string()), ("n", pa.int8())]), st.fixed_dictionaries({"role": st.sampled_from(WORDS), "n": st.integers(0, 9)})),
    "features": (pa.map_(pa.int64(), pa.float32()), st.lists(st.tuples(st.integers(0, 9), st.floats(0, 1, width=32)), max_size=3)),
}  # fmt: skip
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in VALUES.items()])
ROWS = st.lists(
    st.fixed_dictionaries({name: values for name, (_, values) in VALUES.items()}), min_size=1, max_size=4
)


def table_of(rows: list[dict[str, Any]], names: list[str]) -> pa.Table:
    plain = {"code": pa.string(), "codes": pa.list_(pa.string())}
    columns = [
        pa.array([row[name] for row in rows], plain.get(name, SCHEMA.field(name).type)) for name in names
    ]
    return pa.table(columns, names).cast(pa.schema([SCHEMA.field(name) for name in names]))


def same(found: Record, expected: Record) -> None:
    assert list(found) == list(expected)
    assert found.parents == expected.parents
    assert found.num_rows == expected.num_rows
    assert found.schema == expected.schema
    for name in expected:
        assert found[name].dtype == expected[name].dtype
        assert np.array_equal(found[name], expected[name], equal_nan=found[name].dtype.kind == "f")


@given(ROWS, st.sets(st.sampled_from(sorted(VALUES)), min_size=1))
def test_rows_give_the_batch_of_the_loader(rows: list[dict[str, Any]], names: set[str]) -> None:
    chosen = sorted(names)
    table = table_of(rows, chosen)
    loader = sf.Loader(table, batch=sf.Rows(100))
    given = [{name: row[name] for name in chosen} for row in rows]
    same(sf.from_rows(given, like=loader), next(iter(loader)))


LIKES = pa.table({"likes": pa.array([[1, 2], [], [3]], pa.list_(pa.int32())), "w": [0.5, 1.5, 2.5]})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch": sf.TokenBudget(2, lengths="likes.lengths"), "columns": ["likes"]},
        {"pad": {"likes": sf.Pad(multiple_of=4)}},
        {
            "prepare": "m = lengths_sum(likes.values, likes.lengths)\nreturn m, w",
            "net": "y = m * w\nreturn y",
        },
        {"batch": sf.Packed(8, rows=1), "columns": ["likes"]},
        {"valid": ["w"]},
    ],
)
def test_prepare_pad_plan_and_net_are_those_of_the_loader(options: dict[str, Any]) -> None:
    table = LIKES.take([0, 2]) if "batch" in options else LIKES
    rows = table.select(options.get("columns", LIKES.column_names)).to_pylist()
    whole = options if isinstance(options.get("batch"), sf.Packed) else {**options, "batch": 100}
    same(sf.from_rows(rows, like=sf.Loader(table, **options)), next(iter(sf.Loader(table, **whole))))


def test_a_key_that_is_missing_is_null() -> None:
    with pytest.raises(
        ProviderError, match=r"from_rows: row 1, key 'w': null value in w\n.*fill= of the loader"
    ):
        sf.from_rows([{"likes": [1], "w": 1.0}, {"likes": [2]}], like=sf.Loader(LIKES))
    filled = sf.from_rows([{"likes": [1]}], like=sf.Loader(LIKES, fill={"w": 7.0}))
    assert filled["w"].tolist() == [7.0]
    masked = sf.from_rows([{"likes": [1]}], like=sf.Loader(LIKES, valid=["w"]))
    assert masked["w.valid"].tolist() == [False]


@pytest.mark.parametrize(
    ("row", "error", "says"),
    [
        ({"lieks": [1], "w": 1.0}, UnknownColumnError, "row 0 has the key 'lieks' .did you mean 'likes'.*the loader reads likes, w"),
        ({"likes": [1.5], "w": 1.0}, ProviderError, r"key 'likes', row 0: found \[1.5\], expected list<item: int32>"),
        ({"likes": [2**31], "w": 1.0}, ProviderError, "key 'likes', row 0: found"),
        ({"likes": "x", "w": 1.0}, ProviderError, "key 'likes', row 0: found 'x', expected list<item: int32>"),
        ({"likes": [1], "w": "1.0"}, ProviderError, "key 'w', row 0: found '1.0', expected double"),
        ({"likes": [1], "w": [1.0]}, ProviderError, "key 'w', row 0: found"),
        ({"likes": [None], "w": 1.0}, ProviderError, "row 0, key 'likes': null value in likes.values"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_is_named_with_its_key(
    row: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        sf.from_rows([row], like=sf.Loader(LIKES))


def test_a_value_without_a_code_is_an_error() -> None:
    loader = sf.Loader(pa.table({"c": pa.array(["a", "b", "a"]).dictionary_encode()}))
    assert sf.from_rows([{"c": "b"}], like=loader)["c"].tolist() == [1]
    with pytest.raises(
        ProviderError, match="key 'c': 'z' is none of the 2 values of the source's dictionary"
    ):
        sf.from_rows([{"c": "z"}], like=loader)


def test_what_the_loader_would_leave_out_is_an_error() -> None:
    loader = sf.Loader(LIKES, require="likes.lengths > 0", bad_rows="skip")
    with pytest.raises(ProviderError, match=r"row 1, key 'likes': require: likes.lengths > 0 is false"):
        sf.from_rows([{"likes": [1], "w": 1.0}, {"likes": [], "w": 1.0}], like=loader)
    packed = sf.Loader(LIKES, columns=["likes"], batch=sf.Packed(2, rows=1))
    with pytest.raises(OpError, match="Packed makes 2 batches of 2 rows and leaves out 0, expected one"):
        sf.from_rows([{"likes": [1, 2]}, {"likes": [3, 4]}], like=packed)
    with pytest.raises(OpError, match="there are no rows"):
        sf.from_rows([], like=loader)
    with pytest.raises(OpTypeError, match="rows is 5"):
        sf.from_rows(5, like=loader)  # type: ignore[arg-type]
