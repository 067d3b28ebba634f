"""Memory of large results is kept for later ones, up to a limit, and no two results ever share it."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from seqflow import kernels, ops

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux")
    or kernels.info()["kernels"] != "native"
    or "san.so"
    in os.environ.get("LD_PRELOAD", ""),  # a sanitizer keeps freed memory itself, to see who uses it
    reason="nothing is kept here",
)
MIB = 1 << 20


@pytest.fixture(autouse=True)
def nothing_kept():
    kernels.set_kept_memory(0)
    kernels.set_kept_memory(256 * MIB)
    yield
    kernels.set_kept_memory(0)
    kernels.set_kept_memory(256 * MIB)


def large(rows=300_000):
    """A result of 8 bytes a row."""
    return ops.lengths_to_positions(np.array([rows]))


def test_memory_of_a_result_that_is_gone_is_the_next_ones():
    first = large()
    address = first.ctypes.data
    del first
    assert kernels.kept_memory() >= 300_000 * 8
    second = large()
    assert second.ctypes.data == address
    assert kernels.kept_memory() == 0
    assert second.flags.owndata
    assert second.flags.carray
    assert address % 64 == 0


def lent():
    """Bytes that the system may take from this process (MADV_FREE), or a skip where it does not count them."""
    try:
        with open("/proc/self/smaps_rollup") as lines:
            found = [line.split() for line in lines if line.startswith("LazyFree:")]
    except OSError:
        found = []
    if not found:
        pytest.skip("this system does not count memory that it may take")
    return int(found[0][1]) << 10


def test_the_system_may_take_freed_results_except_the_latest_32_mib_of_small_pages():
    before = lent()
    results = [large() for _ in range(13)]
    del results
    assert lent() - before < MIB
    results = [large() for _ in range(25)]
    del results
    assert lent() - before > 10 * MIB
    kernels.set_kept_memory(0)
    kernels.set_kept_memory(256 * MIB)
    large_pages = large(4 * MIB)
    del large_pages
    assert lent() - before > 10 * MIB


def test_results_that_are_there_share_nothing():
    sizes = [150_000 + 7_000 * i for i in range(12)]
    for _ in range(3):
        found = [large(size) for size in sizes]
        for mark, one in enumerate(found):
            one[:] = mark
        assert [set(one) for one in found] == [{mark} for mark in range(len(sizes))]
        del found[::2]


def test_a_view_keeps_the_memory_of_its_array():
    view = large()[5:9]
    other = large()
    other[:] = -1
    assert view.tolist() == [5, 6, 7, 8]


def test_no_more_is_kept_than_the_limit_and_the_oldest_goes_first():
    kernels.set_kept_memory(5 * MIB)
    three = [large() for _ in range(3)]
    newest = three[-1].ctypes.data
    del three[0], three[0], three[0]
    assert 2 * 300_000 * 8 <= kernels.kept_memory() <= 5 * MIB
    assert large().ctypes.data == newest
    kernels.set_kept_memory(0)
    large()
    assert kernels.kept_memory() == 0


def test_small_results_and_arrays_of_others_are_numpys_own():
    small = ops.lengths_to_positions(np.array([10]))
    theirs = np.empty(4 * MIB, np.uint8)
    del small, theirs
    assert kernels.kept_memory() == 0


def test_arrays_can_grow_and_shrink():
    found = large()
    found.resize(900_000, refcheck=False)
    assert (found[:300_000] == np.arange(300_000)).all()
    assert not found[300_000:].any()
    found.resize(10, refcheck=False)
    assert found.tolist() == list(range(10))


def test_a_negative_limit_is_an_error():
    with pytest.raises(ValueError, match=r"is -1, expected at least 0"):
        kernels.set_kept_memory(-1)


def test_threads_get_memory_of_their_own():
    wrong = []

    def work(mark):
        for i in range(30):
            found = large(150_000 + 1_000 * (i % 5))
            found[:] = mark
            if (found != mark).any():
                wrong.append(mark)

    threads = [threading.Thread(target=work, args=(mark,)) for mark in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert wrong == []


def test_a_forked_child_makes_results():
    program = """
import os, numpy as np
from seqflow import ops
ops.lengths_to_positions(np.array([300_000]))
child = os.fork()
if child == 0:
    os._exit(int(ops.lengths_to_positions(np.array([300_000]))[-1] != 299_999))
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    command = [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", program]
    assert subprocess.run(command, env=os.environ).returncode == 0
