"""Ids, indices and lengths of every integer dtype give what those of int64 give, for every op."""

import numpy as np
import pytest
from every_op import EXAMPLES, OPS, returned
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies.calls import calls

from seqflow.errors import SeqflowError
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
@pytest.mark.parametrize("op", DESCRIBED, ids=lambda op: op.name)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_integers_of_any_width_are_those_of_int64_in_all_ops(op, data):
    check(op, data)
