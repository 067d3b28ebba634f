"""Folders that are a table of Delta Lake or Lance, opened by their packages where these are installed."""

from collections.abc import Callable
from functools import partial
from importlib import import_module

from seqflow.errors import ProviderOptionError
from seqflow.providers.other_packages import foreign_errors
from seqflow.providers.provider import Provider
from seqflow.providers.tables.datasets import open_delta, open_lance
from seqflow.providers.tables.table_formats import DELTA, LANCE, format_of, refusal

_OPENERS = {DELTA: ("deltalake", "DeltaTable", open_delta), LANCE: ("lance", "dataset", open_lance)}
"""By format: a module, its function that loads the table of a folder, and the function that opens the table."""


def table_folder(folder: str) -> Callable[..., Provider] | None:
    """Return the function that opens the table in this folder; None for other folders.

    Raise ProviderOptionError if the package of its format is not installed.
    """
    found = format_of(folder)
    if found is None or found not in _OPENERS:
        return None
    module, function, opener = _OPENERS[found]
    try:
        load = getattr(import_module(module), function)
    except ImportError as error:
        raise ProviderOptionError(f"{refusal(folder, found)}, which is not installed") from error
    with foreign_errors(f"{folder} is {found.name}, but can't be opened"):
        return partial(opener, load(folder))
