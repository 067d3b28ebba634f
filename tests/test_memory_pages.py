"""Arrays on pages of 2 MiB hold what the arrays held, and large arrays of ours are on them by themselves."""

import sys
from pathlib import Path

import numpy as np
import pytest

import seqflow as sf
from seqflow import kernels
from seqflow.memory_pages import large_pages

MIB = 1 << 20
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


@needs_pages
@pytest.mark.parametrize("dtype", ["f4", "i8", "S7", "M8[s]"])
def test_a_copy_has_the_values_and_lies_on_large_pages(dtype):
    table = np.arange(5 * MIB // 8).astype("i8").view(dtype if dtype != "S7" else "S8").astype(dtype)
    copy = large_pages(table)
    assert asks_for_large_pages(copy)
    assert copy.ctypes.data % (2 * MIB) == 0
    assert copy.dtype == table.dtype
    assert copy.tobytes() == table.tobytes()
    assert copy.flags.writeable
    assert not np.shares_memory(copy, table)


@needs_pages
def test_rows_of_any_strides_become_contiguous():
    table = np.asfortranarray(np.random.default_rng(0).random((600, 1000)))[::-1, ::2]
    copy = large_pages(np.repeat(table, 2, axis=0)[::-1])
    assert copy.flags.c_contiguous
    np.testing.assert_array_equal(copy[::-1][::2], table)


@needs_pages
def test_a_mapped_file_is_copied(tmp_path):
    np.save(tmp_path / "table.npy", np.arange(MIB))
    mapped = np.load(tmp_path / "table.npy", mmap_mode="r")
    copy = large_pages(mapped)
    assert type(copy) is np.ndarray
    assert not asks_for_large_pages(mapped)
    assert asks_for_large_pages(copy)
    assert copy[-1] == MIB - 1


@needs_pages
def test_the_memory_lives_as_long_as_a_view():
    row = large_pages(np.arange(MIB))[-3:]
    assert row.tolist() == [MIB - 3, MIB - 2, MIB - 1]


def test_a_small_array_is_returned_itself():
    small = np.zeros(10)
    assert sf.large_pages(small) is small


def test_python_objects_are_refused():
    with pytest.raises(sf.OpError, match="array is object, expected a dtype without Python objects"):
        large_pages(np.zeros(MIB, object))


def test_what_is_not_an_array_is_refused():
    with pytest.raises(sf.OpError, match="array is"):
        large_pages([1, 2])


@needs_pages
def test_a_copy_that_does_not_fit_is_refused_before_it_is_made():
    with pytest.raises(MemoryError, match="bytes of memory, there are"):
        large_pages(np.broadcast_to(np.zeros(1), (1 << 45,)))


@pytest.mark.slow
@needs_pages
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="NumPy asks on Linux only")
def test_constants_that_are_read_and_vocabularies_are_on_large_pages(tmp_path):
    np.save(tmp_path / "table.npy", np.zeros((64 * MIB // 8,)))
    assert asks_for_large_pages(np.load(tmp_path / "table.npy"))
    assert asks_for_large_pages(kernels.hash_slots(np.arange(3 * MIB)))
    assert asks_for_large_pages(sf.Vocabulary(np.arange(3 * MIB)).freeze().table)
