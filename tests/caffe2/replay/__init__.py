"""The oracle of Caffe2's semantics: its operators by name, with their own inputs and arguments, on seqflow's ops.

An op declares the operators that it implements. If a call of an operator differs from a call of the op, a row of a
table or a small function maps its inputs and arguments to those of the op, and the results to those of Caffe2: all
declared outputs, lengths and indices as int32. Intended behaviour of Caffe2 is kept, even if it is surprising, and
named in the docstring of that function. Where Caffe2 reads or writes outside its memory, leaves results unset, wraps
around, or accepts lengths that do not add up, an error is raised. More dtypes are accepted than in Caffe2.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqflow.arguments import checked
from seqflow.errors import UnknownOpError, nearest

from . import (  # importing each module adds its adapters
    dense,
    dense_sparse,
    elementwise,
    features,
    ids,
    lengths,
    padding,
    partitioning,
    quantized,
    rearrange,
    recurrent,
    sparse,
)
from .adapter import ADAPTERS, Adapter, Operator, origins

__all__ = ["TABLE", "names", "run"]

TABLE = {
    name: Operator(op, adapter.called(op), adapter.strings)
    for name, op in origins().items()
    for adapter in [ADAPTERS.get(name, Adapter())]
}
"""Every covered operator, by Caffe2's name."""


def names() -> list[str]:
    """Return the names of the covered operators, sorted."""
    return sorted(TABLE)


@checked(late=True)
def run(
    name: str, inputs: Sequence[Any], /, *, num_outputs: int | None = None, **arguments: Any
) -> list[np.ndarray[Any, Any]]:
    """Run a Caffe2 operator on its inputs, in Caffe2's order and with its arguments; return its outputs, in its
    order.

    `num_outputs` is the number of outputs of the operator in the replayed net: the first ones, by default all.
    GatherPadding with one output gives the sum of both ends; Split makes that many parts. Strings are object arrays.
    Operators that draw random numbers take a `random_seed`, as Caffe2's device options do. Raises UnknownOpError for
    an operator that is not covered, OpError for a wrong number of inputs and for unknown arguments, and the op's own
    errors.

    >>> run("PackSegments", [np.array([2, 1]), np.array([1.0, 2.0, 3.0])], max_length=3)
    [array([[1., 2., 0.],
           [3., 0., 0.]])]
    """
    if name not in TABLE:
        raise UnknownOpError(
            f"{name!r} is not a covered operator of Caffe2{nearest(name, TABLE)}"
            "\n  `names()` lists the covered ones"
        )
    return TABLE[name].run(name, inputs, arguments, num_outputs)
