"""The common schema of several files."""

import ast
import re
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, fs

import seqflow as sf
from seqflow.errors import DamagedFileError, OpError, ProviderError, UnknownColumnError

ITEM = pa.field("item", pa.int64(), nullable=False)
KINDS = [
    (pa.int64(), pa.int64(), 1, None),
    (pa.string(), pa.string(), "a", None),
    (pa.list_(ITEM), pa.list_(pa.int64()), [1], [None, 2]),
    (pa.large_list(ITEM), pa.large_list(pa.int64()), [1], None),
    (pa.list_(ITEM, 2), pa.list_(pa.int64(), 2), [1, 2], [None, 3]),
    (pa.struct([ITEM]), pa.struct([ITEM.with_nullable(True)]), {"item": 1}, {"item": None}),
    (pa.list_(pa.struct([ITEM])), pa.list_(pa.struct([ITEM.with_nullable(True)])), [{"item": 1}], [None]),
    (
        pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False)),
        pa.map_(pa.string(), pa.int64()),
        [("a", 1)],
        [("b", None)],
    ),
]


def write(path, kind, nullable, rows):
    schema = pa.schema([pa.field("x", kind, nullable)])
    table = pa.table([pa.array(rows, kind)], schema=schema)
    pq.write_table(table, path) if path.suffix == ".parquet" else feather.write_feather(table, path)
    return path


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize(("strict", "loose", "value", "null"), KINDS, ids=lambda one: str(one))
def test_what_may_be_null_in_one_file_may_be_null_in_all(tmp_path, suffix, strict, loose, value, null):
    one = write(tmp_path / f"a.{suffix}", strict, False, [value])
    other = write(tmp_path / f"b.{suffix}", loose, True, [null, value])
    for paths, expected in (([one, other], [value, null, value]), ([other, one], [null, value, value])):
        (batch,) = sf.Loader(paths, valid=True)
        assert sf.to_arrow(batch)["x"].to_pylist() == expected
        with pytest.raises(ProviderError, match=r"b.*null value in x"):
            list(sf.Loader(paths))
        skipping = sf.Loader(paths, bad_rows="skip")
        assert sum(batch.num_rows for batch in skipping) == 2
        assert skipping.stats().bad_rows == 1


def test_a_null_that_the_schema_of_its_own_batch_forbids_is_a_bad_row():
    schema = pa.schema([pa.field("x", pa.int64(), nullable=False)])
    batch = pa.record_batch([pa.array([1, None])], schema=schema)
    for source in (batch, pa.RecordBatchReader.from_batches(schema, [batch])):
        with pytest.raises(ProviderError, match="null value in x, which is declared not null"):
            list(sf.Loader(source, valid=True))


TWICE = pa.table([[1], [2], [3]], names=["v", "v", "w"])


def sources_of(table, folder):
    """The table as each kind of source that may have two columns of one name."""
    pq.write_table(table, folder / "a.parquet")
    (folder / "a.csv").write_text(",".join(table.schema.names) + "\n1,2,3\n")
    (folder / "hive" / "k=1").mkdir(parents=True)
    pq.write_table(table, folder / "hive" / "k=1" / "a.parquet")
    for name, form in (("a.arrow", pa.ipc.new_file), ("a.arrows", pa.ipc.new_stream)):
        with form(folder / name, table.schema) as writer:
            writer.write_table(table)
    parquet, system = str(folder / "a.parquet"), fs.LocalFileSystem()
    return {
        **{name: folder / name for name in ("a.parquet", "a.csv", "hive", "a.arrow", "a.arrows")},
        "table": table,
        "batch": table.to_batches()[0],
        "batches": table.to_batches(),
        "function": lambda: iter(table.to_batches()),
        "reader": lambda: table.to_reader(),
        "fragment": ds.ParquetFileFormat().make_fragment(parquet, system),
    }


@pytest.mark.parametrize("options", [
    {}, {"columns": ["v"]}, {"columns": ["w", "v"]}, {"where": "v == 1"}, {"where": "w == 3", "columns": ["v"]}, {"rename": {"v": "x"}},
])  # fmt: skip
def test_a_name_of_two_columns_that_is_chosen_is_an_error_in_every_kind_of_source(tmp_path, options):
    for name, source in sources_of(TWICE, tmp_path).items():
        with pytest.raises(ProviderError, match=r"two columns are called|'v' twice|is a column twice"):
            pytest.fail(f"{name}: {sf.open(source, **options)}")


def test_a_name_of_two_columns_that_is_not_chosen_is_no_error_and_all_may_be_renamed(tmp_path):
    for name, source in sources_of(TWICE, tmp_path).items():
        if name not in ("a.csv", "hive"):  # all columns of the first file are looked at
            assert sf.open(source, columns=["w"])["w"].tolist() == [3], name
            assert sf.open(source, columns=["w"], where="w == 3")["w"].tolist() == [3], name
        if name in ("a.csv", "hive", "fragment"):  # which are read by names
            continue
        found = sf.open(source, rename=["a", "b", "w"])
        assert [found[one].tolist() for one in "abw"] == [[1], [2], [3]], name


def test_a_later_file_with_a_name_twice_is_an_error(tmp_path):
    pq.write_table(pa.table({"v": [1], "w": [2]}), tmp_path / "a.parquet")
    pq.write_table(TWICE, tmp_path / "b.parquet")
    for options in ({}, {"columns": ["v"]}):
        with pytest.raises(ProviderError, match="two columns are called 'v'"):
            sf.open([tmp_path / "a.parquet", tmp_path / "b.parquet"], **options)
    assert sf.open([tmp_path / "a.parquet", tmp_path / "b.parquet"], columns=["w"])["w"].tolist() == [2, 3]


def write_all(folder: Path, **tables: Any) -> Path:
    """Write tables to Parquet files of these names."""
    for name, table in tables.items():
        pq.write_table(pa.table(table), folder / f"{name}.parquet")
    return folder


def rows_of(source: Any, **options: Any) -> list[dict[str, Any]]:
    provider = sf.open(source, **options)
    return [row for block in provider.blocks() for row in pa.table(provider.read(block)).to_pylist()]


def test_each_value_of_each_file_comes_out(tmp_path: Path) -> None:
    write_all(
        tmp_path,
        a={"id": pa.array([1, 2], pa.int32()), "x": [0.5, 1.5], "text": ["a", "b"], "doc": [{"n": 1}, None]},
        b={"text": pa.array(["c"], pa.large_string()), "id": pa.array([2**40]), "doc": [{"m": "z", "n": 2}]},
        c={"id": pa.nulls(1), "x": pa.array([2], pa.float32()), "text": pa.array(["d"]).dictionary_encode()},
    )
    provider = sf.open(tmp_path)
    assert str(provider.schema.field("id").type) == "int64"
    assert provider.schema.names == ["id", "x", "text", "doc"]
    assert rows_of(tmp_path) == [
        {"id": 1, "x": 0.5, "text": "a", "doc": {"n": 1, "m": None}},
        {"id": 2, "x": 1.5, "text": "b", "doc": None},
        {"id": 2**40, "x": None, "text": "c", "doc": {"n": 2, "m": "z"}},
        {"id": None, "x": 2.0, "text": "d", "doc": None},
    ]
    # any order of the files: the same types, and the same rows of each
    files = [tmp_path / f"{name}.parquet" for name in "cab"]
    again = sf.open(files)
    assert {one.name: one.type for one in again.schema if one.name != "doc"} == {
        one.name: one.type for one in provider.schema if one.name != "doc"
    }
    assert [row["text"] for row in rows_of(files)] == ["d", "a", "b", "c"]


def test_what_differs_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_all(tmp_path, a={"n": [1], "ID": [1], "id": [2]}, b={"n": pa.array([1], pa.int8())})
    provider = sf.open(tmp_path)
    text = repr(provider)
    assert "column 'n' is int64 in 1 of 2 files, int8 in 1 of 2 files; read as int64" in text
    assert f"column 'ID' is missing in 1 of 2 files, such as {tmp_path}/b.parquet" in text
    assert "columns 'ID' and 'id' are two columns" in text
    assert "column 'ID' is missing in 1 of 2 files" in caplog.text
    assert "'n'" not in caplog.text  # nothing is lost


def test_only_columns_that_are_read_must_agree(tmp_path: Path) -> None:
    write_all(
        tmp_path,
        a={"n": [1], "x": ["text"], "s": [{"a": 1, "b": 1}]},
        b={"x": [1], "s": [{"b": "t", "a": 2}]},
    )
    assert rows_of(tmp_path, columns=["n", "s.a"]) == [{"n": 1, "s": {"a": 1}}, {"n": None, "s": {"a": 2}}]
    with pytest.raises(
        ProviderError, match=r"column 'x' is string in .*a\.parquet, but int64 in .*b\.parquet"
    ):
        sf.open(tmp_path, columns=["x"])
    with pytest.raises(
        ProviderError, match=r"column 'x' is string in .*a\.parquet, but int64 in .*b\.parquet"
    ):
        sf.open(tmp_path, columns=["n"], where="x == 1")
    with pytest.raises(UnknownColumnError, match="there is no column 'm'"):
        sf.open(tmp_path, columns=["m"])


def test_a_field_that_a_file_lacks_is_null_in_structs_that_are_not(tmp_path: Path) -> None:
    """Of other fields nothing is read, but whether the struct is null; what is no struct is an error."""
    write_all(
        tmp_path,
        a={"x": [{"a": 1, "b": 1}, None]},
        b={"x": pa.array([None, {"b": "text"}])},
        c={
            "x": pa.array([{"c": {"d": 1}}]),
            "y": pa.array([[{"b": 1}, None]], pa.large_list(pa.struct({"b": pa.int8()}))),
        },
        d={"y": [[{"a": 1, "b": 2}], None]},
    )
    rows = [{"x": x} for x in ({"a": 1}, None, None, {"a": None}, {"a": None}, None, None)]
    assert rows_of(tmp_path, columns=["x.a"]) == rows
    assert [row["y"] for row in rows_of(tmp_path, columns=["y.a"])][-3:] == [
        [{"a": None}, None],
        [{"a": 1}],
        None,
    ]
    write_all(tmp_path, e={"x": [1]})
    with pytest.raises(
        ProviderError,
        match=r"column 'x' is struct<a: int64> in .*a\.parquet, but int64 in .*e\.parquet",
    ):
        sf.open(tmp_path, columns=["x.a"])


def test_the_first_file_decides_if_asked(tmp_path: Path) -> None:
    write_all(tmp_path, a={"n": pa.array([1], pa.int8())}, b={"n": [2, 300], "more": [1, 2]}, c={"m": [1]})
    with pytest.raises(
        ProviderError, match=r"b\.parquet, block 0, row 1, column 'n': 300 is not a value of int8"
    ):
        rows_of(tmp_path, schema="first")
    provider = sf.open(tmp_path, schema="first")
    assert provider.schema == pa.schema([("n", pa.int8())])
    bad: list[Any] = []
    tables = [provider.read(block, bad_rows=bad) for block in provider.blocks()]
    assert [table.column("n").to_pylist() for table in tables] == [[1], [2, None], [None]]
    assert [(one.row, one.column) for one in bad] == [(1, "n")]


def test_declared_types_and_the_rest_is_unified(tmp_path: Path) -> None:
    write_all(
        tmp_path, a={"i": [1.0, 7.0, None], "x": pa.array([1, 2, 3], pa.int8())}, b={"i": [2, 3], "x": [4, 5]}
    )
    with pytest.raises(ProviderError, match=r"integers.*\n.*schema=\{'i': 'float64'\}"):
        sf.open(tmp_path)
    assert rows_of(tmp_path, schema={"i": "int64"}) == [
        {"i": i, "x": x} for i, x in [(1, 1), (7, 2), (None, 3), (2, 4), (3, 5)]
    ]
    write_all(tmp_path, c={"i": [7.5, 8.0]})
    loader = sf.Loader(
        tmp_path, schema={"i": "int64"}, bad_rows="skip", fill={"i": -1, "x": 0}, batch=10, window="1 GiB"
    )
    assert [batch["i"].tolist() for batch in loader] == [[1, 7, -1, 2, 3, 8]]
    assert loader.stats().bad_rows == 1
    assert sum(loader.stats().reasons.values()) == 1
    with pytest.raises(
        ProviderError, match=r"c\.parquet, block 0, row 0, column 'i': 7.5 is not a value of int64"
    ):
        list(sf.Loader(tmp_path, schema={"i": "int64"}, fill=0, batch=10))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (
            "unfy",
            r"schema is 'unfy' \(did you mean 'unify'\?\), expected 'unify', 'first', or types by column",
        ),
        ({"m": "int64"}, "schema: there is no column 'm'"),
        ({"n": "string"}, r"column 'n' is int64 in .*a\.parquet, which cannot be read as string"),
        ({"n": "strin"}, "schema: the type of 'n'"),
        (3, "schema"),
    ],
)
def test_a_schema_that_cannot_be_is_an_error(tmp_path: Path, schema: Any, message: str) -> None:
    write_all(tmp_path, a={"n": [1]})
    with pytest.raises(ProviderError, match=message):
        sf.open(tmp_path, schema=schema)


@pytest.mark.parametrize(
    ("one", "other", "advice"),
    [
        (pa.array([1]), pa.array([1.5]), "float64"),
        (pa.array([True]), pa.array([1]), "int64"),
        (pa.array([1], pa.date32()), pa.array([1], pa.timestamp("us")), "timestamp"),
        (pa.array([1], pa.timestamp("us")), pa.array([1], pa.timestamp("us", "UTC")), "tz=UTC"),
        (pa.array([[1]]), pa.array([[1]], pa.list_(pa.int64(), 1)), "list<int64>"),
        (pa.array(["a"]), pa.array([b"a"]), "binary"),
    ],
)
def test_an_error_of_unlike_types_names_a_schema_that_reads_both(
    tmp_path: Path, one: pa.Array, other: pa.Array, advice: str
) -> None:
    write_all(tmp_path, a={"c": one}, b={"c": other})
    with pytest.raises(ProviderError, match=advice) as caught:
        sf.open(tmp_path)
    found = re.search(r"schema=(\{.*?\})", str(caught.value))
    assert found is not None
    assert len(rows_of(tmp_path, schema=ast.literal_eval(found[1]))) == 2


def test_filters_compare_by_value(tmp_path: Path) -> None:
    """Statistics are of each file's own type."""
    write_all(
        tmp_path,
        a={"n": pa.array([1, 100], pa.int8()), "t": pa.array([1, 2000], pa.timestamp("ms"))},
        b={"n": pa.array([2**40, 5]), "t": pa.array([1_000_000, 7], pa.timestamp("us"))},
        c={"t": pa.array([0, 2_000_000], pa.timestamp("us"))},
    )
    everything = rows_of(tmp_path)
    assert [row["n"] for row in rows_of(tmp_path, where="n > 50")] == [100, 2**40]
    assert rows_of(tmp_path, where="n is None") == [row for row in everything if row["n"] is None]
    late = datetime(1970, 1, 1, 0, 0, 1, 500_000)
    found = rows_of(tmp_path, where="t > '1970-01-01T00:00:01.500000'")
    assert found == [row for row in everything if row["t"] > late]
    provider = sf.open(tmp_path, where="n > 50")
    assert provider.num_rows == 2


def test_a_value_that_does_not_fit_is_a_bad_row_under_a_filter_too(tmp_path: Path) -> None:
    """Counted rows and rows read are the same, whether the filter reads the column or not."""
    write_all(tmp_path, a={"n": [1.0, 2.5, 3.0], "m": [1, 2, 3]})
    for where, kept, bad in [("m > 1", [3], 1), ("m == 1", [1], 0), ("n > 2", [3], 1), ("n < 2", [1], 1)]:
        loader = sf.Loader(tmp_path, schema={"n": "int64"}, where=where, bad_rows="skip", batch=5)
        assert loader.num_rows == len(kept) + bad
        assert [row for batch in loader for row in batch["n"].tolist()] == kept
        assert loader.stats().bad_rows == bad


@pytest.mark.parametrize("suffix", ["parquet", "arrow", "npz", "csv"])
def test_every_format_of_files_is_unified(tmp_path: Path, suffix: str) -> None:
    one, other = pa.table({"n": pa.array([1], pa.int32()), "x": [0.5]}), pa.table({"n": pa.array([2])})
    for name, table in (("a", one), ("b", other)):
        path = tmp_path / f"{name}.{suffix}"
        if suffix == "npz":
            np.savez(path, **{field: table[field].to_numpy() for field in table.schema.names})
        elif suffix == "csv":
            csv.write_csv(table, path)
        elif suffix == "arrow":
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table)
        else:
            pq.write_table(table, path)
    assert rows_of(tmp_path) == [{"n": 1, "x": 0.5}, {"n": 2, "x": None}]


def test_files_that_agree_are_read_as_before(tmp_path: Path) -> None:
    """The default changes no identity and no state of data whose files agree."""
    write_all(tmp_path, a={"n": [1], "t": ["a"]}, b={"t": ["b"], "n": [2]})
    loader = sf.Loader(tmp_path, batch=1)
    next(iter(loader))
    state = loader.state_dict()
    assert not {"schema", "bad_files", "damaged files"} & {*state["settings"], *state["data"]}
    assert state["data"]["columns"] == ["n: int64", "t: string"]
    again = sf.Loader(tmp_path, batch=1, schema="unify", bad_files="raise")
    again.load_state_dict(state)
    assert [batch["n"].tolist() for batch in again] == [[2]]


def test_another_schema_is_another_state(tmp_path: Path) -> None:
    write_all(tmp_path, a={"n": [1, 2]}, b={"n": [3, 4]})
    loader = sf.Loader(tmp_path, batch=1)
    next(iter(loader))
    with pytest.raises(OpError, match=r"columns\.n was 'int64' and is 'double' now"):
        sf.Loader(tmp_path, batch=1, schema={"n": "float64"}).load_state_dict(loader.state_dict())


def test_new_names_are_those_of_each_file(tmp_path: Path) -> None:
    write_all(tmp_path, a={"old": [1], "s": [{"x": 1}]}, b={"s": [{"y": 2}], "more": [1]})
    renamed = rows_of(tmp_path, rename={"old": "new", "s.y": "z"}, schema={"old": "int32"})
    assert renamed == [
        {"new": 1, "s": {"x": 1, "z": None}, "more": None},
        {"new": None, "s": {"x": None, "z": 2}, "more": 1},
    ]
    with pytest.raises(UnknownColumnError, match="rename: there is no column 'odl'"):
        sf.open(tmp_path, rename={"odl": "new"})


def test_partitions_are_joined_to_unified_files(tmp_path: Path) -> None:
    for part, table in (("a", {"n": pa.array([1], pa.int8())}), ("b", {"n": [2], "m": [3]})):
        (tmp_path / f"lang={part}").mkdir()
        write_all(tmp_path / f"lang={part}", x=table)
    assert rows_of(tmp_path) == [{"n": 1, "m": None, "lang": "a"}, {"n": 2, "m": 3, "lang": "b"}]


def test_a_footer_whose_schemas_disagree_on_names_is_damaged(tmp_path: Path) -> None:
    """A renamed column would be a missing one, whose values are null."""
    write_all(tmp_path, a={"tokens": [[1]], "other": [1]}, b={"tokens": [[2]], "other": [2]})
    content = (tmp_path / "b.parquet").read_bytes()
    at = content.index(b"other", len(content) - int.from_bytes(content[-8:-4], "little") - 8)
    (tmp_path / "b.parquet").write_bytes(content[:at] + b"otter" + content[at + 5 :])
    with pytest.raises(DamagedFileError, match=r"b\.parquet has a damaged footer: .*'other'.*'otter'"):
        sf.open(tmp_path)
