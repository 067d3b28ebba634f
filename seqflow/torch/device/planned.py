"""Ops that move rows, planned on the host: they run there on row numbers, and the rows are gathered on the device.

Lengths, indices and keys are copied to the host for this; the rows stay on the device.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqflow import registry
from seqflow.errors import OpError
from seqflow.registry import MovedRows, OpDef
from seqflow.signature import Repeated
from seqflow.torch.device.dtypes import scalar
from seqflow.torch.device.registration import IMPLEMENTED, implements
from seqflow.torch.device.structure import take

_NAMES = (
    "boolean_unmask", "concat_sequences", "gather_by_key", "gather_ranges", "gather_within",
    "gather_within_padded", "interleave", "keyed_concat", "keyed_permute", "keyed_select", "keyed_split",
    "merge_list_features", "merge_map_features", "merge_multi_list_features", "merge_multi_map_features",
    "merge_multi_scalar_features", "merge_scalar_features", "pack_rows", "pack_sequence", "pad_empty",
    "pad_lengths", "partition", "partition_sequences", "remove_rows", "repeat_sequences", "shard_sequences",
    "shuffle_within", "slice_sequences", "split_sequences", "trim_dataset", "unpack_sequence", "unshard_sequences",
)  # fmt: skip
_SYNCS = "lengths, indices and keys, on which it plans"


def _planned(op: OpDef) -> Callable[..., Any]:
    """Return the implementation of an op that moves the rows of its first input, a tensor or a list of tensors."""
    fill = op.grad.fill if isinstance(op.grad, MovedRows) else "fill" if "fill" in op.defaults else None
    lists = isinstance(op.signature.outputs[0], Repeated)

    def body(data: Any, *others: Any, **attributes: Any) -> Any:
        tensors = data if isinstance(data, list) else [data]
        first = tensors[0]
        if any(one.is_meta for one in tensors):
            raise OpError("it plans on data, which meta tensors do not have")
        value: Any = 0
        # row numbers are never negative, so -1 as the op's fill marks the places to fill on the device
        if fill is not None and attributes[fill] is not None:
            value, attributes = scalar(fill, attributes[fill], first.dtype), {**attributes, fill: -1}
        found = op.call(_numbers(data), *map(_on_host, others), **attributes)
        results = list(found) if op.result is not None else [found]
        rows = torch.cat(tensors) if isinstance(data, list) else data
        taken = [_taken(rows, one, value) for one in results[0]] if lists else _taken(rows, results[0], value)
        moved = [taken, *(_on_device(one, first) for one in results[1:])]
        return tuple(moved) if op.result is not None else moved[0]

    return body


def _numbers(data: Any) -> Any:
    """Return the row numbers, counted on from one tensor of a list to the next."""
    if not isinstance(data, list):
        return np.arange(len(data))
    ends = np.cumsum([len(one) for one in data]).tolist()
    return [np.arange(end - len(one), end) for one, end in zip(data, ends, strict=True)]


def _taken(rows: Tensor, numbers: Any, fill: Any) -> Tensor:
    origin = torch.from_numpy(np.ascontiguousarray(numbers)).to(rows.device)
    return take(rows, origin, origin >= 0, fill)


def _on_host(value: Any) -> Any:
    if isinstance(value, list):
        return [_on_host(one) for one in value]
    return None if value is None else value.detach().cpu().numpy()


def _on_device(value: Any, like: Tensor) -> Any:
    if isinstance(value, list):
        return [_on_device(one, like) for one in value]
    return torch.from_numpy(np.array(value)).to(like.device)


def _declare(names: Sequence[str]) -> Mapping[str, Any]:
    for name in names:
        implements(name, syncs=_SYNCS)(_planned(registry.get(name)))
    return IMPLEMENTED


_declare(_NAMES)


@implements("unpack_rows", syncs=_SYNCS)
def _unpack_rows(
    packed: Tensor, sources: Tensor, piece_lengths: Tensor, pieces: Tensor, *, num_sequences: int | None
) -> tuple[Tensor, Tensor]:
    """Unpack the numbers of the cells on the host, and gather the cells on the device."""
    if packed.is_meta:
        raise OpError("it plans on data, which meta tensors do not have")
    cells = np.arange(packed.shape[0] * packed.shape[1]).reshape(packed.shape[:2])
    host = [_on_host(one) for one in (sources, piece_lengths, pieces)]
    origin, lengths = registry.get("unpack_rows").call(cells, *host, num_sequences=num_sequences)
    return _taken(packed.flatten(0, 1), origin, 0), _on_device(lengths, packed)
