"""Folders in which other processes write the parts of a run, until the run adopts them."""

import re
import secrets
import shutil
from pathlib import Path


def new_name() -> str:
    """Return a name that no other run or attempt has: processes of two machines may have the same number."""
    return secrets.token_hex(8)


def attempts_beside(path: Path, name: str) -> Path:
    """Return the hidden folder for the attempts of a run, next to the file that is written."""
    return path.with_name(f".{path.name}.tasks-{name}")


def remove_attempts_beside(path: Path) -> None:
    """Remove the attempts of all runs that wrote a file; none of these runs is active."""
    remove_attempts(path.parent, re.escape(f".{path.name}.tasks-"))


def remove_attempts(folder: Path, prefix: str) -> None:
    """Remove the attempt folders in `folder` whose names begin with `prefix`, a regular expression."""
    left = re.compile(prefix + "[0-9a-f]{16}")
    for path in folder.iterdir():
        if left.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
