"""Datasets for PyTorch's DataLoader: the batches of a loader, made by any number of worker processes."""

from typing import Annotated, Any

LoaderLike = Annotated[Any, lambda value: hasattr(value, "assignment"), "a Loader or a Mix"]


def iterable(loader: LoaderLike, *, int64: bool | tuple[str, ...] = False, cu_seqlens: bool = False) -> Any:
    """Return an IterableDataset of a loader's batches, as dicts of tensors.

        dataset = seqflow.torch.iterable(sf.Loader("docs/*.parquet", shuffle=True, batch=sf.Rows(64)))
        for batch in torch.utils.data.DataLoader(dataset, batch_size=None, num_workers=2): ...

    With any number of workers, the DataLoader gives the loader's sequence of batches: worker w of n makes
    batches w, w + n, … of its rank. Its `batch_size` is None, or 1 (the default) with PyTorch's
    `default_collate` or with `seqflow.torch.collate`. A larger `batch_size`, which would stack batches, is an
    OpError.

    Call `set_epoch(n)` on the dataset before each pass, as with a DistributedSampler: a worker, persistent or
    not, does not know when the others have ended. Without it a second pass is an OpError if epochs differ,
    because of `shuffle` or random ops.

    Accelerate, which the Trainer of transformers uses, takes each process's part of the batches of a dataset.
    For it the dataset gives the batches of all ranks, so that each batch is seen once. Its `dispatch_batches`
    cuts all tensors to the same number of rows, and is an OpError.

    With torchdata's StatefulDataLoader a state is exact to the batch; it needs the same number of workers. With
    workers of a plain DataLoader, `state_dict()` of the dataset and of the loader is an OpError, since this
    process does not know which batches were used. A state that is loaded reaches the workers of the next pass;
    persistent ones, which have begun, refuse it. If the loader's nets are native, threads alone are faster:
    prefer `loader.to("torch")`.

    Args:
        loader: Loader or Mix.
        int64: Whether integers become int64, as in `to_tensors`; or names of tensors.
        cu_seqlens: Whether packed batches have entries for variable-length attention, as in `to_tensors`.
    """
    from seqflow.torch.loader_dataset import LoaderDataset

    return LoaderDataset(loader, {"int64": int64, "cu_seqlens": cu_seqlens})


def data_loader(
    loader: LoaderLike,
    num_workers: int = 0,
    *,
    int64: bool | tuple[str, ...] = False,
    cu_seqlens: bool = False,
    **options: Any,
) -> Any:
    """Return a DataLoader of `iterable(loader)`, which gives the loader's batches as dicts of tensors.

        for batch in seqflow.torch.data_loader(loader, num_workers=2): ...

    If files of the source are in a store, or servers make the batches, its workers are spawned, since connections
    do not work in a forked process: the main program needs `if __name__ == "__main__":`, and what the loader uses
    must be picklable. With workers, `loader.state_dict()` is an OpError: to resume, pass `iterable(loader)` to
    torchdata's StatefulDataLoader.

    Args:
        loader: Loader or Mix.
        num_workers: Number of worker processes; 0 makes batches in this one.
        int64: Whether integers become int64, as in `to_tensors`; or names of tensors.
        cu_seqlens: Whether packed batches have entries for variable-length attention, as in `to_tensors`.
        options: Other parameters of `torch.utils.data.DataLoader`, such as `multiprocessing_context`.
    """
    from torch.utils.data import DataLoader

    if num_workers and not loader.can_fork:
        options = {"multiprocessing_context": "spawn", **options}
    dataset = iterable(loader, int64=int64, cu_seqlens=cu_seqlens)
    return DataLoader(dataset, batch_size=None, num_workers=num_workers, **options)
