"""Commands on data with damaged files, rows that cannot be read, and files that differ."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow


@pytest.mark.parametrize("command", [("inspect",), ("report", "-o", "r.html")])
def test_all_damaged_files_and_blocks_are_listed(shards: Path, command: tuple[str, ...]) -> None:
    done = seqflow(*command, "shards", folder=shards.parent)
    assert done.returncode == 1, done.stderr
    first, second = [line for line in done.stdout.splitlines() if line.startswith("damaged: ")]
    assert first.startswith("damaged: shards/2.parquet: is not a Parquet file, or damaged")
    assert second.startswith("damaged: shards/3.parquet, block 1 (5 rows): row group 1 can't be read")
    assert "--bad-files skip" in done.stdout.splitlines()[-1]


def test_damaged_files_that_are_left_out_are_listed_and_no_error(shards: Path) -> None:
    done = seqflow("inspect", "shards", "--json", "--bad-files", "skip", folder=shards.parent)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["rows"] == 25
    assert [(one["path"], one["block"], one["rows"]) for one in seen["bad_files"]] == [
        ("shards/2.parquet", None, None),
        ("shards/3.parquet", 1, 5),
    ]
    assert seen["bad_rows"] == {"count": 0, "reasons": []}


def test_raise_stops_at_the_first_damaged_file(shards: Path) -> None:
    done = seqflow("inspect", "shards", "--bad-files", "raise", folder=shards.parent)
    assert (done.returncode, done.stdout) == (1, "")
    assert "shards/2.parquet is not a Parquet file" in done.stderr


def test_bad_rows_are_listed_by_reason_with_the_first_place_of_each(lines: Path) -> None:
    done = seqflow("inspect", lines.name, "--json", folder=lines.parent)
    assert done.returncode == 1
    seen = json.loads(done.stdout)
    assert (seen["rows"], seen["bad_rows"]["count"]) == (4997, 3)
    of_type, broken = seen["bad_rows"]["reasons"]
    assert (of_type["rows"], of_type["file"], of_type["row"], of_type["column"]) == (
        2,
        "lines.jsonl",
        3000,
        "tokens",
    )
    assert "'tokens' is not a list" in of_type["reason"]
    assert (broken["rows"], broken["row"]) == (1, 3500)
    shown = seqflow("inspect", lines.name, "--bad-rows", "skip", folder=lines.parent)
    assert shown.returncode == 0
    assert "2 bad rows: tokens: … is not a list" in shown.stdout
    assert "  first: lines.jsonl, block 0, row 3000: line 3001, column " in shown.stdout
    assert "1 bad row: expected one whole object, {…}, in the line\n" in shown.stdout
    assert "  first: lines.jsonl, block 0, row 3500: line 3501, column 1\n" in shown.stdout
    stopped = seqflow("inspect", lines.name, "--bad-rows", "raise", folder=lines.parent)
    assert (stopped.returncode, stopped.stdout) == (1, "")
    assert "row 3000" in stopped.stderr


def test_the_page_has_the_same(lines: Path) -> None:
    done = seqflow("report", lines.name, folder=lines.parent)
    assert done.returncode == 1
    page = (lines.parent / "report.html").read_text()
    assert "3 rows cannot be read" in page
    assert "3,500" in page
    again = seqflow("report", lines.name, "--bad-rows", "skip", "--overwrite", folder=lines.parent)
    assert again.returncode == 0, again.stderr


JOB = """
[source]
paths = "{}"
columns = ["tokens"]
[prepare]
net = '''
t.values, t.lengths = truncate(tokens.values, tokens.lengths, max_length=1)
return t.values, t.lengths
'''
"""


def test_a_job_has_its_own_policies(shards: Path) -> None:
    folder = shards.parent
    (folder / "job.toml").write_text(JOB.format("shards"))
    refused = seqflow("report", "job.toml", "--bad-files", "skip", folder=folder)
    assert refused.returncode == 2
    assert "--set bad_files.policy=skip" in refused.stderr
    done = seqflow("report", "job.toml", folder=folder)
    assert done.returncode == 1, done.stderr
    assert done.stdout.count("\ndamaged: ") == 2
    assert "Where a run stops" in (folder / "report.html").read_text()
    skips = ("--set", "bad_files.policy=skip", "--overwrite")
    done = seqflow("report", "job.toml", *skips, folder=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\ndamaged: ") == 2


def test_the_page_of_a_job_has_the_lengths_of_prepared_rows(folder: Path) -> None:
    (folder / "job.toml").write_text(JOB.format("docs.parquet"))
    assert seqflow("report", "job.toml", folder=folder).returncode == 0
    _, prepared = (folder / "report.html").read_text().split("<h2>Prepared: t.lengths</h2>")
    assert "<p>100 sequences, 90 elements.</p>" in prepared.split("</section>")[0]


def test_inspect_says_which_files_differ_and_what_comes_out(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": pa.array([1], pa.int32())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"n": pa.array([2], pa.int64()), "x": [0.5]}), tmp_path / "b.parquet")
    done = seqflow("inspect", ".", "--json", folder=tmp_path)
    notes = json.loads(done.stdout)["notes"]
    assert "column 'n' is int32 in 1 of 2 files, int64 in 1 of 2 files; read as int64" in notes
    assert any(note.startswith("column 'x' is missing in 1 of 2 files") for note in notes)
    assert notes[0] in seqflow("inspect", ".", folder=tmp_path).stdout
    first = json.loads(seqflow("inspect", ".", "--json", "--schema", "first", folder=tmp_path).stdout)
    assert list(first["tensors"]) == ["n"]
    of_types = seqflow("inspect", ".", "--json", "--schema", "n=float64", folder=tmp_path)
    assert json.loads(of_types.stdout)["tensors"]["n"]["dtype"] == "float64"


@pytest.mark.parametrize("rule", ["x", "=int64", "n="])
def test_a_schema_is_a_rule_or_types(folder: Path, rule: str) -> None:
    done = seqflow("inspect", "docs.parquet", "--schema", rule, folder=folder)
    assert done.returncode == 2
    assert "expected unify or first, or NAME=TYPE" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("--workers", 1)])
def test_a_vocabulary_of_damaged_files(shards: Path, workers: tuple[object, ...]) -> None:
    command = ("build-vocabulary", "shards", "tokens", "v.arrow", "--json", *workers)
    stopped = seqflow(*command, folder=shards.parent)
    assert stopped.returncode == 1
    assert "--bad-files skip leaves out damaged files" in stopped.stderr
    done = seqflow(*command, "--bad-files", "skip", folder=shards.parent)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert (seen["keys"], [one["block"] for one in seen["bad_files"]]) == (25, [None, 1])


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("--workers", 1)])
def test_a_vocabulary_of_lines_of_which_some_are_bad(lines: Path, workers: tuple[object, ...]) -> None:
    command = ("build-vocabulary", lines.name, "id", "v.arrow", *workers)
    assert seqflow(*command, folder=lines.parent).returncode == 1
    done = seqflow(*command, "--bad-rows", "skip", folder=lines.parent)
    assert done.returncode == 0, done.stderr
    assert "bad rows   3 left out" in done.stdout


def test_a_tokenizer_of_damaged_files_and_of_bad_lines(shards: Path, lines: Path) -> None:
    options = ("--column", "text", "--vocab-size", 260, "--overwrite", "--json", "--output", "t.json")
    assert seqflow("train-tokenizer", "shards", *options, folder=shards.parent).returncode == 1
    done = seqflow("train-tokenizer", "shards", *options, "--bad-files", "skip", folder=shards.parent)
    seen = json.loads(done.stdout)
    assert (seen["texts"], len(seen["bad_files"])) == (25, 2)
    done = seqflow("train-tokenizer", lines.name, *options, "--bad-rows", "skip", folder=lines.parent)
    assert json.loads(done.stdout)["bad_rows"] == 3


@pytest.mark.parametrize("workers", [(), ("--workers", 1)])
def test_an_index_of_messy_data(shards: Path, lines: Path, workers: tuple[object, ...]) -> None:
    options = ("--lengths", "tokens", "--json", *workers)
    done = seqflow("index", "shards", *options, "--bad-files", "skip", folder=shards.parent)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == 25
    assert seqflow("index", lines.name, *options, folder=lines.parent).returncode == 1
    done = seqflow("index", lines.name, *options, "--bad-rows", "skip", folder=lines.parent)
    assert json.loads(done.stdout)["rows"] == 4997
