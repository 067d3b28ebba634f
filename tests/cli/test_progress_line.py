"""The line of progress: what it says, and that it is on terminals only."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import in_terminal, seqflow
from killed_jobs import write_slow_job
from marks import thorough

from seqflow.cli.progress_line import line_of
from seqflow.progress import Stage

SLOW = """
import time
import seqflow as sf

@sf.registry.op("x[N] -> y[N]")
def slowly(x):
    time.sleep(0.02)
    return x
"""
JOB = """
imports = ["slow"]
[source]
paths = "docs.parquet"
[prepare]
net = "t = slowly(n)"
[batch]
kind = "rows"
n = 100
[output]
path = "out"
[order]
threads = 0
"""


@pytest.fixture
def slow_job(tmp_path: Path) -> Path:
    """A folder with a job of one window of 30 blocks, each of which takes a fiftieth of a second."""
    pq.write_table(pa.table({"n": range(300)}), tmp_path / "docs.parquet", row_group_size=10)
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


def states(text: str) -> list[str]:
    """What the line said, one after another."""
    return [state.rstrip() for state in text.split("\r")]


def test_what_is_done_of_all_stands_beside_a_bar_and_the_time_that_is_left():
    rows = Stage("rows", 4000, done=1000, note=lambda: "5,000 tokens/s")
    assert (
        line_of(rows, None, 10, 80, "#-")
        == "1,000 of 4,000 rows  ######------------------  0:30 left  5,000 tokens/s"
    )
    window = Stage("blocks", 8, "window 2 of 3", done=2)
    found = line_of(rows, window, 10, 100, "#-")
    assert (
        found
        == "1,000 of 4,000 rows  ######----------------  0:30 left  5,000 tokens/s  window 2 of 3: 2 of 8 blocks"
    )


def test_before_the_first_row_the_bar_is_that_of_the_window():
    window = Stage("blocks", 8, "window 1 of 3", done=2)
    found = line_of(Stage("rows", 4000), window, 3, 80, "#-")
    assert found == "0 of 4,000 rows  0:03 so far  window 1 of 3: 2 of 8 blocks  #####---------------"


def test_what_an_earlier_run_has_done_says_nothing_about_the_time_that_is_left():
    assert "0:20 left" in line_of(Stage("rows", 4000, done=3000, before=2500), None, 10, 80)


def test_where_no_end_is_known_it_says_what_is_counted_and_for_how_long():
    assert line_of(Stage("rows", None, done=1234), None, 75, 80) == "1,234 rows  1:15 so far"


def test_a_window_that_is_read_is_planned_and_then_used():
    window = Stage("blocks", 8, "window 2 of 3", done=8, after="planning")
    assert line_of(Stage("rows", None), window, 0, 60, "#-").split("  ")[2] == "planning window 2 of 3"
    window.is_over = True
    assert line_of(Stage("rows", None), window, 0, 60, "#-").split("  ")[2] == "window 2 of 3"


@pytest.mark.parametrize("width", [1, 10, 40, 79, 200])
def test_the_line_is_never_wider_than_the_terminal(width):
    rows = Stage("rows", 10**9, done=10**8, note=lambda: "1,000,000 tokens/s")
    assert len(line_of(rows, Stage("blocks", 1000, "window 99 of 100", done=7), 10**6, width)) <= width


@pytest.mark.slow
def test_a_run_shows_the_blocks_inside_its_window_and_then_its_rows_and_the_line_is_away_at_the_end(slow_job):
    code, text = in_terminal("run", "job.toml", folder=slow_job)
    assert code == 0
    read = [
        int(n)
        for n in re.findall(r"0 of 300 rows .* window 1 of 1: (\d+) of 30 blocks", "\n".join(states(text)))
    ]
    assert len(read) > 3
    assert read == sorted(read)
    assert read[0] < 15 < read[-1]
    *_, blank, table = text.split("\r")
    assert blank.strip() == ""
    assert table.startswith("rows ")
    assert "\x1b" not in text


@pytest.mark.slow
@pytest.mark.parametrize("options", [("--quiet",), ("--json",)])
def test_there_is_no_line_where_it_is_not_wanted(slow_job, options):
    assert "\r" not in in_terminal("run", "job.toml", *options, folder=slow_job)[1]


@pytest.mark.slow
def test_there_is_no_line_on_a_terminal_that_cannot_go_back_in_one(slow_job):
    assert "\r" not in in_terminal("run", "job.toml", folder=slow_job, TERM="dumb")[1]


def test_there_is_no_line_where_nobody_watches(slow_job):
    done = seqflow("run", "job.toml", folder=slow_job)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\r" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("index", "job.toml", "--output", "i.arrow"),
        ("run", "job.toml", "--dry-run"),
        ("report", "job.toml"),
        *thorough(
            (("build-vocabulary", "job.toml", "t", "v.arrow"),), (("trace", "job.toml", "--batch", "1"),)
        ),
    ],
)
def test_other_commands_show_their_blocks(slow_job, arguments):
    code, text = in_terminal(*arguments, folder=slow_job)
    assert code == 0, text
    assert re.search(r"\d+ of 30 blocks", text)


@pytest.fixture
def slow_run(tmp_path: Path) -> Path:
    """A job of some seconds, of which some rows are bad."""
    write_slow_job(tmp_path, "out", part_bytes='"16 KiB"', bad_rows="bad.parquet", files=1, rows=400)
    return tmp_path


def logged(folder: Path, *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and stderr of a run whose log has a line every 0.1 s."""
    program = (
        "import sys, seqflow.cli.progress_line as lines, seqflow.cli\n"
        "lines.SECONDS_BETWEEN_LINES = 0.1\n"
        f"sys.argv = ['seqflow', 'run', 'job.toml', *{arguments!r}]\n"
        "seqflow.cli.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=folder, env={**os.environ, "WAIT": "0.05"}, capture_output=True,
        text=True,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.slow
def test_without_a_terminal_there_are_lines_of_a_log(slow_run: Path) -> None:
    code, output, errors = logged(slow_run)
    assert (code, output.split()[0]) == (0, "rows")
    lines = errors.splitlines()
    assert any(re.fullmatch(r"seqflow: [\d,]+ of 400 rows  .*left.*", line) for line in lines), errors
    assert not re.search("[━╌#\r]", errors)
    for flag in ("--quiet", "--json"):
        assert logged(slow_run, "--overwrite", flag)[2] == ""


@pytest.mark.slow
def test_the_lines_of_a_log_may_be_objects(slow_run: Path) -> None:
    code, _, errors = logged(slow_run, "--log", "json")
    events = [json.loads(line) for line in errors.splitlines()]
    assert code == 0
    kinds = [event["event"] for event in events]
    assert (kinds[0], kinds[-2], kinds[-1]) == ("start", "bad_rows", "end")
    assert {*kinds} == {"start", "progress", "bad_rows", "end"}
    progress = [event for event in events if event["event"] == "progress"]
    assert all(event["total_rows"] == 400 for event in progress)
    assert [event["rows_read"] for event in progress] == sorted(event["rows_read"] for event in progress)
    assert all('seqflow_step_seconds{part="wait",rank="0"}' in event["metrics"] for event in progress)
    end, bad = events[-1], events[-2]
    assert (end["outcome"], end["bad_rows"], sum(bad["reasons"].values())) == (
        "new",
        bad["bad_rows"],
        end["bad_rows"],
    )
    errors = logged(slow_run, "--log", "json", "--quiet", "--overwrite")[2]
    assert [json.loads(line)["event"] for line in errors.splitlines()][-1] == "end"
    code, _, errors = logged(slow_run, "--log", "json", "--set", "batch.rows=3")
    events = [json.loads(line) for line in errors.splitlines()]
    assert (code, [event["event"] for event in events]) == (2, ["start", "message", "end"])
    assert "is of another job" in events[-2]["text"]
