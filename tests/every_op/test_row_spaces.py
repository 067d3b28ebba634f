"""What every op promises of rows: permuting a row space that inference proves permutes the outputs that have it."""

from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import numpy as np
import pytest
from claimed import blocks
from every_op import EXAMPLES, each_fourth_op, results
from hypothesis import given, settings
from hypothesis import strategies as st
from row_spaces import Space, call, with_lods
from strategies.calls import calls

from seqflow import LoD, Sequence, TensorSpec
from seqflow.ops.shared import random_bits
from seqflow.shape import Equalities
from seqflow.signature import Described
from seqflow.signature.language import Name, Rest, Sum
from seqflow.signature.rows import declare, name_outputs


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


BY_ORDER = {"distinct_sequences", "first_of_equal", "group_order", "prefix_tree"} | {
    "route_topk",
    "positions_by_id",
    "tree_paths",
    "unroute",
}
"""Ops whose rows keep their places, but whose values count, or name, the rows before them."""


@pytest.mark.slow
@each_fourth_op(1)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_proven_row_spaces_are_true_under_permutation(op, data):
    if op.name in BY_ORDER:
        return
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


def draw_outer(data, space):
    """A level of lengths above each base."""
    outer = {}
    for base in space.bases:
        cuts = data.draw(st.lists(st.integers(0, space.size(base)), max_size=2).map(sorted))
        outer[base] = np.diff([0, *cuts, space.size(base)])
    return outer


@pytest.mark.slow
@each_fourth_op(2)
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


@pytest.mark.slow
@each_fourth_op(3)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_a_carried_lod_is_true_under_permutation(op, data):
    inputs, attributes = data.draw(calls(op))
    space = Space(op, inputs)
    if not space.bases or op.name in BY_ORDER:
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
            values = on_further_axes(one.argument, expected.values, space.names, base, rows)
            assert_same(
                pointed(op, one.argument, new.values, space, orders),
                pointed(op, one.argument, values, space, None),
            )


def on_further_axes(argument, values, bases, base, rows):
    """Values whose further axes hold the same rows, such as `w_hh[H, H]`, in the order of these rows there, too."""
    if any(isinstance(dim, Rest) for dim in argument.dims):
        return values  # the numbers of its axes are not known
    for axis, dim in enumerate(argument.dims[1:], 1):
        if isinstance(dim, Name) and bases.get(dim.name) == base:
            values = values.take(rows, axis)
    return values
