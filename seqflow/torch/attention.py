"""Attention masks, offsets and position ids for packed batches."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError, OpTypeError, ShapeError
from seqflow.kernels.arrays import Array
from seqflow.torch.arrays import tensor_named, to_array, to_lengths

MAX_INT32 = np.iinfo(np.int32).max


class CuSeqlens(NamedTuple):
    """Arguments of variable-length attention, such as `flash_attn_varlen_func`."""

    cu_seqlens: Any
    """Start of each piece in the batch's rows laid end to end, and the end: int32[P + 1]."""
    max_seqlen: int
    """Length of the longest piece."""


def cu_seqlens(batch: Mapping[str, Any] | None = None, *, lengths: Any = None) -> CuSeqlens:
    """Return the offsets of the pieces of a packed batch with its rows laid end to end:
    `batch["tokens"].flatten()`.

    The padding at the end of a row is a piece of its own, so the last offset is R * capacity. Raises OpError
    for offsets that int32 cannot hold.

    Args:
        batch: Packed batch.
        lengths: Lengths of sequences that lie end to end, in place of a batch: frames and windows of images,
            flat rows.
    """
    import torch

    if lengths is not None:
        if batch is not None:
            raise OpTypeError("cu_seqlens: batch and lengths are both given, expected one of them")
        sizes = to_lengths(lengths)
        ends = kernels.lengths_to_offsets(sizes)
        if ends[-1] > MAX_INT32:
            raise OpError(
                f"cu_seqlens: sum(lengths) is {ends[-1]}, expected at most {MAX_INT32}, as int32 holds"
            )
        return CuSeqlens(torch.from_numpy(ends.astype(np.int32)), int(sizes.max(initial=0)))
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

    The padding at the end of a row is a piece of its own, with the length 0 without padding. Its size is also
    a multiple. The padded offsets are those of the tensors, to divide them among ranks; attention takes both.

    Args:
        batch: Packed batch with `padded_lengths`.
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


def position_ids(batch: Mapping[str, Any], *, mrope: str | None = None) -> Any:
    """Return the position ids of a packed batch as models of transformers take them: int64[R, capacity].

    `mrope` names the tensor of `mrope_positions`, [R, capacity, 3], and the result is [4, R, capacity], as
    Qwen-VL models take it: first the positions in the text, which begin at 0 in each piece and by which these
    models tell the pieces apart, then those in time, height and width. Pass no mask of ones with them: it
    hides where pieces begin.

    Args:
        batch: Packed batch.
        mrope: Name of the tensor of `mrope_positions`, [R, capacity, 3]; None takes positions in the text
            alone.
    """
    import torch

    text = np.array(to_array(tensor_named("position_ids", batch, "position_ids")), np.int64)
    if mrope is None:
        return torch.from_numpy(text)
    places = _integers(batch, mrope, "mrope", (*text.shape, 3))
    return torch.from_numpy(np.concatenate([text[None], places.transpose(2, 0, 1)]))


def block_diagonal_mask(
    batch: Mapping[str, Any], *, causal: bool = True, image_ids: str | None = None, dtype: Any = None
) -> Any:
    """Return true for each token that a token may attend to: bool[R, 1, capacity, capacity].

    Tokens attend to tokens of their own piece, with `causal` only to themselves and those before. `image_ids`
    names a packed tensor of the op `image_ids`: tokens of an image then attend to all tokens of that image,
    as in Gemma 3. Padding attends to padding, so no row of a softmax is empty. The second axis is for heads.
    Pass the mask as the `attn_mask` of `scaled_dot_product_attention`. With `dtype`, a float dtype of torch,
    the mask is to be added to scores: 0 where a token may attend, else the least number of the dtype. Models
    with "eager" attention take this form alone.

    Args:
        batch: Packed batch with `segment_ids`.
        causal: Whether tokens attend only to themselves and those before.
        image_ids: Name of a packed tensor of the op `image_ids`: tokens of an image attend to all tokens of
            that image.
        dtype: Float dtype of torch of a mask to add to scores; None gives bools.
    """
    import torch

    ids = torch.from_numpy(_segment_ids(batch))
    allowed: Any = True
    if causal:
        allowed = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
        if image_ids is not None:
            images = _images(batch, image_ids)
            allowed = allowed | ((images[:, :, None] == images[:, None, :]) & (images > 0)[:, None])
    mask = ((ids[:, :, None] == ids[:, None, :]) & allowed)[:, None]
    if dtype is None:
        return mask
    if not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
        raise OpTypeError(f"block_diagonal_mask: dtype is {dtype}, expected a float dtype of torch, or None")
    return torch.zeros(mask.shape, dtype=dtype).masked_fill_(~mask, torch.finfo(dtype).min)


def flex_block_mask(
    batch: Mapping[str, Any], *, causal: bool = True, device: str = "cpu", image_ids: str | None = None
) -> Any:
    """Return the same mask as a BlockMask for `flex_attention`, which skips blocks without a true element.

    Args:
        batch: Packed batch with `segment_ids`.
        causal: Whether tokens attend only to themselves and those before.
        image_ids: Name of a packed tensor of the op `image_ids`: tokens of an image attend to all tokens of
            that image.
        device: Device of the mask.
    """
    import torch
    from torch.nn.attention.flex_attention import create_block_mask

    try:
        place = torch.device(device)
    except RuntimeError as error:
        raise OpError(f"flex_block_mask: device is {device!r}, expected one of torch: {error}") from None
    ids = torch.from_numpy(_segment_ids(batch)).to(place)
    images = None if image_ids is None else _images(batch, image_ids).to(place)

    def together(row: Any, head: Any, query: Any, key: Any) -> Any:
        same = ids[row, query] == ids[row, key]
        if not causal:
            return same
        if images is None:
            return same & (query >= key)
        in_image = (images[row, query] == images[row, key]) & (images[row, key] > 0)
        return same & ((query >= key) | in_image)

    rows, capacity = ids.shape
    return create_block_mask(together, rows, None, capacity, capacity, device=device)


def _segment_ids(batch: Mapping[str, Any] | None) -> Any:
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


def _images(batch: Mapping[str, Any], name: str) -> Any:
    """Return the numbers of the images of the tokens of a packed batch: a tensor int64[R, capacity]."""
    import torch

    return torch.from_numpy(_integers(batch, name, "image_ids", _segment_ids(batch).shape))


def _integers(batch: Mapping[str, Any], name: str, argument: str, shape: tuple[int, ...]) -> Array:
    """Return a copy of the tensor that an argument names, as int64; raise ShapeError for another shape or dtype."""
    array = to_array(tensor_named(name, batch, argument))
    if array.dtype.kind not in "iu" or array.shape != shape:
        raise ShapeError(
            f"{argument}: {name} is {array.dtype}{list(array.shape)}, expected integers {list(shape)}, "
            "one entry for each token"
        )
    return array.astype(np.int64)
