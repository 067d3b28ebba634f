"""An output that gets the rows of new files: earlier parts stay, and a killed append goes on."""

import gzip
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow
from killed_jobs import start, write_slow_job
from marks import THOROUGH, thorough
from outputs import names

from seqflow.errors import JobError, ProviderError
from seqflow.job import Job, run
from seqflow.job.row_traces import trace_row
from seqflow.loader import Stats
from seqflow.loader.order import identity

LAYOUTS = {"plain": "", "partitioned": 'partition_by = "window"', "threads": "threads = 2"}


@pytest.fixture(params=LAYOUTS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with the complete output of docs0.parquet, and docs1.parquet, which is not in it."""
    write_slow_job(
        tmp_path, "o/out", part_bytes='"16 KiB"', bad_rows="bad.parquet", arranged=LAYOUTS[request.param],
        files=2, rows=600,
    )  # fmt: skip
    (tmp_path / "docs1.parquet").rename(tmp_path / "later")
    assert seqflow("run", "job.toml", "--quiet", folder=tmp_path).stderr == ""
    (tmp_path / "later").rename(tmp_path / "docs1.parquet")
    return tmp_path


def append(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return seqflow("run", "job.toml", "--quiet", "--append", *arguments, folder=folder, **environment)


def files(folder: Path) -> dict[str, bytes]:
    """Everything that a run leaves."""
    found = [
        *folder.glob("bad*"),
        *folder.glob(".bad*"),
        *(p for p in (folder / "o").rglob("*") if p.is_file()),
    ]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def times(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in (folder / "o").rglob("*.parquet")}


def restored(folder: Path, saved: Path) -> None:
    """Bring back the folder as it was saved, with the times of its files."""
    for name in ("o", "bad.parquet"):
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        (shutil.copytree if (saved / name).is_dir() else shutil.copy2)(saved / name, path)
    for hidden in folder.glob(".bad*"):
        hidden.unlink()


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["plain", "partitioned", *thorough("threads")], indirect=True)
def test_an_append_killed_before_any_renaming_or_removal_goes_on(folder: Path) -> None:
    saved = folder.parent / f"{folder.name}-saved"
    shutil.copytree(folder, saved)
    before, written = files(folder), times(folder)
    assert append(folder).stderr == ""
    expected = files(folder)
    parts = [name for name in before if name.endswith(".parquet") and name.startswith("o")]
    assert {name: expected[name] for name in parts} == {name: before[name] for name in parts}
    assert len(expected) > len(before) + 1
    for moment in range(0, 1000, 1 if THOROUGH else 13):
        restored(folder, saved)
        killed = append(folder, KILL_AT=str(moment))
        if killed.returncode == 0:
            break
        assert killed.returncode == -signal.SIGKILL
        done = append(folder, "--resume")
        assert done.returncode == 0, done.stderr
        assert files(folder) == expected, moment
        found = times(folder)
        assert {name: found[name] for name in written} == written, moment
    assert moment > 12


@pytest.mark.slow
@pytest.mark.parametrize("folder", [*thorough("plain"), "partitioned"], indirect=True)
def test_workers_append_the_same_bytes(folder: Path) -> None:
    saved = folder.parent / f"{folder.name}-saved"
    shutil.copytree(folder, saved)
    assert append(folder).stderr == ""
    expected = files(folder)
    restored(folder, saved)
    process = start(folder, "--append", "--workers", "2", WAIT="0.005")
    while process.poll() is None and not (folder / "o/out/.progress.json").exists():
        pass
    process.kill()
    process.communicate()
    resumed = seqflow("run", "job.toml", "--quiet", "--resume", "--workers", "2", folder=folder)
    assert resumed.returncode == 0, resumed.stderr
    if "nothing" in resumed.stderr:  # it was killed after its end, or before its first note
        append(folder)
    assert files(folder) == expected


SETTINGS: dict[str, dict[str, object]] = {
    "source": {"paths": "in"},
    "order": {"window": 1024, "threads": 0},
    "batch": {"n": 8},
    "output": {"path": "out", "part_bytes": 1024},
}


def write_file(folder: Path, name: str, start: int, rows: int = 300) -> None:
    (folder / "in" / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"x": np.arange(start, start + rows)}), folder / "in" / name, row_group_size=50)


def job(folder: Path, **changes: dict[str, object]) -> Job:
    tables = {name: {**SETTINGS.get(name, {}), **changes.get(name, {})} for name in {**SETTINGS, **changes}}
    return Job.from_dict(tables, folder)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder with the complete output of two files."""
    write_file(tmp_path, "b.parquet", 0)
    write_file(tmp_path, "d.parquet", 1000)
    run(job(tmp_path))
    return tmp_path


def rows(folder: Path, column: str = "x") -> list[int]:
    record = json.loads((folder / "out/_manifest.json").read_text())
    return [
        x for file in record["files"] for x in pq.read_table(folder / "out" / file["name"])["x"].to_pylist()
    ]


def test_parts_of_new_files_follow_and_the_manifest_has_all(written: Path) -> None:
    before = rows(written)
    write_file(written, "a.parquet", 2000)
    report = run(job(written), append=True)
    assert (report.outcome, report.appended, report.rows) == ("appended", ("a.parquet",), 900)
    write_file(written, "z/c.parquet", 3000)
    write_file(written, "z/a.parquet", 4000)
    shutil.move(written / "in", written / "deep" / "in")  # the folder of all files has changed
    os.symlink(written / "deep" / "in", written / "in")
    assert run(job(written), append=True).appended == ("z/a.parquet", "z/c.parquet")
    assert rows(written) == [*before, *range(2000, 2300), *range(4000, 4300), *range(3000, 3300)]
    record = json.loads((written / "out/_manifest.json").read_text())
    assert (record["rows"], record["counts"]["rows"]) == (1500, 1500)
    assert [one["files"] for one in record["appended"]] == [["a.parquet"], ["z/a.parquet", "z/c.parquet"]]
    assert [group for file in record["files"] for group in file["row_groups"]] == [
        *range(len(record["files"]))
    ]
    for options in ({}, {"append": True}, {"resume": True, "append": True}):
        assert run(job(written), **options).outcome == "complete"


def test_a_file_above_the_others_moves_the_folder_of_all(tmp_path: Path) -> None:
    write_file(tmp_path, "x/1.parquet", 0)
    write_file(tmp_path, "x/2.parquet", 1000)
    run(job(tmp_path))
    write_file(tmp_path, "x/3.parquet", 2000)
    run(job(tmp_path), append=True)
    write_file(tmp_path, "0.parquet", 3000)
    assert run(job(tmp_path), append=True).appended == ("0.parquet",)
    record = json.loads((tmp_path / "out/_manifest.json").read_text())
    assert [one["files"] for one in record["appended"]] == [["x/3.parquet"], ["0.parquet"]]
    of_runs = {file["batches"]["from"].get("append", 0) for file in record["files"]}
    assert of_runs == {0, 1, 2}
    assert rows(tmp_path) == [*range(300), *range(1000, 1300), *range(2000, 2300), *range(3000, 3300)]


def test_nothing_new_is_said_and_nothing_is_written(written: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (written / "out").iterdir()}
    assert run(job(written), append=True).outcome == "complete"
    assert {path: path.stat().st_mtime_ns for path in (written / "out").iterdir()} == before


def test_without_an_output_all_files_are_written(tmp_path: Path) -> None:
    write_file(tmp_path, "b.parquet", 0)
    assert run(job(tmp_path), append=True).outcome == "new"
    assert rows(tmp_path) == [*range(300)]


def test_files_that_changed_or_are_missing_are_refused_by_name(written: Path) -> None:
    write_file(written, "e.parquet", 2000)
    before = files_of(written)
    write_file(written, "d.parquet", 1, rows=200)
    with pytest.raises(
        JobError, match=r"appended to: d\.parquet has changed since its rows were written: .*300 rows"
    ):
        run(job(written), append=True)
    (written / "in/d.parquet").unlink()
    with pytest.raises(JobError, match=r"appended to: d\.parquet is missing"):
        run(job(written), append=True)
    write_file(written, "d.parquet", 1000)
    (written / "in/b.parquet").unlink()  # the first one
    with pytest.raises(JobError, match=r"appended to: b\.parquet is missing"):
        run(job(written), append=True)
    assert files_of(written) == before


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ({"x": [1.5]}, r"columns\.x was 'int64' and is 'double' now: a\.csv has 'x' as double\n.*schema = "),
        (
            {"x": [1], "y": ["b"]},
            r"columns\.y is new: 'string': a\.csv has 'y' as string\n.*columns leaves out",
        ),
    ],
)
def test_a_new_file_that_changes_the_columns_is_named_with_their_types(
    tmp_path: Path, column: dict[str, list[object]], message: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in/b.csv").write_text("x\n1\n")
    run(job(tmp_path))
    lines = [column, *zip(*column.values(), strict=True)]
    (tmp_path / "in/a.csv").write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
    with pytest.raises(JobError, match=message):
        run(job(tmp_path), append=True)
    with pytest.raises(JobError, match=r"columns\.[xy] .*\n  also the data have changed: a\.csv is new"):
        run(job(tmp_path))
    given = {"schema": {"x": "float64"}} if len(column) == 1 else {"columns": ["x"]}
    run(job(tmp_path, source={"paths": "in", **given}), overwrite=True)
    (tmp_path / "in/c.csv").write_text("x\n2\n")
    assert run(job(tmp_path, source={"paths": "in", **given}), append=True).rows == 3


@pytest.mark.parametrize("engine", [{}, pytest.param({"workers": 1}, marks=pytest.mark.slow)])
def test_bounds_hold_for_the_rows_and_files_of_an_append_alone(
    tmp_path: Path, engine: dict[str, object]
) -> None:
    def job_of(most: int) -> Job:
        bounds = {"policy": "skip", "max": most}
        return job(tmp_path, bad_files=bounds, bad_rows=bounds, source={"paths": "in"}, engine=engine)

    def damage(name: str, nulls: int = 1) -> None:
        write_file(tmp_path, f"{name}.parquet", 0, 1)
        (tmp_path / "in" / f"{name}0.parquet").write_bytes(b"no table")
        x = pa.array([None] * nulls + [1], pa.int64())
        pq.write_table(pa.table({"x": x}), tmp_path / "in" / f"{name}1.parquet")

    for number, name in enumerate("bcd", 1):
        damage(name)
        with pytest.raises(ProviderError, match="bad_files allows max=0"):
            run(job_of(0), append=number > 1)
        report = run(job_of(1), resume=True, append=number > 1)
        assert (report.bad_files.num_files, report.bad_rows) == (number, number)
    damage("e", nulls=2)
    with pytest.raises(ProviderError, match=r"2 of 4 are bad, expected at most 1 \(max\): 2 x: null"):
        run(job_of(1), append=True)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


def test_without_append_the_message_names_it(written: Path) -> None:
    write_file(written, "e.parquet", 2000)
    with pytest.raises(JobError, match=r"e\.parquet is new\n.*\n  --append keeps it"):
        run(job(written))
    with pytest.raises(JobError, match="of another job") as caught:
        run(job(written, batch={"n": 9}), append=True)
    assert "--append" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output": {"path": "out.parquet"}}, 'is one file\n  write a folder of parts: path = "out/"'),
        ({"output": {"sort_by": "x"}}, "sort_by sorts the rows of all files"),
        ({"output": {"kind": "none"}}, "no output to add to"),
    ],
)
def test_an_output_that_is_no_sum_of_its_files_is_refused(
    tmp_path: Path, changes: dict[str, dict[str, object]], message: str
) -> None:
    write_file(tmp_path, "b.parquet", 0)
    with pytest.raises(JobError) as caught:
        run(job(tmp_path, **changes), append=True)
    assert message in str(caught.value)
    assert names(tmp_path) == ["in"]


def test_a_mix_skips_and_codes_of_dictionaries_are_refused(tmp_path: Path) -> None:
    write_file(tmp_path, "b.parquet", 0)
    source = {"paths": "in", "weight": 1.0}
    mixed = {"mix": {"sources": [source]}, "output": {"path": "out"}}
    with pytest.raises(JobError, match=r"in \[mix\] all batches before"):
        run(Job.from_dict(mixed, tmp_path), append=True)
    with pytest.raises(JobError, match="skip has numbers of batches"):
        run(Job.from_dict({**SETTINGS, "skip": [[1, 2]]}, tmp_path), append=True)
    coded = pa.table({"x": np.arange(4), "lang": pa.array(["a", "b", "a", "c"]).dictionary_encode()})
    pq.write_table(coded, tmp_path / "in/b.parquet")
    with pytest.raises(JobError, match="codes of the dictionary 'lang'"):
        run(job(tmp_path, net={"net": "y = abs(lang)"}), append=True)
    run(job(tmp_path, net={"net": "y = abs(x)"}), append=True)


def test_more_files_than_an_identity_lists(written: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.rmtree(written / "out")
    monkeypatch.setattr(identity, "_LISTED_FILES", 1)
    run(job(written))
    write_file(written, "e.parquet", 2000)
    assert run(job(written), append=True).appended == ("e.parquet",)
    assert rows(written) == [*range(300), *range(1000, 1300), *range(2000, 2300)]
    assert run(job(written), append=True).outcome == "complete"


class Stopped(Exception):
    pass


def stop(folder: Path, after: int, **options: bool) -> None:
    """Stop a run in the middle."""

    def progress(stats: Stats, total: int | None) -> None:
        if stats.batches >= after:
            raise Stopped

    with pytest.raises(Stopped):
        run(job(folder), progress, **options)


def test_an_unfinished_run_is_completed_before_files_that_came_later(written: Path) -> None:
    write_file(written, "e.parquet", 2000)
    stop(written, 105, append=True)
    with pytest.raises(JobError, match="--resume goes on with it"):
        run(job(written), append=True)
    write_file(written, "a.parquet", 3000)
    with pytest.raises(JobError, match=r"a\.parquet is new"):
        run(job(written), resume=True)
    report = run(job(written), resume=True, append=True)
    assert (report.outcome, report.appended) == ("appended", ("a.parquet",))
    expected = [*range(300), *range(1000, 1300), *range(2000, 2300), *range(3000, 3300)]
    assert rows(written) == expected
    write_file(written, "c.parquet", 4000)
    part = written / "out/part-00001.parquet"
    moved = part.rename(written / "moved")
    with pytest.raises(JobError, match=r"part-00001\.parquet'\n  --overwrite begins again"):
        run(job(written), append=True)
    moved.rename(part)
    assert run(job(written), resume=True, append=True).outcome == "appended"
    assert rows(written) == [*expected, *range(4000, 4300)]


def test_overwriting_a_killed_append_writes_all_files_again(written: Path) -> None:
    write_file(written, "a.parquet", 2000)
    stop(written, 105, append=True)
    assert run(job(written), overwrite=True).outcome == "new"
    assert rows(written) == [*range(2000, 2300), *range(300), *range(1000, 1300)]
    assert "appended" not in json.loads((written / "out/_manifest.json").read_text())


def test_rows_of_an_append_are_traced(written: Path) -> None:
    write_file(written, "a.parquet", 2000)
    nets: dict[str, dict[str, object]] = {"net": {"net": "y = abs(x)"}}
    shutil.rmtree(written / "out")
    (written / "in/a.parquet").rename(written / "a")
    run(job(written, **nets))
    (written / "a").rename(written / "in/a.parquet")
    run(job(written, **nets), append=True)
    last = sorted((written / "out").glob("part-*"))[-1]
    row = pq.read_table(last)["y"].to_pylist().index(2299)
    (found,) = trace_row(last, row, job(written, **nets))
    assert (Path(found.file).name, found.block, found.row) == ("a.parquet", 5, 49)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["jsonl.gz", "npy", *thorough("jsonl", "csv")])
def test_files_of_other_formats_are_appended(tmp_path: Path, suffix: str) -> None:
    def write(name: str, start: int) -> None:
        path = tmp_path / "in" / f"{name}.{suffix}"
        path.parent.mkdir(exist_ok=True)
        numbers = range(start, start + 300)
        lines = "".join(f'{{"x": {x}}}\n' for x in numbers)
        if suffix == "npy":
            np.save(path, np.array([(x,) for x in numbers], [("x", np.int64)]))
        elif suffix == "csv":
            path.write_text("x\n" + "".join(f"{x}\n" for x in numbers))
        elif suffix == "jsonl.gz":
            path.write_bytes(gzip.compress(lines.encode()))
        else:
            path.write_text(lines)

    write("b", 0)
    write("d", 1000)
    run(job(tmp_path))
    write("a", 2000)
    write("c", 3000)
    assert run(job(tmp_path, engine={"workers": 1}), append=True).outcome == "appended"
    column = pq.read_schema(tmp_path / "out/part-00000.parquet").names[0]
    assert rows(tmp_path, column) == [*range(300), *range(1000, 1300), *range(2000, 2300), *range(3000, 3300)]


@pytest.mark.parametrize("where", [None, "x >= 100"])
def test_the_parts_of_an_append_are_those_of_a_run_over_the_new_files(
    tmp_path: Path, where: str | None
) -> None:
    changes: dict[str, dict[str, object]] = {
        "source": {"where": where},
        "order": {"shuffle": True, "seed": 5},
        "output": {"rows_per_file": 70},
    }
    for number, name in enumerate(("b", "d", "f")):
        write_file(tmp_path, f"{name}.parquet", 50 * number)
    run(job(tmp_path, **changes))
    first = rows(tmp_path)
    seen: list[int | None] = []
    (tmp_path / "in").rename(tmp_path / "old")
    for number, name in enumerate(("a", "c")):
        write_file(tmp_path, f"{name}.parquet", 70 * number)
    shutil.rmtree(tmp_path / "out")
    run(job(tmp_path, **changes), lambda stats, total: seen.append(total))
    alone, total = rows(tmp_path), seen[-1]
    shutil.rmtree(tmp_path / "out")
    (tmp_path / "in").rename(tmp_path / "new")
    (tmp_path / "old").rename(tmp_path / "in")
    run(job(tmp_path, **changes))
    for path in (tmp_path / "new").iterdir():
        path.rename(tmp_path / "in" / path.name)
    report = run(job(tmp_path, **changes), lambda stats, total: seen.append(total), append=True)
    assert rows(tmp_path) == [*first, *alone]
    assert report.rows == len(first) + len(alone)
    if total is not None:
        assert seen[-1] == total + len(first)


BAD_FILES = {"bad_files": {"policy": "skip"}}


def _put(folder: Path, name: str, **columns: Any) -> None:
    path = folder / "in" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path) if columns else path.write_bytes(b"PAR1 rubbish")


def test_damaged_new_files_are_no_new_files_and_mended_ones_are(tmp_path: Path) -> None:
    def add() -> tuple[str, tuple[str, ...], int]:
        done = run(job(tmp_path, source={"paths": "in"}, **BAD_FILES), append=True)
        return done.outcome, done.appended, done.rows

    _put(tmp_path, "a.parquet", x=[1, 2])
    assert add() == ("new", (), 2)
    _put(tmp_path, "b.parquet")
    assert add() == add() == ("complete", (), 2)
    _put(tmp_path, "c.parquet")
    _put(tmp_path, "d.parquet", x=[3])
    assert add() == ("appended", ("d.parquet",), 3)
    _put(tmp_path, "c.parquet", x=[4])
    assert add() == ("appended", ("c.parquet",), 4)
    (tmp_path / "in" / "b.parquet").unlink()
    assert add() == ("complete", (), 4)
    assert pq.read_table(tmp_path / "out")["x"].to_pylist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("first", "later", "message"),
    [
        ("a.parquet", ("b.parquet", {"x": [2], "y": ["t"]}), r"y is new: '.*': b.parquet has 'y' as string"),
        (
            "k=1/a.parquet",
            ("k=2/b.parquet", {"x": [2], "y": [0.5]}),
            r"y is new: '.*': k=2/b.parquet has 'y' as",
        ),
        (
            "k=1/a.parquet",
            ("k=t/b.parquet", {"x": [2]}),
            "k was 'int64' and is 'string' now, with k=t/b.parquet",
        ),
    ],
)
def test_an_append_says_which_columns_a_new_file_changes(
    tmp_path: Path, first: str, later: tuple[str, dict[str, Any]], message: str
) -> None:
    settings = {"source": {"paths": "in", "valid": True}, **BAD_FILES}
    _put(tmp_path, first, x=[1])
    run(job(tmp_path, **settings))
    _put(tmp_path, later[0], **later[1])
    _put(tmp_path, "damaged.parquet")
    with pytest.raises(JobError, match=rf"cannot be appended to: the data have changed: columns\.{message}"):
        run(job(tmp_path, **settings), append=True)
