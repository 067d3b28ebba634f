"""Caffe2's operators from sequences to sequences: repeat, reverse, mask, drop out, trim, decode."""

from typing import Any

import numpy as np

from seqflow import ops
from seqflow.errors import LodError, OpError, OpTypeError, ShapeError
from seqflow.kernels.arrays import Array
from seqflow.signature import NonNegative, Positive

from .adapter import ADAPTERS, Adapter, Caffe2Argument, int32, num_rows, seed_of


def boolean_mask_lengths(lengths: Array, mask: Array) -> Array:
    """Mask lengths; the result has the dtype of the lengths."""
    return ops.boolean_mask_lengths(mask, lengths).astype(lengths.dtype)


def sparse_itemwise_dropout_with_replacement(
    x: Array,
    lengths: Array,
    *,
    ratio: float = 0.0,
    replacement_value: int = 0,
    random_seed: NonNegative | None = None,
) -> tuple[Array, Array]:
    """Replace elements at random; the lengths stay as they are."""
    dropped = ops.dropout_ids(
        x, lengths, ratio=ratio, replacement=replacement_value, seed=seed_of(random_seed)
    )
    return dropped, int32(lengths)


def trim_dataset(*columns: Array, fields: Any, multiple_of: Positive = 1) -> list[Array]:
    """Trim all columns of a dataset to a multiple of records; nested columns follow.

    The field `x:lengths` has the number of rows of each record in the fields under `x`. A column belongs to the
    longest such `x` that is a prefix of its name.
    """
    names = _field_names(fields, len(columns))
    domains = [_domain(name, names[:i]) for i, name in enumerate(names)]
    for name, column in zip(names, columns, strict=True):
        num_rows(name, column)
    records = min(len(column) for column, domain in zip(columns, domains, strict=True) if domain == "")
    kept = {"": records // multiple_of * multiple_of}
    # nothing to trim, so nested columns are not checked
    if kept[""] == records:
        return list(columns)
    for name, domain, column in zip(names, domains, columns, strict=True):
        if kept[domain] > len(column):
            raise LodError(f"{name} has {len(column)} rows, expected {kept[domain]} or more")
        if name.endswith(":lengths"):
            kept[name.removesuffix(":lengths")] = int(ops.lengths_to_offsets(column)[kept[domain]])
    return [column[: kept[domain]] for column, domain in zip(columns, domains, strict=True)]


def _field_names(fields: Any, count: int) -> list[str]:
    if not isinstance(fields, (list, tuple)) or not all(isinstance(name, (str, bytes)) for name in fields):
        raise OpTypeError(f"fields is {fields!r}, expected a list of names")
    if len(fields) != count:
        raise OpError(f"found {count} inputs, expected {len(fields)}: one for each of fields")
    return [name.decode() if isinstance(name, bytes) else name for name in fields]


def _domain(name: str, before: list[str]) -> str:
    """Return the longest prefix `x` of this name with `x:lengths` among the names before it."""
    own = name.removesuffix(":lengths")
    opened = [one.removesuffix(":lengths") for one in before if one.endswith(":lengths")]
    return max((one for one in opened if own.startswith(f"{one}:")), key=len, default="")


def ctc_greedy_decoder(
    inputs: Array, seq_len: Array | None = None, *, merge_repeated: bool = True
) -> tuple[Array, Array]:
    """Decode labels. Time is the first axis of the inputs; label 0 is the blank. Without lengths all steps count. The
    number of labels of each sequence is the first output.
    """
    if inputs.ndim != 3:
        raise ShapeError(f"inputs has {inputs.ndim} dimensions {inputs.shape}, expected 3")
    lengths = np.full(inputs.shape[1], inputs.shape[0]) if seq_len is None else seq_len
    scores = ops.unpack_by_time(inputs, lengths)
    labels, counts = ops.ctc_greedy_decode(scores, lengths, merge_repeated=merge_repeated)
    return int32(counts), int32(labels)


ADAPTERS |= {
    "LengthsTile": Adapter(strings=True),
    "ReversePackedSegs": Adapter(strings=True),
    "BooleanMask": Adapter(strings=True),
    "BooleanMaskLengths": Adapter(boolean_mask_lengths),
    "BooleanUnmask": Adapter(inputs="mask, values", strings=True),
    "SparseDropoutWithReplacement": Adapter(
        outputs="values, int32 lengths",
        arguments={
            "ratio": Caffe2Argument("ratio", float, 0.0),
            "replacement_value": Caffe2Argument("replacement", int, 0),
            "random_seed": Caffe2Argument("seed", NonNegative | None, None, seed_of),
        },
    ),
    "SparseItemwiseDropoutWithReplacement": Adapter(sparse_itemwise_dropout_with_replacement),
    "TrimDataset": Adapter(trim_dataset, strings=True),
    "CTCGreedyDecoder": Adapter(ctc_greedy_decoder),
}
