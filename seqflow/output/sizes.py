"""Sizes: how large row groups and files become."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large row groups and files become, about."""

    row_group_bytes: int = 16 << 20
    """Arrow bytes of a row group."""
    part_bytes: int = 512 << 20
    """Arrow bytes of a part from which on it is closed."""
    rows_per_file: int | None = None
    """Rows of a part from which on it is closed."""

    def are_reached(self, rows: int, nbytes: int, parts: int = 1) -> bool:
        """Whether so many parts are as large as they should be together."""
        return nbytes >= self.part_bytes * parts or (
            self.rows_per_file is not None and rows >= self.rows_per_file * parts
        )


DEFAULT_SIZES = Sizes()
