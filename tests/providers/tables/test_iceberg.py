"""Iceberg tables whose schema has changed, held against the scans of pyiceberg."""

from random import Random

import pyarrow as pa
import pytest
from marks import slow, thorough

import seqflow as sf

CHANGES = ("rename", "swap", "add", "drop", "add again", "promote", "move", "field", "delete", "partition")


@pytest.mark.parametrize(
    ("seed", "changes"),
    [(0, 2), *slow((1, 12), (2, 12)), *thorough(*((seed, 12) for seed in range(3, 20)))],
)
def test_a_table_after_changes_of_its_schema_is_as_its_own_scan_reads_it(tmp_path, seed, changes):
    """Rows are those of pyiceberg, all columns and each alone, and conditions keep the same rows as Arrow's do."""
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    pytest.importorskip("sqlalchemy")
    types = pytest.importorskip("pyiceberg.types")
    random, added = Random(seed), 0
    catalog = sql.SqlCatalog("test", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=tmp_path.as_uri())
    catalog.create_namespace("space")
    kinds = {
        "id": pa.int64(),
        "a": pa.int32(),
        "b": pa.float32(),
        "s": pa.struct([("x", pa.int32()), ("y", pa.int64())]),
    }
    table = catalog.create_table("space.table", schema=pa.schema(list(kinds.items())))

    def append():
        nonlocal added
        schema = table.scan().projection().as_arrow()
        rows = [
            {one.name: value_of(random, one.type) for one in schema} | {"id": added + at} for at in range(3)
        ]
        added += len(rows)
        table.append(pa.Table.from_pylist(rows, schema=schema))

    append()
    for _ in range(changes):
        names = [one.name for one in table.schema().fields if one.name not in ("id", "s")]
        one, new = random.choice(names or ["id"]), f"n{random.randrange(4)}"
        change = random.choice(CHANGES) if names else "add"
        free = new not in names
        if change == "swap" and len(names) > 1:
            other = next(name for name in names if name != one)
            for old, to in ((one, "t"), (other, one), ("t", other)):
                with table.update_schema() as update:
                    update.rename_column(old, to)
        elif change == "delete":
            table.delete(f"id = {random.randrange(added)}")
        elif change == "partition":
            with table.update_spec() as spec:
                if table.spec().is_unpartitioned():
                    spec.add_identity("id")
                else:
                    spec.remove_field("id")
        else:
            with table.update_schema() as update:
                if change == "rename" and free:
                    update.rename_column(one, new)
                elif change == "add" and free:
                    update.add_column(new, random.choice([types.IntegerType(), types.StringType()]))
                elif change == "drop" and names:
                    update.delete_column(one)
                elif change == "add again" and names:
                    update.delete_column(one)
                    update.add_column(one, types.FloatType())
                elif change == "promote":
                    kind = table.schema().find_type(one)
                    wider = {"int": types.LongType(), "float": types.DoubleType()}.get(str(kind))
                    if wider is not None:
                        update.update_column(one, wider)
                elif change == "move" and names:
                    update.move_first(one)
                elif change == "field":
                    fields = table.schema().find_type("s").fields
                    if random.random() < 0.5:
                        update.rename_column(f"s.{fields[0].name}", f"f{random.randrange(1000)}")
                    else:
                        update.add_column(("s", f"f{random.randrange(1000)}"), types.LongType())
        if random.random() < 0.5:
            append()
        table = catalog.load_table("space.table")
        check_against_its_scan(table)
    catalog.close()


def value_of(random, kind):
    if pa.types.is_struct(kind):
        return {one.name: value_of(random, one.type) for one in kind}
    if random.random() < 0.2:
        return None
    return (
        str(random.randrange(4))
        if pa.types.is_large_string(kind) or pa.types.is_string(kind)
        else random.randrange(4)
    )


def rows_of(source, **options):
    provider = sf.open(source, **options)
    return [row for block in provider.blocks() for row in provider.read(block).to_pylist()]


def check_against_its_scan(table):
    expected = table.scan().to_arrow()
    provider = sf.open(table)
    assert provider.schema.names == expected.schema.names
    order = {row["id"]: row for row in expected.to_pylist()}
    for source in (table, table.scan()):
        found = rows_of(source)
        assert len(found) == len(order)
        assert all(row == order[row["id"]] for row in found)
    for one in expected.schema:
        if one.name != "id":
            narrow = rows_of(table, columns=[one.name, "id"])
            assert all(row[one.name] == order[row["id"]][one.name] for row in narrow)
        if one.name not in ("id", "s"):
            text = pa.types.is_large_string(one.type) or pa.types.is_string(one.type)
            value = "2" if text else 2
            kept = rows_of(table, columns=["id"], where=f"{one.name} == {value!r}")
            wanted = {number for number, row in order.items() if row[one.name] == value}
            assert {row["id"] for row in kept} == wanted
