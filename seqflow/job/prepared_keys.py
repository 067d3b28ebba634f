"""Count how often each key of a tensor occurs that a job prepares."""

import pyarrow as pa

from seqflow.errors import JobError, nearest
from seqflow.job.job import Job
from seqflow.job.opening import open_loader
from seqflow.loader import Loader
from seqflow.record import Record
from seqflow.vocabulary.counting import count
from seqflow.vocabulary.keys import as_keys, strings_of


def prepared_loader(job: Job) -> Loader:
    """Return the loader of a job up to `prepare`, whose bad rows go to no file."""
    return open_loader(job.without_quarantine() if job.bad_rows.policy == "quarantine" else job)


def count_prepared(loader: Loader, name: str) -> pa.Table:
    """Return how often each key of the tensor `name` that a job prepares, or of its `values`, occurs.

    Keys are integers, or the strings of bytes. Raise JobError when there is no such tensor.
    """
    return count(_keys_of_record(record, name) for record in loader)


def _keys_of_record(record: Record, name: str) -> pa.Array:
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
