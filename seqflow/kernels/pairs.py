"""Lines of a label and index:value pairs, in one native pass."""

from seqflow.kernels.arrays import Array
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import BYTES

__all__ = ["parse_pairs"]


@kernel(data=BYTES)
def parse_pairs(
    data: Array, has_qid: bool, one_based: bool
) -> tuple[Array, Array, Array, Array, Array] | None:
    """Parse lines `label qid:number index:value … # comment`, if all of them have the simple form.

    uint8 data[n] -> float64 labels[R], int64 qids[R], int64 ids[P], float32 values[P], int32 offsets[R + 1]

    The pairs of row r are those from `offsets[r]` to `offsets[r + 1]`. With `one_based`, ids are the indices less 1.
    With `has_qid`, all rows have `qid:number` after the label; otherwise no row has it, and `qids` are 0.

    Returns None if a line is malformed or has a number that is not finite, and always without native kernels: such
    lines go to a parser that reports errors.
    """
    return None
