"""LoD (level of detail): the lengths of nested sequences, level by level, outermost first."""

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from seqflow.arguments import checked
from seqflow.errors import LodError
from seqflow.signature.advice import instead_of_lengths
from seqflow.signature.bind_arrays import as_array, total_of

Lengths = np.ndarray[Any, np.dtype[np.integer[Any]]]


class LoD(Sequence[Lengths]):
    """Checked, read-only lengths of every level, outermost first.

    `LoD([2, 3], [2, 1, 1, 1, 2])` is two documents, of two and three sentences; the sentences have 2, 1, 1, 1
    and 2 words. Each level describes the next: `sum(lod[k]) == len(lod[k + 1])`, and the last one describes
    `num_rows` rows of values. Integer arrays of any dtype are kept as they are, without a copy; lists become
    int64. Raises LodError for lengths that are negative, not integers, not 1-D, or that do not add up.

    Args:
        levels: Lengths of each level, outermost first: 1-D integers.

    >>> lod = LoD([2, 3], [2, 1, 1, 1, 2])
    >>> lod.num_levels, lod.num_sequences, lod.num_rows
    (2, 2, 7)
    >>> lod[1]
    array([2, 1, 1, 1, 2])
    """

    __slots__ = ("_equals", "_levels", "_outer", "num_rows")

    num_rows: int
    """Number of rows of values that the innermost level describes."""

    def __init__(self, *levels: Any) -> None:
        if not levels:
            raise LodError("LoD: no levels, expected at least one lengths tensor")
        arrays = [_read_only_lengths(k, level) for k, level in enumerate(levels)]
        totals = [_total(k, array) for k, array in enumerate(arrays)]
        for k, (total, inner) in enumerate(zip(totals, arrays[1:], strict=False)):
            if total != len(inner):
                raise LodError(
                    f"LoD: sum(lod[{k}]) is {total} but lod[{k + 1}] has {len(inner)} lengths",
                    advice=instead_of_lengths(f"lod[{k}]", arrays[k], [(f"lod[{k + 1}]", inner)]),
                )
        self._set(tuple(arrays), totals[-1])

    @classmethod
    def from_checked(cls, levels: tuple[Lengths, ...], num_rows: int) -> "LoD":
        """Return the LoD of levels that are known to be valid; they are made read-only, but not checked."""
        for level in levels:
            level.flags.writeable = False
        self = cls.__new__(cls)
        self._set(levels, num_rows)
        return self

    def _set(self, levels: tuple[Lengths, ...], num_rows: int) -> None:
        self._levels, self.num_rows = levels, num_rows
        self._outer: LoD | None = None
        self._equals = object()
        """Shared by all LoDs that were compared and found equal, so that they are compared only once."""

    @property
    def levels(self) -> tuple[Lengths, ...]:
        return self._levels

    @property
    def num_levels(self) -> int:
        return len(self._levels)

    @property
    def num_sequences(self) -> int:
        """Number of sequences of the outermost level."""
        return len(self._levels[0])

    @property
    def lengths(self) -> Lengths:
        """The innermost lengths, which describe the rows of the values."""
        return self._levels[-1]

    @checked(late=True)
    def outermost(self, num_levels: int) -> "LoD":
        """Return the LoD of the first `num_levels` levels; the same object each time.

        >>> LoD([2, 3], [2, 1, 1, 1, 2]).outermost(1)
        LoD([2, 3])
        """
        lod = self
        while lod.num_levels > max(num_levels, 1):
            if lod._outer is None:
                lod._outer = LoD.from_checked(lod._levels[:-1], len(lod._levels[-1]))
            lod = lod._outer
        return lod

    @checked(late=True)
    def difference(self, other: "LoD") -> str:
        """Return the first difference of two LoDs, in words; an empty text if they are equal.

        >>> LoD([2, 0, 1]).difference(LoD([2, 1, 0]))
        'lod[0][1] is 0 and 1'
        """
        if self == other:
            return ""
        if len(self) != len(other):
            return f"the one has {_counted(self)}, the other {_counted(other)}"
        k = next(k for k in range(len(self)) if not np.array_equal(self[k], other[k]))
        mine, theirs = self[k], other[k]
        if len(mine) != len(theirs):
            return f"lod[{k}] has {len(mine)} and {len(theirs)} lengths"
        i = int(np.flatnonzero(mine != theirs)[0])
        return f"lod[{k}][{i}] is {mine[i]} and {theirs[i]}"

    def check(self, values: Any) -> None:
        """Raise LodError when `values` does not have exactly the rows that this LoD describes."""
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
        """Return whether the lengths are equal at every level; their integer dtypes may differ."""
        if not isinstance(other, LoD):
            return NotImplemented
        if self._equals is other._equals:
            return True
        if len(self) != len(other) or self.num_rows != other.num_rows:
            return False
        if not all(map(_same, self._levels, other._levels)):
            return False
        other._equals = self._equals
        return True

    def __hash__(self) -> int:
        return hash((self.num_levels, self.num_sequences, self.num_rows))

    def __repr__(self) -> str:
        with np.printoptions(threshold=12, edgeitems=3):
            return f"LoD({', '.join(np.array2string(level, separator=', ') for level in self)})"

    def to_svg(self, theme: str = "inline") -> str:
        """Return a picture of the lengths of every level, each above the entries it counts, as SVG; long data are
        cut.

        `theme` is "light" or "dark", or "inline" for the text colour of the page; OpError is raised for other values.
        """
        from seqflow.drawing.nested import nested
        from seqflow.drawing.svg import theme_of

        return nested(self._levels, None, theme_of(theme))

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x:auto">{self.to_svg()}</div>'


def _same(mine: Lengths, theirs: Lengths) -> bool:
    return mine is theirs or np.array_equal(mine, theirs)


def _counted(lod: LoD) -> str:
    return f"{lod.num_levels} level{'s' * (lod.num_levels != 1)}"


def _read_only_lengths(k: int, level: Any) -> Lengths:
    array = as_array(f"lod[{k}]", level)
    if array.size == 0 and not isinstance(level, np.ndarray):
        array = array.astype(np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise LodError(
            f"LoD: lod[{k}] is {array.dtype} of shape {array.shape}, expected 1-D integers",
            advice=instead_of_lengths(f"lod[{k}]", array, ()),
        )
    view = array.view()
    view.flags.writeable = False
    return view


def _total(k: int, lengths: Lengths) -> int:
    try:
        return total_of(f"lod[{k}]", lengths)
    except LodError as error:
        raise error.in_op("LoD") from None
