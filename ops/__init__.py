"""The ops, one module for each family. Each is a pure function: arrays and lengths in, arrays and lengths out.

A family is imported when one of its ops is first looked up: `families.txt` says which family declares which op.
"""

if __name__ != "seqflow.ops":
    raise ImportError(f"import seqflow.ops, not {__name__}: the folder is part of seqflow")

import builtins
import os.path
from typing import Any

# not pathlib, which would take half of the time of this import
with open(os.path.join(__path__[0], "families.txt"), encoding="utf-8") as file:
    _lines = [line.split(": ") for line in file]
FAMILIES = {name: f"{__name__}.{family}" for family, names in _lines for name in names.split()}
"""Module that declares each op."""
__all__ = sorted(name for name in FAMILIES if not hasattr(builtins, name))
"""Names of all ops except those with a name of Python's own, such as `max`, which `import *` would hide."""


def __getattr__(name: str) -> Any:
    """Return the op of that name, or the NamedTuple of an op's results (pickle asks for it)."""
    from seqflow import registry

    if name.endswith("Result"):
        found = next((op for op in registry.names() if registry.result_name(op) == name), None)
        if found is not None and registry.get(found).result is not None:
            return registry.get(found).result
    try:
        call = registry.get(name).call
    except KeyError as error:
        raise AttributeError(str(error)) from None
    if name in FAMILIES:  # an op of a user may be unregistered and declared again
        globals()[name] = call
    return call


def __dir__() -> list[str]:
    from seqflow import registry

    return registry.names()
