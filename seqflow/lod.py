"""LoD, the level of detail: the lengths of every level, outermost first."""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from seqflow import kernels
from seqflow.errors import LodError
from seqflow.signature.arrays import as_array

Lengths = np.ndarray[Any, np.dtype[np.integer[Any]]]


class LoD(Sequence[Lengths]):
    """Checked, read-only lengths of every level, outermost first.

    `LoD([2, 3], [2, 1, 1, 1, 2])` is two documents, of two and three sentences; the sentences have 2, 1, 1, 1
    and 2 words. Each level describes the next: `sum(lod[k]) == len(lod[k + 1])`, and the last one describes
    `num_rows` rows of values. Integer arrays of any dtype are kept as they are, without a copy; lists become
    int64. Raises LodError for lengths that are negative, not integers, not 1-D, or that do not add up.

    >>> lod = LoD([2, 3], [2, 1, 1, 1, 2])
    >>> lod.num_levels, lod.num_sequences, lod.num_rows
    (2, 2, 7)
    >>> lod[1]
    array([2, 1, 1, 1, 2])
    """

    __slots__ = ("_levels", "num_rows")

    num_rows: int
    """How many rows of values the innermost level describes."""

    def __init__(self, *levels: Any) -> None:
        if not levels:
            raise LodError("LoD: no levels, expected at least one lengths tensor")
        arrays = [_read_only_lengths(k, level) for k, level in enumerate(levels)]
        totals = [_total(k, array) for k, array in enumerate(arrays)]
        for k, (total, inner) in enumerate(zip(totals, arrays[1:], strict=False)):
            if total != len(inner):
                raise LodError(f"LoD: sum(lod[{k}]) is {total} but lod[{k + 1}] has {len(inner)} lengths")
        self._levels = tuple(arrays)
        self.num_rows = totals[-1]

    @property
    def levels(self) -> tuple[Lengths, ...]:
        return self._levels

    @property
    def num_levels(self) -> int:
        return len(self._levels)

    @property
    def num_sequences(self) -> int:
        """How many sequences the outermost level has."""
        return len(self._levels[0])

    @property
    def lengths(self) -> Lengths:
        """The innermost lengths, which describe the rows of the values."""
        return self._levels[-1]

    def check(self, values: Any) -> None:
        """LodError unless `values` has exactly the rows this LoD describes."""
        rows = np.shape(values)[0] if np.ndim(values) else 0
        if rows != self.num_rows:
            raise LodError(f"LoD: describes {self.num_rows} rows but values has {rows}")

    @overload
    def __getitem__(self, level: int) -> Lengths: ...
    @overload
    def __getitem__(self, level: slice) -> tuple[Lengths, ...]: ...
    def __getitem__(self, level: int | slice) -> Lengths | tuple[Lengths, ...]:
        return self._levels[level]

    def __len__(self) -> int:
        return len(self._levels)

    def __iter__(self) -> Iterator[Lengths]:
        return iter(self._levels)

    def __eq__(self, other: object) -> bool:
        """Equal lengths at every level, whatever their integer dtypes."""
        if not isinstance(other, LoD):
            return NotImplemented
        return len(self) == len(other) and all(
            mine is theirs or np.array_equal(mine, theirs) for mine, theirs in zip(self, other, strict=True)
        )

    def __hash__(self) -> int:
        return hash((self.num_levels, self.num_sequences, self.num_rows))

    def __repr__(self) -> str:
        with np.printoptions(threshold=12, edgeitems=3):
            return f"LoD({', '.join(np.array2string(level, separator=', ') for level in self)})"


def _read_only_lengths(k: int, level: Any) -> Lengths:
    array = as_array(f"lod[{k}]", level)
    if array.size == 0 and not isinstance(level, np.ndarray):
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise LodError(f"LoD: lod[{k}] is {array.dtype} of shape {array.shape}, expected 1-D integers")
    view = array.view()
    view.flags.writeable = False
    return view


def _total(k: int, lengths: Lengths) -> int:
    try:
        return kernels.check_lengths(lengths)
    except kernels.KernelError as error:
        raise LodError(f"LoD: {str(error).replace('lengths', f'lod[{k}]', 1)}") from None
