"""Trace rows of an output: open the job of its manifest again and count its batches."""

import json
import os
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from seqflow import executor
from seqflow.errors import JobError, asked_by
from seqflow.files.outputs import last_manifest
from seqflow.files.store import StoreFiles
from seqflow.files.uris import is_uri
from seqflow.files.writing import StoreWriter
from seqflow.identity.differences import listed
from seqflow.job.appending import loader_of
from seqflow.job.earlier_run import describe, job_differences
from seqflow.job.job import Job
from seqflow.job.opening import OF_SERVERS, loaders_of, open_batches
from seqflow.job.sections import NetSection
from seqflow.json_schema import is_count, matches_schema
from seqflow.loader.epochs import EpochBatches
from seqflow.loader.run.making import Trace
from seqflow.net import Net
from seqflow.output.output_file import OutputFile
from seqflow.output.output_names import MANIFEST
from seqflow.output.target import Target

_FILES = {
    "files": [{"name": str, "rows": is_count, "bytes": is_count, "row_groups": [is_count]}],
    "job": Mapping,
}
_MADE_BY = {"file": str, "set": Mapping}


def made_by_of(job: Job, target: Target) -> dict[str, Any] | None:
    """Return the job file, relative to the folder of the output unless it is in a store, and the settings that were
    overridden.
    """
    if job.file is None:
        return None
    # the place of the output, and the processes that make it, change no batch
    kept = {
        name: value
        for name, value in job.overrides.items()
        if name != "output.path" and not name.startswith(("engine.", "serve."))
    }
    file = (
        os.path.abspath(job.file) if is_uri(target.shown) else os.path.relpath(job.file, target.names.folder)
    )
    found: dict[str, Any] = {"file": file, "set": kept}
    return dict(json.loads(json.dumps(found, default=str)))


@asked_by("job")
def open_traceable(job: Job) -> EpochBatches:
    """Return the batches of a job to trace them; raise JobError for a balance, whose steps depend on where
    parts end, and for batches of servers.
    """
    if job.source.served is not None:
        raise JobError(f"source.served: the rows of these batches are known to their servers\n  {OF_SERVERS}")
    if job.batch.balance is not None:
        raise JobError(
            "trace: the job has a balance, which deals rows again in each part, expected one without\n"
            "  trace a Loader of the same settings: loader.trace(number)"
        )
    return open_batches(job)


def trace_row(
    path: Path | str, row: int, job: Job | None = None, storage: Mapping[str, Any] | None = None
) -> list[Trace]:
    """Return the origin of a row of an output file: file, block and row, or those of the pieces of a packed row.

    A URI names an object of a store, whose options are `storage`, or those of the given job. The job is the one in
    the manifest next to the file, or the given one. Raise JobError when no manifest names
    the file, when the file does not have the row, when the rows of the output are not in the order of the
    batches, or when the job or its data have changed.
    """
    options = storage or (job.output.storage_options if job is not None else None)
    target, manifest, file = _object_of(str(path), options) if is_uri(str(path)) else _entry_of(Path(path))
    if not 0 <= row < file.num_rows:
        raise JobError(f"trace: row is {row}, expected 0 to {file.num_rows - 1}, the rows of {str(path)!r}")
    job = job or _job_of(target, manifest)
    job = replace(job, output=replace(job.output, path=str(target)))
    is_one_file = str(target) == str(path)  # made of all batches
    if (
        (file.batches is None and not is_one_file)
        or job.output.threads > 1
        or job.output.sort_by
        or job.output.partition_by
    ):
        raise JobError(
            f"trace: the rows of {str(path)!r} do not follow each other as the batches do: its job sorts, "
            "partitions, or writes with several threads\n  trace a batch of the job: seqflow trace JOB --batch N"
        )
    loader = open_traceable(job)
    found = [one.text for one in job_differences(manifest["job"], describe(job, loader))]
    if found or manifest.get("changes"):
        text = listed(found) if found else "its nets, in the middle of the run"
        raise JobError(f"trace: {str(path)!r} was made of another job or of other data: {text}")
    append = 0 if file.batches is None else file.batches.start.get("append", 0)
    if (counted := job.without_quarantine()) != job:  # what is bad is in the files of the run
        job, loader = counted, open_batches(counted)
    loader = loader_of(job, loader, manifest, append)
    number, inside = _batch_of(loader, file, row)
    return _traces(
        job, loader, number, inside, lambda job: loader_of(job, open_batches(job), manifest, append)
    )


def _entry_of(path: Path) -> tuple[Path, dict[str, Any], OutputFile]:
    """Return the output that a file belongs to, its manifest, and the manifest's entry for the file."""
    own = path.with_name(f".{path.name}.manifest.json")
    # in any folder above: files of a partitioned output are in folders of their own
    for manifest in (own, *(folder / MANIFEST for folder in path.parents)):
        if not manifest.is_file():
            continue
        try:
            content = json.loads(manifest.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        if not matches_schema(content, _FILES):
            continue
        for entry in content["files"]:
            if (manifest.parent / entry["name"]).absolute() == path.absolute():
                file = OutputFile.from_json(manifest.parent, entry)
                if not file.is_at(path, whole=False):
                    raise JobError(
                        f"trace: {str(path)!r} is not as its job has written it: it was changed, or is gone"
                    )
                return path if manifest == own else manifest.parent, content, file
    raise JobError(f"trace: {str(path)!r} is not a file of an output: no manifest next to it names it")


def _object_of(uri: str, options: Mapping[str, Any] | None) -> tuple[str, dict[str, Any], OutputFile]:
    """Return the output in a store that has an object, its manifest, and the manifest's entry for the object."""
    files = StoreFiles(options)
    above, _, name = uri.rpartition("/")
    roots = [(f"{above}/.{name}", above), (above, above)]
    while "=" in above.rpartition("/")[2]:  # a partition
        above = above.rpartition("/")[0]
        roots.append((above, above))
    for root, folder in roots:
        inside = {entry.path.removeprefix(f"{root}/"): entry for entry in files.list(root)}
        if (found := last_manifest(inside)) is None:
            continue
        try:
            content = json.loads(bytes(files.read(inside[found].path, 0, inside[found].size)))
        except (ValueError, RecursionError):
            continue
        listed = content["files"] if matches_schema(content, _FILES) else ()
        entry = next((one for one in listed if f"{folder}/{one['name']}" == uri), None)
        if entry is not None:
            file, there = OutputFile.from_json(Path(), entry), StoreWriter(files).find(uri)
            # equal bytes that were uploaded again have another etag in some stores
            if there is None or not (there.version == file.version or there.sha256 == file.checksums.whole):
                raise JobError(f"trace: {uri!r} is not as its job has written it: it was changed, or is gone")
            return uri if root != folder else root, content, file
    raise JobError(f"trace: {uri!r} is not a file of an output: no manifest next to it names it")


def _job_of(target: Path | str, manifest: Mapping[str, Any]) -> Job:
    """Return the job that the manifest of an output names."""
    made_by: Any = manifest.get("made_by")
    if not matches_schema(made_by, _MADE_BY):
        raise JobError(f"trace: the manifest of {str(target)!r} names no job file\n  give it with --job")
    folder = Path(target) if Path(target).is_dir() else Path(target).parent
    # the path of the job of an output in a store is absolute
    job_file = Path(os.path.normpath(folder.absolute() / made_by["file"]))
    if not job_file.is_file():
        raise JobError(f"trace: the job file {str(job_file)!r} is not there any more\n  give it with --job")
    return Job.read(job_file, made_by["set"])


@asked_by("job")
def _batch_of(loader: EpochBatches, file: OutputFile, row: int) -> tuple[int, int]:
    """Return the number of the batch that a row of a file belongs to, and its row in the batch."""
    if file.batches is not None:
        loader.load_state_dict({**loader.state_dict(), **file.batches.start})
    with closing(iter(loader)) as batches:
        for batch in batches:
            if row < batch.num_rows and batch.number is not None:
                return batch.number, row
            row -= batch.num_rows
    raise JobError(
        f"trace: the batches of {str(file.path)!r} have fewer rows now\n  the job or its data have changed"
    )


@asked_by("job")
def _traces(
    job: Job, loader: EpochBatches, number: int, row: int, opened: Callable[[Job], EpochBatches]
) -> list[Trace]:
    """Return the origin of a row of a batch that was written; `opened` opens the same files for another job."""
    if job.net.net is not None or job.net.file is not None:
        first, *_ = loaders_of(loader).values()
        net = first.net
        before = opened(replace(job, net=NetSection())).batch_at(number)
        numbers = executor.row_numbers(net, before) if isinstance(net, Net) else None
        if numbers is None or row >= len(numbers):
            raise JobError(
                f"trace: [net] makes rows of batch {number} of which it is not known where they come from\n"
                f"  seqflow trace JOB --batch {number} has all rows of the batch"
            )
        row = int(numbers[row])
    return loader.trace(number, row=row)
