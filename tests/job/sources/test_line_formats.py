"""Jobs over files of lines."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from seqflow.errors import JobError
from seqflow.job import Job, run


def rows(job: Job, folder: Path) -> list[dict[str, object]]:
    run(job, overwrite=True)
    found: list[dict[str, object]] = pq.read_table(folder / "out").to_pylist()
    return found


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("jsonl", {"extra_fields": "drop"}, "extra_fields is 'drop', expected 'error' or 'ignore'"),
        ("csv", {"header": 1}, "header is 1, expected true or false"),
        ("valid", "x", "valid is 'x', expected true or false or a list of text"),
        ("csv", "x", r"source.csv is 'x', expected a section \[source.csv\]"),
        ("csv", {"documents": True}, r"'documents' is an option of Megatron, and \[source.csv\] is Csv"),
        ("csv", {"delimitr": ";"}, r"Csv has no option 'delimitr' \(did you mean 'delimiter'\?\)"),
    ],
)
def test_a_wrong_setting_is_an_error(key: str, value: object, message: str) -> None:
    with pytest.raises(JobError, match=message):
        Job.from_dict({"source": {"paths": "x", key: value}})


def test_a_job_reads_json_lines_and_csv(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text('{"id": 1, "ids": [4, 5]}\n{"id": "x"}\n{"id": 2, "ids": []}\n')
    (tmp_path / "x.csv").write_text("id,ids\n1,4 5\nx,\n2,\n")
    schema = {"id": "int64", "ids": "list<int64>"}
    for source in (
        {"paths": "x.jsonl", "jsonl": {"schema": schema}},
        {"paths": "x.csv", "csv": {"schema": schema, "list_delimiter": " "}},
    ):
        tables = {
            "source": source,
            "output": {"path": str(tmp_path / "out")},
            "bad_rows": {"policy": "skip"},
        }
        job = Job.from_dict(tables, tmp_path)
        assert rows(job, tmp_path) == [{"id": 1, "ids": [4, 5]}, {"id": 2, "ids": []}]
