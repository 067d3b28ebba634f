"""Remembers which op dropped the lengths of an array, for later messages."""

import weakref
from typing import Any

from seqflow.kernels.arrays import Array

_reasons: dict[int, tuple["weakref.ref[Array]", str]] = {}


def remember(array: Array, reason: str) -> None:
    """Remember, while this array lives, why it has no lengths."""
    key = id(array)
    _reasons[key] = weakref.ref(array, lambda _: _reasons.pop(key, None)), reason


def reason_for(array: Any) -> str | None:
    """Return why an array has no lengths: `sort_rows dropped them (its rows are other rows)`; None if unknown."""
    known = _reasons.get(id(array))
    return known[1] if known is not None and known[0]() is array else None
