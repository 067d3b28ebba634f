"""Files for mixes to read."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture(scope="package")
def paths(tmp_path_factory):
    """Files of 300, 200 and 50 rows; the ids of a file begin at 1,000 times its number."""
    folder = tmp_path_factory.mktemp("mix")
    found = []
    for number, rows in enumerate((300, 200, 50)):
        ids = np.arange(rows) + 1000 * number + 1
        lists = pa.array([[int(n)] * (int(n) % 7 + 1) for n in ids], pa.list_(pa.int32()))
        found.append(folder / f"{number}.parquet")
        pq.write_table(pa.table({"id": ids, "tokens": lists}), found[-1], row_group_size=20)
    return found
