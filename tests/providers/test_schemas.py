"""The common schema of several files."""

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import ProviderError

ITEM = pa.field("item", pa.int64(), nullable=False)
KINDS = [
    (pa.int64(), pa.int64(), 1, None),
    (pa.string(), pa.string(), "a", None),
    (pa.list_(ITEM), pa.list_(pa.int64()), [1], [None, 2]),
    (pa.large_list(ITEM), pa.large_list(pa.int64()), [1], None),
    (pa.list_(ITEM, 2), pa.list_(pa.int64(), 2), [1, 2], [None, 3]),
    (pa.struct([ITEM]), pa.struct([ITEM.with_nullable(True)]), {"item": 1}, {"item": None}),
    (pa.list_(pa.struct([ITEM])), pa.list_(pa.struct([ITEM.with_nullable(True)])), [{"item": 1}], [None]),
    (
        pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False)),
        pa.map_(pa.string(), pa.int64()),
        [("a", 1)],
        [("b", None)],
    ),
]


def write(path, kind, nullable, rows):
    schema = pa.schema([pa.field("x", kind, nullable)])
    table = pa.table([pa.array(rows, kind)], schema=schema)
    pq.write_table(table, path) if path.suffix == ".parquet" else feather.write_feather(table, path)
    return path


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize(("strict", "loose", "value", "null"), KINDS, ids=lambda one: str(one))
def test_what_may_be_null_in_one_file_may_be_null_in_all(tmp_path, suffix, strict, loose, value, null):
    one = write(tmp_path / f"a.{suffix}", strict, False, [value])
    other = write(tmp_path / f"b.{suffix}", loose, True, [null, value])
    for paths, expected in (([one, other], [value, null, value]), ([other, one], [null, value, value])):
        (batch,) = sf.Loader(paths, valid=True)
        assert sf.to_arrow(batch)["x"].to_pylist() == expected
        with pytest.raises(ProviderError, match=r"b.*null value in x"):
            list(sf.Loader(paths))
        skipping = sf.Loader(paths, bad_rows="skip")
        assert sum(batch.num_rows for batch in skipping) == 2
        assert skipping.stats().bad_rows == 1


def test_a_null_that_the_schema_of_its_own_batch_forbids_is_a_bad_row():
    schema = pa.schema([pa.field("x", pa.int64(), nullable=False)])
    batch = pa.record_batch([pa.array([1, None])], schema=schema)
    for source in (batch, pa.RecordBatchReader.from_batches(schema, [batch])):
        with pytest.raises(ProviderError, match="null value in x, which is declared not null"):
            list(sf.Loader(source, valid=True))
