"""Digests of the source of modules: of named modules, and of the user's own modules that they import."""

import ast
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType

from seqflow.identity.content import digest_of_file

_SUFFIXES = (".py", ".so", ".pyd")


def module_texts(names: Sequence[str]) -> dict[str, str]:
    """Return the digest of each file of some modules, by its path relative to the search path.

    A package has all its files; a module in a package has its own file, and those of the enclosing packages. The
    user's own modules that they import are included; installed packages are included only if they are named.
    """
    found: dict[str, str] = {}
    for name in names:
        for path in _named_files(name):
            _add(path, _top(name, path), found)
    return dict(sorted(found.items()))


def texts_of_module(module: ModuleType) -> dict[str, str]:
    """Return the digests for one imported module; none for a module that is installed or belongs to Python."""
    path = getattr(module, "__file__", None)
    if path is None or is_installed(path):
        return {}
    found: dict[str, str] = {}
    _add(path, _top(module.__name__, path), found)
    return dict(sorted(found.items()))


@cache
def is_installed(path: str) -> bool:
    """Return whether a file belongs to Python, to an installed package, or to seqflow."""
    path = os.path.abspath(path)
    folders = {*(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))}
    folders.add(str(Path(__file__).resolve().parents[1]))
    folders |= {os.path.realpath(folder) for folder in folders}
    own = {f"{Path(__file__).resolve().parents[2]}{os.sep}{name}" for name in ("ops", "providers")}
    parts = Path(path).parts
    inside = any(path.startswith(f"{folder}{os.sep}") for folder in folders | own)
    return inside or "site-packages" in parts or "dist-packages" in parts or path.startswith("<frozen")


def _named_files(name: str) -> Iterator[str]:
    """Yield the files of a named module: for a package all files in its folders, except hidden ones and caches."""
    path, folders = _location(name)
    if path is not None and not folders:
        yield path
    for folder in folders:
        for above, inner, files in os.walk(folder):
            inner[:] = sorted(one for one in inner if one[0] != "." and one != "__pycache__")
            installed = is_installed(os.path.join(above, "module.py"))
            for file in sorted(files):
                if file[0] != "." and (file.endswith(_SUFFIXES) or not (installed or file.endswith(".pyc"))):
                    yield os.path.join(above, file)


def _location(name: str) -> tuple[str | None, list[str]]:
    """Return the file of a module, and the folders of a package; neither for a module without a file."""
    module = sys.modules.get(name)
    if module is not None:
        path = getattr(module, "__file__", None)
        return path, [os.path.abspath(folder) for folder in getattr(module, "__path__", ())]
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, AttributeError, ValueError):
        return None, []
    if spec is None:
        return None, []
    path = spec.origin if spec.has_location else None
    return path, [os.path.abspath(folder) for folder in spec.submodule_search_locations or ()]


def _top(name: str, path: str) -> str:
    """Return the folder that contains the outermost package of a module."""
    depth = name.count(".") + (os.path.basename(path) == "__init__.py")
    _, folders = _location(name.partition(".")[0])
    if folders:
        return os.path.dirname(folders[0])
    return str(Path(os.path.abspath(path)).parents[depth])


def _add(path: str, top: str, found: dict[str, str]) -> None:
    """Add a file, and the files of the user's own modules that it imports."""
    path = os.path.abspath(path)
    name = os.path.relpath(path, top)
    name = os.path.basename(path) if name.startswith("..") else Path(name).as_posix()
    if name in found:
        return
    found[name] = digest_of_file(path)
    if not path.endswith(".py") or is_installed(path):
        return
    package = list(Path(name).parts[:-1])
    for imported in _imports(path, package):
        other, _ = _location(imported)
        if other is not None and not is_installed(other) and os.path.isfile(other):
            _add(other, _top(imported, other), found)


def _imports(path: str, package: list[str]) -> Iterator[str]:
    """Yield the names of the modules that a file imports, with the enclosing packages."""
    try:
        tree = ast.parse(Path(path).read_bytes())
    except (SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_packages(alias.name)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            if base:
                yield from _with_packages(base)
                for alias in node.names:
                    if _is_user_package(base):
                        yield f"{base}.{alias.name}"


def _with_packages(name: str) -> Iterator[str]:
    """Yield `a.b.c` as `a`, `a.b`, `a.b.c`; only `a` if it is not the user's own."""
    parts = name.split(".")
    yield parts[0]
    if len(parts) > 1 and _is_user_package(parts[0]):
        for end in range(2, len(parts) + 1):
            yield ".".join(parts[:end])


def _is_user_package(name: str) -> bool:
    path, folders = _location(name)
    where = path or (os.path.join(folders[0], "module.py") if folders else None)
    return bool(folders) and where is not None and not is_installed(where)
