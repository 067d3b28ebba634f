"""Columns that rows of a batch share: each of equal lists once, and the index of each row among them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow import kernels
from seqflow.errors import BatchPlanError, OpTypeError, UnknownColumnError, nearest
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.plan import BatchPlan
from seqflow.loader.plans.window_rows import Pad, Pieces, WindowRows
from seqflow.ops.shared.comparable import as_integers
from seqflow.ops.shared.slices import move_sequences, starts_of
from seqflow.record import BadRow, Record, from_arrow
from seqflow.shape import Dimension


@dataclass(frozen=True, slots=True)
class Share:
    """List columns with one index of rows, and the column whose equal values share; None compares the lists."""

    columns: tuple[str, ...]
    key: str | None

    @property
    def index(self) -> str:
        """Name of the tensor that has the index of each row."""
        return f"{self.columns[0]}.row"

    def check(self, rows: Record, pads: Mapping[str, Pad]) -> None:
        """Raise an error, before anything is read, unless prepared rows have the columns, and the key."""
        for name in self.columns:
            if name in pads:
                raise BatchPlanError(
                    f"share: pad has {name!r}, whose lists are padded for each row\n"
                    f"  pad them in net: {name}, mask = pad({name}.values, {name}.lengths)"
                )
            if _is_coded(rows, name):
                continue
            lengths = f"{name}.lengths"
            if lengths not in rows or rows.parents[lengths] is not None:
                columns = [one.removesuffix(".lengths") for one in rows if _is_lengths(rows, one)]
                what = (
                    "has one entry in each row"
                    if name in rows
                    else "is not a list column of the prepared rows"
                )
                known = f"{nearest(name, columns)}; there are {', '.join(columns) or 'none'}"
                raise UnknownColumnError(f"share: {name!r} {what}{known}")
            deep = [one for one, parent in rows.parents.items() if parent is not None and rows.depth(one) > 1]
            if any(is_under(rows, one, lengths) for one in deep):
                raise BatchPlanError(
                    f"share: {name!r} holds lists of lists, expected lists of numbers, or texts"
                )
        if self.index in rows:
            raise BatchPlanError(f"share: the records have a tensor {self.index!r}, which sharing makes")
        if self.key is not None:
            _key_tensors(rows, self.key)

    def tensors(self, record: Record, column: str) -> list[str]:
        """Return the tensors of a list column with an element for each of its lists' elements."""
        return [name for name, parent in record.parents.items() if parent == f"{column}.lengths"]


def shares_of(share: Any) -> tuple[Share, ...]:
    """Return the shared columns from the argument of a loader; raise an error when it is malformed."""
    if share is None:
        return ()
    if not isinstance(share, Mapping):
        raise OpTypeError(f"Loader: share is {share!r}, expected a mapping of columns to keys, or to None")
    found = []
    for columns, key in share.items():
        names = (columns,) if isinstance(columns, str) else columns
        if not isinstance(names, tuple) or not names or not all(isinstance(name, str) for name in names):
            raise OpTypeError(
                f"Loader: share has {columns!r}, expected the name of a column, or a tuple of names"
            )
        if key is not None and not isinstance(key, str):
            raise OpTypeError(
                f"Loader: share[{columns!r}] is {key!r}, expected the name of a column, or None"
            )
        found.append(Share(names, key))
    named = [name for one in found for name in one.columns]
    for name in named:
        if named.count(name) > 1:
            raise BatchPlanError(f"share: {name!r} is named twice")
        if any(one.key == name for one in found):
            raise BatchPlanError(f"share: {name!r} is a shared column and a key, expected one of both")
    return tuple(found)


def check_plan(plan: BatchPlan) -> None:
    """Raise BatchPlanError when the rows of batches are not rows of the source."""
    if plan.packed_capacity is not None:
        raise BatchPlanError(
            "share: the rows of Packed hold several rows of the source, which cannot be told apart by an index\n"
            "  leave out share, or use Rows or TokenBudget"
        )


def _is_coded(record: Record, column: str) -> bool:
    """Return whether a column is `dictionary<list>`: codes by row, and the lists in the dictionary."""
    return column in record.dictionaries and types.is_nested(record.dictionaries[column].type)


def _is_lengths(record: Record, name: str) -> bool:
    return name.endswith(".lengths") and record.parents[name] is None


def is_under(record: Record, name: str, lengths: str) -> bool:
    parent = record.parents[name]
    return parent is not None and (parent == lengths or is_under(record, parent, lengths))


def _key_tensors(record: Record, key: str) -> tuple[str, ...]:
    """Return the tensors of a key, one of numbers or two of texts; raise an error when there are none."""
    if key in record and record.parents[key] is None and record[key].ndim == 1:
        return (key,)
    lengths = f"{key}.lengths"
    under = [name for name, parent in record.parents.items() if parent == lengths]
    is_list = lengths in record and record.parents[lengths] is None and under == [f"{key}.values"]
    if is_list and record[under[0]].dtype == np.uint8:
        return (under[0], lengths)
    columns = [name.removesuffix(".lengths") for name, parent in record.parents.items() if parent is None]
    raise UnknownColumnError(
        f"share: the key {key!r} is not a column of numbers or texts of the prepared rows{nearest(key, columns)}; "
        f"there are {', '.join(columns)}"
    )


def differing_rows(rows: WindowRows, shares: Sequence[Share]) -> list[BadRow]:
    """Return the rows of a window whose lists differ from those of an earlier row with the same key; those with a
    null key, if there are any.

    Rows are counted over the records in turn, as those of a plan.
    """
    found: dict[int, BadRow] = {}
    for share in shares:
        if share.key is None or not rows.num_rows:
            continue
        record, numbers = rows.records[0], rows.numbers(slice(None))
        if f"{share.key}.valid" in record and not (valid := rows.tensor(f"{share.key}.valid")).all():
            nulls = numbers[~valid].tolist()
            return [BadRow(number, share.key, "is null, and rows with a key share lists") for number in nulls]
        keys = _codes_of_key(record, share.key, rows.tensor, lambda *names: _column_of(rows, *names))
        for column in share.columns:
            for values, sizes in parts_of_window(rows, share, column):
                for number in numbers[kernels.distinct_sequences(values, sizes, keys)[2]].tolist():
                    reason = f"differs from that of an earlier row with the same {share.key}"
                    found.setdefault(number, BadRow(number, column, reason))
    return [found[row] for row in sorted(found)]


def parts_of_window(rows: WindowRows, share: Share, column: str) -> list[tuple[Array, Array]]:
    """Return values and lengths, in the order of a window, of the tensors by which the lists of a column differ."""
    record, ones = rows.records[0], np.ones(rows.num_rows, np.int64)
    parts = [(rows.tensor(f"{column}.valid"), ones)] if f"{column}.valid" in record else []
    if _is_coded(record, column):
        return [*parts, (_same_lists(rows.source.dictionaries[column], rows.tensor(column)), ones)]
    names = share.tensors(record, column)
    return [*parts, *(_column_of(rows, name, f"{column}.lengths") for name in names)]


def _column_of(rows: WindowRows, values: str, lengths: str) -> tuple[Array, Array]:
    """Return the elements of a list column, in the order of a window, and the lengths of the lists."""
    sizes = rows.sizes(lengths)
    whole = Pieces(np.arange(rows.num_rows), np.zeros_like(sizes), sizes)
    return kernels.gather_slices(rows.source.chunks[values], *rows.ranges(lengths, whole)), sizes


def _same_lists(dictionary: pa.Array, codes: Array) -> Array:
    """Return codes of which equal ones stand for equal lists: a dictionary may hold a list twice."""
    lists = from_arrow(pa.table({"x": dictionary}), fill={"x": []})
    of_lists = np.append(stacked([(lists["x.values"], lists["x.lengths"])])[1], -1)
    return of_lists[np.where((codes < 0) | (codes >= len(dictionary)), -1, codes)]


def _codes_of_key(
    record: Record,
    key: str,
    tensor: Callable[[str], Array],
    texts: Callable[[str, str], tuple[Array, Array]],
) -> Array:
    """Return int64 numbers of keys, the same for equal ones; a null is a key like others."""
    names = _key_tensors(record, key)
    if len(names) == 2:
        keys: Array = kernels.distinct_sequences(*texts(names[0], names[1]), None)[1]
    else:
        keys = as_integers(tensor(key))
    if f"{key}.valid" not in record:
        return keys
    valid = tensor(f"{key}.valid")
    ones = np.ones(len(keys), np.int64)
    return kernels.distinct_sequences(np.stack([np.where(valid, keys, 0), valid], axis=1), ones, None)[1]


def stacked(parts: Sequence[tuple[Array, Array]], keys: Array | None = None) -> tuple[Array, Array]:
    """Return `first` and `row` of rows that are equal in all parts, and have the same key."""
    codes = [] if keys is None else [keys]
    if len(parts) == 1 and keys is None:
        return kernels.distinct_sequences(*parts[0], None)[:2]
    codes += [kernels.distinct_sequences(*part, None)[1] for part in parts]
    return kernels.distinct_sequences(np.stack(codes, axis=1), np.ones(len(codes[0]), np.int64), None)[:2]


def shared(record: Record, shares: Sequence[Share]) -> Record:
    """Return a batch in which each of equal lists is there once, in order of first appearance."""
    for share in shares:
        record = _share(record, share)
    return record


def _share(record: Record, share: Share) -> Record:
    ones = np.ones(record.num_rows, np.int64)
    parts = [(record[f"{name}.valid"], ones) for name in share.columns if f"{name}.valid" in record]
    for column in share.columns:
        if _is_coded(record, column):
            parts.append((record[column], ones))
        else:
            parts += [(record[name], record[f"{column}.lengths"]) for name in share.tensors(record, column)]
    if share.key is None:
        first, row = stacked(parts)
    else:
        keys = _codes_of_key(
            record, share.key, record.__getitem__, lambda *names: (record[names[0]], record[names[1]])
        )
        found = [kernels.distinct_sequences(*part, keys) for part in parts]
        first, row, _ = found[0]
        # rows of two windows may differ in spite of their key: they are never merged
        if any(len(differing) for *_, differing in found):
            first, row = stacked(parts, keys)
    tensors, parents = dict(record.tensors), dict(record.parents)
    dictionaries = dict(record.dictionaries)
    index: dict[str, str] = {}
    for column in share.columns:
        lengths = f"{column}.lengths"
        if _is_coded(record, column):
            lists = _lists_of(dictionaries.pop(column), record[column][first], column)
            tensors = _replaced(tensors, column, lists.tensors)
            del parents[column]
            parents |= lists.parents
        elif len(first) < record.num_rows:
            sizes = np.asarray(record[lengths], np.int64)
            taken, starts = sizes[first], starts_of(sizes)[first]
            tensors |= {
                name: move_sequences(record[name], starts, taken) for name in share.tensors(record, column)
            }
            tensors[lengths] = taken
        valid = f"{column}.valid"
        if valid in record:
            tensors[valid] = record[valid][first]
        index |= dict.fromkeys([lengths, *([valid] if valid in record else [])], share.index)
    tensors[share.index], parents[share.index] = row, None
    return replace(
        record, tensors=tensors, parents=parents, dictionaries=dictionaries, shares={**record.shares, **index}
    )


def lists_of(index: str, most_rows: int | None) -> Dimension:
    """Return the number of lists that rows share by an index: at most that of the rows of a batch."""
    return Dimension.axis_of(f"{index.removesuffix('.row')}.lengths", 0, 0, most_rows)


def _lists_of(dictionary: pa.Array, codes: Array, column: str) -> Record:
    """Return the lists of some codes as tensors of a column; a code outside the dictionary, of a null, is empty."""
    outside = (codes < 0) | (codes >= len(dictionary))
    taken = dictionary.take(pa.array(np.where(outside, 0, codes), mask=outside))
    found: Record = from_arrow(pa.table({column: taken}), fill={column: []})
    return found


def _replaced(tensors: Mapping[str, Array], name: str, by: Mapping[str, Array]) -> dict[str, Array]:
    """Return the tensors, in their order, with others in place of one."""
    found: dict[str, Array] = {}
    for one, tensor in tensors.items():
        found |= by if one == name else {one: tensor}
    return found
