"""Checks of values: immediately on the CPU, and without waiting if the device supports it."""

from collections.abc import Callable

import torch
from torch import Tensor

from seqflow.errors import OpError
from seqflow.kernels.checks import checked_indices


def check(sound: Tensor, error: Callable[[], Exception]) -> None:
    """Raise the error unless all elements are true.

    On CUDA the check runs on the device, and the program fails there with the text of the error. A tensor without
    data is not checked.
    """
    if sound.is_cuda:
        torch._assert_async(sound.all(), str(error()))
    elif not sound.is_meta and not bool(sound.all()):
        raise error()


def check_indices(
    indices: Tensor,
    num_rows: int,
    *,
    wrap: bool = False,
    ignore_index: int | None = None,
    argument: str = "indices",
) -> None:
    """Raise an error for an index that is neither one of `num_rows` rows nor `ignore_index`."""
    low = -num_rows if wrap else 0
    if indices.is_cpu:
        checked_indices(indices.numpy(), num_rows, wrap, ignore_index, argument)
        return
    inside = (indices >= low) & (indices < num_rows)
    if ignore_index is not None:
        inside |= indices == ignore_index
    check(inside, lambda: OpError(f"{argument} has an index outside [{low}, {num_rows})"))


def first_wrong(sound: Tensor) -> list[int]:
    """Return the place of the first false entry for a message; an empty list unless the tensor is on the CPU."""
    if not sound.is_cpu:
        return []
    place: list[int] = (~sound).nonzero()[0].tolist()
    return place


def number_of(size: Tensor) -> int:
    """Return a size that depends on data; the host waits for it. Raises OpError for a tensor without data."""
    if size.is_meta:
        raise OpError("a size of the result depends on data, which meta tensors do not have")
    return int(size)
