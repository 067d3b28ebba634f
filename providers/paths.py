"""Find the files of a source: paths, globs, folders and lists of them."""

import errno
import fnmatch
import glob
import os
import re
import stat
import sysconfig
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

from seqflow.arguments import is_path as could_be_path
from seqflow.errors import MissingSourceError, ProviderError, ProviderOptionError, nearest
from seqflow.files.interface import LOCAL, Files
from seqflow.files.outputs import of_complete_outputs
from seqflow.files.uris import SCHEMES, absolute, is_uri, scheme_of, split, without_query
from seqflow.hidden import shown
from seqflow.providers.formats.suffixes import JSON, SUFFIXES, is_json, kind_of

_UNCOMMITTED = "_temporary"
"""Folder of what a writer of Hadoop and Spark has not committed."""
_PLACE = re.compile(r"^\{(\w+)\}(?=/|$)")
_WHOLE = re.compile(r"(?<=[^/])(?:(?:/\*\*)+(?:/\*)?|/\*)/*$")
"""End of a pattern that matches everything in a folder."""


def is_path(source: object) -> bool:
    """Return whether this is a path, as text or as a Path."""
    return isinstance(source, str | os.PathLike)


class Found(NamedTuple):
    """Files of a source, and those that it names by their own path rather than by a folder or glob."""

    paths: list[str]
    named: list[str]


def find_files(source: object, exclude: Sequence[str] | str = (), files: Files = LOCAL) -> Found:
    """Return the files of a path, glob or folder, or of a list of those in the list's order; each path once.

    The files of one glob or folder are sorted by path.
    `{stdlib}` and the other names of sysconfig.get_paths() stand for those folders, `~` for the user's. A folder
    gives all files below it except hidden ones, `__pycache__` and what writers of tables keep aside: files and
    folders whose names begin with `_`, unless they are text, or the folder is that of a value (`_key=1`, which
    Spark reads, and pyarrow does not). A glob
    finds such files if a part of it begins with `_`. A glob that matches a folder named as a file of data
    (`x.parquet/`) gives its files, too, and nothing of other folders. A name that exists is not a glob. A URI
    `file:///…` is the path that it names; other URIs are objects of a store, in `files`. A file is left out if a
    pattern of `exclude` matches it or a folder it is in: `*.pyc` and `test` match a name, `test/data` the end of a
    path. Raise MissingSourceError if no file is left.
    """
    items = [source] if is_path(source) else source
    if not isinstance(items, Sequence):
        raise ProviderError(f"expected a path or a list of paths, not {type(source).__name__}")
    excluded = [exclude] if isinstance(exclude, str) or not isinstance(exclude, Iterable) else list(exclude)
    if not all(isinstance(text, str) for text in excluded):
        raise ProviderOptionError(f"exclude is {exclude!r}, expected a pattern or a list of patterns")
    expanded = [_expand(text) for text in excluded]
    patterns = [_pattern(text) for text in expanded]
    folders = [_pattern(_WHOLE.sub("", text) or text) for text in expanded]
    found: dict[str, str] = {}
    named: list[str] = []
    if len(items) > 1:
        places = (str(item) for item in items)
        files.look_up(one for one in places if is_uri(one) and not _is_glob(one) and not one.endswith("/"))
    for item in items:
        if not is_path(item):
            raise ProviderError(f"expected a path in the list of sources, not {type(item).__name__}")
        place = _expand(_as_path(item))
        if is_uri(place):
            paths = _objects(place, files)
            is_named = paths == [place]
        else:
            paths = sorted(_files_of(place, folders))
            is_named = paths == [os.path.normpath(place)]
        whole = [absolute(path) for path in paths]
        for path, absolute_path, is_excluded in zip(paths, whole, _matched(whole, patterns), strict=True):
            if not is_excluded:
                found.setdefault(absolute_path, path)
                # a glob that ends with .json names the suffix
                if is_named or (is_json(place) and is_json(path)):
                    named.append(found[absolute_path])
    if not found:
        left_out = f" outside {excluded}" if excluded else ""
        expanded = [_expand(_as_path(item)) for item in items]
        missing = "".join(_missing_folder(one) for one in expanded if not is_uri(one))
        raise MissingSourceError(
            f"no files in {' or '.join(repr(str(item)) for item in items)}{left_out}{missing}"
        )
    return Found(list(found.values()), named)


@dataclass(frozen=True, slots=True)
class Search:
    """Paths, patterns and kind that a source was opened with, to tell whether it would find a new file."""

    places: tuple[str, ...]
    """Absolute paths, folders and globs."""
    excluded: tuple[str, ...]
    kind: str | None

    @classmethod
    def of(cls, source: Any, kind: str | None, exclude: Sequence[str] | str) -> "Search":
        items = [source] if is_path(source) else source
        excluded = [exclude] if isinstance(exclude, str) else exclude
        return cls(tuple(absolute(_expand(_as_path(item))) for item in items), tuple(excluded), kind)

    def finds(self, path: str | os.PathLike[str]) -> bool:
        """Return whether the source would find a file at this path if it were opened again."""
        file = absolute(os.fspath(path))
        of_json = self.kind == JSON or any(map(is_json, self.places))
        kind, own = kind_of(file), "jsonl" if self.kind == JSON else self.kind
        kind = "jsonl" if of_json and is_json(file) else kind
        if kind is None if own is None else own in SUFFIXES.values() and kind != own:
            return False
        if _matched([file], [_pattern(_expand(text)) for text in self.excluded])[0]:
            return False
        if is_uri(file):
            return any(_finds(place, file) for place in self.places if is_uri(place))
        places = [place for place in self.places if not is_uri(place)]
        pairs = [(place, file) for place in places]
        # the path may be named by a link, or the source may have been
        pairs += [(_real(place), os.path.realpath(file)) for place in places]
        return any(_covers(place, one) for place, one in pairs)


def _real(place: str) -> str:
    """Resolve the links of a path, or of the part of a glob before its first wildcard."""
    if os.path.exists(place) or not glob.has_magic(place):
        return os.path.realpath(place)
    parts = place.split("/")
    plain = _before_wildcard(parts)
    return os.path.join(os.path.realpath("/".join(plain) or "/"), *parts[len(plain) :])


def _covers(place: str, file: str) -> bool:
    """Return whether a folder or glob finds a file at this path."""
    if os.path.isdir(place):
        inside = file.startswith(os.path.join(place, ""))
        return inside and _is_shown(os.path.relpath(file, place).split(os.sep))
    is_glob = glob.has_magic(place) and not os.path.exists(place)
    return is_glob and _is_found(place.split("/"), file.split("/"))


def _is_shown(names: Sequence[str]) -> bool:
    """Return whether a folder gives a file below it: it and its folders are neither hidden nor kept aside."""
    hidden = any(name.startswith(".") or name == "__pycache__" for name in names)
    return not hidden and not _is_aside(names)


def _is_aside(names: Sequence[str], parts: Sequence[str] = ()) -> bool:
    """Return whether a writer of tables keeps a file aside, and no part of a glob names it."""
    aside = [name for name in names if name[:1] == "_" and "=" not in name]
    if (
        aside and kind_of(names[-1]) == "text"
    ):  # `__init__.py`, and the folders `_posts` and `_static` of sites
        aside = [_UNCOMMITTED] if _UNCOMMITTED in aside else []
    return any(
        not any(part[:1] == "_" and fnmatch.fnmatchcase(name, part) for part in parts) for name in aside
    )


def _finds(place: str, uri: str) -> bool:
    """Return whether a glob or prefix in a store finds an object."""
    root, key = split(place)
    if split(uri)[0] != root:
        return False
    names = split(uri)[1].split("/")
    if root.startswith("hf://datasets/") and names == ["README.md"] and key != "README.md":
        return False  # each data set of the hub has this text about it
    folder = key.rstrip("/").split("/") if key else []
    if names[: len(folder)] == folder:
        return names == folder or _is_shown(names[len(folder) :])
    return glob.has_magic(key) and _is_found(key.split("/"), names)


def _searched_prefix(uri: str) -> str:
    """Return the part of a URI before its first wildcard."""
    root, key = split(uri)
    return "/".join(filter(None, [root, *_before_wildcard(key.rstrip("/").split("/"))]))


def _before_wildcard(parts: Iterable[str]) -> list[str]:
    """Return the parts of a glob before the first one with a wildcard."""
    return list(takewhile(lambda part: not glob.has_magic(part), parts))


def _objects(uri: str, files: Files) -> list[str]:
    """Return the URIs of a glob, a prefix, or an object, sorted; all are pinned at the versions of the list."""
    root, key = split(uri)
    is_glob, is_web = _is_glob(uri), root.startswith("http")
    if key and not uri.endswith("/") and (is_web or not is_glob):
        if files.entry(uri) is not None:
            return [uri]
        if is_web and not is_glob:
            raise MissingSourceError(f"{shown(uri)} does not exist")
    entries = files.listing(_searched_prefix(uri) if is_glob else uri)
    entries = [one for one in entries if one.size or not one.path.endswith("/")]
    entries = of_complete_outputs(entries, files)
    found = [one for one in entries if _finds(uri, one.path)]
    if is_glob:  # what exists is not a glob, as on a disk
        own = f"{root}/{key.rstrip('/')}"
        found = [one for one in found if f"{one.path}/".startswith(f"{own}/")] or found
    # an object of 0 bytes may stand for a folder, whose name ends with a slash that lists do not show
    empty = [one.path for one in found if not one.size]
    files.look_up(empty)
    folders = {path for path in empty if files.entry(path) is None}
    found = [one for one in found if one.path not in folders]
    if not entries and not is_glob:
        raise MissingSourceError(
            f"{shown(uri)} does not exist: there is neither such an object nor any below it"
        )
    for one in found:
        files.pin(one)
    return [one.path for one in found]


def _is_glob(uri: str) -> bool:
    """Return whether a URI of a store may be a glob; `?` begins the query of a web address."""
    return glob.has_magic(split(without_query(uri))[1])


def _is_found(parts: list[str], names: list[str]) -> bool:
    """Return whether a glob matches a file, or a folder above it that is named as a file of data."""
    return any(
        _is_match(parts, names[:at]) and not _is_aside(names[:at], parts) and _is_shown(names[at:])
        for at, name in enumerate(names, 1)
        if at == len(names) or kind_of(name) is not None
    )


def _is_match(parts: list[str], names: list[str]) -> bool:
    if not parts or not names:
        return not parts and not names
    first, rest = parts[0], parts[1:]
    if first == "**":
        shown = len(list(takewhile(lambda name: not name.startswith("."), names)))
        return any(_is_match(rest or ["*"], names[at:]) for at in range(min(shown, len(names) - 1) + 1))
    if names[0].startswith(".") and not first.startswith("."):
        return False
    return fnmatch.fnmatchcase(names[0], first) and _is_match(rest, names[1:])


def find_duplicate(paths: Sequence[str]) -> tuple[str, str] | None:
    """Return the first two paths that lead to the same file; None if there are none."""
    seen: dict[tuple[int, int], str] = {}
    for path in paths:
        try:
            found = os.stat(path)
        except OSError:
            continue
        if (other := seen.setdefault((found.st_dev, found.st_ino), path)) != path:
            return other, path
    return None


def searched_path(source: object) -> str:
    """Return the absolute path of a source that is one path."""
    return absolute(_expand(_as_path(source)))


def searched_folders(source: object) -> list[str]:
    """Return the absolute paths of the folders that are searched: the given ones, and those before a glob."""
    folders = []
    for item in [source] if is_path(source) else source:  # type: ignore[attr-defined]
        path = _expand(_as_path(item))
        if is_uri(path):
            folders.append(_searched_prefix(path))
        elif os.path.isdir(path):
            folders.append(os.path.abspath(path))
        elif not os.path.exists(path) and glob.has_magic(path):
            plain = _before_wildcard(path.split("/"))
            folders.append(os.path.abspath("/".join(plain) or ("/" if path.startswith("/") else ".")))
    return folders


def _as_path(item: object) -> str:
    """Return the path as text; raise MissingSourceError for one that no file can have."""
    path = os.fsdecode(item)  # type: ignore[arg-type]
    if not could_be_path(path):
        raise MissingSourceError(f"{path!r} does not exist: no name of a file has a NUL or half a character")
    return path


def _expand(path: str) -> str:
    if (scheme := scheme_of(path)) is not None:
        return path if scheme in SCHEMES else _path_of_uri(path, scheme)
    # looked up only where a path has a place: that takes longer than all else of opening a small file
    return os.path.expanduser(_PLACE.sub(lambda match: sysconfig.get_paths().get(match[1], match[0]), path))


def _path_of_uri(uri: str, scheme: str) -> str:
    """Return the path of a URI `file:///…`; raise ProviderOptionError for other URIs."""
    rest = re.sub(r"^//(localhost)?(?=/)", "", uri[len("file:") :])
    if scheme != "file" or not rest.startswith("/") or rest.startswith("//"):
        raise ProviderOptionError(
            f"{shown(uri)} is a URI of {scheme}, which can't be read, expected a path, file:///… or a URI of "
            f"{', '.join(SCHEMES[:-1])}\nfilesystem= takes a file system of fsspec that can read it"
        )
    path = os.fsdecode(unquote_to_bytes(os.fsencode(rest)))
    if os.path.exists(path):
        return path
    return re.sub(
        "(?:%[0-9A-Fa-f]{2})+", lambda piece: glob.escape(os.fsdecode(unquote_to_bytes(piece[0]))), rest
    )


def _entered(parent: str, names: list[str], excluded: Sequence[str]) -> list[str]:
    """Return the names of those of these folders that are searched: no pattern leaves them out as a whole."""
    if not excluded or not names:
        return names
    place = os.path.abspath(parent)
    matched = _matched([os.path.join(place, name) for name in names], excluded)
    return [name for name, is_excluded in zip(names, matched, strict=True) if not is_excluded]


def _files_of(path: str, excluded: Sequence[str]) -> Iterator[str]:
    if os.path.isdir(path):
        yield from _shown_files(path, excluded)
    elif os.path.exists(path):
        if not os.path.isfile(path):
            raise ProviderError(
                f"{path} is a pipe, socket or device, expected a regular file or a folder\n"
                "write what it gives to a file first"
            )
        yield os.path.normpath(path)
    elif glob.has_magic(path):
        for match in matches(path, excluded):
            names = match.split(os.sep)
            if "__pycache__" in names or _is_aside(names, path.split("/")):
                continue
            if os.path.isfile(match):
                yield os.path.normpath(match)
            elif kind_of(match) is not None and os.path.isdir(match):  # as Spark writes: data.parquet/part-0…
                yield from _shown_files(match, excluded)
    else:
        raise MissingSourceError(f"{path} does not exist{_similar(path)}")


def matches(pattern: str, excluded: Sequence[str] = ()) -> Iterator[str]:
    """Expand a glob. `**` visits each folder once, however many symbolic links lead to it."""
    parts = pattern.split("/")
    if "**" not in parts:
        for at, part in enumerate(parts):
            if glob.has_magic(part):
                for folder in glob.iglob("/".join(parts[:at]) + "/") if at else ["."]:
                    # glob skips a folder that it may not list, and its files would be missing without an error
                    if not os.access(folder, os.R_OK | os.X_OK):
                        _refuse(PermissionError(errno.EACCES, "", folder.rstrip("/")))
        yield from glob.iglob(pattern)
        return
    at = parts.index("**")
    tail = [part for before, part in pairwise(parts[at:]) if not before == part == "**"]
    starts = glob.iglob("/".join(parts[:at]) + "/") if at else ["."]
    for start in starts:
        for folder in _folders(start, excluded):
            inner = "" if folder == "." else glob.escape(folder.removeprefix("./"))
            yield from matches(os.path.join(inner, *(tail or ["*"])), excluded)


def _refuse(error: OSError) -> None:
    """Raise ProviderError for a folder that cannot be listed, whose files are unknown; one that is gone has none."""
    if not isinstance(error, FileNotFoundError):
        why = os.strerror(error.errno or 0).lower()
        raise ProviderError(
            f"the folder {error.filename} cannot be listed: {why}\n"
            "let it be read, or leave it out with exclude"
        ) from None


def _folders(top: str, excluded: Sequence[str]) -> Iterator[str]:
    """Yield a folder and the folders below it except hidden ones; real folders before linked ones."""
    seen: set[tuple[int, int]] = set()
    tops = deque([top])
    while tops:
        for folder, inner, _ in os.walk(tops.popleft(), onerror=_refuse):
            # by device and inode: links may lead to a folder by many paths, or in a circle
            found = os.stat(folder)
            if (found.st_dev, found.st_ino) in seen:
                inner.clear()
                continue
            seen.add((found.st_dev, found.st_ino))
            yield folder
            inner[:] = _entered(folder, sorted(name for name in inner if not name.startswith(".")), excluded)
            # os.walk does not follow links; these come after all real folders, whose paths are kept
            tops.extend(path for name in inner if os.path.islink(path := os.path.join(folder, name)))


def _shown_files(folder: str, excluded: Sequence[str]) -> Iterator[str]:
    """Yield the files below a folder that it gives."""
    above = len(os.path.join(os.path.normpath(folder), "").removeprefix("./"))
    for path in _walk(folder, excluded):
        if "_" not in path[above:] or not _is_aside(path[above:].split("/")):
            yield path


def _walk(folder: str, excluded: Sequence[str]) -> Iterator[str]:
    folders = [folder]
    while folders:
        parent, inner = folders.pop(), []
        start = os.path.join(os.path.normpath(parent), "").removeprefix("./")
        try:
            with os.scandir(parent) as entries:
                for entry in entries:
                    name = entry.name
                    if name.startswith("."):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        inner.append(name)
                    # the folder tells what is a file: `stat` is for links
                    elif entry.is_file(follow_symlinks=False) or not _is_special(entry.path):
                        yield start + name
        except OSError as error:
            _refuse(error)
        shown = [name for name in inner if name not in ("__pycache__", _UNCOMMITTED)]
        folders += [os.path.join(parent, name) for name in _entered(parent, shown, excluded)]


def _is_special(path: str) -> bool:
    """Return whether this is a folder, pipe, socket or device. A broken link is not: reading it is an error."""
    try:
        return not stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False


def _missing_folder(pattern: str) -> str:
    """Return that the folder before the wildcards of a pattern does not exist; empty if it does."""
    folder = "/".join(_before_wildcard(pattern.split("/")))
    return f"; {folder} does not exist{_similar(folder)}" if folder and not os.path.lexists(folder) else ""


def _similar(path: str) -> str:
    folder, name = os.path.split(path.rstrip("/"))
    if unknown := _PLACE.search(path):
        return f"; {unknown[0]} is none of {', '.join(sysconfig.get_paths())}"
    try:
        return nearest(name, os.listdir(folder or "."))
    except FileNotFoundError:
        return f", and {folder} does not exist either{_similar(folder)}"
    except OSError as error:
        return f", and {folder} cannot be listed: {os.strerror(error.errno or 0).lower()}"


def _matched(paths: list[str], patterns: Sequence[str]) -> list[bool]:
    """Return for each path whether a pattern matches. Arrow's RE2 takes linear time for every pattern."""
    if not patterns:
        return [False] * len(paths)
    import pyarrow as pa
    from pyarrow import compute

    names = pa.array([_as_unicode(path) for path in paths], pa.string())
    found = [compute.match_substring_regex(names, pattern).to_pylist() for pattern in patterns]
    return [any(column) for column in zip(*found, strict=True)]


def _as_unicode(name: str) -> str:
    """Replace each byte of a name that is not UTF-8 by a question mark."""
    return name.encode("utf-8", "replace").decode()


def _pattern(glob: str) -> str:
    """Convert a glob to a regular expression that finds the end of a path, or a folder in it."""
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
        raise ProviderOptionError(f"exclude: {text!r} is not a pattern: {error}") from None
    return pattern


def _set(piece: str) -> str:
    """Convert a set of a glob, such as `[!a-z]`, to a set of a regular expression."""
    return "[" + re.sub(r"([\[&|~\\])", r"\\\1", piece[1:-1].replace("!", "^", piece[1] == "!")) + "]"
