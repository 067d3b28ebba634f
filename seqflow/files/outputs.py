"""Outputs of jobs in stores: the names of their manifests, and which of their objects are complete."""

import json
import re
from collections.abc import Iterable, Sequence

from seqflow.errors import MissingSourceError, ProviderError
from seqflow.files.interface import Entry, Files
from seqflow.files.uris import join
from seqflow.hidden import shown
from seqflow.json_schema import matches_schema

LOG = ".progress"
"""Folder of the log of an output, next to its manifest."""
MANIFEST = re.compile(r"_manifest(?:-\d{8})?\.json")
_IN_LOG = re.compile(rf"(.+/[^./][^/]*|[^/]+://[^/]+)/{re.escape(LOG)}/\d{{8}}\.json")


def last_manifest(names: Iterable[str]) -> str | None:
    """Return the name of the manifest that holds: the one of the highest number; None without any.

    >>> last_manifest(["_manifest.json", "_manifest-00000012.json", "part-00000.parquet"])
    '_manifest-00000012.json'
    """
    return max(filter(MANIFEST.fullmatch, names), key=lambda name: name.replace(".", "!"), default=None)


def of_complete_outputs(entries: Sequence[Entry], files: Files) -> list[Entry]:
    """Return objects without those that a run is adding to the output of a job.

    Raise MissingSourceError when an output is not complete: it has a log, and no manifest.
    """
    left, found = list(entries), [_IN_LOG.fullmatch(entry.path) for entry in entries]
    for root in sorted({one[1] for one in found if one is not None}):
        inside = {
            one.path.removeprefix(f"{root}/"): one for one in entries if one.path.startswith(f"{root}/")
        }
        name = last_manifest(inside)
        if name is None:
            raise MissingSourceError(
                f"{shown(root)!r} holds the beginning of an output that is not complete: a log, and no manifest",
                advice="`seqflow run JOB --resume` completes it",
            )
        try:
            manifest = json.loads(bytes(files.read(join(root, name), 0, inside[name].size)))
        except (ValueError, RecursionError):
            manifest = None
        if not matches_schema(manifest, {"files": [{"name": str}]}):
            raise ProviderError(f"{shown(join(root, name))!r} is damaged: it lists no files of an output")
        listed = {one["name"] for one in manifest["files"]}
        left = [
            one for one in left if one.path.removeprefix(f"{root}/") in listed or one not in inside.values()
        ]
    return left
