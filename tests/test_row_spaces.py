"""What every op promises of rows: permuting a row space that inference proves permutes the outputs that have it."""

from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from claimed import blocks, name_axes, size_name
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.calls import calls
from test_every_op import OPS, results

from seqflow import LoD, Sequence, TensorSpec, auto
from seqflow.carrying.rule import brought_lengths, gives_sequence
from seqflow.ops.shared import random_bits
from seqflow.shape import Equalities
from seqflow.signature import Described, OwnRows, Repeated
from seqflow.signature.declared import declare
from seqflow.signature.language import AtLeast, Max, Name, Rest, Sum
from seqflow.signature.rows import name_outputs

EXAMPLES = settings.default.max_examples // 4
"""For each op and claim: there are many of both."""
every_op = pytest.mark.parametrize("op", OPS, ids=[op.name for op in OPS])


@contextmanager
def same_draws(op):
    """Let an op that draws by the place of a sequence draw the same for all of them."""
    with ExitStack() as patched:
        for module in (random_bits.__dict__, op.function.__globals__):
            if "sequence_bits" in module:
                patched.enter_context(
                    patch.dict(
                        module, sequence_bits=lambda seed, count, first=0: np.full(count, np.uint64(seed))
                    )
                )
        yield


class Space:
    """The row spaces of one call: what each input's axis 0 stands for.

    Rows that a name stands for are a base; rows that lengths describe follow those lengths. Where the signature
    leaves the rank open, inputs `x[*_]` and `y[*_]` with the most axes, and of these the most rows, are taken to have
    the same ones; of others the first has rows, where it has the most, all that are batches, and integers that point
    at rows.
    """

    def __init__(self, op, inputs):
        self.op = op
        self.arguments = {argument.name: argument for argument in op.signature.input_arguments}
        listed = {
            a.name for item in op.signature.inputs if isinstance(item, Repeated) for a in item.arguments
        }
        self.tensors = {}
        self.rows = {}
        bases = {}
        open_inputs = []
        for argument in op.signature.input_arguments:
            value = inputs.get(argument.name)
            for i, one in enumerate(value if isinstance(value, (list, tuple)) else [value]):
                if one is None or not np.ndim(one):
                    continue
                label = f"{argument.name}[{i}]" if argument.name in listed else argument.name
                self.tensors[label] = np.asarray(one)
                match argument.dims[:1]:
                    case (Sum(of=of),):
                        self.rows[label] = Described(f"{of}[{i}]" if of in listed else of)
                    case (Name(name=name),) | (AtLeast(name=name),):
                        self.rows[label] = bases.setdefault(name, OwnRows(name))
                    case (Rest(),) if argument.dtype.word == "int":
                        self.rows[label] = bases.setdefault(label, OwnRows(label))
                    case (Rest(name=name),):
                        open_inputs.append((label, name))
        sizes = [(self.tensors[label].ndim, len(self.tensors[label])) for label, _ in open_inputs]
        for (label, name), size in zip(open_inputs, sizes, strict=True):
            if size == max(sizes) and (name == "_" or label == open_inputs[0][0] or size[0] > 2):
                self.rows[label] = bases.setdefault("*", OwnRows("*"))
        self.bases = list(bases.values())
        self.names = bases
        self.packed = {}
        """The rows that an input holds because masks pick them: where they are true and no mask before them is."""
        for name, mask in op.claims.packed.items():
            free = np.ones(len(self.tensors[f"{mask}[0]"]), bool)
            for i in range(len(inputs[mask])):
                self.packed[f"{name}[{i}]"] = self.rows[f"{mask}[{i}]"], free & self.tensors[f"{mask}[{i}]"]
                free &= ~self.tensors[f"{mask}[{i}]"]

    def spec(self, label, array, terms, side):
        """The spec of an input, with the rows that its axes hold: bases on all axes of their name, and padded steps."""
        argument = self.arguments[label.partition("[")[0]]
        axes = [None] * array.ndim
        for axis, dim in name_axes(argument, array):
            if isinstance(dim, AtLeast) and isinstance(dim.bound, Max):
                axes[axis] = terms.steps(terms.value(dim.bound.of), side)
            elif size_name(dim) in self.names:
                axes[axis] = self.names[size_name(dim)]
        if array.ndim:
            axes[0] = self.rows.get(label, axes[0]) if axes[0] is None or axes[0] in self.bases else axes[0]
        return declare(TensorSpec(array.dtype, array.shape, axes=axes), terms)

    def size(self, base):
        return next(len(self.tensors[label]) for label, rows in self.rows.items() if rows == base)

    def permuted(self, label, array, base, order):
        """The array with every axis of the base's name but the first in another order."""
        argument = self.arguments[label.partition("[")[0]]
        for i, dim in enumerate(argument.dims[1:], 1):
            if getattr(dim, "name", None) == base.origin and not isinstance(dim, Rest):
                behind = argument.rest is not None and i > argument.rest
                array = np.take(array, order, i - len(argument.dims) if behind else i)
        return array

    def each(self, inputs, change):
        """The inputs with `change(label, array)` for those that have rows."""
        changed = {}
        for name, value in inputs.items():
            if isinstance(value, (list, tuple)):
                changed[name] = [
                    change(f"{name}[{i}]", one) if f"{name}[{i}]" in self.tensors else one
                    for i, one in enumerate(value)
                ]
            else:
                changed[name] = change(name, value) if name in self.tensors else value
        return changed


def order_of(rows, base, order, spaces, tensors):
    """Where each row comes from when the base is put in this order; None for rows that do not follow it."""
    if rows == base:
        return order
    if not isinstance(rows, Described):
        return None
    above = order_of(spaces.get(rows.by), base, order, spaces, tensors)
    return None if above is None else blocks(above, tensors[rows.by])


class Orders:
    """Where the rows of each space come from when a base is put in another order, by the terms of inference."""

    def __init__(self, terms, axes, base, order):
        self.terms = terms
        self.axes = axes
        """Whose rows the axes of each tensor hold."""
        self.base = base
        self.order = order
        self.before = {}
        """All tensors of the call, and below those of the call with rows in the new order."""
        self.after = {}

    def follows(self, term):
        """Whether a space is made of the base."""
        return any(
            one.data == self.base if one.kind == "rows"
            else self.lengths_follow(one.args[0]) if one.kind == "described"
            else one.kind == "select" and self.follows(one.args[0])
            for one in self.terms.members(term)
        )  # fmt: skip

    def lengths_follow(self, value):
        tensors = [one.tensor for one in self.terms.members(value) if one.tensor in self.axes]
        return any(axis is not None and self.follows(axis) for one in tensors for axis in self.axes[one][:1])

    def of(self, term):
        """The order of a space; None where it follows no base. Terms that are equal say the same."""
        found = [order for one in self.terms.members(term) if (order := self.of_one(one)) is not None]
        for other in found[1:]:
            np.testing.assert_array_equal(found[0], other, f"{term} has two orders")
        return found[0] if found else None

    def of_one(self, term):
        if term.kind == "rows":
            return self.order if term.data == self.base else None
        if term.kind == "described":
            tensor = self.tensor(term.args[0])
            axes = self.axes.get(tensor)
            above = self.of(axes[0]) if axes and axes[0] is not None else None
            return None if above is None else blocks(above, self.before[tensor])
        if term.kind == "select":
            rows, by = self.of(term.args[0]), self.tensor(term.args[1])
            if rows is None or by is None:
                return None
            return picked(rows, self.before[by], self.after[by])
        return None

    def tensor(self, value):
        """A tensor that has this value."""
        names = [one.tensor for one in self.terms.members(value) if one.tensor in self.before]
        for name in names[1:]:
            np.testing.assert_array_equal(
                self.before[name], self.before[names[0]], f"{name} is not {names[0]}"
            )
        return names[0] if names else None


def picked(rows, by, by_after):
    """Where the rows that a mask, or indices, pick come from, when the rows they pick from are put in an order."""
    old, new = np.arange(len(rows))[by], rows[by_after]
    return np.array([np.flatnonzero(old == row)[0] for row in new], int)


@every_op
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_proven_row_spaces_are_true_under_permutation(op, data):
    inputs, attributes = data.draw(calls(op))
    space = Space(op, inputs)
    known = Equalities()
    side = attributes.get("side", "right")
    specs = space.each(inputs, lambda label, array: space.spec(label, array, known.terms, side))
    specs = {name: spec_of(value) for name, value in specs.items() if value is not None}
    values = {k: v for k, v in inputs.items() if v is not None}
    known.all_declared = False  # some inputs have no rows where others have
    outputs = op.infer(specs, attributes, values=values, equalities=known).outputs
    names = [f"{op.name}.{name}" for name in op.result_names(attributes)]
    named = name_outputs(op.signature, names)
    axes = {label: flat_specs(specs)[label].axes for label in space.tensors} | {
        name: spec.axes for name, spec in zip(names, outputs, strict=True)
    }
    with same_draws(op):
        before = results(op, inputs, attributes)
        for base in space.bases:
            order = np.array(data.draw(st.permutations(range(space.size(base)))), int)
            moved = permuted_call(space, inputs, base, order)
            orders = Orders(known.terms, axes, base, order)
            if not any(axis is not None and orders.follows(axis) for name in names for axis in axes[name]):
                continue
            after = results(op, moved, attributes)
            orders.before = {**space.tensors, **dict(zip(names, before, strict=True))}
            orders.after = {**flat(space, moved), **dict(zip(names, after, strict=True))}
            for one, old, new in zip(named, before, after, strict=True):
                held = [None if axis is None else orders.of(axis) for axis in axes[one.tensor]]
                pairs = list(zip(axes[one.tensor], held, strict=True))
                makes_rows = any(axis is not None and axis.is_rows and rows is None for axis, rows in pairs)
                if makes_rows or all(rows is None for rows in held):
                    continue
                for i, axis in enumerate(held):
                    old = old if axis is None else np.take(old, axis, i)
                assert_same(
                    pointed(op, one.argument, new, space, orders), pointed(op, one.argument, old, space, None)
                )


def permuted_call(space, inputs, base, order):
    """The inputs with the rows of a base in another order, and with them all that these rows describe."""
    orders = {
        label: order_of(rows, base, order, space.rows, space.tensors) for label, rows in space.rows.items()
    }

    def permute(label, array):
        if label in space.packed and space.packed[label][0] == base:
            mask = space.packed[label][1]
            return array[picked(order, mask, mask[order])]
        moved = array if orders.get(label) is None else array[orders[label]]
        return space.permuted(label, moved, base, order)

    return space.each(inputs, permute)


RANGES = {("lengths_to_ranges", "ranges"): Sum("lengths")}
"""Outputs of which each row is a start and a length."""


def pointed(op, argument, values, space, orders):
    """An output that holds numbers of rows as the rows these were before they moved; all others as they are.

    Starts and lengths are the rows from the start on, one list for each.
    """
    ranges = RANGES.get((op.name, argument.field))
    of = ranges or argument.dtype.points
    rows = Described(of.of) if isinstance(of, Sum) else space.names.get(str(of))
    if rows is None or argument.dtype.word == "position":
        return values
    moved = None
    if orders is not None:
        moved = orders.of(declare_rows(rows, orders.terms))
    if ranges is None:
        return values if moved is None else np.append(moved, -1)[values]  # -1 is none
    starts = [np.arange(start, start + length) for start, length in values]
    found = [rows if moved is None else moved[rows] for rows in starts]
    return np.concatenate([np.zeros(0, np.int64), *(np.append(rows, -1) for rows in found)])


def declare_rows(rows, terms):
    return declare(TensorSpec("int64", [0], rows), terms).axes[0]


def flat_specs(specs):
    """All specs by the labels of the tensors."""
    return {
        label: spec
        for name, value in specs.items()
        for label, spec in (
            [(f"{name}[{i}]", one) for i, one in enumerate(value)]
            if isinstance(value, list)
            else [(name, value)]
        )
    }


def flat(space, inputs):
    """The tensors of a call by their labels."""
    by_label = flat_specs(inputs)
    return {label: np.asarray(by_label[label]) for label in space.tensors}


def spec_of(value):
    if isinstance(value, (list, tuple)):
        return [one if isinstance(one, TensorSpec) else TensorSpec.of(np.asarray(one)) for one in value]
    return value if isinstance(value, TensorSpec) else TensorSpec.of(np.asarray(value))


def assert_same(new, old):
    assert new.dtype == old.dtype
    if new.dtype.kind == "f":
        np.testing.assert_allclose(new, old, rtol=1e-5, atol=1e-6)
    else:
        np.testing.assert_array_equal(new, old)


def with_lods(op, space, inputs, outer):
    """The call of `auto`: Sequences for rows that are divided, a LoD for lengths that stay."""
    brought = brought_lengths(op)

    def lod_of(rows):
        if rows in outer:
            return (outer[rows],)
        if isinstance(rows, Described):
            return (*lod_of(space.rows.get(rows.by)), space.tensors[rows.by])
        return ()

    def carry(label, array):
        argument = label.partition("[")[0]
        levels = lod_of(space.rows.get(label))
        if argument in lengths:
            return LoD(*levels, array)
        return Sequence(array, LoD(*levels)) if levels else array

    lengths = {a.name for a in op.signature.input_arguments if a.is_lengths}
    carried = space.each(inputs, carry)
    return {name: value for name, value in carried.items() if name not in brought}


def call(op, inputs, attributes):
    function = getattr(auto, op.name)
    result = (
        function(*next(iter(inputs.values())), **attributes)
        if op.variadic
        else function(**inputs, **attributes)
    )
    if gives_sequence(op):
        outer = result.lod[:-1]
        return [result, Sequence(result.lengths, LoD(*outer)) if outer else result.lengths]
    found = tuple(result) if op.result else (result,) if op.output_names else ()
    return [one for item in found for one in (item if isinstance(item, list) else [item])]


def draw_outer(data, space):
    """A level of lengths above each base."""
    outer = {}
    for base in space.bases:
        cuts = data.draw(st.lists(st.integers(0, space.size(base)), max_size=2).map(sorted))
        outer[base] = np.diff([0, *cuts, space.size(base)])
    return outer


@every_op
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_an_op_of_auto_gives_what_the_explicit_op_gives(op, data):
    inputs, attributes = data.draw(calls(op))
    space = Space(op, inputs)
    explicit = results(op, inputs, attributes)
    carried = call(op, with_lods(op, space, inputs, draw_outer(data, space)), attributes)
    for ours, plain in zip(carried, explicit, strict=True):
        values = ours.values if isinstance(ours, Sequence) else ours
        assert values.dtype == plain.dtype
        np.testing.assert_array_equal(values, plain)
        if isinstance(ours, Sequence):
            LoD(*ours.lod)  # every level adds up
            assert ours.lod.num_rows == len(plain)


@every_op
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_a_carried_lod_is_true_under_permutation(op, data):
    inputs, attributes = data.draw(calls(op))
    space = Space(op, inputs)
    if not space.bases:
        return
    outer = draw_outer(data, space)
    given_ = with_lods(op, space, inputs, outer)
    with same_draws(op):
        before = call(op, given_, attributes)
    base = data.draw(st.sampled_from(space.bases))
    order = np.array(data.draw(st.permutations(range(len(outer[base])))), int)

    rows = order_of(Described("outer"), base, order, {"outer": base}, {"outer": outer[base]})

    def permute(label, value):
        if label in space.packed and space.packed[label][0] == base:
            mask = space.packed[label][1]
            return value[picked(rows, mask, mask[rows])]
        if isinstance(value, LoD):
            return Sequence(np.zeros(value.num_rows), value)[list(order)].lod if is_above(value) else value
        if isinstance(value, np.ndarray):
            return space.permuted(label, value, base, rows)
        moved = Sequence(space.permuted(label, value.values, base, rows), value.lod)
        return moved[list(order)] if is_above(value.lod) else moved

    def is_above(lod):
        return np.array_equal(lod[0], outer[base])

    if not any(isinstance(one, Sequence) and is_above(one.lod) for one in before):
        return
    others = [*outer.values(), *space.tensors.values(), *results(op, inputs, attributes)]
    if sum(np.array_equal(one, outer[base]) for one in others) > 1:
        return  # the outer level cannot be told from another, or from lengths of the call
    with same_draws(op):
        after = call(op, space.each(given_, permute), attributes)
    named = name_outputs(op.signature, op.tensor_names(attributes))
    orders = Orders(Equalities().terms, {}, base, rows)
    orders.before, orders.axes = (
        space.tensors,
        {
            label: declare(TensorSpec("int64", [0], held), orders.terms).axes
            for label, held in space.rows.items()
        },
    )
    for one, old, new in zip(named, before, after, strict=True):
        if isinstance(old, Sequence) and is_above(old.lod):
            expected = old[list(order)]
            assert new.lod == expected.lod
            assert_same(
                pointed(op, one.argument, new.values, space, orders),
                pointed(op, one.argument, expected.values, space, None),
            )
