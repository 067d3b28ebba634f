"""InferenceContext: the inputs of an op for its shape function, which sets the outputs in it."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from typing import Any, Literal, overload

import numpy as np

from seqflow.errors import LodError, OpError, SeqflowError, ShapeError, nearest
from seqflow.kernels.arrays import Array
from seqflow.shape.arithmetic import Comparison
from seqflow.shape.dimension import Dimension, DimensionLike
from seqflow.shape.equalities import Equalities
from seqflow.shape.guards import Guard, Guards, InferredOutput
from seqflow.shape.index_targets import are_indices, are_positions, moved, wrong_indices, wrong_positions
from seqflow.shape.inputs import Inputs, InputShapes, Key
from seqflow.shape.partial_shape import PartialShape, ShapeLike
from seqflow.shape.row_matching import InputAxis, differing, holds_rows, meet, plain_meets
from seqflow.shape.terms import Term

Axes = tuple[Term | None, ...]
_MOST_PARTS = 16
"""Largest count for which a repeated axis is written as a join of its parts."""


class InferenceContext:
    """The inputs of one op as far as they are known, and TensorFlow's vocabulary for computing the outputs.

    `inputs` maps names to shapes (a list of shapes where the op takes a list), or is a sequence of shapes. Inputs are
    asked for by position, counting those in lists, or by name: `x`, `xs[1]`. `input_values` holds what is known of
    their values, as arrays, or as a PartialShape where a vector of sizes is known in part. `rows` names the row space
    of axis 0, `axes` that of each axis, `points` the rows or positions that integers point at. Assumed equalities are
    kept in `equalities`, which the ops of one net share.

    Every method raises ShapeError when shapes do not fit; the context is then unchanged.

    >>> def matmul(ctx):
    ...     x, y = ctx.with_rank(ctx.input("x"), 2), ctx.with_rank(ctx.input("y"), 2)
    ...     ctx.merge(ctx.dim(x, 1), ctx.dim(y, 0))
    ...     ctx.set_output(0, ctx.make_shape([ctx.dim(x, 0), ctx.dim(y, 1)]))
    >>> ctx = InferenceContext("matmul", {"x": "{B,3}", "y": "{3,4}"})
    >>> print(ctx.run(matmul)[0].shape)
    {B,4}
    """

    def __init__(
        self,
        op_name: str,
        inputs: Inputs,
        *,
        input_values: Mapping[Key, Any] | None = None,
        attributes: Mapping[str, Any] | None = None,
        rows: Mapping[Key, Any] | None = None,
        axes: Mapping[Key, Any] | None = None,
        points: Mapping[Key, Any] | None = None,
        dtypes: Mapping[Key, Any] | None = None,
        equalities: Equalities | None = None,
        num_outputs: int = 1,
    ) -> None:
        self.op_name = op_name
        self.attributes = attributes or {}
        self.equalities = Equalities() if equalities is None else equalities
        self.tensors: Mapping[str, str] = {}
        """Tensor of the net for each input and output; by default the input or output has its own name."""
        self.results: Mapping[int, str] = {}
        """Tensor of the net for each output, by position."""
        self.output_names: Sequence[str] = ()
        self.guards: Guards = []
        self.requested_tensors: set[str] = set()
        """Inputs whose values the shape function has requested."""
        self.requested_shapes: set[str] = set()
        """Inputs whose values it has requested as a shape; a partly known value is useful, too."""
        self.output_values: dict[str, PartialShape] = {}
        """Outputs that are vectors of sizes, as far as these are known."""
        self.given_rows: dict[str, Term] = {}
        """Tensors without rows that the op has declared to hold these rows from now on."""
        self._inputs = InputShapes(op_name, inputs)
        self._outputs: list[InferredOutput | None] = [None] * num_outputs
        self._values = self._inputs.by_position(input_values)
        self._axes: dict[int, Axes] = dict(self._inputs.by_position(axes))
        for i, one in self._inputs.by_position(rows).items():
            if one is None:
                continue
            self._axes[i] = (self.equalities.terms.declared(one),)
        self.facts: Any = None
        """Facts about the values of the call, from which new rows are made."""
        self._dtypes = self._inputs.by_position(dtypes)
        self._points = self._inputs.by_position(points)

    @classmethod
    def of_specs(
        cls,
        op_name: str,
        inputs: Mapping[str, Any],
        outputs: Sequence[Any],
        *,
        input_values: Mapping[Key, Any],
        attributes: Mapping[str, Any],
        equalities: Equalities,
    ) -> "InferenceContext":
        """Create the context of a call with inputs of these specs, and outputs as far as the signature gives them."""
        context = cls(op_name, (), attributes=attributes, equalities=equalities)
        context._inputs, specs = InputShapes.of_specs(op_name, inputs)
        context._values = context._inputs.by_position(input_values)
        context._axes = {i: spec.axes for i, spec in enumerate(specs) if spec.axes}
        context._dtypes = {i: spec.dtype for i, spec in enumerate(specs)}
        context._points = {i: spec.points for i, spec in enumerate(specs) if spec.points is not None}
        context._outputs = [InferredOutput(one.shape, one.axes, one.dtype, one.points) for one in outputs]
        return context

    # Inputs and outputs

    @property
    def num_inputs(self) -> int:
        """Number of inputs; each element of a list counts."""
        return len(self._inputs.shapes)

    @property
    def num_outputs(self) -> int:
        return len(self._outputs)

    def input(self, key: Key) -> PartialShape:
        """Return the shape of one input, by position or name."""
        return self._inputs.shapes[self._inputs.position(key)]

    def inputs(self, name: str) -> list[PartialShape]:
        """Return the shapes of all inputs with this name: one, or several for a list."""
        if name in self._inputs.lists:
            return [self._inputs.shapes[i] for i in self._inputs.lists[name]]
        return [self.input(name)]

    def has(self, name: str) -> bool:
        """Return whether an input of this name was given; optional inputs may be missing."""
        return name in self._inputs.names

    def axes(self, key: Key, rank: int | None = None) -> Axes:
        """Return the row space of each axis of an input, or of its first `rank` axes; None for a plain size."""
        i = self._inputs.position(key)
        axes, dimensions = self._axes.get(i, ()), self._inputs.shapes[i].dimensions
        count = rank if rank is not None else len(axes) if dimensions is None else len(dimensions)
        return (*axes[:count], *[None] * (count - len(axes)))

    def rows(self, key: Key) -> Term | None:
        """Return the row space of axis 0 of an input; None for a plain size."""
        axes = self._axes.get(self._inputs.position(key))
        return axes[0] if axes else None

    def points(self, key: Key) -> Term | None:
        """Return the rows, or the positions inside sequences, that the integers of an input point at; None if
        undeclared.
        """
        return self._points.get(self._inputs.position(key))

    def dtype(self, key: Key) -> np.dtype[Any] | None:
        """Return the dtype of an input; None if unknown."""
        dtype = self._dtypes.get(self._inputs.position(key))
        return None if dtype is None else np.dtype(dtype)

    def attr(self, name: str) -> Any:
        """Return an attribute of the op; raise OpError when it has none of this name."""
        if name not in self.attributes:
            guess = nearest(name, self.attributes)
            raise OpError(f"there is no attribute {name!r}{guess}").in_op(self.op_name)
        return self.attributes[name]

    def set_output(
        self,
        i: int | str,
        shape: ShapeLike,
        rows: Term | Literal["new"] | None = "new",
        dtype: Any | None = None,
        *,
        axes: Sequence[Term | None] | None = None,
    ) -> None:
        """Set an output, by position or name: its shape, the row space of each axis, its dtype.

        `rows` is the row space of axis 0, `axes` has one for each axis: None is a plain size. Without either, axis 0
        gets new rows. Without `dtype`, the dtype and the targets of integers stay as they were set before.
        """
        i = self._check_output(i)
        before = self._outputs[i]
        known = np.dtype(dtype) if dtype is not None else None if before is None else before.dtype
        given = shape if type(shape) is PartialShape else PartialShape.of(shape)
        if axes is None:
            if rows == "new":
                rows = self.made_rows(i) if given.dimensions else None
            axes = () if rows is None else (rows,)
        points = None if before is None else before.points
        self._outputs[i] = InferredOutput(given, tuple(axes), known, points)

    def set_shape(self, i: int | str, shape: ShapeLike) -> None:
        """Refine the shape of an output; its dtype and row spaces stay as they were set before."""
        output = self._outputs[self._check_output(i)]
        self.set_output(i, shape, axes=() if output is None else output.axes)

    def set_points(self, i: int | str, points: Term | None) -> None:
        """Set the target of the integers in an output: rows, as of an axis, or `positions_in` lengths."""
        i = self._check_output(i)
        output = self._outputs[i]
        if output is None:
            raise self._error(f"output {i} is not set")
        self._outputs[i] = output._replace(points=points)

    def moved_points(self, key: Key) -> Term | None:
        """Return the target of an input's integers, for an output that has its rows in another order."""
        points = self.points(key)
        return None if points is None else moved(self.equalities.terms, points, "moved")

    def positions_in(self, name: str) -> Term:
        """Return the target of positions inside the sequences of an input, or output, of this name."""
        return self.equalities.terms.positions(self.equalities.terms.value(self.tensors.get(name, name)))

    def check_indices(self, key: Key, rows: Term | None, owner: str) -> None:
        """Raise LodError when the integers of an input are known to point at something other than these rows of
        `owner`.
        """
        points = self.points(key)
        label = self._inputs.names[self._inputs.position(key)]
        if points is None or rows is None:
            return
        if not are_indices(self.equalities, points, rows, self.guards, label):
            raise wrong_indices(label, points, owner, rows).in_op(self.op_name)

    def check_positions(self, key: Key, lengths: Key) -> None:
        """Raise LodError when integers are known not to be positions inside the sequences of these lengths."""
        points, label = self.points(key), self._inputs.names[self._inputs.position(key)]
        of = self._inputs.names[self._inputs.position(lengths)]
        (expected,) = self.positions_in(of).args
        if points is not None and not are_positions(self.equalities.terms, points, expected):
            raise wrong_positions(label, points, of, expected).in_op(self.op_name)

    def made_rows(self, what: Hashable = 0) -> Term | None:
        """Return new rows made from the values of the inputs; the same call gives the same rows."""
        if self.facts is None:
            return None
        data = self.op_name, what, self.facts.attributes
        return self.equalities.terms.make("new", data, *self.facts.depends)

    def selected(
        self, axis: Term | None, size: Dimension, by: Hashable, start: int | None, stop: int | None
    ) -> Term | None:
        """Return the row space of a slice of an axis, or of one part of a split; `by` identifies the slice.

        When the slice from `start` to before `stop` takes whole parts of a join, these parts are returned.
        """
        if axis is None:
            return None
        known = self.equalities.terms.find(axis)
        if known.kind == "joined" and start is not None and stop is not None:
            parts = self._whole_parts(known, size, start, stop)
            if parts is not None:
                joined = self.equalities.terms.join(*parts)
                return None if joined.kind == "plain" else joined
        return self.equalities.terms.make("sliced", by, axis)

    def _whole_parts(
        self, joined: Term, size: Dimension, start: int, stop: int
    ) -> tuple[list[Term], list[Any]] | None:
        """Return the parts of a join between two positions; None if the positions are not boundaries of parts."""
        sizes = list(joined.data or [None] * len(joined.args))
        ends: list[Dimension] = [Dimension(0)]
        for part, known in zip(joined.args, sizes, strict=True):
            count = known if known is not None else self.equalities.rows_counted(part)
            ends.append(ends[-1] + (Dimension.dynamic() if count is None else count))
        ends[-1] = size
        static = [self.value(end) for end in ends]
        total = static[-1]
        if total is not None:
            start, stop, _ = slice(start, stop).indices(total)
        if start not in static or (stop < 2**63 - 1 and stop not in static):
            return None
        # the last end is the size of the whole axis: it may be known where the sizes of the parts are not
        first = static.index(start)
        last = len(joined.args) if stop >= 2**63 - 1 else static.index(stop)
        return (list(joined.args[first:last]), sizes[first:last]) if first < last else None

    def joined(self, keys: Sequence[Key], axis: int) -> Term | None:
        """Return the row space of an axis of several inputs, joined one after another; None (plain) if all are
        plain.
        """
        terms = self.equalities.terms
        axes = [self.axes(key, axis + 1)[axis] for key in keys]
        if all(one is None for one in axes):
            return None
        sizes = [self.equalities.resolve(self.dim(self.input(key), axis)) for key in keys]
        parts = [terms.plain(size) if one is None else one for one, size in zip(axes, sizes, strict=True)]
        return terms.join(parts, sizes)

    def repeated(self, axis: Term | None, size: DimensionLike, count: int) -> Term | None:
        """Return the row space of an axis joined `count` times with itself."""
        if axis is None or count == 1:
            return axis
        if not 0 < count <= _MOST_PARTS:
            return self.equalities.terms.make("sliced", ("repeated", count), axis)
        return self.equalities.terms.join([axis] * count, [Dimension.of(size)] * count)

    def selected_steps(self, steps: Term | None, indices: Key) -> Term | None:
        """Return the steps that indices without rows select; steps selected from rows are plain."""
        tensor = self.tensors.get(self._inputs.names[self._inputs.position(indices)])
        if steps is None or steps.is_rows or tensor is None:
            return None
        terms = self.equalities.terms
        return terms.make("select", None, steps, terms.value(tensor))

    def part_of(self, rows: Term | None, keys: Key, i: int, attributes: Hashable = None) -> Term:
        """Return the rows of part i of `rows` partitioned by keys, with these attributes or those of the op."""
        terms = self.equalities.terms
        given = (attributes,) if attributes is not None else self.facts.attributes if self.facts else ()
        value = terms.value(self.tensors.get(str(keys), str(keys)))
        if rows is None:
            return terms.make("new", ("part", i, given), value)
        return terms.make("part", (i, given), rows, value)

    def may_be_same_rows(self, one: Key, other: Key) -> bool:
        """Return whether two inputs hold the same rows; an undeclared row space becomes that of the other."""
        left, right = self.rows(one), self.rows(other)
        if left is None or right is None:
            return False
        terms = self.equalities.terms
        if "variable" in (terms.find(left).kind, terms.find(right).kind):
            return meet(self.equalities, left, right, self.guards, f"{one} and {other}")
        return terms.equal(left, right)

    def meet_rows(self, key: Key, rows: Term, other: Key) -> None:
        """Raise LodError when axis 0 of an input holds other rows than these rows of another input."""
        found = self.rows(key)
        if found is not None and not meet(self.equalities, rows, found, self.guards, f"{key} and {other}"):
            raise differing(str(key), found, str(other), rows).in_op(self.op_name)

    def flat_rows(self, key: Key, first: int, last: int) -> Term | None:
        """Return the row space of an input after axes `first` to before `last` are flattened; None (plain) if all are
        plain.
        """
        axes, shape = self.axes(key)[first:last], self.input(key)[first:last]
        known = [axis for axis in axes if axis is not None]
        if not known:
            return None
        if len(axes) == 1:
            return axes[0]
        sizes = tuple(str(size) if axis is None else None for axis, size in zip(axes, shape, strict=True))
        return self.equalities.terms.make("flat", sizes, *known)

    def flat_mask(self, i: int, key: Key) -> None:
        """Declare that an output is a flattened input, for masks of padded tensors."""
        terms = self.equalities.terms
        result, given = self.results.get(i), self.tensors.get(self._inputs.names[self._inputs.position(key)])
        for one in terms.members(terms.value(given)) if result and given else ():
            if one.kind == "mask":
                self.equalities.unite(
                    terms.value(str(result)), terms.make("flat mask", None, one), self.op_name
                )

    def same_value(self, i: int, key: Key) -> None:
        """Declare that an output has the values of an input: if these are lengths, they are the same lengths."""
        names = self._inputs.names
        result, given = self.results.get(i), self.tensors.get(names[self._inputs.position(key)])
        if result is not None and given is not None:
            terms = self.equalities.terms
            self.equalities.unite(terms.value(result), terms.value(given), self.op_name)

    def same_rows(self, one: Key, other: Key) -> None:
        """Declare that two inputs hold the same rows; a plain input holds those of the other from now on."""
        left, right = self.rows(one), self.rows(other)
        if left is not None and right is not None:
            self.equalities.unite(left, right, self.op_name)
        for key, rows, theirs in ((one, left, right), (other, right, left)):
            tensor = self.tensors.get(self._inputs.names[self._inputs.position(key)])
            if rows is None and theirs is not None and tensor is not None:
                self.given_rows[tensor] = theirs

    def check_steps(self, key: Key, axis: int, lengths: Key) -> None:
        """Raise LodError when an axis of an input is padded for other lengths than those of another input."""
        steps = self.axes(key, axis + 1)[axis]
        tensor = self.tensors.get(self._inputs.names[self._inputs.position(lengths)])
        if steps is None or steps.kind != "steps" or tensor is None:
            return
        terms = self.equalities.terms
        expected = terms.steps(terms.value(tensor), str(steps.data))
        if not terms.equal(steps, expected):
            raise differing(f"{key}.shape[{axis}]", steps, str(lengths), expected).in_op(self.op_name)

    def output(self, i: int | str) -> PartialShape:
        """Return the shape set for an output, by position or name; raise ShapeError when none was set."""
        output = self._outputs[self._check_output(i)]
        if output is None:
            raise self._error(f"output {i} is not set")
        return output.shape

    @property
    def outputs(self) -> list[InferredOutput]:
        """All outputs; raises ShapeError when one is not set."""
        found = [output for output in self._outputs if output is not None]
        if len(found) < len(self._outputs):
            raise self._error(f"output {self._outputs.index(None)} is not set")
        return found

    def _check_output(self, i: int | str) -> int:
        if isinstance(i, str):
            if i not in self.output_names:
                raise OpError(f"{self.op_name}: there is no output {i!r}{nearest(i, self.output_names)}")
            return self.output_names.index(i)
        if not 0 <= i < self.num_outputs:
            raise OpError(f"there is no output {i}, it has {self.num_outputs}").in_op(self.op_name)
        return i

    def run(self, shape_function: Callable[["InferenceContext"], object]) -> list[InferredOutput]:
        """Call the shape function and return the outputs.

        The op, the inputs and the known values are added to an error; inputs, outputs, guards and equalities are then
        as before. The requests are kept, so that the caller can find the values and run it again.
        """
        try:
            with self._unchanged_on_error():
                shape_function(self)
                return self.outputs
        except SeqflowError as error:
            advice = [error.in_op(self.op_name).advice, self.described]
            error.advice = "\n  ".join(filter(None, advice))
            raise
        except Exception as error:
            error.add_note(f"in the shape function of {self.op_name}, {self.described}")
            raise

    @property
    def described(self) -> str:
        """The inputs and their known values, in one line."""
        return self._inputs.described(self._values)

    @contextmanager
    def _unchanged_on_error(self) -> Iterator[None]:
        """Restore the context after an error."""
        before = list(self._inputs.shapes), list(self.guards), list(self._outputs)
        try:
            with self.equalities.staged():
                yield
        except BaseException:
            self._inputs.shapes, self.guards, self._outputs = before
            raise

    # Values

    def input_tensor(self, key: Key) -> Array | None:
        """Return the value of an input if it is constant, else None; in both cases the input is recorded as
        requested.
        """
        i = self._inputs.position(key)
        self.requested_tensors.add(self._inputs.names[i])
        value = self._values.get(i)
        if isinstance(value, PartialShape):
            return np.array(value.to_shape(), np.int64) if value.is_static else None
        return None if value is None else np.asarray(value)

    def input_tensor_as_shape(self, key: Key) -> PartialShape:
        """Return the shape given by the value of an input, as far as it is known; the input is recorded as requested.

        The input is a vector of sizes, -1 standing for an unknown one, or the scalar -1 for a shape of unknown rank.
        Raises ShapeError for anything else.
        """
        i = self._inputs.position(key)
        self.requested_shapes.add(self._inputs.names[i])
        value = self._values.get(i)
        if isinstance(value, PartialShape):
            return value
        if value is not None:
            return self._shape_of_value(np.asarray(value), self._inputs.names[i])
        shape = self.with_rank_at_most(self._inputs.shapes[i], 1)
        if shape.dimensions and shape[0].is_static:
            return PartialShape.dynamic(shape[0])
        return PartialShape.dynamic()

    def join_sizes(self, i: int, name: str) -> None:
        """Declare that an output has the sizes of the vectors in a list, one after another, as far as they are
        known.
        """
        keys, result = self._inputs.lists[name], self.results.get(i)
        known = [self._inputs.shapes[key] for key in keys]
        if result is None or not all(one.dimensions and one[0].is_static for one in known):
            return
        if sum(one[0].get_length() for one in known) > _MOST_PARTS:
            return
        self.requested_shapes.add(name)
        parts = [self._sizes_in(key) for key in keys]
        if any(
            part.dimensions is not None and not all(one.is_dynamic and not one.is_named for one in part)
            for part in parts
        ):
            self.output_values[result] = self.concatenate(*parts)

    def _sizes_in(self, key: int) -> PartialShape:
        value = self._values.get(key)
        if isinstance(value, PartialShape):
            return value
        if value is not None and np.asarray(value).min(initial=0) >= -1:
            return self._shape_of_value(np.asarray(value), self._inputs.names[key])
        return PartialShape.dynamic(self._inputs.shapes[key][0])

    def make_shape_from_tensor(self, key: Key) -> PartialShape:
        """The same as `input_tensor_as_shape`, under TensorFlow's name."""
        return self.input_tensor_as_shape(key)

    def _shape_of_value(self, value: Array, name: str) -> PartialShape:
        if value.ndim > 1 or (value.dtype.kind not in "iu" and value.size):
            raise self._error(f"{name} is {value.dtype} of shape {value.shape}, expected a vector of sizes")
        if value.ndim == 0:
            if value != -1:
                raise self._error(f"{name} is {value}, expected a vector of sizes, or -1 for an unknown rank")
            return PartialShape.dynamic()
        for i, size in enumerate(value.tolist()):
            if size < -1:
                raise self._error(f"{name}[{i}] is {size}, expected a size, or -1 for an unknown one")
        return PartialShape(Dimension.dynamic() if size == -1 else size for size in value.tolist())

    # Looking at shapes

    def dim(self, shape: PartialShape, axis: int) -> Dimension:
        """Return one dimension, counted from the end if `axis` is negative; unknown if the rank is."""
        if shape.dimensions is None:
            return Dimension.dynamic()
        if not -len(shape) <= axis < len(shape):
            raise self._error(
                f"{self._inputs.name_of(shape)} has no dimension {axis}, expected one of {len(shape)}"
            )
        return shape.dimensions[axis]

    def value(self, dimension: DimensionLike) -> int | None:
        """Return the size if it is known, else None."""
        resolved = self.equalities.resolve(Dimension.of(dimension))
        return resolved.get_length() if resolved.is_static else None

    def sum_of(self, name: str) -> Dimension:
        """Return the sum of the lengths in an input or output of this name."""
        return self.equalities.resolve(Dimension.sum_of(self.tensors.get(name, name)))

    def max_of(self, name: str) -> Dimension:
        """Return the largest length in an input or output of this name."""
        return self.equalities.resolve(Dimension.max_of(self.tensors.get(name, name)))

    def limit(self, size: DimensionLike, most: DimensionLike) -> None:
        """Declare that a size of an output is at most the largest possible value of `most`.

        >>> def truncate(ctx):
        ...     ctx.limit(ctx.max_of("lengths'"), ctx.max_of("lengths").minimum(ctx.attr("max_length")))
        """
        self.equalities.limit(Dimension.of(size), most, self.op_name)

    def num_elements(self, shape: ShapeLike) -> Dimension:
        """The product of the dimensions; 0 where any is 0."""
        return PartialShape.of(shape).num_elements

    def with_rank(self, shape: PartialShape, rank: DimensionLike) -> PartialShape:
        """Return the shape with this rank; if its rank is unknown, a shape with the given one. Raise ShapeError
        otherwise.
        """
        rank = Dimension.of(rank)
        if shape.dimensions is None:
            return shape if rank.is_dynamic else PartialShape.dynamic(rank)
        if not rank.compatible(len(shape.dimensions)):
            raise self._wrong_rank(shape, str(rank))
        return shape

    def with_rank_at_least(self, shape: PartialShape, rank: int) -> PartialShape:
        """Return the shape if its rank can be at least this."""
        if shape.dimensions is not None and len(shape) < rank:
            raise self._wrong_rank(shape, f"{rank} or more")
        return shape

    def with_rank_at_most(self, shape: PartialShape, rank: int) -> PartialShape:
        """Return the shape if its rank can be at most this."""
        if shape.dimensions is not None and len(shape) > rank:
            raise self._wrong_rank(shape, f"{rank} or less")
        return shape

    # Merging

    def with_value(self, dimension: DimensionLike, value: int) -> Dimension:
        """Return the dimension with this value; raise ShapeError when it cannot have it."""
        return self.merge(dimension, value)

    @overload
    def merge(self, left: PartialShape, right: ShapeLike) -> PartialShape: ...
    @overload
    def merge(self, left: DimensionLike, right: DimensionLike) -> Dimension: ...
    def merge(self, left: Any, right: Any) -> PartialShape | Dimension:
        """Return all that is known of two shapes, or two dimensions, if they are the same.

        ShapeError is raised when they provably differ. When equality cannot be proved, it is assumed: noted in
        `equalities` and recorded in `guards`. If both are equal, the first one itself is returned.
        """
        if isinstance(left, Dimension) and left.is_static and left == right:
            return left
        guards: Guards = []
        with self.equalities.staged():
            if isinstance(left, PartialShape):
                merged: Any = merge_shapes(
                    left, PartialShape.of(right), self._inputs, self.equalities, guards
                )
            else:
                merged = merge_dimensions(
                    Dimension.of(left), Dimension.of(right), self._inputs, self.equalities, guards
                )
        self.guards += guards
        return merged  # type: ignore[no-any-return]

    def merge_prefix(self, shape: PartialShape, prefix: PartialShape) -> tuple[PartialShape, PartialShape]:
        """Merge the first dimensions of `shape` with all of `prefix`; return both as they are then known."""
        if shape.dimensions is None or prefix.dimensions is None:
            return shape, prefix
        self.with_rank_at_least(shape, len(prefix))
        merged = self.merge(shape[: len(prefix)], prefix)
        whole = PartialShape([*merged, *shape[len(prefix) :]])
        return first_equal(whole, shape), first_equal(merged, prefix)

    def merge_input(self, key: Key, shape: ShapeLike) -> bool:
        """Merge an input with what is known of it; return whether that added something new."""
        i = self._inputs.position(key)
        before = self._inputs.shapes[i]
        self._inputs.shapes[i] = self.merge(before, shape)
        return self._inputs.shapes[i] != before

    def relax_input(self, key: Key, shape: ShapeLike) -> bool:
        """Widen an input so that it also covers `shape`; return whether that lost something known."""
        i = self._inputs.position(key)
        before = self._inputs.shapes[i]
        self._inputs.shapes[i] = first_equal(before.relax(shape), before)
        return self._inputs.shapes[i] != before

    def merge_rows(self, *keys: Key) -> Term | None:
        """Return the row space of axis 0 of these inputs; raise LodError when two differ. None if all are plain."""
        return self.merge_axes([(key, 0) for key in keys])

    def merge_axes(self, places: Iterable[tuple[Key, int]], repeats: bool = False) -> Term | None:
        """Return the row space of one axis of several inputs; raise LodError when rows meet other rows or a plain
        size.

        Plain sizes fit the steps of a padded axis. When the op `repeats` an axis of size 1, that axis fits every
        other.
        """
        merged: tuple[InputAxis, Term] | None = None
        plain: tuple[Key, int] | None = None
        for key, axis in places:
            found = self._held(key, axis)
            if repeats and self.input(key)[axis] == 1:
                continue
            if found is None:
                if plain is None and self.is_plain(key):
                    plain = key, axis
                continue
            place = self._place(key, axis)
            if merged is None or merged[1].kind == "variable":
                before, merged = merged, (place, found)
                if before is None:
                    continue
                place, found = before
            if not meet(self.equalities, merged[1], found, self.guards, f"{merged[0]} and {place}"):
                raise differing(str(place), found, str(merged[0]), merged[1]).in_op(self.op_name)
        if merged is None:
            return None
        if plain is not None and holds_rows(self.equalities.terms, merged[1]):
            size = self.input(plain[0])[plain[1]]
            raise plain_meets(self._place(*plain), size, *merged).in_op(self.op_name)
        return merged[1]

    def _held(self, key: Key, axis: int) -> Term | None:
        axes = self._axes.get(self._inputs.position(key), ())
        return axes[axis] if axis < len(axes) else None

    def is_plain(self, key: Key) -> bool:
        """Return whether axes without rows in an input are known to be plain; False if its row spaces are
        undeclared.
        """
        axes = self._axes.get(self._inputs.position(key), ())
        return self.equalities.all_declared and not any(
            axis is not None and axis.kind == "variable" for axis in axes
        )

    def _place(self, key: Key, axis: int) -> InputAxis:
        name = self._inputs.names[self._inputs.position(key)]
        return InputAxis(name, axis, self.tensors.get(name))

    def broadcast_inputs(self, *keys: Key) -> tuple[PartialShape, Axes]:
        """Return the shape and the row spaces of an elementwise operation on these inputs, or on all.

        Sizes broadcast as in NumPy, but rows do not. In inputs with equally many axes, rows fit the same rows or a
        plain size. An input with fewer axes may have rows only on axes where the others have them.
        """
        return self.broadcast({key: self.input(key) for key in keys or range(self.num_inputs)})

    def broadcast(self, parts: Mapping[Key, PartialShape]) -> tuple[PartialShape, Axes]:
        """Do as `broadcast_inputs`, for the first dimensions of some inputs."""
        if any(shape.dimensions is None for shape in parts.values()):
            rows = self.merge_axes([(key, 0) for key in parts if self._held(key, 0) is not None])
            return PartialShape.dynamic(), () if rows is None else (rows,)
        rank = max(map(len, parts.values()), default=0)
        if not any(self._axes.get(self._inputs.position(key)) for key in parts):
            return PartialShape([self._repeated_size(parts, axis - rank) for axis in range(rank)]), ()
        with self._unchanged_on_error():
            found = [self._broadcast_axis(parts, axis - rank, rank) for axis in range(rank)]
        axes = [rows for rows, _ in found]
        while axes and axes[-1] is None:
            axes.pop()
        return PartialShape([size for _, size in found]), tuple(axes)

    def _repeated_size(self, parts: Mapping[Key, PartialShape], axis: int) -> Dimension:
        """Return the size of an axis without rows, counted from the end."""
        return reduce(partial(repeat_size, self.equalities, self.merge), _along(parts, axis))

    def _broadcast_axis(
        self, parts: Mapping[Key, PartialShape], axis: int, rank: int
    ) -> tuple[Term | None, Dimension]:
        """Return the row space and the size of an axis, counted from the end."""
        longest = [(key, shape) for key, shape in parts.items() if len(shape) == rank]
        opposite = any(
            self._held(key, axis + rank) is not None and shape[axis] != 1 for key, shape in longest
        )
        sizes = [
            size for size in _along(parts, axis) if size != 1
        ]  # a size of 1 is repeated, whatever rows it has
        found: list[tuple[Key, int]] = []
        for key, shape in parts.items():
            own = len(shape) + axis
            if own < 0:
                continue
            space = self._held(key, own)
            if space is not None and len(shape) < rank and space.is_rows and not opposite:
                unknown = self.equalities.terms.find(space).kind == "variable"
                other = next((one for one, size in longest if not unknown or size[axis] == 1), None)
                if other is not None and shape[axis] != 1:
                    if not unknown or not self.equalities.resolve(shape[axis]).may_be(1):
                        raise self._rows_broadcast(key, space, other)
                    self.merge(shape[axis], 1)
                continue
            found.append((key, own))
        same = all(size is sizes[0] or self._are_equal(sizes[0], size) for size in sizes[1:])
        unsure = [place for place in found if self._may_be_one_row(*place)]
        if same or (len(unsure) < len(found) and any(self._kind(*place) == "described" for place in found)):
            unsure = []  # rows of sequences are never repeated for the rows of their elements
        rows = self.merge_axes([place for place in found if place not in unsure], bool(sizes))
        result = self.results.get(0, self.op_name)
        if rows is None:  # undeclared rows that may be repeated: the result is undeclared, too
            name = f"{result}.shape[{axis + rank}]" if axis + rank else result
            made = self.equalities.terms.make("variable", name) if unsure else None
            return made, self._repeated_size(parts, axis)
        count = len(self.guards)
        if unsure:
            kept = {key: shape for key, shape in parts.items() if (key, len(shape) + axis) not in unsure}
            sizes = [size for size in _along(kept, axis) if size != 1]
        size = reduce(self.merge, sizes) if sizes else Dimension(1)
        if (
            not same and count == len(self.guards) and size.may_be(1)
        ):  # a single row must not be repeated for other rows
            origin = f"rows of the result, {' and '.join(str(self._place(*place)) for place in found)}"
            self.guards.append(Guard(size, Dimension.axis_of(result, axis + rank), origin, is_checked=False))
        return rows, size

    def _kind(self, key: Key, axis: int) -> str | None:
        rows = self._held(key, axis)
        return None if rows is None else self.equalities.terms.find(rows).kind

    def _are_equal(self, one: Dimension, other: Dimension) -> bool:
        return self.equalities.compare(one, other) is Comparison.EQUAL

    def _may_be_one_row(self, key: Key, axis: int) -> bool:
        """Return whether an axis is undeclared and may have size 1, so that it may be repeated."""
        rows, size = self._held(key, axis), self.input(key)[axis]
        is_open = rows is not None and self.equalities.terms.find(rows).kind == "variable"
        return is_open and size.is_dynamic and self.equalities.resolve(size).may_be(1)

    def _rows_broadcast(self, key: Key, rows: Term, other: Key) -> LodError:
        """Make the error for rows that would be repeated along an axis of another input."""
        mine, theirs = (self._inputs.names[self._inputs.position(one)] for one in (key, other))
        mine_shape, theirs_shape = self.input(key), self.input(other)
        return LodError(
            f"{mine} {mine_shape} holds {rows}, but {theirs} {theirs_shape} has {len(theirs_shape)} axes: "
            f"rows do not broadcast\n"
            f"  give each row its value with expand_dims({mine}, axis={len(mine_shape)}), or reshape one of them"
        ).in_op(self.op_name)

    # Making shapes

    def make_shape(self, dimensions: Iterable[DimensionLike]) -> PartialShape:
        """The shape of these dimensions."""
        return PartialShape(dimensions)

    def subshape(
        self, shape: PartialShape, start: int, end: int | None = None, stride: int = 1
    ) -> PartialShape:
        """Return the dimensions from `start` to before `end`, each counted from the end if negative.

        Without `end`, the last one in the direction of `stride` is included. A position beyond the rank counts as the
        rank. Raises ShapeError for a position before the first dimension, and for a start after the end.
        """
        if stride == 0:
            raise self._error("subshape: stride is 0, expected any other integer")
        if shape.dimensions is None:
            return shape if (start, end, stride) == (0, None, 1) else PartialShape.dynamic()
        rank = len(shape)
        first = self._clipped(shape, min(start, rank), "start")
        if stride < 0 and first == rank:
            first -= 1
        beyond = rank if stride > 0 else -1
        last = beyond if end is None else self._clipped(shape, min(end, rank), "end")
        if (last - first) * stride < 0:
            raise self._error(f"subshape: start {start} is after end {end} in {self._inputs.name_of(shape)}")
        return first_equal(PartialShape(shape.dimensions[i] for i in range(first, last, stride)), shape)

    def _clipped(self, shape: PartialShape, position: int, what: str) -> int:
        rank = len(shape)
        if position < -rank:
            raise self._error(
                f"subshape: {what} {position} is before the first dimension of {self._inputs.name_of(shape)}"
            )
        return position + rank if position < 0 else position

    def concatenate(self, *shapes: ShapeLike) -> PartialShape:
        """The dimensions of all shapes, one after another; `?` where one has unknown rank."""
        parts = [PartialShape.of(shape) for shape in shapes]
        if any(part.dimensions is None for part in parts):
            return PartialShape.dynamic()
        return PartialShape([dimension for part in parts for dimension in part])

    def replace_dim(self, shape: PartialShape, axis: int, dimension: DimensionLike) -> PartialShape:
        """Return the shape with another dimension at `axis`; `?` if the rank is unknown."""
        if shape.dimensions is None:
            return shape
        self.dim(shape, axis)
        dimensions = list(shape.dimensions)
        dimensions[axis] = Dimension.of(dimension)
        return PartialShape(dimensions)

    # Arithmetic on dimensions

    def add(self, left: DimensionLike, right: DimensionLike) -> Dimension:
        return Dimension.of(left) + right

    def subtract(self, left: DimensionLike, right: DimensionLike) -> Dimension:
        """Return the difference; raise ShapeError when it is negative."""
        return Dimension.of(left) - right

    def multiply(self, left: DimensionLike, right: DimensionLike) -> Dimension:
        return Dimension.of(left) * right

    def divide(self, left: DimensionLike, right: DimensionLike, evenly: bool) -> Dimension:
        """Return the quotient, rounded down unless it must be exact; raise ShapeError for a zero divisor."""
        left = Dimension.of(left)
        return left.divide_exactly(right) if evenly else left // right

    def min(self, left: DimensionLike, right: DimensionLike) -> Dimension:
        return Dimension.of(left).minimum(right)

    def max(self, left: DimensionLike, right: DimensionLike) -> Dimension:
        return Dimension.of(left).maximum(right)

    # Messages

    def _error(self, message: str, *lines: str) -> ShapeError:
        return self._inputs.error(message, *lines)

    def _wrong_rank(self, shape: PartialShape, expected: str) -> ShapeError:
        return self._error(f"{self._inputs.name_of(shape)} has rank {len(shape)}, expected {expected}")


def _along(parts: Mapping[Key, PartialShape], axis: int) -> list[Dimension]:
    """Return the sizes of an axis, counted from the end, in the shapes that have it."""
    return [shape[axis] for shape in parts.values() if len(shape) >= -axis]


def merge_shapes(
    left: PartialShape, right: PartialShape, inputs: InputShapes, equalities: Equalities, guards: Guards
) -> PartialShape:
    """Return the merged shape; raise ShapeError when the two cannot be the same."""
    if left is right:
        return left
    if left.dimensions is None or right.dimensions is None:
        guards.append(
            Guard(left, right, f"{inputs.op_name}: {inputs.name_of(left)} and {inputs.name_of(right)}")
        )
        return right if left.dimensions is None else left
    if len(left) != len(right):
        raise inputs.error(
            f"{inputs.name_of(left)} has rank {len(left)} but {inputs.name_of(right)} has rank {len(right)}, "
            "expected the same shape"
        )
    dimensions = [
        merge_dimensions(a, b, inputs, equalities, guards)
        for a, b in zip(left.dimensions, right.dimensions, strict=True)
    ]
    return first_equal(PartialShape(dimensions), left, right)


def merge_dimensions(
    left: Dimension, right: Dimension, inputs: InputShapes, equalities: Equalities, guards: Guards
) -> Dimension:
    """Return the merged size; raise ShapeError when the two cannot be the same."""
    if left.is_static and left == right:
        return left
    answer = equalities.compare(left, right)
    if answer is Comparison.EQUAL:
        # equal sizes may have different bounds: the merged size has both
        merged = equalities.resolve(left).merge(equalities.resolve(right))
        return left if merged == equalities.resolve(left) else merged
    places = inputs.place_of(left), inputs.place_of(right)
    if answer is Comparison.UNEQUAL:
        found = " but ".join(_is(place, size) for place, size in zip(places, (left, right), strict=True))
        raise inputs.error(f"{found}, expected equal sizes", *equalities.explain(left, right))
    origin = f"{inputs.op_name}: {places[0] or left} and {places[1] or right}"
    try:
        merged = equalities.equate(left, right, origin)
    except ShapeError as error:
        raise inputs.error(f"{left} cannot be {right}: {error}") from None
    guards.append(Guard(left, right, origin))
    return merged


def first_equal(result: PartialShape, *shapes: PartialShape) -> PartialShape:
    """Return the first of `shapes` that equals the result, else the result: equal shapes are not copied."""
    return next((shape for shape in shapes if shape == result), result)


def _is(place: str | None, size: Dimension) -> str:
    return f"{place} is {size}" if place else str(size)


Merge = Callable[[Dimension, Dimension], Dimension]
"""Function that returns all that is known of two sizes that must be the same."""


def repeat_size(equalities: Equalities, merge: Merge, left: Dimension, right: Dimension) -> Dimension:
    """Return the size of an axis without rows; if one of the two may be 1, it covers both outcomes."""
    a, b = equalities.resolve(left), equalities.resolve(right)
    if a == 1 or b == 1:
        return right if a == 1 else left
    if a.compare(b) is Comparison.EQUAL:
        return left
    return a.broadcast_merge(b) if a.may_be(1) or b.may_be(1) else merge(left, right)
