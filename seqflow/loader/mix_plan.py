"""Plan of a mix: rows and passes of each source after a number of batches, before anything is read."""

from typing import NamedTuple

from seqflow.loader.epoch.state import PASS
from seqflow.loader.run.mixing import MixPipeline
from seqflow.providers.block_columns import UNKNOWN_SIZE


class PlannedSource(NamedTuple):
    """Batches, rows and passes of a source of a mix in a number of batches."""

    name: str
    share: float
    """Share of all batches, or of all rows in a mix of rows."""
    batches: int
    """Batches of this source; in a mix of rows, at most so many have rows of it."""
    rows: int | None
    """Its rows; those of an incomplete pass in proportion to its batches; None if they are not known."""
    passes: float | None
    """Passes over its data, over all epochs; None if its batches are not known before reading."""
    ends: tuple[int, ...]
    """The batch, counted over all epochs, before which each complete pass ends."""

    def __str__(self) -> str:
        rows = "" if self.rows is None else f", {self.rows:,} rows"
        passes = "" if self.passes is None else f", {self.passes:.2f} passes"
        shown = ", ".join(f"{end:,}" for end in self.ends[:5]) + (", …" if len(self.ends) > 5 else "")
        ends = f", which end before batches {shown}" if self.ends else ""
        return f"{self.name}: {self.share:.2%}, {self.batches:,} batches{rows}{passes}{ends}"


def _rows_of(mix: MixPipeline, number: int) -> float:
    """Return the rows of a source; NaN if they are not known before reading."""
    rows = mix.member(number).listing.slices().blocks.rows
    return float("nan") if (rows == UNKNOWN_SIZE).any() else float(rows.sum())


def plan_of(mix: MixPipeline, batches: int) -> list[PlannedSource]:
    """Return the plan of each source for the first batches of a mix, from epoch 0 on."""
    counts, passes, rows = ([0.0] * len(mix.members) for _ in range(3))
    ends: list[list[int]] = [[] for _ in mix.members]
    epoch = begun = 0
    while begun < batches:
        total = mix.num_batches(epoch)  # None: an epoch whose end is not known goes on
        length = batches - begun if total is None else min(total, batches - begun)
        if not length:
            break
        picks = mix.picks(epoch)
        for number, member in enumerate(mix.members):
            left = picks.before(number, length)
            counts[number] += left
            done = 0
            while member is not None and left:
                size = member.num_batches(epoch + PASS * len([end for end in ends[number] if end > begun]))
                if not size:
                    passes[number] = rows[number] = float("nan")
                    break
                share = min(1.0, left / size)
                passes[number] += share
                rows[number] += share * (_rows_of(mix, number) if mix.rows is None else size)
                left, done = left - min(left, size), done + size
                if share == 1 and (end := picks.end_of(number, done)) is not None:
                    ends[number].append(begun + end)
        begun, epoch = begun + length, epoch + 1
    return [
        PlannedSource(
            name, counts[at] / max(1, begun * (mix.rows or 1)),
            int(counts[at]) if mix.rows is None else int(min(counts[at], begun)),
            None if rows[at] != rows[at] else round(rows[at]), None if passes[at] != passes[at] else passes[at],
            tuple(ends[at]),
        )
        for at, name in enumerate(mix.names)
    ]  # fmt: skip
