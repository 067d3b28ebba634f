"""Arguments of a Loader: checked, and in the form in which it keeps them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seqflow.byte_sizes import parse_bytes
from seqflow.errors import NetError, OpError, OpTypeError
from seqflow.loader.run.bad_rows import BadRows
from seqflow.loader.run.transforms import Transform
from seqflow.loader.schedule.index import index_beside
from seqflow.loader.schedule.order import Shuffle
from seqflow.net import Net
from seqflow.output import MAX_THREADS
from seqflow.output.overwriting import overwritten
from seqflow.providers import Provider


def index_file(index: str | os.PathLike[str] | bool | None, source: Provider) -> Path | None:
    """The file of the lengths index: True is a hidden one beside the data."""
    if index is None or index is False:
        return None
    if index is True:
        return index_beside(source.files)
    if not isinstance(index, str | os.PathLike):
        raise OpTypeError(f"Loader: index is {type(index).__name__}, expected True or the path of a file")
    path = Path(index).expanduser()
    if (found := overwritten(path, source.files)) is not None:
        raise OpError(
            f"Loader: index is {str(path)!r}, which is {found!r}, a file of the source\n  choose a new name"
        )
    if source.finds(path):
        raise OpError(
            f"Loader: index is {str(path)!r}, which would be a file of the source\n"
            "  choose another folder or suffix, or leave it out with exclude"
        )
    return path


def byte_count(option: str, size: int | str) -> int:
    """Bytes of a number or a text such as "64 MiB"."""
    try:
        return parse_bytes(size)
    except ValueError as error:
        raise OpError(f"Loader: {option}: {error}") from None


def positive(option: str, value: Any) -> int:
    """The value itself, an integer of 1 or more."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise OpError(f"Loader: {option} is {value!r}, expected an integer, 1 or more")
    return value


def shuffle_of(shuffle: Shuffle | bool | None) -> Shuffle | None:
    """How rows are shuffled; True is with seed 0."""
    if shuffle is None or shuffle is False:
        return None
    if shuffle is True:
        return Shuffle()
    if not isinstance(shuffle, Shuffle):
        raise OpTypeError(f"Loader: shuffle is {shuffle!r}, expected True, False or Shuffle(seed)")
    return shuffle


def bad_rows_of(bad_rows: str | BadRows) -> BadRows:
    """The policy for bad rows, from its name."""
    if isinstance(bad_rows, str):
        return BadRows(bad_rows)  # type: ignore[arg-type]
    if not isinstance(bad_rows, BadRows):
        raise OpTypeError(
            f"Loader: bad_rows is {type(bad_rows).__name__}, expected 'raise', 'skip' or BadRows(…)"
        )
    return bad_rows


def version_of(version: str | int | None) -> str | None:
    """The version of Python functions, as text."""
    if version is None:
        return None
    if not isinstance(version, str | int) or isinstance(version, bool):
        raise OpTypeError(f"Loader: version is {version!r}, expected text or an integer")
    return str(version)


def constants_of(constants: Mapping[str, Any] | None) -> dict[str, Any]:
    """A copy of the constants."""
    if constants is not None and not isinstance(constants, Mapping):
        raise OpTypeError(f"Loader: constants is {type(constants).__name__}, expected arrays by name")
    return dict(constants or {})


def thread_count(threads: int | None) -> int:
    """By default one for each core but one, from 1 to 4: the thread that iterates helps."""
    if threads is None:
        return max(1, min(4, len(os.sched_getaffinity(0)) - 1))
    if not isinstance(threads, int) or isinstance(threads, bool) or not 0 <= threads <= MAX_THREADS:
        raise OpError(f"Loader: threads is {threads!r}, expected an integer, 0 to {MAX_THREADS}")
    return threads


def bind_constants(
    prepare: Net | Transform | None, net: Net | Transform | None, constants: dict[str, Any]
) -> tuple[Net | Transform | None, Net | Transform | None]:
    """Give each net the constants it reads; NetError for one that neither reads."""
    nets = [item for item in (prepare, net) if isinstance(item, Net)]
    unused = [name for name in constants if not any(name in item.inputs for item in nets)]
    if unused:
        raise NetError(f"net: nothing uses the constant {unused[0]!r}")

    def bound(item: Net | Transform | None) -> Net | Transform | None:
        if not isinstance(item, Net):
            return item
        return item.bind(**{name: value for name, value in constants.items() if name in item.inputs})

    return bound(prepare), bound(net)
