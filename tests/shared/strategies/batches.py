"""Record batches of any types that outputs have, with lists, structs and maps inside one another."""

import pyarrow as pa
from hypothesis import strategies as st

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
    pa.binary(): st.binary(max_size=4),
    pa.binary(2): st.binary(min_size=2, max_size=2),
    pa.dictionary(pa.int8(), pa.string()): st.sampled_from(["a", "b", "c"]),
}


def lists_of(kind):
    makers = (pa.list_, pa.large_list, lambda child: pa.list_(child, 2))
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
