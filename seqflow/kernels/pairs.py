"""Lines of a label and index:value pairs, in one native pass."""

from seqflow.kernels.arrays import Array
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import BYTES

__all__ = ["parse_pairs"]


@kernel(data=BYTES)
def parse_pairs(
    data: Array, has_qid: bool, one_based: bool
) -> tuple[Array, Array, Array, Array, Array] | None:
    """The rows of lines `label qid:number index:value …  # comment`, where all of them are plain.

    uint8 data[n] -> float64 labels[R], int64 qids[R], int64 ids[P], float32 values[P], int32 offsets[R + 1]

    The pairs of row r are those from `offsets[r]` to `offsets[r + 1]`. With `one_based`, ids are the indices less 1.
    All rows have `qid:number` behind the label with `has_qid`, else `qids` are 0 and no row has it.

    None where a line is malformed or has a number that is not finite, and always without native kernels: such lines
    are for a parser that says what it found.
    """
    return None
