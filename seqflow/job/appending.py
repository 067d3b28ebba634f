"""Append to a complete output: the files of the source that are new, and the runs that have written the others."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from seqflow.errors import JobError
from seqflow.identity.differences import listed
from seqflow.job.counts import counts_in
from seqflow.job.job import Job
from seqflow.job.opening import open_loader, open_source
from seqflow.json_schema import matches_schema
from seqflow.loader import Loader, Mix
from seqflow.loader.epochs import EpochBatches
from seqflow.loader.order.identity import added_files, changed_columns, lost_file
from seqflow.net import Net
from seqflow.output import OutputWriter
from seqflow.output.target import Target
from seqflow.providers.bad_files import BadFile
from seqflow.providers.dictionaries import has_dictionaries

_APPENDED = [{"files": [str], "counts": Mapping}]


@dataclass(frozen=True, slots=True)
class NewFiles:
    """Files of the source that an output does not have yet, by their paths in the identity of the data."""

    paths: tuple[str, ...]
    folder: str
    """Folder in which the older files are now: the folder of all files changes when one is added above it."""
    facts: Mapping[str, Any]
    """Entries of the record about the job, and about the data without these files."""


def check_appends(job: Job, loader: EpochBatches, output: OutputWriter) -> None:
    """Raise JobError when the output of all files is not made of the outputs of some of them each."""
    for found, advice in _reasons(job, loader, output.target):
        raise JobError(f"append: {found}\n  {advice}, or write all again with --overwrite")


def _reasons(job: Job, loader: EpochBatches, target: Target | None) -> Iterator[tuple[str, str]]:
    """Yield each reason why the job cannot append, and what to do instead."""
    if isinstance(loader, Mix):
        yield "in [mix] all batches before decide which source is next", "give each source a job of its own"
        return
    if not isinstance(loader, Loader):
        yield "servers have the files of these batches", "append with the job of the servers"
        return
    if target is None:
        yield 'kind is "none", so there is no output to add to', "give [output] a path"
    elif target.names.is_file:
        yield f"the output {target.shown!r} is one file", 'write a folder of parts: path = "out/"'
    if job.output.sort_by:
        yield "sort_by sorts the rows of all files, new ones as well", "leave it out and sort when you read"
    if job.skip:
        yield "skip has numbers of batches, and those of new files count from 0", "leave it out"
    source = loader.source
    if not source.files or source.of_files(()).source is source.source:
        text = f"{source.origin} is not read file by file, so it is not known which rows are new"
        yield text, "give paths of files, which may be folders and globs"
    kinds = dict(zip(source.schema.names, source.schema.types, strict=True))
    for net in filter(None, (loader.prepare, loader.net)):
        inputs = net.inputs if isinstance(net, Net) else job.source.columns or kinds
        for name in inputs:
            if name in kinds and has_dictionaries(kinds[name]):
                text = f"a net reads the codes of the dictionary {name!r}, whose values come from all files"
                yield text, "write the column as text"


def new_files(target: Target, job: Job, described: Mapping[str, Any], loader: Loader) -> NewFiles | None:
    """Return the files that were added since a run has written or begun an output, none if all of them are damaged;
    None if nothing or more than the files differs. Raise JobError when an older file is missing or has changed, or
    when new files change the columns.
    """
    record = target.read_progress() if target.has_progress else target.read_manifest()
    if record is None or not matches_schema(record, {"job": {"data": Mapping}}):
        return None
    data, listed = record["job"]["data"], {"input": record["input"]} if "input" in record else {}
    then = {**data, "files": listed.get("input", data.get("files"))}
    now = {**described["data"], "files": loader.pipeline.identity.files}
    for of_files in (then, now):
        of_files.pop("digest", None)
    paths, folder = added_files(then, now)
    if not paths and (lost := lost_file(then, now)) is not None:
        raise JobError(
            f"output: {target.shown!r} cannot be appended to: {lost}\n"
            "  --append adds the rows of new files alone: restore this one, or --overwrite makes all again"
        )
    if not paths:
        _check_columns(target, job, loader, then, now)
    # files that cannot be read have no rows to add, and those that are gone had none
    differ = {name for name in {*then, *now} if then.get(name) != now.get(name)}
    facts = {"job": {**described, "data": data}, **listed}
    return NewFiles(tuple(paths), folder, facts) if paths or differ == {"damaged files"} else None


def _check_columns(
    target: Target, job: Job, loader: Loader, then: Mapping[str, Any], now: Mapping[str, Any]
) -> None:
    """Raise JobError when the data have other columns because of new files."""
    added, _ = added_files({**then, "columns": now["columns"]}, now)
    changed = changed_columns(then, now)
    if not added or not changed:
        return
    found = []
    for name, path in files_of_paths(loader, added).items():
        schema = open_source(replace(job.source, paths=name, columns=None), job).schema
        kinds = {one.name: str(one.type) for one in schema}
        found += [
            f"{path} has {one.path[-1]!r} as {kinds[one.path[-1]]}"
            for one in changed
            if kinds.get(one.path[-1], one.before) != one.before
        ]
    # columns of folders, and those that all files together give another type, are of no single file
    why = f": {listed(found)}" if found else f", with {listed(added)}"
    raise JobError(
        f"output: {target.shown!r} cannot be appended to: {listed([one.text for one in changed])}{why}\n"
        '  parts have the same columns: [source] schema = {NAME = "TYPE"} declares the types that the output has, '
        "columns leaves out others; or --overwrite makes all again"
    )


def appended_in(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the appends that a record lists: the files of each, and the counts before it.

    Raise JobError when they are damaged.
    """
    found = record.get("appended", [])
    if not matches_schema(found, _APPENDED):
        raise JobError("output: the list of appends in its record is damaged\n  --overwrite begins again")
    return list(found)


def begun_append(record: Mapping[str, Any], new: NewFiles, loader: EpochBatches) -> dict[str, Any]:
    """Return the record of a run that begins to add new files to the complete output of a manifest.

    A damaged file that was mended is a new file; it is not counted as damaged any more.
    """
    earlier = [{**one, "files": [new.folder + path for path in one["files"]]} for one in appended_in(record)]
    this = {"files": list(new.paths), "counts": record["counts"]}
    files = {
        "former": record["files"],
        "files": [],
        "appended": [*earlier, this],
        "bad_rows": [],
        "stale": [],
    }
    mended = files_of_paths(loader, new.paths)
    left = [one for one in counts_in(record)["bad_files"] if one.path not in mended]
    counts = {**record["counts"], "bad_files": left}
    more = {"part": 0, "loader": None, "are_runs": False, "sealed": False}
    return {**record, **files, **more, "counts": counts}


def loader_of(job: Job, loader: EpochBatches, record: Mapping[str, Any], number: int) -> EpochBatches:
    """Return the loader of the files that one run has written: the first run, number 0, or an append.

    `loader` has all files of the record.
    """
    appended = appended_in(record)
    if not appended:
        return loader
    if number > len(appended):
        raise JobError(
            f"output: a record of it names append {number} of {len(appended)}: it is damaged\n"
            "  --overwrite begins again"
        )
    if number:
        of = appended[number - 1]
        return loader_of_files(job, loader, of["files"], known=counts_in(of)["bad_files"])
    return loader_of_files(job, loader, [path for one in appended for path in one["files"]], excluded=True)


def loader_of_files(
    job: Job,
    loader: EpochBatches,
    paths: Collection[str],
    *,
    excluded: bool = False,
    known: Collection[BadFile] = (),
) -> Loader:
    """Return the loader of some files, or of all others, by their paths in the identity of the data.

    Damaged files that are `known` to earlier runs are not those of this one.
    """
    assert isinstance(loader, Loader)
    some, source = files_of_paths(loader, paths), loader.source
    # in the order of the source: of_files keeps the order that it is given
    chosen = [name for name in source.files if (name in some) != excluded]
    earlier = {one.path for one in known}
    damaged = tuple(one for one in source.damaged if one.path not in earlier)
    return open_loader(job, replace(source.of_files(chosen), damaged=damaged))


def files_of_paths(loader: EpochBatches, paths: Collection[str]) -> dict[str, str]:
    """Return files of a source, each with its path in the identity of the data, which is one of `paths`."""
    assert isinstance(loader, Loader)
    files = zip(loader.source.files, loader.pipeline.identity.files, strict=True)
    return {name: path for name, (path, *_) in files if path in paths}
