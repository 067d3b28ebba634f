"""Options of `open` that say how one gets to files in stores."""

import os
from collections.abc import Mapping
from typing import Any

from seqflow.errors import ProviderOptionError
from seqflow.files.cache import DEFAULT_BYTES, Cache
from seqflow.files.interface import LOCAL, Files
from seqflow.files.systems import uri_in
from seqflow.files.uris import is_uri
from seqflow.hidden import described_option
from seqflow.providers.formats.options import byte_count

STORE_OPTIONS = ("storage_options", "filesystem", "cache", "cache_bytes")
"""Names of these options, which do not change what is read."""


def files_of_source(source: Any, options: Mapping[str, Any]) -> tuple[Any, Files]:
    """Return a source with its paths as URIs where they are in a store, and the place of its files."""
    is_one = isinstance(source, str | os.PathLike)
    items = [source] if is_one else list(source)
    system, given = options.get("filesystem"), options.get("storage_options")
    if system is not None:
        items = [uri_in(system, str(item)) for item in items]
    elif not any(isinstance(item, str) and is_uri(item) for item in items):
        return source, LOCAL
    if given is not None and not isinstance(given, Mapping):
        found = described_option("storage_options", given)
        raise ProviderOptionError(f"storage_options is {found}, expected a dict of options of the store")
    if system is not None and given:
        raise ProviderOptionError("storage_options is given in addition to filesystem, which has its own")
    from seqflow.files.store import StoreFiles

    store = StoreFiles(given, system, _cache(options))
    if system is None:
        items = [store.masked(item) if isinstance(item, str) and is_uri(item) else item for item in items]
    return items[0] if is_one else items, store


def _cache(options: Mapping[str, Any]) -> Cache | None:
    if options.get("cache") is None:
        if options.get("cache_bytes") is not None:
            raise ProviderOptionError("cache_bytes is given, but no cache, whose size it is")
        return None
    size = options.get("cache_bytes")
    return Cache(str(options["cache"]), DEFAULT_BYTES if size is None else byte_count(size, "cache_bytes"))
