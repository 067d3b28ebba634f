"""What a Python function computes is known by its code, and by all that the code reads."""

import dataclasses
import functools
import importlib
import sys

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


MAKERS = {
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
