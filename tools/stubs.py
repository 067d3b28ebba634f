"""Generates type stubs from the registry: `python -m tools.stubs`.

They are `seqflow/__init__.pyi`, `ops/__init__.pyi`, `seqflow/auto.pyi` and `seqflow/torch/ops/__init__.pyi`. Next to
the second one it writes `ops/families.txt`, from which `seqflow.ops` learns which family declares an op.
"""

import builtins
import inspect
import math
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import seqflow
from seqflow import registry
from seqflow.errors import UnknownOpError
from seqflow.lod_propagation.rule import brought_lengths, gives_sequence
from seqflow.public_names import OPTIONAL_PACKAGES, PACKAGES, ROOMS
from seqflow.registry import OpDef
from seqflow.signature import Argument, Attribute, Repeated
from seqflow.signature.language import Rest, Sum

HEADS = dict(
    part.split("\n", 1) for part in Path(__file__).with_name("heads.txt").read_text("utf-8").split("#: ")[1:]
)
"""Beginnings of the files that are written, by name."""
_INTS = "int | collections.abc.Sequence[int]"
_TEXTS = "str | collections.abc.Sequence[str]"
_TAKEN = {"bool": "builtins.bool", "ints": _INTS, "parts": _INTS, "texts": _TEXTS}
"""Types of attributes with plain names that mean something else in a stub: an op, or our Sequence."""


def public_stub() -> str:
    """Return the text of the stub file of the public names."""
    packages = ", ".join(f"{name} as {name}" for name in (*PACKAGES, *OPTIONAL_PACKAGES))
    rooms = [f"from seqflow.{room} import {names.replace(' ', ', ')}" for room, names in ROOMS.items()]
    function = f"def set_num_threads{inspect.signature(seqflow.set_num_threads)}: ..."
    lines = [f"from seqflow import {packages}", *rooms, "", "__version__: str", "", function]
    return "\n".join([HEADS["public"], *lines, f"__all__ = {seqflow.__all__!r}\n"])


def stub() -> str:
    """Return the text of the stub file of the ops."""
    return "\n".join(
        [
            HEADS["ops"].format(about="The ops", more="", imports=""),
            f"__all__ = {[op.name for op in _shipped() if not hasattr(builtins, op.name)]!r}\n",
            *map(_op, _shipped()),
        ]
    )


def families() -> str:
    """Return the text of the table of families: a line for each one, `padding: pad unpad`."""
    found: dict[str, list[str]] = {}
    for op in _shipped():
        found.setdefault(str(op.family), []).append(op.name)
    return "".join(f"{family}: {' '.join(names)}\n" for family, names in sorted(found.items()))


def auto_stub() -> str:
    """Return the text of the stub file of the ops for Sequences."""
    head = HEADS["ops"].format(
        about="The ops for Sequences", more=", overload", imports=HEADS["imports of auto"]
    )
    return "\n".join([head + HEADS["types of auto"], *map(_auto_op, _shipped())])


def torch_stub() -> str:
    """Return the text of the stub file of the ops on tensors, for ops that torch can express."""
    text = "\n".join(
        [HEADS["torch"], *(_op(op, _torch_keywords(op)) for op in _shipped() if _is_for_torch(op))]
    )
    return text.replace("ArrayLike", "Tensor").replace("Array", "Tensor").replace("DTypeLike", "DType")


def _torch_keywords(op: OpDef) -> list[str]:
    """Return the attributes without `out`, since results are new tensors, and the attributes of torch only."""
    total = ["total: int | None = None"] if op.takes_total else []
    sparse = [] if op.sparse_factor is None else ["sparse: builtins.bool = False"]
    return [*(_attribute(one) for one in op.attributes if one.name != "out"), *total, *sparse]


def _is_for_torch(op: OpDef) -> bool:
    """Return whether torch has types for the attributes and tensors of an op."""
    arguments = (*op.signature.input_arguments, *op.signature.output_arguments)
    return op.expression is not None or not (
        any(one.kind == "object" for one in op.attributes if one.name != "out")
        or any(one.dtype.word == "str" for one in arguments)
    )


def _shipped() -> list[OpDef]:
    # the files decide, not the table of now, which may lack an op, or have one that is gone
    for file in Path(__file__).parents[1].joinpath("ops").glob("[!_]*.py"):
        import_module(f"seqflow.ops.{file.stem}")
    found = []
    for name in registry.names():
        with suppress(UnknownOpError, ModuleNotFoundError):
            found.append(registry.get(name))
    return [op for op in found if op.family is not None]


def _op(op: OpDef, keywords: list[str] | None = None) -> str:
    repeated = {
        a.field for item in op.signature.outputs if isinstance(item, Repeated) for a in item.arguments
    }
    kinds = {name: "list[Array]" if name in repeated else "Array" for name in op.output_names}
    returns, result = next(iter(kinds.values()), "None"), ""
    if op.result is not None:
        returns = op.result.__name__
        fields = [f"    {name}: {kind}" for name, kind in kinds.items()]
        result = f"class {returns}(NamedTuple):\n" + "\n".join(fields) + "\n\n"
    return f"{result}def {op.name}({', '.join(_parameters(op, keywords))}) -> {returns}: ...\n"


def _parameters(op: OpDef, keywords: list[str] | None) -> list[str]:
    parameters: list[str] = []
    for item in op.signature.inputs:
        if isinstance(item, Repeated):
            kind = "*{}: ArrayLike" if op.variadic else "{}: collections.abc.Sequence[ArrayLike]"
            parameters += [kind.format(argument.name) for argument in item.arguments]
        else:
            parameters.append(f"{item.name}: ArrayLike{' | None = None' if item.optional else ''}")
    named = [_attribute(one) for one in op.attributes] if keywords is None else keywords
    return [*parameters, *(["*"] if named and not op.variadic else []), *named]


def _attribute(attribute: Attribute) -> str:
    kind = attribute.annotation
    if attribute.kind in _TAKEN:
        kind = f"{_TAKEN[attribute.kind]}{' | None' if attribute.optional else ''}"
    is_dtype = attribute.kind == "dtype" and attribute.default is not None
    unwritable = is_dtype or attribute.default in (math.inf, -math.inf)
    default = "..." if unwritable else repr(attribute.default)
    return f"{attribute.name}: {kind}{'' if attribute.required else f' = {default}'}"


def _auto_op(op: OpDef) -> str:
    result = ""
    if gives_sequence(op):
        returns = "Sequence"
    elif op.result is not None:
        fields = [f"    {name}: {kind}" for name, kind in _auto_outputs(op)]
        result = f"class {op.result.__name__}(NamedTuple):\n" + "\n".join(fields) + "\n\n"
        returns = op.result.__name__
    else:
        returns = next((kind for _, kind in _auto_outputs(op)), "None")
    general = f"def {op.name}({', '.join(_auto_parameters(op))}) -> {returns}: ...\n"
    rows = _rows_that_stay(op)
    if rows is None or returns != "Carried":
        return f"{result}{general}"
    stays = ", ".join(_auto_parameters(op, rows))
    return f"@overload\ndef {op.name}({stays}) -> Sequence: ...\n@overload\n{general}"


def _rows_that_stay(op: OpDef) -> str | None:
    """Return the input with the same rows as the only output; None if there is none."""
    if len(op.signature.outputs) != 1:
        return None
    (output,) = op.signature.outputs
    if isinstance(output, Repeated) or not output.dims or output.dims[0] == Rest("_"):
        return None
    inputs = [item for item in op.signature.inputs if isinstance(item, Argument)]
    same = (a.name for a in inputs if a.dims[:1] == output.dims[:1] and not a.is_lengths and not a.optional)
    return next(same, None)


def _auto_outputs(op: OpDef) -> list[tuple[str, str]]:
    found = []
    for item in op.signature.outputs:
        repeated = isinstance(item, Repeated)
        for argument in item.arguments if isinstance(item, Repeated) else (item,):
            divided = bool(argument.dims) and isinstance(argument.dims[0], Sum)
            kind = "Sequence" if divided else "Carried"
            found.append((argument.field, f"list[{kind}]" if repeated else kind))
    return found


def _auto_parameters(op: OpDef, rows: str | None = None) -> list[str]:
    """Return the parameters; `rows` is the input that is a Sequence."""
    brought = brought_lengths(op)
    positional: list[str] = []
    keywords: list[str] = []
    for item in op.signature.inputs:
        for argument in item.arguments if isinstance(item, Repeated) else (item,):
            kind = "Sequence" if argument.name == rows else "Lengths" if argument.is_lengths else "Rows"
            if isinstance(item, Repeated) and not op.variadic:
                kind = f"collections.abc.Sequence[{kind}]"
            if argument.name in brought:
                keywords.append(f"{argument.name}: {kind} | None = None")
            elif argument.optional:
                positional.append(f"{argument.name}: {kind} | None = None")
            else:
                positional.append(f"{'*' * op.variadic}{argument.name}: {kind}")
    keywords += map(_attribute, op.attributes)
    return positional + (["*"] if keywords and not op.variadic else []) + keywords


if __name__ == "__main__":
    root = Path(__file__).parents[1]
    root.joinpath("seqflow", "__init__.pyi").write_text(public_stub())
    root.joinpath("ops", "families.txt").write_text(families())
    root.joinpath("ops", "__init__.pyi").write_text(stub())
    root.joinpath("seqflow", "auto.pyi").write_text(auto_stub())
    root.joinpath("seqflow", "torch", "ops", "__init__.pyi").write_text(torch_stub())
