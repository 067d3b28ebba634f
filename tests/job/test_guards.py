"""Bounds of a job: so many bad rows at most, so many rows at least; inputs without rows are named."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from outputs import names

from seqflow.errors import JobError, ProviderError
from seqflow.job import Job, run
from seqflow.job.earlier_run import describe
from seqflow.job.opening import open_batches


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with 1,000 rows, of which every 50th has a null."""
    numbers = pa.array([None if i % 50 == 7 else i for i in range(1000)], pa.int64())
    pq.write_table(pa.table({"x": numbers}), tmp_path / "a.parquet", row_group_size=50)
    return tmp_path


def job(folder: Path, bad_rows: dict[str, Any], **others: dict[str, Any]) -> Job:
    tables: dict[str, Any] = {
        "source": {"paths": "*.parquet"},
        "order": {"window": 512, "threads": 0},
        "batch": {"n": 8},
        "bad_rows": {"policy": "skip", **bad_rows},
        **others,
        "output": {"path": "out", "part_bytes": 1024, **others.get("output", {})},
    }
    return Job.from_dict(tables, folder)


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("engine", [{}, {"workers": 1}])
@pytest.mark.parametrize("bound", [{"max": 9}, {"max_share": 0.015}])
def test_a_run_stops_after_a_part_and_goes_on_with_a_higher_bound(
    folder: Path, bound: dict[str, Any], engine: dict[str, Any]
) -> None:
    with pytest.raises(ProviderError) as caught:
        run(job(folder, bound, engine=engine))
    expected = "9 (max)" if "max" in bound else "0.015 of them (max_share)"
    found = str(caught.value)
    assert "are bad, expected at most " + expected in found
    assert "x: null value" in found
    assert f"the first: {folder}/a.parquet, block 0, row 7, column 'x'" in found
    assert f"--set bad_rows.{next(iter(bound))}=…" in found
    assert caught.value.__notes__ == ["what is finished is kept: --resume goes on after it"]
    assert not (folder / "out/_manifest.json").exists()
    with pytest.raises(ProviderError, match="expected at most"):  # at once
        run(job(folder, bound, engine=engine), resume=True)
    report = run(job(folder, {"max": 20, "max_share": 0.02}, engine=engine), resume=True)
    assert (report.outcome, report.rows, report.bad_rows) == ("resumed", 980, 20)
    assert dict(report.reasons) == {"x: null value in x": 20}
    done = {path.name: path.read_bytes() for path in (folder / "out").glob("*.parquet")}
    run(job(folder, {}), overwrite=True)
    assert {path.name: path.read_bytes() for path in (folder / "out").glob("*.parquet")} == done


def test_the_bounds_of_an_append_are_those_of_its_files(folder: Path) -> None:
    run(job(folder, {"max": 20}))
    pq.write_table(pq.read_table(folder / "a.parquet").slice(0, 500), folder / "b.parquet", row_group_size=50)
    with pytest.raises(ProviderError, match=r"bad, expected at most 9 "):
        run(job(folder, {"max": 9}), append=True)
    report = run(job(folder, {"max": 10}), append=True, resume=True)
    assert (report.bad_rows, report.rows) == (30, 1470)


def test_bounds_are_no_part_of_the_identity(folder: Path) -> None:
    one, other = job(folder, {}), job(folder, {"max": 3, "max_share": 0.5}, output={"min_rows": 4})
    assert describe(one, open_batches(one)) == describe(other, open_batches(other))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": "raise", "max": 3}, "max is given, expected policy 'skip'"),
        ({"max": -1}, "max is -1, expected 0 or more"),
        ({"max_share": 1.5}, "max_share is 1.5, expected 0 to 1"),
        ({"max": "3"}, "max is '3', expected an integer"),
    ],
)
def test_bounds_that_mean_nothing_are_refused(folder: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(JobError, match=message):
        job(folder, settings)


def test_an_output_of_too_few_rows_is_not_completed(folder: Path) -> None:
    nothing = {"source": {"paths": "*.parquet", "where": "x < 0"}}
    with pytest.raises(JobError, match=r"0 rows were made, expected at least 1 \(min_rows\)"):
        run(job(folder, {}, output={"min_rows": 1}, **nothing))
    assert names(folder) == ["a.parquet"]
    with pytest.raises(JobError, match=r"980 rows were made, expected at least 981"):
        run(job(folder, {}, output={"min_rows": 981}))
    assert run(job(folder, {}, output={"min_rows": 980}), resume=True).rows == 980
    with pytest.raises(JobError, match="min_rows is -1, expected an integer, 0 or more"):
        job(folder, {}, output={"min_rows": -1})


def test_inputs_without_rows_are_named(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    pq.write_table(pa.table({"x": np.arange(0)}), folder / "b.parquet")
    with caplog.at_level(logging.WARNING, "seqflow"):
        run(job(folder, {}))
    assert [record.message for record in caplog.records] == [f"without rows: {folder}/b.parquet"]
