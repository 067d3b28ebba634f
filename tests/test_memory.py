"""Memory asked for by a number: refused before it is asked for, and the message says which argument it was; large arrays
are on large pages."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import seqflow as sf
from seqflow import kernels, ops
from seqflow.errors import OpMemoryError, OpTypeError
from seqflow.kernels import memory
from seqflow.kernels.error import beyond_memory

HUGE = 10**13
MIB = 1 << 20
IMPLEMENTATIONS = ["reference", "native"] if kernels.info()["kernels"] == "native" else ["reference"]
X, LENGTHS = np.arange(3.0), np.array([2, 1])


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: ops.pad(X, LENGTHS, max_length=HUGE), "max_length"),
        (lambda: ops.pad_lengths(X, LENGTHS, target_length=HUGE), "target_length"),
        (lambda: ops.add_padding(X, LENGTHS, before=HUGE), "before"),
        (lambda: ops.context_windows(X, LENGTHS, before=0, after=HUGE), "after"),
        (lambda: ops.context_windows(X, LENGTHS, before=2**62, after=0), "before"),
        (lambda: ops.lengths_topk(X, LENGTHS, k=HUGE), "k"),
        (lambda: ops.lengths_split(LENGTHS, n=HUGE), "n"),
        (lambda: ops.lengths_to_mask(LENGTHS, max_length=HUGE), "max_length"),
        (lambda: ops.segment_ids_to_lengths(LENGTHS[::-1], num_segments=HUGE), "num_segments"),
        (lambda: ops.unsorted_segment_sum(X[:2], LENGTHS, num_segments=HUGE), "num_segments"),
        (lambda: ops.unsorted_segment_max(X[:2], LENGTHS, num_segments=HUGE), "num_segments"),
        (lambda: ops.unpack_rows([[1, 2]], [0], [2], [1], num_sequences=HUGE), "num_sequences"),
        (lambda: ops.tile(X, repeats=[4, 2**62]), r"repeats\[1\]"),
        (lambda: ops.unsorted_segment_sum(X[:1], np.array([2**63 - 1])), "the largest of ids"),
        (lambda: ops.segment_ids_to_lengths(np.array([2**63 - 1])), "the largest of ids"),
        (lambda: ops.lengths_to_segment_ids(np.array([HUGE])), "the largest of lengths"),
        (lambda: ops.lengths_to_positions(np.array([2**62])), "the largest of lengths"),
        (lambda: ops.pack_sequence(np.empty((2**62, 0), "i1"), np.array([2**62])), "the largest of lengths"),
    ],
)  # fmt: skip
def test_a_number_that_asks_for_too_much_is_our_memory_error_and_named(implementation, call, argument):
    with (
        kernels.use(implementation),
        pytest.raises(OpMemoryError, match=rf"bytes.*: {argument} is \d+") as error,
    ):
        call()
    assert isinstance(error.value, MemoryError)


def test_a_result_that_does_not_fit_what_is_free_is_not_asked_for(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 1 << 28)
    with pytest.raises(
        OpMemoryError, match=r"the result needs 320,000,000 bytes of memory, there are 268,435,456 bytes"
    ):
        ops.pad_lengths(X, LENGTHS, target_length=20_000_000)


def test_small_results_do_not_ask_what_is_free(monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", None)
    assert ops.pad_lengths(X, LENGTHS, target_length=2_000_000).shape == (4_000_000,)


def test_what_is_free_is_no_more_than_a_machine_has():
    free = memory.free_bytes()
    assert free is None or 0 < free < 1 << 50


def test_errors_of_kernels_can_be_pickled():
    error = pickle.loads(pickle.dumps(beyond_memory(5, 3)))
    assert (str(error), error.kind) == ("the result needs 5 bytes of memory, there are 3 bytes", "memory")


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_rows_without_bytes_cost_nothing(implementation):
    nothing = np.empty((2**62, 0), "i1")
    with kernels.use(implementation):
        assert ops.lengths_argmax(nothing, np.array([2**62])).shape == (1, 0)
        assert ops.lengths_argmin(nothing, np.array([2**62])).shape == (1, 0)
        assert ops.expand(nothing[:1], np.array([2**40])).shape == (2**40, 0)
        assert ops.lengths_std(nothing, np.array([2**62])).shape == (1, 0)
        assert ops.unpack_by_time(nothing, np.array([], int)).shape == (0,)
        assert ops.gather_axis(nothing, np.array([], int), axis=-1).shape == nothing.shape
        assert ops.concat([nothing[: 2**40], nothing[: 2**40]]).shape == (2**41, 0)
        assert ops.pad_lengths(X[:0] > 0, LENGTHS[:0], target_length=2**62).shape == (0,)


def test_an_array_of_rows_without_bytes_is_no_list_of_arrays():
    with pytest.raises(OpTypeError, match="tensors is an array of 4611686018427387904 rows without bytes"):
        ops.concat(np.empty((2**62, 0), "i1"))


ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")
needs_pages = pytest.mark.skipif(
    not ENABLED.exists() or "[never]" in ENABLED.read_text(),
    reason="this system has no large pages on request",
)


def asks_for_large_pages(array):
    """Whether the memory in the middle of an array is marked for large pages (`hg`)."""
    middle, inside = array.ctypes.data + array.nbytes // 2, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, *rest = line.split()
        if "-" in first and not first.endswith(":"):
            start, end = (int(place, 16) for place in first.split("-"))
            inside = start <= middle < end
        elif inside and first == "VmFlags:":
            return "hg" in rest
    raise AssertionError("the array is in no mapping")


@pytest.mark.slow
@needs_pages
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="NumPy asks on Linux only")
def test_copies_constants_that_are_read_and_vocabularies_are_on_large_pages(tmp_path):
    np.save(tmp_path / "table.npy", np.zeros((64 * MIB // 8,)))
    mapped = np.load(tmp_path / "table.npy", mmap_mode="r")
    assert not asks_for_large_pages(mapped)
    assert asks_for_large_pages(np.array(mapped))
    assert asks_for_large_pages(np.load(tmp_path / "table.npy"))
    assert asks_for_large_pages(kernels.hash_slots(np.arange(3 * MIB)))
    assert asks_for_large_pages(sf.Vocabulary(np.arange(3 * MIB)).freeze().table)
