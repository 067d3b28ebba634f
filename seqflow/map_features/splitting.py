"""`features`: splits a map column into one jagged tensor for each key."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, overload

import numpy as np
import pyarrow as pa

from seqflow import kernels, registry
from seqflow.arguments import are_distinct, checked
from seqflow.errors import LodError, OpError, OpTypeError, UnknownColumnError, nearest
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.keys import checked_keys, places_of, refuse_duplicates
from seqflow.record import Record, from_arrow, take_rows
from seqflow.record.record import parents_by_name
from seqflow.torch.tensors import from_tensors, to_tensors

Names = Sequence[int] | Sequence[str] | Mapping[int, str] | Mapping[str, str]


@overload
def features(record: Record, column: str, names: Names) -> Record: ...
@overload
def features(record: Any, column: str, names: Names) -> Any: ...
@checked()
def features(record: Any, column: str, names: Annotated[Names, are_distinct, "keys, each once"]) -> Any:
    """Return the features of a map column: for each of `names`, the value in the map of each row under this key.

    A map of lists gives the tensors `name.lengths` and `name.values` of each feature, at any depth of lists;
    a row without the key has an empty list. A map of numbers gives `name`, 0 for a row without the key, and
    `name.valid`, true for a row with it. The order of a row's pairs does not matter, and other keys are left
    out. A row that has a key twice is an error.

    Args:
        record: Record, an argument of `from_arrow`, or tensors by name: a dict of arrays, or of tensors of torch
            such as a batch of `loader.to("torch")`. The result is a Record, and tensors by name for tensors.
        column: Name of the map column.
        names: Keys of the features, integers or texts, each once; a mapping has keys and the names of their
            features.

    >>> import pyarrow as pa
    >>> maps = pa.array([[(1, [10, 11]), (3, [101])], [(1, [11])]], pa.map_(pa.int64(), pa.list_(pa.int64())))
    >>> features(pa.table({"f": maps}), "f", {3: "likes", 1: "pages"})
    Record of 2 rows
      likes.lengths   int64  [2]  1, 0
        likes.values  int64  [1]  101
      pages.lengths   int64  [2]  2, 1
        pages.values  int64  [3]  10, 11, 11
    """
    if isinstance(record, Mapping) and not isinstance(record, Record):
        return _of_mapping(record, column, names)
    record = record if isinstance(record, Record) else from_arrow(record)
    asked = _asked(names)
    keys, places = _keys_and_places(record, column, list(asked))
    rows, known = kernels.lengths_to_segment_ids(record[f"{column}.lengths"]), np.flatnonzero(places >= 0)
    order, pairs_of_name = kernels.group_rows(places[known], len(asked))
    pairs = known[order]
    refuse_duplicates(keys, places, rows, pairs)
    values = _values_of_pairs(record, column, len(places))
    tensors: dict[str, Array] = {}
    parents: dict[str, str | None] = {}
    dictionaries: dict[str, Any] = {}
    ends = kernels.lengths_to_offsets(pairs_of_name).tolist()
    for i, name in enumerate(asked.values()):
        picked = pairs[ends[i] : ends[i + 1]]
        taken = take_rows(values, picked)
        tensors |= _spread(name, taken, rows[picked], record.num_rows)
        parents |= {
            _below(name, one): parent and _below(name, parent) for one, parent in taken.parents.items()
        }
        dictionaries |= {_below(name, one): found for one, found in taken.dictionaries.items()}
    parents |= {name: None for name in tensors if name not in parents}
    schema = _schema(record, column, list(asked.values()))
    return Record(tensors, parents, record.num_rows, schema, dictionaries)


def _of_mapping(given: Mapping[str, Any], column: str, names: Names) -> Any:
    """Return the features of a column in a mapping of arrays, or of tensors, by their names."""
    own = {name: one for name, one in given.items() if str(name).startswith(f"{column}.")}
    arrays = from_tensors(own)
    lengths = arrays.get(f"{column}.lengths")
    found = features(
        Record(arrays, parents_by_name(arrays), 0 if lengths is None else len(lengths)), column, names
    )
    return found if all(isinstance(one, np.ndarray) for one in own.values()) else to_tensors(found)


def _schema(record: Record, column: str, names: list[str]) -> pa.Schema | None:
    """Return a schema in which each feature has the Arrow type of the values of the map."""
    if record.schema is None or column not in record.schema.names:
        return None
    item = record.schema.field(column).type.item_type
    return pa.schema([pa.field(name, item) for name in names])


def _asked(names: Names) -> dict[Any, str]:
    """Return the names of the features by their keys; raise OpTypeError when the keys are not all integers or all
    texts.
    """
    asked = dict(names) if isinstance(names, Mapping) else {name: str(name) for name in names}
    kinds = {bool: bool, int: int, np.integer: int, str: str}
    found = {next((kinds[kind] for kind in kinds if isinstance(key, kind)), None) for key in asked}
    if found - {int} and found - {str}:
        raise OpTypeError(f"names is {names!r}, expected keys that are all integers or all texts")
    if len(set(asked.values())) < len(asked):
        raise OpError(f"names is {names!r}, which gives two features one name")
    return asked


def _keys_and_places(record: Record, column: str, asked: list[Any]) -> tuple[Array, Array]:
    """Return the keys of all pairs, and for each the index of the requested key, or -1."""
    texts = f"{column}.keys.lengths" in record
    if not texts and f"{column}.keys" not in record:
        is_list = f"{column}.values" in record and f"{column}.lengths" in record
        advice = f"\n  it is a list column, already a feature: {column}.values, {column}.lengths"
        raise UnknownColumnError(
            f"the record has no map {column!r}{nearest(column, _maps(record))}{advice if is_list else ''}"
        )
    if asked and texts != isinstance(asked[0], str):
        raise OpTypeError(
            f"names are {asked!r}, but the keys of {column} are {'texts' if texts else 'integers'}"
        )
    if not texts:
        keys: Array = record[f"{column}.keys"]
        return keys, places_of(keys, checked_keys("names", asked))
    inputs = record[f"{column}.keys.values"], record[f"{column}.keys.lengths"]
    places: Array = registry.get("match_names").call(*inputs, names=asked)
    return np.array([*asked, ""], object)[places], places


def _maps(record: Record) -> list[str]:
    found = (name.removesuffix(".lengths").removesuffix(".keys") for name in record if ".keys" in name)
    return list(dict.fromkeys(found))


def _values_of_pairs(record: Record, column: str, num_pairs: int) -> Record:
    """Return the values of a map as a record with a row for each pair; a tensor of numbers has no name there."""
    inside, rows = f"{column}.values", f"{column}.lengths"
    own = {name: _inner(name, inside) for name in record if name == inside or name.startswith(f"{inside}.")}
    tensors = {inner: record[name] for name, inner in own.items()}
    parents = {inner: own.get(record.parents[name] or "") for name, inner in own.items()}
    outside = [name for name, inner in own.items() if parents[inner] is None and record.parents[name] != rows]
    if outside:
        raise LodError(f"{outside[0]} does not hold the rows that {rows} describes, so {column} is not a map")
    dictionaries = {
        inner: record.dictionaries[name] for name, inner in own.items() if name in record.dictionaries
    }
    return Record(tensors, parents, num_pairs, None, dictionaries)


def _inner(name: str, outer: str) -> str:
    return name[len(outer) + 1 :]


def _below(name: str, inner: str) -> str:
    return f"{name}.{inner}" if inner else name


def _spread(name: str, taken: Record, rows: Array, num_rows: int) -> dict[str, Array]:
    """Return the tensors of a feature: an entry for each pair becomes one for each row, 0 for a row without a
    pair.
    """
    tensors = {}
    for inner, tensor in taken.tensors.items():
        if taken.parents[inner] is None:
            tensors[_below(name, inner)] = np.zeros((num_rows, *tensor.shape[1:]), tensor.dtype)
            tensors[_below(name, inner)][rows] = tensor
        else:
            tensors[_below(name, inner)] = tensor
    if "lengths" not in taken and "valid" not in taken:
        tensors[_below(name, "valid")] = np.isin(np.arange(num_rows), rows)
    return tensors
