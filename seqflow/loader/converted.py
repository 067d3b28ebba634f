"""Converted: the batches of a loader as another library's tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from seqflow.loader.stats import Stats
from seqflow.record import Record


class Batches(Protocol):
    """A Loader or a Mix."""

    epoch: int

    def __iter__(self) -> Iterator[Record]: ...

    def set_epoch(self, epoch: int) -> None: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...

    def stats(self) -> Stats: ...


class Converted:
    """The batches of a loader, each converted when it is handed out."""

    def __init__(self, loader: Batches, convert: Callable[[Record], dict[str, Any]]) -> None:
        self.loader = loader
        self._convert = convert

    @property
    def epoch(self) -> int:
        return self.loader.epoch

    def __len__(self) -> int:
        return len(self.loader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self.loader:
            yield self._convert(batch)
            del batch

    def set_epoch(self, epoch: int) -> None:
        self.loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.loader.load_state_dict(state)

    def stats(self) -> Stats:
        return self.loader.stats()
