"""`seqflow bench`, and verdicts of runs: what the batches of a job wait for."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow

from seqflow.loader.verdicts import LIMITS


def run(*arguments, folder):
    done = seqflow(*map(str, arguments), folder=folder)
    return done.returncode, done.stdout, done.stderr


MANY = ("--set", "batch.max_tokens=9")
"""At least 50 batches."""


def test_a_loader_is_run_against_a_consumer_that_sleeps(folder):
    code, output, errors = run(
        "bench", "job.toml", *MANY, "--consumer", "20ms", "--threads", "0,1", "--steps", 25, folder=folder
    )
    assert (code, errors) == (0, "")
    assert [line for line in output.splitlines() if line.startswith("threads")] == ["threads 0", "threads 1"]
    assert output.count("the limit is") == 2
    assert not (folder / "out").exists()


def test_json_has_the_verdict_of_each_setting(folder):
    code, output, _ = run(
        "bench", "job.toml", *MANY, "--threads", "1,2", "--steps", 22, "--json", folder=folder
    )
    found = json.loads(output)
    assert code == 0
    assert [(one["threads"], one["steps"], one["consumer_seconds"]) for one in found] == [
        (1, 21, 0.0),
        (2, 21, 0.0),
    ]
    assert {one["limit"] for one in found} <= {*LIMITS}


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--consumer", "20", "--consumer is '20', expected a time such as 20ms or 0.5s"),
        ("--threads", "1,x", "--threads is '1,x', expected numbers such as 1,2,4"),
        ("--threads", "-1", "expected an integer, 0 to 256"),
    ],
)
def test_a_setting_that_is_none_is_bad_usage(folder, option, value, message):
    code, _, errors = run("bench", "job.toml", option, value, folder=folder)
    assert code == 2
    assert message in errors


def test_a_run_prints_its_verdict_and_the_report_shows_it(folder):
    code, output, _ = run("run", "job.toml", *MANY, "--verdict", folder=folder)
    assert code == 0
    assert "Verdict: " in output
    code, _, _ = run("report", "job.toml", *MANY, "-o", "report.html", folder=folder)
    assert code == 0
    assert "The last run" in (folder / "report.html").read_text()
    code, output, errors = run("run", "job.toml", *MANY, "--verdict", folder=folder)
    assert "no verdict: this process has made no batches" in errors


def test_the_json_of_a_run_has_its_verdict(folder):
    verdict = json.loads(run("run", "job.toml", *MANY, "--json", folder=folder)[1])["verdict"]
    assert verdict["limit"] in LIMITS
    assert "last_steps" not in verdict


SHARED = """
share = {history = "session"}
[source]
paths = "shared.parquet"
[batch]
kind = "tokens"
max_tokens = 60
lengths = "tokens"
[order]
by = "session"
shuffle = true
index = "lengths.arrow"
[output]
path = "out"
"""


@pytest.mark.parametrize(
    "command",
    [["bench", "shared.toml"], ["report", "shared.toml", "-o", "page.html"]],
    ids=["bench", "report"],
)
def test_a_job_whose_index_allows_no_bad_rows_keeps_its_policy(folder, command):
    sessions = [n // 4 for n in range(100)]
    table = {
        "session": sessions,
        "history": [[one] * (one % 5) for one in sessions],
        "tokens": [[1, 2]] * 100,
    }
    pq.write_table(pa.table(table), folder / "shared.parquet")
    (folder / "shared.toml").write_text(SHARED)
    code, _, errors = run(*command, folder=folder)
    assert (code, errors) == (0, "")
