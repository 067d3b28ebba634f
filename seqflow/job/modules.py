"""Import the modules of a job, such as those with your own ops."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from seqflow.errors import JobError
from seqflow.identity.modules import module_texts


def import_modules(names: tuple[str, ...], folder: Path) -> None:
    """Import modules by name, also from `folder`; raise JobError when a module is missing."""
    with _on_path(folder):
        for name in names:
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as error:
                if error.name != name.partition(".")[0]:
                    raise JobError.of("imports", f"the module {name!r} needs another: {error}") from error
                raise JobError.of(
                    "imports",
                    f"there is no module {name!r}, neither in {str(folder.resolve())!r} nor installed",
                ) from None
            except Exception as error:
                what = f"{type(error).__name__}: {error}"
                raise JobError.of("imports", f"the module {name!r} cannot be imported: {what}") from error


def module_identity(names: tuple[str, ...], folder: Path) -> dict[str, str]:
    """Return the digest of each file of the modules, and of the user's own modules that they import."""
    with _on_path(folder):
        return module_texts(names)


@contextmanager
def _on_path(folder: Path) -> Iterator[None]:
    entry = str(folder.resolve())
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        sys.path.remove(entry)
