"""Jobs over columns of every Arrow layout, nulls included."""

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from seqflow.job import Job, run

VIEWS = pa.struct({"a": pa.string_view(), "b": pa.list_(pa.binary_view())})
ROWS = [
    [{"a": "x", "b": [b"y"]}],
    None,
    [{"a": None, "b": None}, None],
    [{"a": "more than twelve bytes", "b": []}],
]


@pytest.mark.parametrize("output", ["o.parquet", "o.arrow"])
def test_nulls_and_views_of_texts_in_structs_are_written(tmp_path, output):
    table = pa.table({"c": pa.array(ROWS * 600, pa.list_(VIEWS))})  # Arrow writes 1,024 rows at once
    feather.write_feather(table, tmp_path / "in.arrow")
    source = {"paths": "in.arrow", "valid": True}
    run(Job.from_dict({"source": source, "output": {"path": output}}, tmp_path), overwrite=True)
    read = pq.read_table if output.endswith("parquet") else feather.read_table
    assert read(tmp_path / output)["c"].to_pylist() == ROWS * 600


def test_a_job_fills_texts_lists_and_times(tmp_path):
    columns = {"t": ["a", None], "l": [[1], None], "m": pa.array([0, None], pa.timestamp("s"))}
    feather.write_feather(pa.table(columns), tmp_path / "in.arrow")
    (tmp_path / "job.toml").write_text(
        '[source]\npaths = "in.arrow"\nfill = {t = "none", l = [2, 3], m = 1970-01-02T00:00:00}\n'
        '[output]\npath = "o.parquet"\n'
    )
    run(Job.read(tmp_path / "job.toml"), overwrite=True)
    (_, filled) = pq.read_table(tmp_path / "o.parquet").to_pylist()
    assert (filled["t"], filled["l"], str(filled["m"])) == ("none", [2, 3], "1970-01-02 00:00:00")
