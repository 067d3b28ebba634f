"""Filters (`where=`) on every kind of source: the rows that Arrow keeps, and no others."""

import json
import pickle
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import FilterError, ProviderError, ProviderOptionError, UnknownColumnError
from seqflow.providers import Block, Provider

ROWS = 60
TABLE = pa.table(
    {
        "id": np.arange(ROWS),
        "lang": ["py", "c", None, "go", "p'y"] * (ROWS // 5),
        "score": pa.array([None, 0.5, float("nan"), -1.0] * (ROWS // 4)),
        "tokens": [None if n % 11 == 0 else [n] * (n % 7) for n in range(ROWS)],
        "doc": pa.array(  # the order of inferred fields depends on Arrow
            [None if n % 13 == 0 else {"size": n % 9, "name": f"n{n % 4}"} for n in range(ROWS)],
            pa.struct({"size": pa.int64(), "name": pa.string()}),
        ),
    }
)
SPLIT = [TABLE.slice(start, 7) for start in range(0, ROWS, 7)]
FILTERS = {
    "lang == 'py'": pc.field("lang") == "py",
    "not lang == 'py'": ~(pc.field("lang") == "py"),
    "lang in ['py', 'go'] and id >= 20": pc.field("lang").isin(["py", "go"]) & (pc.field("id") >= 20),
    "lang not in ['py', 'go']": pc.field("lang").is_valid() & ~pc.field("lang").isin(["py", "go"]),
    "lang == None": pc.field("lang").is_null(),
    "score < 0.7 or lang is None": (pc.field("score") < 0.7) | pc.field("lang").is_null(),
    "not (score <= 0)": ~(pc.field("score") <= 0),
    "tokens.lengths > 3": pc.list_value_length(pc.field("tokens")) > 3,
    "doc.name == 'n1' and lengths(tokens) != 2": (pc.field("doc", "name") == "n1")
    & (pc.list_value_length(pc.field("tokens")) != 2),
    "doc.size + id > 40": (pc.field("doc", "size") + pc.field("id")) > 40,
    "id > 1000": pc.field("id") > 1000,
}


def in_parquet(folder: Path) -> Any:
    pq.write_table(TABLE, folder / "a.parquet", row_group_size=7)
    return folder / "a.parquet"


def in_arrow(folder: Path) -> Any:
    with pa.ipc.new_file(folder / "a.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE, max_chunksize=7)
    return folder / "a.arrow"


def in_json_lines(folder: Path) -> Any:
    rows = [
        {**row, "score": row["score"] if row["score"] == row["score"] else None} for row in TABLE.to_pylist()
    ]
    (folder / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "a.jsonl"


def in_a_dataset(folder: Path) -> Any:
    return ds.dataset(in_parquet(folder))


def in_a_fragment(folder: Path) -> Any:
    return next(ds.dataset(in_arrow(folder), format="ipc").get_fragments())


SOURCES: dict[str, Callable[[Path], Any]] = {
    "Parquet": in_parquet,
    "Arrow": in_arrow,
    "JSON lines": in_json_lines,
    "memory": lambda folder: pa.concat_tables(SPLIT),
    "dataset": in_a_dataset,
    "fragment": in_a_fragment,
    "stream": lambda folder: pa.RecordBatchReader.from_batches(
        TABLE.schema, TABLE.to_batches(max_chunksize=7)
    ),
    "function": lambda folder: lambda: iter(SPLIT),
}


def read(provider: Provider) -> pa.Table:
    tables = [pa.table(provider.read(block)) for block in provider.blocks()]
    return pa.concat_tables([one.cast(provider.schema) for one in tables])


@pytest.mark.slow
@pytest.mark.parametrize("kind", SOURCES)
def test_a_source_has_the_rows_that_arrow_keeps(kind: str, tmp_path: Path) -> None:
    for text, expression in FILTERS.items():
        expected = TABLE.filter(expression)
        source = SOURCES[kind](tmp_path)
        if kind == "JSON lines" and "score" in text:  # JSON has no NaN
            continue
        found = sf.open(source, columns=["tokens", "id"], where=text)
        assert found.columns == ("tokens", "id")
        if kind not in ("stream", "function", "JSON lines"):
            assert (
                len(found)
                == sum(block.num_rows or 0 for block in found.blocks(counted=True))
                == expected.num_rows
            )
        assert read(found).equals(expected.select(["tokens", "id"])), text


def test_two_spellings_are_one_filter() -> None:
    texts = ["lang == 'py' and id > 5", 'id>5.0 and (lang == "py")', "'py' == lang & (5 < id)"]
    one = sf.open(TABLE, where="lang == 'py' and 5 < id").where
    assert one is not None
    assert sf.open(TABLE, where='(lang=="py") & (id>5)').where == one
    assert sf.open(TABLE, where=texts[1]).where != one
    assert sf.open(TABLE, where="id in [1, 2]").where != sf.open(TABLE, where="id in [1, 3]").where
    many = [sf.open(TABLE, where=f"id in {[*range(3000), last]}").where for last in (0, 1, 0)]
    assert many[0] == many[2]
    assert many[0].text != many[1].text  # type: ignore[union-attr]


def test_names_are_those_of_the_source() -> None:
    rename = {"lang": "id", "id": "n", "doc.name": "title", "doc": "d"}
    found = sf.open(TABLE, rename=rename, columns=["n", "d.size"], where="lang == 'c' and doc.name == 'n1'")
    expected = TABLE.filter((pc.field("lang") == "c") & (pc.field("doc", "name") == "n1"))
    assert found["n"].tolist() == expected["id"].to_pylist()
    assert found.schema.field("d").type.names == ["size"]
    with pytest.raises(UnknownColumnError, match="where: there is no column 'n'"):
        sf.open(TABLE, rename=rename, where="n == 1")
    dotted = pa.table({"a.b": [1, 2, 3], "a b": [1, 2, 3]})
    assert sf.open(dotted, rename={"a.b": "ab"}, columns=["ab"], where="a.b > 1")["ab"].tolist() == [2, 3]
    assert sf.open(dotted, columns=["a b"], where="`a b` > 1")["a b"].tolist() == [2, 3]
    with pytest.raises(FilterError, match="give rename as a mapping"):
        sf.open(dotted, rename=["x", "y"], where="x > 1")


TYPED = pa.table(
    {
        "u8": pa.array([0, 255, None], pa.uint8()),
        "u64": pa.array([0, 2**64 - 1, None], pa.uint64()),
        "i64": pa.array([-(2**63), 2**53 + 1, None], pa.int64()),
        "f32": pa.array([0.1, float("nan"), None], pa.float32()),
        "f16": pa.array(np.array([0.5, 2.0, 4.0], np.float16)),
        "dec": pa.array([Decimal("1.50"), Decimal("-3.25"), None], pa.decimal128(10, 2)),
        "flag": [True, False, None],
        "day": [date(2024, 1, 31), date(1969, 12, 31), None],
        "at": pa.array([datetime(2024, 1, 31, 12), datetime(1969, 1, 1), None], pa.timestamp("us")),
        "utc": pa.array([datetime(2024, 1, 31, 12), datetime(1969, 1, 1), None], pa.timestamp("ms", "UTC")),
        "time": pa.array([1, 43200, None], pa.time32("s")),
        "code": pa.array(["py", "c", None]).dictionary_encode(),
        "view": pa.array(["py", "c", None], pa.string_view()),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["py", "c"])),
        "bytes": [b"\xff", b"", None],
        "map": pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int64())),
        "views": pa.array([[1], [], None], pa.list_view(pa.int64())),
        "row": [0, 1, 2],
    }
)
KEPT = {
    "u8 < 300": [0, 1],
    "u8 == 300": [],
    "u8 != 300": [0, 1],
    f"u8 < 1{'0' * 290} and u8 != 1{'0' * 290}": [0, 1],
    f"u8 < 1{'0' * 390} and dec < 1{'0' * 20}": [0, 1],
    f"f32 < 1{'0' * 290} and f32 * 2 < 1{'0' * 290}": [0],
    "not u8 < 300": [],
    "u8 > -1": [0, 1],
    "u8 >= 254.5": [1],
    "u8 in [255, 300, -1, 0.5]": [1],
    "u64 > 9223372036854775807": [1],
    "u64 == 18446744073709551615": [1],
    "u64 > -1": [0, 1],
    "u64 < inf": [0, 1],
    "i64 == 9007199254740992.0": [],
    "i64 > 9007199254740992.0": [1],
    "i64 < -1e300": [],
    "i64 != nan": [0, 1],
    "f32 == 0.1": [0],
    "f32 in [0.1]": [0],
    "f32 != 0.1": [1],
    "f32 < 1e300": [0],
    "f16 > 1": [1, 2],
    "dec > 1.25": [0],
    "dec == 1.5": [0],
    "dec in [1.5, -3.25]": [0, 1],
    "dec < 0": [1],
    "flag": [0],
    "not flag": [1],
    "flag == False": [1],
    "flag != None": [0, 1],
    "day >= '2024-01-31'": [0],
    "day in ['1969-12-31']": [1],
    "at > '2024-01-31T11:59:59.5'": [0],
    "at == '2024-01-31 12:00:00'": [0],
    "utc < '2024-01-01T00:00:00Z'": [1],
    "utc == '2024-01-31T13:00:00+01:00'": [0],
    "time == '12:00:00'": [1],
    "code == 'py'": [0],
    "code in ['c', 'go']": [1],
    "code.lengths == 1": [1],
    "view == 'py' or view == 'c'": [0, 1],
    "view.lengths == 2": [0],
    "runs == 'py'": [0, 1],
    "runs in ['c']": [2],
    "bytes == 'x'": [],
    "bytes.lengths == 1": [0],
    "map.lengths > 0": [0],
    "views.lengths == 0": [1],
    "abs(i64) > 5 or u8 == 0": "overflow",
    "f32 * 2 < 1": [0],
    "u8 / 2 == 127.5": [1],
    "u8 - 1 < 0": [0],
    "i64 / 2 > 4e15": [1],
    "i64 * 0.5 < -4e18": [0],
}


@pytest.mark.parametrize("text", KEPT)
def test_values_of_any_type_are_compared_exactly(text: str) -> None:
    if KEPT[text] == "overflow":
        with pytest.raises(ProviderError, match=r"where: .*overflow"):
            read(sf.open(TYPED, columns=["row"], where=text))
        return
    assert sf.open(TYPED, columns=["row"], where=text)["row"].tolist() == KEPT[text]
    if KEPT[text]:
        whole = read(sf.open(TYPED, where=text))
        assert repr(whole.to_pylist()) == repr([TYPED.to_pylist()[row] for row in KEPT[text]])


REFUSED = {
    "langg == 'py'": "where: there is no column 'langg' (did you mean 'lang'?); there are id, lang",
    "doc.nam == 'x'": "has no field 'nam' (did you mean 'name'?)",
    "id == 'py'": "id is int64 and does not compare with the literal 'py'",
    "lang > 5": "lang is string and does not compare with the literal 5",
    "lang == id": "lang is string and does not compare with id, which is int64",
    "id == True": "id is int64 and does not compare with the literal True",
    "id": "id is int64, expected a condition\n  id\n  ^\n  compare it: id == …",
    "id + 1": "'+' is int64, expected a condition",
    "tokens > 3": "which is not compared\n  tokens > 3\n  ^\n  its lengths can be compared: tokens.lengths > 30",
    "doc == 1": "its fields can be compared: doc.size == …",
    "lengths(id) > 1": "int64 has no lengths, expected lists or texts",
    "lengths(tokens, id) > 1": "lengths takes 1 argument, found 2",
    "id // 2 == 0": "a filter has no '//', expected lengths, hash, +, -, *, /, %, abs",
    "sqrt(id) > 1": "other functions are for keep=, prepare= and net=, which get the rows that are kept",
    "lang + 1 > 2": "lang is string, expected numbers",
    "1 == 1": "the filter names no column",
    "1 == 1 and id > 2": "this compares two literals, expected a column on one side",
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_filter_that_does_not_fit_the_columns_is_refused(text: str) -> None:
    with pytest.raises(ProviderError) as caught:
        sf.open(TABLE, where=text)
    assert REFUSED[text] in str(caught.value)


def test_times_are_written_as_the_column_has_them() -> None:
    for text, form in {
        "day == 'x'": "dates are written '2024-01-31'",
        "at > '2024-01-01T00:00:00Z'": "times are written '2024-01-31T12:30:00'",
        "utc > '2024-01-01'": "times are written '2024-01-31T12:30:00Z'",
        "utc == '2024-01-01T00:00:00.0001Z'": "in at most the column's precision",
        "time > 'noon'": "times of day are written '12:30:00'",
        "at == utc": "at is timestamp[us] and does not compare with utc",
    }.items():
        with pytest.raises(FilterError) as caught:
            sf.open(TYPED, where=text)
        assert form in str(caught.value)


def test_other_objects_than_filters_are_refused() -> None:
    with pytest.raises(FilterError, match="where is a function, expected text") as caught:
        sf.open(TABLE, where=lambda row: row["id"] > 1)
    assert "rows are chosen by a function in prepare=" in str(caught.value)
    for where in (5, True, ["id > 1"], [("id", ">", 1)], b"id > 1"):
        with pytest.raises(FilterError, match="expected text"):
            sf.open(TABLE, where=where)
    with pytest.raises(ProviderOptionError, match="pass where= where it is opened"):
        sf.open(sf.open(TABLE), where="id > 1")
    with pytest.raises(ProviderOptionError, match="pass where= where it is opened"):
        sf.Loader(sf.open(TABLE), where="id > 1")


def test_an_expression_of_arrow_is_an_error_that_says_what_to_write() -> None:
    message = r"where is the expression \(id > 1\), expected text, such as \"lang == 'py'\""
    for source in (TABLE, SPLIT, lambda: TABLE):
        for make in (sf.open, sf.Loader):
            with pytest.raises(FilterError, match=message):
                make(source, where=pc.field("id") > 1)


def test_unknown_columns_have_the_error_of_their_argument() -> None:
    with pytest.raises(UnknownColumnError) as caught:
        sf.open(TABLE, columns=["idd"], where="id > 1")
    assert "where" not in str(caught.value)
    with pytest.raises(UnknownColumnError, match="where: there is no column 'langg'"):
        sf.open(TABLE, columns=["id"], where="langg == 'py'")


def test_dictionaries_are_shared_by_all_blocks_and_compared_by_value(tmp_path: Path) -> None:
    parts = [
        pa.table({"c": pa.array(texts).dictionary_encode(), "n": range(3)})
        for texts in (["a", "b", "a"], ["b", "c", None])
    ]
    source = pa.concat_tables(parts)
    found = sf.open(source, where="c == 'b'")
    assert [found.read(block)["c"].to_pylist() for block in found.blocks()] == [["b"], ["b"]]
    assert sf.open(source, columns=["n"], where="c != 'b'")["n"].tolist() == [0, 2, 1]


def test_files_of_other_kinds_are_filtered(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.txt").write_bytes(b"x" * number if number != 3 else b"\xff\xff")
    texts = {"format": sf.Text(encoding="utf-8"), "where": "text.lengths > 1", "threads": 0}
    loader = sf.Loader(tmp_path, bad_rows="skip", **texts)
    assert [batch["text.lengths"].tolist() for batch in loader] == [[2, 4]]
    assert (loader.stats().filtered, loader.stats().bad_rows, loader.num_rows) == (2, 1, None)
    with pytest.raises(ProviderError, match=r"3\.txt: not utf-8"):
        list(sf.Loader(tmp_path, **texts))
    (tmp_path / "a.jsonl").write_text('{"n": 1, "ids": [1, 3]}\n{"n": 0}\n{"n": 1, "ids": [2]}\n')
    (tmp_path / "a.csv").write_text("a,b\n1,x\n2,y\n,x\n")
    for name, where, column, values in (
        ("a.jsonl", "ids.lengths > 0 and n == 1", "ids.lengths", [2, 1]),
        ("a.csv", "b == 'x' and a != None", "a", [1]),
    ):
        (batch,) = sf.Loader(tmp_path / name, fill=0, where=where, threads=0)
        assert batch[column].tolist() == values
    columns = {"a": [1, 2, 3], "b": [[1], [], [2, 3]]}
    assert sf.open(columns, where="b.lengths > 0")["a"].tolist() == [1, 3]
    assert len(sf.open([{"a": 1}, {"a": None}], where="a == None")) == 1


CODES = pa.array(["a", "b", "a", "c"]).dictionary_encode()
RUNS = pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), pa.array([1, None]))
ODD = {
    "lists of codes": pa.ListArray.from_arrays([0, 1, 2, 4, 4], CODES),
    "structs of codes": pa.StructArray.from_arrays([CODES], ["k"]),
    "maps of codes": pa.MapArray.from_arrays([0, 1, 2, 3, 4], pa.array(["x", "y", "z", "w"]), CODES),
    "runs": RUNS,
    "structs of runs": pa.StructArray.from_arrays([RUNS], ["k"]),
    "lists of views": pa.array([["a"], [], None, ["b", "c"]], pa.list_(pa.string_view())),
    "list views of views": pa.array([["a"], [], None, ["b", "c"]], pa.list_view(pa.string_view())),
    "maps of views": pa.array([[("a", 1)], [], None, [("b", 2)]], pa.map_(pa.string_view(), pa.int64())),
    "fixed lists of views": pa.array([["a"], ["b"], None, ["c"]], pa.list_(pa.string_view(), 1)),
    "binary views": pa.array([b"a", None, b"", b"z" * 20], pa.binary_view()),
    "nulls": pa.nulls(4),
    "durations": pa.array([1, 2, 3, None], pa.duration("s")),
    "wide decimals": pa.array([1, None, 3, 4], pa.decimal256(50, 1)),
    "tensors": pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int32(), [2]), pa.array([[1, 2]] * 4, pa.list_(pa.int32(), 2))
    ),
    "half floats": pa.array(np.array([1, 2, 3, 4], np.float16)),
}


@pytest.mark.parametrize("name", ODD)
def test_rows_of_any_type_are_kept(name: str) -> None:
    table = pa.table({"x": ODD[name], "row": range(4)})
    values = table["x"].to_pylist()
    for where, rows in (
        ("row > 0 and row != 2", [1, 3]),
        ("row > 9", []),
        ("row >= 0", [0, 1, 2, 3]),
        ("x != None", [row for row, value in enumerate(values) if value is not None]),
    ):
        found = sf.open(table, where=where)
        (block,) = found.blocks()
        kept = pa.table(found.read(block))
        kept.validate(full=True)
        assert kept["row"].to_pylist() == rows
        assert kept["x"].to_pylist() == [values[row] for row in rows]


class Own:
    """A source of the user's own."""

    schema = TABLE.schema

    def blocks(self) -> Any:
        return (Block("own", number, 20, 100) for number in range(3))

    def read(self, block: Block, columns: Any) -> pa.Table:
        return TABLE.slice(20 * block.index, 20).select(columns)


def test_sources_of_the_users_own_are_filtered() -> None:
    loader = sf.Loader(Own(), columns=["id"], where="lang == 'py' and doc.size != None", threads=0)
    expected = TABLE.filter((pc.field("lang") == "py") & pc.field("doc", "size").is_valid())["id"].to_pylist()
    assert [n for batch in loader for n in batch["id"].tolist()] == expected
    assert loader.stats().filtered == ROWS - len(expected)


def test_a_bad_row_is_bad_and_not_filtered(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"id": 1, "x": 1}\n{"id": "no", "x": 2}\n{"id": 3, "x": 3}\n{"id": 4, "x": 4}\n'
    )
    options = {"where": "x >= 3", "format": sf.JsonLines(schema={"id": "int64", "x": "int64"}), "threads": 0}
    loader = sf.Loader(
        tmp_path / "a.jsonl", bad_rows=sf.BadRows("quarantine", tmp_path / "bad.parquet"), **options
    )
    assert [batch["id"].tolist() for batch in loader] == [[3, 4]]
    stats = loader.stats()
    assert (stats.rows, stats.bad_rows, stats.filtered, stats.skipped) == (2, 1, 1, 1)
    assert [row["row"] for row in pq.read_table(tmp_path / "bad.parquet")["bad"].to_pylist()] == [1]
    with pytest.raises(ProviderError, match="line 2"):
        list(sf.Loader(tmp_path / "a.jsonl", **options))


def test_rows_are_numbered_as_in_the_source(tmp_path: Path) -> None:
    source = pa.table({"id": range(10), "text": [None if n == 8 else "x" for n in range(10)]})
    with pytest.raises(ProviderError, match="row 8, column 'text'"):
        list(sf.Loader(source, where="id >= 5", threads=0))
    for window in (40, "1 MiB"):  # whole blocks, and slices of one
        bad = tmp_path / f"{window}.parquet"
        loader = sf.Loader(
            source, where="id >= 5", batch=1, bad_rows=sf.BadRows("quarantine", bad), window=window, threads=0
        )
        assert [batch["id"].tolist() for batch in loader] == [[5], [6], [7], [9]]
        found = pq.read_table(bad)
        assert found["id"].to_pylist() == [row["row"] for row in found["bad"].to_pylist()] == [8]


def test_a_provider_with_a_filter_pickles(tmp_path: Path) -> None:
    found = sf.open(in_parquet(tmp_path), where="lang == 'py' and id > 20")
    again = pickle.loads(pickle.dumps(found))
    assert again.where == found.where
    assert again["id"].tolist() == found["id"].tolist() != []


def test_a_provider_shows_its_filter() -> None:
    assert "\n  where ((lang == 'py') and (id > 3))\n" in repr(
        sf.open(TABLE, where="lang == 'py' and id > 3")
    )
