"""Padding of sequences to a dense array and back, and rows of padding between sequences."""

from typing import Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import LodError, OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.kernels.memory import check_memory
from seqflow.ops.shared.scalars import cast_rows, with_fill
from seqflow.ops.shared.slices import int64, move_sequences, starts_of
from seqflow.registry import MovedRows, op
from seqflow.shape import InferenceContext
from seqflow.signature import Fill, NonNegative, Positive

Side = Literal["right", "left"]


def _round_width_up(ctx: InferenceContext) -> None:
    """Apply `multiple_of`, which the signature does not express."""
    multiple = ctx.attr("multiple_of")
    if multiple == 1 or ctx.attr("max_length") is not None:
        return
    for i in range(2):
        output = ctx.output(i)
        if output.rank.is_static:
            width = (output[1] + (multiple - 1)) // multiple * multiple
            ctx.set_shape(i, ctx.replace_dim(output, 1, width))


def _unpad(truncate: bool) -> str | MovedRows:
    return MovedRows(fill="fill") if truncate else "unpad(d.padded, lengths, side=side)"


@op(
    "data[sum(lengths), *d], lengths[B]"
    " -> padded[B, max_length|max(lengths), *d], bool mask[B, max_length|max(lengths)]",
    caffe2="PackSegments",
    shape=_round_width_up,
    steps={"lengths": "minimum(lengths, max_length) if truncate, max_length"},
    depends={"mask": "lengths"},
    masks={"mask": "lengths"},
    grad={"data": _unpad},
)
def pad(
    data: Array,
    lengths: Array,
    *,
    max_length: NonNegative | None = None,
    fill: Fill = 0,
    side: Side = "right",
    truncate: bool = False,
    multiple_of: Positive = 1,
    out: Array | tuple[Array, Array] | None = None,
) -> tuple[Array, Array]:
    """Lay out each sequence as one row of `max_length`, filled up with `fill`; also return a mask, true for data.

    Without `max_length` the width is the longest length, rounded up to a `multiple_of`. `side` is the side of the
    padding. A longer sequence is an error, unless `truncate` cuts it (at its end; with `side="left"` at its start).
    `out` is an array for the padded rows, or a pair with one for the mask. An empty sequence is a row of padding.

    >>> pad(np.array([1, 2, 3]), np.array([2, 0, 1])).padded
    array([[1, 2],
           [0, 0],
           [3, 0]])
    """
    width = max_length
    if width is None:
        width = -(-kernels.max_length(lengths) // multiple_of) * multiple_of
    data, fill = with_fill("fill", fill, data)
    padded, mask = out if isinstance(out, tuple) and len(out) == 2 else (out, None)
    return kernels.pad(data, lengths, width, fill, side, truncate=truncate, out=padded, mask=mask)


@op(
    "padded[B, T>=max(lengths), *d], lengths[B] -> data[sum(lengths), *d]",
    caffe2="UnpackSegments",
    inverse="pad",
    grad={"padded": "pad_like(d.data, padded, lengths, side=side)"},
)
def unpad(padded: Array, lengths: Array, *, side: Side = "right", out: Array | None = None) -> Array:
    """Flatten a padded array, without its padding: the inverse of `pad` with the same `side`.

    An empty sequence has no rows; its row of `padded` is ignored. `out` is an array for the result.

    Two columns of unequal lengths zipped, the shorter one filled with 0, with `m = maximum(n, k)`:

        both = [pad(p, n, max_length=m.max()).padded, pad(q, k, max_length=m.max()).padded]
        unpad(np.stack(both, 2), m)

    >>> unpad(np.array([[1, 2], [0, 0], [3, 0]]), np.array([2, 0, 1]))
    array([1, 2, 3])
    """
    return kernels.unpad(padded, lengths, side, out=out)


@op(
    "data[sum(lengths), *d], lengths[B] -> padded[target_length*B, *d]",
    caffe2="LengthsPad",
    grad=MovedRows(fill="fill"),
)
def pad_lengths(data: Array, lengths: Array, *, target_length: NonNegative, fill: Fill = 0) -> Array:
    """Extend each sequence to `target_length` by rows of `fill`; the result is flat.

    A longer sequence is an error; an empty one is `target_length` rows of padding.

    >>> pad_lengths(np.array([1, 2, 3]), np.array([2, 0, 1]), target_length=2)
    array([1, 2, 0, 0, 3, 0])
    """
    data, fill = with_fill("fill", fill, data)
    padded, _ = kernels.pad(data, lengths, target_length, fill)
    return padded.reshape(len(lengths) * target_length, *data.shape[1:])


@op(
    "data[sum(lengths), *d], lengths[B]"
    " -> values[sum(lengths'), *d], int64 lengths'[B] := maximum(lengths, 1)",
    caffe2="PadEmptySamples",
    grad=MovedRows(fill="fill"),
)
def pad_empty(data: Array, lengths: Array, *, fill: Fill = 0) -> tuple[Array, Array]:
    """Give each empty sequence one row of `fill`; all others stay as they are.

    >>> pad_empty(np.array([1, 2, 3]), np.array([2, 0, 1]), fill=9)
    PadEmptyResult(values=array([1, 2, 9, 3]), lengths=array([2, 1, 1]))
    """
    data, fill = with_fill("fill", fill, data)
    sizes = int64(lengths)
    filled = np.maximum(sizes, 1)
    starts = starts_of(filled)
    rows = _place(data, sizes, starts, len(data) + int(np.count_nonzero(sizes == 0)))
    rows[starts[sizes == 0]] = fill
    return rows, filled


@op(
    "data[sum(lengths), *d], lengths[B], start[*d]?, end[*d]?"
    " -> values[sum(lengths'), *d], int64 lengths'[B] := lengths + (before + (after|before))",
    caffe2="AddPadding",
    moves="data, start, end",
    grad={
        "data": "grad, _ = remove_padding(d.values, out.lengths, before=before, after=after)",
        "start": "grad, _ = gather_padding(d.values, out.lengths, before=before, after=after)",
        "end": "_, grad = gather_padding(d.values, out.lengths, before=before, after=after)",
    },
)
def add_padding(
    data: Array,
    lengths: Array,
    start: Array | None,
    end: Array | None,
    *,
    before: NonNegative = 1,
    after: NonNegative | None = None,
) -> tuple[Array, Array]:
    """Add `before` rows at the start of each sequence and `after` rows at its end.

    An empty sequence gets them, too. `after` is by default equal to `before`. The rows at the start are copies of
    `start`, those at the end of `end`. `end` is by default equal to `start`; without both the rows are 0.

    >>> add_padding(np.array([1, 2, 3]), np.array([2, 0, 1]), before=1, after=0)
    AddPaddingResult(values=array([0, 1, 2, 0, 0, 3]), lengths=array([3, 1, 2]))
    """
    after = before if after is None else after
    data = _as_wide(data, start, end)
    start = np.zeros(data.shape[1:], data.dtype) if start is None else _like(data, "start", start)
    end = start if end is None else _like(data, "end", end)
    sizes = int64(lengths)
    longer = sizes + before + after
    ends = kernels.lengths_to_offsets(longer)
    rows = _place(data, sizes, ends[:-1] + before, int(ends[-1]))
    rows[_runs(ends[:-1], before)] = start
    rows[_runs(ends[1:] - after, after)] = end
    return rows, longer


@op(
    "data[sum(lengths), *d], lengths[B] -> values[sum(lengths'), *d], int64 lengths'[B] <= lengths",
    caffe2="RemovePadding",
    depends={"lengths": "lengths"},
    inverse="add_padding",
    grad={
        "data": """
            rows, _ = add_padding(d.values, out.lengths, before=before, after=after)
            reshape_like(rows, data)
        """
    },
)
def remove_padding(
    data: Array, lengths: Array, *, before: NonNegative = 1, after: NonNegative | None = None
) -> tuple[Array, Array]:
    """Remove the first `before` and the last `after` rows of each sequence: the inverse of `add_padding`.

    `after` is by default equal to `before`. A sequence with fewer rows than both together is an error; an empty
    sequence is an error, too, unless both are 0.

    >>> remove_padding(np.array([0, 1, 2, 0, 0, 3]), np.array([3, 1, 2]), before=1, after=0)
    RemovePaddingResult(values=array([1, 2, 3]), lengths=array([2, 0, 1]))
    """
    after = before if after is None else after
    starts, kept = _inside(lengths, before, after)
    return move_sequences(data, starts, kept), kept


def _gather_padding_back(before: int, after: int | None) -> str:
    return f"""
        places = lengths_to_positions(lengths)
        left = expand(int64(lengths), lengths) - places
        first = scale_rows(broadcast_like(d.start, data), places < {before})
        last = scale_rows(broadcast_like(d.end, data), left <= {before if after is None else after})
        first + last
    """


@op(
    "number data[sum(lengths), *d], lengths[B] -> sum_of(data) start[*d], sum_of(data) end[*d]",
    caffe2="GatherPadding",
    grad={"data": _gather_padding_back},
)
def gather_padding(
    data: Array, lengths: Array, *, before: NonNegative = 1, after: NonNegative | None = None
) -> tuple[Array, Array]:
    """Return the sum of the first `before` rows of all sequences, and the sum of their last `after` rows.

    These are the gradients of `start` and `end` of `add_padding`. `after` is by default equal to `before`. A sequence
    with fewer rows than both together is an error; an empty sequence is an error, too, unless both are 0. Without
    sequences the sums are 0.

    >>> gather_padding(np.array([5, 1, 2, 6, 5, 6]), np.array([4, 2]))
    GatherPaddingResult(start=array(10), end=array(12))
    """
    after = before if after is None else after
    starts, kept = _inside(lengths, before, after)
    return _sum_rows(data, _runs(starts - before, before)), _sum_rows(data, _runs(starts + kept, after))


def _inside(lengths: Array, before: int, after: int) -> tuple[Array, Array]:
    """Return the start of each sequence after its padding, and its length without the padding."""
    sizes = int64(lengths)
    short = np.flatnonzero(sizes < before + after)
    if len(short):
        raise LodError(
            f"lengths[{short[0]}] is {sizes[short[0]]}, expected at least the {before} + {after} rows of padding"
        )
    return starts_of(sizes) + before, sizes - (before + after)


def _place(data: Array, sizes: Array, starts: Array, num_rows: int) -> Array:
    """Return the sequences of `data` at other starts among `num_rows`; the rows between them are not set."""
    shape = (num_rows, *data.shape[1:])
    check_memory(shape, data.dtype)
    rows = np.empty(shape, data.dtype)
    kernels.move_slices(data, starts_of(sizes), sizes, rows, starts)
    return rows


def _runs(starts: Array, count: int) -> Array:
    """Return the indices `start, start + 1, …`, `count` of them for each start."""
    check_memory((len(starts), count, 3), starts.dtype)
    counts = np.full(len(starts), count)
    return kernels.lengths_to_positions(counts) + kernels.expand(starts, counts)


def _as_wide(data: Array, *rows: Array | None) -> Array:
    """Return the data; texts become as wide as those of the given rows."""
    wide = [row.dtype for row in rows if row is not None and row.dtype.kind == data.dtype.kind]
    return data.astype(np.result_type(data, *wide), copy=False) if data.dtype.kind in "SU" else data


def _like(data: Array, name: str, row: Array) -> Array:
    """Return `row` in the dtype of `data`."""
    if not np.can_cast(row.dtype, data.dtype, "same_kind"):
        raise OpTypeError(f"{name} is {row.dtype}, expected {data.dtype} as in data")
    return cast_rows(name, row, data.dtype)


def _sum_rows(data: Array, indices: Array) -> Array:
    sums = kernels.gather_segment_reduce("sum", data, indices, np.array([len(indices)]))
    return sums.reshape(data.shape[1:])
