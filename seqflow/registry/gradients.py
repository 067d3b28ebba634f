"""Declarations of derivatives: formulas in the language of nets, or the reason why there is none.

    grad={"data": "expand(d.sums, lengths)"}

A formula gives the gradient of an input. In it, inputs and attributes have their names, outputs are `out.sums`, and
the gradients that arrive at outputs are `d.sums`. It may have several statements; the last is an operand, or assigns
`grad`:

    grad={"start": "_, grad, _ = gather_padding(d.values, out.lengths, before=before, after=after)"}

One call may give several gradients: `{"a, b": "matmul_backward(d.product, a, b)"}`. An optional input that is not
given is omitted from the calls of a formula, where it must be a keyword. `len(tensors)` is the number of tensors in a
list.
If the formula depends on attributes, a function makes it: its parameters are attributes, and optional inputs, which
are True if they are given.
"""

from collections.abc import Callable, Mapping
from typing import Any

from seqflow.frozen import frozen


@frozen
class NoDerivative:
    """Declares that an op, or an input, has no derivative, with the reason: "it is piecewise constant"."""

    reason: str


@frozen
class MovedRows:
    """Declares that an op only moves, drops and repeats rows, and adds rows of a fill value.

    Called on the numbers of the rows, with -1 as the fill value, such an op gives the origin of each row of the
    result; the gradient of a row goes back to its origin.
    """

    fill: str | None = None
    """Attribute that is the fill value; None if the op has none."""


Formula = str | MovedRows | Callable[..., Any]
"""Text of a formula, a rule that makes it, or a function that returns either."""
Gradients = Mapping[str, Formula | NoDerivative | None] | NoDerivative | MovedRows
"""Formulas by input, or the reason why there is none; or one rule or reason for all inputs. None declares that no
gradient flows through an input, on purpose: an op reads only the shape of `like`."""
