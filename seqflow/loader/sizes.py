"""Sizes in bytes, as people write them."""

import re

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def parse_bytes(size: int | str) -> int:
    """`"32 MiB"`, `"1.5 GB"` or a plain number, in bytes. ValueError for anything else.

    >>> parse_bytes("32 MiB")
    33554432
    """
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    match = _SIZE.fullmatch(size) if isinstance(size, str) else None
    unit = _UNITS.get(match[2].lower()) if match else None
    count = int(float(match[1]) * unit) if match and unit else 0
    if count <= 0:
        raise ValueError(f"size is {size!r}, expected bytes as a number or text such as '32 MiB'")
    return count
