"""Describe the differences between two identities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from seqflow.deprecated_names import with_new_names
from seqflow.identity.plans import plan_text
from seqflow.identity.transforms import same_transform
from seqflow.json_form import has_form

_AROUND = 60
"""Number of characters shown on each side of the first difference of two long texts."""
_LISTED = 4
"""Number of differences that a message lists."""
_MISSING = object()
_FILE = (str, object, object, object)
"""Entry of a file of the data: its path, size, rows and digest."""
_TRANSFORMS = ("prepare", "net")
ACCEPTABLE = (*_TRANSFORMS, "imports", "skip")
"""Sections whose changes may be accepted: they decide how batches are computed and which coming ones are left out.
Data, order and batches decide which rows are next."""


def _is_texts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values())


_NET = {
    "net": [str],
    "lines": [int],
    "constants": _is_texts,
    "files": [str],
    "ops": Mapping,
    "names": Mapping,
}
_FUNCTION = {"names": Mapping}


class Difference(NamedTuple):
    """One difference: its section or setting, and a sentence without the final period."""

    section: str
    text: str


def differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield the settings, parts of nets, and files of the data that differ, with their old and new values."""
    if then.get("format") != now.get("format"):  # without this, the sections cannot be compared
        was, expected = then.get("format", 1), now.get("format", 1)
        yield Difference(
            "format", f"its record has format {was} of another version of seqflow, expected {expected}"
        )
        return
    for name in dict.fromkeys([*now, *then]):
        before: Any = _with_new_names(name, then.get(name))
        after: Any = now.get(name)
        if name == "batch" and before is not None and after is not None:
            before, after = plan_text(before), plan_text(after)
        source = f"source.{name}"  # the loader's description of the plan has not changed
        if before == after or then.get(source) != now.get(source):
            continue
        if name in _TRANSFORMS:
            texts = _of_transforms(before, after)
        elif name == "imports" and _is_texts(before) and _is_texts(after):
            texts = _of_contents("", before, after, {})
        elif name.startswith("data") and isinstance(before, Mapping) and isinstance(after, Mapping):
            texts = (f"the data have changed: {text}" for text in _of_data(before, after))
        elif name == "shuffle" and None in (before, after):  # otherwise there are two seeds
            texts = iter([f"shuffle was {_shuffle(before)} and is {_shuffle(after)} now"])
        else:
            texts = iter([f"{name} was {{}} and is {{}} now".format(*shown(before, after))])
        yield from (Difference(name, f"[{name}] {text}" if name in _TRANSFORMS else text) for text in texts)


def _shuffle(seed: Any) -> str:
    """Return the order of the rows, from its seed."""
    return "False" if seed is None else f"Shuffle({seed!r})"


def _with_new_names(name: str, before: Any) -> Any:
    """Return the entry of a record for padding or a net with the new names of arguments."""
    if name == "pad" and _is_texts(before):
        return {column: with_new_names(text) for column, text in before.items()}
    if name in _TRANSFORMS and has_form(before, _NET):
        return {**before, "net": [with_new_names(text) for text in before["net"]]}
    return before


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


def _of_transforms(then: Any, now: Any) -> Iterator[str]:
    """Yield differences of two nets or functions; names and line numbers are ignored."""
    if same_transform(then, now):
        return
    kinds = [_kind(one) for one in (then, now)]
    if "of an unknown form" in kinds:
        yield "has an unknown form: the record is damaged"
    elif kinds[0] != kinds[1]:
        yield f"was {kinds[0]} and is {kinds[1]} now"
    else:
        found = list(_of_nets(then, now) if kinds[0] == "a net" else _of_functions(then, now))
        yield from found or ["has changed: {} was {}".format(*shown(now, then))]


def _kind(transform: Any) -> str:
    if transform is None:
        return "none"
    if has_form(transform, _NET):
        return "a net"
    return "a Python function" if has_form(transform, _FUNCTION) else "of an unknown form"


def _of_nets(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    names = now["names"]
    yield from _of_statements(then, now)
    yield from _of_contents("the constant ", then["constants"], now["constants"], names["constants"])
    for name, before, after in zip(names["files"], then["files"], now["files"], strict=False):
        if before != after:
            yield f"{name} has other content"
    for name in dict.fromkeys([*now["ops"], *then["ops"]]):
        one, other = then["ops"].get(name), now["ops"].get(name)
        if isinstance(one, Mapping) and isinstance(other, Mapping) and one != other:
            yield from (f"the op {name}: {text}" for text in _of_functions(one, other))


def _of_statements(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield changed, new and removed statements; they are paired by their targets."""
    before = [one for one in zip(then["net"], then["lines"], strict=False) if one[0] not in now["net"]]
    after = [one for one in zip(now["net"], now["lines"], strict=False) if one[0] not in then["net"]]
    by_targets = {_targets(text): text for text, _ in before}
    for text, line in sorted(after, key=lambda one: one[1]):
        earlier = by_targets.pop(_targets(text), None)
        if earlier is None and len(before) == len(after) == 1:
            earlier = before[0][0]
            by_targets.clear()
        if earlier is None:
            yield f"line {line}: `{_short(text)}` is new"
        else:
            one, other = (earlier, text) if max(len(earlier), len(text)) < 200 else cut_around(earlier, text)
            yield f"line {line}: `{other}` was `{one}`"
    for text in by_targets.values():
        yield f"`{_short(text)}` is gone"
    if not before and not after and then["net"] != now["net"]:
        yield "the statements, and so the outputs, are in another order"


def _targets(statement: str) -> str:
    left, equals, _ = statement.partition(" = ")
    return left if equals else statement.partition(" ")[0]


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"


def _of_functions(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    for name in ("version", "function", "signature", "python"):
        if then.get(name) != now.get(name):
            what = {"function": "the function", "python": "Python"}.get(name, name)
            advice = " (code of functions can only be compared inside one)" if name == "python" else ""
            yield "{} was {} and is {} now{}".format(what, *shown(then.get(name), now.get(name)), advice)
            return
    code, earlier = now.get("code", {}), then.get("code", {})
    if not _is_texts(code) or not _is_texts(earlier):
        yield "has an unknown form: the record is damaged"
        return
    for name in dict.fromkeys([*code, *earlier]):
        before, after = earlier.get(name), code.get(name)
        if before == after:
            continue
        what = "the function" if name == "function" else name
        if before is None or after is None:
            yield f"{what} is {'new' if before is None else 'gone'}"
        elif "code " in before and "code " in after:
            yield f"{what} has other code"
        else:
            yield from _of_contents("", {what: before}, {what: after}, {})
    if then.get("not covered") != now.get("not covered"):
        yield "the uncovered parts of its code have changed"


def _of_contents(
    what: str, then: Mapping[str, str], now: Mapping[str, str], names: Mapping[str, str | None]
) -> Iterator[str]:
    """Yield differences of arrays, files and values, by the name of the file if there is one."""
    for key in dict.fromkeys([*now, *then]):
        before, after = then.get(key), now.get(key)
        file = names.get(key)
        name = f"{what}{key}" + (f" ({file})" if file else "")
        if before == after:
            continue
        if before is None or after is None:
            yield f"{name} is {'new' if before is None else 'gone'}"
        elif not _has_digest(before) and not _has_digest(after):
            yield f"{name} was {before} and is {after} now"
        elif _described(before) != _described(after):
            yield f"{name} was {_described(before)} and is {_described(after)} now"
        else:
            yield f"{name} has other content"


def _has_digest(content: str) -> bool:
    last = content.rpartition(" ")[2]
    return len(last) in (16, 32) and not set(last) - set("0123456789abcdef")


def _described(content: str) -> str:
    """Return the text before the digest: dtype and shape of an array."""
    return content.rpartition(" ")[0] if _has_digest(content) else content


def _of_data(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    keys = dict.fromkeys(["files", *now, *then])  # a file tells more than the number of rows
    key = next(key for key in keys if then.get(key, _MISSING) != now.get(key, _MISSING))
    before: Any = then.get(key)
    after: Any = now.get(key)
    if key == "files" and has_form(before, [_FILE]) and has_form(after, [_FILE]):
        yield _of_files(before, after)
    elif key == "digest":
        yield "one of the files has another name, size or content"
    else:
        yield f"{key} was {{}} and is {{}} now".format(*shown(before, after))


def _of_files(then: Sequence[Any], now: Sequence[Any]) -> str:
    before, after = ({path: rest for path, *rest in files} for files in (then, now))
    for path in [*before, *after]:
        if path not in after:
            return f"{path} is gone"
        if path not in before:
            return f"{path} is new"
        (size, rows, content), (new_size, new_rows, new_content) = before[path], after[path]
        if (size, rows) != (new_size, new_rows):
            return f"{path} had {size} bytes and {rows} rows, and has {new_size} and {new_rows} now"
        if content != new_content:
            return f"{path} has other content, of the same size"
    return "the files are in another order"
