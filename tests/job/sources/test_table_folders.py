"""Jobs over the folder of a table, which its package opens."""

from pathlib import Path

import pyarrow as pa
import pytest
from killed_jobs import write_dying_job, written_though_killed

from seqflow.errors import JobError
from seqflow.job import Job, run

deltalake = pytest.importorskip("deltalake")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for start in range(0, 1000, 50):
        rows = range(start, start + 50)
        table = pa.table({"id": rows, "tokens": [[row] * (row % 5) for row in rows]})
        deltalake.write_deltalake(tmp_path / "table", table, mode="append")
    deltalake.DeltaTable(tmp_path / "table").delete("id < 10")
    write_dying_job(tmp_path, '[source]\npaths = "table"', row="id", lists="tokens", window="4 KiB")
    return tmp_path


@pytest.mark.slow
def test_a_job_that_is_killed_at_five_points_writes_what_an_undisturbed_one_does(folder: Path) -> None:
    assert sorted(written_though_killed(folder)) == list(range(10, 1000))


def test_a_job_writes_into_no_table_that_it_reads(folder: Path) -> None:
    job = {"source": {"paths": "table"}, "output": {"path": "table/out"}}
    with pytest.raises(JobError, match="would be a file of the source"):
        run(Job.from_dict(job, folder))
