import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqflow.errors import JobError, ProviderError
from seqflow.output import choose_encodings, open_output
from seqflow.record import Record, from_arrow


def record(start: int, rows: int) -> Record:
    return Record({"x": np.arange(start, start + rows)}, {"x": None}, rows, None)


def write(path: Path, batches: list[Record], **settings: object) -> list[Path]:
    with open_output(path, **settings) as output:  # type: ignore[arg-type]
        for batch in batches:
            output.write(batch)
        return [file.path for file in output.finish()]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_gets_parts_and_a_manifest(tmp_path: Path) -> None:
    write(tmp_path / "out", [record(0, 5), record(5, 3)])
    assert names(tmp_path / "out") == ["_manifest.json", "part-00000.parquet"]
    assert pq.read_table(tmp_path / "out" / "part-00000.parquet")["x"].to_pylist() == list(range(8))
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    size = (tmp_path / "out" / "part-00000.parquet").stat().st_size
    assert manifest["rows"] == 8
    assert manifest["columns"] == ["x"]
    assert manifest["files"] == [{"name": "part-00000.parquet", "rows": 8, "bytes": size, "row_groups": [0]}]


def test_the_folder_reads_as_one_table(tmp_path: Path) -> None:
    write(tmp_path, [record(0, 5)], threads=2)
    assert pq.read_table(tmp_path)["x"].to_pylist() == list(range(5))


def test_a_path_that_ends_in_parquet_is_one_file(tmp_path: Path) -> None:
    write(tmp_path / "deep" / "x.parquet", [record(0, 5)])
    assert names(tmp_path / "deep") == ["x.parquet"]


@pytest.mark.parametrize("compression", [None, "none", "lz4", "zstd"])
def test_a_path_that_ends_in_arrow_is_an_arrow_file(tmp_path: Path, compression: str | None) -> None:
    write(tmp_path / "x.arrow", [record(0, 5)], compression=compression)
    assert pa.ipc.open_file(tmp_path / "x.arrow").read_all()["x"].to_pylist() == list(range(5))


def test_a_folder_of_arrow_parts(tmp_path: Path) -> None:
    write(tmp_path / "out", [record(0, 5)], kind="arrow")
    assert names(tmp_path / "out") == ["_manifest.json", "part-00000.arrow"]


def test_kind_none_writes_nothing(tmp_path: Path) -> None:
    assert write(tmp_path / "out", [record(0, 5)], kind="none") == []
    assert names(tmp_path) == []


def test_lists_come_back_as_they_were(tmp_path: Path) -> None:
    table = pa.table(
        {"tokens": pa.array([[1, 2], [], [3]]), "text": ["a", "", "c"], "m": [[[1], []], [], [[2]]]}
    )
    write(tmp_path / "x.parquet", [from_arrow(table)])
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == table.to_pylist()


def test_only_the_named_columns_are_written(tmp_path: Path) -> None:
    both = Record({"x": np.arange(3), "y": np.arange(3)}, {"x": None, "y": None}, 3, None)
    write(tmp_path / "x.parquet", [both], columns=["y"])
    assert pq.read_schema(tmp_path / "x.parquet").names == ["y"]


def test_small_batches_are_gathered_into_one_row_group(tmp_path: Path) -> None:
    write(tmp_path / "x.parquet", [record(i, 1) for i in range(500)])
    assert pq.ParquetFile(tmp_path / "x.parquet").num_row_groups == 1


def test_large_batches_are_cut_into_row_groups_of_at_most_32_mib(tmp_path: Path) -> None:
    write(tmp_path / "x.parquet", [record(0, 10_000_000), record(10_000_000, 10)])
    file = pq.ParquetFile(tmp_path / "x.parquet")
    groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert sum(groups) == 10_000_010
    assert 8 << 20 < 8 * max(groups) <= 32 << 20
    np.testing.assert_array_equal(file.read()["x"].to_numpy(), np.arange(10_000_010))


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


def test_a_large_output_rolls_over_to_further_parts_in_order(tmp_path: Path) -> None:
    batch = Record({"x": np.zeros((16 << 20) // 8, np.int64)}, {"x": None}, (16 << 20) // 8, None)
    paths = write(tmp_path / "out", [batch] * 36)
    assert [path.name for path in paths] == ["part-00000.parquet", "part-00001.parquet"]
    assert [pq.read_metadata(path).num_rows * 8 >> 20 for path in paths] == [512, 64]


def test_a_later_run_replaces_the_parts_of_an_earlier_one(tmp_path: Path) -> None:
    write(tmp_path, [record(0, 6_000_000)], threads=2)
    assert names(tmp_path) == ["_manifest.json", "part-00000.parquet", "part-00001.parquet"]
    write(tmp_path, [record(0, 1)], kind="arrow")
    assert names(tmp_path) == ["_manifest.json", "part-00000.arrow"]


def test_a_folder_with_data_files_of_another_origin_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "precious.parquet")
    with pytest.raises(JobError, match=r"precious\.parquet.*which no _manifest\.json names"):
        write(tmp_path, [record(0, 1)])
    assert names(tmp_path) == ["precious.parquet"]


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    write(tmp_path, [record(0, 1)])
    assert names(tmp_path) == ["_manifest.json", "notes.txt", "part-00000.parquet"]


class Interrupted(BaseException):
    pass


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, Interrupted])
def test_an_exception_leaves_nothing_behind_not_even_folders(
    tmp_path: Path, error: type[BaseException]
) -> None:
    def fail() -> None:
        with open_output(tmp_path / "a" / "b", threads=2) as output:
            output.write(record(0, 12_000_000))
            raise error

    with pytest.raises(error):
        fail()
    assert names(tmp_path) == []


def test_an_exception_leaves_the_earlier_output_as_it_was(tmp_path: Path) -> None:
    write(tmp_path / "out", [record(0, 5)])
    before = (tmp_path / "out" / "part-00000.parquet").read_bytes()
    with pytest.raises(JobError):
        write(tmp_path / "out", [record(0, 6_000_000), Record({"y": np.zeros(1)}, {"y": None}, 1, None)])
    assert names(tmp_path / "out") == ["_manifest.json", "part-00000.parquet"]
    assert (tmp_path / "out" / "part-00000.parquet").read_bytes() == before


def test_nothing_has_its_final_name_before_the_end(tmp_path: Path) -> None:
    with open_output(tmp_path) as output:
        output.write(record(0, 12_000_000))
        assert all(name.startswith(".") for name in names(tmp_path))
        output.finish()
    assert names(tmp_path) == ["_manifest.json", "part-00000.parquet"]


def test_a_full_disk_is_an_os_error_that_names_the_file(tmp_path: Path) -> None:
    program = """
import resource, signal, sys
import numpy as np
from seqflow.output import open_output
from seqflow.record import Record
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
noise = np.random.default_rng(0).random(4_000_000)
try:
    with open_output(sys.argv[1]) as output:
        for _ in range(8):
            output.write(Record({"x": noise}, {"x": None}, len(noise), None))
        output.finish()
except OSError as error:
    print(error)
"""
    path = tmp_path / "out" / "x.parquet"
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
    assert f"cannot write {str(path)!r}" in done.stdout
    assert "File too large" in done.stdout
    assert names(tmp_path) == []


def test_an_empty_run_leaves_a_manifest_without_files(tmp_path: Path) -> None:
    assert write(tmp_path / "out", []) == []
    assert json.loads((tmp_path / "out" / "_manifest.json").read_text())["files"] == []


def test_an_empty_run_cannot_make_one_file(tmp_path: Path) -> None:
    with pytest.raises(ProviderError, match="no batches to write"):
        write(tmp_path / "x.parquet", [])


def test_a_column_that_changes_its_type_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    wide, narrow = ({"x": np.zeros((2, n), np.int32)} for n in (3, 4))
    with pytest.raises(JobError, match=r"column 'x' is fixed_size_list(.|\n)*pad to a fixed max_length"):
        write(tmp_path / "x.parquet", [Record(t, {"x": None}, 2, None) for t in (wide, narrow)])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"path": None}, "there is no path"),
        (
            {"path": "x.parquet", "kind": "arrow"},
            "kind is 'arrow', but the path 'x.parquet' ends in '.parquet'",
        ),
        ({"path": "x.parquet", "threads": 2}, "one file is written by one thread"),
        ({"path": "x.arrow", "compression": "gzip"}, "Arrow files know none, lz4, zstd"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(JobError, match=message):
        open_output(**settings)  # type: ignore[arg-type]


def test_a_folder_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(JobError, match="is a file, expected a folder"):
        write(tmp_path / "out", [record(0, 1)])


def test_an_unknown_column_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"no column 'X'"):
        write(tmp_path, [record(0, 1)], columns=["X"])


def test_the_finished_file_is_readable_by_others(tmp_path: Path) -> None:
    write(tmp_path / "x.parquet", [record(0, 1)])
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "x.parquet").stat().st_mode & 0o777 == 0o666 & ~umask


def encoding(values: object) -> str:
    (chosen,) = choose_encodings(pa.table({"x": values})).values()
    return chosen


def test_positions_are_encoded_as_differences() -> None:
    lengths = np.random.default_rng(0).integers(1, 2048, 100)
    assert encoding(np.concatenate([np.arange(n, dtype=np.int32) for n in lengths])) == "DELTA_BINARY_PACKED"


def test_sorted_numbers_are_encoded_as_differences() -> None:
    assert encoding(np.sort(np.random.default_rng(0).integers(0, 10**12, 100_000))) == "DELTA_BINARY_PACKED"


def test_byte_tokens_segment_ids_and_random_ids_get_a_dictionary() -> None:
    random = np.random.default_rng(0)
    text = np.frombuffer(Path(__file__).read_bytes(), np.uint8).astype(np.int32)
    assert encoding(np.tile(text, 20)) == "RLE_DICTIONARY"
    assert encoding(np.repeat(np.tile(np.arange(1, 5), 50), 500)) == "RLE_DICTIONARY"
    assert encoding(random.integers(0, 50_000, 3_000_000)) == "RLE_DICTIONARY"


def test_text_and_floats_keep_the_default() -> None:
    assert encoding(["a", "b"]) == "RLE_DICTIONARY"
    assert encoding([0.0, 1.0]) == "RLE_DICTIONARY"


def test_leaves_are_found_under_every_kind_of_nesting() -> None:
    inner = pa.array([[{"a": 1, "b": [1]}], []])
    table = pa.table(
        {
            "list": inner,
            "fixed": pa.array([[1, 2], [3, 4]], pa.list_(pa.int32(), 2)),
            "map": pa.array([[("k", [1])], []], pa.map_(pa.string(), pa.list_(pa.int8()))),
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    schema = pq.ParquetFile(pa.BufferReader(sink.getvalue())).schema
    assert list(choose_encodings(table)) == [schema.column(i).path for i in range(len(schema))]


@given(st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=300))
def test_whatever_encoding_is_chosen_values_come_back(values: list[int | None]) -> None:
    table = pa.table({"x": pa.array(values, pa.int64())})
    delta = [name for name, how in choose_encodings(table).items() if how != "RLE_DICTIONARY"]
    sink = pa.BufferOutputStream()
    settings = {"use_dictionary": False, "column_encoding": {"x": "DELTA_BINARY_PACKED"}} if delta else {}
    pq.write_table(table, sink, **settings)
    assert pq.read_table(pa.BufferReader(sink.getvalue()))["x"].to_pylist() == values
