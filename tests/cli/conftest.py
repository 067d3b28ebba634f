"""A folder with a file of rows and a job that reads it."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

JOB = """
[source]
paths = "docs.parquet"
[batch]
kind = "tokens"
max_tokens = 20
[output]
path = "out"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with docs.parquet, 100 rows of 0 to 9 tokens, and job.toml."""
    tokens = pa.array([list(range(n % 10)) for n in range(100)], pa.list_(pa.int32()))
    pq.write_table(pa.table({"tokens": tokens}), tmp_path / "docs.parquet")
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path
