"""Calls of ops on tensors, drawn as those of arrays are."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from seqflow import registry  # noqa: E402
from seqflow.expression.functions import by_name  # noqa: E402
from seqflow.torch.dtypes import torch_dtype  # noqa: E402
from seqflow.torch.ops.schemas import why_not  # noqa: E402

SAYABLE = [op for op in map(registry.get, registry.names()) if op.name == "expression" or why_not(op) is None]
"""The ops that torch can say."""
REGISTERED = [op for op in SAYABLE if op.name not in by_name and op.name != "expression"]
"""Those that are registered with torch: all others are torch's own functions."""
LACKING = ("uint16", "uint32", "uint64")
"""dtypes on which torch computes nothing."""


def tensors(value):
    """An input as a tensor, or a list of these."""
    if isinstance(value, list):
        return [tensors(one) for one in value]
    if value is None:
        return None
    array = np.asarray(value)
    return torch.empty(array.shape, dtype=torch_dtype(array.dtype)).copy_(torch.from_numpy(np.array(array)))


def each(value):
    return value if isinstance(value, (list, tuple)) else [value]


def takes(op, inputs):
    """Whether torch has tensors of these dtypes, and functions of them."""
    arrays = [array for value in inputs.values() for array in each(value) if array is not None]
    if any(array.dtype.kind not in "biuf" for array in arrays):
        return False
    return op in REGISTERED or not any(array.dtype.name in LACKING for array in arrays)


def flat(result):
    """All tensors of a result, those of lists one after another."""
    found = result if isinstance(result, tuple) else () if result is None else (result,)
    return [tensor for one in found for tensor in each(one)]


def call(function, op, inputs, attributes):
    if op.variadic:
        return function(*next(iter(inputs.values())), **attributes)
    return function(**inputs, **attributes)


def schema_arguments(op, inputs, attributes):
    """Arguments as the schema takes them: inputs by position, sizes for a number of parts, lists, dtypes of torch."""
    given = tuple(inputs.get(one.name) for one in op.signature.input_arguments)
    lists = {one.name for one in op.attributes if one.kind == "ints"}
    named = {
        name: torch_dtype(value)
        if isinstance(value, np.dtype)
        else list(value)
        if isinstance(value, tuple)
        else [value]
        if name in lists and isinstance(value, int)
        else value
        for name, value in attributes.items()
    }
    if op.name == "split" and isinstance(named["parts"], int):
        size = given[0].shape[named.get("axis", 0)]
        named["parts"] = [size // named["parts"]] * named["parts"]
    return given, named


def compiled(function, backend="aot_eager"):
    """The function compiled without a graph break, and what counts the programs that are made."""
    from torch._dynamo.testing import CompileCounterWithBackend

    torch.compiler.reset()
    counter = CompileCounterWithBackend(backend)
    return torch.compile(function, fullgraph=True, backend=counter), counter


def marked_by_torch(tensor):
    from torch._dynamo.decorators import mark_unbacked

    mark_unbacked(tensor, 0)
    return tensor


def zero_tensor(*shape):
    """A tensor of zeros without memory, as derivatives of torch make them."""
    return torch._efficientzerotensor(shape)
