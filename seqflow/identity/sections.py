"""Sections of an identity: rooms contribute how theirs are compared, and which of their changes may be accepted."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Compare = Callable[[str, Any, Any], Iterator[str]]
"""Yields the differences of a section, given its name, the earlier value and the current one, each as a sentence
without the final period. The two values differ; one of them is None if only one identity has the section."""

_AROUND = 60
"""Number of characters shown on each side of the first difference of two long texts."""
_LISTED = 4
"""Number of differences that a message lists."""


class Difference(NamedTuple):
    """One difference: its section, a sentence without the final period, and whether it may be accepted."""

    section: str
    text: str
    may_change: bool


class _Kind(NamedTuple):
    compare: Compare
    may_change: bool


_KINDS: dict[str, _Kind] = {}


def section(name: str, compare: Compare | None = None, *, may_change: bool = False) -> None:
    """Contribute a section; without `compare`, its values are shown.

    A section that may change decides how batches are computed, or which of the coming ones are left out. All others
    decide which rows are next. Sections that no room contributes are compared by value.
    """
    _KINDS[name] = _Kind(compare or by_value, may_change)


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield the differences of two identities, in the order of the current one.

    A section `name of x` is that of one of several sources; it is compared as `name` is.
    """
    if then.get("format") != now.get("format"):  # without this, the sections cannot be compared
        was, expected = then.get("format", 1), now.get("format", 1)
        text = f"its record has format {was} of another version of seqflow, expected {expected}"
        yield Difference("format", text, False)
        return
    for name in dict.fromkeys([*now, *then]):
        before, after = then.get(name), now.get(name)
        if before != after:
            kind = _KINDS.get(name.partition(" of ")[0], _Kind(by_value, False))
            may_change = kind.may_change and name in _KINDS
            yield from (Difference(name, text, may_change) for text in kind.compare(name, before, after))


def by_value(name: str, before: Any, after: Any) -> Iterator[str]:
    """Yield the values of a section, as it was and as it is; long ones are cut to the place where they differ."""
    if before != after:
        yield "{} was {} and is {} now".format(name, *shown(before, after))


def listed(texts: Sequence[str]) -> str:
    """Join differences for a message: the first, then others on lines of their own."""
    others = "".join(f"\n  also {text}" for text in texts[1:_LISTED])
    more = len(texts) - _LISTED
    return texts[0] + others + (f"\n  and {more} more" if more > 0 else "")


def shown(before: Any, after: Any) -> tuple[str, str]:
    """Return two values as text; long ones are cut around the place where they differ."""
    one, other = repr(before), repr(after)
    if max(len(one), len(other)) <= 3 * _AROUND:
        return one, other
    return cut_around(one, other)


def cut_around(one: str, other: str) -> tuple[str, str]:
    """Cut two texts to the surroundings of the first character that differs."""
    shared = next((at for at, pair in enumerate(zip(one, other, strict=False)) if len({*pair}) > 1), None)
    at = min(len(one), len(other)) if shared is None else shared
    start, stop = max(0, at - _AROUND), at + _AROUND
    return _cut(one, start, stop), _cut(other, start, stop)


def _cut(text: str, start: int, stop: int) -> str:
    return f"{'…' if start else ''}{text[start:stop]}{'…' if stop < len(text) else ''}"
