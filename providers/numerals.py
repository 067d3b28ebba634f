"""Parse many floats of a text at once; malformed ones are marked, not raised."""

import numpy as np
import pyarrow as pa

from seqflow import kernels
from seqflow.record.buffers import buffer_of
from seqflow.record.record import Tensor

_SIGNS = np.frombuffer(b"+-", np.uint8)
_FLOAT = r"(?i)^[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?|nan|inf|infinity)$"


def parse_floats(data: Tensor, starts: Tensor, stops: Tensor, kind: pa.DataType) -> tuple[Tensor, Tensor]:
    """The numbers in `data[start:stop]` of uint8 data, of an Arrow float type; true where there is none."""
    texts = _texts(data, starts, stops)
    wrong = np.zeros(len(starts), np.bool_)
    try:
        numbers = texts.cast(kind)
    except pa.ArrowInvalid:
        import pyarrow.compute as pc

        wrong = ~pc.match_substring_regex(texts, _FLOAT).to_numpy(zero_copy_only=False)
        numbers = pc.if_else(pa.array(wrong), pa.scalar(b"0", texts.type), texts).cast(kind)
    return numbers.to_numpy(zero_copy_only=False), wrong


def _texts(data: Tensor, starts: Tensor, stops: Tensor) -> pa.Array:
    """The slices of the data as an Arrow array; a plus sign, which not every version of it takes, is left out."""
    sizes = stops - starts
    if len(starts):
        signed = (data.take(starts, mode="clip") == _SIGNS[0]) & (sizes > 1)
        signed &= ~np.isin(data.take(starts + 1, mode="clip"), _SIGNS)
        starts, sizes = starts + signed, sizes - signed
    offsets = kernels.lengths_to_offsets(sizes)
    packed = np.empty(int(offsets[-1]), np.uint8)
    kernels.move_slices(data, starts, sizes, packed, offsets[:-1])
    return pa.Array.from_buffers(pa.large_binary(), len(sizes), [None, buffer_of(offsets), buffer_of(packed)])
