"""Ops of users with sizes computed from others: inference of static sizes and calls accept the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow import TensorSpec, registry

SIZES = (
    "N",
    "M",
    "2*N",
    "N+1",
    "4*M",
    "N//2",
    "M//N",
    "N*M",
    "k",
    "h|N",
    "N+k",
    "M-1",
    "len(mask)",
    "3",
    "*d",
)


@st.composite
def signatures(draw):
    """Inputs of one or two axes, and one output."""
    axes = st.lists(st.sampled_from(SIZES), min_size=1, max_size=2).filter(lambda dims: dims != ["*d", "*d"])
    inputs = [draw(axes) for _ in range(draw(st.integers(1, 4)))]
    text = ", ".join(f"x{i}[{', '.join(dims)}]" for i, dims in enumerate(inputs))
    return f"{text} -> y[{', '.join(inputs[0])}]", [len(dims) for dims in inputs]


def declared(text, count):
    """An op with this signature, which gives its first input back."""
    names = ", ".join(f"x{i}" for i in range(count))
    scope = {}
    exec(
        f"def drawn({names}, *, k: int | None = None, h: int | None = None, mask: list[int] = ()):\n    return x0",
        scope,
    )
    return sf.op(text)(scope["drawn"])


@given(drawn=signatures(), data=st.data())
def test_inference_and_calls_accept_the_same_sizes(drawn, data):
    text, ranks = drawn
    sizes = st.integers(0, 5)
    inputs = {
        f"x{i}": np.zeros(data.draw(st.lists(sizes, min_size=rank, max_size=rank)))
        for i, rank in enumerate(ranks)
    }
    attributes = {name: data.draw(st.none() | sizes) for name in "kh"} | {
        "mask": data.draw(st.lists(sizes, max_size=3))
    }
    call = declared(text, len(ranks))
    try:
        specs = {name: TensorSpec.of(array) for name, array in inputs.items()}
        try:
            (spec,) = registry.get("drawn").infer(specs, attributes).outputs
        except sf.SeqflowError:
            with pytest.raises(sf.SeqflowError):
                call(**inputs, **attributes)
        else:
            result = call(**inputs, **attributes)
            assert spec.shape.relaxes(sf.PartialShape(result.shape))
    finally:
        registry.unregister("drawn")


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        (
            "a[N]?, b[N] -> y[N]",
            r"a is optional, inputs after it are required\n  write b\[N\], a\[N\]\?",
        ),
        ("b[N], a[N]?, {c[N]}+ -> y[N]", "a is optional, inputs after it"),
        ("b[N], {c[N]?}+ -> y[N]", "c is in a list, or an output: neither is optional"),
        ("b[N] -> y[N]?", "y is in a list, or an output: neither is optional"),
    ],
)
def test_optional_inputs_stand_last(signature, message):
    def returned(*inputs):
        return inputs

    with pytest.raises(sf.OpError, match=message):
        sf.op(signature)(returned)


@pytest.mark.parametrize("mask", [[], [1], [1, 2, 3]])
def test_results_of_len_of_a_list_are_checked(mask):
    @sf.op("x[N] -> y[N, len(mask)]")
    def of_width_two(x, *, mask: list[int]):
        """Return two columns, whatever the mask."""
        return np.zeros((len(x), 2))

    try:
        with pytest.raises(sf.OpError, match=rf"y.shape\[1\] is 2, expected {len(mask)} \(len\(mask\) is"):
            of_width_two(np.zeros(3), mask=mask)
    finally:
        registry.unregister("of_width_two")


def test_a_size_that_divides_by_0_is_refused():
    @sf.op("x[N], y[M], z[M//N] -> out[N]")
    def divided(x, y, z):
        """Return the first input."""
        return x

    try:
        with pytest.raises(sf.ShapeError, match="M//N divides by 0"):
            divided(np.zeros(0), np.zeros(2), np.zeros(2))
    finally:
        registry.unregister("divided")
