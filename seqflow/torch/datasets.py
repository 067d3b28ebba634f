"""Datasets for PyTorch's DataLoader: the batches of a loader, made by any number of worker processes."""

from __future__ import annotations

from typing import Annotated, Any

LoaderLike = Annotated[Any, lambda value: hasattr(value, "deal"), "a Loader or a Mix"]


def iterable(loader: LoaderLike, *, int64: bool | tuple[str, ...] = False, cu_seqlens: bool = False) -> Any:
    """Return an IterableDataset of a loader's batches, as dicts of tensors.

        dataset = seqflow.torch.iterable(sf.Loader("docs/*.parquet", shuffle=True, batch=sf.Rows(64)))
        for batch in torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2): ...

    Whatever the number of workers, the DataLoader gives the loader's sequence of batches: worker w of n makes
    batches w, w + n, … of its rank. Its `batch_size` is None, or 1, its default, with PyTorch's `default_collate` or
    with `seqflow.torch.collate`: larger ones, which would stack batches, are an OpError.

    Call `set_epoch(n)` on the dataset before each pass, as with a DistributedSampler: workers, persistent or not, do
    not know when the others have ended. Without it a second pass is an OpError where epochs differ, by `shuffle` or
    by random ops.

    Accelerate, and so the Trainer of transformers, takes the part of each process from what a dataset gives. Under
    them the dataset gives the batches of all ranks, so that each is seen once. Their `dispatch_batches` cuts all
    tensors to as many rows, and is an OpError.

    With torchdata's StatefulDataLoader a state is exact to the batch; it needs the same number of workers. `int64`
    and `cu_seqlens` are those of `to_tensors`. Threads alone are faster where the loader's nets are native: prefer
    `loader.to("torch")`.
    """
    from seqflow.torch.loader_dataset import LoaderDataset

    return LoaderDataset(loader, {"int64": int64, "cu_seqlens": cu_seqlens})
