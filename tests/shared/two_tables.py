"""The columns that the tables of right and of mistaken nets work on: two tables, as lists, records and specs.

Their rows are different things. Sizes agree wherever they can: all list columns of the first table have six rows in
four sequences, of which the longest has three.
"""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa

import seqflow as sf
from seqflow.shape import Dimension, PartialShape
from seqflow.signature import Described, OwnRows

INT, FLOAT, VECTOR = pa.int64(), pa.float32(), pa.list_(pa.float32(), 4)
FIRST = {
    "doc": (pa.list_(INT), [[1, 2], [], [3, 4, 5], [6]]),
    "mate": (pa.list_(INT), [[7, 1], [], [2, 9, 4], [3]]),
    "tag": (pa.list_(INT), [[5], [1, 8, 2], [], [3, 4]]),
    "emb": (
        pa.list_(VECTOR),
        [
            [[1.0, 0.0, 2.0, 0.5], [0.0, 1.0, 1.0, 2.0]],
            [],
            [[2.0, 2.0, 0.0, 1.0], [1.0, 3.0, 0.5, 0.0], [0.0, 0.0, 1.0, 1.0]],
            [[4.0, 0.0, 0.0, 1.0]],
        ],
    ),
    "text": (pa.list_(pa.list_(INT)), [[[1]], [[], [2, 3]], [], [[4], [], [5, 6]]]),
    "utf": (pa.string(), ["ab", "", "cde", "f"]),
    "score": (FLOAT, [0.5, 2.0, 4.0, 8.0]),
    "label": (INT, [1, 0, 2, 1]),
    "flag": (pa.bool_(), [True, False, True, True]),
    "point": (VECTOR, [[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 0.0, 1.0], [2.0, 2.0, 2.0, 2.0], [5.0, 0.0, 0.0, 3.0]]),
}  # fmt: skip
SECOND = {
    "page": (pa.list_(INT), [[9, 8, 7], [6, 5], [4]]),
    "rating": (FLOAT, [3.0, 1.0, 2.0]),
    "chosen": (pa.bool_(), [True, True, False]),
}
CONSTANTS = {
    "weight": np.array([[1, 0, 2, 0], [0, 1, 0, 1], [1, 1, 1, 1]], np.float32),
    "bias": np.array([1, 0, 2], np.float32),
    "w_hh": np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], np.float32),
    "table": np.arange(20, dtype=np.float32).reshape(10, 2),
    "two": np.ones((4, 2), np.float32),
    "wide_weight": np.ones((3, 4)),
    "gates": np.ones((9, 3), np.float32),
    "wide_gates": np.ones((9, 4)),
    "more_gates": np.ones((12, 4), np.float32),
    "more_gates_hh": np.ones((12, 3), np.float32),
}


def record(columns):
    return sf.from_arrow(pa.table({name: pa.array(rows, kind) for name, (kind, rows) in columns.items()}))


def empty(columns):
    return {name: (kind, []) for name, (kind, _) in columns.items()}


def lists(columns):
    """The rows as plain Python, by attribute."""
    return SimpleNamespace(**{name: rows for name, (_, rows) in columns.items()})


def specs_of(source, origin):
    """What a schema says of the tensors of a record: dtypes, ranks and whose rows they hold."""
    rows, specs = OwnRows(origin), {}
    for name, parent in source.parents.items():
        array = source[name]
        shape = PartialShape.dynamic(array.ndim).named(name)
        if parent is None:
            specs[name] = sf.TensorSpec(array.dtype, shape, rows)
        else:
            shape = PartialShape([Dimension.sum_of(parent), *array.shape[1:]])
            specs[name] = sf.TensorSpec(array.dtype, shape, Described(parent))
    return specs


def net_of(text):
    net = sf.Net(text)
    return net.bind(**{name: value for name, value in CONSTANTS.items() if name in net.inputs})


def used(net, tensors):
    """The tensors that the net takes."""
    return {name: tensors[name] for name in net.inputs if name in tensors}


FIRST_RECORD, SECOND_RECORD = record(FIRST), record(SECOND)
TENSORS = {**FIRST_RECORD, **SECOND_RECORD}
SPECS = specs_of(FIRST_RECORD, "the first table") | specs_of(SECOND_RECORD, "the second table")
