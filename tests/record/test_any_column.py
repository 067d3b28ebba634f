"""Columns of any nested type and layout, with nulls at all levels: tensors say what the rows say, or refuse them."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from strategies.arrow_columns import columns

import seqflow as sf
from seqflow.record import convert, from_arrow, to_arrow

SETTINGS = settings(max_examples=100, deadline=None)


@SETTINGS
@given(columns())
def test_masks_bring_every_null_back(column):
    _, rows, array = column
    table = pa.table({"c": array})
    back = to_arrow(from_arrow(table, valid=True))
    back.validate(full=True)
    assert back.column(0).to_pylist() == rows


@SETTINGS
@given(columns())
def test_rows_with_a_null_anywhere_are_bad_rows(column):
    kind, rows, array = column
    table = pa.table({"c": array})
    bad = [at for at, row in enumerate(rows) if kind.has_null(row)]
    assert [found.row for found in convert(table)[1]] == bad


@SETTINGS
@given(columns())
def test_fills_take_the_place_of_every_null(column):
    kind, rows, array = column
    fill = {f"c.{name}": value for name, value in kind.fills.items()} | {"c": kind.fill}
    record = from_arrow(pa.table({"c": array}), fill=fill)
    back = to_arrow(record)
    back.validate(full=True)
    assert back.column(0).to_pylist() == [kind.filled(row) for row in rows]


@settings(max_examples=25, deadline=None)
@given(columns())
def test_loaders_hand_out_every_row_once(column):
    kind, rows, array = column
    table = pa.table({"c": array, "id": pa.array(range(len(rows)), pa.int64())})
    for shuffle in (None, sf.Shuffle(1)):
        marked = [sf.to_arrow(batch) for batch in sf.Loader(table, valid=True, batch=2, shuffle=shuffle)]
        found = {one["id"]: one["c"] for batch in marked for one in batch.to_pylist()}
        assert found == dict(enumerate(rows))
    loader = sf.Loader(table, bad_rows="skip", batch=2, shuffle=True)
    if len(rows) > 1 and all(map(kind.has_null, rows)):
        with pytest.raises(sf.ProviderError, match="leaves out all"):
            list(loader)
        return
    good = {one["id"]: one["c"] for batch in loader for one in sf.to_arrow(batch).to_pylist()}
    assert good == {at: row for at, row in enumerate(rows) if not kind.has_null(row)}
    assert loader.stats().bad_rows == len(rows) - len(good)
