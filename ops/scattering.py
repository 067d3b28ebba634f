"""Put rows back to their places and sum those at one place: the gradients of gathering ops."""

import numpy as np

from seqflow import kernels
from seqflow.errors import OpIndexError, ShapeError
from seqflow.kernels.arrays import Array, int64_integers
from seqflow.kernels.checks import checked_indices
from seqflow.ops.like import infer_like
from seqflow.ops.shared.adding import add_at
from seqflow.ops.shared.axes import check_parts, positive_axis
from seqflow.ops.shared.scalars import cast_like_numpy
from seqflow.ops.shared.slices import starts_of
from seqflow.ops.shared.weights import expand_trailing
from seqflow.registry import op
from seqflow.shape import InferenceContext
from seqflow.signature import Positive


@op(
    "number rows[N, *e], index(R) indices[N, *i], number like[R, *d] -> like(like) sums[R, *d]",
    moves="",
    grad={
        "like": None,
        "rows": "cast_like(gather(d.sums, indices, wrap=wrap, ignore_index=ignore_index), rows)",
    },
)
def scatter_rows(
    rows: Array, indices: Array, like: Array, *, wrap: bool = False, ignore_index: int | None = None
) -> Array:
    """Sum rows by their index, in the shape and dtype of another tensor: the gradient of `gather`.

    `rows` has the shape of `gather(like, indices)`: [N, *i, *d]. With `wrap` negative indices count from the end;
    rows at `ignore_index` are omitted.

    >>> scatter_rows(np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.zeros(3))
    array([2., 0., 5.])
    """
    expected = (*indices.shape, *like.shape[1:])
    if rows.shape != expected:
        raise ShapeError(
            f"rows has shape {list(rows.shape)}, expected {list(expected)} as indices and like say"
        )
    places, used = checked_indices(int64_integers(indices, "indices"), len(like), wrap, ignore_index)
    flat = rows.reshape(indices.size, *like.shape[1:])
    kept, places = np.flatnonzero(used), places[used]
    return _sums_of(flat, kept, places, like)


def _sums_of(rows: Array, kept: Array, places: Array, like: Array) -> Array:
    """Return the sums of the rows with the numbers `kept` at their `places`."""
    order, sizes = kernels.group_rows(places, len(like))
    return cast_like_numpy(kernels.gather_segment_reduce("sum", rows, kept[order], sizes), like.dtype)


@op(
    "float rows[B, *d], number like[R, *d], index(R) indices[sum(lengths)], lengths[B] -> like(like) sums[R, *d]",
    moves="",
    grad={
        "like": None,
        "rows": "cast_like(sparse_lengths_sum(d.sums, indices, lengths, ignore_index=ignore_index), rows)",
    },
)
def scatter_pooled(
    rows: Array, like: Array, indices: Array, lengths: Array, *, ignore_index: int | None = None
) -> Array:
    """Add the row of each sequence to the table's rows at its indices: the gradient of `sparse_lengths_sum`.

    The result has the shape and dtype of `like`. `ignore_index` is omitted; an empty sequence adds nothing.

    >>> scatter_pooled(np.array([1.0, 4.0]), np.zeros(3), np.array([0, 2, 2]), np.array([2, 1]))
    array([1., 0., 5.])
    """
    return _pooled(rows, None, like, indices, lengths, ignore_index)


@op(
    "float rows[B, *d], float weights[sum(lengths)], number like[R, *d], index(R) indices[sum(lengths)], lengths[B]"
    " -> like(like) sums[R, *d]",
    moves="",
    grad={
        "like": None,
        "rows": """
            pooled = sparse_lengths_weighted_sum(d.sums, weights, indices, lengths, ignore_index=ignore_index)
            cast_like(pooled, rows)
        """,
        "weights": """
            taken = gather(d.sums, indices, ignore_index=ignore_index)
            cast_like(row_dot(expand(rows, lengths), taken), weights)
        """,
    },
)
def scatter_pooled_weighted(
    rows: Array,
    weights: Array,
    like: Array,
    indices: Array,
    lengths: Array,
    *,
    ignore_index: int | None = None,
) -> Array:
    """Do `scatter_pooled` with a weight for each index: the gradient of `sparse_lengths_weighted_sum`.

    An empty sequence adds nothing.

    >>> rows, weights = np.array([1.0, 4.0]), np.array([0.5, 1.0, 2.0])
    >>> scatter_pooled_weighted(rows, weights, np.zeros(3), np.array([0, 2, 2]), np.array([2, 1]))
    array([0.5, 0. , 9. ])
    """
    return _pooled(rows, weights, like, indices, lengths, ignore_index)


def _pooled(
    rows: Array, weights: Array | None, like: Array, indices: Array, lengths: Array, ignore_index: int | None
) -> Array:
    """Return the sums, computed in the dtype of the rows, but float16 in float32."""
    rows = rows.astype(np.float32) if rows.dtype == np.float16 else rows
    factors = None if weights is None else cast_like_numpy(weights, rows.dtype)
    sums = kernels.scatter_segments(rows, indices, lengths, factors, len(like), ignore_index)
    return cast_like_numpy(sums, like.dtype)


@op(
    "number rows[N, *e], int indices[N, *i], {like(like) like[_, *d]}+ -> {like(like) sums[_, *d]}*parts",
    shape=infer_like,
    moves="",
    grad={
        "like": None,
        "rows": "cast_like(gather(concat(d.sums), indices, ignore_index=ignore_index), rows)",
    },
)
def scatter_rows_of_list(
    rows: Array, indices: Array, like: list[Array], *, parts: Positive, ignore_index: int | None = None
) -> list[Array]:
    """Do `scatter_rows` to several tensors, with rows numbered from one to the next, as in `list_numbers`.

    `parts` is the number of tensors. Rows at `ignore_index` are omitted.

    >>> scatter_rows_of_list(np.array([1.0, 2.0]), np.array([2, 0]), [np.zeros(2), np.zeros(1)], parts=2)
    [array([2., 0.]), array([1.])]
    """
    check_parts(parts, len(like))
    ends = np.cumsum([len(one) for one in like])
    sums = scatter_rows(rows, indices, np.concatenate(like), ignore_index=ignore_index)
    return [part.copy() for part in np.split(sums, ends[:-1])]


@op(
    "number data[N, *d], number scale[N] -> scaled[N, *d]",
    moves="",
    grad={"data": "scale_rows(d.scaled, scale)", "scale": "cast_like(row_dot(d.scaled, data), scale)"},
)
def scale_rows(data: Array, scale: Array) -> Array:
    """Multiply each row by its own number; the result has the dtype of `data`.

    >>> scale_rows(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([2, 10]))
    array([[ 2.,  4.],
           [30., 40.]])
    """
    factors = expand_trailing(cast_like_numpy(scale, data.dtype), data)
    with np.errstate(all="ignore"):
        return np.asarray(np.multiply(data, factors, dtype=data.dtype))


@op(
    "number a[N, *d], number b[N, *d] -> sum_of(a, b) products[N]",
    grad={"a": "scale_rows(cast_like(b, a), d.products)", "b": "scale_rows(cast_like(a, b), d.products)"},
)
def row_dot(a: Array, b: Array) -> Array:
    """Return the dot product of each row of `a` with the same row of `b`, over all axes except the first.

    The dtypes are those of `lengths_sum`, promoted.

    >>> row_dot(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 1.0], [0.0, 2.0]]))
    array([3., 8.])
    """
    dtype = np.result_type(kernels.sum_dtype(a.dtype), kernels.sum_dtype(b.dtype))
    left, right = (one.reshape(len(one), -1 if len(one) else 0).astype(dtype, copy=False) for one in (a, b))
    with np.errstate(all="ignore"):
        return np.asarray(np.einsum("nd,nd->n", left, right))


# Within sequences


@op(
    "number rows[B, *e], position(lengths) positions[B, *k], number like[sum(lengths), *d], lengths[B]"
    " -> like(like) data[sum(lengths), *d]",
    moves="",
    grad={"like": None, "rows": "cast_like(take_at_positions(d.data, positions, lengths), rows)"},
)
def put_at_positions(rows: Array, positions: Array, like: Array, lengths: Array) -> Array:
    """Put rows at positions inside their sequences, and zeros everywhere else; a row at -1 is dropped.

    `positions` has one position for each sequence's row; or it has the shape of `rows`, with one for each column, as
    from `lengths_argmax`; or, if `like` has one axis, it has k for each sequence ([B, k]), as from `lengths_topk`.
    Elements at the same place are summed. An empty sequence can only have the position -1.

    >>> put_at_positions(np.array([5.0, 7.0]), np.array([1, -1]), np.zeros(3), np.array([2, 1]))
    array([0., 5., 0.])
    """
    _check_put(rows.shape, positions.shape, like.shape)
    rows = cast_like_numpy(rows, like.dtype)
    if positions.ndim == like.ndim:
        return kernels.put_elements(rows, positions, lengths)
    places = _places(positions, lengths)
    out = np.zeros(like.shape, like.dtype)
    used = places >= 0
    if positions.ndim == 1:  # one row for each sequence: no two have the same place, so none must be added
        out[places[used]] = rows[used]
    else:
        add_at(out, places[used], rows[used])
    return out


def _cells(places: Array, like: Array) -> Array:
    """Return the flat cells of `like` for rows of the shape [B, *d], one after another."""
    width = int(np.prod(like.shape[1:]))
    return np.asarray((places.reshape(len(places), width) * width + np.arange(width)).reshape(-1))


def _infer_taken(ctx: InferenceContext) -> None:
    data, positions = ctx.input("data"), ctx.input("positions")
    if data.dimensions is None or positions.dimensions is None:
        ctx.set_output(0, "?")
        return
    sizes = [positions[0], *data[1:]] if len(positions) == 1 else [*positions]
    inner = ctx.axes("data")[1:] if len(positions) == 1 else ctx.axes("positions")[1:]
    ctx.set_output(0, sizes, axes=[ctx.axes("positions")[0], *inner])


@op(
    "data[sum(lengths), *d], position(lengths) positions[B, *k], lengths[B] -> rows[B, *_]",
    shape=_infer_taken,
    grad={"data": "put_at_positions(d.rows, positions, data, lengths)"},
    several="gather_within",
)
def take_at_positions(data: Array, positions: Array, lengths: Array) -> Array:
    """Take the rows at positions inside each sequence; -1 gives zeros. The inverse of `put_at_positions`.

    One position for each sequence ([B]) takes its row; positions of the shape [B, *d] take column by column; if
    `data` has one axis, there may be k of them ([B, k]). An empty sequence can only have the position -1.

    >>> take_at_positions(np.array([4.0, 5.0, 6.0]), np.array([1, -1]), np.array([2, 1]))
    array([5., 0.])
    """
    expected = data.shape[1:]
    if positions.ndim > 1 and data.ndim > 1 and positions.shape[1:] != expected:
        raise ShapeError(f"positions has shape {list(positions.shape)}, expected [B] or {['B', *expected]}")
    places = _places(positions, lengths)
    safe = np.maximum(places, 0)
    if not len(data):
        shape = positions.shape if positions.ndim > 1 else (len(positions), *expected)
        return np.zeros(shape, data.dtype)
    by_row = positions.ndim == 1 or data.ndim == 1
    taken = data[safe] if by_row else data.reshape(-1)[_cells(safe, data)].reshape(positions.shape)
    used = (places >= 0).reshape(*places.shape, *[1] * (taken.ndim - places.ndim))
    return np.where(used, taken, np.zeros((), data.dtype))


def _check_put(rows: tuple[int, ...], positions: tuple[int, ...], like: tuple[int, ...]) -> None:
    if len(positions) == 1:
        expected = (positions[0], *like[1:])
    else:
        expected = positions
        if len(like) > 1 and positions[1:] != like[1:]:
            raise ShapeError(f"positions has shape {list(positions)}, expected [B] or {['B', *like[1:]]}")
    if rows != expected:
        raise ShapeError(f"rows has shape {list(rows)}, expected {list(expected)} as positions and like say")


def _places(positions: Array, lengths: Array) -> Array:
    """Return the rows at positions inside sequences; -1 stays -1."""
    column = (-1, *[1] * (positions.ndim - 1))
    positions = int64_integers(positions, "positions")
    beyond = (positions < -1) | (positions >= lengths.astype(np.int64).reshape(column))
    if beyond.any():
        place = [int(i[0]) for i in np.nonzero(beyond)]
        raise OpIndexError(
            f"positions{place} = {int(positions[tuple(place)])} is outside a sequence of {int(lengths[place[0]])}"
        )
    return np.where(positions < 0, -1, positions + starts_of(lengths).reshape(column))


@op(
    "number data[sum(lengths), *d], position(lengths) positions[sum(lengths), *d], lengths[B]"
    " -> scattered[sum(lengths), *d]",
    moves="",
    grad={"data": "gather_columns_within(d.scattered, positions, lengths)"},
)
def scatter_within(data: Array, positions: Array, lengths: Array) -> Array:
    """Put each element at a position inside its sequence, column by column: it reverses `argsort_within`.

    An element at -1 is dropped. Elements at the same place are summed. An empty sequence has no rows.

    >>> scatter_within(np.array([1.0, 2.0, 3.0]), np.array([1, 0, 0]), np.array([2, 1]))
    array([2., 1., 3.])
    """
    places, used = _places_of_rows(positions, lengths)
    out = np.zeros(data.shape, data.dtype)
    add_at(out, (places[used], *np.nonzero(used)[1:]), data[used])
    return out


@op(
    "data[sum(lengths), *d], position(lengths) positions[sum(lengths), *d], lengths[B] -> gathered[sum(lengths), *d]",
    grad={"data": "scatter_within(d.gathered, positions, lengths)"},
)
def gather_columns_within(data: Array, positions: Array, lengths: Array) -> Array:
    """Take the element at each position inside its sequence, column by column; -1 gives 0.

    An empty sequence has no rows.

    >>> gather_columns_within(np.array([1.0, 2.0, 3.0]), np.array([1, 0, 0]), np.array([2, 1]))
    array([2., 1., 3.])
    """
    places, used = _places_of_rows(positions, lengths)
    out = np.zeros(data.shape, data.dtype)
    out[used] = data[(places[used], *np.nonzero(used)[1:])]
    return out


def _places_of_rows(positions: Array, lengths: Array) -> tuple[Array, Array]:
    """Return the row of each element's position, and whether the position is not -1."""
    column = (-1, *[1] * (positions.ndim - 1))
    positions = int64_integers(positions, "positions")
    lengths = lengths.astype(np.int64)
    beyond = (positions < -1) | (positions >= kernels.expand(lengths, lengths).reshape(column))
    if beyond.any():
        place = [int(i[0]) for i in np.nonzero(beyond)]
        raise OpIndexError(f"positions{place} = {int(positions[tuple(place)])} is outside its sequence")
    return positions + kernels.expand(starts_of(lengths), lengths).reshape(column), positions >= 0


# By ids of segments


@op(
    "number data[S, *d], int ids[N] -> rows[N, *d]",
    moves="",
    grad={"data": "scatter_inside(d.rows, ids, data)"},
)
def gather_inside(data: Array, ids: Array) -> Array:
    """Gather rows by ids; ids outside [0, S) give zeros: the gradient of sums by id, which omit these ids.

    >>> gather_inside(np.array([10.0, 20.0]), np.array([1, -3, 0, 2]))
    array([20.,  0., 10.,  0.])
    """
    inside = (ids >= 0) & (ids < len(data))
    return np.asarray(kernels.gather(data, np.where(inside, ids.astype(np.int64), -1), ignore_index=-1))


@op(
    "number rows[N, *d], int ids[N], number like[S, *d] -> like(like) sums[S, *d]",
    moves="",
    grad={"like": None, "rows": "cast_like(gather_inside(d.sums, ids), rows)"},
)
def scatter_inside(rows: Array, ids: Array, like: Array) -> Array:
    """Sum rows by ids, in the shape and dtype of another tensor; rows with an id outside [0, S) are omitted.

    >>> scatter_inside(np.array([1.0, 2.0, 4.0]), np.array([1, 7, 1]), np.zeros(2))
    array([0., 5.])
    """
    kept = np.flatnonzero((ids >= 0) & (ids < len(like)))
    return _sums_of(rows, kept, ids[kept].astype(np.int64), like)


@op(
    "int ids[N], like[S, *d] -> int64 counts[S]",
    moves="",
)
def segment_counts(ids: Array, like: Array) -> Array:
    """Return how often each row of `like` occurs in the ids; ids outside [0, S) are not counted.

    >>> segment_counts(np.array([1, 7, 1]), np.zeros(2))
    array([0, 2])
    """
    inside = ids[(ids >= 0) & (ids < len(like))]
    return np.bincount(inside.astype(np.int64), minlength=len(like)).astype(np.int64, copy=False)


@op(
    "number data[N, *d], index(S) ids[N], number extremes[S, *d] -> mean_of(data) shares[N, *d]",
    moves="",
    grad={"data": None, "extremes": None},
)
def extreme_shares(data: Array, ids: Array, extremes: Array) -> Array:
    """Return the share of each element in the extreme of its id, for gradients of the largest and smallest rows.

    Equal elements share it. If the extreme is NaN, the first NaN has the whole share.

    >>> extreme_shares(np.array([3.0, 1.0, 3.0]), np.array([0, 0, 0]), np.array([3.0]))
    array([0.5, 0. , 0.5])
    """
    hits = data == kernels.gather(extremes, ids)
    if (extremes != extremes).any():
        rows = np.where(data != data, np.arange(len(data)).reshape(-1, *[1] * (data.ndim - 1)), len(data))
        first = np.full(extremes.shape, len(data))
        np.minimum.at(first, int64_integers(ids, "ids"), rows)
        hits |= (data != data) & (rows == kernels.gather(first, ids))
    dtype = kernels.mean_dtype(data.dtype)
    order, sizes = kernels.group_rows(ids, len(extremes))
    counts = kernels.gather_segment_reduce("sum", hits.astype(dtype), order, sizes)
    return np.asarray(hits / kernels.gather(np.maximum(counts, 1), ids))


# Along axes, and in tables


@op(
    "number x[*e], int indices[*i], number like[*d] -> like(like) sums[*d]",
    moves="",
    grad={"like": None, "x": "cast_like(gather_axis(d.sums, indices, axis=axis, wrap=wrap), x)"},
)
def scatter_axis(x: Array, indices: Array, like: Array, *, axis: int, wrap: bool = False) -> Array:
    """Sum slices along an axis by their index, in the shape and dtype of `like`: the gradient of `gather_axis`.

    >>> scatter_axis(np.array([[1.0, 2.0]]), np.array([2, 2]), np.zeros((1, 3)), axis=1)
    array([[0., 0., 3.]])
    """
    along = positive_axis("axis", axis, like.ndim, "like")
    expected = (*like.shape[:along], *indices.shape, *like.shape[along + 1 :])
    if x.shape != expected:
        raise ShapeError(f"x has shape {list(x.shape)}, expected {list(expected)} as indices and like say")
    first = np.moveaxis(like, along, 0)
    rows = np.moveaxis(x, range(along, along + indices.ndim), range(indices.ndim))
    flat = rows.reshape(indices.size, *first.shape[1:])
    sums = scatter_rows(flat, indices.reshape(-1), np.empty(first.shape, like.dtype), wrap=wrap)
    return np.ascontiguousarray(np.moveaxis(sums, 0, along))


@op(
    "data[B, W, *d], index(W) indices[sum(lengths)], lengths[B] -> cells[sum(lengths), *d]",
    grad={"data": "scatter_sequences(zeros_like(data), d.cells, indices, lengths)"},
)
def gather_cells(data: Array, indices: Array, lengths: Array) -> Array:
    """Take from each row the cells at its indices: those that `scatter_sequences` adds to.

    An empty sequence takes no cells.

    >>> gather_cells(np.array([[1, 2], [3, 4]]), np.array([1, 0, 0]), np.array([1, 2]))
    array([2, 3, 3])
    """
    columns, _ = checked_indices(int64_integers(indices, "indices"), data.shape[1], False, None)
    return np.asarray(data[kernels.lengths_to_segment_ids(lengths), columns])
