"""Inference and calls agree: on every op, for specs that say all of the inputs, a part, or nothing."""

import contextlib

import numpy as np
import pytest
from every_op import EXAMPLES, each, each_fourth_op, flat, results
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.calls import calls

import seqflow as sf
from seqflow import TensorSpec
from seqflow.errors import OpTypeError
from seqflow.shape import Dimension


def relaxed(draw, size, symbols):
    """A dimension that may be this size: the number, bounds, a name that all axes of this size have, or unknown."""
    form = draw(st.integers(0, 3))
    if form == 0:
        return Dimension(size)
    if form == 1:
        return Dimension(max(size - draw(st.integers(0, 2)), 0), size + draw(st.integers(0, 2)))
    return symbols.setdefault(size, Dimension.symbol(f"N{size}")) if form == 2 else Dimension.dynamic()


def relaxed_specs(draw, inputs):
    symbols = {}
    return each(
        inputs,
        lambda array: TensorSpec(array.dtype, [relaxed(draw, size, symbols) for size in np.shape(array)]),
    )


def known_sizes(op, inputs, found, attributes):
    """What the atoms of dimensions are in this call."""
    own = dict(zip((f"{op.name}.{name}" for name in op.result_names(attributes)), found, strict=True))
    values = {}
    for name, array in {**dict(flat(inputs)), **own}.items():
        if array.ndim == 1 and array.dtype.kind in "iu":
            values |= {f"sum({name})": int(array.sum()), f"max({name})": int(array.max(initial=0))}
        values |= {f"{name}.shape[{axis}]": size for axis, size in enumerate(array.shape)}
        values |= {f"N{size}": size for size in array.shape}
    return values


def is_dtype_of(spec, array):
    """A text may be inferred without its width."""
    return spec.dtype == array.dtype or (spec.dtype == np.dtype("U") and array.dtype.kind == "U")


@pytest.mark.slow
@each_fourth_op(1)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_what_a_call_takes_inference_takes_and_every_result_fits_its_spec(op, data):
    inputs, attributes = data.draw(calls(op))
    inputs = each(inputs, np.asarray)
    found = results(op, inputs, attributes)
    inferred = op.infer(relaxed_specs(data.draw, inputs), attributes)
    values = known_sizes(op, inputs, found, attributes)
    for spec, array in zip(inferred.outputs, found, strict=True):
        assert is_dtype_of(spec, array)
        assert spec.shape.relaxes(sf.PartialShape(array.shape)), f"{spec} of {array.shape}"
        for dim, size in zip(spec.shape.dimensions or (), array.shape, strict=False):
            assert dim.evaluate(values) in (None, size), f"{dim} of {size}"
    for guard in inferred.guards:
        sides = [guard.left.evaluate(values), guard.right.evaluate(values)]
        assert None in sides or sides[0] == sides[1], guard


@pytest.mark.slow
@each_fourth_op(2)
@given(data=st.data())
@settings(max_examples=1)
def test_inference_asks_for_each_required_input_and_for_lists_where_lists_are_due(op, data):
    inputs, attributes = data.draw(calls(op))
    specs = each(inputs, lambda array: TensorSpec.of(np.asarray(array)))
    for argument in op.signature.input_arguments:
        name = argument.name
        if not argument.optional:
            without = {key: spec for key, spec in specs.items() if key != name}
            with pytest.raises(sf.SeqflowError, match=f"{name} is missing"):
                op.infer(without, attributes)
        if name in specs:
            one = specs[name][0] if isinstance(specs[name], list) else specs[name]
            wrong = one if isinstance(specs[name], list) else [one]
            for bad in (wrong, None, "float32{3}"):
                with pytest.raises(OpTypeError, match=f"{name} is "):
                    op.infer({**specs, name: bad}, attributes)


DTYPES = ("bool", "int8", "uint64", "float16", "float64", "datetime64[s]", "timedelta64[ms]", "U3", "S2")


@pytest.mark.slow
@each_fourth_op(3)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_unlike_dtypes_give_a_result_or_our_error_and_what_inference_refuses_calls_refuse(op, data):
    inputs, attributes = data.draw(calls(op))
    inputs = each(inputs, np.asarray)
    for name in inputs:
        dtype = data.draw(st.sampled_from((None, *DTYPES)))
        if dtype is not None:
            inputs |= each({name: inputs[name]}, lambda array, dtype=dtype: np.zeros(array.shape, dtype))
    try:
        op.infer(each(inputs, TensorSpec.of), attributes)
    except sf.SeqflowError:
        with pytest.raises(sf.SeqflowError):
            results(op, inputs, attributes)
        return
    with contextlib.suppress(sf.SeqflowError):  # of their values
        results(op, inputs, attributes)


NUMBERS = ("bool", "int8", "int32", "uint16", "uint64", "float16", "float32", "float64")


@pytest.mark.slow
@each_fourth_op(0)
@given(data=st.data())
@settings(max_examples=2)
def test_each_dtype_next_to_each_other_gives_results_of_the_dtype_that_is_inferred(op, data):
    inputs, attributes = data.draw(calls(op))
    inputs = each(inputs, np.asarray)
    names = [one.name for one in op.signature.input_arguments if not one.is_lengths and one.name in inputs]
    words = {one.name: one.dtype.word for one in op.signature.input_arguments}
    cast = {name for name in names if words[name] in ("any", "number", "ordered", "float", "int", "like")}
    for others in NUMBERS if len(cast) > 1 else NUMBERS[-1:]:
        for name in cast:
            for own in NUMBERS:
                dtypes = {other: own if other == name else others for other in cast}
                with np.errstate(all="ignore"):
                    made = {
                        n: each({n: inputs[n]}, lambda x, n=n, dtypes=dtypes: x.astype(dtypes[n]))[n]
                        for n in cast
                    }
                try:
                    specs = op.infer(each(inputs | made, TensorSpec.of), attributes).outputs
                    found = results(op, inputs | made, attributes)
                except sf.SeqflowError:
                    continue
                for spec, array in zip(specs, found, strict=True):
                    assert is_dtype_of(spec, array), f"{spec} of {array.dtype}, from {dtypes}"
