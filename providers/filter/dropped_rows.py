"""DroppedRows: rows of a source that are left out because of their places, whatever their values are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from seqflow.errors import DamagedFileError, ProviderError
from seqflow.providers.source import Block
from seqflow.record.record import Tensor

PLACE_BITS = 32
"""Bits of a row's place that are its position in the block; those above are the number of the block."""


@dataclass(frozen=True, slots=True)
class DroppedRows:
    """Rows to leave out."""

    positions: Mapping[tuple[str, int], Tensor] = field(default_factory=dict)
    """Their positions, ascending, by origin and index of their block."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Their number by reason."""
    too_short: Mapping[str, int] = field(default_factory=dict)
    """Number of rows that stay because they are too short to compare, by the reason for which others are left out."""

    damaged: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """Blocks that are left out as damaged, although other columns of them may be read, and the reason."""

    @classmethod
    def of_places(
        cls,
        places: Tensor,
        blocks: Iterable[Block],
        counts: Mapping[str, int],
        too_short: Mapping[str, int],
        damaged: Mapping[tuple[str, int], str],
    ) -> "DroppedRows":
        """Return the rows at int64 places, ascending: block number * 2**32 + row in the block.

        `blocks` are all of the source, in order, unfiltered. Raise ProviderError when it has no row at a place.
        """
        numbers, first = np.unique(places >> PLACE_BITS, return_index=True)
        by_block = (
            dict(zip(numbers.tolist(), np.split(places, first[1:]), strict=True)) if len(numbers) else {}
        )
        found = {}
        for number, block in enumerate(blocks):
            if number in by_block:
                positions = by_block.pop(number) & ((1 << PLACE_BITS) - 1)
                if block.num_rows is not None and positions[-1] >= block.num_rows:
                    raise _changed(
                        f"block {block.index} of {block.origin} has {block.num_rows} rows", positions[-1]
                    )
                found[block.origin, block.index] = positions
        if by_block:
            raise _changed("the source has fewer blocks", next(iter(by_block.values()))[0])
        return cls(found, counts, too_short, damaged)

    def check(self, block: Block) -> None:
        """Raise DamagedFileError if the block is left out as damaged."""
        if (reason := self.damaged.get((block.origin, block.index))) is not None:
            raise DamagedFileError(f"{block.origin}: {reason}")

    def count(self, block: Block) -> int:
        """Return the number of rows of a block that are left out."""
        return len(self.positions.get((block.origin, block.index), ()))

    def mask(self, block: Block, start: int, count: int) -> Tensor:
        """Return bool[count]: whether the rows from `start` on are kept."""
        kept = np.ones(count, bool)
        positions = self.positions.get((block.origin, block.index))
        if positions is not None:
            first, last = np.searchsorted(positions, [start, start + count])
            kept[positions[first:last] - start] = False
        return kept


def _changed(what: str, place: int) -> ProviderError:
    return ProviderError(
        f"{what}, and row {place} was to be left out: the source has changed since it was curated"
    )
