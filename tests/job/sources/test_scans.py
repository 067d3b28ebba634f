"""Lengths for an index, and counts of keys, by workers: the files are those that one process writes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow
from marks import THOROUGH

JOB = """
[source]
paths = "in*.parquet"
[prepare]
net = "b, n = truncate(tokens.values, tokens.lengths, max_length=9)\\nreturn b, n, tag"
[batch]
kind = "tokens"
max_tokens = 100
[order]
index = "lengths.arrow"
[output]
path = "out"
[bad_rows]
policy = "skip"
"""
ENGINES = [
    pytest.param(("--workers", "2"), id="workers"),
    *([pytest.param(("--engine", "ray"), id="ray")] if THOROUGH else []),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    for part in range(3):
        columns = {
            "tokens": pa.array(
                [None if i == 7 else [*range(n)] for i, n in enumerate(draw.integers(0, 20, 500))]
            ),
            "tag": pa.array([f"tag{n}" for n in draw.zipf(1.5, 500) % 97]).dictionary_encode(),
        }
        pq.write_table(pa.table(columns), tmp_path / f"in{part}.parquet", row_group_size=40)
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


def made(folder: Path, file: str, *arguments: str) -> bytes:
    """What a command writes; removed."""
    done = seqflow(*arguments, folder=folder)
    assert done.returncode == 0, done.stderr
    content = (folder / file).read_bytes()
    (folder / file).unlink()
    return content + done.stdout.encode()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    "arguments",
    [
        ("index", "job.toml"),
        ("index", "job.toml", "--set", "order.window=600"),
        (
            "index",
            "in*.parquet",
            "--output",
            "lengths.arrow",
            "--lengths",
            "tokens",
            "--where",
            "tokens.lengths > 3",
        ),
    ],
    ids=["of a job", "of slices", "of files, filtered"],
)
def test_an_index_is_the_same_whoever_measures(
    folder: Path, arguments: tuple[str, ...], engine: tuple[str, ...]
) -> None:
    if "ray" in engine:
        pytest.importorskip("ray")
    assert made(folder, "lengths.arrow", *arguments, *engine) == made(folder, "lengths.arrow", *arguments)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("source", ["job.toml", "in*.parquet"])
def test_a_vocabulary_is_the_same_whoever_counts(folder: Path, source: str, engine: tuple[str, ...]) -> None:
    if "ray" in engine:
        pytest.importorskip("ray")
    arguments = ("build-vocabulary", source, "tag", "tags.arrow", "--min-count", "2")
    assert made(folder, "tags.arrow", *arguments, *engine) == made(folder, "tags.arrow", *arguments)


def test_an_error_of_a_worker_is_that_of_one_process(folder: Path) -> None:
    arguments = ("index", "job.toml", "--set", "bad_rows.policy=raise")
    alone, by_workers = (seqflow(*arguments, *more, folder=folder) for more in ((), ("--workers", "2")))
    assert "in0.parquet, block 0, row 7, column 'tokens'" in alone.stderr
    assert (by_workers.stderr, by_workers.returncode) == (alone.stderr, alone.returncode)
    assert not (folder / "lengths.arrow").exists()


def test_an_engine_that_is_none_is_named(folder: Path) -> None:
    done = seqflow("index", "job.toml", "--engine", "spark", folder=folder)
    assert done.returncode == 2
    assert "'spark' is not one of 'local', 'ray'" in done.stderr


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["alone", "workers"])
@pytest.mark.parametrize(
    "source", [("job.toml",), ("job.toml", "--set", "order.window=600")], ids=["blocks", "slices"]
)
def test_an_index_that_is_there_is_updated_by_files_that_are_new_or_changed(
    folder: Path, source: tuple[str, ...], workers: tuple[str, ...]
) -> None:
    def index(*more: str) -> dict[str, Any]:
        done = seqflow("index", *source, "--json", *more, *workers, folder=folder)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    assert index()["blocks_read"] == 39
    assert index()["blocks_read"] == 0
    old = pq.read_table(folder / "in0.parquet")
    pq.write_table(old.slice(0, 100), folder / "in00.parquet", row_group_size=40)  # between the others
    assert (index()["blocks_read"], index()["rows"]) == (3, 1596)
    pq.write_table(old.slice(7), folder / "in1.parquet", row_group_size=40)
    assert index()["blocks_read"] == 13
    (folder / "in0.parquet").unlink()
    assert (index()["blocks"], index()["blocks_read"]) == (29, 0)
    updated = (folder / "lengths.arrow").read_bytes()
    assert index("--anew")["blocks_read"] == 29
    assert (folder / "lengths.arrow").read_bytes() == updated
    assert seqflow("run", "job.toml", *source[1:], "--quiet", folder=folder).stderr == ""


def test_an_index_of_other_settings_is_made_anew(folder: Path) -> None:
    for more, read in [
        ((), 39),
        (("--set", "source.where=tokens.lengths > 3"), 39),
        (("--set", "prepare.net=return tokens.values, tokens.lengths, tag"), 39),
    ]:
        done = seqflow("index", "job.toml", "--json", *more, folder=folder)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["blocks_read"] == read, more
