"""Runs that are killed, at any moment, and go on: nothing is lost, nothing comes twice."""

import json
import random
import signal
import subprocess
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow
from killed_jobs import start, write_slow_job
from marks import THOROUGH
from outputs import names

from seqflow.errors import JobError
from seqflow.job import Job, run
from seqflow.loader import Stats
from seqflow.output.progress_file import parse_progress

ARRANGED = {
    "arranged": 'partition_by = "window"',
    "sorted.parquet": 'sort_by = "-window"',
}
PLAIN = ["out", "out.parquet"]


@pytest.fixture(params=[*PLAIN, "out.arrow", *ARRANGED] if THOROUGH else PLAIN)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A folder with docs0.parquet, of which some rows are bad, and a job that is slow where WAIT says so."""
    size = "64 KiB" if "renaming" in request.node.name else "16 KiB"
    arranged = ARRANGED.get(request.param, "")
    write_slow_job(
        tmp_path, f"o/{request.param}", part_bytes=f'"{size}"', bad_rows="bad.parquet", arranged=arranged,
        files=1, rows=1500,
    )  # fmt: skip
    return tmp_path


def run_command(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return seqflow("run", "job.toml", "--quiet", *arguments, folder=folder, **environment)


def files(folder: Path) -> dict[str, bytes]:
    """Everything that a run leaves."""
    found = [
        *folder.glob("bad*"),
        *folder.glob(".bad*"),
        *(path for path in (folder / "o").rglob("*") if path.is_file()),
    ]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def remove_files(folder: Path) -> dict[str, bytes]:
    """Everything that a run has left, which is removed."""
    found = files(folder)
    for name in found:
        (folder / name).unlink()
    return found


@pytest.fixture
def expected(folder: Path) -> dict[str, bytes]:
    """What an undisturbed run leaves; it is removed again."""
    assert run_command(folder).stderr == ""
    return remove_files(folder)


@pytest.mark.slow
def test_runs_killed_at_random_moments_leave_what_an_undisturbed_one_does(
    folder: Path, expected: dict[str, bytes]
) -> None:
    draw, kills, between_commits = random.Random(1), 0, 0
    while kills < (20 if THOROUGH else 3):
        before = committed(folder)
        process = start(folder, "--resume", WAIT="0.05")
        at_commit = draw.random() < 0.5
        while process.poll() is None and not (committed(folder) != before if at_commit else is_busy(folder)):
            time.sleep(0.001)
        time.sleep(draw.uniform(0, 0.3))
        process.send_signal(draw.choice([signal.SIGKILL, signal.SIGTERM]))
        process.communicate()
        if process.returncode == 0:  # it ended first; the next begins anew
            assert remove_files(folder) == expected
            continue
        assert process.returncode in (-signal.SIGKILL, -signal.SIGTERM, 128 + signal.SIGTERM)
        kills += 1
        between_commits += committed(folder) > 0
    last = start(folder, "--resume")
    assert (last.communicate()[0], last.returncode) == ("", 0)
    assert files(folder) == expected
    assert between_commits > 0


def committed(folder: Path) -> int:
    return len(list((folder / "o").rglob(".*.done")))


def is_busy(folder: Path) -> bool:
    return any((folder / "o").rglob(".*lock"))


@pytest.mark.slow
@pytest.mark.parametrize("folder", [*PLAIN, *ARRANGED] if THOROUGH else ["out", "arranged"], indirect=True)
def test_a_run_killed_before_a_renaming_or_removal_leaves_nothing_wrong(
    folder: Path, expected: dict[str, bytes]
) -> None:
    """At every such moment, of the end too."""
    arranged = "partition_by" in (folder / "job.toml").read_text()
    step, first = (1, 0) if THOROUGH else (43, 11) if arranged else (13, 4)
    for moment in range(first, 1000, step):
        killed = run_command(folder, "--overwrite", KILL_AT=str(moment))
        if killed.returncode == 0:
            break
        assert killed.returncode == -signal.SIGKILL
        done = run_command(folder, "--resume")
        assert done.stderr.replace("seqflow: there was no run to continue; this one started again\n", "") in (
            "", "seqflow: the output is complete, nothing was done; --overwrite makes it again\n",
        ), moment  # fmt: skip
        assert done.returncode == 0
        assert files(folder) == expected, moment
    assert moment > 12


@pytest.mark.parametrize("folder", ["out"], indirect=True)
def test_after_a_full_disk_the_progress_is_true(folder: Path, expected: dict[str, bytes]) -> None:
    done = run_command(folder, KILL_AT="10", FULL_DISK="")
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "what is finished is kept: --resume goes on after it" in done.stderr
    assert run_command(folder, "--resume").stderr == ""
    assert files(folder) == expected


SETTINGS = {
    "source": {"paths": "docs0.parquet", "columns": ["tokens", "label"]},
    "order": {"window": 8192, "threads": 0},
    "batch": {"n": 16},
    "output": {"path": "out", "part_bytes": 4096},
    "bad_rows": {"policy": "skip"},
}


def stopped(folder: Path, after: int, **changes: dict[str, object]) -> None:
    """A run that fails behind a number of batches."""

    def stop(stats: Stats, total: int | None) -> None:
        if stats.batches == after:
            raise InterruptedError("enough")

    with pytest.raises(InterruptedError) as caught:
        run(job(folder, **changes), stop)
    assert caught.value.__notes__ == ["what is finished is kept: --resume goes on after it"]


def job(folder: Path, **changes: dict[str, object]) -> Job:
    settings = {name: {**section, **changes.pop(name, {})} for name, section in SETTINGS.items()}
    return Job.from_dict({**settings, **changes}, folder)


in_one_folder = pytest.mark.parametrize("folder", ["out"], indirect=True)


ACROSS_WINDOWS = {
    "source": {"columns": ["label"]},
    "order": {"window": 400},
    "batch": {"n": 30},
    "bad_rows": {"policy": "raise"},
}


@in_one_folder
@pytest.mark.parametrize(
    "changes", [{}, {"output": {"threads": 2}}, {"order": {"threads": 2, "shuffle": True}}, ACROSS_WINDOWS]
)
def test_a_run_that_failed_goes_on_and_reports_all_of_the_job(
    folder: Path, changes: dict[str, dict[str, object]]
) -> None:
    undisturbed = run(job(folder, **{**changes, "output": {**changes.get("output", {}), "path": "whole"}}))
    stopped(folder, 40, **changes)
    noted = parse_progress((folder / "out" / ".progress.json").read_text())
    assert 0 < noted["counts"]["batches"] < 40
    assert not [name for name in names(folder / "out") if ".tmp-" in name or "lock" in name]
    report = run(job(folder, **changes), resume=True)
    assert report.outcome == "resumed"
    for name in ("rows", "tokens", "fill", "batches", "bad_rows", "output_bytes"):
        assert getattr(report, name) == getattr(undisturbed, name), name
    assert [path.read_bytes() for path in report.files] == [path.read_bytes() for path in undisturbed.files]


@in_one_folder
def test_a_complete_output_is_left_alone_unless_it_is_to_be_overwritten(folder: Path) -> None:
    reports = [run(job(folder))]
    before = {path: path.stat().st_mtime_ns for path in (folder / "out").iterdir()}
    reports += [run(job(folder)), run(job(folder), resume=True)]
    assert {path: path.stat().st_mtime_ns for path in (folder / "out").iterdir()} == before
    assert [report.outcome for report in reports] == ["new", "complete", "complete"]
    assert len({(report.rows, report.batches, report.files, report.output_bytes) for report in reports}) == 1
    assert run(job(folder), overwrite=True).outcome == "new"


@pytest.mark.each_choice
@in_one_folder
@pytest.mark.parametrize("flags", [{}, {"resume": True}])
@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"batch": {"n": 17}}, r"batch\.n was 16 and is 17 now"),
        ({"source": {"columns": ["tokens"]}}, r"source\.columns\[1\] is gone: it was 'label'"),
        ({"output": {"compression": "zstd"}}, "output.compression was None and is 'zstd'"),
    ],
)
def test_the_output_of_another_job_is_refused_with_the_difference(
    folder: Path, flags: dict[str, bool], changes: dict[str, dict[str, object]], difference: str
) -> None:
    run(job(folder))
    with pytest.raises(JobError, match=f"of another job or of other data: .*{difference}"):
        run(job(folder, **changes), **flags)
    assert run(job(folder, **changes), overwrite=True).outcome == "new"


@in_one_folder
def test_a_run_that_has_not_ended_needs_a_flag(folder: Path) -> None:
    stopped(folder, 50)
    with pytest.raises(JobError, match=r"--resume goes on with it, --overwrite begins again"):
        run(job(folder))
    assert run(job(folder), overwrite=True).outcome == "new"
    assert not [name for name in names(folder / "out") if name[0] == "."]
    with pytest.raises(JobError, match="expected one of them"):
        run(job(folder), resume=True, overwrite=True)


@in_one_folder
def test_input_that_grew_is_a_difference_that_resuming_names(folder: Path) -> None:
    stopped(folder, 50)
    table = pq.read_table(folder / "docs0.parquet")
    pq.write_table(pa.concat_tables([table, table]), folder / "docs0.parquet", row_group_size=50)
    with pytest.raises(
        JobError, match=r"docs0.parquet had \d+ bytes and 1500 rows, and has \d+ and 3000 now"
    ):
        run(job(folder), resume=True)


@in_one_folder
def test_a_file_that_no_job_has_written_is_not_overwritten(folder: Path) -> None:
    (folder / "x.parquet").write_bytes(b"precious")
    with pytest.raises(JobError, match="nothing says that this job has written it"):
        run(job(folder, output={"path": "x.parquet"}))
    assert (folder / "x.parquet").read_bytes() == b"precious"
    run(job(folder, output={"path": "x.parquet"}), overwrite=True)
    assert run(job(folder, output={"path": "x.parquet"})).outcome == "complete"


@in_one_folder
def test_a_shuffled_job_writes_the_same_rows_in_an_order_that_the_seed_decides(folder: Path) -> None:
    labels = []
    for seed in (1, 1, 2):
        run(job(folder, order={"shuffle": True, "seed": seed}), overwrite=True)
        labels.append(pq.read_table(folder / "out")["label"].to_pylist())
    assert labels[0] == labels[1] != labels[2]
    assert sorted(labels[0]) == sorted(labels[2]) != labels[0]


COUNTS = dict.fromkeys(
    ("rows", "tokens", "cells", "batches", "bad_rows", "rows_read", "rows_left", "dropped", "skipped"), 1
)


DAMAGED = [
    {"counts": {"rows": "x"}}, {"counts": {}}, {"counts": {**COUNTS, "filtered": "x"}}, {"sealed": 1}, {"files": []}, {"files": [{"name": "x"}]},
    {"loader": None}, {"bad_rows": 3}, {"columns": None}, {"job": []}, {"stale": ["docs0.parquet"]},
    {"stale": ["../docs0.parquet"]}, {"part": -1}, {"part": None}, {"progress": 4},
]  # fmt: skip


@in_one_folder
def test_a_damaged_progress_file_is_refused_and_nothing_is_removed(folder: Path) -> None:
    stopped(folder, 50)
    progress = folder / "out" / ".progress.json"
    as_written, before = progress.read_text(), names(folder / "out")
    for change in DAMAGED:
        progress.write_text(json.dumps({**parse_progress(as_written), **change}) + "\n")
        damaged = r"the progress file '.*json' is damaged, or of no job\n  --overwrite"
        with pytest.raises(JobError, match=damaged):
            run(job(folder), resume=True)
        assert names(folder / "out") == before, change
    assert run(job(folder), overwrite=True).outcome == "new"


@in_one_folder
@pytest.mark.parametrize("line", ["{}", "[]", "x", '{"set": {}, "update": {"files": {}}, "extend": {}}',
                                  '{"set": {}, "update": {}, "extend": {"counts": []}}'])  # fmt: skip
def test_a_damaged_line_of_a_progress_file_is_refused(folder: Path, line: str) -> None:
    stopped(folder, 50)
    progress = folder / "out" / ".progress.json"
    progress.write_text(progress.read_text() + line + "\n")
    with pytest.raises(JobError, match=r"the progress file '.*json' is damaged, or of no job"):
        run(job(folder), resume=True)


@in_one_folder
def test_a_line_that_was_being_written_when_the_run_was_killed_does_not_count(folder: Path) -> None:
    undisturbed = run(job(folder, output={"path": "whole"}))
    stopped(folder, 50)
    progress = folder / "out" / ".progress.json"
    whole = progress.read_text()
    for size in (1, 20, len(whole.splitlines()[-1])):
        progress.write_text(whole + whole.splitlines()[-1][:size])
        assert parse_progress(progress.read_text()) == parse_progress(whole)
    report = run(job(folder), resume=True)
    assert report.outcome == "resumed"
    assert [path.read_bytes() for path in report.files] == [path.read_bytes() for path in undisturbed.files]


@in_one_folder
def test_the_beginning_of_an_output_of_an_older_form_is_refused(folder: Path) -> None:
    stopped(folder, 50)
    progress = folder / "out" / ".progress.json"
    record = parse_progress(progress.read_text())
    del record["progress"]
    progress.write_text(json.dumps({**record, "seqflow": "0.1.0"}, indent=1) + "\n")
    with pytest.raises(JobError, match="is damaged, or of no job"):
        run(job(folder), resume=True)
    assert run(job(folder), overwrite=True).outcome == "new"


@in_one_folder
def test_a_progress_file_that_names_other_pieces_of_the_quarantine_file_is_refused(folder: Path) -> None:
    changes: dict[str, dict[str, object]] = {"bad_rows": {"policy": "quarantine", "path": "bad.parquet"}}
    stopped(folder, 50, **changes)
    progress = folder / "out" / ".progress.json"
    piece = {"name": "../docs0.parquet", "rows": 1, "bytes": 1, "row_groups": [0]}
    progress.write_text(json.dumps({**parse_progress(progress.read_text()), "bad_rows": [piece]}) + "\n")
    with pytest.raises(JobError, match=r"'../docs0.parquet' is not a piece of '.*bad.parquet'"):
        run(job(folder, **changes), resume=True)
