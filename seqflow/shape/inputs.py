"""The inputs of an op by position and by name, as far as their shapes are known."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from seqflow.errors import OpError, ShapeError, nearest
from seqflow.shape.dimension import Dimension
from seqflow.shape.partial_shape import PartialShape, ShapeLike

Key = int | str
Inputs = Sequence[ShapeLike] | Mapping[str, ShapeLike | Sequence[ShapeLike]]


class InputShapes:
    """Shapes of all inputs of one op, with the elements of lists as separate inputs, and their names: `x`,
    `xs[1]`.
    """

    __slots__ = ("lists", "names", "op_name", "shapes")

    def __init__(self, op_name: str, inputs: Inputs) -> None:
        self.op_name = op_name
        self.shapes: list[PartialShape] = []
        self.names: list[str] = []
        self.lists: dict[str, range] = {}
        if not isinstance(inputs, Mapping):
            self.shapes = [PartialShape.of(shape) for shape in inputs]
            self.names = [f"input {i}" for i in range(len(self.shapes))]
            return
        for name, shape in inputs.items():
            if type(shape) is PartialShape:
                self.shapes.append(shape)
                self.names.append(name)
            elif _is_list_of_shapes(shape):
                start = len(self.shapes)
                self.shapes += [PartialShape.of(one) for one in shape]
                self.lists[name] = range(start, len(self.shapes))
                self.names += [f"{name}[{i}]" for i in range(len(self.lists[name]))]
            else:
                self.shapes.append(PartialShape.of(shape))  # type: ignore[arg-type]
                self.names.append(name)

    @classmethod
    def of_specs(cls, op_name: str, inputs: Mapping[str, Any]) -> tuple["InputShapes", list[Any]]:
        """Return the shapes of inputs of these specs, and all specs in order."""
        found = cls(op_name, ())
        specs: list[Any] = []
        for name, given in inputs.items():
            if isinstance(given, (list, tuple)):
                found.lists[name] = range(len(specs), len(specs) + len(given))
                found.names += [f"{name}[{i}]" for i in range(len(given))]
                specs += given
            else:
                found.names.append(name)
                specs.append(given)
        found.shapes = [spec.shape for spec in specs]
        return found, specs

    def by_position(self, given: Mapping[Key, Any] | None) -> dict[int, Any]:
        """Return values given for inputs, or for whole lists, by position; None values are left out."""
        found: dict[int, Any] = {}
        for key, value in (given or {}).items():
            if value is None:
                continue
            if key in self.lists:
                found.update(zip(self.lists[str(key)], value, strict=True))
            else:
                found[self.position(key)] = value
        return found

    def position(self, key: Key) -> int:
        """Return the position of an input; raise OpError when there is none."""
        if isinstance(key, str):
            if key in self.names:
                return self.names.index(key)
            if key in self.lists:
                raise self._refusal(f"input {key!r} is a list\n  ask ctx.inputs({key!r})")
            raise self._refusal(f"there is no input {key!r}{nearest(key, self.names)}")
        if not 0 <= key < len(self.shapes):
            raise self._refusal(f"there is no input {key}, it has {len(self.shapes)}")
        return key

    def name_of(self, shape: PartialShape) -> str:
        """Return the name of the input that has this shape, and the shape."""
        names = [self.names[i] for i, known in enumerate(self.shapes) if known is shape]
        return f"{names[0]} {shape}" if names else str(shape)

    def place_of(self, dimension: Dimension) -> str | None:
        """Return where among the inputs this dimension occurs."""
        for name, shape in zip(self.names, self.shapes, strict=True):
            for axis, known in enumerate(shape.dimensions or ()):
                if known is dimension:
                    return f"{name}.shape[{axis}]"
        return None

    def described(self, values: Mapping[int, Any]) -> str:
        """Return the inputs and their known values, in one line."""
        given = ", ".join(f"{name} {shape}" for name, shape in zip(self.names, self.shapes, strict=True))
        known = ", ".join(f"{self.names[i]} = {_short(value)}" for i, value in values.items())
        return f"given {given or 'no inputs'}" + (f" where {known}" if known else "")

    def error(self, message: str, *lines: str) -> ShapeError:
        """A ShapeError of this op."""
        return ShapeError("\n  ".join((message, *lines))).in_op(self.op_name)

    def _refusal(self, message: str) -> OpError:
        return OpError(message).in_op(self.op_name)


def _is_list_of_shapes(value: object) -> TypeGuard[Sequence[ShapeLike]]:
    """Return whether the value is a list of shapes, texts in braces or sequences; otherwise it is a list of
    dimensions.
    """
    return isinstance(value, (list, tuple)) and any(
        isinstance(one, (PartialShape, tuple, list)) or (isinstance(one, str) and one.startswith("{"))
        for one in value
    )


def _short(value: Any) -> str:
    text = str(value) if isinstance(value, PartialShape) else np.array2string(np.asarray(value), threshold=8)
    return " ".join(text.split())
