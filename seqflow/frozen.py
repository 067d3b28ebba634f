"""Frozen dataclasses for small nodes, which take little time at import."""

from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform

C = TypeVar("C", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(kind: C) -> C:
    """Decorate a class as `dataclass(frozen=True)` does; only type checkers refuse to set a field.

    Only `__init__` is compiled: a frozen dataclass compiles six methods, which took half of the time of the import
    of the signature language.
    """
    made: Any = dataclass(eq=False, repr=False)(kind)
    names = [one.name for one in fields(made)]
    values: Any = attrgetter(*names) if names else lambda _: ()
    made.__eq__ = lambda self, other: (
        values(self) == values(other) if self.__class__ is other.__class__ else NotImplemented
    )
    made.__hash__ = lambda self: hash(values(self))
    made.__repr__ = lambda self: (
        f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"
    )
    return kind
