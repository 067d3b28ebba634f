"""Paths in stores and file systems that a user passes, as URIs and back."""

from posixpath import normpath
from typing import Any

from seqflow.files.uris import CLOUDS, SCHEMES, is_uri

_OF_ARROW = {"s3": "s3", "gcs": "gs", "abfs": "abfss"}
_OF_OBSTORE = {
    "S3Store": "s3",
    "GCSStore": "gs",
    "AzureStore": "az",
    "HTTPStore": "https",
    "MemoryStore": "memory",
}


def uri_in(system: Any, path: str) -> str:
    """Return the URI that stands for a path inside a store or file system."""
    if is_uri(path):
        return path
    path = path.lstrip("/")
    if {".", ".."} & set(path.split("/")):
        path = normpath(f"/{path}").lstrip("/")  # stores refuse such keys
    return f"{_root(system)}/{path}"


def key_in(system: Any, uri: str) -> str:
    """Return the path inside a store or file system that a URI stands for."""
    root = _root(system)
    key = uri.removeprefix(root).lstrip("/")
    is_rooted = hasattr(system, "cat_file") and str(system._strip_protocol("/a")).startswith("/")
    return f"/{key}" if is_rooted or getattr(system, "type_name", "") == "local" else key


def scheme_of_system(system: Any) -> str:
    """Return the scheme of the paths of a file system of pyarrow or fsspec, "fs" for one that has none."""
    if hasattr(system, "type_name"):
        return _OF_ARROW.get(system.type_name, "fs")
    protocol = getattr(system, "protocol", "fs")
    return str(protocol if isinstance(protocol, str) else protocol[0])


def _root(system: Any) -> str:
    """Return the beginning of the URIs of a system."""
    kind = type(system).__name__
    if kind in _OF_OBSTORE:
        config = getattr(system, "config", None) or {}
        bucket = config.get("bucket") or config.get("container_name") or ""
        prefix = str(getattr(system, "prefix", None) or "").strip("/")
        return "/".join(filter(None, [f"{_OF_OBSTORE[kind]}://{bucket}", prefix]))
    scheme = scheme_of_system(system)
    # paths begin with a bucket in those of clouds alone
    return f"{scheme}:/" if scheme in CLOUDS else f"{scheme if scheme in SCHEMES else 'fs'}://"
