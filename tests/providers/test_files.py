"""Which files a provider reads."""

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq

import seqflow as sf


def test_a_provider_names_its_files(tmp_path):
    table = pa.table({"a": [1]})
    pq.write_table(table, tmp_path / "x.parquet")
    pyarrow.feather.write_feather(table, tmp_path / "x.feather")
    (tmp_path / "x.txt").write_text("a")
    for name in ("x.parquet", "x.feather", "x.txt"):
        assert sf.open(tmp_path / name).files == (str(tmp_path / name),)


def test_what_is_in_memory_or_a_stream_has_no_files():
    table = pa.table({"a": [1]})
    assert sf.open(table).files == ()
    assert sf.open(table.to_reader()).files == ()
