"""Whatever is given to an op, what it does not take is an error of ours, and what it takes is taken whole."""

import array
from contextlib import suppress

import numpy as np
import pytest

from seqflow import SeqflowError, kernels, ops, registry
from seqflow.errors import OpTypeError

IMPLEMENTATIONS = ["reference", "native"] if kernels.info()["kernels"] == "native" else ["reference"]
MASKED = np.ma.masked_array([2, 1], mask=[False, True])
VALUES = [
    np.void(b"abc"), np.array(1), [np.array(1)], [np.array([1])], [np.void(b"abc")], np.uint64(2**64 - 1), 2**4000,
    10**5000, -(10**5000), "²", "a\0b", "\ud800", np.ma.masked, [np.ma.masked], np.datetime64("NaT", "s"), 1j, float("nan"), object(), [[]],
]  # fmt: skip


@pytest.mark.parametrize("name", registry.names())
def test_attributes_are_values_of_theirs_or_errors_of_ours(name):
    for attribute in registry.get(name).attributes:
        for value in VALUES:
            with suppress(SeqflowError):
                attribute.check(value)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("call", [
    lambda lengths: ops.lengths_sum(np.arange(3.0), lengths),
    lambda lengths: ops.lengths_split(lengths, n=2),
    lambda lengths: ops.lengths_to_ranges(lengths),
    lambda lengths: ops.expand(np.arange(2.0), lengths),
    lambda lengths: ops.unpad(np.ones((2, 3)), lengths),
    lambda lengths: ops.shift(np.arange(3.0), lengths, by=1),
])  # fmt: skip
def test_lengths_of_other_kinds_are_read_whole_or_refused(implementation, call):
    with kernels.use(implementation):
        expected = np.asarray(call(np.array([2, 1])))
        assert np.asarray(call(array.array("q", [2, 1]))).tolist() == expected.tolist()
        with pytest.raises(OpTypeError, match="lengths is a masked array"):
            call(MASKED)


@pytest.mark.parametrize(
    "value", [np.void(b"abc"), [np.void(b"abc")], [np.array(1), np.array([1])], [MASKED[1]]]
)
def test_inputs_that_become_no_numbers_are_errors_of_ours(value):
    for call in (ops.sin, ops.lengths_to_offsets, ops.lengths_to_mask, lambda x: ops.gather([1], x)):
        with pytest.raises(SeqflowError):
            call(value)
