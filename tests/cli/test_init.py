"""`seqflow init`: the job that it writes runs as it stands."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"name": ["a", "b"], "ids": [[1, 2], [3]]}, ["tokens", "ids"]),
        ({"text": ["one", "two"], "n": [1, 2]}, ["tokens"]),
        ({"other": ["one", None], "text": ["x", "y"]}, ["tokens"]),
        ({"n": [1, 2], "x": [0.5, 1.5]}, ["n"]),
    ],
)
def test_the_job_runs_as_it_stands(tmp_path, columns, found):
    (tmp_path / "my data").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "my data" / 'a "b".parquet')
    done = seqflow("init", "my data", "-o", "jobs.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for command in (("check", "jobs.toml"), ("run", "jobs.toml", "--dry-run"), ("run", "jobs.toml")):
        done = seqflow(*command, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    table = pq.read_table(tmp_path / "out")
    assert any(name in table.column_names for name in found)
    assert table.num_rows > 0


def test_text_files_are_packed_as_bytes(tmp_path):
    (tmp_path / "one.txt").write_text("hello")
    assert seqflow("init", "*.txt", folder=tmp_path).returncode == 0
    assert seqflow("run", "job.toml", folder=tmp_path).returncode == 0
    (row,) = pq.read_table(tmp_path / "out")["tokens"].to_pylist()
    assert row[:6] == [*b"hello", 256]


def test_a_file_that_is_there_is_kept(tmp_path):
    (tmp_path / "one.txt").write_text("hello")
    (tmp_path / "job.toml").write_text("mine")
    done = seqflow("init", "one.txt", folder=tmp_path)
    assert done.returncode == 2
    assert "job.toml exists already" in done.stderr
    assert (tmp_path / "job.toml").read_text() == "mine"


def test_files_that_are_missing_are_an_error(tmp_path):
    done = seqflow("init", "none.parquet", folder=tmp_path)
    assert done.returncode in (1, 2)
    assert "none.parquet" in done.stderr
    assert not (tmp_path / "job.toml").exists()
