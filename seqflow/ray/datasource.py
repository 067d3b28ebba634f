"""BatchesSource: the planned batches of an epoch as a source of Ray Data. Imports Ray Data."""

import pickle
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa
import ray
from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from seqflow.job.counts import sum_of
from seqflow.job.part_tasks import PartTask
from seqflow.loader import Stats
from seqflow.loader.parts import origins_of
from seqflow.ray.planning import EpochTasks
from seqflow.ray.sending import Report
from seqflow.workers import Setup
from seqflow.workers.worker import prepared


class BatchesSource(Datasource):  # type: ignore[misc]
    """The batches of an epoch; each read task makes the batches of some consecutive windows."""

    def __init__(self, plan: EpochTasks, setup: Setup, schema: pa.Schema) -> None:
        super().__init__()
        self._plan, self._schema = plan, schema
        self._run = setup.name
        self._setup = ray.put(pickle.dumps(setup))
        self.counts = ray.remote(num_cpus=0)(Counts).remote()

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
        tasks = list(self._plan.tasks(parallelism, in_order=context.execution_options.preserve_order))
        return [self._read_task(task, len(tasks), per_task_row_limit) for task in tasks]

    def _read_task(self, task: PartTask, num_tasks: int, limit: int | None) -> Any:
        metadata = BlockMetadata(
            num_rows=None,
            size_bytes=sum(window.nbytes for window in task.part.windows),
            input_files=origins_of(task.part.windows),
            exec_stats=None,
        )
        report = partial(_report, self.counts, num_tasks, task.part.number)
        function = partial(_read, self._run, self._setup, pickle.dumps(task), report)
        return ReadTask(function, metadata, schema=self._schema, per_task_row_limit=limit)


class Counts:
    """Counts of the tasks of a dataset that have ended, in a process of its own; those of the last pass hold."""

    def __init__(self) -> None:
        self._num_tasks, self._of_task = 0, dict[int, Mapping[str, Any]]()

    def add(self, num_tasks: int, task: int, counts: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Add the counts of one of so many tasks, and return those of all that have ended."""
        if num_tasks != self._num_tasks:  # another division of the epoch, made for another pass
            self._num_tasks, self._of_task = num_tasks, {}
        self._of_task[task] = counts
        return self.all()

    def all(self) -> list[Mapping[str, Any]]:
        return list(self._of_task.values())


def _report(actor: Any, num_tasks: int, task: int, counts: Mapping[str, Any]) -> Stats:
    return sum_of(ray.get(actor.add.remote(num_tasks, task, counts)))


def _read(run: str, setup: Any, task: bytes, report: Report) -> Iterator[pa.Table]:
    """Yield the batches of a task, in a worker."""
    if run not in _setups:
        _setups.clear()
        _setups[run] = pickle.loads(ray.get(setup))
    tables: Iterator[pa.Table] = prepared(_setups[run])(pickle.loads(task), report)
    yield from tables


def _no_rows(schema: pa.Schema) -> list[pa.Table]:
    return [schema.empty_table()]


_setups: dict[str, Setup] = {}
"""Setup of the dataset whose windows this worker has read last."""
