"""Inputs for ops on ids, ranges, keys and boundaries, which have to fit what they point into."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from per_sequence import DTYPES, lengths_arrays, values

Call = tuple[dict[str, Any], dict[str, Any]]
ROW_SHAPES = st.lists(st.integers(0, 3), max_size=2)
INTEGERS = st.sampled_from(["int32", "int64", "uint8"])
ORDERED = st.sampled_from(["float32", "float64", "int32", "int64"])


def _below(draw: Any, limit: int, shape: Any) -> Any:
    """Integers below a limit, of any dtype."""
    return draw(hnp.arrays(draw(INTEGERS), shape, elements=st.integers(0, limit - 1)))


def _ranges(draw: Any, rows: int, shape: tuple[int, ...]) -> Any:
    starts = draw(hnp.arrays("int64", shape, elements=st.integers(0, rows)))
    sizes = draw(hnp.arrays("int64", shape, elements=st.integers(0, 3)))
    return np.stack([starts, np.minimum(sizes, rows - starts)], axis=-1).astype(draw(INTEGERS))


@st.composite
def _gather_ranges(draw: Any, op: Any = None) -> Call:
    """Ranges inside the data."""
    rows = draw(st.integers(0, 5))
    data = values(draw, draw(st.sampled_from(DTYPES)), (rows, *draw(ROW_SHAPES)))
    return {
        "data": data,
        "ranges": _ranges(draw, rows, (draw(st.integers(0, 3)), draw(st.integers(0, 3)))),
    }, {}


@st.composite
def _gather_ranges_to_dense(draw: Any, op: Any = None) -> Call:
    """Ranges of the length that is meant or of another one, and keys."""
    rows, count = draw(st.integers(0, 5)), draw(st.integers(1, 3))
    data = values(draw, draw(st.sampled_from(DTYPES)), (rows,))
    keys = draw(hnp.arrays("int64", rows, elements=st.integers(0, 3)))
    lengths = draw(st.lists(st.integers(0, 3), min_size=count, max_size=count))
    ranges = _ranges(draw, rows, (draw(st.integers(0, 3)), count))
    return {"data": data, "ranges": ranges, "keys": keys}, {"lengths": lengths}


@st.composite
def _sparse_to_dense(draw: Any, op: Any = None) -> Call:
    """Indices below the number of rows, with duplicates."""
    count = draw(st.integers(0, 5))
    indices = _below(draw, 4, count)
    rows = values(
        draw, draw(st.sampled_from(["float32", "int64", "uint8", "bool"])), (count, *draw(ROW_SHAPES))
    )
    num_rows = {"num_rows": draw(st.integers(4, 6))} if draw(st.booleans()) else {}
    return {"values": rows, "indices": indices}, {
        "duplicates": draw(st.sampled_from(["sum", "last"])),
        **num_rows,
    }


@st.composite
def _sparse_to_dense_mask(draw: Any, op: Any = None) -> Call:
    """Ids of which the mask lists some."""
    lengths, row, dtype = draw(lengths_arrays()), draw(ROW_SHAPES), draw(st.sampled_from(DTYPES))
    count = int(lengths.sum())
    indices = draw(hnp.arrays(st.sampled_from(["int32", "int64"]), count, elements=st.integers(-1, 5)))
    mask = draw(st.lists(st.integers(0, 5), unique=True, max_size=4))
    rows = {"values": values(draw, dtype, (count, *row)), "default": values(draw, dtype, row)}
    return {**rows, "indices": indices, "lengths": lengths}, {"mask": mask}


@st.composite
def _below_width(draw: Any, op: Any = None) -> Call:
    """Ids below the width of the rows."""
    width, names = draw(st.integers(1, 4)), [argument.name for argument in op.signature.input_arguments]
    if "lengths" not in names:
        return {"x": _below(draw, width, draw(st.lists(st.integers(0, 3), min_size=1, max_size=2)))}, {
            "width": width
        }
    lengths = draw(lengths_arrays())
    count = int(lengths.sum())
    inputs = {"indices": _below(draw, width, count), "lengths": lengths}
    if "values" in names:
        inputs = {"values": values(draw, draw(st.sampled_from(DTYPES)), (count,)), **inputs}
    return inputs, {"width": width}


def _ascending(draw: Any, lengths: Any) -> Any:
    """A list of boundaries for each length, each in order."""
    dtype = draw(ORDERED)
    lists = [np.sort(values(draw, dtype, (int(length),))) for length in lengths]
    return np.concatenate([np.zeros(0, dtype), *lists])


@st.composite
def _bucketize(draw: Any, op: Any = None) -> Call:
    shape = draw(st.lists(st.integers(0, 4), min_size=1, max_size=2))
    return {
        "x": values(draw, draw(ORDERED), shape),
        "boundaries": _ascending(draw, [draw(st.integers(0, 40))]),
    }, {}


@st.composite
def _columns_in_buckets(draw: Any, op: Any = None) -> Call:
    """A matrix, and boundaries for its columns, or for some of them."""
    lengths = draw(lengths_arrays())
    boundaries, columns = _ascending(draw, lengths), {}
    width = len(lengths)
    if op.name == "batch_bucketize":
        width = draw(st.integers(1, 4))
        columns = {"columns": _below(draw, width, len(lengths))}
    x = values(draw, draw(ORDERED), (draw(st.integers(0, 4)), width))
    return {"x": x, "boundaries": boundaries, **columns, "lengths": lengths}, {}


@st.composite
def _dealt_out(draw: Any, op: Any = None) -> Call:
    """Keys, and the rows that each remainder has."""
    parts, row, dtype = draw(st.integers(1, 3)), draw(ROW_SHAPES), draw(st.sampled_from(DTYPES))
    keys = draw(
        hnp.arrays(st.sampled_from(["int32", "int64"]), st.integers(0, 6), elements=st.integers(-9, 9))
    )
    sizes = [int(np.count_nonzero(keys % parts == i)) for i in range(parts)]
    return {"shards": [values(draw, dtype, (size, *row)) for size in sizes], "keys": keys}, {}


@st.composite
def _few_keys(draw: Any, op: Any = None) -> Call:
    count = draw(st.integers(1, 4))
    return {"keys": _below(draw, count, draw(st.integers(0, 6)))}, {"num_keys": count}


@st.composite
def _id_lists(draw: Any, op: Any = None) -> Call:
    """Id lists of one dtype, as many in each."""
    dtype, count = draw(ORDERED), draw(st.integers(0, 4))
    lengths = draw(st.lists(lengths_arrays(count=count), min_size=1, max_size=3))
    return {"data": [values(draw, dtype, (int(one.sum()),)) for one in lengths], "lengths": lengths}, {}


IDS = {
    "batch_bucket_one_hot": _columns_in_buckets,
    "batch_bucketize": _columns_in_buckets,
    "batch_sparse_to_dense": _below_width,
    "bucketize": _bucketize,
    "gather_by_key": _dealt_out,
    "gather_ranges": _gather_ranges,
    "gather_ranges_to_dense": _gather_ranges_to_dense,
    "key_split": _few_keys,
    "merge_id_lists": _id_lists,
    "one_hot": _below_width,
    "segment_one_hot": _below_width,
    "sparse_to_dense": _sparse_to_dense,
    "sparse_to_dense_mask": _sparse_to_dense_mask,
}
