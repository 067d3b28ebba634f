"""Totals: what all batches of a training step hold together, counted from what they are planned on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from seqflow import kernels
from seqflow.errors import BatchPlanError, ExpressionError, OpTypeError, nearest
from seqflow.expression import Expression
from seqflow.expression.functions import truth
from seqflow.expression.parser import Call, postorder
from seqflow.kernels.arrays import Array, sum_dtype
from seqflow.loader.plans.dealing import Span
from seqflow.loader.plans.selection import Pieces
from seqflow.loader.plans.window_rows import WindowRows
from seqflow.record import Record
from seqflow.record.row_source import RowSource


class Totals:
    """For each name an expression over the elements of a list column, or over columns with a number a row.

    `{"trained": "labels.values != -100", "tokens": "tokens.lengths"}` counts trained labels, and adds up lengths. Of
    a row that is cut into pieces each batch counts its own elements; a number a row counts once a piece.
    """

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = dict(texts)
        self._expressions = {name: Expression(text) for name, text in self.texts.items()}
        self._elements: WeakKeyDictionary[RowSource, dict[str, Array]] = WeakKeyDictionary()
        """For the rows of a window the number of each element, by name."""

    def __reduce__(self) -> tuple[type[Totals], tuple[dict[str, str]]]:
        """Another process has rows of its own."""
        return Totals, (self.texts,)

    def check(self, record: Record, pads: Collection[str] = ()) -> None:
        """BatchPlanError for an expression that is not one number an element or row of records like this one."""
        for name, expression in self._expressions.items():
            for one in expression.inputs:
                if one not in record:
                    raise BatchPlanError(
                        f"totals: {name} names {one!r}, which the records have not{nearest(one, record)}\n"
                        f"  they have {', '.join(record)}"
                    )
                if one.removesuffix(".values").removesuffix(".lengths") in pads:
                    raise BatchPlanError(
                        f"totals: {name} names {one!r}, a column that the loader pads, and may cut\n"
                        "  pad it in net= instead, or truncate it in prepare="
                    )
            levels = {one: record.parents[one] for one in expression.inputs}
            if len({*levels.values()}) != 1:
                found = ", ".join(f"{one} under {lengths or 'the rows'}" for one, lengths in levels.items())
                raise BatchPlanError(
                    f"totals: {name} has {found or 'no tensor'}, expected tensors with an entry for each element of "
                    "one column, or for each row"
                )
            made = self._values(name, {one: record[one][:0] for one in expression.inputs})
            if made.ndim != 1 or made.dtype.kind not in "biuf":
                raise BatchPlanError(
                    f"totals: {name} is {made.dtype} with {made.ndim} axes, expected one number an element or row"
                )

    def of(self, span: Span, without: Counter[str], *, of_rows: bool) -> dict[str, Array]:
        """int64, uint64 or float64: for each name the total of each batch, or of each of its rows in turn.

        Python's integers where 64 bits may not hold a sum.

        Rows, or pieces of them, whose total is 0 are counted in `without`.
        """
        batches, pieces, counts = span.batches, span.pieces, span.piece_counts
        if not of_rows:
            counts = kernels.segment_reduce("sum", counts, span.row_counts)
        cut, found = batches.cut, {}
        firsts = {one.tensor: one.first_fill for one in batches.columns if one.first_fill is not None}
        for name in self._expressions:
            of_pieces = self._of_pieces(name, batches.rows, pieces, cut, firsts)
            without[name] += len(of_pieces) - int(np.count_nonzero(of_pieces))
            found[name] = _sums(of_pieces, counts)
        return found

    def _of_pieces(
        self,
        name: str,
        rows: WindowRows,
        pieces: Pieces,
        cut: Collection[str],
        firsts: Mapping[str, Any],
    ) -> Array:
        """The total of each piece, whose first elements may become others."""
        expression, source = self._expressions[name], rows.source
        lengths = source.parents[expression.inputs[0]]
        if lengths is None:
            values = {
                one: pieces.sizes if one in cut else rows.tensor(one)[pieces.rows]
                for one in expression.inputs
            }
            return wide(np.broadcast_to(self._values(name, values), pieces.rows.shape))
        if lengths in cut:
            ranges = rows.ranges(lengths, pieces)
            starts, stops = ranges.starts, ranges.starts + ranges.sizes
        else:
            numbers = rows.numbers(pieces.rows)
            starts, stops = numbers, numbers + 1
            for level in _levels(source, lengths):
                starts, stops = source.offsets[level][starts], source.offsets[level][stops]
        sizes = stops - starts
        places = np.repeat(starts, sizes) + kernels.lengths_to_positions(sizes)
        # not differences of one running sum: a NaN, an infinity or 1e17 would be in the totals of all later steps
        elements = self._elements_of(name, source)[places]
        if any(one in firsts for one in expression.inputs):
            filled = sizes > 0
            begins = {one: source.tensor(one)[starts[filled]] for one in expression.inputs}
            instead = {
                one: np.full_like(of, firsts[one]) if one in firsts else of for one, of in begins.items()
            }
            elements[kernels.lengths_to_offsets(sizes)[:-1][filled]] = wide(self._values(name, instead))
        return _sums(elements, sizes)

    def _elements_of(self, name: str, source: RowSource) -> Array:
        """The number of each element of a window."""
        found = self._elements.setdefault(source, {})
        if name not in found:
            tensors = {one: source.tensor(one) for one in self._expressions[name].inputs}
            found[name] = wide(self._values(name, tensors))
        return found[name]

    def _values(self, name: str, tensors: Mapping[str, Array]) -> Array:
        """The expression over operands that are widened first, so that it neither wraps nor becomes infinite."""
        expression = self._expressions[name]
        # floats keep their dtype next to literals that they are compared with: x == 0.1
        compares = any(
            isinstance(one, Call) and one.function.rule is truth for one in postorder(expression.tree)
        )
        kinds = "iu" if compares else "iuf"
        operands = {
            one: of.astype(np.float64 if of.dtype.kind == "f" else sum_dtype(of.dtype), copy=False)
            if of.dtype.kind in kinds
            else of
            for one, of in tensors.items()
        }
        found = np.asarray(expression(**operands))
        if found.dtype.kind in "iu" and len(expression.rpn) > 1:
            with suppress(ExpressionError):  # of operators on bits, which take no floats
                about = expression(**{one: of.astype(np.float64) for one, of in operands.items()})
                if np.abs(about).max(initial=0) >= 2.0 ** (64 - (found.dtype.kind == "i")):
                    raise BatchPlanError(
                        f"totals: {name} is about {np.abs(about).max():.3g} for one element, which {found.dtype} "
                        f"cannot hold\n  multiply by 1.0 to count in float64"
                    )
        return found


def totals_of(totals: Mapping[str, str] | Sequence[str] | None) -> Totals | None:
    """The totals of a mapping, or of a list of names; OpTypeError for anything else."""
    if totals is None:
        return None
    if not isinstance(totals, Mapping):
        if isinstance(totals, str) or not isinstance(totals, Sequence):
            raise OpTypeError.of("Loader.totals", f"is {totals!r}, expected {_EXPECTED}")
        totals = {name: name for name in totals}
    if not totals or not all(isinstance(text, str) for pair in totals.items() for text in pair):
        raise OpTypeError.of("Loader.totals", f"is {totals!r}, expected {_EXPECTED}")
    return Totals(totals)


_EXPECTED = "names and expressions, such as {'trained': 'labels.values != -100'}, or a list of tensors"


def _levels(source: RowSource, lengths: str | None) -> list[str]:
    """The lengths above elements, those of the rows first."""
    found: list[str] = []
    while lengths is not None:
        found.insert(0, lengths)
        lengths = source.parents[lengths]
    return found


def wide(values: Array) -> Array:
    """Counts as int64 or uint64, other numbers as float64; Python's integers where a sum may not fit 64 bits."""
    if values.dtype.kind == "f":
        return values.astype(np.float64)
    if values.dtype.itemsize == 8 and values.size:
        most = max(abs(int(values.max())), abs(int(values.min())))
        if most >= 2**62 // len(values):
            return values.astype(object)
    return values.astype(np.uint64 if values.dtype == np.uint64 else np.int64)


def _sums(values: Array, counts: Array) -> Array:
    """The sum of each segment."""
    if values.dtype != object:
        return kernels.segment_reduce("sum", values, counts)
    found = np.zeros(len(counts), object)
    np.add.at(found, np.repeat(np.arange(len(counts)), counts), values)
    return found
