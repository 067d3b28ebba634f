"""Between flat rows and padded ones."""

# mypy: disable-error-code="no-any-return"

from typing import Any

from seqflow.kernels import choice
from seqflow.kernels.arrays import Array


def pad(
    data: Array,
    lengths: Array,
    width: int,
    value: Any = 0,
    side: str = "right",
    *,
    truncate: bool = False,
    out: Array | None = None,
    mask: Array | None = None,
) -> tuple[Array, Array]:
    """One row a sequence: data[sum(lengths), *d], lengths[B] -> padded[B, width, *d], bool mask[B, width].

    `side` is where the padding, `value`, goes. A length above `width` is a KernelError, unless `truncate` keeps
    the head of the sequence (its tail with side="left"). `out` and `mask` are arrays to write to.
    """
    return choice.chosen.pad(data, lengths, width, value, side, truncate=truncate, out=out, mask=mask)


def unpad(padded: Array, lengths: Array, side: str = "right", *, out: Array | None = None) -> Array:
    """The inverse of `pad`: padded[B, T, *d], lengths[B] -> data[sum(lengths), *d]."""
    return choice.chosen.unpad(padded, lengths, side, out=out)


def pack_by_time(
    data: Array, lengths: Array, num_steps: int, value: Any = 0, *, out: Array | None = None
) -> Array:
    """Time first: data[sum(lengths), *d], lengths[B] -> packed[num_steps, B, *d], `value` behind each end.

    A length above `num_steps` is a KernelError.
    """
    return choice.chosen.pack_by_time(data, lengths, num_steps, value, out=out)


def unpack_by_time(packed: Array, lengths: Array, *, out: Array | None = None) -> Array:
    """The inverse of `pack_by_time`: packed[T, B, *d], lengths[B] -> data[sum(lengths), *d]."""
    return choice.chosen.unpack_by_time(packed, lengths, out=out)
