"""The identity of a Python function: digests of its code and of the values that it reads."""

import dis
import enum
import functools
import sys
import types
from collections import deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np

from seqflow.identity.content import content_of, digest_of_bytes, digest_of_text
from seqflow.identity.modules import is_installed, texts_of_module

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), range, slice)
_TUPLE_GETTER = type(namedtuple("_Pair", "one").one)  # type: ignore[attr-defined]
_LONGEST = 80
"""Values with more characters than this are represented by their digest only."""
_ROOT = "function"
_DEEPEST = 8
"""Largest depth of lists and dicts that are written as one text."""


@dataclass(slots=True)
class FunctionContent:
    """Content of a function: texts and digests by name, and names of values that are not covered."""

    covered: dict[str, str] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    seen: dict[int, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        python = f"{sys.version_info.major}.{sys.version_info.minor}"
        content: dict[str, Any] = {"python": python, "code": self.covered}
        return content | ({"not covered": self.missing} if self.missing else {})


def function_content(function: Callable[..., Any]) -> dict[str, Any]:
    """Return everything that decides what a function computes, as JSON.

    It covers the code; the defaults; the values of the closure and of the globals that the function reads, if they
    are plain data, arrays, nets, or the user's own functions and classes, which are covered in the same way; and the
    source text of the user's own modules. Installed code is represented by its name.
    """
    content = FunctionContent()
    _visit(_ROOT, function, content)
    return content.to_json()


def _visit(name: str, value: Any, content: FunctionContent) -> None:
    try:
        text = _text(value)
    except Exception:  # an object of an unknown class may raise anything
        content.missing.append(f"{name}: {type(value).__module__}.{type(value).__qualname__}")
        return
    if text is not None:
        content.covered[name] = text
        if isinstance(value, enum.Enum):  # its methods are covered, too
            _visit(_inside(name, "class"), type(value), content)
    elif id(value) not in content.seen:
        content.seen[id(value)] = value
        try:
            _visit_parts(name, value, content)
        except Exception:
            content.missing.append(f"{name}: {type(value).__module__}.{type(value).__qualname__}")
    elif name not in content.covered:
        content.covered[name] = "as above"


def _visit_parts(name: str, value: Any, content: FunctionContent) -> None:
    match value:
        case types.FunctionType() if _is_made(value):
            _visit(name, value.__wrapped__, content)  # type: ignore[attr-defined]
        case types.FunctionType():
            _visit_function(name, value, content)
        case types.MethodType():
            _visit(name, value.__func__, content)
            _visit(_inside(name, "self"), value.__self__, content)
        case functools.cached_property():
            _visit(name, value.func, content)
        case functools.partial():
            _visit(name, value.func, content)
            _visit_all(_inside(name, "argument"), {**dict(enumerate(value.args)), **value.keywords}, content)
        case staticmethod() | classmethod():
            _visit(name, value.__func__, content)
        case property():
            _visit_all(name, {"get": value.fget, "set": value.fset}, content)
        case types.ModuleType():
            _visit_module(name, value, content)
        case type():
            _visit_class(name, value, content)
        case np.ma.MaskedArray():
            _visit_all(name, {"data": value.data, "mask": value.mask, "fill": value.fill_value}, content)
        case np.ndarray() if type(value) is np.ndarray:  # of objects
            _visit_all(name, {"shape": value.shape, "values": value.tolist()}, content)
        case Mapping() if _is_installed(type(value)):
            content.covered[name] = f"{type(value).__name__} of {_joined_keys(value)}"
            _visit_all(name, dict(value), content)
        case list() | tuple() if _is_installed(type(value)):
            content.covered[name] = f"{type(value).__name__} of {len(value)}"
            _visit_all(name, dict(enumerate(value)), content)
        case _:
            _visit_object(name, value, content)


def _is_made(function: types.FunctionType) -> bool:
    """Return whether a function was generated around another one, such as the checked call of an op."""
    return hasattr(function, "__wrapped__") and function.__code__.co_filename.startswith("<")


def _visit_function(name: str, function: types.FunctionType, content: FunctionContent) -> None:
    closure = {
        variable: cell.cell_contents
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        if _is_filled(cell)
    }
    if _is_installed(function):
        content.covered[name] = f"{function.__module__}.{function.__qualname__}"
        _visit_all(name, closure, content)
        return
    code = function.__code__
    content.covered[name] = f"code {_code_digest(code)}"
    names = code.co_varnames[: code.co_argcount]
    defaults = function.__defaults__ or ()
    given = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
    _visit_all(_inside(name, "default"), {**given, **(function.__kwdefaults__ or {})}, content)
    names_read = _named_by(code, "LOAD_GLOBAL", "LOAD_NAME")
    read = {one: function.__globals__[one] for one in names_read if one in function.__globals__}
    attributes = {key: value for key, value in vars(function).items() if key != "__wrapped__"}
    _visit_all(_inside(name, "attribute"), attributes, content)
    for variable, value in {**closure, **read}.items():
        _visit(variable if name == _ROOT else _inside(name, variable), value, content)
    for module in _named_by(code, "IMPORT_NAME"):
        if (found := sys.modules.get(module)) is not None:
            _visit(module, found, content)


def _visit_module(name: str, module: types.ModuleType, content: FunctionContent) -> None:
    """Cover a user's own module by its text; installed modules and those of Python are skipped."""
    content.covered.update({f"module {file}": text for file, text in texts_of_module(module).items()})
    if getattr(module, "__file__", None) is None and not _comes_with_python(module):
        content.missing.append(f"{name}: module {module.__name__}")


def _comes_with_python(module: types.ModuleType) -> bool:
    """Return whether a module without a file is built in; a namespace package, whose modules have files, is not."""
    top = module.__name__.partition(".")[0]
    return top in sys.stdlib_module_names or getattr(module, "__path__", None) is not None


def _visit_class(name: str, kind: type, content: FunctionContent) -> None:
    """Cover a user's own class: its functions, its attributes, and its base classes."""
    content.covered[name] = f"class {kind.__qualname__}"
    if _is_installed(kind):
        content.covered[name] = f"{kind.__module__}.{kind.__qualname__}"
        return
    for member, value in sorted(vars(kind).items()):
        if member not in _CLASS_RECORDS and not isinstance(value, types.GetSetDescriptorType):
            _visit(_inside(name, member), value, content)
    for base in (*kind.__bases__, type(kind)):
        if not _is_installed(base):
            _visit(_inside(name, base.__name__), base, content)


_CLASS_RECORDS = (
    "__dict__", "__weakref__", "__module__", "__qualname__", "__doc__", "__annotations__", "__slots__",
    "__dataclass_fields__", "__dataclass_params__", "__match_args__", "__abstractmethods__", "_abc_impl",
    "__parameters__", "__orig_bases__", "__static_attributes__", "__firstlineno__",
)  # fmt: skip


def _visit_object(name: str, value: Any, content: FunctionContent) -> None:
    """Cover an object: a function of a library by its name, an object of a user's class by class and attributes."""
    if isinstance(value, types.BuiltinFunctionType | np.ufunc | types.MethodDescriptorType):
        module: Any = getattr(value, "__module__", None)
        content.covered[name] = f"{module}.{getattr(value, '__name__', '')}"
        owner = getattr(value, "__self__", None)
        if owner is not None and not isinstance(owner, types.ModuleType):
            _visit(_inside(name, "self"), owner, content)
    elif _is_installed(type(value)) and callable(
        wrapped := getattr(value, "__dict__", {}).get("__wrapped__")
    ):
        _visit(name, wrapped, content)
    elif isinstance(value, types.MemberDescriptorType | types.WrapperDescriptorType | _TUPLE_GETTER):
        content.covered[name] = "a slot"
    elif _is_data(type(value)):
        _, *parts = value.__reduce_ex__(4)
        parts = [list(part) if isinstance(part, Iterator) else part for part in parts]
        _visit(name, [type(value).__name__, *parts], content)
    elif _is_installed(type(value)):
        content.missing.append(f"{name}: {type(value).__module__}.{type(value).__qualname__}")
    else:
        _visit(_inside(name, "class"), type(value), content)
        slots = (slot for kind in type(value).__mro__ for slot in _slots(kind) if hasattr(value, slot))
        _visit_all(name, {**getattr(value, "__dict__", {}), **{s: getattr(value, s) for s in slots}}, content)
        for base in (kind for kind in _HOLDERS if isinstance(value, kind)):
            _visit(
                _inside(name, "content"), np.asarray(value) if base is np.ndarray else base(value), content
            )


_HOLDERS: tuple[Any, ...] = (
    int, float, complex, str, bytes, dict, list, tuple, set, frozenset, np.ndarray,
)  # fmt: skip
"""Types of Python that hold other values; a class of the user's own may derive from them."""
_DATA_MODULES = ("array", "datetime", "decimal", "fractions", "ipaddress", "operator", "uuid", "zoneinfo")


def _is_data(kind: type) -> bool:
    """Return whether a class of the standard library holds only plain data, all of which its pickle contains."""
    return kind.__module__ in _DATA_MODULES or kind in (bytearray, deque, types.SimpleNamespace)


def _joined_keys(values: Mapping[Any, Any]) -> str:
    """Return the keys in their order, since code may depend on it."""
    text = ", ".join(_plain_text(key) or type(key).__name__ for key in values)
    return text if len(text) <= _LONGEST else digest_of_text(text)


def _slots(kind: type) -> Iterable[str]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _visit_all(name: str, values: Mapping[Any, Any], content: FunctionContent) -> None:
    for number, (key, value) in enumerate(values.items()):
        text = key if isinstance(key, str) else _plain_text(key)
        if text is None:  # its repr may contain an address
            text = f"key {number}"
            _visit(_inside(name, text), key, content)
            text = f"value {number}"
        _visit(_inside(name, text), value, content)


def _inside(name: str, part: str) -> str:
    return part if name == _ROOT else f"{name}.{part}"


def _text(value: Any) -> str | None:
    """Return a text for the content of plain data and arrays; None for objects whose parts must be visited."""
    if (plain := _plain_text(value)) is not None:
        return plain if len(plain) <= _LONGEST else f"{type(value).__name__} {digest_of_text(plain)}"
    if isinstance(value, np.ndarray):
        is_plain = type(value) in (np.ndarray, np.memmap) and not value.dtype.hasobject
        return content_of(value) if is_plain else None
    kind = type(value)
    if kind.__module__.partition(".")[0] == "tokenizers" and callable(getattr(value, "to_str", None)):
        return content_of(value)
    if kind.__module__.partition(".")[0] == "seqflow":
        return _text_of_ours(value)
    if any((base.__module__, base.__qualname__) == ("torch", "Tensor") for base in kind.__mro__):
        value = value.detach().cpu()
        # NumPy does not have all of the narrow dtypes
        is_narrow = value.is_floating_point() and value.element_size() < 4
        return f"{value.dtype} {content_of((value.float() if is_narrow else value).numpy())}"
    return None


def _text_of_ours(value: Any) -> str | None:
    """Return a text for nets, by their identity, and for our own arrays, by their content."""
    from seqflow.identity.transforms import transform_identity
    from seqflow.net import Net

    if isinstance(value, Net):
        return digest_of_text(repr(transform_identity(value, None)))
    if callable(getattr(value, "unpack", None)):  # a Sequence
        return ", ".join(content_of(part) for part in value.unpack())
    return content_of(value) if hasattr(value, "__array__") else None


def _plain_text(value: Any, depth: int = 0) -> str | None:
    """Return the text of plain data, nested up to `_DEEPEST` levels; None for anything else."""
    kind = type(value)
    if kind in _PLAIN:
        return repr(value)
    if depth > _DEEPEST:
        return None
    if kind in (list, tuple):
        return _joined(value, kind.__name__, depth)
    if kind in (set, frozenset):
        return _joined(sorted(value, key=repr), kind.__name__, depth)
    if kind is dict:
        keys, values = _joined(value, "keys", depth), _joined(value.values(), "values", depth)
        return None if keys is None or values is None else f"dict({keys}, {values})"
    if type(value).__module__ == "torch" and type(value).__name__ in ("dtype", "device"):
        return repr(value)
    if isinstance(value, np.generic | np.dtype | PurePath) or _is_pattern(value):
        return repr(value)
    if isinstance(value, enum.Enum):
        return f"{kind.__qualname__}.{value.name} {value.value!r}"
    return None


def _is_pattern(value: Any) -> bool:
    return type(value).__module__ == "re" and hasattr(value, "pattern")


def _joined(values: Iterable[Any], kind: str, depth: int) -> str | None:
    members = list(values)
    if set(map(type, members)) <= set(_PLAIN):
        return f"{kind}{members!r}"
    texts = [_plain_text(member, depth + 1) for member in members]
    return None if None in texts else f"{kind}[{', '.join(map(str, texts))}]"


def _is_installed(value: Any) -> bool:
    """Return whether a function or a class belongs to Python, an installed package or seqflow."""
    if isinstance(value, types.FunctionType) and not value.__code__.co_filename.startswith("<"):
        return is_installed(value.__code__.co_filename)
    module = sys.modules.get(value.__module__ or "")
    if module is None or value.__module__ == "__main__":
        return False
    path = getattr(module, "__file__", None)
    return path is None or is_installed(path)


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _code_digest(code: types.CodeType) -> str:
    return digest_of_bytes(repr(_code_parts(code)).encode("utf-8", "surrogatepass"))[:16]


def _code_parts(code: types.CodeType) -> tuple[Any, ...]:
    """Return the content of a code object, without names of files and numbers of lines."""
    constants = tuple(
        _code_parts(one) if isinstance(one, types.CodeType) else _plain_text(one) or repr(one)
        for one in code.co_consts
    )
    arguments = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
    names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
    return code.co_code, constants, arguments, names, code.co_exceptiontable


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _codes(one)


def _named_by(code: types.CodeType, *instructions: str) -> list[str]:
    """Return the names of globals that a function loads, or of modules that it imports, including nested
    functions.
    """
    found = (
        str(one.argval)
        for inner in _codes(code)
        for one in dis.get_instructions(inner)
        if one.opname in instructions
    )
    return list(dict.fromkeys(found))
