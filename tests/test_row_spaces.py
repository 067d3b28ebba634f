"""What every op promises of rows: permuting a row space that inference proves permutes the outputs that have it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.calls import calls
from test_every_op import OPS, results

from seqflow import LoD, Sequence, TensorSpec, auto
from seqflow.carrying.rule import brought_lengths, gives_sequence
from seqflow.signature import Described, OwnRows, Repeated
from seqflow.signature.language import AtLeast, Name, Rest, Sum

GIVES_POSITIONS = {"lengths_to_ranges", "lengths_to_segment_ids"}
"""Ops whose outputs point at rows: where rows move, so do the positions."""
PACKED_BY_ANOTHER = {"boolean_unmask"}
"""Ops with an input whose rows another one picks, so that it would have to be permuted by that one's values."""

EXAMPLES = settings.default.max_examples // 4
"""For each op and claim: there are many of both."""
every_op = pytest.mark.parametrize("op", OPS, ids=[op.name for op in OPS])
every_op_that_moves_with_rows = pytest.mark.parametrize(
    "op",
    [
        op
        for op in OPS
        if not any(attribute.name == "seed" for attribute in op.attributes)
        and op.name not in GIVES_POSITIONS | PACKED_BY_ANOTHER
    ],
    ids=lambda op: op.name,
)


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
    if above is None:
        return None
    lengths = tensors[rows.by].astype(np.int64)
    starts = np.cumsum(lengths) - lengths
    return np.concatenate([np.zeros(0, int), *(np.arange(starts[i], starts[i] + lengths[i]) for i in above)])


@every_op_that_moves_with_rows
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_proven_row_spaces_are_true_under_permutation(op, data):
    inputs, attributes = data.draw(calls(op))
    space = Space(op, inputs)
    specs = space.each(inputs, lambda label, array: TensorSpec.of(array, space.rows.get(label)))
    specs = {name: spec_of(value) for name, value in specs.items() if value is not None}
    outputs = op.infer(specs, attributes, values={k: v for k, v in inputs.items() if v is not None}).outputs
    names = [f"{op.name}.{name}" for name in op.tensor_names(attributes)]
    before = results(op, inputs, attributes)
    tensors = {**space.tensors, **dict(zip(names, before, strict=True))}
    spaces = {**space.rows, **dict(zip(names, (spec.rows for spec in outputs), strict=True))}
    for base in space.bases:
        order = np.array(data.draw(st.permutations(range(space.size(base)))), int)
        orders = {label: order_of(rows, base, order, spaces, tensors) for label, rows in spaces.items()}
        if all(orders[name] is None for name in names):
            continue

        def permute(label, array, orders=orders, base=base, order=order):
            moved = array if orders.get(label) is None else array[orders[label]]
            return space.permuted(label, moved, base, order)

        permuted = space.each(inputs, permute)
        for name, old, new in zip(names, before, results(op, permuted, attributes), strict=True):
            if orders[name] is not None:
                assert_same(new, old[orders[name]])


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


@every_op_that_moves_with_rows
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_a_carried_lod_is_true_under_permutation(op, data):
    inputs, attributes = data.draw(calls(op))
    space = Space(op, inputs)
    if not space.bases:
        return
    outer = draw_outer(data, space)
    given_ = with_lods(op, space, inputs, outer)
    before = call(op, given_, attributes)
    base = data.draw(st.sampled_from(space.bases))
    order = np.array(data.draw(st.permutations(range(len(outer[base])))), int)

    rows = order_of(Described("outer"), base, order, {"outer": base}, {"outer": outer[base]})

    def permute(label, value):
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
    after = call(op, space.each(given_, permute), attributes)
    for old, new in zip(before, after, strict=True):
        if isinstance(old, Sequence) and is_above(old.lod):
            expected = old[list(order)]
            assert new.lod == expected.lod
            assert_same(new.values, expected.values)
