"""Inputs for ops on sequences, where signatures do not say enough."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from per_sequence import DTYPES, lengths_arrays, ragged, values

Call = tuple[dict[str, Any], dict[str, Any]]
ROW_SHAPES = st.lists(st.integers(0, 3), max_size=2)


@st.composite
def _slices(draw: Any, op: Any = None) -> Call:
    """A slice inside each sequence."""
    data, lengths = draw(ragged())
    starts = [draw(st.integers(0, int(length))) for length in lengths]
    sizes = [draw(st.integers(0, int(n) - start)) for n, start in zip(lengths, starts, strict=True)]
    dtypes = st.sampled_from(["int32", "int64", "uint8", "uint64"])
    starts, sizes = np.array(starts, draw(dtypes)), np.array(sizes, draw(dtypes))
    return {"data": data, "starts": starts, "sizes": sizes, "lengths": lengths}, {}


@st.composite
def _reshapable(draw: Any, op: Any = None) -> Call:
    """Sequences whose elements fill rows of `width`."""
    width, row = draw(st.integers(1, 3)), draw(ROW_SHAPES)
    lengths = draw(lengths_arrays(longest=3)).astype(np.int32) * np.int32(width)
    return {"data": values(draw, "int64", (int(lengths.sum()), *row)), "lengths": lengths}, {"width": width}


@st.composite
def _shards(draw: Any, op: Any) -> Call:
    """Sequences whose chunks are equally long, in each of them or together."""
    parts, order = draw(st.integers(1, 3)), draw(st.sampled_from(["zigzag", "zigzag_row", "contiguous"]))
    lengths = draw(lengths_arrays(longest=3)).astype(np.int32)
    if order == "zigzag":
        lengths = lengths * np.int32(2 * parts)
    elif len(lengths):
        lengths[-1] += -int(lengths.sum()) % (2 * parts)
    data = values(draw, draw(st.sampled_from(DTYPES)), (int(lengths.sum()), *draw(ROW_SHAPES)))
    part = (
        {"part": draw(st.integers(0, parts - 1))}
        if "part" in op.defaults or op.name == "shard_sequences"
        else {}
    )
    return {"data": data, "lengths": lengths}, {"parts": parts, "order": order, **part}


@st.composite
def _scattered(draw: Any, op: Any = None) -> Call:
    """Updates of the dtype of `x`, at indices it has."""
    dtype, width = (
        draw(st.sampled_from(["float16", "float32", "int64", "uint8", "bool"])),
        draw(st.integers(1, 4)),
    )
    row, lengths = draw(ROW_SHAPES), draw(lengths_arrays())
    count = int(lengths.sum())
    indices = draw(
        hnp.arrays(st.sampled_from(["int32", "uint64"]), count, elements=st.integers(0, width - 1))
    )
    x = values(draw, dtype, (len(lengths), width, *row))
    return {"x": x, "updates": values(draw, dtype, (count, *row)), "indices": indices, "lengths": lengths}, {}


@st.composite
def _joinable(draw: Any, op: Any = None) -> Call:
    """One to four columns with as many sequences each, of one dtype and row shape."""
    dtype, row, count = draw(st.sampled_from(DTYPES)), draw(ROW_SHAPES), draw(st.integers(0, 4))
    lengths = draw(st.lists(lengths_arrays(count=count), min_size=1, max_size=4))
    data = [values(draw, dtype, (int(one.sum()), *row)) for one in lengths]
    data = [np.repeat(one, 2, axis=0)[::2] if draw(st.booleans()) else one for one in data]
    return {"data": data, "lengths": lengths}, {}


@st.composite
def _unmaskable(draw: Any, op: Any = None) -> Call:
    """Masks that cover every row, and the values of the rows each is the first to cover."""
    count, rows = draw(st.integers(1, 3)), draw(st.integers(0, 5))
    owner = draw(hnp.arrays("int64", rows, elements=st.integers(0, count - 1)))
    masks = [(owner == i) | ((owner < i) & draw(hnp.arrays(bool, rows))) for i in range(count)]
    dtype, row = draw(st.sampled_from(DTYPES)), draw(ROW_SHAPES)
    shapes = [(int(np.count_nonzero(owner == i)), *row) for i in range(count)]
    return {"values": [values(draw, dtype, shape) for shape in shapes], "mask": masks}, {}


@st.composite
def repeating(draw: Any, op: Any = None) -> Call:
    """Sequences of which some are equal, or begin alike, with a key for each content."""
    dtype = draw(st.sampled_from(["float32", "int64", "uint8", "bool"]))
    contents = draw(st.lists(st.lists(st.integers(0, 1), max_size=4), min_size=1, max_size=4))
    chosen = draw(st.lists(st.integers(0, len(contents) - 1), max_size=6))
    flat = [element for i in chosen for element in contents[i]]
    lengths = np.array(
        [len(contents[i]) for i in chosen], draw(st.sampled_from(["int32", "int64", "uint16"]))
    )
    keys = np.array(chosen, draw(st.sampled_from(["int64", "float32"])))
    return {"data": np.array(flat, dtype), "lengths": lengths, "keys": keys}, {}


@st.composite
def _trees(draw: Any, op: Any = None) -> Call:
    """Segments in preorder; some are empty."""
    sizes = draw(lengths_arrays())
    path, parents = [], []
    for i in range(len(sizes)):
        path = path[: draw(st.integers(0, len(path)))]
        parents.append(path[-1] if path else -1)
        path.append(i)
    return {"parents": np.array(parents, np.int64), "node_lengths": sizes}, {}


SEQUENCES = {
    "boolean_unmask": _unmaskable,
    "concat_sequences": _joinable,
    "distinct_sequences": repeating,
    "interleave": _joinable,
    "prefix_tree": repeating,
    "reshape_sequences": _reshapable,
    "scatter_sequences": _scattered,
    "shard_sequences": _shards,
    "slice_sequences": _slices,
    "tree_paths": _trees,
    "unshard_sequences": _shards,
}
