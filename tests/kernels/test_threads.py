"""Any number of threads, in any process, gives the same bits."""

import os
import threading

import numpy as np
import pytest

from seqflow import kernels

RANDOM = np.random.default_rng(2)
LENGTHS = np.r_[np.zeros(3, int), RANDOM.integers(0, 200, 5000), 300_000, 0, 1, 150_000]
ROWS = RANDOM.standard_normal((LENGTHS.sum(), 3)).astype(np.float32)
INDICES = RANDOM.integers(0, len(ROWS), len(ROWS))
PICKED = RANDOM.integers(0, len(LENGTHS), 20_000)

CALLS = {
    "lengths_to_segment_ids": lambda: kernels.lengths_to_segment_ids(LENGTHS),
    "sum": lambda: kernels.segment_reduce("sum", ROWS, LENGTHS),
    "mean of one column": lambda: kernels.segment_reduce("mean", ROWS[:, 0], LENGTHS),
    "max": lambda: kernels.segment_reduce("max", ROWS, LENGTHS),
    "one segment": lambda: kernels.segment_reduce("sum", ROWS, np.array([len(ROWS)])),
    "gather_segment_reduce": lambda: kernels.gather_segment_reduce("sum", ROWS, INDICES, LENGTHS, 0, 5),
    "softmax": lambda: kernels.softmax_within(ROWS, LENGTHS),
    "softmax of one column": lambda: kernels.softmax_within(ROWS[:, 0], LENGTHS),
    "log softmax of one column": lambda: kernels.softmax_within(ROWS[:, 0], LENGTHS, True),
    "logsumexp": lambda: kernels.segment_logsumexp(ROWS, LENGTHS),
    "logsumexp of one column": lambda: kernels.segment_logsumexp(ROWS[:, 0].astype(float), LENGTHS),
    "sort_within": lambda: kernels.sort_within(ROWS[:, 0], LENGTHS, descending=True),
    "argsort_within": lambda: kernels.argsort_within(ROWS, LENGTHS),
    "topk": lambda: np.stack(kernels.segment_topk(ROWS[:, 0], LENGTHS, 7)),
    "argmax": lambda: kernels.segment_arg("max", ROWS, LENGTHS),
    "cumsum": lambda: kernels.cumsum_within(ROWS, LENGTHS),
    "prod": lambda: kernels.segment_reduce("prod", ROWS, LENGTHS),
    "variance": lambda: kernels.segment_variance(ROWS, LENGTHS),
    "variance of one column": lambda: kernels.segment_variance(ROWS[:, 0], LENGTHS, 1),
    "normalize": lambda: kernels.normalize_within(ROWS, LENGTHS),
    "normalize one column": lambda: kernels.normalize_within(ROWS[:, 0], LENGTHS, True),
    "reverse cumsum": lambda: kernels.cumsum_within(ROWS[:, 0], LENGTHS, True, True),
    "argmin of one column": lambda: kernels.segment_arg("min", ROWS[:, 0], LENGTHS),
    "expand": lambda: kernels.expand(np.resize(ROWS, (len(LENGTHS), 16)), LENGTHS % 60),
    "group_rows": lambda: np.concatenate(kernels.group_rows(INDICES // 1000, 1 + len(ROWS) // 1000)),
    "gather": lambda: kernels.gather(ROWS, INDICES),
    "move_slices": lambda: moved(),
    "pad": lambda: kernels.pad(ROWS, LENGTHS, 150, 1, "left", truncate=True)[0],
    "unpad": lambda: kernels.unpad(RANDOM_PADDED, np.minimum(LENGTHS, 150)),
    "fill_packed": lambda: np.stack(
        kernels.fill_packed(ROWS[:, 0].view(np.int32), LENGTHS, kernels.plan_packing(LENGTHS, 512), 512)
    ),
}
RANDOM_PADDED = RANDOM.standard_normal((len(LENGTHS), 150, 2))


def moved():
    starts, sizes = kernels.lengths_to_offsets(LENGTHS)[PICKED], LENGTHS[PICKED] % 100
    ends = kernels.lengths_to_offsets(sizes)
    target = np.zeros((ends[-1], 3), np.float32)
    kernels.move_slices(ROWS, starts, sizes, target, ends[:-1])
    return target


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("special", [None, np.nan, np.inf, -np.inf])
def test_a_segment_that_threads_share_is_what_numpy_gives(native, two_threads, dtype, special):
    lengths = np.array([3, 300_001, 0, 5])
    data = RANDOM.standard_normal(lengths.sum()).astype(dtype)
    if special is not None:
        data[200_000] = special
    calls = {
        "softmax": lambda: kernels.softmax_within(data, lengths),
        "log softmax": lambda: kernels.softmax_within(data, lengths, True),
        "logsumexp": lambda: kernels.segment_logsumexp(data, lengths, -1),
    }
    for name, call in calls.items():
        with kernels.use("reference"):
            expected = call()
        np.testing.assert_allclose(call(), expected, rtol=1e-4, atol=1e-9, err_msg=name)


@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "f4", "f8"])
@pytest.mark.parametrize("threads", [1, 2, 16])
def test_long_segments_are_what_numpy_gives(native, two_threads, dtype, threads):
    """Cut into pieces, also where they have several columns, equal elements, NaN and zeros of both signs."""
    lengths = np.array([3, 300_001, 0, 5, 280_000, 1])
    rows = np.random.default_rng(3).integers(0, 100, (lengths.sum(), 2)).astype(dtype)
    if rows.dtype.kind == "f":
        rows[[7, 50_000, 290_000]] = -0.0
        rows[70_000:80_000:7] = 0.0
        rows[[100_000, 310_000, 310_001], 1] = np.nan
    column = rows[:, 1].copy()
    kernels.set_num_threads(threads)
    exact = [
        lambda: kernels.sort_within(column, lengths),
        lambda: kernels.sort_within(rows, lengths, descending=True),
        lambda: kernels.segment_arg("max", rows, lengths),
        lambda: kernels.segment_arg("min", column, lengths),
    ]
    near = [
        lambda: kernels.cumsum_within(rows, lengths),
        lambda: kernels.cumsum_within(column, lengths, reverse=True, exclusive=True),
        lambda: kernels.segment_variance(rows, lengths, 1, -1),
        lambda: kernels.segment_variance(column, lengths, 280_000, -1),
        lambda: kernels.normalize_within(rows, lengths),
        lambda: kernels.normalize_within(column, lengths, True),
    ]
    found = [call() for call in (*exact, *near)]
    with kernels.use("reference"):
        expected = [call() for call in (*exact, *near)]
    for one, other in zip(found[: len(exact)], expected, strict=False):
        assert one.tobytes() == other.tobytes()
    for one, other in zip(found[len(exact) :], expected[len(exact) :], strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["f4", "i8", "u1"])
@pytest.mark.parametrize("columns", [1, 3, 64, 100])
def test_segments_across_the_ends_of_blocks_are_what_numpy_gives(native, two_threads, dtype, columns):
    """Blocks have 2 ** 16 elements; a segment that is no longer stays whole, another one is cut."""
    block = 2**16 // columns
    lengths = np.array([5, block, block - 7, 0, 3 * block + 1, 9, 1])
    rows = np.random.default_rng(4).integers(0, 100, (lengths.sum(), columns)).astype(dtype)
    indices = np.arange(len(rows))[::-1].copy()
    starts = np.cumsum(lengths)[lengths > 0] - lengths[lengths > 0]
    for kind, function in (("sum", np.add), ("max", np.maximum)):
        found = (
            kernels.segment_reduce(kind, rows, lengths),
            kernels.gather_segment_reduce(kind, rows, indices, lengths),
        )
        for one, data in zip(found, (rows, rows[indices]), strict=True):
            np.testing.assert_array_equal(one[lengths > 0], function.reduceat(data, starts, dtype=one.dtype))
            assert not one[lengths == 0].any()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_two_threads_give_the_bits_of_one(native, two_threads, call):
    together = call().tobytes()
    kernels.set_num_threads(1)
    assert call().tobytes() == together


def test_a_fault_in_any_block_is_reported_by_its_first_position(native, two_threads):
    indices = INDICES.copy()
    indices[[400_000, 700_000]] = -1
    for call in (
        lambda: kernels.gather(ROWS, indices),
        lambda: kernels.gather_segment_reduce("sum", ROWS, indices, LENGTHS),
    ):
        with pytest.raises(kernels.KernelError, match=r"indices\[400000\] = -1"):
            call()


def test_python_threads_may_call_at_the_same_time(native, two_threads):
    expected = CALLS["sum"]().tobytes()
    found = []
    threads = [
        threading.Thread(target=lambda: found.append([CALLS["sum"]().tobytes() for _ in range(5)]))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[expected] * 5] * 4


def test_single_thread_may_be_nested(native, two_threads):
    expected = CALLS["sum"]().tobytes()
    with kernels.single_thread():
        with kernels.single_thread():
            assert CALLS["sum"]().tobytes() == expected
        assert CALLS["sum"]().tobytes() == expected
    assert CALLS["sum"]().tobytes() == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_child_computes_with_threads_of_its_own(native, two_threads):
    expected = CALLS["sum"]().tobytes()
    child = os.fork()
    if child == 0:
        os._exit(0 if all(CALLS["sum"]().tobytes() == expected for _ in range(3)) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert CALLS["sum"]().tobytes() == expected


def test_the_number_of_threads_is_at_least_1():
    with pytest.raises(ValueError, match="number of threads is 0, expected 1 or more"):
        kernels.set_num_threads(0)
    assert kernels.num_threads() >= 1
