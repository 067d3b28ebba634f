"""Keys for a vocabulary from a tensor that the `prepare` net of a job makes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from seqflow.errors import JobError, nearest
from seqflow.job.job import Job
from seqflow.job.opening import open_loader
from seqflow.loader import Loader
from seqflow.output.overwriting import overwritten
from seqflow.vocabulary.keys import as_keys, strings_of

if TYPE_CHECKING:
    from seqflow.record import Record


def prepared_keys(job: Job, name: str, output: Path) -> Iterator[pa.Array]:
    """Return the keys in the tensor `name` or its `values`, batch by batch: integers, or the strings of its bytes.

    Bad rows that the job would put in quarantine are skipped. Raise JobError when there is no such tensor, or
    where `output`, to which the keys will be written, is a file that the job reads.
    """
    loader = prepared_loader(job)
    check_output(loader, output)
    return (keys_of_record(record, name) for record in loader)


def prepared_loader(job: Job) -> Loader:
    """Return the loader of a job up to `prepare`, whose bad rows go to no file."""
    return open_loader(job.without_quarantine() if job.bad_rows.policy == "quarantine" else job)


def check_output(loader: Loader, output: Path) -> None:
    """Raise JobError when the vocabulary would be written over a file that is read."""
    if (found := overwritten(output, loader.source.files)) is not None:
        raise JobError(f"output: {str(output)!r} is {found!r}, a file that is read\n  choose a new name")


def keys_of_record(record: Record, name: str) -> pa.Array:
    tensor = name
    while tensor not in record and any(other.startswith(f"{tensor}.values") for other in record):
        tensor += ".values"
    if tensor not in record:
        guess = nearest(name, [*record, *(other.partition(".")[0] for other in record)])
        raise JobError(f"the job prepares no tensor {name!r}{guess}; it prepares {', '.join(record)}")
    lengths = record.parents[tensor]
    if lengths is not None and record[tensor].dtype == "uint8":
        return strings_of(record[tensor], record[lengths])
    return as_keys(record[tensor])
