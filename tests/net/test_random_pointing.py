"""Nets that mix rows, positions and masks of columns at random: refused, all but those that are right by value."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import LodError
from seqflow.record import Record
from seqflow.signature import Described, OwnRows

COLUMNS = ("x", "y", "z")
"""Of these x and z have equal lengths, which the nets say; y has as many rows in other sequences."""
EQUAL = {"x": "x and z", "y": "y", "z": "x and z"}
RECORD = OwnRows("the record")
TENSORS = {
    "x.lengths": np.array([2, 1, 3]),
    "x.values": np.array([3, 1, 2, 3, 5, 1]),
    "y.lengths": np.array([1, 3, 2]),
    "y.values": np.array([4, 4, 2, 9, 1, 2]),
    "z.lengths": np.array([2, 1, 3]),
    "z.values": np.array([1, 1, 2, 6, 6, 2]),
    "label": np.array([0, 2, 1]),
}
SPECS = {
    name: sf.TensorSpec(
        "int64", "{?}", Described(f"{name[0]}.lengths") if name.endswith("values") else RECORD
    )
    for name in TENSORS
}

# What points: the statements that make it, `{c}` being a column, and what it points at.
POINTERS = {
    "positions": [
        "o{i} = argsort_within({c}.values, {c}.lengths)",
        "o{i} = lengths_to_positions({c}.lengths)",
        "_, n{i}, o{i} = topk_within({c}.values, {c}.values, {c}.lengths, k=9)\nsame_lengths(n{i}, {c}.lengths)",
    ],
    "rows": [
        "o{i} = find({c}.values, {c}.values)",
        "o{i} = to_rows_within(argsort_within({c}.values, {c}.lengths), {c}.lengths, {c}.lengths)",
    ],
    "distinct": ["_, o{i}, _ = unique({c}.values)"],
    "sequences": ["o{i} = lengths_to_segment_ids({c}.lengths)"],
}
USES = {
    "positions": ["t{i} = gather_within({c}.values, {o}, {c}.lengths, {own}.lengths)"],
    "rows": ["t{i} = gather({c}.values, {o})", "t{i} = gather_axis({c}.values, {o}, axis=0)"],
    "distinct": ["u{i}, _, _ = unique({c}.values)\nt{i} = gather(u{i}, {o})"],
    "sequences": ["t{i} = gather(label, {o})"],
}
MOVES = [
    "{n} = cast({o}, dtype='int32')",
    "{n} = where({o} > 1, {o}, {o})",
    "{n} = maximum({o}, 0)",
    "{n} = reverse_sequences({o}, {own}.lengths)",
    "{n} = reshape(expand_dims({o}, axis=1), shape=[-1])",
    "p{n}, _ = pad({o}, {own}.lengths, max_length=4)\n{n} = unpad(p{n}, {own}.lengths)",
    "p{n}, _ = pad({o}, {own}.lengths)\n{n} = unpad(transpose(transpose(p{n})), {own}.lengths)",
    "{n}, k{n} = truncate({o}, {own}.lengths, max_length=9)\nsame_lengths(k{n}, {own}.lengths)",
    "{n} = gather({o}, find({own}.values, {own}.values))",
]
KEEP_ROWS = MOVES[:7]
"""The moves after which row i still belongs to the sequence of row i."""


def at(kind, column):
    """What is equal for pointers that point at the same."""
    return kind, {"distinct": column, "sequences": ""}.get(kind, EQUAL[column])


@st.composite
def mixed(draw):
    """A net that uses, on one column, what points at rows or positions of another; and whether that is right."""
    kind, own = draw(st.sampled_from(sorted(POINTERS))), draw(st.sampled_from(COLUMNS))
    wanted, column = draw(st.sampled_from(sorted(USES))), draw(st.sampled_from(COLUMNS))
    right = at(kind, own) == at(wanted, column)
    lines = ["same_lengths(x.lengths, z.lengths)", draw(st.sampled_from(POINTERS[kind])).format(i=0, c=own)]
    name = "o0"
    for i in range(draw(st.integers(0, 3))):
        moves = KEEP_ROWS if kind == "positions" else MOVES
        lines.append(draw(st.sampled_from(moves)).format(o=name, n=f"m{i}", own=own))
        name = f"m{i}"
    lines.append(draw(st.sampled_from(USES[wanted])).format(i=0, c=column, o=name, own=own))
    return "\n".join(lines), right


@pytest.mark.slow
@given(mixed())
@settings(max_examples=max(settings.default.max_examples, 100))
def test_what_points_elsewhere_is_refused_and_nothing_else(drawn):
    text, right = drawn
    net = sf.Net(text)
    specs = {name: SPECS[name] for name in net.inputs}
    if not right:
        with pytest.raises(LodError):
            net.infer(specs)
        return
    net.infer(specs)
    parents = {name: f"{name[0]}.lengths" if name.endswith("values") else None for name in TENSORS}
    tensors = {name: TENSORS[name] for name in net.inputs}
    from_mapping = sf.run(net, tensors)
    from_record = sf.run(net, Record(tensors, {name: parents[name] for name in tensors}, 3))
    np.testing.assert_array_equal(from_mapping["t0"], from_record["t0"])


@given(st.sampled_from(COLUMNS), st.sampled_from(COLUMNS), st.sampled_from(COLUMNS), st.data())
def test_masks_of_other_columns_are_refused_and_no_others(column, masking, lengths, data):
    masks = [
        "_, m = pad({m}.values, {m}.lengths, max_length=4)",
        "m = lengths_to_mask({m}.lengths, max_length=4)",
        "q, k = pad({m}.values, {m}.lengths, max_length=4)\nm = logical_and(k, q > 1)",
    ]
    uses = [
        "y = where(m, p, 0)",
        "y = unpad(where(m, p, 0), {n}.lengths)",
        "y, _ = boolean_mask(reshape(p, shape=[-1]), reshape(m, shape=[-1]))",
    ]
    text = "\n".join(
        [
            "same_lengths(x.lengths, z.lengths)\np, _ = pad({c}.values, {c}.lengths, max_length=4)",
            data.draw(st.sampled_from(masks)),
            data.draw(st.sampled_from(uses)),
        ]
    ).format(c=column, m=masking, n=lengths)
    net = sf.Net(text)
    used = {column, masking} | ({lengths} if "unpad" in text else set())
    specs = {name: SPECS[name] for name in net.inputs}
    if len({EQUAL[one] for one in used}) == 1:
        net.infer(specs)
    else:
        with pytest.raises(LodError):
            net.infer(specs)


@given(st.sampled_from(COLUMNS), st.sampled_from(COLUMNS))
def test_rows_that_a_mask_of_other_rows_takes_are_refused(column, masking):
    text = f"same_lengths(x.lengths, z.lengths)\ny, p = boolean_mask({column}.values, {masking}.values > 1)"
    net = sf.Net(text)
    specs = {name: SPECS[name] for name in net.inputs}
    if EQUAL[column] == EQUAL[masking]:
        net.infer(specs)
    else:
        with pytest.raises(LodError):
            net.infer(specs)
