"""Tables of quantised rows: 8, 4 or 2 bits for each value, and a scale and a bias for each row, fused into its bytes.

The bytes are those of Caffe2's and FBGEMM's fused row-wise formats, so their tables load unchanged. `bits` and
`scale` are the format: `scale` is the dtype of scale and bias, by default float32 for 8 bits and float16 for fewer.
The table is read in place, even if it is mapped from a file.

A pruned table has rows only for some indices: `mapping[M]` is the row of the table for each index, or -1 for none.
A pruned index counts as a row of zeros, also in means. A mapping with the one entry 0 means that nothing is pruned.
"""

import numpy as np

from seqflow import kernels
from seqflow.errors import OpIndexError
from seqflow.kernels.arrays import Array, int64_counts, integers
from seqflow.ops.shared.quantized_rows import RowLayout, Scale, dequantized, quantized, row_layout
from seqflow.ops.shared.slices import int64
from seqflow.registry import op
from seqflow.shape import InferenceContext
from seqflow.signature import Positive

_QUANTIZERS = (
    "FloatToFused8BitRowwiseQuantized, FloatToFused8BitRowwiseQuantizedHalfScaleBias,"
    " FloatToFused4BitRowwiseQuantized, FloatToFused2BitRowwiseQuantized,"
    " HalfFloatToFused8BitRowwiseQuantized, HalfFloatToFused8BitRowwiseQuantizedHalfScaleBias,"
    " HalfToFused4BitRowwiseQuantized, HalfToFused2BitRowwiseQuantized, FloatToRowwiseQuantized8Bits"
)
_DEQUANTIZERS = (
    "Fused8BitRowwiseQuantizedToFloat, Fused8BitRowwiseQuantizedHalfScaleBiasToFloat,"
    " Fused4BitRowwiseQuantizedToFloat, Fused2BitRowwiseQuantizedToFloat,"
    " Fused8BitRowwiseQuantizedToHalfFloat, Fused8BitRowwiseQuantizedHalfScaleBiasToHalfFloat,"
    " Fused4BitRowwiseQuantizedToHalf, Fused2BitRowwiseQuantizedToHalf, Rowwise8BitQuantizedToFloat"
)


def _pooled(kind: str, others: str = "") -> str:
    """Return Caffe2's names for pooling rows: fused, fused and pruned, and with separate scale and bias."""
    fused = [f"SparseLengths{kind}Fused{bits}BitRowwise" for bits in (8, 4, 2)]
    pruned = [f"SparseLengths{kind}{bits}BitRowwiseSparse" for bits in (8, 4, 2)]
    return ", ".join([*fused, *pruned, f"SparseLengths{kind}8BitsRowwise"]) + others


def _layout(ctx: InferenceContext) -> RowLayout:
    return row_layout(ctx.attr("bits"), ctx.attr("scale"))


def _infer_fused(ctx: InferenceContext) -> None:
    layout, columns = _layout(ctx), ctx.dim(ctx.input("data"), 1)
    width = ctx.value(columns)
    size = layout.row_bytes(width) if width is not None else columns // layout.per_byte + layout.extra_bytes
    ctx.set_output(0, [ctx.dim(ctx.input("data"), 0), size], axes=[ctx.rows("data"), None])


def _infer_values(ctx: InferenceContext, rows: str) -> None:
    """Infer a row of values for each row of an input."""
    layout, columns = _layout(ctx), ctx.dim(ctx.input("table"), 1)
    row_bytes = ctx.value(columns)
    width = (
        layout.width(row_bytes) if row_bytes is not None else (columns - layout.extra_bytes) * layout.per_byte
    )
    ctx.set_output(0, [ctx.dim(ctx.input(rows), 0), width], axes=[ctx.rows(rows), None])


def _infer_pooled(ctx: InferenceContext) -> None:
    table = "mapping" if ctx.has("mapping") else "table"
    ctx.check_indices("indices", ctx.rows(table), table)
    _infer_values(ctx, "lengths")


@op(
    "float data[R, W] -> uint8 fused[R, _]",
    shape=_infer_fused,
    caffe2=_QUANTIZERS,
)
def quantize_rowwise(data: Array, *, bits: Positive = 8, scale: Scale | None = None) -> Array:
    """Quantise each row on its own: its smallest number becomes 0, its largest the largest integer of `bits` bits.

    The columns must fill whole bytes. Every row must be finite, and within the range of scale and bias.

    >>> quantize_rowwise(np.array([[1.0, 2.0, 3.5, 1.0]]), bits=4)
    array([[96, 15, 85, 49,  0, 60]], dtype=uint8)
    """
    return quantized(data, row_layout(bits, scale))


@op(
    "uint8 table[R, _] -> float32 values[R, _]",
    shape=lambda ctx: _infer_values(ctx, "table"),
    caffe2=_DEQUANTIZERS,
)
def dequantize_rowwise(table: Array, *, bits: Positive = 8, scale: Scale | None = None) -> Array:
    """Return the numbers of quantised rows, in float32.

    >>> dequantize_rowwise(np.array([[0, 5, 15, 0, 128, 63, 0, 60]], np.uint8), bits=8, scale="float16")
    array([[ 1.   , 10.375, 29.125,  1.   ]], dtype=float32)
    """
    return dequantized(table, _checked(table, bits, scale))


@op(
    "uint8 table[R, _], index(R) indices[N] -> float32 rows[N, _]",
    shape=lambda ctx: _infer_values(ctx, "indices"),
    caffe2="GatherFused8BitRowwise",
)
def gather_quantized(
    table: Array, indices: Array, *, bits: Positive = 8, scale: Scale | None = None
) -> Array:
    """Return the numbers of the quantised rows at `indices`, in float32.

    >>> gather_quantized(quantize_rowwise(np.array([[1.0, 3.0], [5.0, 5.0]])), np.array([1, 0]))
    array([[5., 5.],
           [1., 3.]], dtype=float32)
    """
    layout = _checked(table, bits, scale)
    return dequantized(kernels.gather(table, indices), layout)


@op(
    "uint8 table[R, _], int indices[sum(lengths)], lengths[B], int mapping[M]? -> float32 sums[B, _]",
    shape=_infer_pooled,
    caffe2=_pooled("Sum"),
)
def sparse_lengths_sum_quantized(
    table: Array,
    indices: Array,
    lengths: Array,
    mapping: Array | None = None,
    *,
    bits: Positive = 8,
    scale: Scale | None = None,
) -> Array:
    """Sum the quantised rows at the indices of each segment; an empty segment gives 0.

    >>> table = quantize_rowwise(np.array([[1.0, 3.0], [5.0, 5.0]]))
    >>> sparse_lengths_sum_quantized(table, np.array([1, 0]), np.array([2, 0]))
    array([[6., 8.],
           [0., 0.]], dtype=float32)
    """
    return _pool("sum", table, None, indices, lengths, mapping, _checked(table, bits, scale))


@op(
    "uint8 table[R, _], int indices[sum(lengths)], lengths[B], int mapping[M]? -> float32 means[B, _]",
    shape=_infer_pooled,
    caffe2=_pooled("Mean"),
)
def sparse_lengths_mean_quantized(
    table: Array,
    indices: Array,
    lengths: Array,
    mapping: Array | None = None,
    *,
    bits: Positive = 8,
    scale: Scale | None = None,
) -> Array:
    """Average the quantised rows at the indices of each segment; an empty segment gives 0.

    >>> table = quantize_rowwise(np.array([[1.0, 3.0], [5.0, 5.0]]))
    >>> sparse_lengths_mean_quantized(table, np.array([1, 0]), np.array([2, 0]))
    array([[3., 4.],
           [0., 0.]], dtype=float32)
    """
    return _pool("mean", table, None, indices, lengths, mapping, _checked(table, bits, scale))


def _weights_back(mapping: bool) -> str:
    rows, used = (
        ("maximum(gather(mapping, indices), 0)", "gather(mapping, indices) >= 0")
        if mapping
        else ("indices", "")
    )
    products = f"row_dot(expand(d.sums, lengths), gather_quantized(table, {rows}, bits=bits, scale=scale))"
    return f"cast_like({products} * ({used}), weights)" if mapping else f"cast_like({products}, weights)"


@op(
    "uint8 table[R, _], float weights[sum(lengths)], int indices[sum(lengths)], lengths[B], int mapping[M]?"
    " -> float32 sums[B, _]",
    shape=_infer_pooled,
    caffe2=_pooled("WeightedSum", ", SparseLengthsWeightedMean8BitsRowwise"),
    grad={"weights": _weights_back},
)
def sparse_lengths_weighted_sum_quantized(
    table: Array,
    weights: Array,
    indices: Array,
    lengths: Array,
    mapping: Array | None = None,
    *,
    bits: Positive = 8,
    scale: Scale | None = None,
) -> Array:
    """Sum the quantised rows at the indices of each segment, each times the weight of its index.

    An empty segment gives 0.

    >>> table = quantize_rowwise(np.array([[1.0, 3.0], [5.0, 5.0]]))
    >>> weights = np.array([2.0, -1.0], np.float32)
    >>> sparse_lengths_weighted_sum_quantized(table, weights, np.array([1, 0]), np.array([2, 0]))
    array([[9., 7.],
           [0., 0.]], dtype=float32)
    """
    return _pool("sum", table, weights, indices, lengths, mapping, _checked(table, bits, scale))


@op(
    "index(M) indices[sum(lengths)], int mapping[M], lengths[B]"
    " -> int64 values[sum(lengths')], int64 lengths'[B] <= lengths",
    caffe2="SparseLengthsSumSparseLookup",
)
def sparse_lookup(indices: Array, mapping: Array, lengths: Array) -> tuple[Array, Array]:
    """Return the rows of a pruned table for indices into the whole table, without indices that were pruned.

    `mapping` is the row for each index, or a negative number for a pruned index. An empty sequence stays empty.

    >>> sparse_lookup(np.array([0, 2, 1, 0]), np.array([1, -1, 0]), np.array([2, 2]))
    SparseLookupResult(values=array([1, 0, 1]), lengths=array([2, 1]))
    """
    rows = kernels.gather(integers(mapping, "mapping"), indices)
    kept = rows >= 0
    return int64(rows[kept]), kernels.segment_reduce("sum", kept, lengths)


def _checked(table: Array, bits: int, scale: str | None) -> RowLayout:
    layout = row_layout(bits, scale)
    layout.width(table.shape[1])
    return layout


def _pool(
    kind: str,
    table: Array,
    weights: Array | None,
    indices: Array,
    lengths: Array,
    mapping: Array | None,
    layout: RowLayout,
) -> Array:
    """Return a row with the sums or means of each segment."""
    pruned = False
    # in Caffe2, the mapping [0] stands for a table that is not pruned
    if mapping is not None and not (len(mapping) == 1 and mapping[0] == 0):
        indices, pruned = _rows(indices, len(table), mapping), True
    if weights is not None:
        weights = weights.astype(np.float32, copy=False)
    return kernels.pool_quantized(kind, table, weights, indices, lengths, layout.bits, layout.scale, pruned)


def _rows(indices: Array, num_rows: int, mapping: Array) -> Array:
    """Return the row of the table for each index, -1 if it was pruned; raise OpIndexError for rows outside."""
    mapped = kernels.gather(int64_counts(mapping, "mapping"), indices)
    bad = np.flatnonzero((mapped < -1) | (mapped >= num_rows))
    if len(bad):
        index = int(indices[bad[0]])
        raise OpIndexError(f"mapping[{index}] = {mapping[index]} is outside [-1, {num_rows})")
    return mapped
