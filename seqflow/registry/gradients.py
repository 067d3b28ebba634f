"""What an op says of its derivative: formulas in the language of nets, or the reason why there is none.

    grad={"data": "expand(d.sums, lengths)"}

A formula gives the gradient of an input. It speaks of the inputs and attributes by name, of the outputs as
`out.sums`, and of the gradients that arrive at them as `d.sums`. It may have several statements; the last is an
operand, or assigns `grad`:

    grad={"start": "_, grad, _ = gather_padding(d.values, out.lengths, before=before, after=after)"}

One call may give several gradients: `{"a, b": "matmul_backward(d.product, a, b)"}`. An input that is left out is left
out of calls as well, where it is given by keyword. `len(tensors)` is the number of tensors in a list.
Where attributes decide, a function makes the formula: its parameters are attributes, and optional inputs, which are
True where they are given.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class NoDerivative:
    """An op, or an input of one, has no derivative, and this is why: "it is piecewise constant"."""

    reason: str


@dataclass(frozen=True, slots=True)
class MovedRows:
    """An op moves, drops and repeats rows, and makes no others than those of a fill value.

    On the numbers of the rows, with -1 as its fill value, it says for each row of the result where it comes from:
    there the gradient goes back to.
    """

    fill: str | None = None
    """The attribute that is the fill value."""


Formula = str | MovedRows | Callable[..., Any]
"""Its text, a rule that makes it, or a function that gives either."""
Gradients = Mapping[str, Formula | NoDerivative | None] | NoDerivative | MovedRows
"""For inputs the formula, or the reason why there is none; or either for all inputs. None says that no gradient flows
through an input, and that this is meant: of `like` only the shape is read."""
