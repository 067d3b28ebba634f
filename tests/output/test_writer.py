"""Batches become files."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from outputs import names, record, write

from seqflow.errors import JobError, ProviderError
from seqflow.output import open_output
from seqflow.record import Record, from_arrow


def test_a_path_that_ends_in_parquet_is_one_file(tmp_path: Path) -> None:
    write(tmp_path / "deep" / "x.parquet", [record(0, 5)])
    assert names(tmp_path / "deep") == ["x.parquet"]


@pytest.mark.parametrize("compression", [None, "none", "lz4", "zstd"])
def test_a_path_that_ends_in_arrow_is_an_arrow_file(tmp_path: Path, compression: str | None) -> None:
    write(tmp_path / "x.arrow", [record(0, 5)], compression=compression)
    assert pa.ipc.open_file(tmp_path / "x.arrow").read_all()["x"].to_pylist() == list(range(5))


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
    write(tmp_path / "x.parquet", [record(0, 5_000_000), record(5_000_000, 10)])
    file = pq.ParquetFile(tmp_path / "x.parquet")
    groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    assert sum(groups) == 5_000_010
    assert 8 << 20 < 8 * max(groups) <= 32 << 20
    np.testing.assert_array_equal(file.read()["x"].to_numpy(), np.arange(5_000_010))


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


def test_an_unknown_column_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"no column 'X'"):
        write(tmp_path, [record(0, 1)], columns=["X"])


def test_the_finished_file_is_readable_by_others(tmp_path: Path) -> None:
    write(tmp_path / "x.parquet", [record(0, 1)])
    umask = os.umask(0)
    os.umask(umask)
    assert (tmp_path / "x.parquet").stat().st_mode & 0o777 == 0o666 & ~umask


def test_a_name_in_braces_in_a_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"\{date\} in '.*out/\{date\}' stands for nothing"):
        open_output(tmp_path / "out/{date}")
    assert names(tmp_path) == []
