"""Encodings of Parquet columns."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from seqflow.output import choose_encodings


def encoding(values: object) -> str:
    (chosen,) = choose_encodings(pa.table({"x": values})).values()
    return chosen


def test_positions_are_encoded_as_differences() -> None:
    lengths = np.random.default_rng(0).integers(1, 2048, 100)
    assert encoding(np.concatenate([np.arange(n, dtype=np.int32) for n in lengths])) == "DELTA_BINARY_PACKED"


def test_sorted_numbers_are_encoded_as_differences() -> None:
    assert encoding(np.sort(np.random.default_rng(0).integers(0, 10**12, 100_000))) == "DELTA_BINARY_PACKED"


def test_byte_tokens_segment_ids_and_random_ids_get_a_dictionary() -> None:
    random = np.random.default_rng(0)
    text = np.frombuffer(Path(__file__).read_bytes(), np.uint8).astype(np.int32)
    assert encoding(np.tile(text, 20)) == "RLE_DICTIONARY"
    assert encoding(np.repeat(np.tile(np.arange(1, 5), 50), 500)) == "RLE_DICTIONARY"
    assert encoding(random.integers(0, 50_000, 3_000_000)) == "RLE_DICTIONARY"


def test_text_and_floats_keep_the_default() -> None:
    assert encoding(["a", "b"]) == "RLE_DICTIONARY"
    assert encoding([0.0, 1.0]) == "RLE_DICTIONARY"


def test_leaves_are_found_under_every_kind_of_nesting() -> None:
    inner = pa.array([[{"a": 1, "b": [1]}], []])
    table = pa.table(
        {
            "list": inner,
            "fixed": pa.array([[1, 2], [3, 4]], pa.list_(pa.int32(), 2)),
            "map": pa.array([[("k", [1])], []], pa.map_(pa.string(), pa.list_(pa.int8()))),
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    schema = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    assert list(choose_encodings(table)) == [schema.column(i).path for i in range(len(schema))]


@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=300))
def test_whatever_encoding_is_chosen_values_come_back(values: list[int | None]) -> None:
    table = pa.table({"x": pa.array(values, pa.int64())})
    delta = [name for name, how in choose_encodings(table).items() if how != "RLE_DICTIONARY"]
    sink = pa.BufferOutputStream()
    settings = {"use_dictionary": False, "column_encoding": {"x": "DELTA_BINARY_PACKED"}} if delta else {}
    pq.write_table(table, sink, **settings)
    assert pq.read_table(pa.BufferReader(sink.getvalue()))["x"].to_pylist() == values
