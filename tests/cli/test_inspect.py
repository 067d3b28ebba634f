"""`seqflow inspect`."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from command import seqflow


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


def test_inspect_counts_the_nulls_of_fixed_size_lists(folder: Path) -> None:
    pairs = pa.array([[1, 2], [3, None], None], pa.list_(pa.int32(), 2))
    pq.write_table(pa.table({"pairs": pairs}), folder / "pairs.parquet")
    seen = json.loads(seqflow("inspect", "pairs.parquet", "--json", folder=folder).stdout)
    assert seen["tensors"]["pairs"] == {"dtype": "int32", "shape": [2], "lengths": None, "nulls": 3}


def test_inspect_reads_a_quarantine_file(folder: Path) -> None:
    pq.write_table(pa.table({"tokens": [[1, None], [2]]}), folder / "docs.parquet")
    bad = ("--set", "bad_rows={policy='quarantine', path='bad.parquet'}")
    assert seqflow("run", "job.toml", *bad, folder=folder).returncode == 0
    seen = json.loads(seqflow("inspect", "bad.parquet", "--json", folder=folder).stdout)
    assert (seen["rows"], seen["tensors"]["tokens.values"]["nulls"]) == (1, 1)
    assert "bad.reason.values" in seen["tensors"]
