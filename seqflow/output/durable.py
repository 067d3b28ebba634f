"""Make what was written survive a power failure: the content of a file, and the names in a folder."""

import os
from pathlib import Path


def sync_file(path: Path) -> None:
    """Wait until the content of a file is on the disk."""
    _sync(path, os.O_RDONLY)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk: files that were made, renamed or removed."""
    _sync(path, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    opened = os.open(path, flags | os.O_CLOEXEC)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
