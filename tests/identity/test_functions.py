"""What a Python function computes is known by its code, and by all that the code reads."""

import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import importlib
import operator
import sys
import types
from collections import OrderedDict, deque, namedtuple

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.identity.functions import function_content

TABLE = np.arange(3)


def closure(k, text=""):
    def outer(record):
        """Nested functions are code, too."""

        def inner(x):
            return x * k

        return {"y": inner(record["x"]), "z": text}

    return outer


def default(k):
    def call(record, *, factor=k):
        return record["x"] * factor

    return call


class Scaled:
    def __init__(self, k):
        self.k = k

    def __call__(self, record):
        return record["x"] * self.k

    def method(self, record):
        return record["x"] + self.k


class Slotted:
    __slots__ = ("k",)

    def __init__(self, k):
        self.k = k

    def __call__(self, record):
        return record


@dataclasses.dataclass
class Fields:
    k: object

    def __call__(self, record):
        return record


def calling(helper):
    return lambda record: helper(record)


def add(k, record):
    return record["x"] + k


def members(k):
    names = {"a", "b", "c", str(k)}
    return lambda record: record in names


def in_module(k, name="module_of_a_function"):
    """A function of a module whose text says k."""
    module = type(sys)(name)
    exec(f"K = {k}\ndef helper(x): return x * K\ndef call(record): return helper(record)", module.__dict__)
    return module.call


class Decorator:
    """An object that calls another function, with a value of its own."""

    def __init__(self, k):
        self.k = k
        functools.update_wrapper(self, add)

    def __call__(self, record):
        return add(self.k, record)


def with_attribute(k):
    def call(record):
        return record["x"] * call.k

    call.k = k
    return call


def with_metaclass(k):
    def go(kind, record):
        return record["x"] * k

    return calling(type("Meta", (type,), {"go": go})("Kind", (), {}))


def enum_with_method(k):
    kind = enum.Enum("Kind", {"A": 1, "of": lambda self, x: x * k})
    return calling(kind.A)


def subclass(kind):
    """Closures of objects of the user's own class, which is also one of Python's."""
    own = type("Own", (kind,), {})
    return lambda k: closure(own(k))


MAKERS = {
    "decorator with a value": Decorator,
    "attribute of a function": with_attribute,
    "metaclass": with_metaclass,
    "method of an enum": enum_with_method,
    "order of a dict": lambda k: closure(OrderedDict.fromkeys([k, 3] if k < 3 else [3, 1])),
    "masked array": lambda k: closure(np.ma.array([1, 2], mask=[k == 1, False])),
    "array of objects": lambda k: closure(np.array([k, "a"], object)),
    "an int of one's own": subclass(int),
    "a text of one's own": lambda k: subclass(str)(str(k)),
    "a set of one's own": lambda k: subclass(set)([k]),
    "a dict of one's own": lambda k: subclass(dict)({"a": k}),
    "an array of one's own": lambda k: closure(np.array([k]).view(type("Own", (np.ndarray,), {}))),
    "a named tuple": lambda k: closure(namedtuple("Pair", "one two")(k, 2)),
    "date": lambda k: closure(datetime.date(2020, 1, k)),
    "duration": lambda k: closure(datetime.timedelta(k)),
    "decimal": lambda k: closure(decimal.Decimal(k)),
    "fraction": lambda k: closure(fractions.Fraction(1, k)),
    "bytearray": lambda k: closure(bytearray([k])),
    "deque": lambda k: closure(deque([k])),
    "namespace": lambda k: closure(types.SimpleNamespace(k=k)),
    "itemgetter": lambda k: calling(operator.itemgetter(k)),
    "closure": closure,
    "closure of an array": lambda k: closure(np.array([1, k])),
    "closure of a dict": lambda k: closure({"a": [1, (2, k)]}),
    "closure of a list of arrays": lambda k: closure([np.array([1, k]), 2]),
    "closure of a sequence": lambda k: closure(sf.open(pa.table({"x": [[1] * k, [1] * (9 - k)]}))["x"]),
    "closure of a net": lambda k: closure(sf.Net(f"y = x * {k}")),
    "closure of a vocabulary": lambda k: closure(sf.Vocabulary([k]).freeze()),
    "default": default,
    "partial": lambda k: functools.partial(add, k),
    "partial by name": lambda k: functools.partial(add, k=k),
    "partial of a partial": lambda k: functools.partial(functools.partial(add, k)),
    "object": Scaled,
    "object with slots": Slotted,
    "dataclass": Fields,
    "object of an object": lambda k: Fields(Fields(k)),
    "method": lambda k: Scaled(k).method,
    "helper": lambda k: calling(closure(k)),
    "cached": lambda k: functools.lru_cache(closure(k)),
    "wrapped": lambda k: functools.wraps(add)(closure(k)),
    "set": members,
    "globals": in_module,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_what_a_function_reads_is_part_of_it(make):
    assert function_content(make(1)) == function_content(make(1))
    assert function_content(make(1)) != function_content(make(7))
    assert "not covered" not in function_content(make(1))


def test_code_is_part_of_a_function_and_its_place_is_not():
    one, same, other = (
        eval(text) for text in ("lambda r: r['x'] + 1", "\n\nlambda  r:  r['x']+1", "lambda r: r['x'] + 2")
    )
    assert function_content(one) == function_content(same) != function_content(other)
    assert function_content(lambda x: np.sqrt(x)) != function_content(lambda x: np.cbrt(x))


def test_an_own_op_is_known_by_its_body():
    def op_of(k):
        def times_for_identity(x):
            """Times."""
            return x * k

        return sf.op("x[N] -> y[N]")(times_for_identity) if k == 1 else times_for_identity

    found = function_content(lambda record: op_of(1)(record))
    assert found["code"]["op_of"].startswith("code ")


def test_what_cannot_be_looked_into_is_named(tmp_path):
    stream = open(tmp_path / "a.txt", "w")  # noqa: SIM115
    try:
        assert function_content(lambda record: stream)["not covered"] == ["stream: _io.TextIOWrapper"]
    finally:
        stream.close()


def test_a_module_without_a_file_is_named():
    assert function_content(closure(types.ModuleType("made")))["not covered"] == ["k: module made"]
    assert "not covered" not in function_content(closure(sys))


def test_an_object_that_fails_when_it_is_asked_is_named():
    class Failing(str):
        def __str__(self):
            raise RuntimeError

    assert any("Failing" in one for one in function_content(closure(Failing("a")))["not covered"])


def test_circles_end():
    circle = [1]
    circle.append(circle)

    def again(n):
        return again(n - 1) if n else circle

    assert function_content(again) == function_content(again)


def test_the_text_of_an_own_module_is_part_of_a_function_that_uses_it(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))

    def content(text):
        (tmp_path / "module_for_identity.py").write_text(text)
        sys.modules.pop("module_for_identity", None)
        importlib.invalidate_caches()
        module = importlib.import_module("module_for_identity")
        return function_content(lambda record: module.times(record))

    assert content("def times(x): return x * 1\n") != content("def times(x): return x * 77\n")
    sys.modules.pop("module_for_identity", None)


class Key:
    pass


@pytest.mark.parametrize("make", [lambda: {Key(): 1}, lambda: {len: [Key()]}, lambda: {Key(), Key()}])
def test_addresses_are_no_content(make):
    assert function_content(closure(make())) == function_content(closure(make()))
