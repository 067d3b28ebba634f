"""Folders in which other processes write the parts of a run, before these get names that count."""

from __future__ import annotations

import re
import secrets
import shutil
from pathlib import Path


def new_name() -> str:
    """A name that no other run, and no other attempt, has: processes of two machines may have one number."""
    return secrets.token_hex(8)


def attempts_beside(path: Path, name: str) -> Path:
    """The hidden folder for the attempts of a run, beside a file that is written."""
    return path.with_name(f".{path.name}.tasks-{name}")


def remove_attempts_beside(path: Path) -> None:
    """Remove the attempts of all runs at a file, none of which runs any more."""
    remove_attempts(path.parent, re.escape(f".{path.name}.tasks-"))


def remove_attempts(folder: Path, prefix: str) -> None:
    """Remove the folders of attempts whose names begin so (a regular expression), in a folder."""
    left = re.compile(prefix + "[0-9a-f]{16}")
    for path in folder.iterdir():
        if left.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
