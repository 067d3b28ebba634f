"""Pooling by lengths and by ids: what it means, which inputs are refused, and that tables stay where they are."""

import resource
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqflow import kernels, ops
from seqflow.errors import LodError, OpIndexError, SeqflowError

TABLE = np.array([1.0, 10.0, 100.0])
KINDS = ["sum", "mean", "max", "weighted_sum", "positional_weighted_sum"]


def arguments(kind, table, indices, lengths):
    """The inputs of an op of this kind, with weights 1 where it takes any."""
    sizes = {"weighted_sum": len(indices), "positional_weighted_sum": int(np.max(lengths, initial=0))}
    weights = (np.ones(sizes[kind], np.float32),) if kind in sizes else ()
    return (table, *weights, indices, lengths)


def pool(kind, table, indices, lengths, **attributes):
    return getattr(ops, f"sparse_lengths_{kind}")(*arguments(kind, table, indices, lengths), **attributes)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int64"])
@pytest.mark.parametrize("columns", [1, 3, 8, 33, 64, 100, 200])
@pytest.mark.parametrize("kind", KINDS)
def test_pooling_is_gathering_and_reducing(kind, columns, dtype):
    rng = np.random.default_rng(columns)
    table = rng.integers(-20, 20, (50, columns)).astype(dtype)
    lengths = np.array([0, 3, 32, 33, 0, 90, 1])
    indices = rng.integers(0, 50, lengths.sum())
    reduce = {"mean": ops.lengths_mean, "max": ops.lengths_max}.get(kind, ops.lengths_sum)
    expected = reduce(ops.gather(table, indices), lengths)
    for each in (indices, indices.astype(np.int32)):
        np.testing.assert_allclose(pool(kind, table, each, lengths), expected, rtol=1e-6)


def test_each_index_has_its_weight():
    sums = ops.sparse_lengths_weighted_sum(TABLE, np.array([0.5, 2, 3]), [0, 2, 2], [2, 0, 1])
    assert sums.tolist() == [200.5, 0, 300]


def test_each_position_of_a_segment_has_its_weight():
    sums = ops.sparse_lengths_positional_weighted_sum(TABLE, np.array([1.0, 2, 9]), [0, 2, 1], [2, 0, 1])
    assert sums.tolist() == [201, 0, 10]


@pytest.mark.parametrize("table", ["float16", "float32", "uint8"])
@pytest.mark.parametrize("weights", ["float16", "float32", "float64"])
def test_weighted_sums_have_the_dtype_of_both(table, weights):
    sums = ops.sparse_lengths_weighted_sum(np.ones((2, 5), table), np.ones(2, weights), [0, 1], [2])
    assert sums.dtype == ops.lengths_weighted_sum(np.ones((2, 5), table), np.ones(2, weights), [2]).dtype
    assert sums.tolist() == [[2] * 5]


@pytest.mark.parametrize("kind", KINDS)
def test_an_ignored_index_counts_for_nothing(kind):
    pooled = pool(kind, TABLE, np.array([2, -1, 2, -1]), np.array([3, 1]), ignore_index=-1, empty=7)
    assert pooled.tolist() == [100 if kind in ("mean", "max") else 200, 7]


def test_positions_count_ignored_indices():
    sums = ops.sparse_lengths_positional_weighted_sum(
        TABLE, [1.0, 2.0, 3.0], [0, -1, 0], [3], ignore_index=-1
    )
    assert sums.tolist() == [4]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("index", "position"), [(3, 1), (-1, 0), (2**62, 4)])
@pytest.mark.parametrize("columns", [1, 7, 64])
def test_an_index_outside_the_table_is_named(kind, index, position, columns):
    indices = np.zeros(5, np.int64)
    indices[position] = index
    with pytest.raises(OpIndexError, match=rf"indices\[{position}\] = {index} is outside \[0, 3\)"):
        pool(kind, np.ones((3, columns), np.float32), indices, np.array([2, 3]))


def test_weights_have_the_number_of_the_indices():
    with pytest.raises(SeqflowError, match="weights has 1"):
        ops.sparse_lengths_weighted_sum(TABLE, [1.0], [0, 1], [2])


def test_no_segment_is_longer_than_the_positional_weights():
    with pytest.raises(SeqflowError, match="weights"):
        ops.sparse_lengths_positional_weighted_sum(TABLE, [1.0], [0, 1], [2])


def test_lengths_have_to_add_up():
    with pytest.raises(LodError, match="indices"):
        ops.sparse_lengths_mean(TABLE, [0, 1], [3])


@given(st.lists(st.integers(0, 5), max_size=12), st.sampled_from(["sum", "mean", "weighted_sum"]))
def test_ids_in_any_order_are_grouped(ids, kind):
    ids = np.array(ids, np.int64)
    indices = np.arange(len(ids)) % 3
    weights = (np.arange(len(ids)) / 2,) if kind == "weighted_sum" else ()
    pooled = getattr(ops, f"sparse_unsorted_segment_{kind}")(TABLE, *weights, indices, ids, num_segments=6)
    rows = TABLE[indices]
    expected = getattr(ops, f"unsorted_segment_{kind}")(rows, *weights, ids, num_segments=6)
    np.testing.assert_allclose(pooled, expected)


@pytest.mark.parametrize("kind", ["sum", "mean", "weighted_sum"])
def test_sorted_ids_are_segments_one_after_another(kind):
    weights = (np.array([0.5, 2, 3]),) if kind == "weighted_sum" else ()
    given_ids = getattr(ops, f"sparse_sorted_segment_{kind}")(TABLE, *weights, [0, 2, 2], [0, 0, 1])
    given_lengths = getattr(ops, f"sparse_lengths_{kind}")(TABLE, *weights, [0, 2, 2], [2, 1])
    assert given_ids.tolist() == given_lengths.tolist()
    with pytest.raises(SeqflowError, match=r"ids\[1\] = 2"):
        getattr(ops, f"sparse_sorted_segment_{kind}")(TABLE, *weights, [0, 2, 2], [0, 2, 2])


def test_an_index_outside_is_named_at_its_place_among_unsorted_ids():
    with pytest.raises(OpIndexError, match=r"indices\[0\] = 9 is outside \[0, 3\)"):
        ops.sparse_unsorted_segment_sum(TABLE, [9, 0, 0], [5, 0, 1])


_POOL_A_MAPPED_TABLE = """
import sys
import numpy as np
from seqflow import ops

def private():
    fields = dict(line.split(":") for line in open("/proc/self/status") if ":" in line)
    return int(fields["RssAnon"].split()[0]) * 1024

for dtype, columns in (("float32", 64), ("float16", 128), ("uint8", 256)):
    table = np.memmap(sys.argv[1], dtype, "r", shape=(1 << 23, columns))
    indices = np.random.default_rng(0).integers(0, len(table), 400)
    before = private()
    sums = ops.sparse_lengths_weighted_sum(table, np.ones(400, np.float32), indices, np.full(20, 20))
    means = ops.sparse_lengths_mean(table, indices, np.full(20, 20))
    assert not sums.any() and not means.any()
    if dtype == "uint8":
        assert not ops.sparse_lengths_sum_quantized(table, indices, np.full(20, 20)).any()
    assert private() - before < 50 << 20, dtype
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/self/status")
@pytest.mark.skipif(not kernels.isas(), reason="NumPy copies what it reads")
def test_a_mapped_table_of_2_gb_is_not_copied(tmp_path):
    path = tmp_path / "table"
    with path.open("wb") as file:
        file.truncate(1 << 31)  # a hole: it takes no room on the disk
    assert resource.getpagesize() <= 1 << 16
    subprocess.run([sys.executable, "-c", _POOL_A_MAPPED_TABLE, path], check=True)


def test_a_list_column_of_arrow_is_a_table():
    import pyarrow as pa

    column = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(6, dtype=np.float32)), 2)
    table = column.flatten().to_numpy(zero_copy_only=True).reshape(len(column), 2)
    assert ops.sparse_lengths_sum(table, [0, 2], [2]).tolist() == [[4, 6]]
