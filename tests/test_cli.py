import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow

import seqflow as sf
from seqflow import registry

EXAMPLE = Path(__file__).parents[1] / "examples" / "pack_source.toml"
JOB = """
[source]
paths = "docs.parquet"
[batch]
kind = "tokens"
max_tokens = 20
[output]
path = "out"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with docs.parquet, 100 rows of 0 to 9 tokens, and job.toml."""
    tokens = pa.array([list(range(n % 10)) for n in range(100)], pa.list_(pa.int32()))
    pq.write_table(pa.table({"tokens": tokens}), tmp_path / "docs.parquet")
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


def test_the_version() -> None:
    done = seqflow("--version")
    assert (done.returncode, done.stdout) == (0, f"seqflow {sf.__version__}\n")


def test_run_prints_a_closing_table_and_no_progress_where_nobody_watches(folder: Path) -> None:
    done = seqflow("run", "job.toml", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    table = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert (table["rows"], table["tokens"], table["batches"]) == ("100", "450", "26")
    assert table["output"].startswith("out/part-00000.parquet (1, ")
    assert set(table) == {"rows", "tokens", "fill", "batches", "seconds", "tokens/s", "peak", "bad", "output"}


def test_run_with_json_prints_one_object(folder: Path) -> None:
    report = json.loads(seqflow("run", "job.toml", "--json", folder=folder).stdout)
    assert (report["rows"], report["tokens"], report["bad_rows"]) == (100, 450, 0)
    assert report["files"] == ["out/part-00000.parquet"]
    assert report["output_bytes"] == (folder / "out" / "part-00000.parquet").stat().st_size


def test_run_quietly_prints_nothing(folder: Path) -> None:
    done = seqflow("run", "job.toml", "--quiet", folder=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (folder / "out").exists()


def test_settings_input_and_output_can_be_overridden(folder: Path) -> None:
    (folder / "docs.parquet").rename(folder / "a.parquet")
    (folder / "jobs").mkdir()
    (folder / "job.toml").rename(folder / "jobs" / "job.toml")
    overrides = ("--set", "batch.kind=packed", "--set", "batch={kind='packed', capacity=16}")
    done = seqflow(
        "run", "jobs/job.toml", "--input", "a.parquet", "--input", "a.*", "--output", "x.parquet", *overrides,
        folder=folder,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    packed = pq.read_table(folder / "x.parquet")
    assert packed.schema.field("tokens").type == pa.list_(pa.int32(), 16)
    assert sum(map(sum, packed["piece_lengths"].to_pylist())) == 450


def test_a_terminal_sees_progress_on_stderr(folder: Path) -> None:
    watched, stderr = pty.openpty()
    command = [sys.executable, "-m", "seqflow", "run", "job.toml"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, cwd=folder, text=True, check=True)
    os.close(stderr)
    seen = b""
    try:
        while chunk := os.read(watched, 65536):
            seen += chunk
    except OSError:  # the other end is closed
        pass
    os.close(watched)
    assert b"rows" in seen
    assert b"tokens" in seen
    assert done.stdout.startswith("rows ")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_run_and_leaves_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    source = tmp_path / "a.parquet"
    noise = np.random.default_rng(0).integers(0, 2**31, 20_000_000)
    tokens = pa.ListArray.from_arrays(np.arange(0, 20_000_001, 100, dtype=np.int32), noise)
    pq.write_table(pa.table({"tokens": tokens}), source, use_dictionary=False, row_group_size=10_000)
    (tmp_path / "job.toml").write_text(JOB.replace("docs", "a").replace("20", "1000"))
    run = subprocess.Popen(
        [sys.executable, "-m", "seqflow", "run", "job.toml"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: any((tmp_path / "out").glob(".part*")))
    run.send_signal(number)
    run.send_signal(number)  # an impatient user
    _, stderr = run.communicate(timeout=60)
    assert run.returncode == 128 + number
    assert stderr == f"seqflow: stopped by {number.name}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "job.toml"]


def wait_for(condition: object, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_reader_that_goes_away_is_no_error_worth_a_traceback() -> None:
    listing = subprocess.Popen(
        [sys.executable, "-m", "seqflow", "ops", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert listing.stdout is not None
    listing.stdout.close()
    assert listing.stderr is not None
    assert listing.stderr.read() == b""
    listing.stderr.close()
    listing.wait()


def test_ops_lists_every_op_with_its_first_line() -> None:
    lines = seqflow("ops").stdout.splitlines()
    assert [line.split()[0] for line in lines] == registry.names()
    listed = json.loads(seqflow("ops", "--json").stdout)["ops"]
    assert listed == {name: registry.get(name).doc.split("\n")[0] for name in registry.names()}


def test_ops_shows_one_op_with_signature_attributes_example_and_origin() -> None:
    shown = seqflow("ops", "pad").stdout
    for part in (
        str(registry.get("pad").signature),
        "max_length",
        "'right' or 'left'",
        ">>> ",
        registry.get("pad").doc.partition(">>>")[0].strip(),
        "LodError      lengths that are negative, or do not add up to the rows of data",
        "PackSegments",
    ):
        assert part in shown
    described = json.loads(seqflow("ops", "pad", "--json").stdout)
    assert described["attributes"]["value"] == {"takes": "a number", "required": False, "default": 0}
    assert described["caffe2"] == "PackSegments"
    assert "An empty sequence is a row of padding." in " ".join(described["doc"].split())
    assert described["errors"][0]["kind"] == "LodError"


def test_info_says_which_kernels_are_in_use() -> None:
    facts = json.loads(seqflow("info", "--json").stdout)
    assert facts["kernels"] == sf.info()["kernels"]
    assert facts["pyarrow"] == pa.__version__
    assert "kernels" in seqflow("info").stdout


def test_inspect_shows_tensors_lengths_and_padding_waste(folder: Path) -> None:
    table = pa.table({"tokens": [[1, 2, 3], [], None, [4]], "x": [1.5, None, 2.5, 3.5]})
    pq.write_table(table, folder / "few.parquet", row_group_size=3)
    seen = json.loads(seqflow("inspect", "few.parquet", "--batch", 2, "--json", folder=folder).stdout)
    assert (seen["rows"], seen["blocks"]) == (4, 2)
    assert seen["tensors"] == {
        "tokens.lengths": {"dtype": "int64", "shape": [], "lengths": None, "nulls": 1},
        "tokens.values": {"dtype": "int64", "shape": [], "lengths": "tokens.lengths", "nulls": 0},
        "x": {"dtype": "float64", "shape": [], "lengths": None, "nulls": 1},
    }
    assert seen["lengths"]["tokens.lengths"] == {
        "sequences": 4,
        "elements": 4,
        "shortest": 0,
        "mean": 1.0,
        "longest": 3,
        "padding": 0.5,
        "histogram": [
            {"from": 0, "to": 0, "count": 2},
            {"from": 1, "to": 1, "count": 1},
            {"from": 2, "to": 3, "count": 1},
        ],
    }


def test_inspect_prints_for_people_too(folder: Path) -> None:
    shown = seqflow("inspect", "docs.parquet", folder=folder).stdout
    assert "100 rows in 1 blocks" in shown
    assert "tokens.lengths: 100 sequences, 450 elements; 0 to 9, mean 4.5" in shown
    assert "padding batches of 256 to their longest wastes 50.0%" in shown


def test_inspect_reads_what_run_wrote(folder: Path) -> None:
    seqflow("run", "job.toml", folder=folder)
    seen = json.loads(seqflow("inspect", "out", "--json", folder=folder).stdout)
    assert seen["lengths"]["tokens.lengths"]["elements"] == 450


def test_starting_the_command_imports_nothing_heavy() -> None:
    program = "import sys, seqflow.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {
        "pyarrow.dataset",
        "pyarrow.parquet",
        "pyarrow.compute",
        "rich.progress",
        "pyarrow.lib",
    }
