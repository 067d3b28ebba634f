"""What was committed is verified before it counts: a part that is gone or changed is named, and nothing is made of it."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import JobError
from seqflow.job import Job, run
from seqflow.output.local_target import LocalTarget

ROWS = 120


class Killed(BaseException):
    """Ends a run where a process would be killed."""


def _flip(path: Path, other: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _cut(path: Path, other: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def _swap(path: Path, other: Path) -> None:
    between = path.with_name("between")
    path.rename(between)
    other.rename(path)
    between.rename(other)


def _link(path: Path, other: Path) -> None:
    path.unlink()
    path.symlink_to(other)


def _pipe(path: Path, other: Path) -> None:
    path.unlink()
    os.mkfifo(path)


DAMAGES: dict[str, Callable[[Path, Path], Any]] = {
    "removed": lambda path, other: path.unlink(),
    "emptied": lambda path, other: path.write_bytes(b""),
    "cut": _cut,
    "one bit": _flip,
    "copied over": lambda path, other: shutil.copy(other, path),
    "swapped": _swap,
    "a link": _link,
    "a pipe": _pipe,
}
OUTPUTS: dict[str, dict[str, Any]] = {
    "parquet": {"path": "o/out"},
    "arrow": {"path": "o/out", "kind": "arrow"},
    "threads": {"path": "o/out", "threads": 2, "row_group_bytes": 80},
    "one file": {"path": "o/out.parquet"},
    "sorted": {"path": "o/out", "sort_by": "-x"},
    "partitioned": {"path": "o/out", "partition_by": "k"},
    "one sorted file": {"path": "o/out.arrow", "sort_by": "-x"},
}


def job_of(folder: Path, output: str) -> Job:
    sections = {
        "source": {"paths": "in.parquet"},
        "order": {"window": "200 B"},
        "batch": {"kind": "rows", "n": 10},
        "output": {"part_bytes": 200, **OUTPUTS[output]},
        "bad_rows": {"policy": "quarantine", "path": "bad.parquet"},
    }
    return Job.from_dict(sections, folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lists = [[i] if i % 17 else [None] for i in range(ROWS)]
    columns = {"x": range(ROWS), "k": [i % 3 for i in range(ROWS)], "y": pa.array(lists)}
    pq.write_table(pa.table(columns), tmp_path / "in.parquet", row_group_size=10)
    (tmp_path / "o").mkdir()
    return tmp_path


def content(folder: Path) -> dict[str, bytes]:
    """All that is there but the input."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "in.parquet"
    }


def expected(folder: Path, output: str) -> dict[str, bytes]:
    """What an undisturbed run leaves; it is removed again."""
    run(job_of(folder, output))
    found = content(folder)
    shutil.rmtree(folder / "o")
    (folder / "o").mkdir()
    (folder / "bad.parquet").unlink()
    return found


def die(job: Job, where: str, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a job up to call number `at` of a method of its target."""
    method, calls = getattr(LocalTarget, where), [0]

    def call(self: LocalTarget, *arguments: Any) -> Any:
        done = method(self, *arguments)
        calls[0] += 1
        if calls[0] == at:
            raise Killed
        return done

    with monkeypatch.context() as patch:
        patch.setattr("seqflow.output.writer.SECONDS_BETWEEN_NOTES", 0.0)
        patch.setattr(LocalTarget, where, call)
        with pytest.raises(Killed):
            run(job)


def hidden(folder: Path) -> list[Path]:
    return sorted(folder.rglob(".*.done"))


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("damage", DAMAGES)
def test_resuming_names_damaged_parts(
    folder: Path, output: str, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    want, job = expected(folder, output), job_of(folder, output)
    die(job, "append_progress", 2, monkeypatch)
    pieces = [path for path in hidden(folder) if path.name.startswith(".bad")]
    parts = [path for path in hidden(folder) if path not in pieces]
    DAMAGES[damage](parts[1], parts[0])
    name = re.escape(parts[1].name.removeprefix(".").removesuffix(".done"))
    with pytest.raises(JobError, match=rf"gone, or not as this job .*{name}.*\n  --overwrite begins again"):
        run(job, resume=True)
    assert run(job, overwrite=True).outcome == "new"
    assert content(folder) == want


@pytest.mark.parametrize("damage", ["removed", "cut", "swapped"])
def test_resuming_names_damaged_pieces_of_the_quarantine(
    folder: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    want, job = expected(folder, "parquet"), job_of(folder, "parquet")
    die(job, "append_progress", 2, monkeypatch)
    pieces = [path for path in hidden(folder) if path.name.startswith(".bad")]
    DAMAGES[damage](pieces[1], pieces[0])
    with pytest.raises(JobError, match=r"files of '.*bad\.parquet' are gone, or not .*part-00001"):
        run(job, resume=True)
    assert run(job, overwrite=True).outcome == "new"
    assert content(folder) == want


@pytest.mark.slow
@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize(
    ("where", "output", "damage"),
    [
        (where, output, damage)
        for where in ("give_names", "remove_parts", "sync")
        for output in OUTPUTS
        for damage in ("swapped", "cut", "removed")
        if not (where == "sync" and damage == "swapped")  # one part is there
        if "file" not in output or where == "sync" or (where == "remove_parts" and damage != "swapped")
    ],
)
def test_a_run_that_ended_among_its_last_steps_is_verified_too(
    folder: Path, where: str, output: str, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    want, job = expected(folder, output), job_of(folder, output)
    die(job, where, 1, monkeypatch)
    parts = [path for path in hidden(folder) if not path.name.startswith(".bad")]
    parts = parts or sorted(
        path for path in (folder / "o").rglob("*") if path.suffix in (".parquet", ".arrow")
    )
    DAMAGES[damage](parts[-1], parts[0])
    if where == "sync":  # no part is noted yet, so none counts
        run(job, resume=True)
    else:
        with pytest.raises(JobError, match="gone, or not as this job has written them"):
            run(job, resume=True)
        run(job, overwrite=True)
    assert content(folder) == want


@pytest.mark.slow
@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize("output", ["parquet", "arrow", "threads", "sorted", "partitioned"])
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("resume", [False, True])
def test_a_damaged_part_of_a_complete_output_is_named(
    folder: Path, output: str, damage: str, resume: bool
) -> None:
    job = job_of(folder, output)
    files = run(job).files
    want = content(folder)
    DAMAGES[damage](files[1], files[0])
    damaged = files[1].name
    with pytest.raises(
        JobError, match=rf"gone, or not as this job has written them: .*{damaged}.*\n  --overwrite begins"
    ):
        run(job, resume=resume)
    run(job, overwrite=True)
    assert content(folder) == want
    assert run(job).outcome == "complete"


def test_a_bit_in_the_middle_of_a_part_is_noticed(tmp_path: Path) -> None:
    """Far from both ends, which are all that is read of large outputs."""
    noise = np.random.default_rng(0).integers(0, 2**62, 50_000)
    pq.write_table(pa.table({"x": noise}), tmp_path / "in.parquet", use_dictionary=False)
    job = Job.from_dict({"source": {"paths": "in.parquet"}, "output": {"path": "out"}}, tmp_path)
    (part,) = run(job).files
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    with pytest.raises(JobError, match="not as this job has written them"):
        run(job)


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("how", [(), ("resume",), ("overwrite",)])
@pytest.mark.parametrize("output", ["parquet", "partitioned", "one file"])
def test_a_folder_in_the_place_of_a_file_is_named_before_anything_is_changed(
    folder: Path, output: str, how: tuple[str, ...]
) -> None:
    run(job_of(folder, output))
    names = [path for path in (folder / "o").rglob("*") if path.is_file() and path.name != "out.parquet"]
    before = content(folder)
    for path in names:
        kept = path.read_bytes()
        path.unlink()
        path.mkdir()
        with pytest.raises(JobError, match=f"{path.name}' is a folder, expected a file"):
            run(job_of(folder, output), **dict.fromkeys(how, True))
        path.rmdir()
        path.write_bytes(kept)
        assert content(folder) == before


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("damage", ["emptied", "cut", "one bit"])
@pytest.mark.parametrize("resume", [False, True])
def test_a_single_file_that_was_changed_is_not_taken_for_ours(
    folder: Path, damage: str, resume: bool
) -> None:
    job = job_of(folder, "one file")
    [file] = run(job).files
    want = content(folder)
    DAMAGES[damage](file, file)
    with pytest.raises(JobError, match=r"out\.parquet'.*\n  --overwrite .*; or choose another output"):
        run(job, resume=resume)
    run(job, overwrite=True)
    assert content(folder) == want


def test_the_manifest_of_another_output_counts_for_nothing(folder: Path) -> None:
    job, other = job_of(folder, "parquet"), job_of(folder, "arrow")
    run(job)
    manifest = (folder / "o/out/_manifest.json").read_bytes()
    run(other, overwrite=True)
    (folder / "o/out/_manifest.json").write_bytes(manifest)
    with pytest.raises(JobError):
        run(job)
    assert sf.open(folder / "o/out/part-00000.arrow").num_rows


NASTY = (None, -1, 2**70, "", "../x", [], {}, [[]], [{}], 1.5, True)


def _mutations(record: Any) -> Iterator[Any]:
    """Yield the record with each of its values replaced by others, one at a time."""
    for key in record if isinstance(record, dict) else range(min(len(record), 2)):
        for value in NASTY:
            yield (
                {**record, key: value}
                if isinstance(record, dict)
                else [*record[:key], value, *record[key + 1 :]]
            )
        if isinstance(record[key], dict | list):
            for inner in _mutations(record[key]):
                yield (
                    {**record, key: inner}
                    if isinstance(record, dict)
                    else [*record[:key], inner, *record[key + 1 :]]
                )


def _small_job(folder: Path) -> Job:
    (folder / "in").mkdir(exist_ok=True)
    pq.write_table(pa.table({"id": range(60)}), folder / "in" / "a.parquet", row_group_size=10)
    (folder / "in" / "b.parquet").write_bytes(b"PAR1 rubbish")
    settings = {
        "source": {"paths": "in"},
        "require": "id % 10 != 3",
        "order": {"window": 20, "threads": 0},
        "batch": {"n": 7},
        "output": {"path": "out", "part_bytes": 100},
        "bad_rows": {"policy": "quarantine", "path": "bad.parquet"},
        "bad_files": {"policy": "skip"},
    }
    return Job.from_dict(settings, folder)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["append_progress", "install", "complete"])
def test_a_record_that_was_changed_is_refused_or_does_no_harm(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "made").mkdir()
    job = _small_job(tmp_path / "made")
    with monkeypatch.context() as patched:
        if step != "complete":
            patched.setattr("seqflow.output.writer.SECONDS_BETWEEN_NOTES", 0)
            patched.setattr(LocalTarget, step, lambda *given: _end())
        with suppress(Killed):
            run(job)
    name = "_manifest.json" if step == "complete" else ".progress.json"
    first, *lines = (tmp_path / "made" / "out" / name).read_text().splitlines()
    whole = json.loads((tmp_path / "made" / "out" / name).read_text() if step == "complete" else first)
    mutations = [*_mutations(whole)]
    for number in range(0, len(mutations), max(1, len(mutations) // 50)):
        shutil.rmtree(tmp_path / "work", ignore_errors=True)
        shutil.copytree(tmp_path / "made", tmp_path / "work")
        text = "\n".join([json.dumps(mutations[number]), *([] if step == "complete" else lines), ""])
        (tmp_path / "work" / "out" / name).write_text(text)
        with suppress(sf.SeqflowError):
            run(_small_job(tmp_path / "work"), resume=True)


def _end() -> None:
    raise Killed


@pytest.mark.parametrize("cut", [1, 30])
@pytest.mark.parametrize("key", ["bad_rows_file", "joined", "update"])
def test_a_torn_note_is_cut_off_and_the_run_goes_on(
    tmp_path: Path, key: str, cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from seqflow.output import progress_file

    append = progress_file.append_bytes

    def torn(path: Path, content: bytes) -> None:
        if f'"{key}": {{"'.encode() in content or (key == "update" and b"loader" in content):
            append(path, content[:-cut])
            monkeypatch.setattr(progress_file, "append_bytes", append)
            raise Killed
        append(path, content)

    def job() -> Job:
        made = _small_job(tmp_path)
        path = str(tmp_path / ("out.parquet" if key == "joined" else "out"))
        return replace(made, output=replace(made.output, path=path))

    monkeypatch.setattr("seqflow.output.writer.SECONDS_BETWEEN_NOTES", 0)
    monkeypatch.setattr(progress_file, "append_bytes", torn)
    with pytest.raises(Killed):
        run(job())
    assert [run(job(), resume=True).outcome for _ in range(2)] == ["resumed", "complete"]
    found = pq.read_table(tmp_path / ("out.parquet" if key == "joined" else "out"))["id"].to_pylist()
    assert found == [row for row in range(60) if row % 10 != 3]
    assert pq.read_table(tmp_path / "bad.parquet")["id"].to_pylist() == [3, 13, 23, 33, 43, 53]
