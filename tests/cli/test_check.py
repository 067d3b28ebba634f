"""`seqflow check`."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
from command import seqflow

JOB = """
[source]
paths = "missing.parquet"
[prepare]
net = "t.values, t.lengths = truncate(tokens.values, tokens.lengths, max_length=4)\\nreturn t.values, t.lengths"
[batch]
kind = "rows"
n = 2
lengths = "t.lengths"
"""


def test_a_file_without_rows_is_enough_and_json_is_one_object(tmp_path):
    (tmp_path / "job.toml").write_text(JOB)
    schema = pa.schema({"tokens": pa.list_(pa.int32())})
    pq.write_table(schema.empty_table(), tmp_path / "empty.parquet")
    done = seqflow("check", "job.toml", "--input", "empty.parquet", "--json", folder=tmp_path)
    (found,) = json.loads(done.stdout)["sources"]
    assert found["source"]["tokens.values"] == {"type": "int32{0}", "bytes": 0}
    assert [*found["prepare"]][-2:] == ["t.values", "t.lengths"]
    assert found["batch"]["t.values"]["type"].startswith("int32{")


def test_a_net_that_does_not_fit_is_an_error_also_with_json(tmp_path):
    (tmp_path / "job.toml").write_text(JOB.replace("tokens.values", "words.values"))
    pq.write_table(pa.table({"tokens": pa.array([[1]], pa.list_(pa.int32()))}), tmp_path / "missing.parquet")
    done = seqflow("check", "job.toml", "--json", folder=tmp_path)
    assert done.returncode == 2
    assert "words.values" in done.stderr
