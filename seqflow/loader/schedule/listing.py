"""The blocks of a source as they are listed before the first epoch, and checks that its files stay the same."""

from __future__ import annotations

import os

from seqflow.byte_sizes import format_bytes
from seqflow.errors import OpError, ProviderError
from seqflow.loader.schedule.recipe import Recipe
from seqflow.loader.schedule.windows import BlockSlice

Stamp = tuple[int, int]
"""Size of a file, and its time of change in nanoseconds."""


class Listing:
    """The blocks of a source, listed once, in slices that fit into a window; size and time of change of its files.

    A stream has none: nobody knows its blocks before they come.
    """

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._slices: list[BlockSlice] | None = None
        self._stamps: dict[str, Stamp] = {}

    def __reduce__(self) -> tuple[type[Listing], tuple[Recipe]]:
        """Another process lists the blocks itself: its files may be others."""
        return Listing, (self._recipe,)

    def slices(self) -> list[BlockSlice]:
        """All blocks in the order of the source; OpError where rows are shuffled in windows smaller than a block."""
        if self._slices is None:
            recipe = self._recipe
            stamps = {path: stamp_of(path) for path in recipe.source.files}
            self._stamps = {path: stamp for path, stamp in stamps.items() if stamp is not None}
            slices = [] if recipe.source.read_once else list(recipe.slices())
            if recipe.shuffle is not None:
                _check_fit(slices, recipe.window)
            self._slices = slices
        return self._slices

    @property
    def file_sizes(self) -> dict[str, int]:
        """The bytes of each file when it was listed."""
        self.slices()
        return {path: size for path, (size, _) in self._stamps.items()}

    def check_unchanged(self, path: str) -> None:
        """ProviderError where a file is another one than when its blocks were listed."""
        then = self._stamps.get(path)
        if then is not None and (now := stamp_of(path)) != then:
            what = (
                "is gone"
                if now is None
                else f"had {then[0]} bytes and has {now[0]} now, or was written again"
            )
            raise ProviderError(
                f"{path} changed while it was read: it {what}\n  make a new loader, and run again"
            )


def stamp_of(path: str) -> Stamp | None:
    """Size and time of change of a file; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _check_fit(slices: list[BlockSlice], window: int) -> None:
    """OpError for a block that does not fit into a window."""
    largest = max(slices, key=lambda one: one.nbytes, default=None)
    if largest is not None and largest.nbytes > window:
        raise OpError(
            f"Loader: {largest.block.origin}, block {largest.block.index} has "
            f"{format_bytes(largest.nbytes)}, but rows are shuffled in windows of {format_bytes(window)}\n"
            f"  raise window to {largest.nbytes} bytes or more, or write the file with smaller row groups"
        )
