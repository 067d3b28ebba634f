"""Whatever links someone has put in the way: what is written is a new file, and nothing else changes."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from outputs import names, record, write

import seqflow as sf
from seqflow.errors import JobError, OpError
from seqflow.job import Job, run
from seqflow.output.durable_files import temporary_path, write_bytes
from seqflow.output.file_writer import FileEncoding, FileWriter
from seqflow.output.lock import Lock
from seqflow.vocabulary import Vocabulary

LINKS = {"symbolic": os.symlink, "hard": os.link}


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "precious"
    path.write_bytes(b"precious " * 9)
    return path


def is_untouched(path: Path) -> bool:
    return path.read_bytes() == b"precious " * 9


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("target", ["out", "one.parquet"])
def test_a_link_in_the_place_of_the_lock_is_refused(precious: Path, target: str, link: str) -> None:
    folder = precious.parent
    (folder / "out").mkdir()
    lock = folder / ("out/.lock" if target == "out" else ".one.parquet.lock")
    LINKS[link](precious, lock)
    with pytest.raises(JobError, match=r"lock' is .*, expected a lock file.*\n  remove it"):
        write(folder / target, [record(0, 5)])
    assert is_untouched(precious)
    assert os.path.lexists(lock)


def _fifo(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("make", "found"),
    [
        (lambda path: path.symlink_to("nowhere"), "a symbolic link"),
        (lambda path: path.symlink_to("/dev/null"), "a symbolic link"),
        (Path.mkdir, "a folder"),
        (_fifo, "not a regular file"),
        (lambda path: path.write_text("notes"), "not a lock file of seqflow"),
        (lambda path: path.write_bytes(bytes(5000)), "not a lock file of seqflow"),
    ],
)
def test_what_is_no_lock_file_is_refused_and_stays(
    tmp_path: Path, make: Callable[[Path], None], found: str
) -> None:
    path = tmp_path / ".one.parquet.lock"
    make(path)
    before = path.lstat()
    with pytest.raises(JobError, match=found):
        Lock(path, tmp_path / "one.parquet").acquire()
    assert path.lstat() == before


@pytest.mark.parametrize("content", ["", "process 77 on a host, since 2026-01-02 03:04:05,"])
def test_what_a_killed_run_has_left_blocks_nobody(tmp_path: Path, content: str) -> None:
    (tmp_path / ".one.parquet.lock").write_text(content)
    write(tmp_path / "one.parquet", [record(0, 5)])
    assert names(tmp_path) == ["one.parquet"]


def test_a_lock_of_a_process_that_is_killed_is_free(tmp_path: Path) -> None:
    program = f"""
import os, signal
from pathlib import Path
from seqflow.output.lock import Lock
Lock(Path({str(tmp_path / ".lock")!r}), Path("out")).acquire()
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program])
    assert done.returncode == -signal.SIGKILL
    assert names(tmp_path) == [".lock"]
    lock = Lock(tmp_path / ".lock", tmp_path)
    lock.acquire()
    lock.release()
    assert names(tmp_path) == []


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_files_under_temporary_names_are_new_ones(precious: Path, link: str, kind: str) -> None:
    path = precious.parent / f"x.{kind}"
    LINKS[link](precious, temporary_path(path))
    writer = FileWriter(path, FileEncoding(kind))  # type: ignore[arg-type]
    writer.write(pa.table({"x": [1, 2]}), 0)
    writer.close()
    writer.rename(path)
    assert sf.open(path).num_rows == 2
    assert is_untouched(precious)


@pytest.mark.parametrize("link", LINKS)
def test_records_vocabularies_and_other_small_files_are_new_ones(precious: Path, link: str) -> None:
    folder = precious.parent
    for name in ("record.json", "words.arrow"):
        LINKS[link](precious, temporary_path(folder / name))
        LINKS[link](precious, folder / name)
    write_bytes(folder / "record.json", b"{}")
    Vocabulary([3, 4]).save(folder / "words.arrow")
    assert Vocabulary.load(folder / "words.arrow") == Vocabulary([3, 4])
    assert (folder / "record.json").read_bytes() == b"{}"
    assert is_untouched(precious)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize(
    "name", ["part-00000.parquet", "_manifest.json", ".progress.json", ".part-00000.parquet.done"]
)
def test_links_under_the_names_of_an_output_lead_nowhere(precious: Path, name: str, link: str) -> None:
    out = precious.parent / "out"
    out.mkdir()
    LINKS[link](precious, out / name)
    if name == "part-00000.parquet":
        with pytest.raises(JobError, match=r"which _manifest\.json does not list"):
            write(out, [record(0, 5)])
    else:
        write(out, [record(0, 5)])
        assert pq.read_table(out / "part-00000.parquet").num_rows == 5
    assert is_untouched(precious)


def test_folders_of_partitions_are_no_links_to_others(tmp_path: Path) -> None:
    table = pa.table({"k": [1, 2], "x": [3, 4]})
    (tmp_path / "out").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out" / "k=1").symlink_to("../elsewhere")
    with pytest.raises(JobError, match=r"k=1' is a symbolic link, expected a folder"):
        write(tmp_path / "out", [sf.from_arrow(table)], partition_by="k")
    assert names(tmp_path / "elsewhere") == []


def test_an_output_folder_that_is_a_link_to_nothing_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").symlink_to("nowhere")
    with pytest.raises(JobError, match="a broken symbolic link"):
        write(tmp_path / "out", [record(0, 5)])


@pytest.mark.parametrize(
    "name",
    [".one.parquet.lock", ".one.parquet.manifest.json", ".one.parquet.tmp-5", ".one.parquet.part-00000.done"],
)
@pytest.mark.parametrize("link", [None, *LINKS])
def test_input_is_never_what_the_output_writes_beside_a_file(
    tmp_path: Path, name: str, link: str | None
) -> None:
    table = pa.table({"x": [1, 2, 3]})
    source = tmp_path / (name if link is None else "in.parquet")
    pq.write_table(table, source)
    if link is not None:
        LINKS[link](source, tmp_path / name)
    sections = {"source": {"paths": str(source), "kind": "parquet"}, "output": {"path": "one.parquet"}}
    with pytest.raises(JobError, match="a file that is read"):
        run(Job.from_dict(sections, tmp_path))
    assert pq.read_table(source).equals(table)


@pytest.mark.parametrize("setting", ["output", "bad_rows", "order"])
@pytest.mark.parametrize("link", [None, *LINKS])
def test_input_is_never_a_file_that_a_job_writes(tmp_path: Path, setting: str, link: str | None) -> None:
    table = pa.table({"x": [[1], [2, 3]]})
    source, target = tmp_path / "in.arrow", tmp_path / ("in.arrow" if link is None else "link.arrow")
    with pa.ipc.new_file(source, table.schema) as writer:
        writer.write_table(table)
    if link is not None:
        LINKS[link](source, target)
    before = source.read_bytes()
    sections = {
        "output": {"output": {"path": str(target)}},
        "bad_rows": {"bad_rows": {"policy": "quarantine", "path": str(target)}},
        "order": {"order": {"index": str(target)}},
    }[setting]
    with pytest.raises((JobError, OpError), match="a file that is read"):
        run(Job.from_dict({"source": {"paths": str(source)}, "output": {"path": "o"}, **sections}, tmp_path))
    assert source.read_bytes() == before


@pytest.mark.parametrize(
    ("bad", "index"),
    [
        ("one.arrow", "i.arrow"),
        ("bad.arrow", "one.arrow"),
        ("bad.arrow", "bad.arrow"),
        ("bad.arrow", ".one.arrow.lock"),
        ("bad.arrow", ".bad.arrow.lock"),
        ("link.arrow", "i.arrow"),
        (".one.arrow.part-00000.arrow", "i.arrow"),
    ],
)
def test_two_outputs_of_a_job_are_never_one_file(tmp_path: Path, bad: str, index: str) -> None:
    pq.write_table(pa.table({"x": [[1], [2, 3]]}), tmp_path / "in.parquet")
    (tmp_path / "link.arrow").symlink_to("one.arrow")
    sections = {
        "source": {"paths": "in.parquet"},
        "order": {"index": index},
        "output": {"path": "one.arrow"},
        "bad_rows": {"policy": "quarantine", "path": bad},
    }
    with pytest.raises(JobError, match="belongs to"):
        run(Job.from_dict(sections, tmp_path))
    assert names(tmp_path) == ["in.parquet", "link.arrow"]
