"""Caffe2's operators for padding, packing and masks."""

from typing import Literal

import numpy as np

from seqflow import ops
from seqflow.errors import OpError, ShapeError
from seqflow.kernels.arrays import Array
from seqflow.signature import NonNegative, Positive

from .adapter import ADAPTERS, Adapter, chosen, int32


def pack_segments(
    lengths: Array,
    data: Array,
    *,
    max_length: int = -1,
    pad_minf: bool = False,
    return_presence_mask: bool = False,
) -> tuple[Array, ...]:
    """Pad segments; longer ones are cut silently. `pad_minf` fills floats with -inf, but integers with 0."""
    fill = -np.inf if pad_minf and data.dtype.kind == "f" else 0
    packed, mask = ops.pad(data, lengths, max_length=chosen(max_length), fill=fill, truncate=True)
    return (packed, mask) if return_presence_mask else (packed,)


def unpack_segments(lengths: Array, packed: Array, *, max_length: int = -1) -> Array:
    """Remove padding; with `max_length`, which must be the width of `packed`, longer lengths are cut to it."""
    if max_length != -1:
        width = packed.shape[1] if packed.ndim > 1 else 0
        if width != max_length:
            raise ShapeError(f"packed.shape[1] is {width}, expected {max_length} as max_length says")
        lengths = np.minimum(lengths, max_length)
    return ops.unpad(packed, lengths)


def add_padding(
    data: Array,
    lengths: Array | None = None,
    start: Array | None = None,
    end: Array | None = None,
    *,
    padding_width: NonNegative = 1,
    end_padding_width: int = -1,
) -> tuple[Array, Array]:
    """Add padding; without lengths all rows are one segment."""
    start, end = (None if row is None else _row_of(data, row) for row in (start, end))
    rows, longer = ops.add_padding(
        data, _lengths(data, lengths), start, end, before=padding_width, after=chosen(end_padding_width)
    )
    return rows, int32(longer)


def remove_padding(
    data: Array, lengths: Array | None = None, *, padding_width: NonNegative = 1, end_padding_width: int = -1
) -> tuple[Array, Array]:
    """Remove padding; without lengths all rows are one segment."""
    rows, kept = ops.remove_padding(
        data, _lengths(data, lengths), before=padding_width, after=chosen(end_padding_width)
    )
    return rows, int32(kept)


def gather_padding(
    data: Array,
    lengths: Array,
    *,
    padding_width: NonNegative = 1,
    end_padding_width: int = -1,
    num_outputs: Positive = 2,
) -> tuple[Array, ...]:
    """Return the sums of padding rows; with one output, the sum of both ends."""
    if num_outputs > 2:
        raise OpError(f"num_outputs is {num_outputs}, expected 1 to 2")
    ends = ops.gather_padding(data, lengths, before=padding_width, after=chosen(end_padding_width))
    return ends if num_outputs == 2 else (np.asarray(ends.start + ends.end),)


def _lengths(data: Array, lengths: Array | None) -> Array:
    return np.array(data.shape[:1], np.int64) if lengths is None else lengths


def _row_of(data: Array, row: Array) -> Array:
    """Return a row of padding in the shape of a row of data: any shape with as many elements is accepted."""
    shape = data.shape[1:]
    return row.reshape(shape) if row.size == np.prod(shape, dtype=np.int64) else row


def lengths_pad(data: Array, lengths: Array, *, target_length: Positive, padding_value: float = -1) -> Array:
    """Pad to a fixed length. The default padding of -1 can be changed; for integers it loses its fraction."""
    fill = int(padding_value) if data.dtype.kind in "iu" else padding_value
    return ops.pad_lengths(data, lengths, target_length=target_length, fill=fill)


def pad_empty_samples(lengths: Array, *features: Array) -> list[Array]:
    """Give empty samples one row of padding. All features have the same lengths; the new lengths come first."""
    if not features:
        return [int32(np.maximum(np.diff(ops.lengths_to_offsets(lengths)), 1))]
    padded = [ops.pad_empty(feature, lengths) for feature in features]
    return [int32(padded[0].lengths), *(one.values for one in padded)]


Mode = Literal["sequence", "window", "upper", "lower", "upperdiag", "lowerdiag"]
_TRIANGLES: dict[str, Literal["upper", "lower", "upper_diagonal", "lower_diagonal"]] = {
    "upper": "upper",
    "lower": "lower",
    "upperdiag": "upper_diagonal",
    "lowerdiag": "lower_diagonal",
}


def sequence_mask(
    input: Array,
    sequence_lengths: Array | None = None,
    *,
    mode: Mode,
    axis: int = 1,
    batch: int | None = None,
    repeat_from_axis: int = -1,
    radius: NonNegative = 10,
    fill_val: float = -np.inf,
    grad: bool = False,
) -> Array:
    """Mask sequences. `upper` masks column > row, `lower` column < row: the opposite of Caffe2's documentation.

    The triangular modes accept a second input and ignore it. `grad` fills with 0.
    """
    return ops.sequence_mask(
        input,
        None if mode in _TRIANGLES else sequence_lengths,
        mode=_TRIANGLES.get(mode, mode),  # type: ignore[arg-type]
        axis=axis,
        batch=batch,
        repeat_from_axis=chosen(repeat_from_axis),
        radius=radius,
        fill=0 if grad else fill_val,
    )


ADAPTERS |= {
    "PackSegments": Adapter(pack_segments, strings=True),
    "UnpackSegments": Adapter(unpack_segments, strings=True),
    "PackRNNSequence": Adapter(strings=True),
    "UnpackRNNSequence": Adapter(strings=True),
    "AddPadding": Adapter(add_padding),
    "RemovePadding": Adapter(remove_padding),
    "GatherPadding": Adapter(gather_padding),
    "LengthsPad": Adapter(lengths_pad),
    "PadEmptySamples": Adapter(pad_empty_samples, strings=True),
    "SequenceMask": Adapter(sequence_mask),
}
