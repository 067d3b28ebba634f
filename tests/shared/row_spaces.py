"""The rows that the inputs of a call hold, and what `auto` is given for them."""

import numpy as np
from claimed import name_axes, size_name
from hypothesis import reject

from seqflow import LoD, LodError, Sequence, TensorSpec, auto
from seqflow.lod_propagation.rule import brought_lengths, gives_sequence
from seqflow.signature import Described, OwnRows, Repeated
from seqflow.signature.language import Arithmetic, AtLeast, Max, Name, Rest, Sum, parts
from seqflow.signature.rows import declare

PACKED = {"boolean_unmask": {"values": "mask"}}
"""The inputs of ops with the rows that a mask is the first to select."""


POINTING = {("scatter_inside", "ids"): "S", ("segment_counts", "ids"): "S"}
"""Inputs of ops that point at rows, or at none: their dtype word cannot say so."""


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
        parted = {
            part.name
            for argument in op.signature.input_arguments
            for dim in argument.dims
            if isinstance(dim, Arithmetic)
            for part in parts(dim)
            if isinstance(part, Name)
        }
        self.bases = [base for name, base in bases.items() if name not in parted]
        """Those of which no axis holds several, as that of `h0[B, 2*H]` does: nobody could permute it."""
        self.names = bases
        self.packed = {}
        """The rows that an input holds because masks pick them: where they are true and no mask before them is."""
        for name, mask in PACKED.get(op.name, {}).items():
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
        """The array with every axis of the base's name but the first in another order; and what points at the base."""
        argument = self.arguments[label.partition("[")[0]]
        points = str(argument.dtype.points) if argument.dtype.word == "index" else None
        if len(order) and base.origin in (points, POINTING.get((self.op.name, argument.name))):
            inside = (array >= 0) & (array < len(order))
            array = np.where(inside, np.argsort(order)[np.where(inside, array, 0)], array).astype(array.dtype)
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
    try:
        result = (
            function(*next(iter(inputs.values())), **attributes)
            if op.variadic
            else function(**inputs, **attributes)
        )
    except LodError as error:
        # arrays that would repeat the rows of a Sequence are refused; the ops themselves take them
        if "has a size of 1 there: rows do not broadcast" in str(error):
            reject()
        raise
    if gives_sequence(op):
        outer = result.lod[:-1]
        return [result, Sequence(result.lengths, LoD(*outer)) if outer else result.lengths]
    found = tuple(result) if op.result else (result,) if op.output_names else ()
    return [one for item in found for one in (item if isinstance(item, list) else [item])]
