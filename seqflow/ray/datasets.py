"""Datasets of Ray Data: the batches of a loader or of a job, made by Ray's tasks."""

import os
from typing import Any

import pyarrow as pa

from seqflow.arguments import checked
from seqflow.errors import OpError, OpTypeError
from seqflow.identity.transforms import name_of
from seqflow.job import Job
from seqflow.job.counts import sum_of
from seqflow.job.opening import open_loader
from seqflow.loader import Loader, Mix, Stats
from seqflow.net import Net
from seqflow.ray.planning import plan_epoch
from seqflow.ray.sending import setup_of_job, setup_of_loader
from seqflow.record import to_arrow
from seqflow.tensor import TensorSpec


@checked()
def dataset(
    source: Loader | Job | str | os.PathLike[str],
    epoch: int = 0,
    *,
    schema: pa.Schema | None = None,
    override_num_blocks: int | None = None,
) -> Any:
    """Return a Dataset of Ray Data with the rows of the batches of an epoch, as `to_arrow` converts them.

        dataset = seqflow.ray.dataset(sf.Loader("docs/*.parquet", batch=sf.Packed(2048)))
        dataset = seqflow.ray.dataset("job.toml")

    The epoch is planned here, from footers (dictionary columns are read for their values); `schema()` and
    `size_bytes()` are known before anything else is read. Each task of Ray makes the batches of consecutive
    windows. Blocks arrive as they are finished or, with
    `DataContext.get_current().execution_options.preserve_order = True`, in the order of the loader. Ray joins
    and splits blocks, so the boundaries of batches are lost.

    `stats(dataset)` counts the bad rows that the policy skips.

    Args:
        source: Loader, Job, or the file of a job; the source, order, nets and batches of a job are used, and
            nothing is written.
        epoch: Number of the epoch.
        schema: Arrow schema of the rows; needed if Python functions make the batches, since their result is
            unknown.
        override_num_blocks: Number of tasks, as in `ray.data.read_datasource`.

    Raises OpError when Ray Data is not installed; when the batches have no common schema, for example if they
    are padded to the longest row; for a loader of several ranks or streams, with `steps_per_epoch`, or with a
    file for bad rows; and for objects that cannot be sent to other processes. A task that finds a changed
    file raises ProviderError.
    """
    loader, job = _opened(source)
    _check(loader)
    schema = _schema_of(loader, schema)
    data = _ray_data()
    from ray import cloudpickle

    from seqflow.ray.datasource import BatchesSource

    plan = plan_epoch(loader, epoch)
    if job is None:
        setup = setup_of_loader(loader, schema, cloudpickle.dumps)
    else:
        setup = setup_of_job(job, loader, schema, cloudpickle.dumps)
    batches = BatchesSource(plan, setup, schema)
    made = data.read_datasource(batches, override_num_blocks=override_num_blocks)
    made._seqflow_counts = batches.counts
    return made


@checked()
def stats(dataset: Any) -> Stats:
    """Return the counts of the last pass over a dataset that `dataset` has returned: rows, bad rows, batches,
    tokens.

    They are those of the tasks that have ended, also if datasets derived from it have been read. `max` of
    `BadRows` bounds the bad rows of all tasks, and `max_share` is not checked. Raises OpTypeError for other
    datasets.

    Args:
        dataset: Dataset that `dataset` has returned.
    """
    counts = getattr(dataset, "_seqflow_counts", None)
    if counts is None:
        raise OpTypeError(
            f"seqflow.ray.stats: dataset is {type(dataset).__name__}, expected one that seqflow.ray.dataset returned"
        )
    import ray

    return sum_of(ray.get(counts.all.remote()))


def _ray_data() -> Any:
    try:
        import ray.data
    except ImportError as error:
        raise OpError(
            f"seqflow.ray.dataset: Ray Data cannot be imported: {error}\n  pip install '.[ray]' in a clone of seqflow"
        ) from None
    return ray.data


def _opened(source: Any) -> tuple[Loader, Job | None]:
    """Return the loader, and its job if there is one; raise OpTypeError for other objects."""
    if isinstance(source, Loader):
        return source, None
    if isinstance(source, str | os.PathLike):
        source = Job.read(source)
    if isinstance(source, Job):
        return open_loader(source), source
    more = "\n  make a dataset of each of its loaders" if isinstance(source, Mix) else ""
    raise OpTypeError(
        f"seqflow.ray.dataset: source is {type(source).__name__}, expected a Loader, a Job, or a job's file{more}"
    )


def _check(loader: Loader) -> None:
    """Raise OpError for a loader whose batches tasks of Ray cannot make from the plan alone."""
    origin, path = loader.source.origin, loader.bad_rows.path
    refused = {
        f"{origin} is a stream of this process, which no other can read\n  write it to files first": (
            loader.source.is_stream
        ),
        f"the loader is rank {loader.rank} of {loader.world_size}, and Ray Data deals rows itself\n"
        "  give it rank=0, world_size=1": loader.world_size > 1,
        f"the loader has {loader.streams} streams, whose batches come in turn\n  give it streams=1": loader.streams
        > 1,
        "steps_per_epoch counts batches, which tasks make by themselves\n"
        "  leave it out, and take as many rows with dataset.limit": loader.steps_per_epoch is not None,
        f"bad rows would go to {str(path)!r}, a file that tasks cannot share\n"
        "  write bad_rows='skip', or run it as a job, which collects them": path is not None,
    }
    for what, is_refused in refused.items():
        if is_refused:
            raise OpError(f"seqflow.ray.dataset: {what}")


def _schema_of(loader: Loader, schema: pa.Schema | None) -> pa.Schema:
    """Return the schema of all batches, before any is made; raise OpError when there is none."""
    if schema is not None:
        if not isinstance(schema, pa.Schema):
            raise OpTypeError(
                f"seqflow.ray.dataset: schema is {type(schema).__name__}, expected a pyarrow.Schema"
            )
        return schema
    for transform in (loader.prepare, loader.net):
        if transform is not None and not isinstance(transform, Net):
            raise OpError(
                f"seqflow.ray.dataset: the result of {name_of(transform)} is unknown\n"
                "  write it as a net, or give schema=, the schema of all batches"
            )
    for name, spec in loader.spec.items():
        _check_fixed(name, spec)
    empty = loader.empty_batch()
    if empty is None:
        raise OpError(
            "seqflow.ray.dataset: the result of a net depends on the rows\n  give schema=, the schema of all batches"
        )
    return to_arrow(empty).schema


def _check_fixed(name: str, spec: TensorSpec) -> None:
    for axis, dimension in enumerate((spec.shape.dimensions or ())[1:], start=1):
        if not dimension.is_static:
            raise OpError(
                f"seqflow.ray.dataset: axis {axis} of {name} is {dimension}, which depends on the data, so its "
                "column has no type that all batches share\n"
                "  return values and lengths, which become lists, or pad to a constant size"
            )
