"""Text as sequences of bytes: uint8 values and lengths."""

from typing import TYPE_CHECKING, Any

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.ops.scalars import cast_scalar
from seqflow.registry import op
from seqflow.signature import NonNegative

if TYPE_CHECKING:
    from seqflow.shape import InferenceContext

Array = np.ndarray[Any, Any]


def _bound_sizes(ctx: "InferenceContext") -> None:
    added = sum(ctx.attr(token) is not None for token in ("begin", "end"))
    ctx.limit(ctx.max_of("sizes"), ctx.max_of("lengths") + added)
    ctx.limit(ctx.sum_of("sizes"), ctx.sum_of("lengths") + added * ctx.dim(ctx.input("lengths"), 0))


@op(
    "uint8 data[sum(lengths)], lengths[B] -> int32 tokens[sum(sizes)], int64 sizes[B]",
    shape=_bound_sizes,
)
def bytes_to_tokens(
    data: Array,
    lengths: Array,
    *,
    offset: NonNegative = 0,
    begin: NonNegative | None = None,
    end: NonNegative | None = None,
) -> tuple[Array, Array]:
    """Each byte as a token id, plus `offset`; with special tokens before and after each sequence.

    With `offset=0` bytes keep their values and 256 and up are free for specials; ByT5 puts its specials first
    (`offset=3, end=1`). `begin` and `end` are the ids of the tokens to add, to empty sequences too.

    >>> bytes_to_tokens(np.frombuffer(b"abc", np.uint8), np.array([2, 1]), end=256)
    BytesToTokensResult(tokens=array([ 97,  98, 256,  99, 256], dtype=int32), sizes=array([3, 2]))
    """
    if offset > np.iinfo(np.int32).max - 255:
        raise OpError(f"offset is {offset}, expected at most {np.iinfo(np.int32).max - 255}: ids are int32")
    begin, end = (
        None if t is None else cast_scalar(n, t, np.dtype(np.int32))
        for n, t in (("begin", begin), ("end", end))
    )
    tokens = data.astype(np.int32)
    if offset:
        tokens += np.int32(offset)
    sizes = lengths.astype(np.int64, copy=False)
    if begin is None and end is None:
        return tokens, sizes.copy()
    longer = sizes + (begin is not None) + (end is not None)
    ends = kernels.lengths_to_offsets(longer)
    rows = np.empty(int(ends[-1]), np.int32)
    first = ends[:-1] + (begin is not None)
    kernels.move_slices(tokens, kernels.lengths_to_offsets(sizes)[:-1], sizes, rows, first)
    if begin is not None:
        rows[ends[:-1]] = begin
    if end is not None:
        rows[ends[1:] - 1] = end
    return rows, longer
