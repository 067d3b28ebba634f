"""Check the schema of JSON that is read from a file, which may have been damaged or edited."""

from collections.abc import Callable, Mapping
from typing import Any

LARGEST_COUNT = 2**62
"""Largest count: the sum of two counts still fits an int64."""


def matches_schema(value: Any, schema: Any) -> bool:
    """Return whether a value read from JSON matches a schema.

    A schema is a type; a function that returns whether the value is valid; `[schema]` for a list of any length;
    `(schema, …)` for a list of that length; or `{name: schema}` for an object with these entries and possibly others.
    """
    if isinstance(schema, dict):
        return isinstance(value, Mapping) and all(
            name in value and matches_schema(value[name], part) for name, part in schema.items()
        )
    if isinstance(schema, list):
        return isinstance(value, list) and all(matches_schema(part, schema[0]) for part in value)
    if isinstance(schema, tuple):
        fits = isinstance(value, (list, tuple)) and len(value) == len(schema)
        return fits and all(matches_schema(*pair) for pair in zip(value, schema, strict=True))
    return isinstance(value, schema) if isinstance(schema, type) else bool(schema(value))


def is_count(value: Any) -> bool:
    """Return whether a value is an integer from 0 to LARGEST_COUNT."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST_COUNT


def numbered(schema: Any) -> Callable[[Any], bool]:
    """Return the schema of an object whose names are counts as text, with an entry of a schema for each."""

    def fits(value: Any) -> bool:
        return isinstance(value, Mapping) and all(
            _is_number(name) and matches_schema(part, schema) for name, part in value.items()
        )

    return fits


def _is_number(text: Any) -> bool:
    return isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 19
