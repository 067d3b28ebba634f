"""seqflow: variable-length data as flat values and explicit lengths.

A variable-length sequence is a flat `values` tensor plus a separate `lengths` tensor; more levels are more
lengths tensors. Every op takes the lengths as an input; no op guesses them.
"""

from importlib import import_module
from typing import Any

from seqflow.public_names import OPTIONAL_PACKAGES, PACKAGES, ROOMS
from seqflow.version import __version__

_ON_FIRST_USE = {name: room for room, names in ROOMS.items() for name in names.split()}
__all__ = sorted([*_ON_FIRST_USE, *PACKAGES, "set_num_threads"])


def set_num_threads(count: int) -> None:
    """Set how many threads one call of a native kernel may use; no result depends on it.

    Args:
        count: Number of threads, from 1 to 2**31 - 1. Raise OpError for any other value.
    """
    from seqflow import kernels
    from seqflow.arguments import fits, shown
    from seqflow.errors import OpError

    if not fits(count, int) or not 1 <= count < 2**31:
        raise OpError(f"set_num_threads: count is {shown(count)}, expected an integer from 1 to 2**31 - 1")
    kernels.set_num_threads(count)


def __getattr__(name: str) -> Any:
    if name in PACKAGES or name in OPTIONAL_PACKAGES:
        return import_module(f"seqflow.{name}")
    if name not in _ON_FIRST_USE:
        raise _missing(name)
    value = getattr(import_module(f"seqflow.{_ON_FIRST_USE[name]}"), name)
    globals()[name] = value
    return value


def _missing(name: str) -> AttributeError:
    """Return the error for a name that is not here, which names what is."""
    from seqflow.errors import nearest
    from seqflow.names_elsewhere import instead, no_attribute
    from seqflow.registry.search import ops_for

    if name.startswith("_"):
        return no_attribute("module 'seqflow'", name, "")
    there = instead("sf", name) or nearest(name, __all__, 0.8).strip(" ()")
    return no_attribute("module 'seqflow'", name, there or ops_for(name))


def __dir__() -> list[str]:
    return sorted(__all__)
