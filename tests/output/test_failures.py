"""What fails or is interrupted leaves nothing behind."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from outputs import names, record, write

from seqflow.errors import JobError
from seqflow.output import open_output
from seqflow.record import Record


class Interrupted(BaseException):
    pass


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Interrupted])
def test_an_exception_leaves_nothing_behind_not_even_folders(
    tmp_path: Path, error: type[BaseException]
) -> None:
    def fail() -> None:
        with open_output(tmp_path / "a" / "b", threads=2) as output:
            output.write(record(0, 12_000_000))
            raise error

    with pytest.raises(error):
        fail()
    assert names(tmp_path) == []


def test_an_exception_leaves_the_earlier_output_as_it_was(tmp_path: Path) -> None:
    write(tmp_path / "out", [record(0, 5)])
    before = (tmp_path / "out" / "part-00000.parquet").read_bytes()
    with pytest.raises(JobError):
        write(tmp_path / "out", [record(0, 6_000_000), Record({"y": np.zeros(1)}, {"y": None}, 1, None)])
    assert names(tmp_path / "out") == ["_manifest.json", "part-00000.parquet"]
    assert (tmp_path / "out" / "part-00000.parquet").read_bytes() == before


def test_nothing_has_its_final_name_before_the_end(tmp_path: Path) -> None:
    with open_output(tmp_path) as output:
        output.write(record(0, 12_000_000))
        assert all(name.startswith(".") for name in names(tmp_path))
        output.finish()
    assert names(tmp_path) == ["_manifest.json", "part-00000.parquet"]


@pytest.mark.slow
def test_a_full_disk_is_an_os_error_that_names_the_file(tmp_path: Path) -> None:
    program = """
import resource, signal, sys
import numpy as np
from seqflow.output import open_output
from seqflow.record import Record
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
noise = np.random.default_rng(0).random(4_000_000)
try:
    with open_output(sys.argv[1]) as output:
        for _ in range(8):
            output.write(Record({"x": noise}, {"x": None}, len(noise), None))
        output.finish()
except OSError as error:
    print(error)
"""
    path = tmp_path / "out" / "x.parquet"
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert f"cannot write {str(path)!r}" in done.stdout
    assert "File too large" in done.stdout
    assert names(tmp_path) == []
