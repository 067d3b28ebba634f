"""Find input files that an output would overwrite, also through links and other names of a file."""

import functools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from seqflow.errors import JobError
from seqflow.files.uris import is_uri, join, split

Identity = tuple[int, int]


class FileSource(Protocol):
    """Interface of a source: its files, and whether its paths would match a new file."""

    @property
    def files(self) -> Iterable[str]: ...

    def finds(self, path: Path | str, /) -> bool: ...


def check_unused(path: Path, overwrite: bool) -> None:
    """Raise JobError when a command would replace a file without `--overwrite`."""
    if path.is_file() and not overwrite:
        raise JobError(f"output: {str(path)!r} exists\n  --overwrite replaces it; or choose another output")


def conflict(
    path: Path | str, source: FileSource, also: Iterable[str] = (), makes: Iterable[str] = ()
) -> str | None:
    """Return why a new file must not have this path, and what to do: it would overwrite a file of the source, or of
    those that are `also` read, or it or a file that it `makes` would match the paths of the source in the next run.
    """
    if (found := overwritten(path, [*sorted(source.files), *also])) is not None:
        return f"is or holds {found!r}, a file that is read\n  write somewhere else, or leave it out with exclude"
    if (found := next((str(file) for file in (path, *makes) if source.finds(file)), None)) is not None:
        return (
            f"would be a file of the source: its paths find {found!r}\n"
            "  write somewhere else, or leave it out with exclude"
        )
    return None


def check_new_file(
    setting: str, path: Path | str, source: FileSource, also: Iterable[str] = (), makes: Iterable[str] = ()
) -> None:
    """Raise JobError when a new file must not have this path, as `conflict` says."""
    if (why := conflict(path, source, also, makes)) is not None:
        raise JobError(f"{setting}: {str(path)!r} {why}")


def overwritten(target: Path | str, files: Iterable[str]) -> str | None:
    """Return the first of these files that the target may write: the target itself, or a file in its folder.

    A single file includes its hidden files: those next to it whose names begin with a dot and its name. Links and
    other names of a file count as that file. A URI is compared with the URIs of the files.
    """
    if is_uri(str(target)):
        return next(
            (file for file in files if is_uri(file) and belongs_to(normal(file), normal(str(target)))), None
        )
    target, files = Path(target), [file for file in files if not is_uri(file)]
    inside = {identity for path in _written(target) if (identity := _identity(path)) is not None}
    place = os.path.realpath(target)
    real_folder = functools.cache(os.path.realpath)

    def real(file: str) -> str:
        folder, name = os.path.split(file)
        if name in ("", ".", "..") or os.path.islink(file):
            return os.path.realpath(file)
        return os.path.join(real_folder(folder), name)

    return next(
        (
            file
            for file in files
            if _identity(file) in inside
            or belongs_to(real(file), place)
            or belongs_to(os.path.abspath(file), place)
        ),
        None,
    )


def normal(uri: str) -> str:
    """Return a URI as text that is equal for equal objects.

    >>> normal("S3://bucket/a//b/")
    's3://bucket/a/b'
    """
    root, key = split(uri)
    return join(root, *filter(None, key.split("/")))


def belongs_to(file: str, target: str) -> bool:
    """Return whether a file is the target, lies in it, or has the name of a hidden file of the target.

    >>> belongs_to("/o/.x.parquet.lock", "/o/x.parquet"), belongs_to("/o/x.parquet2", "/o/x.parquet")
    (True, False)
    """
    folder, name = os.path.split(target)
    return file == target or file.startswith((os.path.join(target, ""), os.path.join(folder, f".{name}.")))


def _written(target: Path) -> Iterator[str]:
    """Yield a target, and the files that exist in it (a folder) or as its hidden files (a file)."""
    yield str(target)
    if target.is_dir():
        for folder, _, names in os.walk(target):
            yield from (os.path.join(folder, name) for name in names)
    elif target.parent.is_dir():
        for name in os.listdir(target.parent):
            if name.startswith(f".{target.name}."):
                yield os.path.join(target.parent, name)


def _identity(path: str | Path) -> Identity | None:
    """Return device and inode number of a path; None if it does not exist."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
