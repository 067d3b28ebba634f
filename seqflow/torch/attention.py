"""Attention masks and offsets for packed batches."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from seqflow.errors import OpError, OpTypeError
from seqflow.torch.arrays import to_array


class CuSeqlens(NamedTuple):
    """Arguments of variable-length attention, such as `flash_attn_varlen_func`."""

    cu_seqlens: Any
    """Start of each piece in the batch's rows laid end to end, and the end: int32[P + 1]."""
    max_seqlen: int
    """Length of the longest piece."""


def cu_seqlens(batch: Mapping[str, Any]) -> CuSeqlens:
    """Return the offsets of the pieces of a packed batch with its rows laid end to end: `batch["tokens"].flatten()`.

    The padding at the end of a row is a piece of its own, so the last offset is R * capacity.
    """
    import torch

    segment_ids = _segment_ids(batch)
    rows, capacity = segment_ids.shape
    begins = np.ones((rows, capacity), np.bool_)
    begins[:, 1:] = segment_ids[:, 1:] != segment_ids[:, :-1]
    offsets = np.append(np.flatnonzero(begins), rows * capacity).astype(np.int32)
    return CuSeqlens(torch.from_numpy(offsets), int(np.diff(offsets).max(initial=0)))


class PaddedCuSeqlens(NamedTuple):
    """Arguments of variable-length attention over padded pieces, as TransformerEngine takes them for "thd"."""

    cu_seqlens: Any
    """Sums of the lengths without padding before each piece, and of all: int32[P + 1]."""
    cu_seqlens_padded: Any
    """Start of each piece in the batch's rows laid end to end, and the end: int32[P + 1]."""
    max_seqlen: int
    """Length of the longest piece, with its padding."""


def cu_seqlens_padded(batch: Mapping[str, Any]) -> PaddedCuSeqlens:
    """Return the offsets of the pieces of a batch of `Packed(…, multiple_of=…)` with its rows laid end to end.

    The padding at the end of a row is a piece of its own, with the length 0 without padding. Its size is also a
    multiple. The padded offsets are those of the tensors, to divide them among ranks; attention takes both.
    """
    import torch

    for name in ("padded_lengths", "piece_lengths", "pieces"):
        if name not in batch:
            raise OpTypeError(f"the batch has no {name}, expected one of Packed(…, multiple_of=…)")
    capacity = _segment_ids(batch).shape[1]
    pieces, real, padded = (
        np.array(to_array(batch[name]), np.int64) for name in ("pieces", "piece_lengths", "padded_lengths")
    )
    ends = np.cumsum(pieces)
    # reduceat gives an element, not 0, for a row without pieces, and needs one element more for such a row at the end
    left = ends
    if len(pieces):
        left = capacity - np.add.reduceat(np.append(padded, 0), ends - pieces) * (pieces > 0)
    rows = np.flatnonzero(left)
    real = np.insert(real, ends[rows], 0)
    padded = np.insert(padded, ends[rows], left[rows])
    offsets = [np.concatenate([[0], np.cumsum(of)]).astype(np.int32) for of in (real, padded)]
    found = [torch.from_numpy(of) for of in offsets]
    return PaddedCuSeqlens(found[0], found[1], int(padded.max(initial=0)))


def block_diagonal_mask(batch: Mapping[str, Any], *, causal: bool = True) -> Any:
    """Return true for each token that a token may attend to: bool[R, 1, capacity, capacity].

    Tokens attend to tokens of their own piece, with `causal` only to themselves and those before. Padding attends to
    padding, so no row of a softmax is empty. The second axis is for heads. Pass the mask as the `attn_mask` of
    `scaled_dot_product_attention`.
    """
    import torch

    ids = torch.from_numpy(_segment_ids(batch))
    mask = ids[:, :, None] == ids[:, None, :]
    if causal:
        mask = mask & torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
    return mask[:, None]


def flex_block_mask(batch: Mapping[str, Any], *, causal: bool = True, device: str = "cpu") -> Any:
    """Return the same mask as a BlockMask for `flex_attention`, which skips blocks without a true element."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask

    try:
        place = torch.device(device)
    except RuntimeError as error:
        raise OpError(f"flex_block_mask: device is {device!r}, expected one of torch: {error}") from None
    ids = torch.from_numpy(_segment_ids(batch)).to(place)

    def together(row: Any, head: Any, query: Any, key: Any) -> Any:
        same = ids[row, query] == ids[row, key]
        return same & (query >= key) if causal else same

    rows, capacity = ids.shape
    return create_block_mask(together, rows, None, capacity, capacity, device=device)


def _segment_ids(batch: Mapping[str, Any]) -> Any:
    if not isinstance(batch, Mapping):
        raise OpTypeError(
            f"batch is {type(batch).__name__}, expected a packed batch, which maps names to tensors\n"
            "  pass the whole batch, or {'segment_ids': …}"
        )
    if "segment_ids" not in batch:
        raise OpTypeError(
            f"the batch has no segment_ids, expected a packed batch\n  it has {', '.join(batch)}"
        )
    return np.array(to_array(batch["segment_ids"]), np.int64)
