"""Derivative of an expression: node by node, by the formulas of its functions."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from seqflow.errors import GradientError
from seqflow.expression.functions import by_name
from seqflow.expression.parser import Call, Literal, Node, Operand, postorder
from seqflow.expression.printer import infix
from seqflow.net.gradient.formula import Line

_NAME = re.compile(r"[^\W\d]\w*(?!\w|\()")


def expression_statements(
    tree: Node,
    operands: Sequence[str],
    result: str,
    arriving: str,
    targets: Mapping[int, str],
    local: Callable[[str], str],
) -> Iterator[Line]:
    """Yield the statements that assign the gradients of operands to the names in `targets`, by number of the operand.

    `result` is the tensor of the expression's result, `arriving` the gradient that arrives at it.
    """
    found = _ExpressionGradient(tree, operands, result, arriving, set(targets), local)
    yield from found.lines
    plain = len(operands) == 1 and not any(_is_cast(node) for node in postorder(tree))
    for i, target in targets.items():
        given = found.arrived[i]
        if not given:
            yield Line((target,), f"zeros_like({operands[i]})", frozenset({operands[i]}))
            continue
        total = " + ".join(given)
        # a single one would only be a second name of a tensor, which nets refuse
        if plain and len(given) > 1:
            yield Line((target,), total, frozenset(given))
        else:
            yield Line((target,), f"sum_to({total}, {operands[i]})", frozenset({*given, operands[i]}))


def formula_of(function: str, parameter: str, names: Mapping[str, str]) -> str:
    """Return the formula of a function for one of its operands, with names replaced by `names`."""
    return _NAME.sub(lambda name: names.get(name[0], name[0]), by_name[function].derivatives[parameter])


class _ExpressionGradient:
    """Gradients of the operands of an expression, computed from the last node to the first."""

    def __init__(
        self,
        tree: Node,
        operands: Sequence[str],
        result: str,
        arriving: str,
        wanted: set[int],
        local: Callable[[str], str],
    ) -> None:
        self.operands = operands
        self.local = local
        self.lines: list[Line] = []
        self.arrived: dict[int, list[str]] = {i: [] for i in wanted}
        self.names: dict[int, str] = {id(tree): result}
        """Tensors of the nodes whose values formulas use."""
        active = _active(tree, wanted)
        self.constant: set[int] = set()
        for node in postorder(tree):
            if isinstance(node, Literal) or (
                isinstance(node, Call) and all(id(child) in self.constant for child in node.arguments)
            ):
                self.constant.add(id(node))
        arriving_at = {id(tree): [arriving]}
        for node in reversed(list(postorder(tree))):
            given = arriving_at.get(id(node), [])
            if not given or id(node) not in active:
                continue
            if isinstance(node, Operand):
                self.arrived[node.index] += given
            elif isinstance(node, Call):
                for child, name in self._handed_on(node, given[0], active):
                    arriving_at.setdefault(id(child), []).append(name)

    def _handed_on(self, node: Call, arriving: str, active: set[int]) -> Iterator[tuple[Node, str]]:
        """Yield the arguments of a call that gradients reach, each with the gradient that arrives there."""
        function = node.function
        if function.has_steps:
            raise GradientError(f"{function.name} has no derivative: it is piecewise constant")
        formulas = function.derivatives
        for parameter, child in zip(function.parameters, node.arguments, strict=True):
            if id(child) not in active or parameter not in formulas:
                continue
            text = formulas[parameter]
            if text == "d":  # a statement would only rename the gradient
                yield child, arriving
                continue
            used = set(_NAME.findall(text))
            pairs = zip(function.parameters, node.arguments, strict=True)
            names = {name: self._value(one) for name, one in pairs if name in used}
            names |= {"d": arriving, "alpha": "1"} | ({"r": self._value(node)} if "r" in used else {})
            target = self.local(f"d{len(self.lines)}")
            value = formula_of(function.name, parameter, names)
            self.lines.append(Line((target,), value, frozenset(names[one] for one in used if one in names)))
            yield child, target

    def _value(self, node: Node) -> str:
        """Return a name for the value of a node; a statement computes the value again if it has no name."""
        if isinstance(node, Operand):
            return self.operands[node.index]
        if id(node) in self.constant:  # a statement cannot assign a number
            text = infix(node, self.operands)
            return text if isinstance(node, Literal) and not text.startswith("-") else f"({text})"
        if id(node) not in self.names:
            name = self.names[id(node)] = self.local(f"v{len(self.lines)}")
            uses = {self.operands[one.index] for one in postorder(node) if isinstance(one, Operand)}
            self.lines.append(Line((name,), infix(node, self.operands), frozenset(uses)))
        return self.names[id(node)]


def differentiable_operands(tree: Node) -> set[int]:
    """Return the numbers of the operands that gradients reach: not conditions, and not integers."""
    operands = {node.index for node in postorder(tree) if isinstance(node, Operand)}
    return {i for i in operands if id(tree) in _active(tree, {i})}


def _active(tree: Node, wanted: set[int]) -> set[int]:
    """Return the ids of the nodes through which gradients reach the requested operands."""
    found: set[int] = set()
    for node in postorder(tree):
        if isinstance(node, Operand) and node.index in wanted:
            found.add(id(node))
        elif isinstance(node, Call):
            function = node.function
            hand_on = function.parameters if function.has_steps else function.derivatives
            pairs = zip(function.parameters, node.arguments, strict=True)
            if any(id(child) in found for parameter, child in pairs if parameter in hand_on):
                found.add(id(node))
    return found


def _is_cast(node: Node) -> bool:
    return isinstance(node, Call) and node.function.strong and bool(node.function.derivatives)
