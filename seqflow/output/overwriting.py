"""Find the input that an output would overwrite, whatever names and links lead to it."""

import os
from collections.abc import Iterable
from pathlib import Path

Identity = tuple[int, int]


def overwritten(target: Path, files: Iterable[str]) -> str | None:
    """The first of these files that is the target, lies in it at any depth, or is the same file as one in it."""
    own = _identity(target)
    if own is None:
        return None
    inside = {own}
    if target.is_dir():
        inside.update(identity for path in target.iterdir() if (identity := _identity(path)))
    above: dict[str, bool] = {}
    return next((file for file in files if _identity(file) in inside or _is_below(file, own, above)), None)


def _is_below(file: str, folder: Identity, known: dict[str, bool]) -> bool:
    """Whether the file lies in the folder; `known` has the answer for folders."""
    parent = os.path.dirname(os.path.realpath(file))
    if parent not in known:
        known[parent] = any(_identity(path) == folder for path in (Path(parent), *Path(parent).parents))
    return known[parent]


def _identity(path: str | Path) -> Identity | None:
    """Device and number of what is there; None where there is nothing."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
