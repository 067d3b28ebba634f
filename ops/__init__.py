"""The ops, one module for each family. Each is a pure function: arrays and lengths in, arrays and lengths out."""

if __name__ != "seqflow.ops":
    raise ImportError(f"import seqflow.ops, not {__name__}: the folder is part of seqflow")

import builtins
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from seqflow import registry

for module in iter_modules(__path__):
    if not module.ispkg:  # `shared` declares no ops
        import_module(f"{__name__}.{module.name}")

globals().update({name: registry.get(name).call for name in registry.names()})
__all__ = [name for name in registry.names() if not hasattr(builtins, name)]
"""Names of all ops except those with a name of Python's own, such as `max`, which `import *` would hide."""


def __getattr__(name: str) -> Any:
    """Return an op that was registered after import, or the NamedTuple of an op's results (pickle asks for it)."""
    results = (registry.get(op).result for op in registry.names())
    result = next((result for result in results if result is not None and result.__name__ == name), None)
    if result is not None:
        return result
    try:
        return registry.get(name).call
    except KeyError as error:
        raise AttributeError(str(error)) from None
