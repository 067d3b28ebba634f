"""The command prints names and texts of others with their control characters escaped."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow

NAME = "a\x1b]0;X\x07\u202e\x9b1m"
JOB = """
[source]
paths = "e.parquet"
[net]
net = "y = nope + 1\\nreturn y"
[output]
path = "o"
"""


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A folder with a column, a file and jobs whose names and texts have control characters."""
    pq.write_table(pa.table({NAME: [1]}), tmp_path / "e.parquet")
    pq.write_table(pa.table({"text": ["a b"]}), tmp_path / "t\x1b[31m.parquet")
    (tmp_path / "f\x1b[31m.toml").write_text("x = 1")
    (tmp_path / "j.toml").write_text(JOB)
    (tmp_path / "n.toml").write_text(JOB.replace("nope + 1", "nope \\u001b[31m"))
    return tmp_path


@pytest.mark.parametrize(
    "arguments",
    [
        ("inspect", "e.parquet"),
        ("inspect", "e.parquet", "--json"),
        ("inspect", "no\x1b[31msuch"),
        ("check", "j.toml"),
        ("check", "n.toml"),
        ("check", "j.toml", "--set", "a\x1b[31m.b=1"),
        ("run", "j.toml"),
        ("run", "f\x1b[31m.toml"),
        ("run", "j.toml", "--inp\x1b[31m"),
        ("ops", "no\x1b[31msuch"),
        ("index", "e.parquet", "--lengths", "no\x1b[31msuch"),
        ("build-vocabulary", "e.parquet", "no\x1b[31msuch", "v.arrow"),
        ("train-tokenizer", "t\x1b[31m.parquet", "--vocab-size", "300", "--output", "o\x1b[31m.json"),
        ("train-tokenizer", "t\x1b[31m.parquet", "--vocab-size", "300", "--output", "t\x1b[31m.parquet"),
        ("b\x1b[31mgus",),
    ],
)
def test_control_characters_are_printed_escaped(odd: Path, arguments: tuple[str, ...]) -> None:
    done = seqflow(*arguments, folder=odd)
    printed = done.stdout + done.stderr
    assert printed
    assert all(one.isprintable() for one in printed.replace("\n", ""))
    assert "Traceback" not in printed


def test_a_name_with_a_line_break_stays_in_its_row(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a\nseqflow: all is well": [1]}), tmp_path / "e.parquet")
    lines = seqflow("inspect", "e.parquet", folder=tmp_path).stdout.split("\n")
    assert not any(line.startswith("seqflow:") for line in lines)


def test_a_job_reads_files_whose_names_are_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    for name in (b"\xff.txt", b"b.txt"):
        (tmp_path / "t" / os.fsdecode(name)).write_text("a")
    job = '[source]\npaths = "t"\n[batch]\nkind = "rows"\nn = 1\n[output]\npath = "out"\n'
    (tmp_path / "j.toml").write_text(job + '[bad_rows]\npolicy = "quarantine"\npath = "q.parquet"\n')
    done = seqflow("run", "j.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (bad,) = pq.read_table(tmp_path / "q.parquet")["bad"].to_pylist()
    assert bad["reason"] == "t/\\udcff.txt: the name of the file is not UTF-8"
    done = seqflow("run", "j.toml", "--set", 'source.columns=["bytes"]', "--overwrite", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert pq.read_table(tmp_path / "out").num_rows == 2
