"""Prints a syntax tree as infix text, which parses to the same tree."""

from collections.abc import Sequence

from seqflow.expression.parser import ATOM, BINDING, COMPARISON, POWER, UNARY, Call, Literal, Node, Operand


def infix(tree: Node, names: Sequence[str]) -> str:
    """Return the tree as infix text with as few brackets as possible; `names` are the names of its inputs.

    The text is built on a stack, since trees may be nested deeper than Python's limit of recursion.
    """
    pieces: list[str] = []
    stack: list[str | tuple[Node, int]] = [(tree, 0)]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            pieces.append(item)
            continue
        node, least = item
        written = _written(node, names)
        if _binding(node) < least:
            written = ["(", *written, ")"]
        stack.extend(reversed(written))
    return "".join(pieces)


def _written(node: Node, names: Sequence[str]) -> list[str | tuple[Node, int]]:
    """Return the pieces of a node: texts, and operands, each with the lowest level that needs no brackets there."""
    match node:
        case Operand(index=index):
            return [names[index]]
        case Literal(value=value):
            return [repr(value)]
        case Call(function=function, arguments=(left, right)) if _is_operator(node):
            binding = BINDING[str(function.operator)]
            if binding == POWER:  # it groups to the right, and a sign may follow it
                return [(left, POWER + 1), " ** ", (right, UNARY)]
            first = binding + 1 if binding == COMPARISON else binding  # comparisons do not chain
            return [(left, first), f" {function.operator} ", (right, binding + 1)]
        case Call(function=function, arguments=(only,)) if _is_operator(node):
            return [str(function.operator), (only, UNARY)]
        case Call(function=function, arguments=arguments):
            separated: list[str | tuple[Node, int]] = [f"{function.name}("]
            for i, argument in enumerate(arguments):
                separated += [", "] * (i > 0) + [(argument, 0)]
            return [*separated, ")"]
    raise AssertionError(node)  # the three kinds above are all there are


def _is_operator(call: Call) -> bool:
    """Return whether a call is written as an operator; a minus before a literal would become part of it."""
    if call.function.operator is None:
        return False
    (first, *rest) = call.arguments
    return bool(rest) or not (isinstance(first, Literal) and type(first.value) is not bool)


def _binding(node: Node) -> int:
    """Return the level of the outermost operator of a node; a higher level binds more strongly."""
    match node:
        case Literal(value=value) if repr(value).startswith("-"):
            return UNARY
        case Call(function=function, arguments=arguments) if _is_operator(node):
            return BINDING[str(function.operator)] if len(arguments) == 2 else UNARY
    return ATOM
