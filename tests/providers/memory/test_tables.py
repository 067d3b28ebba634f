"""Tables, frames and dicts of arrays that are in memory already."""

from datetime import date, datetime

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.errors import ProviderError
from seqflow.record import from_arrow

TABLE = pa.table({"c": [[1, 2], [], [3]], "x": [1.0, 2.0, 3.0]})


@pytest.mark.parametrize("source", [TABLE, TABLE.to_batches()[0], TABLE.to_struct_array().combine_chunks()])
def test_a_table_may_be_read_again_and_again(source):
    provider = sf.open(source)
    for _ in range(2):
        values, lengths = provider["c"].unpack()
        assert (values.tolist(), lengths.tolist()) == ([1, 2, 3], [2, 0, 1])
    assert len(provider) == 3


def test_reading_shares_the_memory_of_the_table():
    provider = sf.open(TABLE)
    record = from_arrow(provider.read(next(provider.blocks())))
    buffer = TABLE["c"].chunk(0).values.buffers()[1]
    assert record["c.values"].__array_interface__["data"][0] == buffer.address


def test_a_large_table_is_cut_into_blocks():
    table = pa.table({"x": np.arange(1000)})
    provider = sf.open(table, batch_bytes=800)
    blocks = list(provider.blocks())
    assert [block.num_rows for block in blocks] == [100] * 10
    assert {block.nbytes for block in blocks} == {800}
    assert provider["x"].tolist() == list(range(1000))


def test_columns_and_names_are_chosen():
    provider = sf.open(
        pa.table({"a.b": [1], "s": [{"x": 1, "y": 2}]}), rename={"a.b": "ab"}, columns=["s.y", "ab"]
    )
    assert provider.columns == ("s", "ab")
    assert "ab" in provider
    assert provider.read(next(provider.blocks())).to_pylist() == [{"s": {"y": 2}, "ab": 1}]


def test_a_dict_may_hold_arrays_pairs_lists_and_arrow():
    provider = sf.open(
        {
            "label": [0, 1],
            "x": np.ones((2, 3), np.float32),
            "tokens": (np.array([1, 2, 3]), np.array([2, 1])),
            "words": (np.arange(3), sf.LoD([1, 1], [2, 1])),
            "id.lengths": np.array([0, 1]),
            "id.values": np.array([9]),
            "name": pa.array(["a", "b"]),
            "title": np.array(["x", "y"]),
        }
    )
    assert provider.columns == ("label", "x", "tokens", "words", "id", "name", "title")
    assert provider.schema.field("x").type == pa.list_(pa.float32(), 3)
    assert provider.read(next(provider.blocks())).to_pylist()[1] == {
        "label": 1,
        "x": [1.0, 1.0, 1.0],
        "tokens": [3],
        "words": [[2]],
        "id": [9],
        "name": "b",
        "title": "y",
    }


def test_arrays_of_a_dict_are_not_copied():
    values = np.arange(3)
    read = sf.open({"tokens": (values, np.array([2, 1]))})["tokens"].values
    assert np.shares_memory(read, values)


def test_a_column_may_be_a_sequence():
    words = sf.Sequence(np.arange(3), [[2, 0], [2, 1]])
    provider = sf.open({"words": words, "label": [0, 1]})
    assert provider["words"].lod == words.lod
    assert np.shares_memory(provider["words"].values, words.values)
    assert provider["label"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": [1, 2], "b": np.array([1])}, "equally many rows: b 1, a 2"),
        ({"a": (np.array([1, 2]), np.array([1]))}, r"sum\(a.lengths\) is 1"),
        ({"a": [1, "x"]}, "column 'a'"),
        ({"a": object()}, "column 'a'"),
    ],
)
def test_a_dict_of_what_can_not_be_a_table_is_an_error(arrays, message):
    with pytest.raises(ProviderError, match=message):
        sf.open(arrays)


def test_pandas_frames_are_read():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1, 2], "t": ["a", "bc"]})
    provider = sf.open(frame)
    assert provider["x"].tolist() == [1, 2]
    assert provider["t"].lengths.tolist() == [1, 2]
    assert provider["x"].tolist() == [1, 2]


def test_polars_frames_are_read():
    polars = pytest.importorskip("polars")
    provider = sf.open(polars.DataFrame({"c": [[1, 2], [3]], "t": ["a", "b" * 20]}))
    assert provider["c"].values.tolist() == [1, 2, 3]
    assert provider["t"].lengths.tolist() == [1, 20]


@pytest.mark.parametrize("source", [5, None, [1, 2], object(), pa.array([1])])
def test_what_holds_no_rows_is_an_error(source):
    with pytest.raises(ProviderError, match=r"expected a record batch|columns of Arrow"):
        sf.open(source)


def test_an_empty_list_is_an_error():
    with pytest.raises(ProviderError, match="empty"):
        sf.open([])


def test_a_provider_is_opened_as_it_is():
    provider = sf.open(TABLE)
    assert sf.open(provider) is provider
    with pytest.raises(ProviderError, match="provider already"):
        sf.open(provider, columns=["c"])


def test_an_option_of_another_kind_is_an_error():
    with pytest.raises(ProviderError, match="no option 'encoding' for memory"):
        sf.open(TABLE, encoding="utf-8")


def test_a_provider_is_indexed_by_names():
    with pytest.raises(TypeError, match="column's name"):
        sf.open(TABLE)[0]


def test_a_column_has_fills_in_the_place_of_nulls():
    table = pa.table({"ids": [[1, None], None], "pair": [{"x": 1}, None], "x": [None, 2]})
    provider = sf.open(table, fill={"ids": [], "ids.values": 9, "pair": {"x": 5}, "x": 7})
    assert [ids.tolist() for ids in provider["ids"]] == [[1, 9], []]
    assert provider["pair"]["x"].tolist() == [1, 5]
    assert provider["x"].tolist() == [7, 2]


def test_a_null_in_a_column_says_what_replaces_it():
    with pytest.raises(ProviderError, match="row 1: null value in ids\nfill= of open"):
        sf.open(pa.table({"ids": [[1], None]}))["ids"]


ARRAYS = {
    "bool": [True, False], "int8": [-128, 127], "uint8": [0, 255], "int16": [-(2**15)], "uint16": [2**16 - 1],
    "int32": [-(2**31)], "uint32": [2**32 - 1], "int64": [2**63 - 1, -(2**63), 2**53 + 1], "uint64": [2**64 - 1, 2**63],
    "float16": [0.5, 65504.0, np.inf], "float32": [0.5, 1e-45, np.inf], "float64": [0.1, 1e308, 5e-324, -0.0],
    ">i8": [2**53 + 1], ">f4": [0.5], ">U2": ["é"], "U3": ["", "a\0b"], "S3": [b"", b"a\0b", b"\xff"], "M8[D]": [-7000, 0],
    "M8[s]": [-(2**40), 2**40], "M8[ns]": [-1, 5], "M8[W]": [-5], "M8[h]": [-5], "M8[25s]": [3], "m8[s]": [-1, 2**40],
    "m8[ns]": [5], "m8[D]": [-1], "M8[as]": [5], "m8[M]": [5], "M8": ["NaT"], "longdouble": [0.5], "complex64": [1j],
    "V3": [b"abc"],
}  # fmt: skip
REFUSED = {"M8[as]", "m8[M]", "M8", "longdouble", "complex64", "V3"}


def read_again(source):
    (batch,) = sf.Loader(source, valid=True)
    return from_arrow(sf.to_arrow(batch), valid=True)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ARRAYS)
@pytest.mark.parametrize("shape", ["rows", "axes", "lists", "masked", "masked axes", "masked lists", "file"])
def test_arrays_of_every_dtype_keep_their_values_and_masks_or_are_refused(dtype, shape, tmp_path):
    values = (
        np.array(ARRAYS[dtype], "i8").view(dtype)
        if dtype[:3] in ("M8[", "m8[")
        else np.array(ARRAYS[dtype], dtype)
    )
    mask = np.arange(len(values)) % 2 == 0
    given = np.ma.masked_array(values, mask) if shape.startswith("masked") else values
    if shape.endswith("axes"):
        given = given[:, None]
    source = {"x": (given, np.array([0, len(given)])) if shape.endswith("lists") else given}
    if shape == "file":
        source = tmp_path / "x.npy"
        np.save(source, given)
    if dtype in REFUSED or (
        dtype == "O" and shape in ("axes", "lists", "masked axes", "masked lists", "file")
    ):
        with pytest.raises(ProviderError):
            read_again(source)
        return
    column = sf.to_arrow(read_again(source)).column(0)
    while pa.types.is_nested(column.type):
        column = column.flatten()
    hidden = mask & shape.startswith("masked")
    assert column.is_null().to_pylist() == hidden.tolist()
    if values.dtype.kind in "Mm":
        known = column.filter(column.is_valid()).to_numpy(zero_copy_only=False)
        assert known.tolist() == values[~hidden].astype(known.dtype).tolist()
    else:
        assert column.to_pylist() == [
            None if no else one for one, no in zip(values.tolist(), hidden, strict=True)
        ]


def test_integers_above_int64_are_unsigned():
    assert sf.open({"x": [1, 2**64 - 1]})["x"].tolist() == [1, 2**64 - 1]
    assert sf.open([{"x": 1}, {"x": 2**63}])["x"].dtype == np.uint64
    with pytest.raises(ProviderError, match="column 'x', row 1: found 18446744073709551616"):
        sf.open({"x": [1, 2**64]})


def test_arrays_of_objects_are_lists_of_python_values():
    objects = np.ma.masked_array(np.array([2**63, None, 7], object), [False, False, True])
    assert sf.to_arrow(read_again({"x": objects})).to_pydict() == {"x": [2**63, None, None]}
    with pytest.raises(ProviderError, match=r"column 'x', row 1: found .*5, 0\), expected date32"):
        sf.open({"x": np.array([date(2024, 1, 1), datetime(2024, 1, 1, 5)], object)})
