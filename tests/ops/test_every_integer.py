"""Ids, indices and lengths of every integer dtype give what those of int64 give, for every op."""

import re

import numpy as np
import pytest
from every_op import EXAMPLES, OPS, returned
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from marks import one_in
from strategies.calls import calls

import seqflow as sf
from seqflow import ops
from seqflow.errors import OpIndexError, SeqflowError
from seqflow.signature.language import POINTING

INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64")
FEW = (
    "gather_inside",
    "lengths_to_mask",
    "pad",
    "unsorted_segment_max",
    "segment_counts",
    "sparse_unsorted_segment_mean",
)


def describes(argument):
    """Whether it describes rows or points at them: its dtype decides nothing."""
    return argument.is_lengths or argument.dtype.word in ("int", *POINTING)


NEGATIVE = {"mask_tokens"}
"""Ops with a negative default that narrow integers without a sign cannot hold: an error that says so."""
DESCRIBED = [
    op for op in OPS if any(map(describes, op.signature.input_arguments)) and op.name not in NEGATIVE
]


def wide_attributes(op):
    """Sizes beyond what the narrow dtypes hold, where an op takes one."""
    names = [
        one.name for one in op.attributes if one.kind == "int" and not one.required and "seed" not in one.name
    ]
    return (
        st.dictionaries(st.sampled_from(names), st.sampled_from([130, 300, 40_000]), max_size=1)
        if names
        else st.just({})
    )


def outcome(op, inputs, attributes):
    """The values of all results, or the error."""
    try:
        found = returned(op, inputs, attributes)
    except SeqflowError as error:
        return type(error).__name__, str(error)
    results = found if isinstance(found, tuple) else (found,)
    return [np.asarray(one) for value in results for one in (value if isinstance(value, list) else [value])]


def check(op, data):
    inputs, attributes = data.draw(calls(op))
    arguments = {one.name: one for one in op.signature.input_arguments}
    attributes |= data.draw(wide_attributes(op))
    named = {name for name in inputs if inputs[name] is not None and describes(arguments[name])}
    assume(
        attributes.get("method") != "caffe2"
    )  # whose hash depends on the width of its input, as documented
    assume(named and all(np.asarray(one).dtype.kind in "iu" for name in named for one in each(inputs[name])))

    def cast(dtype):
        return {
            name: [one.astype(dtype) for one in value]
            if isinstance(value, list)
            else np.asarray(value).astype(dtype)
            for name, value in inputs.items()
            if name in named
        }

    expected = outcome(op, inputs | cast("int64"), attributes)
    for dtype in INTEGERS:
        changed = cast(dtype)
        if any(
            (np.asarray(a) != np.asarray(b)).any()
            for n in named
            for a, b in zip(each(changed[n]), each(cast("int64")[n]), strict=True)
        ):
            continue  # a negative one
        found = outcome(op, inputs | changed, attributes)
        assert type(found) is type(expected), (dtype, found, expected)
        if isinstance(found, tuple):
            assert found == expected
            continue
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=dtype)


def each(value):
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize("op", [op for op in DESCRIBED if op.name in FEW], ids=lambda op: op.name)
@given(data=st.data())
@settings(max_examples=10)
def test_integers_of_any_width_are_those_of_int64(op, data):
    check(op, data)


@pytest.mark.slow
@pytest.mark.parametrize("op", one_in(2, DESCRIBED, lambda op: op.family), ids=lambda op: op.name)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_integers_of_any_width_are_those_of_int64_in_all_ops(op, data):
    check(op, data)


LARGE = np.array([2**64 - 1, 2**63, 2**63 + 5], np.uint64)
IDS = [
    op
    for op in DESCRIBED
    if any(describes(one) and not one.is_lengths for one in op.signature.input_arguments)
]


@pytest.mark.parametrize("op", IDS, ids=lambda op: op.name)
@given(data=st.data())
@settings(max_examples=5)
def test_an_id_beyond_int64_is_never_a_negative_one(op, data):
    inputs, attributes = data.draw(calls(op))
    arguments = [one for one in op.signature.input_arguments if describes(one) and not one.is_lengths]
    name = data.draw(st.sampled_from([one.name for one in arguments]))
    assume(inputs[name] is not None)
    array = np.array(each(inputs[name])[0])
    assume(array.size and array.dtype.kind in "iu")
    array = np.maximum(array, 0).astype(np.uint64)
    array.flat[data.draw(st.integers(0, array.size - 1))] = large = data.draw(st.sampled_from(LARGE))
    given = [array, *inputs[name][1:]] if isinstance(inputs[name], list) else array
    found, negative = outcome(op, inputs | {name: given}, attributes), int(large) - 2**64
    if isinstance(found, tuple):
        assert not re.search(rf"(=|is) {negative}\b", found[1]), found[1]
    elif large != LARGE[0]:  # -1 has other meanings
        assert not any((one == negative).any() for one in found if one.dtype == np.int64)


def test_keys_beyond_int64_are_keys():
    near = LARGE.view(np.int64)
    names, table = [*near.tolist(), 7], sf.Vocabulary([*near.tolist(), 7]).freeze()
    keys, ones, one = np.append(LARGE, np.uint64(7)), np.ones(4, np.int64), np.array([4])
    data = np.arange(4)
    assert ops.encode(keys, table).tolist() == [0, 0, 0, 4]
    with pytest.raises(OpIndexError, match=r"ids\[0\] = 18446744073709551615 is not in the vocabulary"):
        ops.encode(keys, table, on_unknown="raise")
    assert ops.sparse_to_dense_mask(data, -1, keys, one, mask=names).dense.tolist() == [[-1, -1, -1, 3]]
    assert ops.keyed_select(data, keys, ones, one, names=names).keys.tolist() == [7]
    assert [len(value) for value in ops.keyed_split(data, keys, ones, one, names=names).values] == [
        0,
        0,
        0,
        1,
    ]
    assert [len(value) for value in ops.regroup(data, keys, ones, one, groups=[names]).values] == [1]
    with pytest.raises(sf.OpError, match=r"keys\[0\] = 18446744073709551615, in row 0, is not among names"):
        ops.keyed_permute(data, keys, ones, one, names=names)
    expected = [[i for i, key in enumerate(keys.tolist()) if key % 3 == part] for part in range(3)]
    shards = ops.partition(data, keys, parts=3)
    assert [shard.tolist() for shard in shards] == expected
    assert [value.tolist() for value in ops.partition_sequences(data, keys, one, parts=3).values] == expected
    assert ops.gather_by_key(shards, keys).tolist() == data.tolist()
    assert ops.group_order(keys, num_segments=8, outside="drop").order.tolist() == [3]
    with pytest.raises(OpIndexError, match=r"keys\[0\] = 18446744073709551615 is outside \[0, 8\)"):
        ops.key_split(keys, num_keys=8)


def test_limits_beyond_int64_limit_nothing():
    data, lengths, large = np.arange(4), np.array([4]), LARGE[1:2]
    cut = ops.truncate_together([data, data], [lengths, lengths], large, columns=2)
    assert [value.tolist() for value in cut.values] == [data.tolist()] * 2
    for start, stop, step in ((large, None, None), (None, large, None), (None, None, large)):
        python = slice(*(None if one is None else int(one[0]) for one in (start, stop, step)))
        found = ops.stride_within(data, lengths, start, stop, step).values.tolist()
        assert found == list(range(4))[python]
