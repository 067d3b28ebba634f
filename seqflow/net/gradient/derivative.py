"""Derivative of one call of an op, as statements or as a net.

Ops that move rows are called on the numbers of the rows, which gives the origin of each row of the result.
"""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from seqflow.errors import GradientError
from seqflow.net.gradient.formula import RESULT, Line, Names, literal, write
from seqflow.net.net import Net
from seqflow.registry import MovedRows, NoDerivative, OpDef
from seqflow.registry.gradients import Formula
from seqflow.signature import Argument, Repeated

Given = Mapping[str, int | None]
"""Given inputs of a call, each with the number of tensors in a list, or None for one tensor."""

_FLOATS = (
    "any", "number", "ordered", "float", "like", "sum_of", "mean_of", "dtype", "float16", "float32", "float64",
)  # fmt: skip


def has_floats(argument: Argument) -> bool:
    """Return whether its dtype word allows floats."""
    return not argument.is_lengths and argument.dtype.word in _FLOATS


def is_differentiable(op: OpDef, name: str) -> bool:
    """Return whether gradients may flow through an input: it may be floats, and the op does not exclude it."""
    said = op.grad.get(name, "") if isinstance(op.grad, Mapping) else ""
    return has_floats(op.signature.arguments[name]) and said is not None


def derivative(op: OpDef, attributes: Mapping[str, Any], given: Given, wanted: Collection[str]) -> Net:
    """Return the derivative of a call of an op, as a net.

    `given` are the inputs of the call, lists with the number of their tensors; `wanted` are the inputs whose
    gradients are requested. The net takes the tensors that it needs: inputs by their names, an output y as `out.y`,
    and the gradient that arrives at it as `d.y` (for lists `x.0`, `x.1`, …). It returns `grad.x` for each requested
    input x.

    Raises GradientError, with the reason, when there is no derivative.

    >>> print(derivative(registry.get("lengths_sum"), {}, {"data": None, "lengths": None}, ["data"]))
    grad.data = cast_like(expand(d.sums, lengths), data)
    return grad.data
    """
    attributes = op.complete(op.check_attributes(attributes))
    names: dict[str, str | Sequence[str] | None] = {
        one.name: _tensors(one.name, given[one.name]) if one.name in given else None
        for one in op.signature.input_arguments
    }
    counts = _output_counts(op, attributes)
    for output, count in counts.items():
        names[f"out.{output}"] = _tensors(f"out.{output}", count)
        names[f"d.{output}"] = _tensors(f"d.{output}", count)
    targets = {name: _tensors(f"grad.{name}", given[name]) for name in op.input_names if name in wanted}
    statements = list(statements_of(op, attributes, names, targets, lambda name: name))
    order = [targets[one.name] for one in op.signature.input_arguments if one.name in targets]
    returned = [name for one in order for name in ([one] if isinstance(one, str) else one)]
    return Net("\n".join([*map(str, statements), f"return {', '.join(returned)}"]))


def statements_of(
    op: OpDef,
    attributes: Mapping[str, Any],
    names: Names,
    targets: Mapping[str, str | Sequence[str]],
    local: Callable[[str], str],
) -> Iterator[Line]:
    """Yield the statements that assign the gradients of inputs to the names in `targets`.

    `names` has the tensors of the inputs and, as `out.y` and `d.y`, of the outputs; `local` renames the tensors that
    the formulas assign themselves.
    """
    for number, (keys, formula) in enumerate(_formulas(op, names, attributes, targets)):
        own = [targets.get(key) for key in keys]
        try:
            yield from _one(op, formula, names, attributes, own, keys, _numbered(local, number))
        except GradientError as error:
            raise GradientError(f"the derivative by {', '.join(keys)}: {error}").in_op(op.name) from None


def _numbered(local: Callable[[str], str], number: int) -> Callable[[str], str]:
    return (lambda name: local(f"{name}{number}")) if number else local


def _one(
    op: OpDef,
    text: str,
    names: Names,
    attributes: Mapping[str, Any],
    targets: Sequence[str | Sequence[str] | None],
    keys: Sequence[str],
    local: Callable[[str], str],
) -> Iterator[Line]:
    """Yield the statements of one formula, for one input or for several."""
    found = write(text, names, attributes, local)
    yield from found.lines
    flat = [
        name for one in targets for name in (["_"] if one is None else [one] if isinstance(one, str) else one)
    ]
    promotes = len(flat) == 1 and _promotes(op)
    like = names[keys[0]]
    cast = frozenset([like] if isinstance(like, str) else like or ()) if promotes else frozenset()
    if found.targets is None:
        value = f"cast_like({found.value}, {like})" if promotes else found.value
        yield Line(tuple(flat), value, found.uses | cast)
        return
    if len(keys) > 1:
        raise GradientError(f"{RESULT} is assigned, but the formula is of {len(keys)} inputs")
    at = found.targets.index(RESULT)
    results = [local("uncast")] if promotes else flat
    yield Line((*found.targets[:at], *results, *found.targets[at + 1 :]), found.value, found.uses)
    if promotes:
        yield Line((flat[0],), f"cast_like({results[0]}, {like})", cast | {results[0]})


def _promotes(op: OpDef) -> bool:
    """Return whether outputs, and the gradients that arrive there, may have a wider dtype than the inputs."""
    return any(one.dtype.word in ("sum_of", "mean_of") for one in op.signature.output_arguments)


def _formulas(
    op: OpDef, names: Names, attributes: Mapping[str, Any], wanted: Collection[str]
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the formulas of the requested inputs; raise GradientError, with the reason, when there is none."""
    grad = op.grad
    if grad is None:
        raise GradientError("it has no derivative: its declaration has no grad=").in_op(op.name)
    if isinstance(grad, NoDerivative):
        raise GradientError(f"it has no derivative: {grad.reason}").in_op(op.name)
    by_input = {op.signature.input_arguments[0].name: grad} if isinstance(grad, MovedRows) else grad
    found = {tuple(key.replace(" ", "").split(",")): formula for key, formula in by_input.items()}
    covered = {name for keys in found for name in keys}
    missing = next((name for name in wanted if name not in covered), None)
    if missing is not None:
        raise GradientError(f"it has no derivative by {missing}").in_op(op.name)
    for keys, formula in found.items():
        if not set(keys) & set(wanted):
            continue
        if isinstance(formula, NoDerivative):
            raise GradientError(f"it has no derivative by {', '.join(keys)}: {formula.reason}").in_op(op.name)
        if formula is None:
            raise GradientError(f"no gradient flows through {', '.join(keys)}").in_op(op.name)
        yield keys, _text(op, formula, names, attributes)


def _text(op: OpDef, formula: Formula, names: Names, attributes: Mapping[str, Any]) -> str:
    if isinstance(formula, str):
        return formula
    if isinstance(formula, MovedRows):
        return moved_rows(op, formula, names, attributes)
    known = {**{name: found is not None for name, found in names.items()}, **attributes}
    made = formula(**{name: known[name] for name in inspect.signature(formula).parameters})
    return _text(op, made, names, attributes)


def _tensors(name: str, count: int | None) -> str | list[str]:
    return name if count is None else [f"{name}.{i}" for i in range(count)]


def _output_counts(op: OpDef, attributes: Mapping[str, Any]) -> Given:
    counts: dict[str, int | None] = {}
    for item in op.signature.outputs:
        if isinstance(item, Repeated):
            counts |= {one.field: item.length(attributes) for one in item.arguments}
        else:
            counts[item.field] = None
    return counts


def moved_rows(op: OpDef, rule: MovedRows, names: Names, attributes: Mapping[str, Any]) -> str:
    """Return the formula for the first input of an op that moves the rows of this input to its first output."""
    moved = op.signature.input_arguments[0].name
    listed = names[moved]
    lines = []
    if isinstance(listed, str):
        numbers = f"row_numbers({moved})"
    else:
        own = ", ".join(f"numbers{i}" for i in range(len(listed or ())))
        lines = [f"{own} = list_numbers({moved}, parts=len({moved}))"]
        numbers = f"[{own}]"
    origins, others = _results(op, attributes)
    lines += [
        f"{', '.join(origins + ['_'] * others)} = {op.name}({_arguments(op, rule, numbers, attributes)})"
    ]
    output = f"d.{op.signature.output_arguments[0].field}"
    origin = origins[0]
    if isinstance(op.signature.outputs[0], Repeated):
        output, origin = f"concat({output})", f"concat([{', '.join(origins)}])"
    back = "scatter_rows" if isinstance(listed, str) else "scatter_rows_of_list"
    parts = "" if isinstance(listed, str) else f", parts=len({moved})"
    return "\n".join([*lines, f"{back}({output}, {origin}, {moved}{parts}, ignore_index=-1)"])


def _arguments(op: OpDef, rule: MovedRows, numbers: str, attributes: Mapping[str, Any]) -> str:
    """Return the arguments of the call on the numbers of the rows; the others are as in the original call."""
    others = op.signature.input_arguments[1:]
    given = [numbers, *(f"{one.name}={one.name}" if one.optional else one.name for one in others)]
    for one in op.attributes:
        if one.name == rule.fill:
            given.append(f"{one.name}=-1")
        elif one.name != "out" and attributes[one.name] != one.default:
            given.append(f"{one.name}={literal(attributes[one.name])}")
    return ", ".join(given)


def _results(op: OpDef, attributes: Mapping[str, Any]) -> tuple[list[str], int]:
    """Return names for the numbers of the rows, and the number of other results."""
    first = op.signature.outputs[0]
    total = len(op.result_names(attributes))
    if not isinstance(first, Repeated):
        return ["origin"], total - 1
    origins = [f"origin{i}" for i in range(first.length(attributes))]
    return origins, total - len(origins)
