"""Loaders keep to their memory bounds, whatever the size of the data. A process of its own says what it needed at most.

Only with SEQFLOW_TESTS=thorough: the data are gigabytes.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from marks import THOROUGH

pytestmark = [
    pytest.mark.skipif(not THOROUGH, reason="takes minutes and 1 GB of disk"),
    pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux says what a process has"),
]

EPOCHS = """
import sys
import seqflow as sf

def megabytes(what):
    lines = open("/proc/self/status").read().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith(what + ":"))

loader = sf.Loader(sys.argv[1], **eval(sys.argv[2]))
for epoch in range(int(sys.argv[3])):
    for batch in loader:
        pass
    print(loader.stats().tokens, megabytes("VmHWM"), megabytes("VmRSS"))
"""


def epochs(path, options, count):
    """Of each epoch the tokens, the most megabytes so far, with mapped files, and those at its end."""
    done = subprocess.run(
        [sys.executable, "-c", EPOCHS, path, options, str(count)], capture_output=True, text=True, check=True
    )
    return [tuple(map(int, line.split())) for line in done.stdout.splitlines()]


def write(path, rows, row_group_size, groups=1):
    """Lists of 128 numbers that no encoding makes smaller."""
    rng = np.random.default_rng(0)
    offsets = np.arange(rows + 1, dtype=np.int32) * 128
    schema = pa.schema({"tokens": pa.list_(pa.int32())})
    with pq.ParquetWriter(path, schema, use_dictionary=False, compression="none") as writer:
        for _ in range(groups):
            values = rng.integers(0, 2**31 - 1, offsets[-1], np.int32)
            table = pa.table([pa.ListArray.from_arrays(offsets, values)], schema=schema)
            writer.write_table(table, row_group_size=row_group_size)


@pytest.fixture(scope="module")
def ten_gigabytes(tmp_path_factory):
    """A file of half a gigabyte, in row groups of 8 MB, under twenty names."""
    folder = tmp_path_factory.mktemp("ten_gigabytes")
    write(folder / "0.parquet", 1 << 17, 1 << 14, groups=8)
    for number in range(1, 20):
        os.link(folder / "0.parquet", folder / f"{number}.parquet")
    assert sum(path.stat().st_size for path in folder.iterdir()) > 10e9
    yield folder
    for path in folder.iterdir():
        path.unlink()


@pytest.fixture(scope="module")
def large_group(tmp_path_factory):
    """A file of one row group of 205 MB."""
    path = tmp_path_factory.mktemp("large_group") / "x.parquet"
    write(path, 400_000, 400_000)
    assert pq.read_metadata(path).row_group(0).total_byte_size > 204e6
    yield path
    path.unlink()


@pytest.mark.parametrize(
    "options",
    [
        "dict(batch=256)",
        "dict(batch=256, shuffle=True, pad={'tokens': 0})",
        "dict(batch=sf.TokenBudget(65_536), shuffle=True, window='500 MB')",
    ],
)
def test_ten_gigabytes_are_read_in_a_gigabyte_and_a_half(ten_gigabytes, options):
    [(tokens, peak, _)] = epochs(ten_gigabytes, options.replace("(", "(memory='1 GB', ", 1), 1)
    assert tokens == 128 * 20 << 20
    assert peak < 1500


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("batch", ["256", "sf.TokenBudget(65_536)", "sf.Packed(2048)"])
def test_a_large_row_group_is_read_in_little_memory(large_group, batch, threads):
    found = epochs(large_group, f"dict(memory='64 MiB', batch={batch}, threads={threads})", 2)
    assert [tokens for tokens, _, _ in found] == [128 * 400_000] * 2
    assert found[-1][1] < 400


@pytest.mark.parametrize("shuffle", [False, True])
def test_memory_does_not_grow_over_epochs(large_group, tmp_path, shuffle):
    write(tmp_path / "x.parquet", 1 << 17, 1 << 12)
    found = epochs(tmp_path, f"dict(window='8 MiB', batch=256, shuffle={shuffle}, pad={{'tokens': 0}})", 4)
    assert found[-1][1] <= found[0][1] + 32
