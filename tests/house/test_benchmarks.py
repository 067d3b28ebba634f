"""`python -m benchmarks`: what fails is a row with its reason, and loses no other."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(
    not BENCHMARKS.exists(), reason="a source distribution may have no benchmarks"
)
SUITE = """
from comparison import Row

started = []

def starts_once():
    if started:
        raise RuntimeError("it is running already")
    started.append(1)
    return 1

def rows():
    yield Row("a test row", lambda: 1, {"steady": lambda: 1, "starts once": starts_once, "wrong": lambda: 2})
    yield Row("a test row of ours that fails", lambda: 1 / 0, {"steady": lambda: 1})
    yield Row("a test row without peers", lambda: 1, {})

def broken():
    yield Row("a test row before", lambda: 1, {"steady": lambda: 1})
    raise OSError("no such file")

FAMILIES = [broken, rows]
"""


@pytest.fixture
def benchmarks(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    spec = importlib.util.spec_from_file_location("run_of_benchmarks", BENCHMARKS / "__main__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith((str(BENCHMARKS), str(tmp_path))):
            del sys.modules[name]


@pytest.mark.slow
def test_what_fails_is_a_row_with_its_reason_and_the_others_are_measured_and_saved(benchmarks, tmp_path):
    (tmp_path / "failing_suite.py").write_text(SUITE)
    (tmp_path / "broken_suite.py").write_text("raise OSError('no such file')")
    saved = []
    found = benchmarks.run(
        {"processor": "P", "kernels": "K", "bandwidth": {"copy": 1}},
        ["test row"],
        ["broken_suite", "failing_suite", "missing_suite"],
        lambda found: saved.append([row["name"] for row in found["rows"]]),
        quick=False,
        rounds=1,
    )
    rows = {row["name"]: row for row in found["rows"]}
    assert {name: row.get("failed", {}) for name, row in rows.items()} == {
        "broken_suite": {"its module": "OSError: no such file"},
        "a test row before": {},
        "broken": {"its data": "OSError: no such file"},
        "a test row": {
            "starts once": "RuntimeError: it is running already",
            "wrong": rows["a test row"]["failed"]["wrong"],
        },
        "a test row of ours that fails": {"ours": "ZeroDivisionError: division by zero"},
        "a test row without peers": {},
    }
    assert rows["a test row"]["failed"]["wrong"].startswith("AssertionError: ")
    assert list(rows["a test row"]["peers"]) == ["steady"]
    assert rows["a test row"]["ours"] > 0
    assert list(found["missing"]) == ["missing_suite"]
    assert saved[-len(rows) :] == [list(rows)[: count + 1] for count in range(len(rows))][-len(saved) :]


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["plan.py", "--windows", "100", "--files", "5"],
        ["validation.py", "--rows", "1000", "--times", "1"],
        ["loader_latency.py", "--times", "1", "--rows", "64000"],
    ],
    ids=lambda command: command[0],
)
def test_a_benchmark_that_looks_inside_the_loader_runs(command, tmp_path):
    done = subprocess.run(
        [sys.executable, BENCHMARKS / command[0], *command[1:]],
        capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
