"""`seqflow index`: batches are counted before anything is read."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from command import seqflow

import seqflow as sf


def test_the_index_of_a_folder_serves_its_loaders(folder: Path) -> None:
    data = folder / "data"
    data.mkdir()
    (folder / "docs.parquet").rename(data / "docs.parquet")
    done = seqflow("index", data, "--json")
    assert done.returncode == 0, done.stderr
    index = data / ".docs.parquet.lengths.arrow"
    assert json.loads(done.stdout) == {
        "blocks": 1, "blocks_read": 1, "rows": 100, "tokens": 450, "file": str(index),
    }  # fmt: skip
    for plan in (sf.TokenBudget(20), sf.Packed(32), sf.Buckets([4], sf.TokenBudget(30))):
        written = index.stat().st_mtime_ns
        loader = sf.Loader(data, batch=plan, index=True, columns=["tokens"])
        assert len(loader) == len(list(loader))
        assert index.stat().st_mtime_ns == written


def test_the_index_of_a_job_is_where_it_says(folder: Path) -> None:
    missing = seqflow("index", folder / "job.toml")
    assert missing.returncode == 2
    assert "the job has no index" in missing.stderr
    done = seqflow("index", "job.toml", "--set", 'order.index="lengths.arrow"', folder=folder)
    assert done.returncode == 0, done.stderr
    assert "rows          100" in done.stdout
    table = pa.ipc.open_file(folder / "lengths.arrow").read_all()
    assert table.column_names == ["file", "block", "start", "rows", "lengths"]


def test_an_index_is_made_anew_and_of_one_column(folder: Path) -> None:
    pq.write_table(pa.table({"a": [[1, 2], [3]], "b": [[1], []]}), folder / "docs.parquet")
    ambiguous = seqflow("index", folder / "docs.parquet")
    assert ambiguous.returncode == 2
    assert "there is not just one list column of numbers" in ambiguous.stderr
    for column, tokens in (("a", 3), ("b", 1)):
        done = seqflow("index", folder / "docs.parquet", "--lengths", column, "--json")
        assert json.loads(done.stdout)["tokens"] == tokens


def test_an_index_takes_the_place_of_nothing_else(folder: Path) -> None:
    content = (folder / "docs.parquet").read_bytes()
    for output in ("docs.parquet", "link"):
        if output == "link":
            (folder / output).symlink_to("docs.parquet")
        done = seqflow("index", "docs.parquet", "--lengths", "tokens", "--output", output, folder=folder)
        assert done.returncode == 1
        assert "a file that is read" in done.stderr
    assert (folder / "docs.parquet").read_bytes() == content


def test_tokens_are_the_lengths_without_the_groups(folder: Path) -> None:
    table = pa.table({"tokens": [[1] * (n % 10) for n in range(100)], "group": [n // 4 for n in range(100)]})
    pq.write_table(table, folder / "docs.parquet")
    arguments = [
        "--output",
        "lengths.arrow",
        "--set",
        "order.by=group",
        "--set",
        "order.shuffle=true",
        "--json",
    ]
    done = seqflow("index", "job.toml", *arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["tokens"] == 450
