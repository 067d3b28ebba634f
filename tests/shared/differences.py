"""Derivatives held against central differences."""

import numpy as np

from seqflow.net.gradient import derivative
from seqflow.net.gradient.derivative import has_floats
from seqflow.net.step import compute

STEP = 1e-6
DOMAINS = {"acos": 0.1, "asin": 0.1, "atanh": 0.1}
"""Functions of numbers between -1 and 1: the inputs are scaled."""


def taken(op, inputs):
    """Copies of the inputs, with float64 where the op takes floats, and a little apart from each other."""
    rng = np.random.default_rng(0)

    def one(argument, array):
        if not has_floats(argument) or array.dtype.kind not in "biuf":
            return np.array(array)
        floats = array.astype(np.float64) * DOMAINS.get(op.name, 1.0)
        return np.asarray(floats + rng.uniform(-0.05, 0.05, floats.shape))

    return {
        one_.name: [one(one_, array) for array in inputs[one_.name]]
        if isinstance(inputs[one_.name], list)
        else one(one_, np.asarray(inputs[one_.name]))
        for one_ in op.signature.input_arguments
        if inputs.get(one_.name) is not None
    }


def is_smooth_at(op, inputs):
    """Whether the function is one at these inputs: acosh is not below 1."""
    return op.name != "acosh" or bool((inputs["x"] > 1.001).all())


def results(op, inputs, attributes):
    """The results of a call by the names of its outputs, those of lists as lists."""
    result = op.call(**inputs, **attributes)
    found = result if op.result is not None else (result,)
    return dict(zip(op.output_names, found, strict=True)) if op.output_names else {}


def each(value):
    return value if isinstance(value, list) else [value]


def cotangents(outputs):
    """What arrives at outputs of floats, at random; nothing at others."""
    rng = np.random.default_rng(0)

    def one(array):
        return np.asarray(rng.normal(size=array.shape), array.dtype) if array.dtype.kind == "f" else None

    return {
        name: [one(part) for part in value] if isinstance(value, list) else one(value)
        for name, value in outputs.items()
    }


def named(prefix, values):
    """Tensors under the names that derivatives have for them."""
    found = {}
    for name, value in values.items():
        found |= (
            {f"{prefix}{name}.{i}": one for i, one in enumerate(value)}
            if isinstance(value, list)
            else {f"{prefix}{name}": value}
        )
    return found


def gradients(op, inputs, attributes, outputs, arriving, wanted):
    """The gradients of these inputs, by the derivative of the op."""
    given = {name: len(value) if isinstance(value, list) else None for name, value in inputs.items()}
    net = derivative(op, attributes, given, wanted)
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
    """The same by central differences, array by array. Sums of float32 are linear, and take wider steps."""

    def outputs():
        found = results(op, inputs, attributes)
        return [np.array(value) for key in found for value in each(found[key])]

    weights = [weight for key in arriving for weight in each(arriving[key])]
    step = STEP if all(weight is None or weight.dtype == np.float64 for weight in weights) else 0.5
    found = []
    for array in each(inputs[name]):
        slopes = np.zeros(array.shape)
        for place in np.ndindex(*array.shape):
            before = array[place]
            array[place] = before + step
            above = outputs()
            array[place] = before - step
            below = outputs()
            array[place] = before
            with np.errstate(invalid="ignore"):  # of fills that are infinite, and do not change
                slopes[place] = sum(
                    np.sum(np.where(one == other, 0, one.astype(np.float64) - other) * weight)
                    for one, other, weight in zip(above, below, weights, strict=True)
                    if weight is not None
                ) / (2 * step)
        found.append(slopes)
    return found
