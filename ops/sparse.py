"""Gather rows and sequences by index."""

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.slices import int64, move_sequences, starts_of
from seqflow.registry import MovedRows, op


@op(
    "data[R, *d], index(R) indices[N, *i] -> rows[N, *i, *d]",
    caffe2="Gather",
    grad={"data": "scatter_rows(d.rows, indices, data, wrap=wrap, ignore_index=ignore_index)"},
)
def gather(
    data: Array,
    indices: Array,
    *,
    wrap: bool = False,
    ignore_index: int | None = None,
    out: Array | None = None,
) -> Array:
    """Gather the rows of `data` at `indices`, which may repeat, in any order.

    An index outside `[0, R)` is an error; with `wrap` negative indices count from the end, as in NumPy.
    `ignore_index` is an index that gives a row of zeros. `out` is an array for the result.

    >>> gather(np.array([10, 20, 30]), np.array([2, 0, 2]))
    array([30, 10, 30])
    """
    return kernels.gather(data, indices, wrap=wrap, ignore_index=ignore_index, out=out)


@op(
    "data[sum(lengths), *d], index(B) indices[K], lengths[B]"
    " -> values[sum(lengths'), *d], int64 lengths'[K] := gather(lengths, indices)",
    caffe2="LengthsGather",
    grad=MovedRows(),
)
def gather_sequences(
    data: Array, indices: Array, lengths: Array, *, out: Array | None = None
) -> tuple[Array, Array]:
    """Gather whole sequences, in the order of `indices`, which may repeat.

    An empty sequence stays empty. `out` is an array for the values.

    So any op moves whole sequences, such as the words of texts: it moves their numbers.

        numbers, counts = truncate(np.arange(len(lengths)), counts, max_length=2)
        gather_sequences(data, numbers, lengths)

    >>> gather_sequences(np.array([1, 2, 3]), np.array([2, 0]), np.array([2, 0, 1]))
    GatherSequencesResult(values=array([3, 1, 2]), lengths=array([1, 2]))
    """
    sizes = int64(kernels.gather(lengths, indices))
    starts = kernels.gather(starts_of(lengths), indices)
    return move_sequences(data, starts, sizes, out), sizes
