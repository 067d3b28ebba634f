"""Expression: an elementwise formula over arrays, compiled once from its text."""

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from seqflow.arguments import checked
from seqflow.errors import ExpressionError, nearest
from seqflow.expression.functions import DType
from seqflow.expression.parser import Node, Parsed, canonical, parse, postorder, with_inputs, word
from seqflow.expression.printer import infix
from seqflow.expression.program import Program, compile_tree, run
from seqflow.kernels.arrays import Array
from seqflow.parsing.lexer import Token

_LONGEST_CACHED = 4_096
"""Most characters of a text that is cached: 256 long ones could take much memory, and are rarely used twice."""


@checked(late=True)
class Expression:
    """A formula over arrays, element by element, with NumPy's rules of broadcasting.

    Its text is infix, with names or operand numbers, or the prefix form that PNNX writes:

    Args:
        text: Formula, infix or in prefix form.

    >>> hypotenuse = Expression("sqrt(x**2 + y**2)")
    >>> hypotenuse(x=np.array([3.0, 5.0]), y=np.array([4.0, 12.0]))
    array([ 5., 13.])
    >>> Expression("sqrt(div(add(mul(@0,2),@1,1),12))")(np.array([22.0]), np.array([4.0]))
    array([2.])

    The text is parsed and compiled once; it is never evaluated as Python. Literals and Python numbers are
    weak: they take the dtype of the arrays they are combined with. Two expressions are equal if their
    canonical texts are equal. An expression keeps no state between calls, so threads may share one.

    Raises ExpressionError for malformed text, with a caret at the place.
    """

    def __init__(self, text: str) -> None:
        short = isinstance(text, str) and len(text) <= _LONGEST_CACHED
        self._parsed, self._program = _cached(text) if short else _compiled(text)
        self.text = text

    @classmethod
    def from_parsed(cls, parsed: Parsed) -> "Expression":
        """Return an expression that is part of a longer text; its errors point at the place in that text."""
        self = cls.__new__(cls)
        self._parsed, self._program = parsed, compile_tree(parsed)
        return self

    def with_inputs(self, names: Sequence[str]) -> "Expression":
        """Return the expression with its inputs renamed; equal names become one input."""
        parsed = with_inputs(self._parsed, names)
        return self if parsed is self._parsed else Expression.from_parsed(parsed)

    @cached_property
    def text(self) -> str:
        """Text as given; for a part of a longer text, printed from the syntax tree."""
        return infix(self.tree, self.inputs)

    @property
    def tokens(self) -> tuple[Token, ...]:
        """Tokens of the text, each with its start and end."""
        return self._parsed.tokens

    @property
    def tree(self) -> Node:
        """Syntax tree as written: Operand, Literal and Call nodes."""
        return self._parsed.tree

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the inputs by first appearance, or `@0`, `@1`, … up to the largest operand number."""
        return self._parsed.inputs

    @cached_property
    def rpn(self) -> list[str]:
        """Reverse Polish form of the tree.

        >>> Expression("add(mul(@0,@1),@2)").rpn
        ['@0', '@1', 'mul', '@2', 'add']
        """
        return [word(node) for node in postorder(self.tree)]

    @cached_property
    def canonical(self) -> str:
        """Prefix form with operand numbers.

        >>> Expression("sqrt((2*x + y)/12)").canonical
        'sqrt(div(add(mul(2,@0),@1),12))'
        """
        return canonical(self.tree)

    def __call__(self, /, *operands: Any, out: Array | None = None, **named: Any) -> Array:
        """Return the value for each element, as an array of the operands' broadcast shape.

        Operands are arrays or Python numbers, in the order of `inputs` or by name. If `out` is given, the result is
        written to it; it must have the result's shape and dtype, and may be one of the operands.

        Raises ExpressionError for operands that are missing, unknown, of a dtype that a function does not take, or of
        shapes that do not broadcast, and when an integer is divided by zero or raised to a negative power.
        """
        values = self._in_order(operands, named) if named or len(operands) != len(self.inputs) else operands
        return run(self._program, values, out)

    def dtype(self, /, *dtypes: Any, **named: Any) -> np.dtype[Any]:
        """Return the dtype of the result for inputs of these dtypes; Python's bool, int and float stand for numbers.

        >>> Expression("x / 2").dtype(np.int32), Expression("x / 2").dtype(x="float32")
        (dtype('float64'), dtype('float32'))
        """
        values = self._in_order(dtypes, named) if named or len(dtypes) != len(self.inputs) else dtypes
        found = tuple([_as_dtype(name, value) for name, value in zip(self.inputs, values, strict=True)])
        return self._program.plan(found).dtype

    def batch(self, tensors: Sequence[Any], batch_size: int) -> list[Array]:
        """Return the results of `batch_size` evaluations.

        `tensors` is operand-major: operand k of evaluation i is `tensors[k * batch_size + i]`.

        >>> Expression("@0 - @1").batch([10, 20, 1, 2], batch_size=2)
        [array(9), array(18)]
        """
        if isinstance(batch_size, bool) or not isinstance(batch_size, int | np.integer) or batch_size < 1:
            raise ExpressionError(
                f"expression: batch_size is {batch_size!r}, expected an integer of 1 or more"
            )
        if not isinstance(tensors, Sequence | np.ndarray):
            raise ExpressionError(f"expression: tensors is {type(tensors).__name__}, expected a list")
        expected = len(self.inputs) * int(batch_size)
        if len(tensors) != expected:
            raise ExpressionError(
                f"expression: found {len(tensors)} tensors, expected {expected}: batch_size={batch_size} times "
                f"{len(self.inputs)} operands ({', '.join(self.inputs)})"
            )
        return [run(self._program, tensors[i::batch_size]) for i in range(batch_size)]

    def _in_order(self, given: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        takes = f"{len(self.inputs)} ({', '.join(self.inputs)})" if self.inputs else "none"
        if len(given) > len(self.inputs):
            raise ExpressionError(f"expression: found {len(given)} operands, expected {takes}")
        values = dict(zip(self.inputs, given, strict=False))
        for name, value in named.items():
            if name not in self.inputs:
                raise ExpressionError(
                    f"expression: no operand is named {name!r}{nearest(name, self.inputs)}, expected {takes}"
                )
            if name in values:
                raise ExpressionError(f"expression: {name} is given twice, by position and by name")
            values[name] = value
        missing = [name for name in self.inputs if name not in values]
        if missing:
            raise ExpressionError(f"expression: no value for {', '.join(missing)}; its operands are {takes}")
        return [values[name] for name in self.inputs]

    def __eq__(self, other: object) -> bool:
        return self.canonical == other.canonical if isinstance(other, Expression) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.canonical)

    def __repr__(self) -> str:
        return f"Expression({self.text!r})"

    def __reduce__(self) -> tuple[type["Expression"], tuple[str]]:
        return Expression, (self.text,)


def _compiled(text: str) -> tuple[Parsed, Program]:
    parsed = parse(text)
    return parsed, compile_tree(parsed)


_cached = lru_cache(maxsize=256)(_compiled)


def _as_dtype(name: str, value: Any) -> DType:
    if isinstance(value, type) and value in (bool, int, float):
        return value
    try:
        dtype: np.dtype[Any] = np.dtype(value if value is not None else "None")
    except (TypeError, ValueError, SyntaxError):
        raise ExpressionError(f"expression: {name} is {value!r}, expected a dtype") from None
    return dtype
