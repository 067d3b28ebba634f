"""List of unfinished files and folders, which a process removes when it must end at once."""

from pathlib import Path

_paths: dict[Path, None] = {}


def add(path: Path) -> None:
    """Note a file before it is created, or a folder after it is created."""
    _paths[path] = None


def discard(path: Path) -> None:
    """Forget a path that is finished or removed."""
    _paths.pop(path, None)


def remove_all() -> None:
    """Remove all unfinished files, then empty folders, innermost first."""
    for path in reversed(list(_paths)):
        try:
            path.rmdir() if path.is_dir() else path.unlink()
        except OSError:
            continue
