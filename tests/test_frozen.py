"""Frozen nodes behave as frozen dataclasses."""

import dataclasses
import pickle
from dataclasses import dataclass, field

from seqflow.frozen import frozen


@frozen
class Point:
    x: int
    names: tuple[str, ...] = field(default=(), kw_only=True)


@frozen
class Other:
    x: int
    names: tuple[str, ...] = ()


@frozen
class Empty: ...


@dataclass(frozen=True)
class Model:
    x: int
    names: tuple[str, ...] = field(default=(), kw_only=True)


def test_nodes_are_equal_by_class_and_fields():
    assert Point(1) == Point(1)
    assert hash(Point(1, names=("a",))) == hash(Point(1, names=("a",)))
    assert Point(1) != Point(2)
    assert Point(1) != Other(1)
    assert Point(1) != (1, ())
    assert Empty() == Empty()
    assert len({Empty(), Empty(), Point(1), Other(1)}) == 3


def test_a_repr_is_that_of_a_dataclass():
    assert repr(Point(1, names=("a",))) == repr(Model(1, names=("a",))).replace("Model", "Point")
    assert repr(Empty()) == "Empty()"


def test_nodes_are_matched_replaced_and_pickled_as_dataclasses():
    match Point(3):
        case Point(x):
            assert x == 3
    assert dataclasses.replace(Point(1), names=("b",)) == Point(1, names=("b",))
    assert pickle.loads(pickle.dumps(Point(1))) == Point(1)
