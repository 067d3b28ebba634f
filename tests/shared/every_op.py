"""All ops, and calls of them: for tests that walk the registry."""

import pytest
from hypothesis import settings
from marks import one_in

from seqflow import registry

EXAMPLES = settings.default.max_examples // 5
"""For each op and claim: there are many of both."""
OPS = [registry.get(name) for name in registry.names()]
every_op = pytest.mark.parametrize("op", OPS, ids=registry.names())


def each_fourth_op(first):
    """The ops of a property of slow tests, turn about: the others are left to the thorough tests."""
    return pytest.mark.parametrize("op", one_in(4, OPS, first=first), ids=registry.names())


def returned(op, inputs, attributes):
    """What a call of the op returns."""
    given = next(iter(inputs.values())) if op.variadic else []
    return op.call(*given, **attributes) if op.variadic else op.call(**inputs, **attributes)


def results(op, inputs, attributes):
    """All tensors of the results, those of lists one after another."""
    result = returned(op, inputs, attributes)
    found = tuple(result) if op.result else (result,) if op.output_names else ()
    return [array for one in found for array in (one if isinstance(one, list) else [one])]


def each(inputs, function):
    """The function of every input, those in lists too."""
    return {
        name: [function(one) for one in value] if isinstance(value, list) else function(value)
        for name, value in inputs.items()
    }


def flat(inputs):
    """All input tensors by the names inference gives them: `data`, `data[1]`."""
    for name, value in inputs.items():
        yield from (
            ((f"{name}[{i}]", one) for i, one in enumerate(value))
            if isinstance(value, list)
            else [(name, value)]
        )
