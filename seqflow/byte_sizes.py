"""Parse and format numbers of bytes with units: `"32 MiB"`."""

import math
import re

_UNITS = {
    "": 1, "b": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def parse_bytes(size: int | str) -> int:
    """Return the number of bytes in `"32 MiB"`, `"1.5 GB"` or a plain number; raise ValueError for anything else.

    >>> parse_bytes("32 MiB")
    33554432
    """
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    match = _SIZE.fullmatch(size) if isinstance(size, str) else None
    unit = _UNITS.get(match[2].lower()) if match else None
    number = float(match[1]) * unit if match and unit else 0.0
    count = int(number) if math.isfinite(number) else 0
    if count <= 0:
        raise ValueError(f"size is {size!r}, expected bytes as a number or text such as '32 MiB'")
    return count


def format_bytes(count: int | None) -> str:
    """Return a number of bytes with a unit; `?` for None, an unknown number.

    >>> format_bytes(3 << 20), format_bytes(None)
    ('3.0 MiB', '?')
    """
    if count is None:
        return "?"
    if count < 1024:
        return f"{count} B"
    size = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        size /= 1024
        if size < 1024:
            return f"{size:.1f} {unit}"
    return f"{size / 1024:.1f} TiB"
