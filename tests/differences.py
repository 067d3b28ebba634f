"""Derivatives held against central differences."""

import numpy as np

from seqflow.net.gradient import derivative
from seqflow.net.gradient.derivative import has_floats
from seqflow.net.step import compute

STEP = 1e-6


def as_floats(op, inputs):
    """The inputs with float64 wherever the op takes floats."""
    found = {}
    for item in op.signature.input_arguments:
        value = inputs.get(item.name)
        if value is None:
            continue
        takes = has_floats(item) and item.dtype.word != "dtype"
        found[item.name] = (
            [_as_float(one) if takes else one for one in value]
            if isinstance(value, list)
            else _as_float(value)
            if takes
            else value
        )
    return found


def _as_float(value):
    return value.astype(np.float64) if value.dtype.kind in "biuf" else value


def call(op, inputs, attributes):
    """The results of a call, by the names of its outputs; those of lists as lists."""
    given = inputs if not op.variadic else None
    result = (
        op.call(*next(iter(inputs.values())), **attributes) if op.variadic else op.call(**given, **attributes)
    )
    found = result if op.result is not None else (result,)
    return dict(zip(op.output_names, found, strict=True)) if op.output_names else {}


def each(value):
    return value if isinstance(value, list) else [value]


def named(prefix, values):
    """Tensors under the names that derivatives have for them."""
    found = {}
    for name, value in values.items():
        if isinstance(value, list):
            found |= {f"{prefix}{name}.{i}": one for i, one in enumerate(value)}
        else:
            found[f"{prefix}{name}"] = value
    return found


def cotangents(rng, outputs):
    """What arrives at outputs of floats, at random; nothing at the others."""

    def one(array):
        return np.asarray(rng.normal(size=array.shape), array.dtype) if array.dtype.kind == "f" else None

    return {
        name: [one(part) for part in value] if isinstance(value, list) else one(value)
        for name, value in outputs.items()
    }


def gradients(op, inputs, attributes, arriving, wanted):
    """The gradients of these inputs, by the derivative of the op."""
    given = {name: len(value) if isinstance(value, list) else None for name, value in inputs.items()}
    net = derivative(op, attributes, given, wanted)
    outputs = call(op, inputs, attributes)
    tensors = {**named("", inputs), **named("out.", outputs), **named("d.", arriving)}
    for step in net.steps:
        tensors |= zip(step.results, compute(step, tensors), strict=True)
    return {
        name: [tensors[f"grad.{name}.{i}"] for i in range(len(inputs[name]))]
        if isinstance(inputs[name], list)
        else tensors[f"grad.{name}"]
        for name in wanted
    }


def differences(op, inputs, attributes, arriving, name):
    """The same by central differences."""

    def outputs():
        found = call(op, inputs, attributes)
        return [np.array(value) for key in found for value in each(found[key])]

    weights = [weight for key in arriving for weight in each(arriving[key])]

    found = []
    for array in each(inputs[name]):
        slopes = np.zeros(array.shape)
        for place in np.ndindex(*array.shape):
            before = array[place]
            array[place] = before + STEP
            above = outputs()
            array[place] = before - STEP
            below = outputs()
            array[place] = before
            slopes[place] = sum(
                np.sum(np.where(one == other, 0, one - other) * weight)
                for one, other, weight in zip(above, below, weights, strict=True)
                if weight is not None
            ) / (2 * STEP)
        found.append(slopes)
    return found
