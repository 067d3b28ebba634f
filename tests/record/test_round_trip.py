"""Laws: to_arrow undoes from_arrow, and moving rows does what Arrow's own moves do."""

import pyarrow as pa
import pyarrow.feather as feather
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.batches import batches

import seqflow as sf
from seqflow.record import concat_records, from_arrow, nbytes, slice_rows, split_rows, take_rows, to_arrow


@given(batches())
def test_to_arrow_undoes_from_arrow(batch):
    back = to_arrow(from_arrow(batch))
    back.validate(full=True)
    assert back.equals(batch)


@given(batches(), st.data())
def test_to_arrow_undoes_from_arrow_of_a_slice(batch, data):
    start = data.draw(st.integers(0, batch.num_rows))
    part = batch.slice(start, data.draw(st.integers(0, batch.num_rows - start)))
    assert to_arrow(from_arrow(part)).equals(part)


@given(batches(), st.data())
def test_slicing_a_record_is_slicing_the_batch(batch, data):
    start = data.draw(st.integers(0, batch.num_rows))
    stop = data.draw(st.integers(start, batch.num_rows))
    part = slice_rows(from_arrow(batch), start, stop)
    assert part.num_rows == stop - start
    assert to_arrow(part).equals(batch.slice(start, stop - start))


@given(batches(min_rows=1), st.data())
def test_taking_rows_of_a_record_is_taking_them_of_the_batch(batch, data):
    indices = data.draw(st.lists(st.integers(0, batch.num_rows - 1), max_size=8))
    taken = take_rows(from_arrow(batch), indices)
    assert taken.num_rows == len(indices)
    rows = pa.concat_batches([batch.slice(0, 0), *(batch.slice(index, 1) for index in indices)])
    assert to_arrow(taken).equals(rows)


@given(batches(), st.lists(st.integers(0, 6), max_size=3))
def test_what_was_split_is_joined_again(batch, stops):
    record = from_arrow(batch)
    stops = sorted(min(stop, batch.num_rows) for stop in stops)
    parts = split_rows(record, stops)
    assert [part.num_rows for part in parts] == [
        stop - start for start, stop in zip([0, *stops], [*stops, batch.num_rows], strict=True)
    ]
    assert to_arrow(concat_records(parts)).equals(batch)
    assert sum(nbytes(part) for part in parts) == nbytes(record)


@given(batches(), st.lists(st.integers(0, 6), max_size=3))
def test_chunks_of_a_table_are_read_as_one(batch, stops):
    stops = sorted(min(stop, batch.num_rows) for stop in stops)
    limits = zip([0, *stops], [*stops, batch.num_rows], strict=True)
    table = pa.Table.from_batches([batch.slice(start, stop - start) for start, stop in limits])
    assert to_arrow(from_arrow(table)).equals(batch)


TEXTS = [b"a", None, b"a text of more than twelve bytes", b""]
LISTS = [[1, 2], None, [], [3]]


def views(starts, sizes):
    """List views of the values 1, 2, 3: starts and sizes in any order."""
    nulls = pa.array([size is None for size in sizes])
    return pa.ListViewArray.from_arrays(
        starts, [size or 0 for size in sizes], pa.array([1, 2, 3]), mask=nulls
    )


@pytest.mark.parametrize(
    ("array", "kind", "rows"),
    [
        (pa.array(TEXTS, pa.binary_view()), pa.large_binary(), TEXTS),
        (pa.array([None if one is None else one.decode() for one in TEXTS], pa.string_view()), pa.large_string(),
         [None if one is None else one.decode() for one in TEXTS]),
        (views([0, 0, 0, 2], [2, None, 0, 1]), pa.list_(pa.int64()), LISTS),
        (views([1, 0, 0], [2, 0, 1]), pa.list_(pa.int64()), [[2, 3], [], [1]]),
        (pa.array(LISTS, pa.large_list_view(pa.int16())), pa.large_list(pa.int16()), LISTS),
        (pa.array([["a"], ["b", "c"]], pa.list_view(pa.string_view())), pa.list_(pa.large_string()), [["a"], ["b", "c"]]),
        (pa.array([{"t": "a"}, {"t": None}], pa.struct({"t": pa.string_view()})), pa.struct({"t": pa.large_string()}),
         [{"t": "a"}, {"t": None}]),
        (pa.RunEndEncodedArray.from_arrays([2, 3], pa.array([7, None])), pa.int64(), [7, 7, None]),
        (pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.int8()), pa.array(["a", "more than twelve bytes"], pa.string_view())),
         pa.dictionary(pa.int8(), pa.large_string()), ["more than twelve bytes", None, "a"]),
    ],
    ids=str,
)  # fmt: skip
def test_views_and_run_ends_come_in_as_their_values_and_go_out_as_plain_types(array, kind, rows):
    for start, stop in ((0, len(rows)), (1, len(rows))):
        table = pa.table({"c": array[start:stop]})
        back = to_arrow(from_arrow(table, valid=True))
        source = sf.open(table)
        found = [to_arrow(from_arrow(source.read(one), valid=True)) for one in source.blocks()]
        assert (
            back.schema.field("c").type
            == source.schema.field("c").type
            == found[0].schema.field("c").type
            == kind
        )
        assert back.column("c").to_pylist() == found[0].column("c").to_pylist() == rows[start:stop]


def test_dictionaries_of_views_and_texts_are_one_column(tmp_path):
    coded = pa.DictionaryArray.from_arrays(
        pa.array([0, None]), pa.array(["a text of a dictionary"], pa.string_view())
    )
    for name, column in (("a", coded), ("b", pa.array(["b"]))):
        feather.write_feather(pa.table({"v": column}), tmp_path / f"{name}.arrow")
    loader = sf.Loader([tmp_path / "a.arrow", tmp_path / "b.arrow"], valid=True)
    rows = [row for batch in loader for row in to_arrow(batch)["v"].to_pylist()]
    assert rows == ["a text of a dictionary", None, "b"]


def test_nulls_stand_for_lists_of_runs_that_a_file_lacks(tmp_path):
    runs = pa.RunEndEncodedArray.from_arrays([2], pa.array(["a"]))
    for name, column in (("a", pa.ListArray.from_arrays([0, 2], runs)), ("b", pa.nulls(1))):
        feather.write_feather(pa.table({"v": column}), tmp_path / f"{name}.arrow")
    loader = sf.Loader([tmp_path / "a.arrow", tmp_path / "b.arrow"], valid=True)
    assert [row for batch in loader for row in to_arrow(batch)["v"].to_pylist()] == [["a", "a"], None]
