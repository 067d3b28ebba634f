"""Attributes: what each kind takes."""

from typing import Literal

import numpy as np
import pytest

from seqflow.errors import OpError, OpTypeError
from seqflow.signature import NonNegative, Positive, Scalar, read_attributes


def example(
    *,
    size: NonNegative,
    step: Positive | None = None,
    keep: Literal["head", "tail"] = "head",
    empty: Scalar = 0,
    flag: bool = False,
    power: float = 0.5,
    text: str = "",
    out: np.ndarray | None = None,
): ...


ATTRIBUTES = {attribute.name: attribute for attribute in read_attributes(example)}


def test_kinds_come_from_the_annotations():
    kinds = {name: attribute.kind for name, attribute in ATTRIBUTES.items()}
    assert kinds == {
        "size": "int", "step": "int", "keep": "choice", "empty": "scalar", "flag": "bool", "power": "float",
        "text": "str", "out": "object",
    }  # fmt: skip
    assert ATTRIBUTES["size"].required
    assert not ATTRIBUTES["step"].required


def test_what_fits_is_converted_to_plain_python():
    assert type(ATTRIBUTES["size"].check(np.int32(3))) is int
    assert ATTRIBUTES["step"].check(None) is None
    assert ATTRIBUTES["power"].check(1) == 1.0
    assert ATTRIBUTES["flag"].check(np.True_) is True


@pytest.mark.parametrize(
    ("name", "value", "kind", "message"),
    [
        ("size", -1, OpError, "size is -1, expected an integer, 0 or more"),
        ("size", 1.5, OpTypeError, "size is 1.5 (float), expected an integer, 0 or more"),
        ("size", True, OpTypeError, "size is True (bool), expected an integer"),
        ("size", None, OpTypeError, "size is None"),
        ("step", 0, OpError, "step is 0, expected an integer, 1 or more, or None"),
        ("keep", "heed", OpError, "keep is 'heed', expected 'head' or 'tail' (did you mean 'head'?)"),
        ("keep", 3, OpError, "keep is 3, expected 'head' or 'tail'"),
        ("empty", "x", OpTypeError, "empty is 'x' (str), expected a number"),
        ("flag", 1, OpTypeError, "flag is 1 (int), expected True or False"),
        ("power", True, OpTypeError, "power is True (bool), expected a number"),
        ("text", 1, OpTypeError, "text is 1 (int), expected text"),
    ],
)
def test_what_does_not_fit_is_named_with_what_was_expected(name, value, kind, message):
    with pytest.raises(kind) as error:
        ATTRIBUTES[name].check(value)
    assert message in str(error.value)
