"""Codes of dictionary columns mean the same in every block."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.record import from_arrow, to_arrow

KIND = pa.dictionary(pa.int8(), pa.string())
WORDS = [["a", "b"], ["c", "b"], ["b", None]]


def coded(words, kind=KIND):
    return pa.array(words, kind)


def part(words):
    one = coded(words)
    return pa.table(
        {
            "c": one,
            "l": pa.ListArray.from_arrays([0, 1, 2], one),
            "s": pa.StructArray.from_arrays([pa.array(words), one], ["t", "d"]),
            "m": pa.MapArray.from_arrays([0, 1, 2], pa.array([1, 2]), one),
        }
    )


def files(folder):
    for index, words in enumerate(WORDS):
        pq.write_table(part(words), folder / f"{index}.parquet")
    return sf.open(folder)


def stream(folder):
    batches = [batch for words in WORDS for batch in part(words).to_batches()]
    return sf.open(pa.RecordBatchReader.from_batches(batches[0].schema, batches))


@pytest.mark.parametrize("opened", [files, stream])
def test_every_block_has_the_codes_of_one_dictionary(tmp_path, opened):
    provider = opened(tmp_path)
    tables = [provider.read(block) for block in provider.blocks()]
    assert [table.column("c").to_pylist() for table in tables] == WORDS
    fill = {"c": -1, "l": -1, "m": -1, "s": {"d": -1, "t": ""}}
    records = [from_arrow(table, fill=fill) for table in tables]
    for name in ("c", "l.values", "s.d", "m.values"):
        words = records[-1].dictionaries[name]
        codes = [record[name].tolist() for record in records]
        assert words.to_pylist() == ["a", "b", "c"]
        assert codes == [[0, 1], [2, 1], [1, -1]]
    assert to_arrow(records[1]).column("l").to_pylist() == [["c"], ["b"]]


def test_a_block_read_on_its_own_has_the_same_codes(tmp_path):
    provider = files(tmp_path)
    second = list(provider.blocks())[1]
    assert from_arrow(provider.read(second, ["c"]))["c"].tolist() == [2, 1]
    assert from_arrow(provider.read(second, ["s.d"]))["s.d"].tolist() == [2, 1]


def test_threads_get_the_same_codes(tmp_path):
    provider = files(tmp_path)
    blocks = list(provider.blocks()) * 5
    with ThreadPoolExecutor(4) as pool:
        codes = list(
            pool.map(lambda block: from_arrow(provider.read(block, ["c"]), fill=-1)["c"].tolist(), blocks)
        )
    assert codes == [[0, 1], [2, 1], [1, -1]] * 5


def test_codes_are_widened_for_the_values_of_all_files(tmp_path):
    for start in (0, 100):
        words = [str(word) for word in range(start, start + 100)]
        pq.write_table(pa.table({"c": coded(words)}), tmp_path / f"{start}.parquet")
    provider = sf.open(tmp_path)
    words = [str(word) for word in range(200)]
    tables = [provider.read(block) for block in provider.blocks()]
    assert {table.column("c").type.index_type for table in tables} == {pa.int16()}
    assert [word for table in tables for word in table.column("c").to_pylist()] == words
    assert provider["c"].dtype == np.int16
    assert [row["c"].tolist() for row in sf.Loader(provider, batch=100)] == [
        [*range(100)],
        [*range(100, 200)],
    ]
