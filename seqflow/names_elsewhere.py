"""Names that people type first, and their names in seqflow.

One table for errors of missing attributes and options, and for `seqflow ops --search`. Names of ops elsewhere are
in `registry/known_as.txt`.
"""

import os.path
from collections.abc import Callable, Mapping
from functools import cache
from typing import NoReturn, TypeVar

C = TypeVar("C", bound=type)
_FILE = os.path.splitext(__file__)[0] + ".txt"


@cache
def table() -> Mapping[tuple[str, str], str]:
    """Return the advice on each name, by its place: `sf`, a class, or `option`, an argument by keyword.

    A line of `names_elsewhere.txt` has a place, the names that are typed there, and the advice, separated by tabs.
    """
    with open(_FILE, encoding="utf-8") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return {(place, name): advice for place, names, advice in rows for name in names.split()}


def instead(place: str, name: str) -> str:
    """Return the advice on a name that a place does not have; an empty string if the table has no such name."""
    return table().get((place, name), "")


def found_anywhere(name: str) -> list[str]:
    """Return the advice on a name, in the order of the places."""
    return [there for (_, known), there in table().items() if known.lower() == name.strip().lower()]


def no_attribute(what: str, name: str, advice: str) -> AttributeError:
    """Return the error of a missing attribute; Python adds no guesses of its own, because `obj` is set."""
    text = f"{what} has no attribute {name!r}"
    return AttributeError(f"{text}\n  {advice}" if advice else text, obj=what)


def explains_missing(place: str, otherwise: str = "", hidden: str = "") -> Callable[[C], C]:
    """Return a decorator of classes: a missing attribute names what is there, `dir` lists public names only.

    `otherwise` is the advice on names outside the table, a format with {name}; `hidden` has the names of attributes
    for other modules of seqflow, which `dir` omits.
    """

    def missing(self: object, name: str) -> NoReturn:
        advice = "" if name.startswith("_") else instead(place, name) or otherwise.format(name=name)
        raise no_attribute(f"{type(self).__name__!r} object", name, advice)

    def listed(self: object) -> list[str]:
        names = set(object.__dir__(self)) - {*hidden.split()}
        return sorted(name for name in names if not name.startswith("_"))

    def decorate(cls: C) -> C:
        # set here, not written in the class: a type checker would allow any name
        setattr(cls, "__getattr__", missing)  # noqa: B010
        setattr(cls, "__dir__", listed)  # noqa: B010
        return cls

    return decorate
