"""LoaderDataset: a loader's batches as PyTorch's IterableDataset. It imports PyTorch.

Worker processes share the state of the epoch. Libraries that shard or stack a dataset are found among the callers on
the stack, since a dataset is not told about them.
"""

import sys
from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch.utils.data import IterableDataset, get_worker_info
from torch.utils.data._utils.collate import default_collate_fn_map

from seqflow.errors import OpError
from seqflow.thread_guards import one_at_a_time
from seqflow.torch.collation import collate
from seqflow.torch.tensors import to_tensors

_SET, _EPOCH, _ENDED = range(3)
_MOST_WORKERS = 1022
"""Largest number of workers that share the state: with the two cells before them 8 KiB, two pages of memory."""


class PassCount:
    """Numbers about a loader in shared memory: passes that workers have begun, and moves of the main process."""

    def __init__(self, moves: int) -> None:
        self._cells = torch.tensor([0, moves]).share_memory_()

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._cells.share_memory_()  # pickle and deepcopy copy it out of shared memory, processes that spawn do not

    def __int__(self) -> int:
        return int(self._cells[0])

    def begin(self) -> None:
        self._cells[0] += 1

    @property
    def moves(self) -> int:
        """Number of times that the main process set the place of the loader."""
        return int(self._cells[1])

    @moves.setter
    def moves(self, moves: int) -> None:
        self._cells[1] = moves

    @property
    def is_here(self) -> bool:
        """Whether this process is one of the workers."""
        return get_worker_info() is not None


class Passes:
    """Epoch that was set on a dataset, and the workers that have ended a pass, in shared memory."""

    def __init__(self) -> None:
        self._cells = torch.zeros(_ENDED + _MOST_WORKERS, dtype=torch.int64).share_memory_()
        self._cells[_SET], self._cells[_ENDED:] = -1, -1

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._cells.share_memory_()

    @property
    def set_at(self) -> int:
        """Move of the loader by which the epoch was set last; -1 before."""
        return int(self._cells[_SET])

    @property
    def epoch(self) -> int:
        """Epoch that was set last."""
        return int(self._cells[_EPOCH])

    def set_epoch(self, epoch: int, move: int) -> None:
        self._cells[_EPOCH] = epoch
        self._cells[_SET] = (
            move  # last: a worker that sees this number must find the epoch that belongs to it
        )

    def end(self, worker: int, move: int) -> None:
        """Record that a worker has ended a pass that began after a move of the loader."""
        self._cells[_ENDED + worker] = move

    def is_over(self, worker: int, move: int) -> bool:
        """Return whether this worker, or an earlier process with its number, has ended such a pass."""
        if worker >= _MOST_WORKERS:
            raise OpError(
                f"seqflow.torch.iterable: worker {worker}, expected at most {_MOST_WORKERS} workers"
            )
        return int(self._cells[_ENDED + worker]) == move


class TensorBatch(dict[str, Any]):
    """Tensors of a batch by name; PyTorch's `default_collate` calls `collate` for lists of it."""

    def __init__(
        self, tensors: Mapping[str, Any], batch: Any = None
    ) -> None:  # Accelerate makes one of a dict
        super().__init__(tensors)
        self.number: int | None = getattr(batch, "number", None)
        """Number of the batch in its epoch, counted over all ranks."""
        self.sources: tuple[str, ...] = getattr(batch, "sources", ())
        """Names of the sources of the rows, for a batch of a Mix."""
        self.parents: Mapping[str, str | None] = getattr(batch, "parents", {})
        """Lengths that describe the rows of each tensor, or None for the rows of the batch, as in a Record."""


default_collate_fn_map[TensorBatch] = lambda batches, **_: collate(batches)


class LoaderDataset(IterableDataset):  # type: ignore[type-arg]
    """IterableDataset of the batches of a loader."""

    def __init__(self, loader: Any, options: Mapping[str, Any]) -> None:
        self.loader = loader
        self.options = options
        self._assignment = loader.assignment
        self._passes = Passes()
        self._count = loader.passes = loader.passes or PassCount(loader.moves)
        self._state: Mapping[str, Any] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        refuse_dispatch()  # here, since a spawned worker's stack does not show what started it
        return LoaderDataset, (self.loader, self.options), vars(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.loader.passes = self._count

    def set_epoch(self, epoch: int) -> None:
        """Begin the next pass with the first batch of an epoch, or after the state of this epoch that was loaded."""
        if (self._state or self.loader.is_resuming) and not self.loader.is_elsewhere:
            resumed = self._state["loader"]["epoch"] if self._state else self.loader.epoch
            if resumed != epoch:
                raise OpError(
                    f"set_epoch: epoch is {epoch}, but a state of epoch {resumed} was loaded, and would be lost\n"
                    f"  go on with set_epoch({resumed}); Accelerate calls it with the DataLoader's `iteration`"
                )
            return
        self._state = None
        self.loader.set_epoch(epoch)
        self._passes.set_epoch(epoch, self.loader.moves)

    def __len__(self) -> int:
        """Return the number of batches of this rank, or of all ranks if a library shards the dataset again."""
        own = self.loader.assignment
        self.loader.assignment = self._assignment_of(0, 1, is_sharded_again(self))
        try:
            return len(self.loader)
        finally:
            self.loader.assignment = own

    @one_at_a_time
    def __iter__(self) -> Generator[dict[str, Any], None, None]:
        refuse_dispatch()
        refuse_stacking()
        worker, workers = _worker()
        self._begin(worker, workers)
        yield from self._batches(worker, workers, is_sharded_again(self))

    def _begin(self, worker: int, workers: int) -> None:
        """Move the loader to the start of the pass."""
        loader, passes = self.loader, self._passes
        moves = self._count.moves
        if loader.moves != moves:  # in a persistent worker
            if passes.set_at != moves:
                raise OpError(
                    "seqflow.torch.iterable: a state was loaded, or the loader's epoch was set, after persistent "
                    "workers had begun, and it does not reach them\n  make a new DataLoader; set_epoch(n) on the "
                    "dataset reaches workers"
                )
            loader.moves, self._state = moves, None
            loader.set_epoch(passes.epoch)
        elif get_worker_info() is not None and passes.is_over(worker, moves):
            if loader.pipeline.epochs_differ:
                raise OpError(
                    "seqflow.torch.iterable: a second pass over one epoch, which would give all batches in the same "
                    "order again\n  call set_epoch(n) on the dataset before each pass"
                )
            self._state = None
            loader.set_epoch(loader.epoch)
        if self._state is not None:
            if self._state["workers"] != workers:
                raise OpError(
                    f"load_state_dict: the state is of {self._state['workers']} workers, and there are {workers} "
                    "now\n  use as many, or the loader itself: it resumes with any number of threads and ranks"
                )
            loader.load_state_dict(self._state["loader"])
            self._state = None

    def _batches(self, worker: int, workers: int, is_sharded: bool) -> Iterator[dict[str, Any]]:
        in_worker = get_worker_info() is not None
        self.loader.assignment = self._assignment_of(worker, workers, is_sharded)
        try:
            if in_worker:
                self._count.begin()
            for batch in self.loader:
                yield TensorBatch(to_tensors(batch, **self.options), batch)
            if in_worker:
                self._passes.end(worker, self.loader.moves)
        finally:
            self.loader.assignment = self._assignment

    def _assignment_of(self, worker: int, workers: int, is_sharded: bool) -> Any:
        """Return the loader's assignment for a worker; a library that shards again gets the batches of all ranks."""
        own = self._assignment
        ranks = replace(own.ranks, rank=0, world_size=1) if is_sharded else own.ranks
        return replace(own, ranks=ranks, worker=worker, workers=workers)

    def state_dict(self) -> Mapping[str, Any]:
        """Return the state of the batches that this process makes; raise OpError if worker processes make them."""
        known = None if self.loader.is_elsewhere else self._state
        return known or {"loader": self.loader.state_dict(), "workers": _worker()[1]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._state = state
        self.loader.note_move()


def _worker() -> tuple[int, int]:
    """Return the number of this worker process, and the number of workers."""
    info = get_worker_info()
    return (0, 1) if info is None else (info.id, info.num_workers)


def is_sharded_again(dataset: Any) -> bool:
    """Return whether Accelerate, or the Trainer of transformers, takes only this process's part of the batches."""
    return any(
        type(caller).__name__ == "IterableDatasetShard" and caller.dataset is dataset for caller in _callers()
    )


def refuse_dispatch() -> None:
    """Raise OpError if Accelerate cuts the batches of one process by rows, to send them to all processes."""
    if any(type(caller).__name__ == "DataLoaderDispatcher" for caller in _callers()):
        raise OpError(
            "seqflow.torch.iterable: Accelerate dispatches batches, which cuts all tensors of a batch to the same "
            "number of rows; values have other rows than their lengths\n"
            "  Accelerator(dataloader_config=DataLoaderConfiguration(dispatch_batches=False)), or for a Trainer "
            'TrainingArguments(accelerator_config={"dispatch_batches": False})'
        )


def refuse_stacking() -> None:
    """Raise OpError if a collator of transformers would stack whole batches as if they were rows."""
    for caller in _callers():
        collate = getattr(caller, "collate_fn", None) if getattr(caller, "auto_collation", False) else None
        collate = getattr(collate, "data_collator", collate)  # the Trainer's, which removes columns first
        kind = collate if hasattr(collate, "__module__") else type(collate)
        if str(getattr(kind, "__module__", "")).startswith("transformers."):
            name = getattr(collate, "__name__", type(collate).__name__)
            raise OpError(
                f"seqflow.torch.iterable: {name} stacks rows, but the dataset gives whole batches\n"
                "  Trainer(…, data_collator=seqflow.torch.collate) with per_device_train_batch_size=1"
            )


def _callers() -> Iterator[Any]:
    """Yield the objects with a method on the stack, innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        caller = frame.f_locals.get("self")
        if caller is not None:
            yield caller
        frame = frame.f_back  # type: ignore[assignment]
