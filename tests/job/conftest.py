"""A folder with a file of rows for jobs to read."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with docs.parquet: 10 rows of tokens."""
    tokens = [list(range(n)) for n in (3, 0, 5, 1, 4, 2, 0, 6, 2, 2)]
    table = pa.table({"tokens": pa.array(tokens, pa.list_(pa.int32())), "label": np.arange(10)})
    pq.write_table(table, tmp_path / "docs.parquet", row_group_size=4)
    return tmp_path
