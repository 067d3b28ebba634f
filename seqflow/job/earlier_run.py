"""Identity of a job in progress files and manifests, and the output that an earlier run of the same job has left."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from seqflow.curation.rules import identity
from seqflow.errors import JobError
from seqflow.files.uris import absolute, is_uri
from seqflow.identity.differences import Difference, differences, listed
from seqflow.job.counts import COUNTED
from seqflow.job.job import Job
from seqflow.job.mixed import identity_of_mix, is_of_weights
from seqflow.job.modules import module_identity
from seqflow.json_schema import is_count, matches_schema
from seqflow.loader import Loader, Mix
from seqflow.loader.epochs import EpochBatches
from seqflow.loader.order.identity import FORMAT, added_files
from seqflow.output.output_file import FORM
from seqflow.output.output_names import damaged_progress
from seqflow.output.target import Target

_NO_CONTENT = ("path", "min_rows", "storage_options", "single_writer")
"""Keys of [output] that do not decide the content of files."""
_ACCESS = ("paths", "memory_map", "use_threads", "where")
"""Keys of [source] that say how files are found and read, or that the loader's settings contain too."""


def _are_reasons(found: Any) -> bool:
    return isinstance(found, Mapping) and all(map(is_count, found.values()))


def _is_count_or_none(found: Any) -> bool:
    return found is None or is_count(found)


_LATER: Mapping[str, Any] = {
    "shared": is_count,
    "filtered": is_count,
    "filtered_by_keep": is_count,
    "filtered_by_condition": _are_reasons,
    "reasons": _are_reasons,
    "bad_files": [(str, _is_count_or_none, str, _is_count_or_none)],
}
"""Counts that runs of older versions have not saved."""
_COUNTS = {**{name: is_count for name in COUNTED if name not in _LATER}, "rows_left": int}


def _are_counts(counts: Any) -> bool:
    """Return whether these are counts of a run."""
    return matches_schema(counts, _COUNTS) and all(
        matches_schema(counts[name], schema) for name, schema in _LATER.items() if name in counts
    )


_COMPLETE = {"job": Mapping, "counts": _are_counts}
_CHANGES = [{"from_row": is_count, "differences": [str]}]
_UNFINISHED = {
    **_COMPLETE,
    "changes": _CHANGES,
    "bad_rows": lambda pieces: pieces is None or matches_schema(pieces, [FORM]),
}
_OPEN = {"loader": Mapping, "part": is_count}
"""Entries that a job adds to the manifest or progress file of its output: complete, unfinished, and (in addition,
until the output is sealed) the loader's state and the next part."""


def describe(job: Job, loader: EpochBatches) -> dict[str, Any]:
    """Return the identity of a job as JSON: everything that decides its output."""
    output, bad = absolute(os.path.expanduser(job.output.path or "")), job.bad_rows.path
    # a run whose output lies in a store may go on in another machine
    above = job.folder if is_uri(output) and not is_uri(str(bad)) else os.path.dirname(output)
    settings = {
        "format": FORMAT,
        "imports": module_identity(job.modules, job.folder),
        **_of_sources(job, loader),
        **({} if not job.totals else {"totals": job.totals, "steps_of": job.steps_of}),
        **{rule.name: identity(rule) for rule in job.rules},
        "bad_rows.path": None if bad is None else os.path.relpath(absolute(os.path.expanduser(bad)), above),
        **{f"output.{key}": value for key, value in asdict(job.output).items() if key not in _NO_CONTENT},
    }
    for part in ("prepare", "net") if job.source.served is None else ():
        if settings[part] is not None:
            names = settings[part]["names"]
            files = {name: os.path.basename(job.constants[name]) for name in names["constants"]}
            settings[part] = {**settings[part], "names": {**names, "constants": files}}
    described: dict[str, Any] = json.loads(json.dumps(settings, default=repr))
    return described


def _of_sources(job: Job, loader: EpochBatches) -> dict[str, Any]:
    """Return the settings and data that decide the batches, of the source or of each source of a mix."""
    if isinstance(loader, Loader):
        section = job.source.settings().items()
        settings = {f"source.{key}": value for key, value in section if key not in _ACCESS}
        return {**settings, **loader.pipeline.settings(), "data": loader.pipeline.identity.data}
    if job.mix is None:  # all but the ranks is in the job of the servers
        ranks = loader.assignment.ranks
        found = loader.pipeline.fingerprint(0)
        return {**asdict(ranks), **found, **found["settings"], "settings": None}
    assert isinstance(loader, Mix)
    sections = {one.name: one.source.settings().items() for one in job.mix.sources}
    return {
        f"source.{key} of {name}": value
        for name, section in sections.items()
        for key, value in section
        if key not in _ACCESS
    } | identity_of_mix(loader)


def job_differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[Difference]:
    """Return the differences of two identities of jobs.

    A setting that a key of [source] and the loader both have is reported once, as the key.
    """
    found = list(differences(then, now))
    names = {one.section for one in found}
    return [one for one in found if f"source.{one.section}" not in names]


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """Record that an earlier run has left at the output."""

    content: Mapping[str, Any]
    is_complete: bool
    changes: tuple[str, ...] = ()
    """Accepted differences between that run and this one."""


def earlier_run(
    target: Target, described: Mapping[str, Any], *, resume: bool, overwrite: bool, accept_changes: bool
) -> EarlierRun | None:
    """Return the record of an earlier run of this job; None if the run begins again.

    Raise JobError when the output is not complete and `resume` is not given, or when the output comes from
    another job or other data.
    """
    if overwrite:
        return None
    if target.has_progress:
        if not resume:
            raise JobError(
                f"output: {target.shown!r} holds the beginning of a run that has not ended\n"
                "  --resume goes on with it, --overwrite begins again"
            )
        return _unfinished(target, described, accept_changes)
    return _complete(target, described)


def _unfinished(target: Target, described: Mapping[str, Any], accept_changes: bool) -> EarlierRun:
    """Return the progress file of a run of this job; raise JobError when it is damaged or belongs to another job."""
    name, content = target.shown, target.read_progress()
    schema = _UNFINISHED if content is None or content["sealed"] else {**_UNFINISHED, **_OPEN}
    if content is None or not matches_schema(content, schema):
        raise damaged_progress(target.progress)
    if not accept_changes:
        _check_same(name, content["job"], described, can_go_on=not _is_fixed(content))
        return EarlierRun(content, is_complete=False)
    changes = _accepted(name, content, described)
    return EarlierRun({**content, "changes": _noted(target, content, changes)}, False, changes)


def _complete(target: Target, described: Mapping[str, Any]) -> EarlierRun | None:
    """Return the manifest of a complete output of this job; None if there is no output. Raise JobError for
    another output.
    """
    if not target.has_output:
        return None
    name, content = target.shown, target.read_manifest()
    if content is None or not matches_schema(content, _COMPLETE):
        raise JobError(
            f"output: {name!r} is there already, and nothing says that this job has written it\n"
            "  --overwrite replaces it; or choose another output"
        )
    _check_same(name, content["job"], described)
    return EarlierRun(content, is_complete=True)


def _is_fixed(content: Mapping[str, Any]) -> bool:
    """Return whether an unfinished output can only be completed without changes, because it is sealed or made
    of sorted runs.
    """
    return bool(content["sealed"] or content["are_runs"])


def _accepted(name: str, content: Mapping[str, Any], described: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the accepted differences from an unfinished run; raise JobError when any difference cannot be
    accepted.
    """
    found = job_differences(content["job"], described)
    earlier = content["job"]
    refused = [one.text for one in found if not (one.may_change or is_of_weights(one, earlier, described))]
    if refused:
        raise JobError(
            f"output: {name!r} is of another job or of other data: {listed(refused)}\n"
            "  only changes of nets, constants, tokenizers, imports, conditions and weights of a mix can be "
            "accepted; --overwrite begins again"
        )
    if found and _is_fixed(content):
        what = (
            "is sorted or partitioned"
            if content["are_runs"]
            else "is finished, except for the names of its files"
        )
        raise JobError(
            f"output: {name!r} {what}, and changes cannot be accepted: {listed([one.text for one in found])}\n"
            "  --overwrite begins again"
        )
    return tuple(one.text for one in found)


def _noted(target: Target, content: Mapping[str, Any], changes: tuple[str, ...]) -> list[dict[str, Any]]:
    """Return the changes to record in the manifest, each with the first part and row that were made with it."""
    earlier: list[dict[str, Any]] = content["changes"]
    if not changes:
        return earlier
    files = [*content["former"], *content["files"]]
    part = {} if target.names.is_file else {"from_part": target.names.file(len(files)).name}
    rows = sum(file["rows"] for file in files)
    return [*earlier, {**part, "from_row": rows, "differences": list(changes)}]


def _check_same(
    name: str, earlier: Mapping[str, Any], described: Mapping[str, Any], *, can_go_on: bool = False
) -> None:
    found = job_differences(earlier, described)
    if not found:
        return
    message = (
        f"output: {name!r} is of another job or of other data: {listed([one.text for one in found])}\n"
        "  --overwrite replaces it; or choose another output"
    )
    grown = all(one.section == "data" for one in found) and matches_schema(earlier, {"data": Mapping})
    if grown and added_files(earlier["data"], described["data"])[0]:
        message += "\n  --append keeps it, and adds the rows of new files"
    if can_go_on and all(one.may_change or is_of_weights(one, earlier, described) for one in found):
        message += "\n  --resume --accept-changes uses the changes after the finished parts"
    raise JobError(message)
