"""Jobs with a filter: its rows, their counts, and what a run that goes on compares."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow
from killed_jobs import KILLING

from seqflow.errors import FilterError, JobError, UnknownColumnError
from seqflow.job import Job, run
from seqflow.job.checking import check
from seqflow.job.planning import plan

ROWS = 200
LANGS = ["py", "c", None, "go"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    table = pa.table(
        {
            "id": range(ROWS),
            "lang": [LANGS[n % 4] for n in range(ROWS)],
            "tokens": [[n] * (n % 5) for n in range(ROWS)],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=20)
    with open(tmp_path / "a.jsonl", "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in table.to_pylist())
    return tmp_path


def job_of(folder: Path, where: str, paths: str = "a.parquet") -> Job:
    tables = job_tables(folder, paths)
    tables["source"]["where"] = where
    return Job.from_dict(tables, folder)


def job_tables(folder: Path, paths: str) -> dict[str, Any]:
    return {
        "source": {"paths": paths, "columns": ["id", "tokens"]},
        "order": {"window": 400},
        "batch": {"kind": "rows", "n": 8},
        "output": {"path": str(folder / "out"), "part_bytes": 300},
    }


def ids(folder: Path) -> list[int]:
    found: list[int] = pq.read_table(folder / "out", columns=["id"])["id"].to_pylist()
    return found


@pytest.mark.parametrize("paths", ["a.parquet", "a.jsonl"])
def test_a_job_writes_the_rows_that_are_kept(data: Path, paths: str) -> None:
    job = job_of(data, 'lang == "py" and tokens.lengths > 1', paths)
    assert "tokens.lengths" in str(check(job))
    assert (plan(job).rows is None) == (paths == "a.jsonl")
    report = run(job)
    kept = [n for n in range(ROWS) if n % 4 == 0 and n % 5 > 1]
    assert ids(data) == kept
    assert (report.rows, report.rows_read, report.filtered, report.skipped) == (30, 30, 170, 170)
    manifest = json.loads((data / "out" / "_manifest.json").read_text())
    assert manifest["counts"]["filtered"] == 170
    assert run(job_of(data, "lang == 'py' and (tokens.lengths>1)", paths)).outcome == "complete"
    with pytest.raises(JobError, match=r"where was .*'py'.* and is .*'go'"):
        run(job_of(data, 'lang == "go" and tokens.lengths > 1', paths))
    with pytest.raises(JobError, match=r"where was .* and is None now"):
        run(Job.from_dict(job_tables(data, paths), data))


def test_a_filter_without_rows_writes_an_empty_file(data: Path) -> None:
    report = run(job_of(data, "id > 1000"))
    assert (report.rows, report.filtered) == (0, ROWS)
    assert ids(data) == []


def test_a_record_of_a_run_without_filters_is_read(data: Path) -> None:
    job = Job.from_dict(job_tables(data, "a.parquet"), data)
    run(job)
    path = data / "out" / "_manifest.json"
    manifest = json.loads(path.read_text())
    assert "where" not in manifest["job"]
    del manifest["counts"]["filtered"]
    path.write_text(json.dumps(manifest))
    report = run(job)
    assert (report.outcome, report.filtered) == ("complete", 0)


def test_wrong_filters_are_errors_of_the_job(data: Path) -> None:
    with pytest.raises(UnknownColumnError, match=r"where: .*a\.parquet: there is no column 'langg'"):
        check(job_of(data, "langg == 'py'"))
    with pytest.raises(FilterError, match="where, column 4"):
        check(job_of(data, "id = 5"))
    with pytest.raises(JobError, match="where is 5, expected text"):
        job_of(data, 5)  # type: ignore[arg-type]


def test_commands_take_filters(data: Path) -> None:
    (data / "job.toml").write_text(
        '[source]\npaths = "a.parquet"\ncolumns = ["id"]\nwhere = "lang == \'py\'"\n[output]\npath = "out"\n'
    )
    done = seqflow("run", "job.toml", "--set", "source.where=lang in ['py', 'go'] and id < 100", folder=data)
    assert done.returncode == 0, done.stderr
    assert ids(data) == [n for n in range(100) if n % 4 in (0, 3)]
    assert "filtered" in done.stdout
    assert "skipped" not in done.stdout
    shown = seqflow("inspect", "a.parquet", "--where", "id >= 190", "--json", folder=data)
    assert json.loads(shown.stdout)["rows"] == 10
    index = seqflow("index", "a.jsonl", "--where", "lang == 'py' and id >= 150", "--json", folder=data)
    assert json.loads(index.stdout)["rows"] == 12, index.stderr
    wrong = seqflow("inspect", "a.parquet", "--where", "id >=", folder=data)
    assert wrong.returncode == 2
    assert "where, column 6: found the end" in wrong.stderr
    of_job = seqflow("index", "job.toml", "--where", "id > 1", folder=data)
    assert of_job.returncode == 2
    assert "the job has this setting" in of_job.stderr


KILLER = f"""
{KILLING}
if "KILL_AT" in os.environ:
    os.replace = killing(os.replace)
"""


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("paths", ["a.parquet", "a.jsonl"])
@pytest.mark.parametrize("batch", ['kind = "rows"\nn = 7', 'kind = "tokens"\nmax_tokens = 20'])
def test_a_run_with_a_filter_that_is_killed_goes_on_byte_for_byte(data: Path, paths: str, batch: str) -> None:
    (data / "killer.py").write_text(KILLER)
    (data / "job.toml").write_text(
        f'imports = ["killer"]\n[source]\npaths = "{paths}"\ncolumns = ["id", "tokens"]\n'
        "where = \"lang in ['py', 'go'] and tokens.lengths != 3\"\n"
        f'{"[source.jsonl]" * (paths == "a.jsonl")}\n{"batch_bytes = 600" * (paths == "a.jsonl")}\n[order]\nwindow = 600\n[batch]\n{batch}\n[output]\npath = "out"\npart_bytes = 400\n'
    )

    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (data / "out").rglob("*") if path.is_file()}

    assert seqflow("run", "job.toml", "--quiet", folder=data).returncode == 0
    expected = files()
    assert len(expected) > 4
    for moment in range(5):
        killed = seqflow(
            "run", "job.toml", "--quiet", "--overwrite", folder=data, KILL_AT=str(2 * moment + 1)
        )
        assert killed.returncode == -9
        other = seqflow("run", "job.toml", "--resume", "--set", "source.where=id > 3", folder=data)
        assert "where was" in other.stderr
        resumed = seqflow("run", "job.toml", "--quiet", "--resume", folder=data)
        assert resumed.returncode == 0, resumed.stderr
        assert files() == expected
