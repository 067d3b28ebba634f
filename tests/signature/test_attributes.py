"""Attributes: what each kind takes."""

from typing import Literal

import numpy as np
import pytest

from seqflow.errors import OpError, OpTypeError
from seqflow.signature import (
    CountOrSizes,
    Dtype,
    Ints,
    NonNegative,
    Positive,
    Scalar,
    Sizes,
    Texts,
    read_attributes,
)


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
    axes: Ints | None = None,
    repeats: Sizes = (),
    parts: CountOrSizes = 1,
    dtype: Dtype = np.dtype("float32"),  # noqa: B008
    roles: Texts = (),
): ...


ATTRIBUTES = {attribute.name: attribute for attribute in read_attributes(example)}


def test_kinds_come_from_the_annotations():
    kinds = {name: attribute.kind for name, attribute in ATTRIBUTES.items()}
    assert kinds == {
        "size": "int", "step": "int", "keep": "choice", "empty": "scalar", "flag": "bool", "power": "float",
        "text": "str", "out": "object", "axes": "ints", "repeats": "ints", "parts": "parts", "dtype": "dtype",
        "roles": "texts",
    }  # fmt: skip
    assert ATTRIBUTES["size"].required
    assert not ATTRIBUTES["step"].required


def test_what_fits_is_converted_to_plain_python():
    assert type(ATTRIBUTES["size"].check(np.int32(3))) is int
    assert ATTRIBUTES["step"].check(None) is None
    assert ATTRIBUTES["power"].check(1) == 1.0
    assert ATTRIBUTES["roles"].check("user") == ATTRIBUTES["roles"].check(["user"]) == ("user",)
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
        ("roles", ["a", 1], OpTypeError, "roles is ['a', 1] (list), expected text or a list of texts"),
        ("flag", 1, OpTypeError, "flag is 1 (int), expected True or False"),
        ("power", True, OpTypeError, "power is True (bool), expected a number"),
        ("text", 1, OpTypeError, "text is 1 (int), expected text"),
    ],
)
def test_what_does_not_fit_is_named_with_what_was_expected(name, value, kind, message):
    with pytest.raises(kind) as error:
        ATTRIBUTES[name].check(value)
    assert message in str(error.value)


@pytest.mark.parametrize("value", [2, [2], (2,), range(2, 3), np.array([2]), np.array(2), np.int32(2)])
def test_an_int_or_a_list_of_ints_becomes_a_tuple(value):
    assert ATTRIBUTES["axes"].check(value) == (2,)
    assert type(ATTRIBUTES["axes"].check(value)[0]) is int


@pytest.mark.parametrize("value", ["1", [0.5], [True], [None], [[1]], {1}])
def test_a_list_of_anything_else_is_refused(value):
    with pytest.raises(OpTypeError, match=r"^axes(\[0\])? is .*, expected (an integer|integers, or None)$"):
        ATTRIBUTES["axes"].check(value)


def test_sizes_are_not_negative():
    assert ATTRIBUTES["repeats"].check([0, 2]) == (0, 2)
    with pytest.raises(OpError, match=r"repeats\[1\] is -1, expected an integer, 0 or more"):
        ATTRIBUTES["repeats"].check([0, -1])


def test_a_count_stays_an_int_and_sizes_a_tuple():
    assert ATTRIBUTES["parts"].check(np.int64(3)) == 3
    assert ATTRIBUTES["parts"].check([3, 0]) == (3, 0)
    for wrong in (0, [], [-1], "3", 0.5, [[1]]):
        with pytest.raises(OpError, match=r"^parts"):
            ATTRIBUTES["parts"].check(wrong)


@pytest.mark.parametrize("value", ["float32", np.float32, np.dtype(">f4"), float, "M8[s]", "bool"])
def test_a_dtype_goes_by_name_or_type_and_is_native(value):
    found = ATTRIBUTES["dtype"].check(value)
    assert found == np.dtype(value).newbyteorder("=")
    assert found.isnative


@pytest.mark.parametrize("value", ["flaot32", "f4,f4", "", None, object, "U3", "V2", 3, [1], b"\xff"])
def test_what_is_no_dtype_of_numbers_is_refused(value):
    with pytest.raises(OpError, match=r"dtype is .*, expected a dtype of numbers, bools or times"):
        ATTRIBUTES["dtype"].check(value)


@pytest.mark.parametrize("name", ["axes", "repeats", "parts", "dtype"])
def test_the_quick_condition_takes_nothing_the_check_refuses(name):
    attribute = ATTRIBUTES[name]
    values = [None, 1, 0, -1, True, (1,), (-1,), (True,), (), [1], "a", 0.5, np.dtype("f4"), np.dtype(">f4")]
    for value in values:
        if eval(attribute.condition(), {"dtype_class": np.dtype, name: value}):
            assert attribute.check(value) == value
