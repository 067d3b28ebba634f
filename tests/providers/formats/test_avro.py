"""Avro: types by both readers, codecs, and schemas and files that are refused."""

import datetime
import io
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.errors import ProviderError

fastavro = pytest.importorskip("fastavro")
DAY = datetime.date(2024, 2, 29)
TIME = datetime.datetime(2024, 2, 29, 12, 30, 0, 5000)
ZONED = TIME.replace(tzinfo=datetime.UTC)
POINT = {
    "type": "record",
    "name": "point",
    "namespace": "geo",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["null", "string"]}],
}


def write(path: Path, kinds: dict[str, Any], rows: list[dict[str, Any]], **options: Any) -> Path:
    fields = [{"name": name, "type": kind} for name, kind in kinds.items()]
    with open(path, "wb") as file:
        fastavro.writer(file, {"type": "record", "name": "row", "fields": fields}, rows, **options)
    return path


def rows_of(path: Path, **options: Any) -> list[dict[str, Any]]:
    provider = sf.open(path, **options)
    return [row for block in provider.blocks() for row in provider.read(block).to_pylist()]


@pytest.fixture(params=["polars", "fastavro"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "polars":
        pytest.importorskip("polars")
    else:
        monkeypatch.setitem(sys.modules, "polars", None)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(("kind", "values", "expected"), [
    ("boolean", [True, False], pa.bool_()),
    ("int", [-(2**31), 5], pa.int32()),
    (["null", "long"], [None, 2**63 - 1], pa.int64()),
    ("float", [0.5, -1.0], pa.float32()),
    (["double", "null"], [0.1, None], pa.float64()),
    ("bytes", [b"", b"\xff\0"], pa.binary()),
    ("string", ["", "é\0x"], pa.string()),
    ({"type": "enum", "name": "e", "symbols": ["A", "B"]}, ["B", "A"], pa.string()),
    ({"type": "fixed", "name": "f", "size": 2}, [b"ab", b"cd"], pa.binary(2)),
    ({"type": "array", "items": ["null", "int"]}, [[None, 1], []], pa.list_(pa.int32())),
    (["null", {"type": "array", "items": {"type": "array", "items": "string"}}], [None, [["a"], []]], None),
    (POINT, [{"x": 1, "y": None}, {"x": 2, "y": "b"}], None),
    ({"type": "array", "items": POINT}, [[{"x": 1, "y": None}], []], None),
    ({"type": "map", "values": ["null", "long"]}, [[("a", 1), ("b", None)], []], pa.map_(pa.string(), pa.int64())),
    ({"type": "int", "logicalType": "date"}, [DAY, DAY], pa.date32()),
    ({"type": "long", "logicalType": "timestamp-micros"}, [ZONED, ZONED], pa.timestamp("us", "UTC")),
    ({"type": "long", "logicalType": "timestamp-millis"}, [ZONED, ZONED], pa.timestamp("ms", "UTC")),
    ({"type": "long", "logicalType": "local-timestamp-micros"}, [TIME, TIME], pa.timestamp("us")),
    ({"type": "long", "logicalType": "timestamp-nanos"}, [5, -1], pa.timestamp("ns", "UTC")),
    ({"type": "long", "logicalType": "local-timestamp-nanos"}, [5, -1], pa.timestamp("ns")),
    (["int"], [1, 2], pa.int32()),
    ({"type": "int", "logicalType": "time-millis"}, [TIME.time(), TIME.time()], pa.time32("ms")),
    ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}, [Decimal("1.25"), Decimal("-3.00")], pa.decimal128(9, 2)),
    ({"type": "string", "logicalType": "unknown"}, ["a", "b"], pa.string()),
])  # fmt: skip
def test_values_are_those_that_were_written(
    tmp_path: Path, kind: Any, values: list[Any], expected: Any
) -> None:
    written = [dict(value) if isinstance(kind, dict) and kind["type"] == "map" else value for value in values]
    path = write(
        tmp_path / "a.avro", {"v": kind, "n": "int"}, [{"v": v, "n": n} for n, v in enumerate(written)]
    )
    values = pa.array(values, sf.open(path).schema.field("v").type).to_pylist()
    assert rows_of(path) == [{"v": value, "n": n} for n, value in enumerate(values)]
    assert rows_of(path, columns=["v"]) == [{"v": value} for value in values]
    assert expected is None or sf.open(path).schema.field("v").type == expected


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_blocks_are_blocks_of_the_file(tmp_path: Path, codec: str) -> None:
    path = write(
        tmp_path / "a.avro", {"n": "int"}, [{"n": n} for n in range(1000)], codec=codec, sync_interval=100
    )
    provider = sf.open(path, format=sf.Avro(batch_bytes=300))
    assert len(provider) == 1000
    assert len(list(provider.blocks())) > 3
    assert [row["n"] for row in rows_of(path, format=sf.Avro(batch_bytes=300))] == list(range(1000))
    assert len(list(sf.open(path).blocks())) == 1


def test_a_type_that_was_named_before_is_known(tmp_path: Path) -> None:
    rows = [{"a": {"x": 1, "y": None}, "b": {"x": 2, "y": "z"}}]
    assert rows_of(write(tmp_path / "a.avro", {"a": POINT, "b": "geo.point"}, rows)) == rows


def test_aliases_and_defaults_change_nothing_in_the_rows_of_their_own_file(tmp_path: Path) -> None:
    path = tmp_path / "a.avro"
    field = {"name": "v", "aliases": ["w"], "type": "int", "default": 3}
    with open(path, "wb") as file:
        fastavro.writer(
            file, {"type": "record", "name": "row", "aliases": ["old"], "fields": [field]}, [{"v": 1}]
        )
    assert rows_of(path) == [{"v": 1}]


def test_a_name_is_of_the_namespace_that_it_is_used_in(tmp_path: Path) -> None:
    def record(name: str, **fields: Any) -> dict[str, Any]:
        return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields.items()]}

    kinds = {
        "one": record("n1.point", x=["null", "int"]),
        "other": record("n2.point", y=["null", "long"]),
        "used": record("n1.holder", v="n1.point", w={"type": "array", "items": "n1.point"}),
    }
    row = {"one": {"x": 1}, "other": {"y": 2}, "used": {"v": {"x": 3}, "w": [{"x": 4}]}}
    path = write(tmp_path / "a.avro", kinds, [row])
    assert rows_of(path) == [row]
    # other writers leave out the namespace of the type around; blanks keep the length of the header
    content = path.read_bytes().replace(b'"type": "n1.point"', b'"type": "point"   ').replace(
        b'"items": "n1.point"', b'"items": "point"   '
    )  # fmt: skip
    path.write_bytes(content)
    assert b"n1.point" in content
    assert rows_of(path) == [row]


@pytest.mark.parametrize(("kind", "row", "message"), [
    (["int", "string"], 1, "field 'v' is a union of 2 types"),
    (["null", "int", "string"], 1, "field 'v' is a union of 2 types"),
    ("null", None, "field 'v' is always null"),
    ({"type": "record", "name": "tree", "fields": [{"name": "c", "type": ["null", "tree"]}]}, {"c": None}, "field 'v.c' refers to itself"),
])  # fmt: skip
def test_types_without_a_place_in_a_table_are_refused(
    tmp_path: Path, kind: Any, row: Any, message: str
) -> None:
    path = write(tmp_path / "a.avro", {"v": kind}, [{"v": row}])
    with pytest.raises(ProviderError, match=f"a.avro.*{message}"):
        sf.open(path)


def test_rows_that_are_no_records_are_refused(tmp_path: Path) -> None:
    content = io.BytesIO()
    fastavro.writer(content, "int", [1, 2])
    (tmp_path / "a.avro").write_bytes(content.getvalue())
    with pytest.raises(ProviderError, match="its rows are not records"):
        sf.open(tmp_path / "a.avro")


def test_a_file_without_rows_has_none(tmp_path: Path) -> None:
    provider = sf.open(write(tmp_path / "a.avro", {"n": "int"}, []))
    assert (len(provider), list(provider.blocks())) == (0, [])


def test_what_is_needed_and_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.avro", {"n": "int"}, [{"n": 1}])
    monkeypatch.setitem(sys.modules, "polars", None)
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(ProviderError, match="pip install fastavro"):
        rows_of(path)


LONG = b"\xfe" * 9 + b"\x01"


@pytest.mark.parametrize(("change", "message"), [
    (lambda c: c[:4] + LONG + c[5:], "text of|ends in a number|not enough|decode"),
    (lambda c: c[:5] + LONG + c[6:], "text of"),
    (lambda c: c[:-10] + b"xyz" + c[-7:], "block at byte .* damaged, or cut"),
    (lambda c: c[:-1], "block at byte .* damaged, or cut"),
    (lambda c: c + c[-18:], "damaged, or cut|ends in"),
])  # fmt: skip
def test_files_that_lie_are_refused(tmp_path: Path, change: Any, message: str) -> None:
    path = write(tmp_path / "a.avro", {"n": "int"}, [{"n": n} for n in range(100)])
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ProviderError, match=f"a.avro.*({message})"):
        rows_of(path)
