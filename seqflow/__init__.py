"""seqflow: variable-length data as flat values and explicit lengths.

A variable-length sequence is a flat `values` tensor plus a separate `lengths` tensor; more levels are more
lengths tensors. Every op takes the lengths as an input; no op guesses them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from seqflow.errors import (
    ExpressionError,
    JobError,
    LodError,
    NetError,
    OpError,
    ProviderError,
    SeqflowError,
    ShapeError,
)
from seqflow.version import __version__

if TYPE_CHECKING:
    from seqflow import auto, caffe2, kernels, ops, providers, ray, registry, torch
    from seqflow.arrow_function import arrow_function
    from seqflow.executor import run
    from seqflow.expression import Expression
    from seqflow.kernels import info
    from seqflow.loader import (
        Along,
        BadRows,
        Balance,
        Buckets,
        Loader,
        Mix,
        Packed,
        Pad,
        Prefetch,
        Ranks,
        Rows,
        Schedule,
        Shuffle,
        TokenBudget,
    )
    from seqflow.loader.request import from_rows
    from seqflow.lod import LoD
    from seqflow.map_features import features, pool_features
    from seqflow.memory_pages import large_pages
    from seqflow.net import Net
    from seqflow.providers import (
        Arrow,
        Avro,
        BadFiles,
        Criteo,
        Csv,
        JsonLines,
        Libsvm,
        Megatron,
        Numpy,
        Orc,
        Parquet,
        Sqlite,
        Tar,
        Text,
        open,
    )
    from seqflow.record.from_arrow.columns import from_arrow
    from seqflow.record.to_arrow import to_arrow
    from seqflow.registry import op
    from seqflow.sequence import Sequence
    from seqflow.shape import Dimension, PartialShape
    from seqflow.tensor import TensorSlice, TensorSpec
    from seqflow.vocabulary import Vocabulary


def set_num_threads(count: int) -> None:
    """Set how many threads one call of a native kernel may use; no result depends on it.

    Args:
        count: Number of threads, from 1 to 2**31 - 1. Raise OpError for any other value.
    """
    from seqflow import kernels
    from seqflow.arguments import fits, shown

    if not fits(count, int) or not 1 <= count < 2**31:
        raise OpError(f"set_num_threads: count is {shown(count)}, expected an integer from 1 to 2**31 - 1")
    kernels.set_num_threads(count)


__all__ = [
    "Along",
    "Arrow",
    "Avro",
    "BadFiles",
    "BadRows",
    "Balance",
    "Buckets",
    "Criteo",
    "Csv",
    "Dimension",
    "Expression",
    "ExpressionError",
    "JobError",
    "JsonLines",
    "Libsvm",
    "LoD",
    "Loader",
    "LodError",
    "Megatron",
    "Mix",
    "Net",
    "NetError",
    "Numpy",
    "OpError",
    "Orc",
    "Packed",
    "Pad",
    "Parquet",
    "PartialShape",
    "Prefetch",
    "ProviderError",
    "Ranks",
    "Rows",
    "Schedule",
    "SeqflowError",
    "Sequence",
    "ShapeError",
    "Shuffle",
    "Sqlite",
    "Tar",
    "TensorSlice",
    "TensorSpec",
    "Text",
    "TokenBudget",
    "Vocabulary",
    "arrow_function",
    "auto",
    "caffe2",
    "features",
    "from_arrow",
    "from_rows",
    "info",
    "large_pages",
    "op",
    "open",
    "ops",
    "pool_features",
    "providers",
    "registry",
    "run",
    "set_num_threads",
    "to_arrow",
]

_ROOMS = {
    "arrow_function": "arrow_function",
    "executor": "run",
    "expression": "Expression",
    "kernels": "info",
    "loader": "Along BadRows Balance Buckets Loader Mix Packed Pad Prefetch Ranks Rows Schedule Shuffle TokenBudget",
    "loader.request": "from_rows",
    "lod": "LoD",
    "map_features": "features pool_features",
    "memory_pages": "large_pages",
    "net": "Net",
    "providers": "Arrow Avro BadFiles Criteo Csv JsonLines Libsvm Megatron Numpy Orc Parquet Sqlite Tar Text open",
    "record": "from_arrow to_arrow",
    "registry": "op",
    "sequence": "Sequence",
    "shape": "Dimension PartialShape",
    "tensor": "TensorSlice TensorSpec",
    "vocabulary": "Vocabulary",
}
_ON_FIRST_USE = {name: room for room, names in _ROOMS.items() for name in names.split()}
"""Names whose modules are imported at first use, like the ops and the providers: a program that only calls ops does
not import Arrow, and `import seqflow` alone imports neither Arrow nor NumPy."""
_MODULES = "auto caffe2 executor jax kernels ops providers ray registry torch"
"""Modules that are attributes from the start. `from seqflow import executor` asks for the attribute first: the error
for a name that is not here searches all ops, which took half of the time of importing the loader."""


def __getattr__(name: str) -> Any:
    if name in _MODULES.split():
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
