"""Folders that are a table of Delta Lake or Lance, opened by their packages where these are installed."""

import glob
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any

from seqflow.errors import ProviderOptionError
from seqflow.files.interface import LOCAL, Files
from seqflow.files.options import texts_of_options
from seqflow.files.uris import is_uri
from seqflow.providers.formats.suffixes import kind_of
from seqflow.providers.other_packages import foreign_errors
from seqflow.providers.provider import Provider
from seqflow.providers.tables.datasets import open_delta, open_lance
from seqflow.providers.tables.table_formats import DELTA, LANCE, format_of, refusal

_OPENERS = {DELTA: ("deltalake", "DeltaTable", open_delta), LANCE: ("lance", "dataset", open_lance)}
"""By format: a module, its function that loads the table of a folder, and the function that opens the table."""


def table_folder(
    folder: str, store: Files = LOCAL, access: Mapping[str, Any] | None = None
) -> Callable[..., Provider] | None:
    """Return the function that opens the table in this folder; None for other folders.

    `access` are the options that say how one gets to a store. Raise ProviderOptionError if the package of its format
    is not installed, or does not take them.
    """
    is_object = is_uri(folder)
    if is_object and (folder.startswith("http") or kind_of(folder) is not None or glob.has_magic(folder)):
        return None
    found = format_of(folder, store)
    if found is None or found not in _OPENERS:
        return None
    module, function, opener = _OPENERS[found]
    try:
        load = getattr(import_module(module), function)
    except ImportError as error:
        raise ProviderOptionError(f"{refusal(folder, found)}, which is not installed") from error
    options = _options_of_package(folder, found.name, access or {}) if is_object else {}
    with foreign_errors(f"{folder} is {found.name}, but can't be opened"):
        return partial(opener, load(folder, **options))


def _options_of_package(folder: str, name: str, access: Mapping[str, Any]) -> dict[str, Any]:
    for option in ("filesystem", "cache", "cache_bytes"):
        if access.get(option) is not None:
            raise ProviderOptionError(
                f"{option} is given, but {folder} is {name}, which its package reads, expected storage_options only"
            )
    given = access.get("storage_options") or {}
    return {"storage_options": texts_of_options(given, folder.partition(":")[0])}
