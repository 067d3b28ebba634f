"""Converted: the batches of a loader as another library's tensors."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any, Protocol

from seqflow.errors import OpError
from seqflow.loader.run.stats import Stats
from seqflow.record import Record
from seqflow.torch.tensors import to_tensors


class Batches(Protocol):
    """A Loader or a Mix."""

    epoch: int

    def __iter__(self) -> Iterator[Record]: ...

    def set_epoch(self, epoch: int) -> None: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: Mapping[str, Any], *, changes: str = "refuse") -> None: ...

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

    def load_state_dict(self, state: Mapping[str, Any], *, changes: str = "refuse") -> None:
        self.loader.load_state_dict(state, changes=changes)

    def stats(self) -> Stats:
        return self.loader.stats()


def converted(
    loader: Batches, library: str, *, pin_memory: bool, int64: bool | Collection[str], cu_seqlens: bool
) -> Converted:
    """The batches of a loader as tensors of a library; OpError for one that there is nothing for."""
    if library != "torch":
        raise OpError(f"{type(loader).__name__}.to: library is {library!r}, expected 'torch'")
    return Converted(loader, partial(to_tensors, pin_memory=pin_memory, int64=int64, cu_seqlens=cu_seqlens))
