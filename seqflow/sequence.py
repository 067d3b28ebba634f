"""Sequence: flat values with their LoD, the lengths of every level."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, TypeVar, overload

import numpy as np

from seqflow import kernels, registry
from seqflow.arguments import DtypeLike, checked
from seqflow.errors import LodError, OpError, OpTypeError, SeqflowError
from seqflow.kernels.arrays import Array
from seqflow.kernels.exact import converted
from seqflow.lod import Lengths, LoD
from seqflow.lod_propagation import Lifted
from seqflow.lod_propagation.arithmetic import name_of_operator, name_of_ufunc
from seqflow.lod_propagation.tensors import is_tensor, picked
from seqflow.names_elsewhere import explains_missing
from seqflow.registry import OpDef
from seqflow.signature.advice import instead_of_lengths
from seqflow.signature.bind_arrays import as_array

if TYPE_CHECKING:
    from numpy.lib.mixins import NDArrayOperatorsMixin as _Operators
else:
    _Operators = object

C = TypeVar("C", bound=type)


_ARITHMETIC = {
    "+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow",
    "&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift",
}  # fmt: skip
_COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}


def _with_operators(cls: C) -> C:
    """Add the methods of Python's binary operators, which call the functions of these symbols.

    NumPy's mixin only declares them for type checkers. Its methods would compute `s += 1` in place, which fails, and
    would refuse operands of other libraries that can compute with a Sequence.
    """

    def operator(symbol: str, swapped: bool) -> Callable[[Any, Any], Any]:
        if swapped:
            return lambda self, other: _operate(symbol, other, self)
        return lambda self, other: _operate(symbol, self, other)

    for symbol, name in (_ARITHMETIC | _COMPARISONS).items():
        setattr(cls, f"__{name}__", operator(symbol, swapped=False))
    for symbol, name in _ARITHMETIC.items():
        setattr(cls, f"__r{name}__", operator(symbol, swapped=True))
    return cls


@explains_missing("Sequence", "ops on Sequences are functions of seqflow.auto")
@_with_operators
class Sequence(_Operators):
    """Flat values and their LoD, checked once to fit.

    Values may be a tensor of torch: ops then run on it, with gradients, and give Sequences of tensors. The
    values are not copied; the lengths are read-only. Raises LodError when they do not fit.

    Args:
        values: Rows of all sequences, one after another, `[N, *d]`: array, list, or tensor of torch.
        lod: A LoD, the lengths alone where there is one level, or a list of the lengths of each level,
            outermost first.

    >>> words = Sequence([1, 2, 3, 4], [3, 0, 1])
    >>> words
    Sequence of 3 sequences, 4 rows, int64
      [1, 2, 3]
      []
      [4]
    >>> words.lengths, len(words), words[0]
    (array([3, 0, 1]), 3, array([1, 2, 3]))

    As with a NumPy array `s[i]` is an element, a view of its values: the array of a sequence, or with several
    levels a Sequence. Slices, lists of indices and masks of the outermost level give a Sequence.

    Arithmetic works row by row through the functions of the expression language: `words * 2`, `words ==
    other`, `-words`, `np.sqrt(words)`; the result has the same LoD, and two Sequences must have equal ones.
    `np.asarray` and other NumPy functions refuse a Sequence, since they would lose its lengths: pass
    `words.values`. For every op see `seqflow.auto`. Iteration goes by sequence, so use `values, *lengths =
    words.unpack()` to get the values and the lengths of every level.
    """

    __slots__ = ("__weakref__", "_holds_lengths", "_lod", "_offsets", "_values")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: Any, lod: Any) -> None:
        array = values if is_tensor(values) else as_array("values", values)
        if array.ndim == 0:
            raise LodError(
                f"Sequence: values is a number ({array}), expected rows for the lengths to describe"
            )
        levels = _as_lod(lod)
        if len(array) != levels.num_rows:
            raise LodError(
                f"Sequence: the lengths describe {levels.num_rows} rows but values has {len(array)}",
                advice=instead_of_lengths("lengths", levels.lengths, [("values", array)]),
            )
        self._set(array, levels, False)

    @classmethod
    def from_checked(cls, values: Array, lod: LoD, holds_lengths: bool = False) -> Sequence:
        """Return the Sequence of values and a LoD that are known to fit."""
        self = cls.__new__(cls)
        self._set(values, lod, holds_lengths)
        return self

    def _set(self, values: Array, lod: LoD, holds_lengths: bool) -> None:
        self._values, self._lod, self._holds_lengths = values, lod, holds_lengths
        self._offsets: list[Array] | None = None

    @classmethod
    @checked(late=True)
    def from_lists(cls, lists: Iterable[Any], dtype: DtypeLike = None, levels: int | None = None) -> Sequence:
        """Return the Sequence of nested lists; with `levels`, that many levels of lists, and rows below.

        An array among the lists is a sequence of the innermost level; the values have the dtype that all of them
        share. Raises LodError when lists nest to different depths, OpError when a value does not fit the dtype.

        >>> Sequence.from_lists([[[1, 2], [3]], []]).lod
        LoD([2, 0], [2, 1])
        """
        found: list[list[int]] = []
        items = list(lists)
        while len(found) != levels and all(isinstance(item, (list, tuple)) for item in items):
            if found and not items:
                break
            found.append([len(item) for item in items])
            items = list(chain.from_iterable(items))
        if levels in (None, len(found) + 1) and items and all(map(_is_list, items)):  # arrays are among them
            found.append([len(item) for item in items])
            values = _joined(items)
        else:
            if len(found) != levels and items:
                _refuse_uneven(items, len(found), levels)
            values = _values_of(items, dtype)
        return cls(values if dtype is None else _exactly(values, dtype, "from_lists: values"), LoD(*found))

    def to_lists(self) -> list[Any]:
        """Return nested Python lists, one for each sequence of each level.

        >>> Sequence([1, 2, 3], [2, 0, 1]).to_lists()
        [[1, 2], [], [3]]
        """
        items: list[Any] = self._values.tolist()
        for lengths in reversed(self._lod.levels):
            ends = np.cumsum(lengths, dtype=np.int64).tolist()
            items = [items[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        return items

    to_list = tolist = to_lists

    def unpack(self) -> tuple[Array, ...]:
        """Return the values, then the lengths of each level, outermost first.

        >>> values, sentences, words = Sequence([7, 8, 9], [[2], [1, 2]]).unpack()
        >>> values, sentences, words
        (array([7, 8, 9]), array([2]), array([1, 2]))
        """
        return (self._values, *self._lod)

    @property
    def values(self) -> Array:
        """The rows of all sequences, one after another."""
        return self._values

    @property
    def lod(self) -> LoD:
        return self._lod

    @property
    def lengths(self) -> Lengths:
        """The innermost lengths, which describe the rows of the values."""
        return self._lod.lengths

    @property
    def offsets(self) -> Array:
        """The start of each innermost sequence, then the number of rows: int64."""
        return kernels.lengths_to_offsets(self.lengths)

    @property
    def num_levels(self) -> int:
        return self._lod.num_levels

    @property
    def holds_lengths(self) -> bool:
        """Whether the values are lengths themselves, as declared by the op that returned them.

        As a lengths input of an op, such a Sequence means its values; any other Sequence means its lengths.
        """
        return self._holds_lengths

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the values."""
        dtype: np.dtype[Any] = self._values.dtype
        return dtype

    def __len__(self) -> int:
        """Return the number of sequences of the outermost level."""
        return self._lod.num_sequences

    def __bool__(self) -> NoReturn:
        raise ValueError("the truth of a Sequence is ambiguous: ask len(sequence), or sequence.values.any()")

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, index: SupportsIndex) -> Any: ...
    @overload
    def __getitem__(self, index: Any) -> Sequence | Any: ...
    def __getitem__(self, index: Any) -> Any:
        """Return one outermost element, or the Sequence of several."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return self._between(start, max(start, stop))
            return self._picked(np.arange(start, stop, step))
        if isinstance(index, (list, np.ndarray)) and np.ndim(index) == 1:
            return self._picked(_positions(np.asarray(index), len(self)))
        try:
            position = int(index.__index__())
        except (AttributeError, TypeError):
            raise TypeError(
                f"a Sequence is indexed by an integer, a slice, or a list of indices or bools, not by {index!r}"
            ) from None
        if not -len(self) <= position < len(self):
            raise IndexError(f"sequence {position} is outside [{-len(self)}, {len(self)})")
        return self._element(position % len(self))

    def _element(self, i: int) -> Any:
        inner = self._between(i, i + 1)
        if inner.num_levels == 1:
            return inner.values
        return Sequence.from_checked(inner.values, LoD.from_checked(inner.lod[1:], inner.lod.num_rows))

    def _between(self, start: int, stop: int) -> Sequence:
        """Return the outermost elements from `start` to before `stop`, as views."""
        levels = []
        for lengths, offsets in zip(self._lod, self._all_offsets(), strict=True):
            levels.append(lengths[start:stop])
            start, stop = int(offsets[start]), int(offsets[stop])
        return Sequence.from_checked(
            self._values[start:stop], LoD.from_checked(tuple(levels), stop - start), self._holds_lengths
        )

    def _picked(self, positions: Array) -> Sequence:
        """Return the outermost elements at these positions, copied."""
        starts, sizes = positions.astype(np.int64, copy=False), np.ones(len(positions), np.int64)
        levels = []
        for lengths, offsets in zip(self._lod, self._all_offsets(), strict=True):
            levels.append(_slices(lengths, starts, sizes))
            ends = offsets[starts + sizes]
            starts = offsets[starts]
            sizes = ends - starts
        values = _slices(self._values, starts, sizes)
        return Sequence.from_checked(
            values, LoD.from_checked(tuple(levels), len(values)), self._holds_lengths
        )

    def _all_offsets(self) -> list[Array]:
        """Start of each element of each level, computed at first use."""
        if self._offsets is None:
            self._offsets = [kernels.lengths_to_offsets(lengths) for lengths in self._lod]
        return self._offsets

    def sum(self) -> Any:
        """Return the sum of each innermost sequence, as `auto.lengths_sum`; 0 for an empty one."""
        return lifted("lengths_sum")(self)

    def mean(self) -> Any:
        """Return the mean of each innermost sequence, as `auto.lengths_mean`; 0 for an empty one."""
        return lifted("lengths_mean")(self)

    def pad(self, **attributes: Any) -> Any:
        """Return the innermost sequences padded, and the mask, as `auto.pad`, with its attributes.

        >>> Sequence([1, 2, 3], [2, 1]).pad(fill=-1).padded
        array([[ 1,  2],
               [ 3, -1]])
        """
        return lifted("pad")(self, **attributes)

    # NumPy's protocols

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        self.__array_function__(np.asarray)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
        return lifted(name_of_ufunc(ufunc, method, options))(*operands)

    def __array_function__(self, function: Any, *_: Any) -> NoReturn:
        raise OpTypeError(
            f"np.{function.__name__} does not take a Sequence: its lengths would be lost\n"
            "  pass sequence.values, or use an op of seqflow.auto"
        )

    # Display

    def __repr__(self) -> str:
        from seqflow.display import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from seqflow.display import as_html

        return as_html(self)

    def to_svg(self, theme: str = "inline") -> str:
        """Return a picture of the values below the lengths of every level, as SVG; long data are cut.

        `theme` is "light" or "dark", or "inline" for the text colour of the page; OpError is raised for other values.

        >>> Sequence(["to", "be", "or"], [2, 0, 1]).to_svg()[:4]
        '<svg'
        """
        from seqflow.display import as_svg

        return as_svg(self, theme)

    # Arithmetic: `_with_operators` adds the operators on two operands

    def __neg__(self) -> Sequence:
        return _operate("-", self)

    def __pos__(self) -> Sequence:
        return self

    def __invert__(self) -> Sequence:
        return _operate("~", self)

    def __abs__(self) -> Sequence:
        result: Sequence = lifted("abs")(self)
        return result


def lifted(name: str) -> Callable[..., Any]:
    """Return the op of that name for Sequences; raise UnknownOpError when there is none."""
    return _lifted(registry.get(name))


@cache
def _lifted(op: OpDef) -> Lifted:
    return Lifted(op, Sequence)


def _operate(symbol: str, *operands: Any) -> Sequence:
    """Return the result of an operator; NotImplemented for operands that are not numbers."""
    numbers = all(isinstance(one, _OPERANDS) or is_tensor(one) for one in operands)
    result: Sequence = _operator(symbol, len(operands))(*operands) if numbers else NotImplemented
    return result


_OPERANDS = (Sequence, LoD, bool, int, float, list, np.ndarray, np.generic)


@cache
def _operator(symbol: str, arity: int) -> Callable[..., Any]:
    return lifted(name_of_operator(symbol, arity))


def _as_lod(lod: Any) -> LoD:
    if isinstance(lod, LoD):
        return lod
    if isinstance(lod, (list, tuple)) and any(np.ndim(level) for level in lod):
        return LoD(*lod)
    return LoD(lod)


def _positions(index: Array, count: int) -> Array:
    """Return a list of indices, or a mask, as positions from the front."""
    if index.dtype == np.bool_:
        if len(index) != count:
            raise IndexError(f"the mask has {len(index)} entries for {count} sequences")
        return np.flatnonzero(index)
    if len(index) and index.dtype.kind not in "iu":
        raise TypeError(f"a Sequence is indexed by integers or bools, not by {index.dtype}")
    index = index.astype(np.int64)
    bad = np.flatnonzero((index < -count) | (index >= count))
    if len(bad):
        raise IndexError(f"index [{bad[0]}] = {index[bad[0]]} is outside [{-count}, {count})")
    return np.where(index < 0, index + count, index)


def _slices(rows: Array, starts: Array, sizes: Array) -> Array:
    offsets = kernels.lengths_to_offsets(sizes)
    if is_tensor(rows):
        places: Array = np.arange(int(offsets[-1])) + kernels.expand(starts - offsets[:-1], sizes)
        found: Array = picked(rows, places)
        return found
    moved = np.empty((int(offsets[-1]), *rows.shape[1:]), rows.dtype)
    kernels.move_slices(rows, starts, sizes, moved, offsets[:-1])
    return moved


def _values_of(items: list[Any], dtype: Any) -> Array:
    """Return Python values as rows. NumPy converts texts and Python's times only if a dtype of times is given."""
    if not items or (dtype is not None and (kind := np.dtype(dtype).kind) in "mM"):
        return np.array(items, dtype if not items else f"{kind}8")
    return as_array("values", items)


def _joined(items: list[Any]) -> Array:
    """Return the rows of arrays, and of lists among them, in their common dtype."""
    arrays = [as_array(f"lists[{i}]", item) for i, item in enumerate(items)]
    typed = [array.dtype for array, item in zip(arrays, items, strict=True) if len(item) or array is item]
    try:
        dtype = np.result_type(*typed) if typed else np.dtype(np.float64)
        return np.concatenate(
            [_exactly(array, dtype, f"from_lists: lists[{i}]") for i, array in enumerate(arrays)]
        )
    except (TypeError, ValueError) as error:
        if isinstance(error, SeqflowError):
            raise
        raise LodError(f"from_lists: the arrays do not fit together: {error}") from None


def _exactly(values: Array, dtype: Any, name: str) -> Array:
    """Return the values in a dtype; raise OpError when a value does not fit it."""
    made, wrong = converted(values, dtype)
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0].tolist())
        place = f"{name}[{', '.join(map(str, at))}]"
        raise OpError(f"{place} is {values[at].item()!r}, which is not a value of {made.dtype}")
    return made


def _refuse_uneven(items: list[Any], depth: int, levels: int | None) -> None:
    """Raise LodError when lists nest less deeply than requested, or to different depths."""
    nested = list(map(_is_list, items))
    if levels is not None:
        raise LodError(f"from_lists: the lists nest {depth} deep, expected {levels} levels")
    if any(nested):
        i = nested.index(not nested[0])
        raise LodError(
            f"from_lists: at depth {depth + 1}, item 0 is {_kind(items[0])} but item {i} is {_kind(items[i])}"
        )
    if depth == 0:
        raise LodError("from_lists: no lists in the list, expected one for each sequence")


def _is_list(item: Any) -> bool:
    return isinstance(item, (list, tuple)) or (isinstance(item, np.ndarray) and item.ndim > 0)


def _kind(item: Any) -> str:
    return "a list" if _is_list(item) else f"{item!r}"
