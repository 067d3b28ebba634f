"""The ops: `@op` declares one, `get` looks one up by its name."""

from seqflow.registry.declaring import gradient_checks, op, tensor_calls
from seqflow.registry.definition import OpDef, ShapeFunction
from seqflow.registry.gradients import MovedRows, NoDerivative
from seqflow.registry.lookup import get, load_on_first_look, names, register, unregister

__all__ = [
    "MovedRows",
    "NoDerivative",
    "OpDef",
    "ShapeFunction",
    "get",
    "gradient_checks",
    "load_on_first_look",
    "names",
    "op",
    "register",
    "tensor_calls",
    "unregister",
]
