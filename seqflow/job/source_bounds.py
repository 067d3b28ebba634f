"""Upper bounds of the sizes in a job's source: of one block, and of all blocks together."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from seqflow.loader import Loader
from seqflow.providers.block_bounds import BlockBounds, block_bounds
from seqflow.shape import Dimension, DimensionLike


@dataclass(frozen=True, slots=True)
class SourceBounds:
    """Upper bounds of the sizes of a source: of each block, and of all of them."""

    blocks: int | None = None
    """Number of blocks; None if it is not known before reading."""
    block: Mapping[str, int] = field(default_factory=dict)
    """Largest size of any block, by name: `rows`, or `sum(tokens.lengths)`."""
    total: Mapping[str, int] = field(default_factory=dict)
    """Sizes of all blocks together."""

    @classmethod
    def of(cls, loader: Loader) -> "SourceBounds":
        """Return the bounds that footers and sizes of files give."""
        blocks = block_bounds(loader.source)
        if blocks is None:
            return cls()
        found = [_by_size(block, loader) for block in blocks]
        known = set[str]().union(*found).intersection(*found)
        return cls(
            len(found),
            {size: max(block[size] for block in found) for size in known},
            {size: sum(block[size] for block in found) for size in known},
        )

    def limits(self, names: Mapping[str, object]) -> dict[DimensionLike, int]:
        """Return bounds of the sums in one block of the lengths tensors among `names`."""
        sums = {Dimension.sum_of(name): name for name in names}
        return {size: self.block[str(size)] for size in sums if str(size) in self.block}

    def over_all_blocks(self, size: Dimension) -> int | None:
        """Return an upper bound of the sum of a size over all blocks, prepared or not; None if there is none."""
        if self.blocks is None:
            return None
        bounds = [] if size.max_length is None else [self.blocks * size.max_length]
        if size.terms and all(k > 0 and atom.text in self.total for atom, k in size.terms):
            bounds.append(
                self.blocks * size.constant + sum(k * self.total[atom.text] for atom, k in size.terms)
            )
        return min(bounds, default=None)


def _by_size(block: BlockBounds, loader: Loader) -> dict[str, int]:
    fills = loader.fill.values() if isinstance(loader.fill, Mapping) else [loader.fill]
    of_numbers = all(fill is None or isinstance(fill, bool | int | float) for fill in fills)
    sums = block.sums if of_numbers else {}  # a fill may be longer than any text or list
    return {"rows": block.rows} | {str(Dimension.sum_of(name)): most for name, most in sums.items()}
