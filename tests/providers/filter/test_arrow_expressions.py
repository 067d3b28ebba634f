"""Trees of bound filters: their text, which states compare, and the expressions of Arrow that they stand for."""

import pickle
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from seqflow.expression.filter_parser import parse_filter
from seqflow.providers.filter.arrow_expressions import (
    ArrowCall,
    ArrowLiteral,
    Field,
    canonical,
    expression_of,
    fields_of,
)
from seqflow.providers.filter.binding import bind_filter

F = pc.field
SCHEMA = pa.schema(
    {
        "lang": pa.string(), "id": pa.int64(), "x": pa.float32(), "doc": pa.struct({"a": pa.int64()}),
        "tokens": pa.list_(pa.int64()), "at": pa.timestamp("us"), "flag": pa.bool_(),
    }
)  # fmt: skip
NULL = pc.scalar(pa.scalar(None, pa.bool_()))
TREES: dict[str, tuple[str, Any]] = {
    "lang=='py'": ("(lang == 'py')", F("lang") == "py"),
    "id > 5 and not x == None": (
        "((id > 5) and (x is not None))", (F("id") > 5) & F("x").is_valid(),
    ),
    "doc.a in [1, 2] or flag": ("((doc.a in [1, 2]) or flag)", F("doc", "a").isin([1, 2]) | F("flag")),
    "tokens.lengths <= 30": ("(list_value_length(tokens) <= 30)", pc.list_value_length(F("tokens")) <= 30),
    "not flag": ("(not flag)", ~F("flag")),
    "at < '2024-01-01'": (
        "(at < datetime.datetime(2024, 1, 1, 0, 0) as timestamp[us])", F("at") < datetime(2024, 1, 1),
    ),
    "x < 0.5": ("(x < 0.5 as float)", F("x") < pa.scalar(0.5, pa.float32())),
    "(lang in []) == flag": (
        "(if_else((lang is not None), (lang in []), None as bool) == flag)",
        pc.if_else(F("lang").is_valid(), F("lang").isin(pa.array([], pa.string())), NULL) == F("flag"),
    ),
    "id / 2 > 1": (
        "(divide(cast(id, {}), cast(2, {})) > 1.0)".replace(
            "{}", ", ".join(f"allow_{name}=True" for name in (
                "decimal_truncate", "float_truncate", "int_overflow", "invalid_utf8", "time_overflow", "time_truncate",
            )) + ", to_type=None as double",
        ),
        pc.divide(F("id").cast("double", safe=False), pc.scalar(2).cast("double", safe=False)) > 1.0,
    ),
}  # fmt: skip


def bound(text: str) -> Any:
    return bind_filter(text, parse_filter(text), SCHEMA)


@pytest.mark.parametrize("text", TREES)
def test_a_filter_has_a_text_and_an_expression(text: str) -> None:
    expected, expression = TREES[text]
    for tree in (bound(text), pickle.loads(pickle.dumps(bound(text)))):
        assert canonical(tree) == expected
        assert expression_of(tree).equals(expression)


def test_the_tree_is_that_of_the_text() -> None:
    tree = bound("doc.a > 1 and flag")
    compared = ArrowCall("greater", (Field(("doc", "a")), ArrowLiteral(pa.scalar(1))))
    assert tree == ArrowCall("and_kleene", (compared, Field(("flag",))))
    assert list(fields_of(tree)) == [("doc", "a"), ("flag",)]


def test_different_filters_have_different_texts() -> None:
    texts = [
        *TREES, "lang == 'pY'", "lang == 'py' or flag", "id in [1]", "id in [1, 2]", "x in [1]", "doc.a == 1",
        "abs(id) > 1", "-id > 1", "id % 2 == 1", "id % 3 == 1", "hash(id) % 2 == 1", "hash(id, seed=1) % 2 == 1",
    ]  # fmt: skip
    assert len({canonical(bound(text)) for text in texts}) == len(texts)


def test_long_chains_are_not_nested_as_deep() -> None:
    tree = bound(" or ".join(f"id == {number}" for number in range(5000)))
    assert canonical(tree).count("==") == 5000
    assert len(list(fields_of(tree))) == 5000
