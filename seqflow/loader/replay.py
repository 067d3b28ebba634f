"""Replay: the same batches from memory, for the ceiling that a consumer can reach."""

from collections.abc import Callable, Iterator, Sequence
from time import perf_counter
from typing import Any


class Replay:
    """Batches in memory: a loop over them takes the time of the consumer alone.

        replay = loader.replay(steps=50)
        for batch in replay:
            train(batch)
        replay.step_seconds

    Each loop gives all batches once; the last whole one sets `step_seconds`, which is the ceiling in the loader's
    verdicts.
    """

    def __init__(self, batches: Sequence[Any], note: Callable[[float], None]) -> None:
        self._batches, self._note = batches, note
        self.step_seconds: float | None = None
        """Seconds of a step in the last whole loop; None before."""

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Any]:
        started = perf_counter()
        yield from self._batches
        if self._batches:
            self.step_seconds = (perf_counter() - started) / len(self._batches)
            self._note(self.step_seconds)

    def __repr__(self) -> str:
        rate = "not iterated" if self.step_seconds is None else f"{self.step_seconds * 1e3:,.2f} ms a step"
        return f"Replay of {len(self)} batches from memory, {rate}"
