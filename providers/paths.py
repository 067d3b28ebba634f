"""Paths, globs, folders and lists of them as a list of files."""

import glob
import os
import re
import stat
import sysconfig
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, takewhile

from seqflow.errors import MissingSourceError, ProviderError, ProviderOptionError, nearest

SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".svm": "libsvm",
}
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""Those of files that are read by lines."""
_SIDE_FILES = ("_SUCCESS", "_metadata", "_common_metadata", "_manifest.json")
_PLACE = re.compile(r"\{(\w+)\}")


def is_path(source: object) -> bool:
    """Whether this is a path, as text or as a Path."""
    return isinstance(source, str | os.PathLike)


def find_files(source: object, kind: str | None = None, exclude: Sequence[str] | str = ()) -> list[str]:
    """The files of a path, glob or folder, or of a list of those in the list's order; each file once.

    The files of one glob or folder are sorted by path.
    `{stdlib}` and the other names of sysconfig.get_paths() stand for those folders, `~` for the user's. A folder
    gives all files below it but hidden ones, `__pycache__` and the side files of table writers; with
    `kind`, only those whose suffix is of that kind, if there are any. A file is left out if a pattern of `exclude`
    matches it or a folder it is in: `*.pyc` and `test` match a name, `test/data` the end of a path. Raises
    MissingSourceError where nothing is left.
    """
    items = [source] if is_path(source) else source
    if not isinstance(items, Sequence):
        raise ProviderError(f"expected a path or a list of paths, not {type(source).__name__}")
    excluded = [exclude] if isinstance(exclude, str) or not isinstance(exclude, Iterable) else list(exclude)
    if not all(isinstance(text, str) for text in excluded):
        raise ProviderOptionError(f"exclude is {exclude!r}, expected a pattern or a list of patterns")
    patterns = [_pattern(_expand(text)) for text in excluded]
    found: dict[str, str] = {}
    for item in items:
        if not is_path(item):
            raise ProviderError(f"expected a path in the list of sources, not {type(item).__name__}")
        paths = sorted(_files_of(_expand(os.fspath(item)), kind))
        absolute = [os.path.abspath(path) for path in paths]
        for path, place, is_excluded in zip(paths, absolute, _matched(absolute, patterns), strict=True):
            if not is_excluded:
                found.setdefault(place, path)
    if not found:
        left_out = f" outside {excluded}" if excluded else ""
        raise MissingSourceError(f"no files in {' or '.join(repr(str(item)) for item in items)}{left_out}")
    return list(found.values())


def searched_folders(source: object) -> list[str]:
    """The absolute paths of the folders in which files are looked for: those given, and those before a glob."""
    folders = []
    for item in [source] if is_path(source) else source:  # type: ignore[attr-defined]
        path = _expand(os.fspath(item))
        if os.path.isdir(path):
            folders.append(os.path.abspath(path))
        elif not os.path.exists(path) and glob.has_magic(path):
            plain = takewhile(lambda part: not glob.has_magic(part), path.split("/"))
            folders.append(os.path.abspath("/".join(plain) or ("/" if path.startswith("/") else ".")))
    return folders


def kind_of_files(paths: Sequence[str]) -> str:
    """What the suffixes say, "text" for all they say nothing of; ProviderError for a mixture."""
    kinds: dict[str, str] = {}
    for path in paths:
        kinds.setdefault(_kind_of(path) or "text", path)
    if len(kinds) > 1:
        (one, here), (other, there), *_ = kinds.items()
        raise ProviderOptionError(
            f"{here} is {one} and {there} is {other}\n"
            "read one kind at a time: with a glob such as '*.parquet', with exclude=, or with kind="
        )
    return next(iter(kinds))


def _kind_of(path: str) -> str | None:
    """What the suffix says, or the one before that of a compression: `a.svm.gz` holds lines of libsvm."""
    stem, suffix = os.path.splitext(path.lower())
    if suffix in COMPRESSIONS and (kind := SUFFIXES.get(os.path.splitext(stem)[1])) == "libsvm":
        return kind
    return SUFFIXES.get(suffix)


def _expand(path: str) -> str:
    places = sysconfig.get_paths()
    return os.path.expanduser(_PLACE.sub(lambda match: places.get(match[1], match[0]), path))


def _files_of(path: str, kind: str | None) -> Iterator[str]:
    if "\0" in path:
        raise MissingSourceError(f"{path!r} is no path: it has a NUL character")
    if os.path.isdir(path):
        yield from _of_kind(list(_walk(path)), kind)
    elif os.path.exists(path):
        if not os.path.isfile(path):
            raise ProviderError(
                f"{path} is a pipe, socket or device, expected a regular file or a folder\n"
                "write what it gives to a file first"
            )
        yield os.path.normpath(path)
    elif glob.has_magic(path):
        for match in matches(path):
            if "__pycache__" not in match.split(os.sep) and os.path.isfile(match):
                yield os.path.normpath(match)
    else:
        raise MissingSourceError(f"{path} does not exist{_similar(path)}")


def matches(pattern: str) -> Iterator[str]:
    """What a glob matches. `**` goes through each folder once, however many symbolic links lead to it."""
    parts = pattern.split("/")
    if "**" not in parts:
        yield from glob.iglob(pattern)
        return
    at = parts.index("**")
    tail = [part for before, part in pairwise(parts[at:]) if not before == part == "**"]
    starts = glob.iglob("/".join(parts[:at]) + "/") if at else ["."]
    for start in starts:
        for folder in _folders(start):
            inner = "" if folder == "." else glob.escape(folder.removeprefix("./"))
            yield from matches(os.path.join(inner, *(tail or ["*"])))


def _folders(top: str) -> Iterator[str]:
    """A folder and the folders below it but hidden ones; real folders before those that links lead to."""
    seen: set[tuple[int, int]] = set()
    tops = deque([top])
    while tops:
        for folder, inner, _ in os.walk(tops.popleft()):
            found = os.stat(folder)
            if (found.st_dev, found.st_ino) in seen:
                inner.clear()
                continue
            seen.add((found.st_dev, found.st_ino))
            yield folder
            inner[:] = sorted(name for name in inner if not name.startswith("."))
            tops.extend(path for name in inner if os.path.islink(path := os.path.join(folder, name)))


def _walk(folder: str) -> Iterator[str]:
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "__pycache__"]
        for name in files:
            path = os.path.join(parent, name)
            if not name.startswith(".") and name not in _SIDE_FILES and not _is_special(path):
                yield os.path.normpath(path)


def _is_special(path: str) -> bool:
    """Whether this is a pipe, socket or device. A link that leads nowhere is not: to read it is an error."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _of_kind(paths: list[str], kind: str | None) -> list[str]:
    of_kind = [path for path in paths if _kind_of(path) == kind]
    return of_kind if kind in SUFFIXES.values() and of_kind else paths


def _similar(path: str) -> str:
    folder, name = os.path.split(path)
    if unknown := _PLACE.search(path):
        return f"; {unknown[0]} is none of {', '.join(sysconfig.get_paths())}"
    try:
        return nearest(name, os.listdir(folder or "."))
    except OSError:
        return f", nor does {folder}"


def _matched(paths: list[str], patterns: list[str]) -> list[bool]:
    """Whether any of the patterns is found in each path: by RE2, which no pattern keeps busy for long."""
    if not patterns:
        return [False] * len(paths)
    import pyarrow as pa
    from pyarrow import compute

    names = pa.array([_as_unicode(path) for path in paths], pa.string())
    found = [compute.match_substring_regex(names, pattern).to_pylist() for pattern in patterns]
    return [any(column) for column in zip(*found, strict=True)]


def _as_unicode(name: str) -> str:
    """The name with a question mark for each byte that is not UTF-8."""
    return name.encode("utf-8", "replace").decode()


def _pattern(glob: str) -> str:
    """A glob as a regular expression that finds the end of a path, or a folder in it."""
    import pyarrow as pa
    from pyarrow import compute

    text = _as_unicode(glob)
    parts = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?|\[[^]/]+\])", re.sub(r"\*{3,}", "**", text).rstrip("/"))
    body = "".join(
        parts.get(piece) or (_set(piece) if at % 2 else re.escape(piece)) for at, piece in enumerate(pieces)
    )
    pattern = rf"(?s){'^' if text.startswith('/') else '(?:^|/)'}{body}(?:/|$)"
    try:
        compute.match_substring_regex(pa.array([""]), pattern)
    except pa.ArrowInvalid as error:
        raise ProviderOptionError(f"exclude: {text!r} is no pattern: {error}") from None
    return pattern


def _set(piece: str) -> str:
    """`[!a-z]` as a set of a regular expression."""
    return "[" + re.sub(r"([\[&|~\\])", r"\\\1", piece[1:-1].replace("!", "^", piece[1] == "!")) + "]"
