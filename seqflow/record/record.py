"""Record: named tensors, and the lengths that describe the rows of each."""

from collections.abc import ItemsView, Iterator, KeysView, Mapping, ValuesView
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from seqflow.errors import UnknownColumnError, nearest
from seqflow.names_elsewhere import explains_missing
from seqflow.record.display import as_html, as_text

Tensor = np.ndarray[Any, np.dtype[Any]]


@explains_missing("Record", "tensors and columns are items: batch[{name!r}]")
@dataclass(frozen=True, slots=True, eq=False)
class Record(Mapping[str, Tensor]):
    """One batch of named tensors; a mapping from name to array.

    Every tensor t with p = parents[t] has `num_rows` rows if p is None. Otherwise p names a tensor of lengths, and t
    has `sum(tensors[p])` rows. `schema` has the Arrow types of the columns that came from Arrow, `dictionaries` the
    values of dictionary columns by the name of the tensor of codes; to_arrow uses both. `shares` names the tensors
    that have an entry for each list that rows share, not for each row.

    `len(record)` is an error, because it could count rows or tensors: use `record.num_rows` or
    `len(record.tensors)`.
    """

    tensors: Mapping[str, Tensor]
    parents: Mapping[str, str | None]
    num_rows: int
    schema: pa.Schema | None = None
    dictionaries: Mapping[str, pa.Array] = field(default_factory=dict)
    shares: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    """For each tensor with an entry for each list that rows share, such as `history.lengths`, the tensor with the
    index of each row among these lists, such as `history.row`."""
    number: int | None = None
    """Number of a loader's batch in the epoch, counted over all ranks; `batch_at` returns this batch again."""

    def __getitem__(self, name: str) -> Any:
        """Return the tensor of that name, or the Sequence of a column of lists: `batch["tokens"]` has the tensors
        `tokens.lengths` and `tokens.values`.
        """
        try:
            return self.tensors[name]
        except KeyError:
            levels, values = [], name
            while isinstance(name, str) and f"{values}.lengths" in self.tensors:
                levels.append(self.tensors[f"{values}.lengths"])
                values += ".values"
            if levels and values in self.tensors:
                from seqflow.sequence import Sequence  # it imports the ops

                return Sequence(self.tensors[values], levels)
            raise UnknownColumnError(
                f"the record has no tensor {name!r}{nearest(name, self.tensors)}; it has {', '.join(self.tensors)}"
            ) from None

    __eq__ = object.__eq__  # identity: the caller must define how tensors are compared
    __hash__ = object.__hash__

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def keys(self) -> KeysView[str]:
        return self.tensors.keys()

    def values(self) -> ValuesView[Tensor]:
        return self.tensors.values()

    def items(self) -> ItemsView[str, Tensor]:
        return self.tensors.items()

    def __len__(self) -> NoReturn:
        raise TypeError(
            "the length of a batch is ambiguous: batch.num_rows counts its rows, len(batch.tensors) its tensors"
        )

    def __bool__(self) -> NoReturn:
        raise ValueError("the truth of a batch is ambiguous: ask batch.num_rows > 0, or batch is not None")

    def __repr__(self) -> str:
        """Return a table: each tensor below the lengths that describe its rows, its dtype, shape and first values."""
        return as_text(self)

    def _repr_html_(self) -> str:
        return as_html(self)

    def depth(self, name: str) -> int:
        """Return the number of levels of lengths between the record's rows and the rows of the tensor `name`."""
        levels = 0
        parent = self.parents[name]
        while parent is not None:
            parent = self.parents[parent]
            levels += 1
        return levels


def parents_by_name(names: Mapping[str, object]) -> dict[str, str | None]:
    """Return the parent of each tensor, by its name: `c.lengths` describes the rows of `c.values…` and `c.keys…`.

    >>> parents_by_name({"c.lengths": 0, "c.values.lengths": 0, "c.values.values": 0, "x": 0})
    {'c.lengths': None, 'c.values.lengths': 'c.lengths', 'c.values.values': 'c.values.lengths', 'x': None}
    """
    return {name: _parent_by_name(name, names) for name in names}


def list_parents(name: str, levels: int) -> dict[str, str | None]:
    """Return the tensors of a column of lists, outermost lengths first and values last, each with its parent.

    >>> list_parents("c", 2)
    {'c.lengths': None, 'c.values.lengths': 'c.lengths', 'c.values.values': 'c.values.lengths'}
    """
    parents: dict[str, str | None] = {}
    parent = None
    for _ in range(levels):
        lengths = join_names(name, "lengths")
        parents[lengths] = parent
        name, parent = join_names(name, "values"), lengths
    return parents | {name: parent}


def join_names(name: str, part: str) -> str:
    """`name.part`; the part alone if the name is empty."""
    return f"{name}.{part}" if name else part


def _parent_by_name(name: str, names: Mapping[str, object]) -> str | None:
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        lengths = ".".join([*parts[:end], "lengths"])
        if parts[end] in ("values", "keys") and lengths in names:
            return lengths
    return None
