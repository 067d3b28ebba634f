"""Job files with values that nobody means are errors of ours."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seqflow.errors import SeqflowError
from seqflow.job import Job, run
from seqflow.job.checking import check
from seqflow.loader import Loader
from seqflow.output import open_output


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"x": [[1, 2], [3]]}), tmp_path / "x.parquet")
    (tmp_path / "x.txt").write_text("x")
    np.save(tmp_path / "t.npy", np.arange(3))
    return tmp_path


@pytest.mark.parametrize("text", [
    '[source]\npaths = "x.parquet"\n[batch]\nkind = [1]',
    '[source]\npaths = "x.parquet"\n[batch]\nkind = {a = 1}',
    '[source]\npaths = "x\\u0000.parquet"',
    '[source]\npaths = "x.parquet"\n[output]\npath = "o\\u0000"',
    '[source]\npaths = "x.parquet"\n[constants]\nt = "t\\u0000"',
    '[source]\npaths = "x.txt"\n[source.text]\nencoding = "utf\\u0000-8"',
    '[source]\npaths = "x.txt"\n[source.text]\nencoding = "rot13"',
    '[source]\npaths = "x.txt"\nexclude = ["[z-a]"]',
    '[source]\npaths = "x.parquet"\n[output]\npath = "o"\nthreads = 100000000',
    '[source]\npaths = "x.parquet"\n[order]\nwindow = "' + "9" * 400 + ' GiB"',
    '[source]\npaths = "x.parquet"\n[batch]\nn = ' + "9" * 5000,
    "x = " + "[" * 5000,
    '[source]\npaths = "x.parquet"\n[net]\nfile = "latin.net"',
    '[source]\npaths = "x.parquet"\n[net]\nnet = "y = gather(t, x.lengths)"\n[constants]\nt = "bad.npy"',
])  # fmt: skip
def test_a_hostile_job_is_an_error_of_ours(folder: Path, text: str) -> None:
    (folder / "latin.net").write_bytes(b"return x\xff")
    (folder / "bad.npy").write_bytes((folder / "t.npy").read_bytes().replace(b"}", b"("))
    (folder / "job.toml").write_text(text)
    with pytest.raises(SeqflowError):
        run(Job.read(folder / "job.toml"))


def test_a_job_is_checked_whatever_its_columns_are_called(folder: Path) -> None:
    names = ["näme x", "9", "*", "sum(x)", "a`b", "\n", "return", "²"]
    pq.write_table(pa.table({name: [[1], [2, 3]] for name in names}), folder / "odd.parquet")
    for name in names:
        job = {
            "source": {"paths": ["odd.parquet"], "columns": [name]},
            "batch": {"kind": "tokens", "max_tokens": 9},
        }
        try:
            assert name in str(check(Job.from_dict(job, folder))) or "`" in name
        except SeqflowError:
            continue


@pytest.mark.parametrize("threads", [0, -1, 10**8])
def test_threads_are_bounded(tmp_path: Path, threads: int) -> None:
    with pytest.raises(SeqflowError, match="expected 1 to 256"):
        open_output(tmp_path / "o", threads=threads)


@pytest.mark.parametrize("threads", [-1, 257, 10**8])
def test_threads_that_read_are_bounded(folder: Path, threads: int) -> None:
    with pytest.raises(SeqflowError, match=r"threads is .*, expected an integer, 0 to 256"):
        Job.from_dict({"source": {"paths": ["x.parquet"]}, "order": {"threads": threads}}, folder)
    with pytest.raises(SeqflowError, match=r"Prefetch: threads is .*, expected an integer, 0 to 256"):
        Loader(folder / "x.parquet", threads=threads)


def test_a_pipe_that_is_named_as_the_input_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "pipe.parquet")
    with pytest.raises(SeqflowError, match="is a pipe"):
        run(Job.from_dict({"source": {"paths": ["pipe.parquet"]}, "output": {"kind": "none"}}, folder))
    job = {"source": {"paths": ["*.parquet"]}, "output": {"kind": "none"}}
    assert run(Job.from_dict(job, folder)).rows == 2
