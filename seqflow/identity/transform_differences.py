"""Describe the differences of two nets or functions, as identities record them."""

from collections.abc import Iterator, Mapping
from typing import Any

from seqflow.deprecated_names import with_new_names
from seqflow.identity.sections import cut_around, shown
from seqflow.identity.transforms import same_transform
from seqflow.json_form import has_form


def is_texts(value: Any) -> bool:
    """Return whether a value maps names to texts."""
    return isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values())


_NET = {
    "net": [str],
    "lines": [int],
    "constants": is_texts,
    "files": [str],
    "ops": Mapping,
    "names": Mapping,
}
_FUNCTION = {"names": Mapping}


def transform_differences(section: str, then: Any, now: Any) -> Iterator[str]:
    """Yield differences of two nets or functions; names and line numbers are ignored."""
    then = _with_new_names(then)
    if not same_transform(then, now):
        yield from (f"[{section}] {text}" for text in _differences(then, now))


def _with_new_names(transform: Any) -> Any:
    """Return the record of a net with the new names of arguments."""
    if has_form(transform, _NET):
        return {**transform, "net": [with_new_names(text) for text in transform["net"]]}
    return transform


def _differences(then: Any, now: Any) -> Iterator[str]:
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
    if then.get("draws") != now.get("draws"):
        yield "its random ops draw other numbers than in the version of seqflow that began the run"
    yield from content_differences("the constant ", then["constants"], now["constants"], names["constants"])
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
    if not is_texts(code) or not is_texts(earlier):
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
            yield from content_differences("", {what: before}, {what: after}, {})
    if then.get("not covered") != now.get("not covered"):
        yield "the uncovered parts of its code have changed"


def content_differences(
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
