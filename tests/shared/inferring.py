"""Asking the shape function of one op, and comparing what it says with what a call says."""

import numpy as np
import pytest

from seqflow import TensorSpec, ops, registry
from seqflow.signature import Described

ROWS = Described("lengths")
OTHER = Described("others")
X = np.ones((2, 3), np.float32)


def spec(shape, rows=None, dtype="float32"):
    return TensorSpec(dtype, shape, rows)


def infer(name, shapes, attributes=None, values=None):
    specs = shapes if isinstance(shapes, dict) else {"x": shapes}
    specs = {key: one if isinstance(one, (TensorSpec, list)) else spec(one) for key, one in specs.items()}
    if name == "reshape" and values is not None:
        specs["shape"], values = spec([len(values)], dtype="int64"), {"shape": np.array(values, np.int64)}
    elif name == "reshape":
        specs.setdefault("shape", spec("{?}", dtype="int64"))
    return registry.get(name).infer(specs, attributes or {}, values=values)


def shape(*args, **options):
    return str(infer(*args, **options).outputs[0].shape)


def rows(*args, **options):
    return infer(*args, **options).outputs[0].rows


def check_kept(name, x, options, expected):
    """The rows of x are those of the result, which has this shape."""
    assert rows(name, spec(x, ROWS), **options) == ROWS
    assert shape(name, spec(x, ROWS), **options) == expected
    assert rows(name, spec(x), **options) is None


def check_lost(name, x, options, expected):
    """The result has this shape, and other rows than x."""
    assert not isinstance(rows(name, spec(x, ROWS), **options), Described)
    assert shape(name, spec(x, ROWS), **options) == expected


def check_refused(name, sizes, attributes, kind, message):
    """A call with an array of shape (2, 3) and inference for it raise the same error."""
    given = {} if sizes is None else {"shape": sizes}
    with pytest.raises(kind, match=f"^{name}: .*{message}"):
        getattr(ops, name)(X, **given, **attributes)
    with pytest.raises(kind, match=f"^{name}: (?!{name}).*{message}"):
        infer(name, "{2,3}", attributes, values=sizes)
