"""Conversion between values with lengths and PyTorch's nested jagged tensors and PackedSequence."""

from typing import Annotated, Any

import numpy as np

from seqflow import kernels
from seqflow.errors import LodError
from seqflow.kernels.arrays import Array
from seqflow.torch.arrays import to_array, to_lengths

PackedLike = Annotated[Any, lambda value: hasattr(value, "batch_sizes"), "a PackedSequence"]
Rows = Annotated[Any, lambda value: getattr(value, "ndim", 0) > 0, "an array or a tensor of rows"]


def to_nested(values: Rows, lengths: Any) -> Any:
    """Return a nested tensor of jagged layout, `[B, j, *d]`, that shares the memory of `values`.

    Args:
        values: Rows of all sequences, [N, *d].
        lengths: Length of each sequence, [B].

    >>> to_nested(np.array([1, 2, 3]), np.array([2, 0, 1])).offsets()
    tensor([0, 2, 2, 3])
    """
    import torch

    offsets = kernels.lengths_to_offsets(_lengths(lengths, len(values)))
    return torch.nested.nested_tensor_from_jagged(_tensor(values), torch.from_numpy(offsets))


def from_nested(nested: Any) -> tuple[Array, Array]:
    """Return values and int64 lengths of a nested tensor of either layout.

    They share the memory of a contiguous tensor of the jagged layout. Raises LodError for a tensor that is
    not nested, and for tensors that differ in sizes other than the first.

    Args:
        nested: Nested tensor.
    """
    import torch

    if not getattr(nested, "is_nested", False):
        raise LodError(f"from_nested: found {type(nested).__name__}, expected a nested tensor")
    if nested.layout is torch.strided:
        return _from_strided(nested)
    if nested._ragged_idx != 1:
        raise LodError(
            f"from_nested: axis {nested._ragged_idx} is ragged, expected axis 1\n  transpose it back"
        )
    nested = nested.contiguous()
    offsets = to_array(nested.offsets())
    return to_array(nested.values()), np.diff(offsets).astype(np.int64)


def _from_strided(nested: Any) -> tuple[Array, Array]:
    """Return values and lengths of a nested tensor of the strided layout, in which each tensor has its own shape."""
    rows = [to_array(one) for one in nested.unbind()]
    shapes = {one.shape[1:] for one in rows if one.ndim}
    if any(one.ndim == 0 for one in rows) or len(shapes) > 1:
        found = ", ".join(str(list(one.shape)) for one in rows[:3])
        raise LodError(
            f"from_nested: tensors of the shapes {found}…, expected shapes that differ in their first size alone"
        )
    lengths = np.array([len(one) for one in rows], np.int64)
    if not rows:
        return np.empty(0, to_array(nested.new_empty(0)).dtype), lengths
    return np.concatenate(rows), lengths


def to_packed_sequence(values: Rows, lengths: Any) -> Any:
    """Return the PackedSequence of `pack_padded_sequence(…, enforce_sorted=False)`, without padding first.

    Args:
        values: Rows of all sequences, [N, *d].
        lengths: Length of each sequence, [B].

    Raises LodError for an empty sequence, which PyTorch does not accept.
    """
    import torch
    from torch.nn.utils.rnn import PackedSequence

    counts = _lengths(lengths, len(values))
    if not len(counts) or not counts.all():
        at = int(np.argmin(counts)) if len(counts) else 0
        found = f"lengths[{at}] is 0" if len(counts) else "there is no sequence"
        raise LodError(
            f"to_packed_sequence: {found}, expected sequences of 1 or more rows: PyTorch takes no others"
        )
    order = np.argsort(-counts, kind="stable")
    inverse = np.empty_like(order)
    inverse[order] = np.arange(len(order))
    batch_sizes = np.array([np.count_nonzero(counts > step) for step in range(int(counts.max()))], np.int64)
    places = _places(counts, order, batch_sizes)
    return PackedSequence(
        _tensor(values)[torch.from_numpy(places)],
        torch.from_numpy(batch_sizes),
        torch.from_numpy(order),
        torch.from_numpy(inverse),
    )


def from_packed_sequence(packed: PackedLike) -> tuple[Array, Array]:
    """Return values and int64 lengths of a PackedSequence, with its sequences in their original order.

    Args:
        packed: PackedSequence.
    """
    batch_sizes, data = to_array(packed.batch_sizes), to_array(packed.data)
    counts = np.array([np.count_nonzero(batch_sizes > i) for i in range(int(batch_sizes[0]))], np.int64)
    order = np.arange(len(counts))
    if packed.sorted_indices is not None:
        order = to_array(packed.sorted_indices)
    lengths = np.empty_like(counts)
    lengths[order] = counts
    values = np.empty_like(data)
    values[_places(lengths, order, batch_sizes)] = data
    return values, lengths


def _places(lengths: Array, order: Array, batch_sizes: Array) -> Array:
    """Return the row of each packed row among the rows by sequences; packed rows are by time step, longest first."""
    starts = kernels.lengths_to_offsets(lengths)[:-1][order]
    steps = np.repeat(np.arange(len(batch_sizes)), batch_sizes)
    ranks = kernels.lengths_to_positions(batch_sizes)
    places: Array = starts[ranks] + steps
    return places


def _lengths(lengths: Any, rows: int) -> Array:
    found = to_lengths(lengths)
    if int(found.sum()) != rows:
        raise LodError(f"sum(lengths) is {found.sum()} but values has {rows} rows")
    return found


def _tensor(values: Any) -> Any:
    import torch

    if not isinstance(values, np.ndarray):
        return values
    return torch.from_numpy(values if values.flags.writeable else values.copy())
