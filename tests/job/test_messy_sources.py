"""Jobs over files of several schemas, some of them damaged: all other rows, and the same bytes however they are run."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow
from killed_jobs import DYING, start

FILES, ROWS = 200, 12
DAMAGED = {17: "cut", 60: "empty", 101: "other", 150: "page"}
KILLS = 10
WORKERS = pytest.mark.parametrize(
    "workers", [[], pytest.param(["--workers", "2"], marks=pytest.mark.slow)], ids=str
)

JOB = """
imports = ["dying"]
[source]
paths = "shards"
fill = {score = -1.0, text = "", ids = [], "ids.values" = 0}
[order]
shuffle = true
seed = 1
window = "4 KiB"
[batch]
kind = "rows"
n = 16
[net]
net = "same = die(row)"
[bad_files]
policy = "quarantine"
[bad_rows]
policy = "quarantine"
path = "o/bad.parquet"
[output]
path = "o/out"
part_bytes = 2048
"""


def values(row: int) -> dict[str, Any]:
    return {"row": row, "text": f"row {row}", "ids": list(range(row % 7)), "score": row / 4}


def schema_of(version: int) -> pa.Schema:
    """Narrow types; wide ones in another order; a later column; and one that is gone, with lists that are empty."""
    return [
        pa.schema({"row": pa.int32(), "text": pa.string(), "ids": pa.list_(pa.int32())}),
        pa.schema({"ids": pa.large_list(pa.int64()), "row": pa.int64(), "text": pa.large_string()}),
        pa.schema({"row": pa.uint16(), "text": pa.dictionary(pa.int8(), pa.string()), "ids": pa.list_(pa.int16()), "score": pa.float32()}),
        pa.schema({"score": pa.float64(), "row": pa.int64(), "ids": pa.list_(pa.null())}),
    ][version]  # fmt: skip


def expected_row(row: int, version: int) -> dict[str, Any]:
    found = values(row)
    if version < 2:
        found["score"] = -1.0
    if version == 3:
        found |= {"text": "", "ids": []}
    return found


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "page":  # of the first row group's first column, in the compressed bytes after the page header
        start = pq.ParquetFile(path).metadata.row_group(0).column(0).dictionary_page_offset or 4
        content = content[: start + 16] + b"\xff" * 40 + content[start + 56 :]
    path.write_bytes(
        {"cut": content[: len(content) // 2], "empty": b"", "other": b"no table", "page": content}[how]
    )


def write_shards(folder: Path) -> list[dict[str, Any]]:
    """Write the files and the job; return the rows that can be read, by number."""
    (folder / "shards").mkdir()
    kept = []
    for number in range(FILES):
        version, rows = number * 4 // FILES, range(number * ROWS, number * ROWS + ROWS)
        schema = schema_of(version)
        cells = [{name: values(row)[name] for name in schema.names} for row in rows]
        if version == 3:
            cells = [one | {"ids": []} for one in cells]
        path = folder / "shards" / f"{number:03}.parquet"
        pq.write_table(
            pa.Table.from_pylist(cells, schema), path, row_group_size=ROWS, write_page_checksum=True
        )
        if number in DAMAGED:
            damage(path, DAMAGED[number])
        else:
            kept += [expected_row(row, version) for row in rows]
    (folder / "dying.py").write_text(DYING)
    (folder / "job.toml").write_text(JOB)
    (folder / "o").mkdir()
    return kept


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_shards(tmp_path)
    return tmp_path


def killed(folder: Path, dies_at: int) -> None:
    """Run the job in a process that ends at a call of its net."""
    process = start(folder, "--resume", DIES_AT=str(dies_at))
    _, errors = process.communicate()
    assert process.returncode == 9, errors


def run(folder: Path, *arguments: str) -> None:
    done = seqflow("run", "job.toml", "--quiet", *arguments, folder=folder)
    assert done.returncode == 0, done.stderr


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The rows of the output, in the order of their numbers."""
    found = pq.read_table(folder / "o" / "out").sort_by("same").to_pylist()
    return [{"row" if name == "same" else name: value for name, value in row.items()} for row in found]


def output(folder: Path) -> dict[str, bytes]:
    """The files of a finished run; they are removed again."""
    paths = [path for path in (folder / "o").rglob("*") if path.is_file()]
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    shutil.rmtree(folder / "o")
    (folder / "o").mkdir()
    return found


def test_one_job_gives_all_rows_of_files_that_are_not_damaged(tmp_path: Path) -> None:
    expected = write_shards(tmp_path)
    run(tmp_path)
    assert rows_of(tmp_path) == expected
    counts = json.loads((tmp_path / "o" / "out" / "_manifest.json").read_text())["counts"]
    left_out = pq.read_table(tmp_path / "o" / "bad.parquet").to_pylist()
    assert sorted(Path(one["bad"]["file"]).name for one in left_out) == [
        f"{number:03}.parquet" for number in DAMAGED
    ]
    assert [(path, block, rows) for path, block, _, rows in counts["bad_files"]] == [
        ("shards/017.parquet", None, None), ("shards/060.parquet", None, None), ("shards/101.parquet", None, None), ("shards/150.parquet", 0, ROWS),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.thorough
def test_two_workers_give_the_same_bytes(folder: Path) -> None:
    run(folder)
    expected = output(folder)
    run(folder, "--workers", "2")
    assert output(folder) == expected


@pytest.mark.slow
def test_ten_times_killed_the_job_gives_the_same_bytes(folder: Path) -> None:
    run(folder)
    expected = output(folder)
    for kill in range(KILLS):
        killed(folder, 5 + kill)
    run(folder, "--resume", "--workers", "2")
    assert output(folder) == expected


@pytest.mark.slow
@pytest.mark.thorough
def test_ray_gives_the_same_bytes(folder: Path) -> None:
    pytest.importorskip("ray")
    run(folder)
    expected = output(folder)
    run(folder, "--engine", "ray", "--workers", "2")
    assert output(folder) == expected


@WORKERS
def test_a_cut_file_of_compressed_lines_is_left_out_whole(tmp_path: Path, workers: list[str]) -> None:
    """Keys that some files lack are null there."""
    (tmp_path / "shards").mkdir()
    expected = []
    for number in range(20):
        rows = [values(row) for row in range(number * ROWS, number * ROWS + ROWS)]
        cells = [{key: one[key] for key in (one if number % 2 else ("row", "ids"))} for one in rows]
        content = gzip.compress("".join(f"{json.dumps(one)}\n" for one in cells).encode(), mtime=0)
        if number == 7:
            content = content[:-20]
        else:
            expected += [one if number % 2 else one | {"text": "", "score": -1.0} for one in rows]
        (tmp_path / "shards" / f"{number:02}.jsonl.gz").write_bytes(content)
    (tmp_path / "dying.py").write_text(DYING)
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "o").mkdir()
    run(tmp_path, *workers)
    assert rows_of(tmp_path) == expected
