"""`seqflow ledger` and `seqflow find`: what a job has seen, and the batches of its rows; `seqflow check --steps`."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow

JOB = """
[source]
paths = "docs"
[batch]
n = 4
[order]
shuffle = true
window = 700
index = "lengths.arrow"
[output]
path = "out"
"""
MIX = """
[mix]
sources = [{name = "a", paths = "docs/0.parquet", weight = 3}, {name = "b", paths = "docs/1.parquet", weight = 1}]
[batch]
n = 4
[output]
path = "out"
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "docs").mkdir()
    for number in range(2):
        table = pa.table({"t": [[row] * (row % 3) for row in range(30)]})
        pq.write_table(table, tmp_path / "docs" / f"{number}.parquet", row_group_size=10)
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "mix.toml").write_text(MIX)
    assert seqflow("index", "job.toml", folder=tmp_path).returncode == 0
    return tmp_path


def test_a_ledger_is_printed_by_source_and_by_file(folder):
    whole = seqflow("ledger", "job.toml", folder=folder)
    assert (whole.returncode, whole.stderr) == (0, "")
    assert "15 batches before batch 0 of epoch 1" in whole.stdout
    assert "60 rows, 60 tokens, 15 batches, 1.000 epochs" in whole.stdout
    found = json.loads(seqflow("ledger", "job.toml", "--upto", "3", "--json", folder=folder).stdout)
    assert (found["batches"], sum(one["rows"] for one in found["by_file"])) == (3, 12)
    by_file = seqflow("ledger", "job.toml", "--upto", "3", "--by", "file", folder=folder).stdout
    assert by_file.count(".parquet: ") == 2


def test_a_ledger_goes_up_to_a_state(folder):
    done = seqflow("ledger", "job.toml", "--json", folder=folder)
    state = folder / "state.json"
    import seqflow as sf
    from seqflow.job import Job
    from seqflow.job.row_traces import open_traceable

    loader = open_traceable(Job.read(folder / "job.toml"))
    batches = iter(loader)
    for _ in range(15):
        next(batches)
    state.write_text(json.dumps(loader.state_dict()))
    assert isinstance(loader, sf.Loader)
    found = seqflow("ledger", "job.toml", "--state", state, "--json", folder=folder)
    assert json.loads(found.stdout)["digest"] == json.loads(done.stdout)["digest"]


def test_rows_are_found_in_the_batches_that_trace_finds(folder):
    traced = json.loads(
        seqflow("trace", "job.toml", "--batch", "5", "--row", "2", "--json", folder=folder).stdout
    )
    (one,) = traced["sources"]
    row = 10 * one["block"] + one["row"]
    found = seqflow("find", "job.toml", "--file", one["file"], "--row", str(row), folder=folder)
    assert found.stdout.endswith(f"row {row}: batch 5 (row 2)\n")
    pq.write_table(
        pa.table({"file": ["docs/0.parquet"] * 30, "row": list(range(30))}), folder / "rows.parquet"
    )
    many = seqflow("find", "job.toml", "--rows", "rows.parquet", "--json", folder=folder)
    places = [place["batch"] for one in json.loads(many.stdout) for place in one["found"]]
    assert len(places) == 30
    early = seqflow("find", "job.toml", "--rows", "rows.parquet", "--upto", "4", folder=folder).stdout
    assert early.count(": batch ") == sum(place < 4 for place in places)


@pytest.mark.parametrize(
    "arguments", [(), ("--file", "docs/0.parquet"), ("--row", "1"), ("--rows", "rows.parquet", "--row", "1")]
)
def test_a_row_and_its_file_are_given_together(folder, arguments):
    done = seqflow("find", "job.toml", *arguments, folder=folder)
    assert done.returncode == 2
    assert "find: expected --file and --row, or --rows, a table with the columns file and row" in done.stderr


def test_check_prints_the_passes_of_a_mix(folder):
    done = seqflow("check", "mix.toml", "--steps", "5", folder=folder)
    assert "a: 75.00%, 5 batches, 15 rows, 0.50 passes" in done.stdout
    as_json = json.loads(seqflow("check", "mix.toml", "--steps", "5", "--json", folder=folder).stdout)
    assert [one["rows"] for one in as_json["plan"]] == [15, 5]
    refused = seqflow("check", "job.toml", "--steps", "5", folder=folder)
    assert "the job has one source, expected [mix]" in refused.stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"format": 1, "se', "is not JSON: Unterminated string"),
        (b"", "is empty"),
        (bytes(range(256)), "is not JSON: 'utf-8' codec can't decode byte 0x80"),
        (b"[" * 100_000, "is not JSON: "),
        (None, "No such file"),
    ],
    ids=["cut off", "empty", "binary", "deep", "missing"],
)
def test_a_state_that_cannot_be_read_is_named_in_one_line(folder, content, message):
    if content is not None:
        (folder / "state.json").write_bytes(content)
    done = seqflow("ledger", "job.toml", "--state", "state.json", folder=folder)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("seqflow: --state: ")
    assert "'state.json'" in done.stderr
    assert message in done.stderr
