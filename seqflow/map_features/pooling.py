"""`pool_features`: pools embedding rows for many features at once."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np

from seqflow import registry
from seqflow.arguments import are_distinct, checked
from seqflow.errors import LodError, OpError, UnknownColumnError, nearest
from seqflow.kernels.arrays import Array
from seqflow.record import Record
from seqflow.registry import OpDef


@checked()
def pool_features(
    tables: Mapping[str, Any] | Array,
    record: Mapping[str, Any],
    names: Annotated[Sequence[str], are_distinct, "features, each once"],
    reduce: str = "sum",
    *,
    weights: Mapping[str, Any] | None = None,
    ignore_index: int | None = None,
    **attributes: Any,
) -> Record:
    """Pool many features of a record in one call: for each of `names`, a pooled row of its table for each row.

    Args:
        tables: Table of each feature by name, or one for all, [R, D]; not copied.
        record: Tensors `name.lengths` and `name.values` of each feature, as `features` returns them.
        names: Features, each once.
        reduce: End of the name of an op after `sparse_lengths_`: "sum", "mean", "weighted_sum" and so on.
        weights: Weights of each feature, if the op takes them: an array, or the name of a tensor of the
            record.
        ignore_index: Id that is skipped, for example -1. With it, null ids of a record with masks
            (`from_arrow(…, valid=True)`) are skipped as well; without it, they are an error.
        attributes: Other attributes of the op.

    >>> import pyarrow as pa
    >>> maps = pa.array([[("a", [0, 2])], [("a", [1]), ("b", [1])]], pa.map_(pa.string(), pa.list_(pa.int64())))
    >>> from seqflow import features
    >>> record = features(pa.table({"f": maps}), "f", ["a", "b"])
    >>> pooled = pool_features(np.array([1.0, 10.0, 100.0]), record, ["a", "b"])
    >>> pooled["a"], pooled["b"]
    (array([101.,  10.]), array([ 0., 10.]))
    """
    op = _pooling_op(reduce)
    if ignore_index is not None:
        attributes["ignore_index"] = ignore_index
    pooled: dict[str, Array] = {}
    for name in names:
        inputs = {
            "table": _given(name, "table", tables),
            "indices": _ids(record, name, ignore_index),
            "lengths": record[f"{name}.lengths"],
        }
        if any(argument.name == "weights" for argument in op.signature.input_arguments):
            inputs["weights"] = _weights(name, record, weights)
        try:
            pooled[name] = op.call(**inputs, **attributes)
        except OpError as error:
            error.add_note(f"in pool_features, for the feature {name!r}")
            raise
    rows = {name: len(one) for name, one in pooled.items()}
    if len(set(rows.values())) > 1:
        raise LodError(f"pool_features: the features have {rows} rows, expected as many of each")
    return Record(pooled, dict.fromkeys(pooled), next(iter(rows.values()), 0))


def _pooling_op(reduce: str) -> OpDef:
    prefix = "sparse_lengths_"
    known = [name.removeprefix(prefix) for name in registry.names() if name.startswith(prefix)]
    if reduce not in known:
        raise OpError(f"reduce is {reduce!r}{nearest(reduce, known)}, expected one of {', '.join(known)}")
    return registry.get(prefix + reduce)


def _given(name: str, what: str, given: Any) -> Any:
    """Return the entry of a mapping for a feature; a value that is not a mapping is for all features."""
    if not isinstance(given, Mapping):
        return given
    if name not in given:
        raise OpError(f"there is no {what} for the feature {name!r}{nearest(name, given)}")
    return given[name]


def _weights(name: str, record: Mapping[str, Any], weights: Mapping[str, Any] | None) -> Any:
    if weights is None:
        raise OpError("weights are missing, expected an array or a tensor's name for each feature")
    found = _given(name, "weights", weights)
    return record[found] if isinstance(found, str) else found


def _ids(record: Mapping[str, Any], name: str, ignore_index: int | None) -> Array:
    """Return the ids of a feature; null ids are replaced by `ignore_index`."""
    if f"{name}.values" not in record:
        raise UnknownColumnError(
            f"the record has no tensor {name + '.values'!r}{nearest(f'{name}.values', record)}"
        )
    ids: Array = record[f"{name}.values"]
    masked = f"{name}.values.valid"
    if masked not in record or record[masked].all():
        return ids
    if ignore_index is None:
        place = int(np.argmin(record[masked]))
        raise OpError(f"{name}.values[{place}] is null, expected an id\n  ignore_index=-1 skips such ids")
    return np.where(record[masked], ids.astype(np.int64), ignore_index)
