"""Datasets for PyTorch's DataLoader: the batches of a loader, made by any number of worker processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from seqflow.errors import OpError
from seqflow.torch.tensors import to_tensors


def iterable(loader: Any, *, int64: bool | tuple[str, ...] = False, cu_seqlens: bool = False) -> Any:
    """An IterableDataset of a loader's batches, as dicts of tensors.

        dataset = seqflow.torch.iterable(sf.Loader("docs/*.parquet", shuffle=True, batch=sf.Rows(64)))
        for batch in torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2): ...

    Whatever the number of workers, the DataLoader gives the loader's sequence of batches: worker w of n makes
    batches w, w + n, … of its rank. Its own `batch_size` has to be None. Call `set_epoch(n)` on the dataset before
    each pass, as with a DistributedSampler: workers that end take their loader's epoch with them. With torchdata's
    StatefulDataLoader a state is exact to the batch; it needs the same number of workers. `int64` and `cu_seqlens`
    are those of `to_tensors`. Threads alone are faster where the loader's nets are native: prefer
    `loader.to("torch")`.
    """
    return _dataset_class()(loader, {"int64": int64, "cu_seqlens": cu_seqlens})


_classes: list[Any] = []


def _dataset_class() -> Any:
    """The class, made when PyTorch is first needed; spawned workers find it by `iterable`, too."""
    if _classes:
        return _classes[0]
    from torch.utils.data import IterableDataset, get_worker_info

    class LoaderDataset(IterableDataset):  # type: ignore[type-arg]
        """The batches of a loader."""

        def __init__(self, loader: Any, options: Mapping[str, Any]) -> None:
            self.loader = loader
            self.options = options
            self._state: Mapping[str, Any] | None = None

        def __reduce__(self) -> tuple[Any, ...]:
            return _remade, (self.loader, self.options, self._state)

        def set_epoch(self, epoch: int) -> None:
            self.loader.set_epoch(epoch)

        def __len__(self) -> int:
            return len(self.loader)

        def __iter__(self) -> Iterator[dict[str, Any]]:
            loader, workers = self.loader, self._share()
            if self._state is not None:
                if self._state["workers"] != workers:
                    raise OpError(
                        f"load_state_dict: the state is of {self._state['workers']} workers, and there are {workers} "
                        "now\n  use as many, or the loader itself: it resumes with any number of threads and ranks"
                    )
                loader.load_state_dict(self._state["loader"])
                self._state = None
            for batch in loader:
                yield to_tensors(batch, **self.options)

        def state_dict(self) -> Mapping[str, Any]:
            workers = self._share()
            return self._state or {"loader": self.loader.state_dict(), "workers": workers}

        def _share(self) -> int:
            """Give the loader its share of the batches in this worker process; the number of workers."""
            info = get_worker_info()
            worker, workers = (0, 1) if info is None else (info.id, info.num_workers)
            self.loader.deal = replace(self.loader.deal, worker=worker, workers=workers)
            return workers

        def load_state_dict(self, state: Mapping[str, Any]) -> None:
            self._state = state

    LoaderDataset.__qualname__ = "LoaderDataset"
    _classes.append(LoaderDataset)
    return LoaderDataset


def _remade(loader: Any, options: Mapping[str, Any], state: Mapping[str, Any] | None) -> Any:
    dataset = iterable(loader, **options)
    dataset._state = state
    return dataset
