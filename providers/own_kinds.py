"""Kinds of sources that are not built in: functions of modules."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from seqflow.errors import ProviderOptionError, nearest
from seqflow.providers.other_packages import foreign_errors


def module_of(kind: str) -> str:
    """Return the module of a kind's function, `module:function`; "" for any other kind, a URI among them."""
    module, _, name = kind.partition(":")
    return "" if name.startswith("//") else module.strip() if name else ""


def opener_of_kind(kind: str) -> Callable[..., Any]:
    """Return a kind's function; raise ProviderOptionError if there is none."""
    module, _, name = kind.partition(":")
    if not module_of(kind):
        raise ProviderOptionError(f"kind is {kind!r}, expected 'module:function'")
    try:
        found: Any = importlib.import_module(module.strip())
    except ModuleNotFoundError as error:
        # the module itself is missing, or one that it imports: they need different advice
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise ProviderOptionError(f"kind: the module {module!r} needs another: {error}") from error
        raise ProviderOptionError(f"kind: there is no module {module!r}") from None
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise ProviderOptionError(f"kind: the module {module!r} cannot be imported: {what}") from error
    for part in name.split("[")[0].strip().split("."):
        if not hasattr(found, part):
            guess = nearest(part, dir(found))
            raise ProviderOptionError(f"kind: there is no {name!r} in the module {module!r}{guess}")
        found = getattr(found, part)
    if not callable(found):
        raise ProviderOptionError(f"kind: {kind} is a {type(found).__name__}, expected a function")
    opener: Callable[..., Any] = found
    return opener


def made_by_kind(kind: str, source: Any, options: Mapping[str, Any]) -> Any:
    """Call a kind's function with a source, unless that is None, and options; return the result."""
    opener = opener_of_kind(kind)
    _check_arguments(kind, opener, () if source is None else (source,), options)
    with foreign_errors(f"{kind} has failed"):
        made = opener(**options) if source is None else opener(source, **options)
    if made is None:
        raise ProviderOptionError(f"{kind} has returned None, expected a source, or what sf.open takes")
    return made


def _check_arguments(
    kind: str, opener: Callable[..., Any], source: tuple[Any, ...], options: Mapping[str, Any]
) -> None:
    """Raise ProviderOptionError if the function does not take the source and the options."""
    try:
        parameters = inspect.signature(opener)
    except (TypeError, ValueError):  # compiled functions may have no signature
        return
    try:
        parameters.bind(*source, **options)
    except TypeError as error:
        raise ProviderOptionError(
            f"{kind}: {error}, expected {kind.rpartition(':')[2]}{parameters}\n"
            "options= are its arguments, in a job those of [source.options]"
        ) from None


def checked_options(options: Any) -> dict[str, Any]:
    """Return the options of a kind, with values as in JSON; raise ProviderOptionError for other names or values."""
    if not isinstance(options, Mapping):
        raise ProviderOptionError(f"options is a {type(options).__name__}, expected a dict")
    return {_name(name): _plain(value, f"options: {name!r}") for name, value in options.items()}


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise ProviderOptionError(f"options: {name!r} is not a name, expected text")
    return name


def _plain(value: Any, place: str) -> Any:
    """Return the value, tuples as lists; raise ProviderOptionError for a value that a state can't hold."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return {_name(name): _plain(one, f"{place}[{name!r}]") for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one, f"{place}[{at}]") for at, one in enumerate(value)]
    raise ProviderOptionError(
        f"{place} is a {type(value).__name__}, expected text, numbers, True, False, None, or lists and dicts of these"
        "\noptions are part of states; pass objects as the source, or open them in the function"
    )
