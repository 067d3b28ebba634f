"""The ops: `@op` declares one, `get` looks one up by its name."""

from seqflow.registry.declaring import op, result_name
from seqflow.registry.definition import OpDef, ShapeFunction
from seqflow.registry.gradients import MovedRows, NoDerivative
from seqflow.registry.lookup import get, names, register, unregister

__all__ = [
    "MovedRows",
    "NoDerivative",
    "OpDef",
    "ShapeFunction",
    "get",
    "names",
    "op",
    "register",
    "result_name",
    "unregister",
]
