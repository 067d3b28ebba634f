"""Files of lines are read in memory that does not grow with the file."""

import gzip
import subprocess
import sys

import pytest

READ = """
import resource, sys
import seqflow as sf
provider = sf.open(sys.argv[1])
blocks = list(provider.blocks())
provider.read(blocks[0])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = sum(provider.read(block).num_rows for block in blocks)
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss is that of Linux")
@pytest.mark.parametrize("suffix", ["jsonl", "csv", "jsonl.gz"])
def test_a_file_of_200_mb_is_read_in_less_than_100_mb(tmp_path, suffix):
    path, size = tmp_path / f"x.{suffix}", 20_000
    text = "x" * 100
    line = f"1,{text}\n" if suffix == "csv" else f'{{"id": 1, "text": "{text}"}}\n'
    with gzip.open(path, "wt", 1) if suffix.endswith("gz") else path.open("w") as file:
        file.write("id,text\n" if suffix == "csv" else "")
        for _ in range(95):
            file.write(line * size)
    ran = subprocess.run([sys.executable, "-c", READ, path], check=True, capture_output=True, text=True)
    rows, kib = map(int, ran.stdout.split())
    assert rows == 95 * size
    assert kib < 100 << 10
