"""Differences of two identities: each place where they differ, by its path, with both values."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from seqflow.deprecated_names import with_new_names
from seqflow.identity.transforms import SHOWN
from seqflow.json_schema import matches_schema

ABSENT = object()
"""Value at a path that only one of two identities has."""

_MAY_CHANGE = ("prepare", "keep", "require", "net", "skip", "imports")
"""Sections that decide how batches are computed, or which of the coming ones are omitted. All others decide which
rows are next. A section `net of x`, of one of several sources, may not change.
"""
_TRANSFORMS = {"prepare": 1, "net": 1, "keep": 2, "require": 2}
"""Sections of nets and functions, with the length of the path of one."""
_CALLS = ("batch", "pad", *_TRANSFORMS)
"""Sections whose texts are calls, which may have old names of arguments in earlier records."""
_SUMS = ("rows", "blocks")
"""Entries of the data that follow from those of its files."""
_DIGESTS = {"digest": "the list of files", "blocks": "the list of blocks", "content": "the sample of rows"}
"""Entries of the data that are digests of others, by what these are."""
_FILE = (object, object, object)
"""Bytes, rows and digest of a file; a number is None if it is not known."""
_PRESENT = "there"
"""Text in place of a digest alone."""
_UNKNOWN = "an unknown number of"
_AROUND = 60
"""Number of characters shown on each side of the first difference of two long texts."""
_LISTED = 4
"""Number of differences that a message lists."""


class Difference(NamedTuple):
    """A place where two identities differ; one of the values is ABSENT if only the other identity has the place."""

    path: tuple[Any, ...]
    """The section, and names or numbers of entries inside it."""
    before: Any
    now: Any
    label: str | None = None
    """Name of the file, or line of the statement, at this place."""

    @property
    def section(self) -> str:
        return str(self.path[0])

    @property
    def may_change(self) -> bool:
        """Whether the difference may be accepted."""
        return self.section in _MAY_CHANGE

    @property
    def text(self) -> str:
        """The difference as a sentence without the final period."""
        section, *entries = self.path
        if section == "format":
            return f"its record has format {self.before} of another version of seqflow, expected {self.now}"
        if _section(section) != "data" or not entries:
            return self._text(_joined(self.path))
        is_file = entries[0] == "files" and all(
            one is ABSENT or matches_schema(one, _FILE) for one in self[1:3]
        )
        text = self._of_file(entries[1]) if is_file else self._text(_joined(entries))
        return f"the data have changed: {text}"

    def _text(self, name: str) -> str:
        name += f" ({self.label})" if self.label else ""
        before, now = _without_digest(self.before), _without_digest(self.now)
        if before == now:  # only the digests differ
            return f"{_DIGESTS.get(name, name)} has other content"
        one, other = _shown(before, now, is_code=_section(self.section) in _CALLS)
        if before is ABSENT:
            return f"{name} is new" + ("" if now == _PRESENT else f": {other}")
        if now is ABSENT:
            return f"{name} is gone" + ("" if before == _PRESENT else f": it was {one}")
        return f"{name} was {one} and is {other} now"

    def _of_file(self, name: str) -> str:
        if ABSENT in (self.before, self.now):
            return f"{name} is {'new' if self.before is ABSENT else 'gone'}"
        sizes = [
            pair for pair in zip(self.before, self.now, ("bytes", "rows"), strict=False) if pair[0] != pair[1]
        ]
        if not sizes:
            return f"{name} has other content, of the same size"
        had = " and ".join(f"{_UNKNOWN if was is None else was} {unit}" for was, _, unit in sizes)
        has = " and ".join(str(_UNKNOWN if now is None else now) for _, now, _ in sizes)
        return f"{name} had {had}, and has {has} now"


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield the differences of two identities, in the order of the current one.

    A section that is missing is as one that is None.
    """
    if then.get("format") != now.get("format"):  # without this, the sections cannot be compared
        yield Difference(("format",), then.get("format", 1), now.get("format", 1))
        return
    for name in dict.fromkeys([*now, *then]):
        found = list(_differing((name,), then.get(name), now.get(name)))
        if _section(name) == "data" and any(one.path[1:2] in (("files",), ("digest",)) for one in found):
            found = [one for one in found if one.path[1] not in _SUMS]
        yield from found


def listed(texts: Sequence[str]) -> str:
    """Join differences for a message: the first, then others on lines of their own."""
    others = "".join(f"\n  also {text}" for text in texts[1:_LISTED])
    more = len(texts) - _LISTED
    return texts[0] + others + (f"\n  and {more} more" if more > 0 else "")


def call_text(value: Any) -> str:
    """Return the text of a plan from its `to_dict()`: its name and fields, in the form of a dataclass."""
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        fields = ", ".join(f"{name}={call_text(of)}" for name, of in value.items() if name != "name")
        return f"{value['name']}({fields})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name!r}: {call_text(of)}' for name, of in value.items())}}}"
    return repr(tuple(value) if isinstance(value, list) else value)


def _differing(path: tuple[Any, ...], before: Any, now: Any, labels: Any = None) -> Iterator[Difference]:
    """Yield the differences of two values; `labels` has the structure of `now`, with texts for messages."""
    section = _section(path[0])
    if isinstance(before, str) and section in _CALLS:
        before = with_new_names(before)
        # states of versions before 0.3 hold the text of a plan
        now = call_text(now) if isinstance(now, Mapping) and section == "batch" else now
    if len(path) == _TRANSFORMS.get(section):
        before, now, labels = _compared(before), _compared(now), _labels(now)
    if before == now:
        return
    is_file = section == "data" and path[1:2] == ("files",) and len(path) == 3
    if isinstance(before, Mapping) and isinstance(now, Mapping) and _kind(before) == _kind(now):
        one, other = before, now
    elif isinstance(before, list) and isinstance(now, list) and not is_file:
        one, other = _entries(before, now)
    else:
        yield Difference(path, before, now, labels if isinstance(labels, str) else None)
        return
    for key in dict.fromkeys([*other, *one]):
        parts = one.get(key, ABSENT), other.get(key, ABSENT)
        yield from _differing((*path, key), *parts, labels.get(key) if isinstance(labels, Mapping) else None)
    orders = [[key for key in of if key in one and key in other] for of in (one, other)]
    if isinstance(before, list) and orders[0] != orders[1]:
        yield Difference(path, orders[0], orders[1])


def _entries(before: list[Any], now: list[Any]) -> tuple[Mapping[Any, Any], Mapping[Any, Any]]:
    """Return the entries of two lists by their names if they have them and these differ, otherwise by number."""
    found = []
    for items in (before, now):
        names = [_name_of(item) for item in items]
        if None in names or len({*names}) < len(names):
            return dict(enumerate(before)), dict(enumerate(now))
        found.append(dict(zip(names, map(_named, items), strict=True)))
    return found[0], found[1]


def _name_of(item: Any) -> str | None:
    """Return the path of a file, the name of a column, or the targets of a statement."""
    if isinstance(item, list) and item and isinstance(item[0], str):
        return item[0]
    found = re.match(r"return\b|.+?(?= = |: )", item, re.DOTALL) if isinstance(item, str) else None
    return None if found is None else found[0]


def _named(item: Any) -> Any:
    """Return an entry without its name; a statement with its targets."""
    if isinstance(item, list):
        return item[1:]
    name, is_column, rest = item.partition(": ")
    return rest if is_column and " = " not in name else item


def _compared(transform: Any) -> Any:
    """Return the identity of a net or function without entries for messages."""
    if not isinstance(transform, Mapping):
        return transform
    return {name: part for name, part in transform.items() if name not in SHOWN}


def _labels(transform: Any) -> Any:
    """Return the names of files and the lines of statements of a net by entry, or the name of a function."""
    if not isinstance(transform, Mapping):
        return None
    names = transform["names"]
    if "net" not in transform:
        return names["function"]
    lines = (f"line {line}" for line in transform["lines"])
    statements = dict(zip(map(_name_of, transform["net"]), lines, strict=True))
    return {"net": statements, "constants": names["constants"], "files": dict(enumerate(names["files"]))}


def _kind(value: Mapping[str, Any]) -> Any:
    """Return what tells nets from functions, and plans from each other: those of two kinds differ as a whole."""
    return isinstance(value.get("net"), list) or value.get("name")


def _section(name: str) -> str:
    """Return the section of which `name` is that of one of several sources, such as `batch of x`."""
    return name.partition(" of ")[0]


def _joined(path: Sequence[Any]) -> str:
    first, *others = path
    return str(first) + "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in others)


def _without_digest(value: Any) -> Any:
    """Return a value without the digest at its end: of an array, its dtype and shape."""
    first, _, last = value.rpartition(" ") if isinstance(value, str) else ("", "", "")
    is_digest = len(last) in (16, 32) and not set(last) - set("0123456789abcdef")
    return (first or _PRESENT) if is_digest else value


def _shown(before: Any, now: Any, *, is_code: bool) -> tuple[str, str]:
    """Return two values as text; long ones are cut around the place where they differ."""
    one, other = (
        f"`{text}`" if is_code and isinstance(text, str) else repr(text)
        for text in map(_readable, (before, now))
    )
    if max(len(one), len(other)) <= 3 * _AROUND:
        return one, other
    shared = next((at for at, pair in enumerate(zip(one, other, strict=False)) if len({*pair}) > 1), None)
    at = min(len(one), len(other)) if shared is None else shared
    start, stop = max(0, at - _AROUND), at + _AROUND
    return _cut(one, start, stop), _cut(other, start, stop)


def _readable(value: Any) -> Any:
    """Return a net as its statements, a function or a plan as text, and other values as they are."""
    if isinstance(value, list):
        return [_readable(one) for one in value]
    if matches_schema(value, {"net": [str]}):
        return "; ".join(value["net"])
    if matches_schema(value, {"code": Mapping}) or matches_schema(value, {"function": str, "version": str}):
        return "a Python function"
    return call_text(value) if matches_schema(value, {"name": str}) else value


def _cut(text: str, start: int, stop: int) -> str:
    return f"{'…' if start else ''}{text[start:stop]}{'…' if stop < len(text) else ''}"
