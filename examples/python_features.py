"""The op of `imports.toml`: which names each Python file imports, calls and decorates with."""

import ast
import warnings
from collections import Counter
from functools import lru_cache
from itertools import chain

import numpy as np

import seqflow as sf

IMPORTED, CALLED, DECORATOR = 1, 2, 3

Uses = dict[int, Counter[bytes]]


@sf.op(
    "uint8 source[sum(lengths)], lengths[B] -> "
    "int64 example_lengths[B], int64 keys[sum(example_lengths)], int64 values_lengths[sum(example_lengths)], "
    "float32 uses[sum(values_lengths)], int64 name_lengths[sum(values_lengths)], uint8 names[sum(name_lengths)]"
)
def python_features(source, lengths):
    """Make a map of each Python file: feature 1, 2 or 3 → the names that it imports, calls and decorates with.

    Names come sorted, each once, with the number of its `uses`. A feature without names is left out of the map; an
    empty file has an empty map. A file that is not Python is an OpError with the reason.

    >>> python_features(np.frombuffer(b"import re; re.sub()", np.uint8), np.array([19])).keys
    array([1, 2])
    """
    files = [_uses(file.tobytes(), row) for row, file in enumerate(np.split(source, np.cumsum(lengths)[:-1]))]
    features = list(chain.from_iterable(file.items() for file in files[: len(lengths)]))
    names = [name for _, counts in features for name in sorted(counts)]
    return (
        np.array([len(file) for file in files[: len(lengths)]], np.int64),
        np.array([key for key, _ in features], np.int64),
        np.array([len(counts) for _, counts in features], np.int64),
        np.array([counts[name] for _, counts in features for name in sorted(counts)], np.float32),
        np.array([len(name) for name in names], np.int64),
        np.frombuffer(b"".join(names), np.uint8),
    )


@lru_cache(maxsize=1024)  # a block with a file that is not Python is read again in halves
def _features(source: bytes) -> Uses | str:
    """The names by feature, or why there are none."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f" in line {error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        return f"{getattr(error, 'msg', error)}{where}"
    uses: Uses = {IMPORTED: Counter(), CALLED: Counter(), DECORATOR: Counter()}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                uses[IMPORTED].update(name.name.encode() for name in names)
            case ast.ImportFrom(module, names, level):
                start = "." * level + (f"{module}." if module else "")
                uses[IMPORTED].update(f"{start}{name.name}".encode() for name in names)
            case ast.Call(function):
                uses[CALLED][_dotted(function)] += 1
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                for decorator in node.decorator_list:
                    called = decorator.func if isinstance(decorator, ast.Call) else decorator
                    uses[DECORATOR][_dotted(called)] += 1
    return {key: names for key, names in uses.items() if names}


def _uses(source: bytes, row: int) -> Uses:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as those of "\d"
        found = _features(source)
    if isinstance(found, str):
        raise sf.OpError(f"source {row} is not Python: {found}")
    return found


def _dotted(node: ast.expr) -> bytes:
    """`a.b.c` as it is written, and `.c` where it is an attribute of something without a name."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return ".".join(reversed(parts)).encode()
