"""What inference says of a net, drawn over all ops, holds when the net runs."""

from collections import defaultdict

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.nets import INPUTS, LIMITS, WEIGHTS, grow

import seqflow as sf
from seqflow.shape.terms import Term

NETS = 50 if settings.default.max_examples < 200 else 1000


@given(st.randoms(use_true_random=False))
@settings(max_examples=NETS)
def test_inference_holds_in_execution(random):
    grown = grow(random, random.randint(1, 6))
    if not grown.lines:
        return
    net = grown.net(grown.text)
    inferred = net.infer(INPUTS, LIMITS)
    for record in grown.records:
        try:
            with np.errstate(all="ignore"):
                result = sf.run(net, record)
        except sf.SeqflowError:  # sizes, or lengths, that it takes to be equal are not
            continue
        check(inferred, {**record.tensors, **WEIGHTS, **result}, record.num_rows)


def check(inferred, tensors, rows):
    held = {name: spec for name, spec in inferred.specs.items() if name in tensors}
    for name, spec in held.items():
        array = tensors[name]
        of_any_width = spec.dtype.itemsize == 0 and array.dtype.kind == spec.dtype.kind
        assert array.dtype == spec.dtype or of_any_width, name
        assert spec.shape.dimensions is None or len(spec.shape.dimensions) == array.ndim, name
        for size, dim in zip(array.shape, spec.shape.dimensions or (), strict=False):
            known = dim.computed(lambda atom: size_of(atom, tensors, rows))
            assert known in (None, size), f"{name}: {dim} is {known}, found {size}"
            assert dim.may_be(size), f"{name}: {dim} is {size}"
        if name in inferred.longest and array.size:
            assert array.max() <= inferred.longest[name], name
        bound = inferred.byte_bounds.get(name)
        assert bound is None or array.nbytes <= bound, name
    for name, parent in inferred.parents(held).items():
        assert parent is None or len(tensors[name]) == tensors[parent].sum(), (
            f"{parent} does not describe {name}"
        )
    check_terms(inferred.rows, tensors)


def size_of(atom, tensors, rows):
    if atom.tensor is None:
        return rows if str(atom) == "B" else None
    array = tensors.get(atom.tensor)
    if array is None:
        return None
    if atom.axis is not None:
        return array.shape[atom.axis]
    return {
        "sum": lambda: int(array.sum()),
        "max": lambda: int(array.max(initial=0)),
        "len": lambda: len(array),
    }[atom.kind]()


def check_terms(known, tensors):
    """Tensors of one value are equal, and axes that hold the same rows have as many."""
    values, sizes = defaultdict(list), defaultdict(list)
    for name, term in known.terms.values.items():
        if name in tensors:
            values[known.terms.find(term)].append(name)
    for term, names in values.items():
        for name in names[1:]:
            np.testing.assert_array_equal(
                tensors[name], tensors[names[0]], f"{name} and {names[0]} are {term}"
            )
    for name, spec in known.specs.items():
        for axis, held in enumerate(spec.axes):
            if name in tensors and isinstance(held, Term) and held.is_rows:
                sizes[known.terms.find(held)].append((name, axis, tensors[name].shape[axis]))
    for term, found in sizes.items():
        assert len({size for *_, size in found}) == 1, f"{term}: {found}"
    counts = {term: found[0][-1] for term, found in sizes.items()}
    for name, spec in known.specs.items():
        if name in tensors and isinstance(spec.points, Term):
            check_points(known.terms, name, tensors[name], spec.points, counts, tensors)


def check_points(terms, name, array, points, counts, tensors):
    """Integers are inside what they point at; -1 is none, and ranges and offsets may end where the rows do."""
    if points.kind == "positions":
        lengths = [one.tensor for one in terms.members(points.args[0]) if one.tensor in tensors]
        most = int(tensors[lengths[0]].max(initial=0)) - 1 if lengths else None
    else:
        most = counts.get(terms.find(points))
    if most is not None and array.size:
        assert -1 <= array.min() <= array.max() <= max(most, 0), f"{name} is no index of {points}"
