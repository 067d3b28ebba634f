"""Caffe2's row-wise quantised tables: fused, pruned, and with scale and bias in a separate tensor.

Tensors of more than two dimensions are treated as rows.
"""

from collections.abc import Callable
from math import prod

import numpy as np

from seqflow import ops
from seqflow.errors import OpIndexError, OpTypeError, ShapeError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.quantized_rows import Scale

from .adapter import ADAPTERS, Adapter, as_matrix, int32, num_rows


def _quantize(bits: int, scale: Scale) -> Adapter:
    return Adapter(
        lambda data: _in_rows(lambda rows: ops.quantize_rowwise(rows, bits=bits, scale=scale), data)
    )


def _dequantize(bits: int, scale: Scale, dtype: str) -> Adapter:
    def call(table: Array) -> Array:
        return _in_rows(lambda rows: ops.dequantize_rowwise(rows, bits=bits, scale=scale), table).astype(
            dtype
        )

    return Adapter(call)


def _in_rows(call: Callable[[Array], Array], data: Array) -> Array:
    """Apply a function to the rows of the last axis."""
    num_rows("the input", data)
    rows = call(data.reshape(prod(data.shape[:-1]), data.shape[-1]))
    return rows.reshape(*data.shape[:-1], rows.shape[1])


def quantize_apart(data: Array) -> tuple[Array, Array]:
    """Return the integers, and a row [scale, bias] for each; halves are rounded up, and a constant row has the scale
    1.
    """
    rows = as_matrix("data", data).astype(np.float32)
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        raise OpIndexError(f"data[{row}, {column}] = {rows[row, column]}, expected finite numbers")
    if not rows.shape[1]:
        return np.zeros(data.shape, np.uint8), np.tile(np.array([1, 0], np.float32), (len(rows), 1))
    lowest, highest = rows.min(axis=1), rows.max(axis=1)
    # 1e-10 is Caffe2's threshold for a constant row
    flat = highest - lowest < np.float32(1e-10)
    scales = np.where(flat, np.float32(1), (highest - lowest) / np.float32(255))
    # times the reciprocal, as in Caffe2: a division may round differently
    steps = (rows - lowest[:, None]) * (np.float32(1) / scales)[:, None]
    whole = np.floor(steps)
    integers = np.where(flat[:, None], 0, whole + (steps - whole >= 0.5)).astype(np.uint8)
    return integers.reshape(data.shape), np.stack([scales, lowest], axis=1)


def dequantize_apart(data: Array, scale_bias: Array) -> Array:
    rows = _joined(data, scale_bias, np.arange(len(data)))
    return ops.dequantize_rowwise(rows).reshape(data.shape)


def _joined(data: Array, scale_bias: Array, indices: Array) -> Array:
    """Return the fused rows at some indices, from integers and a separate tensor of scale and bias."""
    if data.dtype != np.uint8 or data.ndim < 1:
        raise OpTypeError(f"data is {data.dtype} {data.shape}, expected rows of uint8")
    if scale_bias.shape != (len(data), 2) or scale_bias.dtype != np.float32:
        found = f"{scale_bias.dtype} {scale_bias.shape}"
        raise ShapeError(f"scale_bias is {found}, expected float32 {(len(data), 2)}")
    integers, ends = ops.gather(data, indices), ops.gather(scale_bias, indices)
    return np.concatenate([integers.reshape(len(indices), prod(data.shape[1:])), ends.view(np.uint8)], axis=1)


def _apart(kind: str) -> Adapter:
    """Return an adapter that joins only the requested rows. The weighted mean divides by the length, not by the
    weights.
    """
    pool = getattr(ops, f"sparse_lengths_{kind.replace('weighted_mean', 'weighted_sum')}_quantized")

    def call(data: Array, weights: Array | None, indices: Array, lengths: Array, scale_bias: Array) -> Array:
        rows = _joined(data, scale_bias, indices)
        given = () if weights is None else (weights,)
        out: Array = pool(rows, *given, np.arange(len(rows)), lengths)
        if kind == "weighted_mean":
            out /= np.maximum(lengths, 1).astype(np.float32)[:, None]
        return out.reshape(len(lengths), *data.shape[1:])

    if kind.startswith("weighted"):
        return Adapter(call)
    return Adapter(lambda data, indices, lengths, scale_bias: call(data, None, indices, lengths, scale_bias))


def sparse_lookup(
    indices: Array, lengths: Array, compressed_indices_mapping: Array, weights: Array | None = None
) -> list[Array]:
    """Look up pruned indices; with weights, the weights of the remaining indices are the third output."""
    found = ops.sparse_lookup(indices, compressed_indices_mapping, lengths)
    outputs = [found.values.astype(indices.dtype), int32(found.lengths)]
    if weights is None:
        return outputs
    if weights.shape != indices.shape:
        raise ShapeError(f"weights is {weights.shape}, expected {indices.shape} as indices")
    return [*outputs, weights[compressed_indices_mapping[indices] >= 0]]


_KINDS = {"Sum": "sum", "Mean": "mean", "WeightedSum": "weighted_sum"}
_FUSED = {kind: f"table, {'weights, ' * (kind == 'WeightedSum')}indices, lengths" for kind in _KINDS}

ADAPTERS |= {
    "FloatToFused8BitRowwiseQuantized": _quantize(8, "float32"),
    "HalfFloatToFused8BitRowwiseQuantized": _quantize(8, "float32"),
    "FloatToFused8BitRowwiseQuantizedHalfScaleBias": _quantize(8, "float16"),
    "HalfFloatToFused8BitRowwiseQuantizedHalfScaleBias": _quantize(8, "float16"),
    **{f"FloatToFused{bits}BitRowwiseQuantized": _quantize(bits, "float16") for bits in (4, 2)},
    **{f"HalfToFused{bits}BitRowwiseQuantized": _quantize(bits, "float16") for bits in (4, 2)},
    "Fused8BitRowwiseQuantizedToFloat": _dequantize(8, "float32", "float32"),
    "Fused8BitRowwiseQuantizedToHalfFloat": _dequantize(8, "float32", "float16"),
    "Fused8BitRowwiseQuantizedHalfScaleBiasToFloat": _dequantize(8, "float16", "float32"),
    "Fused8BitRowwiseQuantizedHalfScaleBiasToHalfFloat": _dequantize(8, "float16", "float16"),
    **{f"Fused{bits}BitRowwiseQuantizedToFloat": _dequantize(bits, "float16", "float32") for bits in (4, 2)},
    **{f"Fused{bits}BitRowwiseQuantizedToHalf": _dequantize(bits, "float16", "float16") for bits in (4, 2)},
    "GatherFused8BitRowwise": Adapter(),
    **{
        f"SparseLengths{name}Fused{bits}BitRowwise": Adapter(inputs=inputs, settings={"bits": bits})
        for name, inputs in _FUSED.items()
        for bits in (8, 4, 2)
    },
    # pruned rows add nothing, but count in means; a mapping with the single entry 0 means no pruning
    **{
        f"SparseLengths{name}{bits}BitRowwiseSparse": Adapter(
            inputs=f"{inputs}, mapping", settings={"bits": bits}
        )
        for name, inputs in _FUSED.items()
        for bits in (8, 4, 2)
    },
    "FloatToRowwiseQuantized8Bits": Adapter(quantize_apart),
    "Rowwise8BitQuantizedToFloat": Adapter(dequantize_apart),
    **{f"SparseLengths{name}8BitsRowwise": _apart(kind) for name, kind in _KINDS.items()},
    "SparseLengthsWeightedMean8BitsRowwise": _apart("weighted_mean"),
    "SparseLengthsSumSparseLookup": Adapter(sparse_lookup),
}
