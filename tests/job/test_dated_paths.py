"""The date in the path of an output: that of the start, and of the run that is resumed."""

import shutil
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow
from outputs import names

from seqflow.errors import JobError
from seqflow.job import Job, run
from seqflow.job.dated_paths import dated
from seqflow.loader import Stats

TODAY = date.today().isoformat()


def job(folder: Path, path: str) -> Job:
    if not (folder / "a.parquet").exists():
        pq.write_table(pa.table({"x": np.arange(500)}), folder / "a.parquet", row_group_size=50)
    tables: dict[str, Any] = {
        "source": {"paths": "a.parquet"},
        "order": {"window": 512, "threads": 0},
        "batch": {"n": 8},
        "output": {"path": path, "part_bytes": 1024},
    }
    return Job.from_dict(tables, folder)


class Stopped(Exception):
    pass


def stop(job: Job, **options: bool) -> None:
    """Stop a run in the middle."""

    def progress(stats: Stats, total: int | None) -> None:
        if stats.batches == 40:
            raise Stopped

    with pytest.raises(Stopped):
        run(job, progress, **options)


@pytest.mark.parametrize("path", ["out/{date}", "{date}/out/", "out[1]/x-{date}.parquet", "{date}/{date}"])
def test_a_run_of_another_day_is_resumed(tmp_path: Path, path: str) -> None:
    assert str(run(job(tmp_path, path)).files[0]).startswith(str(tmp_path / path.replace("{date}", TODAY)))
    first = path.replace("{date}", "2024-05-31")
    stop(job(tmp_path, first))
    report = run(job(tmp_path, path), resume=True)
    assert (report.outcome, report.rows) == ("resumed", 500)
    assert str(report.files[0]).startswith(str(tmp_path / first))
    assert run(job(tmp_path, path), resume=True).outcome == "complete"  # that of today


def test_the_first_of_several_runs_is_resumed_and_then_the_next(tmp_path: Path) -> None:
    days = ["2024-05-31", "2024-06-01"]
    for day in days:
        stop(job(tmp_path, f"out/{day}"))
    (tmp_path / "out/2024-06-02").mkdir()
    resumed = [run(job(tmp_path, "out/{date}"), resume=True).files[0].parent.name for _ in range(3)]
    assert resumed == [*days, TODAY]
    for day in (TODAY, days[0]):
        shutil.rmtree(tmp_path / "out" / day)
        stop(job(tmp_path, f"out/{day}"))
    assert run(job(tmp_path, "out/{date}"), resume=True).files[0].parent.name == TODAY


def test_the_command_plans_checks_and_runs_with_the_date(tmp_path: Path) -> None:
    job(tmp_path, "out")
    text = '[source]\npaths = "a.parquet"\n[output]\npath = "{date}/out"\n'
    (tmp_path / "job.toml").write_text(text)
    for command in (["check"], ["run", "--dry-run"], ["run", "--quiet"]):
        done = seqflow(*command, "job.toml", folder=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
    assert names(tmp_path / TODAY / "out") == ["_manifest.json", "part-00000.parquet"]
    assert sorted(names(tmp_path)) == [TODAY, "a.parquet", "job.toml"]


def test_another_name_in_brackets_is_an_error(tmp_path: Path) -> None:
    job = Job.from_dict({"source": {"paths": "a.parquet"}, "output": {"path": "out/{day}"}}, tmp_path)
    with pytest.raises(JobError, match=r"\{day\} in .*stands for nothing, expected \{date\}"):
        dated(job)
