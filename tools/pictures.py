"""Draws the examples of ops that move rows, before and after, with each row in the colour of its sequence."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from seqflow.drawing.moved import Block, Cell, Divided, Grid, LevelRow, moved
from seqflow.kernels.arrays import Array
from seqflow.registry import OpDef
from seqflow.signature import Argument
from seqflow.signature.language import AtLeast, Dim, Fresh, Name, Rest, Sum
from tools.example_traces import NOWHERE, ElementTrace, ExampleCall, Moved, trace


class Picture(NamedTuple):
    """Picture as SVG, and its content in words."""

    svg: str
    words: str


def draw(op: OpDef) -> Picture | None:
    """Return the picture of an op that moves rows; None for an op that computes, or leaves each row in place."""
    found = trace(op, lambda call, given: _sequences(op, call, given))
    if found is None or (found.is_still and _has_same_rows(op, found)):
        return None
    before, after = _inputs(op, found), _outputs(op, found)
    if any(one.array.ndim > 2 for one in (*before, *after)):
        return None
    given, made = _Side(op, found.call, before), _Side(op, found.call, after)
    blocks = [given.block(one) for one in before], [made.block(one) for one in after]
    words = f"{op.name} of {given.words()} gives {made.words()}"
    notes = _notes(op, found.call, given.shown)
    return Picture(moved(op.name, words, blocks[0], notes, blocks[1]), words)


def _has_same_rows(op: OpDef, found: ElementTrace) -> bool:
    """Return whether the signature says that row i of each output is row i of an input."""
    inputs = [_rows_of(op.signature.arguments[one.name]) for one in found.moved]
    return all(_rows_of(a) in inputs for a in op.signature.output_arguments if a.field in found.sources)


def _rows_of(argument: Argument) -> Dim | None:
    match argument.dims[:1]:
        case (Rest(),):  # an op on any axes moves all of them: its names are not compared
            return Rest("_")
        case (AtLeast(name=name) | Fresh(size=Name(name=name)),):
            return Name(name)
        case (first,):
            return first
    return None


def _sequences(op: OpDef, call: ExampleCall, given: Sequence[Moved]) -> Array:
    """Return the number of the sequence of each element of all inputs, or of its row if it is in no sequence."""
    found, start = [], 0
    for one in given:
        inside = _sequences_of(op, call, one) + start
        found.append(inside.ravel())
        start = int(inside.max(initial=start - 1)) + 1
    return np.concatenate(found)


def _sequences_of(op: OpDef, call: ExampleCall, given: Moved) -> Array:
    argument, array = op.signature.arguments[given.name], given.array
    axis = 0
    numbers = np.arange(len(array)) if array.ndim else np.zeros((), np.int64)
    match argument.dims[:1]:
        case (Sum(of=of),):
            lengths = call.inputs[of][given.place]
            numbers = np.repeat(np.arange(len(lengths)), lengths)
        case (AtLeast(),) if array.ndim > 1:  # the first axis are time steps: the sequences are columns
            axis, numbers = 1, np.arange(array.shape[1])
    shape = [-1 if number == axis else 1 for number in range(array.ndim)]
    return np.broadcast_to(numbers.reshape(shape), array.shape)


class _Tensor(NamedTuple):
    """Tensor to draw, with the number of the sequence of each element, or `NOWHERE`."""

    argument: Argument
    place: int
    array: Array
    sequences: Array

    def cells(self) -> list[Cell]:
        return [
            Cell(_text(value), None if number == NOWHERE else number)
            for value, number in zip(
                self.array.ravel().tolist(), self.sequences.ravel().tolist(), strict=True
            )
        ]


def _inputs(op: OpDef, found: ElementTrace) -> list[_Tensor]:
    """Return the inputs that are moved; elements that are in no output have no sequence, and are drawn grey."""
    sequences = _sequences(op, found.call, found.moved)
    used = np.concatenate([one.ravel() for of in found.sources.values() for one in of])
    shown = np.where(np.isin(np.arange(len(sequences)), used), sequences, NOWHERE)
    return [
        _Tensor(
            op.signature.arguments[one.name],
            one.place,
            one.array,
            shown[one.start : one.start + one.array.size],
        )
        for one in found.moved
    ]


def _outputs(op: OpDef, found: ElementTrace) -> list[_Tensor]:
    sequences = _sequences(op, found.call, found.moved)
    return [
        _Tensor(argument, place, array, np.where(source == NOWHERE, NOWHERE, sequences[source]))
        for argument in op.signature.output_arguments
        for place, (array, source) in enumerate(
            zip(found.call.outputs[argument.field], found.sources.get(argument.field, []), strict=False)
        )
    ]


class _Side:
    """One side of the arrow: tensors, their lengths, and other tensors with a value for each of their rows."""

    def __init__(self, op: OpDef, call: ExampleCall, tensors: Sequence[_Tensor]) -> None:
        self.tensors = tensors
        self.shown = {one.argument.name for one in tensors}
        """Names of tensors that are drawn."""
        is_input = all(one.argument in op.signature.input_arguments for one in tensors)
        inputs = {a: call.inputs[a.name] for a in op.signature.input_arguments if a.name in call.inputs}
        outputs = {a: call.outputs[a.field] for a in op.signature.output_arguments}
        self.arrays: Mapping[Argument, list[Array]] = inputs if is_input else outputs
        self.lengths = {a.name: (a, arrays) for a, arrays in (inputs | outputs).items()}

    def block(self, tensor: _Tensor) -> Block:
        """Return a tensor with the lengths above it and the values below it; a grid has none."""
        name, cells = self._name(tensor.argument, tensor.place), tensor.cells()
        if tensor.array.ndim == 2:
            width = tensor.array.shape[1]
            return Grid(name, [cells[at : at + width] for at in range(0, len(cells), width)] if width else [])
        levels = self._levels(tensor)
        rows = [row for level, (of, _) in enumerate(levels) for row in self._beside(of, tensor.place, level)]
        rows.append(LevelRow(name, max(len(levels), 1), (), cells))
        rows += self._beside(tensor.argument, tensor.place, max(len(levels), 1))
        return Divided([array for _, array in levels] or [np.array([tensor.array.size])], rows)

    def words(self) -> str:
        """Return the tensors in words, with each sequence in brackets."""
        return ", ".join(f"{self._name(one.argument, one.place)} {self._pieces(one)}" for one in self.tensors)

    def _pieces(self, tensor: _Tensor) -> str:
        levels = self._levels(tensor)
        if tensor.array.ndim != 1 or not levels:
            return _list(tensor.array)
        pieces = np.split(tensor.array, np.cumsum(levels[-1][1])[:-1])
        return f"[{', '.join(map(_list, pieces))}]"

    def _levels(self, tensor: _Tensor) -> list[tuple[Argument, Array]]:
        """Return the lengths that divide a tensor, outermost first."""
        found: list[tuple[Argument, Array]] = []
        first = tensor.argument.dims[:1]
        while first and isinstance(first[0], Sum):
            argument, arrays = self.lengths[first[0].of]
            found.insert(0, (argument, arrays[tensor.place]))
            first = argument.dims[:1]
        return found

    def _beside(self, of: Argument, place: int, level: int) -> Iterator[LevelRow]:
        """Yield the tensors with a value for each row of another, also itself unless its elements are drawn."""
        drawn = {one.argument for one in self.tensors}
        for argument in dict.fromkeys([of, *self.arrays]):
            arrays = self.lengths[argument.name][1]
            if argument in drawn or argument.dims != of.dims[:1] or place >= len(arrays):
                continue
            self.shown.add(argument.name)
            yield LevelRow(self._name(argument, place), level, [*map(_text, arrays[place].tolist())])

    def _name(self, argument: Argument, place: int) -> str:
        is_list = len(self.lengths[argument.name][1]) > 1
        return f"{argument.field}[{place}]" if is_list else argument.field


def _notes(op: OpDef, call: ExampleCall, shown: set[str]) -> list[str]:
    """Return the op with its attributes, on separate lines if they are long, and the inputs that are not drawn."""
    attributes = [f"{name}={value!r}" for name, value in call.attributes.items()]
    line = f"{op.name}({', '.join(attributes)})" if attributes else op.name
    others = [(name, arrays) for name, arrays in call.inputs.items() if name not in shown]
    return [
        *([line] if len(line) <= _LINE else [op.name, *attributes]),
        *(f"{name}={', '.join(map(_list, arrays))}" for name, arrays in others),
    ]


_LINE = 30
"""Largest number of characters of a call in one line: a picture must fit a narrow page."""


def _list(array: Array) -> str:
    if array.ndim:
        return f"[{', '.join(map(_list, array))}]"
    return _text(array.item())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "T" if value else "F"
    return f"{value:g}" if isinstance(value, float) else str(value)
