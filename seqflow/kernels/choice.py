"""Which kernels are in use, with which instruction set, on how many threads."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from seqflow.kernels import reference

native: ModuleType | None
_why_not_native: str | None = None
try:
    from seqflow.kernels import native
except ImportError as error:
    native = None
    _why_not_native = str(error)

chosen: Any = native or reference
"""The implementation in use: a module with the functions of `seqflow.kernels`."""


def set_num_threads(count: int) -> None:
    """How many threads one call of a native kernel may use; no result depends on it."""
    if count < 1:
        raise ValueError(f"the number of threads is {count}, expected 1 or more")
    if native is not None:
        native.set_num_threads(count)


def num_threads() -> int:
    """How many threads one call may use: at first as many as there are cores, at most 8."""
    return 1 if native is None else native.num_threads()


@contextmanager
def single_thread() -> Iterator[None]:
    """Inside, kernels called from this Python thread run on it alone."""
    if native is None:
        yield
        return
    native.enter_single_thread()
    try:
        yield
    finally:
        native.leave_single_thread()


@contextmanager
def use(name: str) -> Iterator[None]:
    """Inside, all threads use the "native" or the "reference" kernels; or native ones with the instruction
    set "baseline", "avx2" or "avx512"."""
    global chosen
    before, isa = chosen, None if native is None else native.isa()
    _choose(name)
    try:
        yield
    finally:
        chosen = before
        if native is not None:
            native.set_isa(isa)


def info() -> dict[str, Any]:
    """Which kernels are in use: `kernels`, `isa`, `isas` (all this machine can run), `threads`, and `why`
    native ones are missing (None where they are not)."""
    if native is None or chosen is reference:
        return {"kernels": "reference", "isa": None, "isas": [], "threads": 1, "why": _why_not_native}
    return {
        "kernels": "native",
        "isa": native.isa(),
        "isas": native.isas(),
        "threads": native.num_threads(),
        "why": None,
    }


def _choose(name: str) -> None:
    global chosen
    if name not in ("reference", "native", "baseline", "avx2", "avx512"):
        raise ValueError(
            f"kernels are {name!r}, expected 'reference', 'native', 'baseline', 'avx2' or 'avx512'"
        )
    if name == "reference":
        chosen = reference
        return
    if native is None:
        raise RuntimeError(f"there are no native kernels: {_why_not_native}")
    if name != "native":
        native.set_isa(name)
    chosen = native


if _wanted := os.environ.get("SEQFLOW_KERNELS"):
    _choose(_wanted)
    if _wanted == "reference":
        _why_not_native = "SEQFLOW_KERNELS=reference"
