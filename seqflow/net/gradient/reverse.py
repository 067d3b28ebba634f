"""Gradient of a net, as a net: its own statements, then those of derivatives from the last to the first."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from seqflow.errors import GradientError, nearest
from seqflow.net.gradient.derivative import has_floats, is_differentiable, statements_of
from seqflow.net.gradient.expressions import differentiable_operands, expression_statements
from seqflow.net.gradient.formula import Line, literal
from seqflow.net.step import Input, Step, each
from seqflow.net.syntax import Listed, LiteralOperand, Reference
from seqflow.printable import printable
from seqflow.signature import Argument

if TYPE_CHECKING:
    from seqflow.net.net import Net


def gradient_text(net: "Net", of: str, wrt: Sequence[str], cotangent: str | None) -> str:
    """Return the text of a net that returns `of`, and its gradients with respect to the tensors of `wrt`.

    Raises GradientError for names that the net does not have, for ops on the way without a derivative, and when `of`
    does not depend on a tensor.
    """
    steps = net.steps
    named = _TensorNames(net)
    known = {*net.inputs, *net.constants, *net.assigned}
    for name in (of, *wrt):
        if name not in known:
            raise GradientError(f"gradient: the net has no tensor {name!r}{nearest(name, known)}")
    if len(set(wrt)) != len(wrt) or not wrt:
        raise GradientError(f"gradient: wrt is {list(wrt)}, expected one or more tensors, each once")
    reverse = _Reverse(steps, named, of, wrt)
    missing = next((name for name in wrt if name not in reverse.used), None)
    if missing is not None:
        raise GradientError(
            f"gradient: {of} does not depend on {missing}, or only through integers and conditions"
        )
    lines = [named.statement(step) for step in steps]
    arriving = f"one_like({of})" if cotangent is None else f"cast_like({cotangent}, {of})"
    lines.append(Line((named.gradient(of),), arriving, frozenset({of, cotangent or of})))
    lines += reverse.statements()
    returned = [of, *(named.gradient(name) for name in wrt)]
    return "\n".join([*map(str, _needed(lines, returned)), f"return {', '.join(returned)}"])


def _needed(lines: Sequence[Line], returned: Sequence[str]) -> list[Line]:
    """Return the statements that the returned tensors depend on, and statements that only check."""
    wanted = set(returned)
    found = []
    for line in reversed(lines):  # uses come after the statements that make the tensors
        if not line.targets or wanted.intersection(line.targets):
            wanted |= line.uses
            found.append(line)
    return found[::-1]


class _TensorNames:
    """Names for the tensors of the gradient of a net; names of the net itself are kept."""

    def __init__(self, net: "Net") -> None:
        self.taken = {*net.inputs, *net.constants, *net.assigned}
        roots = {name.split(".")[0] for name in self.taken}
        self.prefix = next(one for one in _numbered("grad") if one not in roots)
        self.unnamed = next(one for one in _numbered("part") if one not in roots)
        self.own = next(one for one in _numbered("back") if one not in roots)
        self.thrown_away: dict[tuple[int, int], str] = {}

    def tensor(self, name: str) -> str:
        """Return the name of a tensor of the net; a generated one if it has none."""
        return f"{self.unnamed}.{name[1:]}" if name.startswith("%") else name

    def result(self, step: Step, i: int) -> str:
        """Return the name of a result of a step; a dropped result gets one, since derivatives may need it."""
        name = step.results[i]
        if name != "_":
            return self.tensor(name)
        key = id(step), i
        return self.thrown_away.setdefault(key, f"{self.unnamed}.dropped{len(self.thrown_away)}")

    def gradient(self, tensor: str) -> str:
        return f"{self.prefix}.{self.tensor(tensor)}"

    def local(self, number: int) -> Callable[[str], str]:
        """Return a function that names the tensors assigned by the formulas of one step."""
        return lambda name: f"{self.own}.{number}.{name}"

    def statement(self, step: Step) -> Line:
        """Return a step as a separate statement."""
        results = tuple(self.result(step, i) for i in range(len(step.results)))
        return Line(results, self.call(step), frozenset(map(self.tensor, step.uses)))

    def call(self, step: Step) -> str:
        if step.expression is not None:
            names = [self.tensor(one) for one in operands_of(step)]
            return str(step.expression.with_inputs(names).text)
        given = {name: self.written(operand) for name, operand in step.inputs.items()}
        names = [argument.name for argument in step.op.signature.input_arguments]
        first = next((i for i, name in enumerate(names) if name not in given), len(names))
        arguments = [given[name] for name in names[:first]]
        arguments += [f"{name}={given[name]}" for name in names[first:] if name in given]
        for attribute in step.op.attributes:
            value = step.attributes[attribute.name]
            if isinstance(value, Reference):
                arguments.append(f"{attribute.name}={value.name}")
            elif attribute.required or value != attribute.default:
                arguments.append(f"{attribute.name}={literal(value)}")
        return f"{step.op.name}({', '.join(arguments)})"

    def written(self, operand: Input) -> str:
        if isinstance(operand, Listed):
            return f"[{', '.join(self.written(one) for one in operand.items)}]"  # type: ignore[arg-type]
        return literal(operand.value) if isinstance(operand, LiteralOperand) else self.tensor(operand.name)


class _Reverse:
    """Tensors that gradients reach, and the statements that compute these gradients."""

    def __init__(self, steps: Sequence[Step], names: _TensorNames, of: str, wrt: Sequence[str]) -> None:
        self.steps = steps
        self.names = names
        self.of = of
        self.wrt = set(wrt)
        self.active = self._depending(wrt)
        self.used, self.contributions = self._reached()

    def _depending(self, wrt: Sequence[str]) -> set[str]:
        """Return the tensors that depend on tensors of `wrt`."""
        found = set(wrt)
        for step in self.steps:
            if any(name in found for name in _differentiable(step)):
                found |= {
                    self.names.result(step, i) if step.results[i] == "_" else step.results[i]
                    for i, argument in enumerate(_outputs(step))
                    if has_floats(argument)
                }
        return found

    def _reached(self) -> tuple[set[str], dict[str, int]]:
        """Return the active tensors that the result depends on, and the number of uses of each on the way."""
        reached = {self.of} & self.active
        counts = {self.of: 1}
        for step in reversed(self.steps):
            if not any(name in reached for name in step.results):
                continue
            for name in _differentiable(step):
                if name in self.active:
                    reached.add(name)
                    counts[name] = counts.get(name, 0) + 1
        return reached, counts

    def statements(self) -> Iterator[Line]:
        """Yield the statements of the gradients, from the last step to the first."""
        arrived: dict[str, list[str]] = {}
        for number, step in reversed(list(enumerate(self.steps))):
            if not any(name in self.used for name in step.results):
                continue
            for name in step.results:
                yield from self._sum(name, arrived)
            try:
                yield from self._step(number, step, arrived)
            except GradientError as error:
                error.add_note(printable(f"in the net, line {step.line}: {step.statement}"))
                raise
        for name in sorted(self.wrt):
            yield from self._sum(name, arrived)

    def _sum(self, name: str, arrived: dict[str, list[str]]) -> Iterator[Line]:
        """Yield the sum of the gradients of a tensor that is used more than once."""
        given = arrived.pop(name, [])
        if len(given) > 1:
            yield Line((self.names.gradient(name),), " + ".join(given), frozenset(given))

    def _step(self, number: int, step: Step, arrived: dict[str, list[str]]) -> Iterator[Line]:
        local = self.names.local(number)
        targets: dict[str, str | list[str]] = {}
        for argument, operand in step.inputs.items():
            if not any(name in self.used for name in _names_of(operand)):
                continue
            if not is_differentiable(step.op, argument):
                continue
            named = each(operand, lambda one: self._target(one, arrived))
            targets[argument] = named
        if step.expression is not None:
            operands = operands_of(step)
            (result,) = step.results
            given = dict(zip(operands, targets["operands"], strict=True))
            yield from expression_statements(
                step.expression.tree,
                [self.names.tensor(name) for name in operands],
                self.names.tensor(result),
                self.names.gradient(result),
                {i: given[name] for i, name in enumerate(operands) if name in self.used},
                local,
            )
            return
        yield from statements_of(step.op, step.attributes, self._tensors(step), targets, local)

    def _target(self, operand: Reference | LiteralOperand, arrived: dict[str, list[str]]) -> str:
        """Return the name of the contribution of this use of a tensor to its gradient."""
        if isinstance(operand, LiteralOperand) or operand.name not in self.used:
            return "_"
        given = arrived.setdefault(operand.name, [])
        # the contribution of an only use is the gradient itself
        whole = self.names.gradient(operand.name)
        given.append(f"{whole}.use{len(given)}" if self.contributions[operand.name] > 1 else whole)
        return given[-1]

    def _tensors(self, step: Step) -> Mapping[str, str | Sequence[str] | None]:
        """Return the names of the inputs and outputs of a step, and of the gradients that arrive at its outputs."""
        names: dict[str, str | Sequence[str] | None] = {
            one.name: each(step.inputs[one.name], self.names.written) if one.name in step.inputs else None
            for one in step.op.signature.input_arguments
        }
        results = [self.names.result(step, i) for i in range(len(step.results))]
        # a formula may use the gradients of all outputs, also of one that `of` does not depend on
        arriving = [
            self.names.gradient(name) if name in self.used else f"zeros_like({result})"
            for name, result in zip(step.results, results, strict=True)
        ]
        for field, places in _places(step).items():
            names[f"out.{field}"] = (
                [results[i] for i in places] if isinstance(places, list) else results[places]
            )
            names[f"d.{field}"] = (
                [arriving[i] for i in places] if isinstance(places, list) else arriving[places]
            )
        return names


def operands_of(step: Step) -> list[str]:
    """Return the tensors of an expression, in the order of its operands."""
    listed = step.inputs["operands"]
    assert isinstance(listed, Listed)
    return [str(one) for one in listed.items]


def _differentiable(step: Step) -> list[str]:
    """Return the tensors of the inputs through which gradients may flow."""
    if step.expression is not None:
        operands = operands_of(step)
        return [operands[i] for i in sorted(differentiable_operands(step.expression.tree))]
    return [
        name
        for argument, operand in step.inputs.items()
        if is_differentiable(step.op, argument)
        for name in _names_of(operand)
    ]


def _names_of(operand: Input) -> Collection[str]:
    items = operand.items if isinstance(operand, Listed) else (operand,)
    return [one.name for one in items if isinstance(one, Reference)]


def _places(step: Step) -> dict[str, int | list[int]]:
    """Map each output to its position among the results; a list of tensors, to the positions of its tensors."""
    found: dict[str, int | list[int]] = {}
    for i, name in enumerate(step.op.result_names(step.attributes)):
        field, dot, number = name.rpartition(".")
        if dot and number.isdecimal():
            places = found.setdefault(field, [])
            assert isinstance(places, list)
            places.append(i)
        else:
            found[name] = i
    return found


def _outputs(step: Step) -> list[Argument]:
    """Return the argument of the signature for each result."""
    by_field = {one.field: one for one in step.op.signature.output_arguments}
    return [
        by_field[field]
        for field, places in _places(step).items()
        for _ in (places if isinstance(places, list) else [places])
    ]


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 1
    while True:
        yield f"{name}{number}"
        number += 1
