"""Cut, reorder, extend and repeat sequences."""

from typing import Any, Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import LodError, OpError, OpIndexError, OpTypeError
from seqflow.kernels.arrays import Array, int64_integers
from seqflow.ops.shared.adding import add_at
from seqflow.ops.shared.scalars import cast_rows, with_fill
from seqflow.ops.shared.slices import int64, move_sequences, slice_positions, starts_of
from seqflow.registry import MovedRows, op
from seqflow.shape import InferenceContext
from seqflow.signature import Fill, NonNegative, Positive


@op(
    "data[sum(lengths), *d], lengths[B]"
    " -> values[sum(lengths'), *d], int64 lengths'[B] := minimum(lengths, max_length)",
    grad=MovedRows(),
)
def truncate(
    data: Array, lengths: Array, *, max_length: NonNegative, keep: Literal["head", "tail"] = "head"
) -> tuple[Array, Array]:
    """Cut each sequence to at most `max_length` rows, the first or the last ones; an empty one stays empty.

    >>> truncate(np.array([1, 2, 3, 4]), np.array([3, 0, 1]), max_length=2)
    TruncateResult(values=array([1, 2, 4]), lengths=array([2, 0, 1]))
    """
    sizes = int64(lengths)
    # max_length is any Python integer: bounded by the longest length it fits int64
    kept = np.minimum(sizes, min(max_length, kernels.max_length(sizes)))
    starts = starts_of(sizes)
    if keep == "tail":
        starts = starts + (sizes - kept)
    return move_sequences(data, starts, kept), kept


def _infer_slices(ctx: InferenceContext) -> None:
    """Infer that without `clip` the lengths are the requested sizes."""
    ctx.check_positions("starts", "lengths")
    if not ctx.attr("clip") and ctx.dtype("sizes") == np.int64:
        ctx.same_value(1, "sizes")


@op(
    "data[sum(lengths), *d], int starts[B], int sizes[B], lengths[B]"
    " -> values[sum(lengths'), *d], int64 lengths'[B] <= minimum(lengths, sizes)",
    shape=_infer_slices,
    depends={"lengths": "starts, sizes, lengths"},
    grad=MovedRows(),
)
def slice_sequences(
    data: Array, starts: Array, sizes: Array, lengths: Array, *, clip: bool = False
) -> tuple[Array, Array]:
    """Take the rows `start` to `start + size` of each sequence, counted inside the sequence.

    A slice that goes beyond its sequence is an error, unless `clip` cuts it at the end. An empty slice is allowed,
    also at the end of its sequence. Negative starts and sizes are errors. This is Paddle's sequence_slice.

    A row inserted at the place `at[i]` of sequence i:

        head = slice_sequences(x, zeros_like(at), at, n)
        tail = slice_sequences(x, at, n - at, n)
        concat_sequences([head.values, rows, tail.values], [head.lengths, ones, tail.lengths])

    >>> slice_sequences(np.array([1, 2, 3, 4]), np.array([1, 0, 0]), np.array([2, 0, 1]), np.array([3, 0, 1]))
    SliceSequencesResult(values=array([2, 3, 4]), lengths=array([2, 0, 1]))
    """
    rows = int64(lengths)
    if clip:
        _check_range("starts", starts, None)
        _check_range("sizes", sizes, None)
        inside = int64(np.minimum(starts, rows))
        kept = int64(np.minimum(sizes, rows - inside))
    else:
        _check_range("starts", starts, rows)
        inside = int64(starts)
        _check_range("sizes", sizes, rows - inside)
        kept = sizes.astype(np.int64)
    return move_sequences(data, starts_of(rows) + inside, kept), kept


def _check_range(name: str, values: Array, limits: Array | None) -> None:
    """Raise OpError for the first value below 0 or above its limit."""
    wrong = values < 0 if limits is None else (values < 0) | (values > limits)
    if wrong.any():
        i = int(np.argmax(wrong))
        most = "" if limits is None else f" to {limits[i]}, what its sequence has"
        raise OpError(f"{name}[{i}] is {values[i]}, expected 0{most or ' or more'}")


@op(
    "data[sum(lengths), *d], lengths[B]"
    " -> values[sum(lengths'), *d], int64 lengths'[sum(counts)] <= minimum(max(lengths), chunk),"
    " int64 counts[B] <= minimum(lengths//(stride|chunk) + 1, lengths),"
    " sum(lengths') <= sum(lengths) * ((chunk + (stride|chunk) - 1)//(stride|chunk))",
    depends={"lengths": "lengths", "counts": "lengths"},
    describes={"lengths": "sum(lengths) unless stride"},
    grad=MovedRows(),
)
def split_sequences(
    data: Array, lengths: Array, *, chunk: Positive, stride: Positive | None = None
) -> tuple[Array, Array, Array]:
    """Cut each sequence into pieces of `chunk` rows (the last one may be shorter), which adds a level of lengths.

    `counts` is the number of pieces of each sequence; an empty sequence has none. With a `stride` below `chunk` the
    pieces overlap: one starts every `stride` rows, until the end is covered. Without overlap `values` are `data`
    itself, not a copy.

    >>> split_sequences(np.array([1, 2, 3, 4]), np.array([3, 0, 1]), chunk=2)
    SplitSequencesResult(values=array([1, 2, 3, 4]), lengths=array([2, 1, 1]), counts=array([2, 0, 1]))
    """
    step = chunk if stride is None else stride
    if step > chunk:
        raise OpError(f"stride is {step}, expected at most chunk = {chunk}: rows in between would be lost")
    sizes = int64(lengths)
    longest = max(kernels.max_length(sizes), 1)
    chunk, step = min(chunk, longest), min(step, longest)  # the same pieces, in numbers that fit int64
    counts = np.where(sizes == 0, 0, -(-np.maximum(sizes - chunk, 0) // step) + 1)
    owner = kernels.lengths_to_segment_ids(counts)
    start_inside = (np.arange(len(owner)) - starts_of(counts)[owner]) * step
    pieces = np.minimum(sizes[owner] - start_inside, chunk)
    if step == chunk:
        return data, pieces, counts
    return move_sequences(data, starts_of(sizes)[owner] + start_inside, pieces), pieces, counts


@op(
    "data[sum(lengths), *d], lengths[B] -> reversed[sum(lengths), *d]",
    grad={"data": "reverse_sequences(d.reversed, lengths)"},
)
def reverse_sequences(data: Array, lengths: Array) -> Array:
    """Reverse the rows of each sequence; an empty sequence stays empty.

    >>> reverse_sequences(np.array([1, 2, 3]), np.array([2, 0, 1]))
    array([2, 1, 3])
    """
    offsets = kernels.lengths_to_offsets(lengths)
    mirrored = kernels.expand(offsets[:-1] + offsets[1:] - 1, lengths)
    mirrored -= np.arange(len(mirrored))
    return kernels.gather(data, mirrored)


@op(
    "data[T>=max(lengths), B, *d], lengths[B] -> reversed[P=T, B, *d]",
    caffe2="ReversePackedSegs",
    grad={"data": "reverse_packed(d.reversed, lengths)"},
)
def reverse_packed(data: Array, lengths: Array) -> Array:
    """Reverse the first `lengths[b]` steps of each column b of a dense batch; padding stays in place.

    Time is the first axis of the batch. An empty sequence is all padding.

    >>> reverse_packed(np.array([[1, 4], [2, 0], [3, 0]]), np.array([3, 1]))
    array([[3, 4],
           [2, 0],
           [1, 0]])
    """
    steps, batch = data.shape[:2]
    time = np.arange(steps)[:, None]
    sizes = int64(lengths)
    source = np.where(time < sizes, sizes - 1 - time, time) * batch + np.arange(batch)
    rows = data.reshape(steps * batch, *data.shape[2:])
    return kernels.gather(rows, source)


@op(
    "data[sum(lengths), *d], lengths[B] -> shifted[sum(lengths), *d]",
    grad={"data": "shift(d.shifted, lengths, by=-by)"},
)
def shift(data: Array, lengths: Array, *, by: int, fill: Fill = 0) -> Array:
    """Move the rows of each sequence `by` places towards its end (towards its start if `by` is negative).

    Rows moved out of their sequence are dropped, free places are filled with `fill`, and no row enters another
    sequence. An empty sequence stays empty. `shift(tokens, lengths, by=-1)` gives the next token of each.

    The difference of each row to the one before, 0 for the first:

        where(lengths_to_positions(n) == 0, 0, x - shift(x, n, by=1))

    >>> shift(np.array([1, 2, 3, 4]), np.array([3, 0, 1]), by=1)
    array([0, 1, 2, 0])
    """
    data, value = with_fill("fill", fill, data)
    sizes, starts = int64(lengths), starts_of(lengths)
    free = np.minimum(sizes, min(abs(by), kernels.max_length(sizes)))
    kept = sizes - free
    shifted = np.empty_like(data, order="C", subok=False)
    forward = by > 0
    kernels.move_slices(
        data, starts if forward else starts + free, kept, shifted, starts + free if forward else starts
    )
    shifted[slice_positions(starts if forward else starts + kept, free)] = value
    return shifted


@op(
    "data[sum(lengths), *d], lengths[B] -> values[sum(lengths'), *d], int64 lengths'[B] := lengths + 1",
    grad={
        "data": """
            rows, _ = remove_padding(d.values, out.lengths, before=0, after=1)
            reshape_like(rows, data)
        """
    },
)
def append_token(data: Array, lengths: Array, *, token: Fill) -> tuple[Array, Array]:
    """Add one row, filled with `token`, at the end of each sequence, including empty ones.

    >>> append_token(np.array([1, 2, 3]), np.array([2, 0, 1]), token=9)
    AppendTokenResult(values=array([1, 2, 9, 9, 3, 9]), lengths=array([3, 1, 2]))
    """
    return _add_row(*with_fill("token", token, data), lengths, at_end=True)


@op(
    "data[sum(lengths), *d], lengths[B] -> values[sum(lengths'), *d], int64 lengths'[B] := lengths + 1",
    grad={
        "data": """
            rows, _ = remove_padding(d.values, out.lengths, before=1, after=0)
            reshape_like(rows, data)
        """
    },
)
def prepend_token(data: Array, lengths: Array, *, token: Fill) -> tuple[Array, Array]:
    """Add one row, filled with `token`, at the start of each sequence, including empty ones.

    >>> prepend_token(np.array([1, 2, 3]), np.array([2, 0, 1]), token=9)
    PrependTokenResult(values=array([9, 1, 2, 9, 9, 3]), lengths=array([3, 1, 2]))
    """
    return _add_row(*with_fill("token", token, data), lengths, at_end=False)


def _add_row(data: Array, fill: Any, lengths: Array, at_end: bool) -> tuple[Array, Array]:
    sizes = int64(lengths)
    longer = sizes + 1
    offsets = kernels.lengths_to_offsets(longer)
    rows = np.empty((int(offsets[-1]), *data.shape[1:]), data.dtype)
    kernels.move_slices(data, starts_of(sizes), sizes, rows, offsets[:-1] + (not at_end))
    rows[offsets[1:] - 1 if at_end else offsets[:-1]] = fill
    return rows, longer


@op(
    "x[B, *d], lengths[B] -> rows[sum(lengths), *d]",
    caffe2="LengthsTile",
    grad={"x": "lengths_sum(d.rows, lengths)"},
    takes_total=True,
)
def expand(x: Array, lengths: Array, *, out: Array | None = None) -> Array:
    """Repeat row i of `x` `lengths[i]` times: a value for each sequence becomes a value for each of its rows.

    A row with a length of 0 is omitted. `out` is an array for the result.

    >>> expand(np.array([10, 20, 30]), np.array([2, 0, 1]))
    array([10, 10, 30])
    """
    return kernels.expand(x, lengths, out=out)


@op(
    "data[sum(lengths), *d], int repeats[B], lengths[B]"
    " -> values[sum(lengths'), *d], int64 lengths'[sum(repeats)] := expand(lengths, repeats),"
    " sum(lengths') <= sum(lengths)*max(repeats)",
    grad=MovedRows(),
)
def repeat_sequences(data: Array, repeats: Array, lengths: Array) -> tuple[Array, Array]:
    """Repeat each whole sequence `repeats` times in a row.

    A sequence with 0 repeats is omitted; an empty sequence gives as many empty copies. This is Paddle's
    sequence_expand, with the lengths of its `y` as `repeats`.

    Several slices of each, `counts[i]` of sequence i:

        copies, n = repeat_sequences(data, counts, lengths)
        slice_sequences(copies, starts, ends - starts, n)

    >>> repeat_sequences(np.array([1, 2, 3]), np.array([2, 1, 0]), np.array([2, 0, 1]))
    RepeatSequencesResult(values=array([1, 2, 1, 2]), lengths=array([2, 2, 0]))
    """
    sizes = kernels.expand(int64(lengths), repeats)
    return move_sequences(data, kernels.expand(starts_of(lengths), repeats), sizes), sizes


def _bound_reshaped(ctx: InferenceContext) -> None:
    data, width = ctx.input("data"), ctx.attr("width")
    if data.dimensions is not None:
        row = ctx.num_elements(data[1:])
        ctx.limit(ctx.max_of("lengths'"), ctx.max_of("lengths") * row // width)
        ctx.limit(ctx.sum_of("lengths'"), ctx.sum_of("lengths") * row // width)


@op(
    "data[sum(lengths), *d], lengths[B] -> values[sum(lengths'), width], int64 lengths'[B]",
    shape=_bound_reshaped,
    grad={"data": "reshape_like(d.values, data)"},
)
def reshape_sequences(data: Array, lengths: Array, *, width: Positive) -> tuple[Array, Array]:
    """Arrange the elements of each sequence in rows of `width`: the same elements in more or fewer rows.

    An empty sequence stays empty. A sequence with elements that do not fill whole rows is an error. Contiguous data
    are not copied. This is Paddle's sequence_reshape.

    >>> reshape_sequences(np.array([[1, 2], [3, 4], [5, 6]]), np.array([2, 1]), width=1).lengths
    array([4, 2])
    """
    row = int(np.prod(data.shape[1:], dtype=np.int64))
    elements = int64(lengths) * row
    # a width above data.size, which may not fit int64, divides no sequence but empty ones
    left_over = np.flatnonzero(elements % width) if width <= max(data.size, 1) else np.flatnonzero(elements)
    if len(left_over):
        i = left_over[0]
        raise LodError(f"sequence {i} has {elements[i]} elements, expected a multiple of width = {width}")
    if width > data.size:
        return np.empty((0, width), data.dtype), np.zeros(len(lengths), np.int64)
    return data.reshape(-1, width), elements // width


@op(
    "number x[B, W, *d], number updates[sum(lengths), *d], index(W) indices[sum(lengths)], lengths[B]"
    " -> scattered[B, W, *d]",
    grad={
        "x": "scatter_sequences(d.scattered, zeros_like(updates), indices, lengths)",
        "updates": "cast_like(gather_cells(d.scattered, indices, lengths), updates)",
    },
)
def scatter_sequences(x: Array, updates: Array, indices: Array, lengths: Array) -> Array:
    """Add the updates of sequence b to row b of a copy of `x`, each at its index.

    The updates of an index that repeats are added in order; for bool, adding means "or". With an empty sequence the
    row stays as it is. The updates must fit the dtype of `x`. This is Paddle's sequence_scatter.

    >>> x = np.zeros((2, 3), np.int64)
    >>> scatter_sequences(x, np.array([1, 2, 5]), np.array([0, 0, 2]), np.array([2, 1]))
    array([[3, 0, 0],
           [0, 0, 5]])
    """
    indices = int64_integers(indices, "indices")
    _check_updates(x, updates, indices)
    updates = cast_rows("updates", updates, x.dtype)
    scattered = np.array(x, order="C", subok=False)
    flat = scattered.reshape(x.shape[0] * x.shape[1], *x.shape[2:])
    add_at(flat, kernels.lengths_to_segment_ids(lengths) * x.shape[1] + indices, updates)
    return scattered


def _check_updates(x: Array, updates: Array, indices: Array) -> None:
    if not np.can_cast(updates.dtype, x.dtype, "same_kind"):
        raise OpTypeError(f"updates are {updates.dtype}, which {x.dtype}, the dtype of x, cannot hold")
    wrong = (indices < 0) | (indices >= x.shape[1])
    if wrong.any():
        i = int(np.argmax(wrong))
        raise OpIndexError(f"indices[{i}] = {indices[i]} is outside [0, {x.shape[1]})")


@op(
    "data[sum(lengths), *d], lengths[B]"
    " -> values[sum(lengths'), *d], int64 lengths'[K=B//multiple_of*multiple_of] <= max(lengths),"
    " sum(lengths') <= sum(lengths)",
    caffe2="TrimDataset",
    rows={"K": "sliced(B, multiple_of)"},
    depends={"lengths": "lengths"},
    grad=MovedRows(),
)
def trim_dataset(data: Array, lengths: Array, *, multiple_of: Positive) -> tuple[Array, Array]:
    """Drop sequences from the end, so that their number is a multiple of `multiple_of`.

    An empty sequence counts like any other sequence. `values` are a part of `data`, not a copy.

    >>> trim_dataset(np.array([1, 2, 3, 4]), np.array([2, 0, 1, 1, 0]), multiple_of=2)
    TrimDatasetResult(values=array([1, 2, 3, 4]), lengths=array([2, 0, 1, 1]))
    """
    kept = lengths[: len(lengths) // multiple_of * multiple_of].astype(np.int64)
    return data[: int(kept.sum())], kept
