"""Check the form of JSON that is read from a file, which may have been damaged or edited."""

from collections.abc import Callable, Mapping
from typing import Any

LARGEST_COUNT = 2**62
"""Largest count: the sum of two counts still fits an int64."""


def has_form(value: Any, form: Any) -> bool:
    """Return whether a value read from JSON has a form.

    A form is a type; a function that returns whether the value is valid; `[form]` for a list of any length; `(form,
    …)` for a list of that length; or `{name: form}` for an object with these entries and possibly others.
    """
    if isinstance(form, dict):
        return isinstance(value, Mapping) and all(
            name in value and has_form(value[name], part) for name, part in form.items()
        )
    if isinstance(form, list):
        return isinstance(value, list) and all(has_form(part, form[0]) for part in value)
    if isinstance(form, tuple):
        fits = isinstance(value, (list, tuple)) and len(value) == len(form)
        return fits and all(has_form(*pair) for pair in zip(value, form, strict=True))
    return isinstance(value, form) if isinstance(form, type) else bool(form(value))


def is_count(value: Any) -> bool:
    """Return whether a value is an integer from 0 to LARGEST_COUNT."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST_COUNT


def numbered(form: Any) -> Callable[[Any], bool]:
    """Return the form of an object whose names are counts as text, with an entry of a form for each."""

    def fits(value: Any) -> bool:
        return isinstance(value, Mapping) and all(
            _is_number(name) and has_form(part, form) for name, part in value.items()
        )

    return fits


def _is_number(text: Any) -> bool:
    return isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 19
