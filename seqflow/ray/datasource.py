"""BatchesSource: the planned batches of an epoch as a source of Ray Data. Imports Ray Data."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import ray
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from seqflow.engine import Setup
from seqflow.engine.worker import prepared
from seqflow.job.part_tasks import PartTask
from seqflow.loader.parts import origins_of
from seqflow.ray.planning import EpochTasks


class BatchesSource(Datasource):  # type: ignore[misc]
    """The batches of an epoch; each read task makes the batches of some consecutive windows."""

    def __init__(self, plan: EpochTasks, setup: Setup, schema: pa.Schema) -> None:
        super().__init__()
        self._plan, self._schema = plan, schema
        self._run = setup.name
        self._setup = ray.put(pickle.dumps(setup))

    def get_name(self) -> str:
        return "Seqflow"

    def estimate_inmemory_data_size(self) -> int | None:
        """Return the bytes of the windows in memory; None if the source cannot tell."""
        return self._plan.nbytes or None

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[Any]:
        """Return at most `parallelism` tasks."""
        if not self._plan.parts:
            nothing = BlockMetadata(num_rows=0, size_bytes=0, input_files=None, exec_stats=None)
            return [ReadTask(partial(_no_rows, self._schema), nothing, schema=self._schema)]
        context = data_context or ray.data.DataContext.get_current()
        tasks = self._plan.tasks(parallelism, in_order=context.execution_options.preserve_order)
        return [self._read_task(task, per_task_row_limit) for task in tasks]

    def _read_task(self, task: PartTask, limit: int | None) -> Any:
        metadata = BlockMetadata(
            num_rows=None,
            size_bytes=sum(window.nbytes for window in task.part.windows),
            input_files=origins_of(task.part.windows),
            exec_stats=None,
        )
        function = partial(_read, self._run, self._setup, pickle.dumps(task))
        return ReadTask(function, metadata, schema=self._schema, per_task_row_limit=limit)


def _read(run: str, setup: Any, task: bytes) -> Iterator[pa.Table]:
    """Yield the batches of a task, in a worker."""
    if run not in _setups:
        _setups.clear()
        _setups[run] = pickle.loads(ray.get(setup))
    tables: Iterator[pa.Table] = prepared(_setups[run])(pickle.loads(task))
    yield from tables


def _no_rows(schema: pa.Schema) -> list[pa.Table]:
    return [schema.empty_table()]


_setups: dict[str, Setup] = {}
"""Setup of the dataset whose windows this worker has read last."""
