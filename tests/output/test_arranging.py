"""Outputs that are sorted by columns, or in folders by their values."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from outputs import names, write

import seqflow as sf
from seqflow.errors import JobError
from seqflow.output import FileSizes, sorted_runs
from seqflow.output.file_writer import FileWriter
from seqflow.output.sorted_runs import merge_runs, write_run
from seqflow.output.sorting import SortKey, sort_table
from seqflow.record import from_arrow, to_arrow

TABLE = pa.table(
    {
        "score": [0.5, 2.0, 0.5, -1.0, 2.0, 0.5],
        "lang": ["c", "python", "c/c++", "c", "", "c"],
        "n": range(6),
        "tokens": [[1], [], [2, 3], [4], [5], []],
    }
)
BATCHES = [from_arrow(TABLE.slice(start, 2)) for start in (0, 2, 4)]


def column(files: list[Path], name: str = "n") -> list[Any]:
    return pa.concat_tables([pq.read_table(file, partitioning=None) for file in files])[name].to_pylist()


@pytest.mark.parametrize("place", ["out", "out.parquet"])
@pytest.mark.parametrize(
    ("sort_by", "order"),
    [("score", [3, 0, 2, 5, 1, 4]), ("-score", [1, 4, 0, 2, 5, 3]), (["lang", "-n"], [4, 5, 3, 0, 2, 1])],
)
def test_all_rows_are_sorted_and_equal_ones_keep_their_order(
    tmp_path: Path, place: str, sort_by: list[str], order: list[int]
) -> None:
    files = write(tmp_path / place, BATCHES, sort_by=sort_by)
    assert column(files) == order
    assert column(files, "tokens") == [TABLE["tokens"][i].as_py() for i in order]
    assert not [name for name in names(tmp_path) if "run" in name]


def test_files_follow_each_other_in_the_order_and_are_as_large_as_asked(tmp_path: Path) -> None:
    files = write(tmp_path / "out", BATCHES, sort_by="-n", sizes=FileSizes(rows_per_file=4))
    assert [column([file]) for file in files] == [[5, 4, 3, 2], [1, 0]]
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    assert [(file["name"], file["row_groups"]) for file in manifest["files"]] == [
        ("part-00000.parquet", [0]),
        ("part-00001.parquet", [1]),
    ]


def test_partitions_are_folders_that_datasets_know(tmp_path: Path) -> None:
    files = write(tmp_path / "out", BATCHES, partition_by="lang", sort_by="score")
    assert [str(file.relative_to(tmp_path / "out")) for file in files] == [
        "lang=/part-00000.parquet",
        "lang=c/part-00001.parquet",
        "lang=c%2Fc++/part-00002.parquet",
        "lang=python/part-00003.parquet",
    ]
    assert column(files) == [4, 3, 0, 5, 2, 1]
    assert "lang" not in pq.read_schema(files[0]).names
    found = ds.dataset(tmp_path / "out", partitioning="hive", exclude_invalid_files=True).to_table()
    assert sorted(map(str, found.select(TABLE.schema.names).to_pylist())) == sorted(
        map(str, TABLE.to_pylist())
    )


def test_partitions_of_several_columns_of_any_kind_that_can_name_a_folder(tmp_path: Path) -> None:
    table = pa.table({
        "year": pa.array([2024, 2023, 2024], pa.int16()), "done": [True, False, True],
        "day": pa.array([1, 0, 1], pa.date32()), "kind": pa.array(["a", "b", "a"]).dictionary_encode(), "n": range(3),
    })  # fmt: skip
    files = write(tmp_path, [from_arrow(table)], partition_by=["year", "done", "day", "kind"], kind="arrow")
    assert [str(file.parent.relative_to(tmp_path)) for file in files] == [
        "year=2023/done=false/day=1970-01-01/kind=b",
        "year=2024/done=true/day=1970-01-02/kind=a",
    ]
    assert pa.ipc.open_file(files[1]).read_all().to_pydict() == {"n": [0, 2]}


def test_a_null_has_a_folder_of_its_own(tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([1, None, 2, None]), "n": range(4)})
    files = write(tmp_path, [from_arrow(table, valid=True)], partition_by="x", sort_by="-n")
    assert files[-1].parent.name == "x=__HIVE_DEFAULT_PARTITION__"
    assert column(files) == [0, 2, 3, 1]


def test_a_later_run_removes_the_folders_of_an_earlier_one(tmp_path: Path) -> None:
    write(tmp_path / "out", BATCHES, partition_by="lang")
    (tmp_path / "out" / "lang=python" / "notes.txt").write_text("kept")
    write(tmp_path / "out", BATCHES[:1], partition_by="n")
    assert names(tmp_path / "out") == ["_manifest.json", "lang=python", "n=0", "n=1"]
    assert names(tmp_path / "out" / "lang=python") == ["notes.txt"]


def test_data_files_of_another_origin_in_a_partition_are_refused(tmp_path: Path) -> None:
    (tmp_path / "lang=c").mkdir()
    pq.write_table(TABLE, tmp_path / "lang=c" / "x.parquet")
    with pytest.raises(JobError, match=r"holds 'lang=c/x.parquet', which _manifest.json does not list"):
        write(tmp_path, BATCHES, partition_by="lang")


def test_without_rows_there_is_an_empty_file_with_all_columns(tmp_path: Path) -> None:
    (file,) = write(tmp_path, [from_arrow(TABLE.slice(0, 0))], partition_by="lang", sort_by="n")
    assert pq.read_table(file).schema.names == TABLE.schema.names


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sort_by": "scor"}, r"sort_by has 'scor', which is not a column of the output \(did you mean 'score'\?\)"),
        ({"sort_by": "n", "columns": ["score"]}, "sort_by has 'n', which is not a column of the output"),
        ({"sort_by": "-tokens"}, r"sort_by has 'tokens', which is list<\w+: int64>, expected a column of one value"),
        ({"partition_by": "tokens"}, "partition_by has 'tokens', which is list"),
        ({"partition_by": "score"}, "partition_by has 'score', which is double, expected integers, bools"),
        ({"partition_by": "n", "columns": ["n"]}, "partition_by has all columns"),
        ({"partition_by": "n", "sort_by": ["-n"]}, "sort_by has 'n', which is already used to arrange rows"),
        ({"sort_by": ["n", "-n"]}, "sort_by has 'n', which is already used to arrange rows"),
        ({"sort_by": "-"}, "sort_by has an empty name"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_arranged_so_are_refused(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(JobError, match=message):
        write(tmp_path / "out", BATCHES, **settings)
    assert names(tmp_path) == []


def test_one_file_has_no_folders(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"partition_by makes folders, but the path '.*' is one file"):
        write(tmp_path / "x.parquet", BATCHES, partition_by="lang")


NAMES = ["k", "_k", "a/b", "a=b", "a%20b", "é", "a b", 'a"b', "a\nb", "__", "%"]
TEXTS = ["", "a", "007", "true", "null", "_", ".", "..", "a=b", "a/b", "%2F", "%", "+", " a ", "\n", "\0", "é", "漢",
         "a\\b", "__HIVE_DEFAULT_PARTITION_", "%5F_HIVE_DEFAULT_PARTITION__", "*?[x]{y}", "~", "x" * 250]  # fmt: skip


def check_round_trip(folder: Path, name: str, values: pa.Array) -> None:
    """What is partitioned by a column comes back: of its type from us, as text or integers from pyarrow."""
    table = pa.table({"row": range(len(values)), name: values})
    write(folder, [from_arrow(table, valid=True)], partition_by=name)
    provider = sf.open(folder)
    assert provider.schema.field(name).type == values.type
    rows = [row for batch in sf.Loader(folder, valid=True) for row in to_arrow(batch).to_pylist()]
    want = table.to_pylist()
    assert sorted(rows, key=lambda row: row["row"]) == want
    schema = pa.schema([("row", pa.int64()), (name, values.type)])
    found = ds.dataset(folder, partitioning=ds.partitioning(schema, flavor="hive"), format="parquet",
                       exclude_invalid_files=True).to_table()  # fmt: skip
    assert sorted(found.to_pylist(), key=lambda row: row["row"]) == want


@pytest.mark.parametrize("name", NAMES)
def test_columns_of_any_name_make_folders_that_readers_know(tmp_path: Path, name: str) -> None:
    check_round_trip(tmp_path / "out", name, pa.array(["a", "b", None]))


def test_any_text_comes_back_from_the_name_of_a_folder(tmp_path: Path) -> None:
    check_round_trip(tmp_path / "out", "k", pa.array([*TEXTS, None]))


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), max_size=20), min_size=1, max_size=6, unique=True
    )
)
def test_texts_drawn_at_random_come_back(texts: list[str]) -> None:
    with TemporaryDirectory() as folder:
        check_round_trip(Path(folder) / "out", "k", pa.array(texts))


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
)
def test_integers_of_any_width_come_back(tmp_path: Path, kind: pa.DataType) -> None:
    limits = np.iinfo(kind.to_pandas_dtype())
    check_round_trip(tmp_path / "out", "k", pa.array([int(limits.min), int(limits.max), 1, None], kind))


def test_bools_and_dates_come_back(tmp_path: Path) -> None:
    check_round_trip(tmp_path / "bools", "k", pa.array([True, False, None]))
    check_round_trip(tmp_path / "dates", "k", pa.array([0, -400000, 20000, None], pa.date32()))


def test_what_readers_would_take_for_null_is_refused_before_it_is_written(tmp_path: Path) -> None:
    table = pa.table({"k": ["a", "__HIVE_DEFAULT_PARTITION__"], "n": [1, 2]})
    with pytest.raises(JobError, match="which readers take for null"):
        write(tmp_path / "out", [from_arrow(table)], partition_by="k")
    with pytest.raises(JobError, match="expected a name without NUL"):
        write(tmp_path / "out", [from_arrow(table.rename_columns(["k\0", "n"]))], partition_by="k\0")
    assert names(tmp_path) == []


def test_a_value_that_is_too_long_for_a_folder_is_named(tmp_path: Path) -> None:
    table = pa.table({"x": ["é" * 300], "n": [1]})
    with pytest.raises(
        JobError, match=r"the folder for x = 'é+'… has a name of 602 bytes, expected at most 255"
    ):
        write(tmp_path / "out", [from_arrow(table)], partition_by="x")


numbers = st.one_of(st.none(), st.integers(-3, 3))
floats = st.one_of(st.none(), st.sampled_from([-1.5, 0.0, 2.5, float("nan"), float("inf")]))
texts = st.one_of(st.none(), st.sampled_from(["", "a", "ab", "é", "z", "\U0001f600", "\uffff"]))


@given(
    st.lists(st.lists(st.tuples(numbers, floats, texts), min_size=1, max_size=9), min_size=1, max_size=5),
    st.permutations(["i", "f", "s"]),
    st.lists(st.booleans(), min_size=3, max_size=3),
)
def test_merged_runs_are_what_a_sort_of_all_rows_gives(
    tmp_path_factory: pytest.TempPathFactory, parts: list[list[Any]], order: list[str], down: list[bool]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    keys = [SortKey(*key) for key in zip(order, down, strict=True)]
    schema = pa.schema({"i": pa.int64(), "f": pa.float64(), "s": pa.large_string(), "row": pa.int64()})
    count, paths, tables = 0, [], []
    for number, rows in enumerate(parts):
        columns = [[row[k] for row in rows] for k in range(3)] + [list(range(count, count + len(rows)))]
        tables.append(pa.table(columns, schema=schema))
        count += len(rows)
        writer = FileWriter(folder / f"run-{number}", sorted_runs.RUN)
        write_run(writer, keys, tables[-1], 0)
        paths.append(writer.temporary)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorted_runs, "FAN_IN", 2)
        merged = pa.concat_tables(merge_runs(paths, keys, folder / "run-x"))
    expected = sort_table(pa.concat_tables(tables), keys)
    assert merged["row"].to_pylist() == expected["row"].to_pylist()
    assert str(merged.to_pylist()) == str(expected.to_pylist())
    for path in paths:
        path.unlink()


@pytest.mark.slow
def test_what_is_sorted_is_never_all_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Forty runs of 64 KiB, in batches of 4 KiB, become parts of one order."""
    for name, size in {
        "seqflow.output.part_writer.RUN_BYTES": 64 << 10,
        "seqflow.output.file_writer.RUN_BATCH_BYTES": 4 << 10,
    }.items():
        monkeypatch.setattr(name, size)
    values = np.random.default_rng(0).integers(0, 1000, 300_000)
    table = pa.table({"x": values, "row": np.arange(len(values))})
    batches = [from_arrow(table.slice(start, 3000)) for start in range(0, len(values), 3000)]
    files = write(
        tmp_path / "out", batches, sort_by="x", sizes=FileSizes(row_group_bytes=100_000, part_bytes=1 << 20)
    )
    found = pa.concat_tables([pq.read_table(file) for file in files])
    np.testing.assert_array_equal(found["row"], np.argsort(values, kind="stable"))
    assert len(files) == 5
    sizes = [pq.ParquetFile(file).metadata.row_group(0).num_rows * 16 for file in files]
    assert all(50_000 < size <= 100_000 for size in sizes)
