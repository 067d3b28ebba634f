"""Paths and URIs as text: schemes, roots and keys, folders and names."""

import os
import re

CLOUDS = ("s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "adl")
SCHEMES = (*CLOUDS, "http", "https", "hf", "memory", "fs")
"""Schemes of the URIs that can be read, besides `file`."""
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")


def scheme_of(path: str) -> str | None:
    """Return the scheme of a URI, in lower case; None for a path. A folder that is called `s3:` makes a path."""
    found = _URI.match(path)
    return None if found is None or os.path.exists(path) else found[1].lower()


def is_uri(path: str) -> bool:
    """Return whether this names an object of a store.

    >>> is_uri("s3://bucket/a.parquet"), is_uri("/data/a.parquet"), is_uri("file:///data/a.parquet")
    (True, False, False)
    """
    return path[:1] != "/" and scheme_of(path) in SCHEMES


def absolute(path: str) -> str:
    """Return the absolute path; a URI as it is."""
    return path if is_uri(path) else os.path.abspath(path)


def join(folder: str, *names: str) -> str:
    """Return the path of a file in a folder.

    >>> join("s3://bucket/a/", "b.parquet")
    's3://bucket/a/b.parquet'
    >>> join("fs:///", "b.parquet")
    'fs:///b.parquet'
    """
    if not is_uri(folder):
        return os.path.join(folder, *names)
    above = folder.rstrip("/")
    return "/".join([f"{above}//" if above[-1] == ":" else above, *names])


def folder_of(path: str) -> str:
    """Return the folder of a file; that of a URI has its root at least.

    >>> folder_of("s3://bucket/a/b.parquet"), folder_of("fs:///b.parquet")
    ('s3://bucket/a', 'fs://')
    """
    folder = os.path.dirname(path)
    return f"{folder}//" if folder[-1:] == ":" and is_uri(path) else folder


def split(uri: str) -> tuple[str, str]:
    """Return the root of a URI, with bucket, host or repository, and the key below it.

    >>> split("s3://bucket/a/b.parquet"), split("hf://datasets/user/name/a.parquet")
    (('s3://bucket', 'a/b.parquet'), ('hf://datasets/user/name', 'a.parquet'))
    """
    scheme, _, rest = uri.partition(":/")  # a Path has folded two slashes
    parts, depth = rest.removeprefix("/").split("/"), 3 if scheme.lower() == "hf" else 1
    return f"{scheme.lower()}://{'/'.join(parts[:depth])}", "/".join(parts[depth:]).lstrip("/")


def without_query(path: str) -> str:
    """Return a path without the query of a web address: its end tells the format. Keys of other stores may have `?`.

    >>> without_query("https://host/a.csv?version=3"), without_query("s3://bucket/why?.csv")
    ('https://host/a.csv', 's3://bucket/why?.csv')
    """
    return path.partition("?")[0] if path[:4].lower() == "http" and is_uri(path) else path
