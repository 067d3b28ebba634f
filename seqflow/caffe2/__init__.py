"""Runs Caffe2's operators by name, with their own inputs and arguments, on seqflow's ops.

An op declares which operators it is. Where a call of an operator differs from a call of the op, a row of a table or
a small function brings its inputs and arguments into the op's order, and the results into Caffe2's: every output it
declares, lengths and indices in its int32. What Caffe2 does on purpose, however surprising, is kept and named in the
docstring of that function. Where it reads or writes outside its memory, leaves results unset, wraps around, or takes
lengths that do not add up, there is an error. More dtypes are taken than Caffe2 takes.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from seqflow.arguments import checked
from seqflow.caffe2 import (  # each adds its adapters
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
from seqflow.caffe2.adapter import ADAPTERS, Adapter, Operator, origins
from seqflow.errors import UnknownOpError, nearest

__all__ = ["TABLE", "names", "run"]

TABLE = {
    name: Operator(op, adapter.called(op), adapter.strings)
    for name, op in origins().items()
    for adapter in [ADAPTERS.get(name, Adapter())]
}
"""Every operator that is covered, by Caffe2's name."""


def names() -> list[str]:
    """The operators that are covered, sorted."""
    return sorted(TABLE)


@checked(late=True)
def run(
    name: str, inputs: Sequence[Any], /, *, num_outputs: int | None = None, **arguments: Any
) -> list[np.ndarray[Any, Any]]:
    """Run a Caffe2 operator on its inputs, in Caffe2's order and with its arguments; its outputs, in its order.

    `num_outputs` is how many outputs the operator has in the net that is replayed: the first ones, by default all.
    GatherPadding with one gives the sum of both ends, Split makes as many parts. Strings come and go as object
    arrays. Operators that draw random numbers take a `random_seed`, as Caffe2's device options do. Raises
    UnknownOpError for an operator that is not covered, OpError for a wrong number of inputs and for unknown
    arguments, and the op's own errors.

    >>> run("PackSegments", [np.array([2, 1]), np.array([1.0, 2.0, 3.0])], max_length=3)
    [array([[1., 2., 0.],
           [3., 0., 0.]])]
    """
    if name not in TABLE:
        raise UnknownOpError(
            f"no operator of Caffe2 that is covered is named {name!r}{nearest(name, TABLE)}"
            "\n  `seqflow.caffe2.names()` lists them"
        )
    return TABLE[name].run(name, inputs, arguments, num_outputs)
