"""Batches of a mix of several sources, as a job writes them: parts end with batches, not with windows."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from seqflow.identity.differences import Difference
from seqflow.json_schema import matches_schema
from seqflow.loader import Mix, Schedule, Stats
from seqflow.loader.epochs import EpochBatches
from seqflow.loader.run.ledger import BadRowHandler
from seqflow.output import FileSizes
from seqflow.record import Record


@contextmanager
def mixed_batches(mix: EpochBatches, handler: BadRowHandler, stats: Stats) -> Iterator[Iterator[Record]]:
    """Iterate over the batches of a mix from its place on.

    After each batch `handler` and `stats` cover exactly the batches handed out: the windows of the sources in
    which these batches begin.
    """
    handlers = [BadRowHandler(write=handler.write) for _ in mix.pipeline.members]
    with mix.iteration(handlers, stats, counts_on=True) as iteration:
        yield iter(iteration)


class PartSize:
    """Size of the part that is being written; it is full with the batch that reaches `part_bytes`.

    Bytes are those of the tensors of its batches, so that parts depend on the batches alone.
    """

    def __init__(self, sizes: FileSizes, threads: int) -> None:
        self._most_bytes = sizes.part_bytes * threads
        self._most_rows = None if sizes.rows_per_file is None else sizes.rows_per_file * threads
        self._bytes = self._rows = 0

    def add(self, batch: Record) -> None:
        self._bytes += sum(tensor.nbytes for tensor in batch.tensors.values())
        self._rows += batch.num_rows

    def is_full(self) -> bool:
        """Return whether the part ends here; the next one then begins."""
        full = self._bytes >= self._most_bytes or (
            self._most_rows is not None and self._rows >= self._most_rows
        )
        if full:
            self._bytes = self._rows = 0
        return full


def identity_of_mix(mix: Mix) -> dict[str, Any]:
    """Return the settings that decide the batches of a mix: those of all sources, and those that differ between
    them.
    """
    found: dict[str, Any] = {}
    for name, loader in mix.by_name.items():
        for key, value in loader.pipeline.settings().items():
            if found.setdefault(key, value) != value:
                found[f"{key} of {name}"] = value
        found[f"data of {name}"] = loader.pipeline.identity.data
    history = mix.pipeline.history
    weights = history.by_name(history.changes[-1].weights)
    as_json = {name: one.to_json() if isinstance(one, Schedule) else one for name, one in weights.items()}
    return {**found, "mix": {**mix.pipeline.fingerprint(0)["settings"], "weights": as_json}}


def is_of_weights(one: Difference, then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Return whether two identities of jobs differ here by a weight of a mix, or by a source that one of them has."""
    names = [of["mix"]["weights"] for of in (then, now) if matches_schema(of, {"mix": {"weights": Mapping}})]
    name = one.section.partition(" of ")[2]
    return len(names) == 2 and (
        one.path[:2] == ("mix", "weights") or (name in names[0]) != (name in names[1])
    )
