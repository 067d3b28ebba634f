"""Jobs over libsvm and Criteo files."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from seqflow.errors import JobError
from seqflow.job import Job, run
from seqflow.job.checking import check


def rows(job: Job, folder: Path) -> list[dict[str, object]]:
    run(job, overwrite=True)
    found: list[dict[str, object]] = pq.read_table(folder / "out").to_pylist()
    return found


def test_a_job_reads_libsvm_files(tmp_path: Path) -> None:
    (tmp_path / "x.svm").write_text("1 1:0.5 3:2\n0\n1 x\n")
    tables = {
        "source": {"paths": "x.svm", "libsvm": {"one_based": True, "batch_bytes": "1 KiB"}},
        "net": {
            "net": "total = lengths_sum(features.values, features.lengths)\n"
            "return label, total, features.keys, features.lengths"
        },
        "output": {"path": str(tmp_path / "out")},
        "bad_rows": {"policy": "skip"},
    }
    job = Job.from_dict(tables, tmp_path)
    assert "features.keys  int64{sum(features.lengths)}" in str(check(job))
    assert rows(job, tmp_path) == [
        {"label": 1.0, "total": 2.5, "features.keys": [0, 2]},
        {"label": 0.0, "total": 0.0, "features.keys": []},
    ]


def test_a_job_fills_what_is_missing_in_criteo_files_by_column(tmp_path: Path) -> None:
    (tmp_path / "day_0").write_text("1\t7" + "\t" * 37 + "\tff\n")
    tables = {
        "source": {"paths": "day_0", "kind": "criteo", "fill": {"integers": 0, "categories": -1}},
        "output": {"path": str(tmp_path / "out")},
    }
    row = {"label": 1, "integers": [7, *[0] * 12], "categories": [*[-1] * 25, 0xFF]}
    assert rows(Job.from_dict(tables, tmp_path), tmp_path) == [row]
    tables["source"] = {
        "paths": "day_0", "criteo": {"categories": "texts"}, "columns": ["categories"], "fill": ""
    }  # fmt: skip
    (found,) = rows(Job.from_dict(tables, tmp_path), tmp_path)
    assert found == {"categories": [*[b""] * 25, b"ff"]}


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("criteo", {"categories": "hex"}, "categories is 'hex', expected 'ids' or 'texts'"),
        ("libsvm", {"one_based": 1}, "one_based is 1, expected true or false"),
        ("valid", "x", "valid is 'x', expected true or false or a list of text"),
        ("csv", "x", r"source.csv is 'x', expected a section \[source.csv\]"),
        ("csv", {"one_based": True}, r"'one_based' is an option of Libsvm, and \[source.csv\] is Csv"),
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
