"""Broadcasting where sizes may be 1: what is inferred holds for every run, and no run is refused that NumPy takes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow import TensorSpec
from seqflow.shape import Dimension

NETS = ("y = a + b", "y = where(a > b, a, b)", "c = a * b\ny = c - a", "y = (a + 1) * b\nz = y + b")


@st.composite
def dimensions(draw, size):
    """Dimensions that may be this size."""
    low, more = max(size - draw(st.integers(0, 2)), 0), draw(st.integers(0, 2))
    return draw(
        st.sampled_from(
            [Dimension(size), Dimension(low, size + more), Dimension(low, None), Dimension.symbol(f"N{size}")]
        )
    )


@st.composite
def operands(draw):
    """Arrays of up to two axes of sizes 0 to 3, and specs that they fit."""
    arrays, specs = {}, {}
    for name in "ab":
        shape = draw(st.lists(st.sampled_from([0, 1, 1, 2, 3]), min_size=1, max_size=2))
        arrays[name] = np.ones(shape, np.float32)
        specs[name] = TensorSpec("float32", [draw(dimensions(size)) for size in shape])
    return arrays, specs


def evaluated(dimension, tensors):
    """The size in a run; None where it is not said."""
    sizes = {f"{name}.shape[{axis}]": n for name, one in tensors.items() for axis, n in enumerate(one.shape)}
    return dimension.evaluate(sizes | {f"N{n}": n for n in range(4)})


@given(drawn=operands(), text=st.sampled_from(NETS))
def test_what_runs_fits_what_was_inferred(drawn, text):
    arrays, specs = drawn
    net = sf.Net(text)
    try:
        inferred = net.infer(specs)
    except sf.SeqflowError:
        with pytest.raises(sf.SeqflowError):
            sf.run(net, arrays)
        return
    try:
        tensors = {**arrays, **sf.run(sf.Net(f"{text}\nreturn {', '.join(net.assigned)}"), arrays)}
    except sf.SeqflowError:
        return
    for name, array in tensors.items():
        spec, most = inferred.specs[name], inferred.byte_bounds[name]
        assert spec.shape.relaxes(sf.PartialShape(array.shape)), name
        assert most is None or array.nbytes <= most, name
        for dimension, size in zip(spec.shape, array.shape, strict=True):
            assert evaluated(dimension, tensors) in (None, size), f"{name}: {dimension}"
    for guard in inferred.guards:
        sides = {evaluated(guard.left, tensors), evaluated(guard.right, tensors)}
        assert None in sides or len(sides) == 1, guard
