"""Laws: to_arrow undoes from_arrow, and moving rows does what Arrow's own moves do."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from seqflow.record import concat_records, from_arrow, nbytes, slice_rows, split_rows, take_rows, to_arrow

LEAVES = {
    pa.int8(): st.integers(-128, 127),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.timestamp("us", "UTC"): st.integers(-(2**63) + 1, 2**63 - 1),
    pa.date32(): st.integers(-(2**20), 2**20),
    pa.time32("s"): st.integers(0, 86399),
    pa.duration("ns"): st.integers(-(2**63) + 1, 2**63 - 1),
    pa.string(): st.text("aé€😀", max_size=4),
    pa.large_string(): st.text("aé€😀", max_size=4),
    pa.string_view(): st.text("aé€😀", max_size=20),
    pa.binary(): st.binary(max_size=4),
    pa.binary_view(): st.binary(max_size=20),
    pa.binary(2): st.binary(min_size=2, max_size=2),
    pa.dictionary(pa.int8(), pa.string()): st.sampled_from(["a", "b", "c"]),
}


def lists_of(kind):
    makers = (pa.list_, pa.large_list, pa.list_view, pa.large_list_view, lambda child: pa.list_(child, 2))
    return st.sampled_from([maker(kind) for maker in makers])


def structs_of(*kinds):
    return pa.struct([pa.field(f"f{at}", kind) for at, kind in enumerate(kinds)])


KINDS = st.recursive(
    st.sampled_from(list(LEAVES)),
    lambda inner: st.one_of(
        inner.flatmap(lists_of),
        st.builds(structs_of, inner, inner),
        st.builds(pa.map_, st.sampled_from([pa.int8(), pa.string()]), inner),
    ),
    max_leaves=4,
)


def values_of(kind):
    if kind in LEAVES:
        return LEAVES[kind]
    if pa.types.is_struct(kind):
        return st.fixed_dictionaries({field.name: values_of(field.type) for field in kind})
    if pa.types.is_map(kind):
        return st.lists(st.tuples(values_of(kind.key_type), values_of(kind.item_type)), max_size=3)
    if pa.types.is_fixed_size_list(kind):
        return st.lists(values_of(kind.value_type), min_size=2, max_size=2)
    return st.lists(values_of(kind.value_type), max_size=3)


@st.composite
def batches(draw, min_rows=0):
    kinds = draw(st.lists(KINDS, min_size=1, max_size=3))
    rows = draw(st.integers(min_rows, 6))
    columns = {}
    for at, kind in enumerate(kinds):
        values = draw(st.lists(values_of(kind), min_size=rows, max_size=rows))
        columns[f"c{at}"] = pa.array(values, kind)
    return pa.record_batch(columns)


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
