"""Folders of part files and their manifest."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from outputs import names, record, write

from seqflow.errors import JobError
from seqflow.output import open_output


def test_a_folder_gets_parts_and_a_manifest(tmp_path: Path) -> None:
    write(tmp_path / "out", [record(0, 5), record(5, 3)])
    assert names(tmp_path / "out") == ["_manifest.json", "part-00000.parquet"]
    assert pq.read_table(tmp_path / "out" / "part-00000.parquet")["x"].to_pylist() == list(range(8))
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    size = (tmp_path / "out" / "part-00000.parquet").stat().st_size
    assert manifest["rows"] == 8
    assert manifest["columns"] == ["x"]
    content = (tmp_path / "out" / "part-00000.parquet").read_bytes()
    assert manifest["files"] == [
        {
            "name": "part-00000.parquet",
            "rows": 8,
            "bytes": size,
            "row_groups": [0],
            "sha256": hashlib.sha256(content).hexdigest(),
            "sha256_of_ends": hashlib.sha256(content + content).hexdigest(),
        }
    ]


def test_the_folder_reads_as_one_table(tmp_path: Path) -> None:
    write(tmp_path, [record(0, 5)], threads=2)
    assert pq.read_table(tmp_path)["x"].to_pylist() == list(range(5))


def test_a_folder_of_arrow_parts(tmp_path: Path) -> None:
    write(tmp_path / "out", [record(0, 5)], kind="arrow")
    assert names(tmp_path / "out") == ["_manifest.json", "part-00000.arrow"]


@pytest.mark.slow
def test_with_threads_row_groups_go_to_parts_in_turn_and_the_manifest_tells_their_order(
    tmp_path: Path,
) -> None:
    write(tmp_path / "out", [record(0, 12_000_000)], threads=2)
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    groups = {}
    for file in manifest["files"]:
        part = pq.ParquetFile(tmp_path / "out" / file["name"])
        groups |= {number: part.read_row_group(i)["x"] for i, number in enumerate(file["row_groups"])}
    assert [file["row_groups"][:2] for file in manifest["files"]] == [[0, 2], [1, 3]]
    in_order = np.concatenate([groups[number].to_numpy() for number in sorted(groups)])
    np.testing.assert_array_equal(in_order, np.arange(12_000_000))


def test_a_commit_begins_the_next_file(tmp_path: Path) -> None:
    with open_output(tmp_path / "out") as output:
        for start in range(0, 1100, 100):
            output.write(record(start, 100))
            if start % 500 == 400:
                output.commit()
        files = output.finish()
    assert [file.path.name for file in files] == [f"part-0000{i}.parquet" for i in range(3)]
    assert [file.num_rows for file in files] == [500, 500, 100]
    assert pq.read_table(tmp_path / "out")["x"].to_pylist() == list(range(1100))


def test_a_later_run_replaces_the_parts_of_an_earlier_one(tmp_path: Path) -> None:
    write(tmp_path, [record(0, 6_000_000)], threads=2)
    assert names(tmp_path) == ["_manifest.json", "part-00000.parquet", "part-00001.parquet"]
    write(tmp_path, [record(0, 1)], kind="arrow")
    assert names(tmp_path) == ["_manifest.json", "part-00000.arrow"]


def test_a_folder_with_data_files_of_another_origin_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "precious.parquet")
    with pytest.raises(JobError, match=r"precious\.parquet.*which _manifest\.json does not list"):
        write(tmp_path, [record(0, 1)])
    assert names(tmp_path) == ["precious.parquet"]


def test_a_manifest_that_names_other_files_removes_none(tmp_path: Path) -> None:
    write(tmp_path / "out", [record(0, 1)])
    manifest = tmp_path / "out" / "_manifest.json"
    content = json.loads(manifest.read_text())
    (tmp_path / "out" / "notes.txt").write_text("mine")
    manifest.write_text(json.dumps({**content, "files": [{**content["files"][0], "name": "notes.txt"}]}))
    with pytest.raises(JobError, match=r"part-00000\.parquet.*which _manifest\.json does not list"):
        write(tmp_path / "out", [record(0, 1)])
    assert "notes.txt" in names(tmp_path / "out")


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    write(tmp_path, [record(0, 1)])
    assert names(tmp_path) == ["_manifest.json", "notes.txt", "part-00000.parquet"]


def test_an_empty_run_leaves_a_manifest_without_files(tmp_path: Path) -> None:
    assert write(tmp_path / "out", []) == []
    assert json.loads((tmp_path / "out" / "_manifest.json").read_text())["files"] == []


def test_a_folder_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(JobError, match="is a file, expected a folder"):
        write(tmp_path / "out", [record(0, 1)])
