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


PARSE = """
import resource, sys
import numpy as np, pyarrow as pa
from seqflow.providers.lines.csv_lines import CsvLines
from seqflow.providers.lines.json_lines import JsonLineFormat
kind, before, part, after = [one.encode().decode("unicode_escape").encode() for one in sys.argv[1:]]
data = np.frombuffer(before + part * ((4 << 20) // len(part)) + after, np.uint8)
names = [f"c{at}" for at in range(200)]
fields = [(name, pa.string() if name == "c0" else pa.list_(pa.int64()) if at % 2 else pa.int64()) for at, name in enumerate(names)]
schema = pa.schema(fields)
csv = CsvLines(schema, tuple(names), ",", ";", True)
parser = csv if kind == b"csv" else JsonLineFormat(schema, "error")
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows, malformed = parser.parse(data)
print(rows.num_rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the unit of ru_maxrss is that of Linux")
@pytest.mark.parametrize(
    ("kind", "before", "part", "after"),
    [
        ("jsonl", r'{"c0":"a"}\n{"c0":"', ",", r'"}\n'),
        ("jsonl", r'{"c0":"a"}\n', r"\n \r\n", r'{"c0":"a"}\n'),
        ("csv", f"a{',' * 199}" + r'\n"', ";", f'"{"," * 199}' + r"\n"),
        ("csv", f"a{',' * 199}" + r"\n", r"\n\r\n", f"a{',' * 199}" + r"\n"),
    ],
)
def test_blank_lines_and_separators_in_texts_take_no_memory_for_each_column(kind, before, part, after):
    command = [sys.executable, "-c", PARSE, kind, before, part, after]
    rows, kib = map(int, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())
    assert rows == 2
    assert kib < 150 << 10


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
