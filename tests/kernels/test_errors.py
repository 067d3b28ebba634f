"""Every message of a kernel, and what it carries."""

import pickle

import numpy as np
import pytest

from seqflow import kernels
from seqflow.kernels import KernelError

A = np.array
ROWS = np.arange(6.0).reshape(3, 2)
PLAN = (A([0, 1]), A([0, 0]), A([2, 1]), A([2]))

CASES = [
    (lambda: kernels.check_lengths(A([1, -2])), "negative", 1, "lengths[1] = -2 is negative"),
    (
        lambda: kernels.check_lengths(A([2**62, 2**62])),
        "overflow", 1, "sum(lengths) overflows int64 at lengths[1] = 4611686018427387904",
    ),
    (
        lambda: kernels.check_lengths(A([1, 2**63], np.uint64)),
        "overflow", 1, "lengths[1] = 9223372036854775808 does not fit int64",
    ),
    (lambda: kernels.max_length(A([3, -1], np.int8)), "negative", 1, "lengths[1] = -1 is negative"),
    (
        lambda: kernels.segment_reduce("sum", ROWS, A([2, 2])),
        "sum", None, "sum(lengths) is 4 but data has 3 rows",
    ),
    (lambda: kernels.gather(ROWS, A([0, 3])), "index", 1, "indices[1] = 3 is outside [0, 3)"),
    (lambda: kernels.gather(ROWS, A([-1])), "index", 0, "indices[0] = -1 is outside [0, 3)"),
    (lambda: kernels.gather(ROWS, A([[0], [-4]]), wrap=True), "index", 1, "indices[1] = -4 is outside [-3, 3)"),
    (
        lambda: kernels.gather(np.zeros((1_000_000, 2)), np.r_[np.zeros(17, int), 1_000_012]),
        "index", 17, "indices[17] = 1000012 is outside [0, 1000000)",
    ),
    (
        lambda: kernels.gather_segment_reduce("sum", ROWS, A([0, 1, 9]), A([3])),
        "index", 2, "indices[2] = 9 is outside [0, 3)",
    ),
    (
        lambda: kernels.gather_segment_reduce("sum", ROWS, A([0, 1]), A([3])),
        "sum", None, "sum(lengths) is 3 but indices has 2 rows",
    ),
    (lambda: kernels.pad(ROWS, A([1, 2]), 1), "bounds", 1, "lengths[1] = 2 is longer than 1"),
    (lambda: kernels.unpad(ROWS, A([1, 2, 3])), "bounds", 2, "lengths[2] = 3 is longer than 2"),
    (
        lambda: kernels.unpad(A([["a"]]), A([2**62])),
        "bounds", 0, "lengths[0] = 4611686018427387904 is longer than 1",
    ),
    (
        lambda: kernels.move_slices(ROWS, A([0, 2]), A([1, 2]), np.zeros((9, 2)), A([0, 1])),
        "bounds", 1, "source_starts[1] = 2 starts a slice of 2 rows outside [0, 3)",
    ),
    (
        lambda: kernels.move_slices(ROWS, A([0]), A([2]), np.zeros((1, 2)), A([0])),
        "bounds", 0, "target_starts[0] = 0 starts a slice of 2 rows outside [0, 1)",
    ),
    (
        lambda: kernels.move_slices(ROWS, A([0]), A([-1]), np.zeros((1, 2)), A([0])),
        "negative", 0, "sizes[0] = -1 is negative",
    ),
    (
        lambda: kernels.fill_packed(ROWS, A([2, 1]), PLAN, 2),
        "bounds", 0, "the pieces of row 0 have 3 elements, more than the capacity 2",
    ),
    (
        lambda: kernels.fill_packed(ROWS, A([1, 2]), PLAN, 4),
        "bounds", 0, "starts[0] = 0 starts a slice of 2 rows outside [0, 1)",
    ),
    (
        lambda: kernels.fill_packed(ROWS, A([3]), PLAN, 4),
        "index", 1, "sources[1] = 1 is outside [0, 1)",
    ),
    (
        lambda: kernels.gather(ROWS, A([0]), out=np.zeros((1, 3))),
        "out", None, "out is float64[1, 3], expected float64[1, 2]",
    ),
    (
        lambda: kernels.pad(ROWS, A([3]), 3, out=np.zeros((1, 2, 3)).transpose(0, 2, 1)),
        "out", None,
        "out is not contiguous and aligned, in native byte order, expected a writable C-contiguous array",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "position", "message"), CASES)
def test_a_message_says_what_was_found_and_where(any_kernels, call, kind, position, message):
    with pytest.raises(KernelError) as caught:
        call()
    assert str(caught.value) == message
    assert (caught.value.kind, caught.value.position) == (kind, position)


def test_an_index_error_carries_the_value_and_its_range(any_kernels):
    with pytest.raises(KernelError) as caught:
        kernels.gather(ROWS, A([0, 7]))
    error = caught.value
    assert (error.argument, error.position, error.value, error.low, error.high) == ("indices", 1, 7, 0, 3)


def test_a_negative_length_is_named_even_where_the_sum_is_right(any_kernels):
    with pytest.raises(KernelError, match=r"lengths\[0\] = -1 is negative"):
        kernels.segment_reduce("sum", ROWS, A([-1, 4]))


def test_no_slice_is_written_where_one_is_outside(any_kernels):
    target = np.zeros((2, 2))
    with pytest.raises(KernelError):
        kernels.move_slices(ROWS, A([0, 9]), A([1, 1]), target, A([0, 1]))
    assert not target.any()


@pytest.mark.parametrize("lengths", [A([1.0]), A(["1"]), A([True])])
def test_lengths_are_integers(any_kernels, lengths):
    with pytest.raises(TypeError, match="expected integers"):
        kernels.check_lengths(lengths)


def test_lengths_have_one_dimension(any_kernels):
    with pytest.raises(ValueError, match="lengths has 2 dimensions, expected 1"):
        kernels.check_lengths(np.zeros((2, 2), int))


def test_a_read_only_target_is_refused(any_kernels):
    target = np.zeros((2, 2))
    target.flags.writeable = False
    with pytest.raises(KernelError, match="target is read-only"):
        kernels.move_slices(ROWS, A([0]), A([1]), target, A([0]))


def test_an_error_can_be_pickled_with_all_it_knows_and_its_notes():
    with pytest.raises(KernelError) as caught:
        kernels.lengths_to_offsets(np.array([1, -2]))
    caught.value.add_note("in a worker")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), vars(copy)) == (str(caught.value), vars(caught.value))
    assert copy.value == -2
