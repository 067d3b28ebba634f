"""Selects native or NumPy kernels, the instruction set and the number of threads.

A kernel is a function in NumPy with `@kernel`. A call first goes to the function of the same name in the extension,
with all arguments by position, which returns NotImplemented for arguments that it does not support. It is then called
again, with the arrays in the forms that `@kernel` declares. If it returns NotImplemented again, NumPy computes the
result.
"""

import builtins
import linecache
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, update_wrapper
from types import CodeType, FunctionType
from typing import Any, TypeVar

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.kernels.forms import Form

_why_not_native: str | None = None
try:
    import seqflow.kernels._native as _native
except ImportError as error:
    _native = None
    _why_not_native = str(error)

INSTRUCTION_SETS = ("baseline", "avx2", "avx512")
"""Instruction sets for which kernels can be compiled, in ascending order."""

Function = TypeVar("Function", bound=Callable[..., Any])
Forms = Mapping[str, "Form | Mapping[str, Form]"]

KERNELS: dict[str, "Kernel"] = {}
"""Every kernel by its name."""


class Kernel:
    """A function in NumPy, and the native function of the same name (None if there is none).

    forms: the native form of each argument that is an array, or of each item of a tuple of arrays. call: the function
    for callers.
    """

    def __init__(self, body: Callable[..., Any], forms: Forms) -> None:
        self.body = body
        self.forms = forms
        self.native: Callable[..., Any] | None = getattr(_native, body.__name__, None)
        code = body.__code__
        self.positional = code.co_argcount
        self.parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.call, self._scope = _dispatching(body, self.parameters)
        self._scope["otherwise"] = self._otherwise

    def select(self, native: bool) -> None:
        """Choose whether calls try the native function first."""
        self._scope["first"] = self.native if native and self.native is not None else self._by_numpy

    def _by_numpy(self, *arguments: Any) -> Any:
        named = zip(self.parameters[self.positional :], arguments[self.positional :], strict=True)
        return self.body(*arguments[: self.positional], **dict(named))

    def _otherwise(self, *arguments: Any) -> Any:
        """Call the native function with the arrays in its forms, then NumPy."""
        brought = tuple(
            value if value is None or name not in self.forms else _brought(value, name, self.forms[name])
            for name, value in zip(self.parameters, arguments, strict=True)
        )
        if self.native is not None and not any(value is NotImplemented for value in brought):
            result = self.native(*brought)
            if result is not NotImplemented:
                return result
        return self._by_numpy(*arguments)


def kernel(**forms: "Form | Mapping[str, Form]") -> Callable[[Function], Function]:
    """Register a function in NumPy as a kernel; `forms` gives the native form of each of its arrays."""

    def register(body: Function) -> Function:
        made = KERNELS[body.__name__] = Kernel(body, forms)
        made.select(chosen == "native")
        return made.call  # type: ignore[return-value]

    return register


def extension() -> Any:
    """Return the extension; None if it was not built."""
    return _native


def set_num_threads(count: int) -> None:
    """Set how many threads one call of a native kernel may use; no result depends on it."""
    if count < 1:
        raise ValueError(f"the number of threads is {count}, expected 1 or more")
    if _native is not None:
        _native.set_num_threads(count)


def set_kept_memory(limit: int) -> None:
    """Set the number of bytes of freed results that are kept for later ones (default: 256 MiB; 0 keeps none).

    On Linux, later results reuse the memory of freed results of 1 MiB or more: new memory costs more time than most
    kernels, since the system zeroes and maps each page. The system may take kept memory back at any time, but it
    counts as memory of the process until then. Raises ValueError for a negative number.
    """
    if limit < 0:
        raise ValueError(f"the limit of kept memory is {limit}, expected at least 0")
    if _native is not None:
        _native.set_kept_limit(limit)


def kept_memory() -> int:
    """Return the number of bytes of freed results that are kept for later ones."""
    return 0 if _native is None else int(_native.kept_bytes())


def empty_bytes(count: int) -> Array:
    """Return a new uint8 array of `count` bytes, in kept memory if there is enough (see `set_kept_memory`)."""
    return np.empty(count, np.uint8) if _native is None else _native.empty_bytes(count)


def num_threads() -> int:
    """Return how many threads one call may use: by default as many as there are cores, at most 8."""
    return 1 if _native is None else int(_native.num_threads())


@contextmanager
def single_thread() -> Iterator[None]:
    """Run kernels called from this Python thread on this thread alone, inside the context."""
    if _native is None:
        yield
        return
    _native.enter_single_thread()
    try:
        yield
    finally:
        _native.leave_single_thread()


def isas() -> list[str]:
    """Return the instruction sets of native kernels that this machine can run; none without native kernels."""
    return [] if _native is None else list(_native.isas())


@contextmanager
def use(name: str) -> Iterator[None]:
    """Make all threads use the "native" or the "reference" kernels inside the context, or native ones with the
    instruction set "baseline", "avx2" or "avx512".
    """
    before, isa = chosen, None if _native is None else _native.isa()
    _choose(name)
    try:
        yield
    finally:
        if isa is not None:
            _native.set_isa(isa)
        _choose(before)


def info() -> dict[str, Any]:
    """Return which kernels are in use: `kernels`, `isa`, `isas` (all this machine can run), `threads`, and `why`
    native ones are missing (None if they are not).
    """
    if chosen == "reference":
        return {"kernels": "reference", "isa": None, "isas": [], "threads": 1, "why": _why_not_native}
    found = {"isa": _native.isa(), "isas": isas(), "threads": num_threads()}
    return {"kernels": "native", **found, "why": None}


def _choose(name: str) -> None:
    global chosen
    if name not in ("reference", "native", *INSTRUCTION_SETS):
        raise ValueError(
            f"kernels are {name!r}, expected 'reference', 'native', 'baseline', 'avx2' or 'avx512'"
        )
    if name != "reference" and _native is None:
        raise RuntimeError(f"there are no native kernels: {_why_not_native}")
    if name in INSTRUCTION_SETS:
        _select_isa(name)
    chosen = "reference" if name == "reference" else "native"
    for each in KERNELS.values():
        each.select(chosen == "native")


def _select_isa(name: str) -> None:
    if name not in isas():
        compiled = _native.compiled_isas()
        raise RuntimeError(
            f"there are no kernels with instruction set {name}: this processor does not have it"
            if name in compiled
            else f"there are no kernels with instruction set {name}: they were compiled for {', '.join(compiled)} "
            f"(SEQFLOW_ISAS=all when installing compiles every set)"
        )
    _native.set_isa(name)


def _brought(value: Any, name: str, form: "Form | Mapping[str, Form]") -> Any:
    """Return an argument in its form; NotImplemented if its elements have another dtype."""
    if isinstance(form, Form):
        array = form.bring(value, name)
        return array if form.takes(array) else NotImplemented
    items = tuple(_brought(item, part, each) for item, (part, each) in zip(value, form.items(), strict=True))
    return NotImplemented if any(item is NotImplemented for item in items) else items


def _dispatching(
    body: Callable[..., Any], parameters: tuple[str, ...]
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return a function with the parameters of `body`, and its globals: it calls `first` and `otherwise` from
    there.
    """
    own, file = body.__code__, f"<kernel {body.__name__}>"
    code = _template(len(parameters)).replace(
        co_argcount=own.co_argcount, co_kwonlyargcount=own.co_kwonlyargcount, co_varnames=(*parameters, "result"),
        co_name=own.co_name, co_qualname=own.co_qualname, co_filename=file,
    )  # fmt: skip
    scope: dict[str, Any] = {
        "__builtins__": builtins
    }  # native code looks for them among the globals of its caller
    call = FunctionType(code, scope, argdefs=body.__defaults__)
    call.__kwdefaults__ = body.__kwdefaults__
    source = _source(parameters)
    # so that tracebacks show the generated lines
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    return update_wrapper(call, body), scope


def _source(parameters: Iterable[str]) -> str:
    # all arguments are passed by position: a wrapper with *args and **kwargs would cost each call a dict
    arguments = ", ".join(parameters)
    return (
        f"def call({arguments}):\n"
        f"    result = first({arguments})\n"
        f"    return otherwise({arguments}) if result is NotImplemented else result\n"
    )


@cache
def _template(count: int) -> CodeType:
    """Return the code of a function of `count` parameters; compiling one for each kernel would slow the import."""
    scope: dict[str, Any] = {}
    exec(_source(f"p{at}" for at in range(count)), scope)
    return scope["call"].__code__  # type: ignore[no-any-return]


chosen = "reference" if _native is None else "native"
"""The kernels in use: "native" or "reference"."""

if _requested := os.environ.get("SEQFLOW_KERNELS"):
    _choose(_requested)
    if _requested == "reference":
        _why_not_native = "SEQFLOW_KERNELS=reference"
