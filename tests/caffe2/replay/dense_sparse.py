"""Caffe2's conversions between sparse, one-hot and dense tensors, and buckets."""

from typing import Any

import numpy as np

from seqflow import ops
from seqflow.errors import OpError, ShapeError
from seqflow.kernels.arrays import Array
from seqflow.signature import Ints

from .adapter import ADAPTERS, Adapter, as_matrix, chosen, int32, num_rows, single_integer


def bucketize(x: Array, *, boundaries: Any) -> Array:
    """Return the bucket of each element. NaN goes to the first bucket. Boundaries are converted to float32."""
    bounds = np.asarray(boundaries, np.float32)
    flat = x.reshape(x.size)
    return int32(ops.bucketize(flat, bounds, nan=0).reshape(x.shape))


def one_hot(indices: Array, index_size: Array) -> Array:
    width = single_integer("index_size", index_size)
    if indices.ndim != 1:
        raise ShapeError(f"indices has {indices.ndim} dimensions, expected 1")
    return ops.one_hot(indices, width=width)


def segment_one_hot(lengths: Array, indices: Array, index_size: Array) -> Array:
    """Set the indices of each segment in a row; an index beyond the width is an error (Caffe2 writes it into the next
    row).
    """
    return ops.segment_one_hot(indices, lengths, width=single_integer("index_size", index_size))


def batch_one_hot(data: Array, lengths: Array, values: Array) -> Array:
    """Compare with the values of each column; all axes except the first are columns. The result has the dtype of the
    data.
    """
    return ops.batch_one_hot(as_matrix("data", data), values, lengths, dtype=data.dtype)


def batch_bucket_one_hot(data: Array, lengths: Array, boundaries: Array) -> Array:
    """Encode the bucket of each element; all axes except the first are columns, each with at least one boundary."""
    if lengths.dtype.kind in "iu" and not lengths.all():
        raise OpError(f"lengths[{int(np.argmin(lengths != 0))}] is 0, expected 1 or more")
    return ops.batch_bucket_one_hot(as_matrix("data", data), boundaries, lengths)


def sparse_to_dense(indices: Array, values: Array, data_to_infer_dim: Array | None = None) -> Array:
    """Add values at their indices. The number of rows is that of the third input, else the largest index plus 1.

    A negative index is always an error (not in Caffe2, if all are negative and there is no third input).
    """
    like = data_to_infer_dim
    most = None if like is None else num_rows("data_to_infer_dim", like)
    return ops.sparse_to_dense(values, indices, num_rows=most)


def sparse_to_dense_mask(
    indices: Array,
    values: Array,
    default_value: Array,
    lengths: Array | None = None,
    *,
    mask: Ints,
    return_presence_mask: bool = False,
    max_skipped_indices: int = 50,
) -> tuple[Array, ...]:
    """Place values by id. Without lengths there is one example, and no axis for it. The last value of a repeated id
    counts.

    Negative ids are skipped; they must occur in fewer than `max_skipped_indices` examples. Lengths must add up
    (Caffe2 drops the remaining ids).
    """
    if not mask or min(mask) < 0:
        raise OpError(f"mask is {list(mask)}, expected one id or more, none negative")
    sizes = np.array([indices.size]) if lengths is None else lengths
    found: tuple[Array, ...] = ops.sparse_to_dense_mask(values, default_value, indices, sizes, mask=mask)
    skipped = np.unique(ops.lengths_to_segment_ids(sizes)[indices < 0])
    if len(skipped) and len(skipped) >= max_skipped_indices:
        raise OpError(f"{len(skipped)} examples have negative ids, expected fewer than {max_skipped_indices}")
    found = found if lengths is not None else tuple(one[0] for one in found)
    return found if return_presence_mask else found[:1]


def batch_sparse_to_dense(
    lengths: Array,
    indices: Array,
    values: Array,
    output_shape_inference: Array | None = None,
    *,
    dense_last_dim: int = -1,
    default_value: float = 0.0,
) -> Array:
    """Place values by index; the last value of a repeated index counts. The width is an argument, or that of the last
    input.
    """
    width = chosen(dense_last_dim)
    if output_shape_inference is not None:
        if output_shape_inference.ndim != 2:
            raise ShapeError(
                f"output_shape_inference is {output_shape_inference.shape}, expected 2 dimensions"
            )
        like = output_shape_inference.shape[1]
        if width not in (None, like):
            raise OpError(f"dense_last_dim is {width}, expected {like} as in output_shape_inference")
        width = like
    if width is None:
        raise OpError("dense_last_dim is missing, expected it as an argument or by the last input")
    return ops.batch_sparse_to_dense(values, indices, lengths, width=width, fill=default_value)


def dense_vector_to_id_list(dense: Array) -> tuple[Array, Array]:
    """List the entries that are not 0 after 0.5 is added and they are truncated to integers.

    So numbers between -1.5 and 0.5, such as 0.3 and -1, are not listed; 1 and -2 are. The lengths come first.
    """
    listed = np.trunc(dense.astype(np.float64) + 0.5) != 0
    values, lengths = ops.dense_to_id_list(listed)
    return int32(lengths), int32(values)


ADAPTERS |= {
    "SparseToDense": Adapter(sparse_to_dense),
    "SparseToDenseMask": Adapter(sparse_to_dense_mask, strings=True),
    "BatchSparseToDense": Adapter(batch_sparse_to_dense),
    "BatchDenseToSparse": Adapter(inputs="lengths, indices, dense"),
    "DenseVectorToIdList": Adapter(dense_vector_to_id_list),
    "Bucketize": Adapter(bucketize),
    "BatchBucketize": Adapter(inputs="x, columns, boundaries, lengths", outputs="int32 buckets"),
    "OneHot": Adapter(one_hot),
    "SegmentOneHot": Adapter(segment_one_hot),
    "BatchOneHot": Adapter(batch_one_hot),
    "BatchBucketOneHot": Adapter(batch_bucket_one_hot),
}
