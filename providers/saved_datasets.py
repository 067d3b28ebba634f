"""Folders that Hugging Face's `save_to_disk` has written: which files they are of, and in which order."""

import json
import os
from collections.abc import Sequence

from seqflow.errors import MissingSourceError, ProviderError

_STATE = "state.json"


def in_saved_order(paths: Sequence[str], named: Sequence[str]) -> list[str]:
    """The files, those of a saved dataset in its order, without caches beside them; files that were `named` stay."""
    listed = {folder: _listed(folder) for folder in {os.path.dirname(path) for path in paths}}
    own = set(named)
    found: dict[str, None] = {}
    for path in paths:
        names = listed[os.path.dirname(path)]
        if names is None or path in own:
            found[path] = None
        elif os.path.basename(path) in names:
            beside = [os.path.join(os.path.dirname(path), name) for name in names]
            found |= dict.fromkeys(one for one in beside if one in paths)
    return list(found)


def _listed(folder: str) -> list[str] | None:
    """The names of the files of a saved dataset; None where the folder has none."""
    try:
        with open(os.path.join(folder, _STATE), encoding="utf-8") as file:
            state = json.load(file)
            names = [str(one["filename"]) for one in state["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if state.get("_indices_data_files"):
        raise ProviderError(
            f"{folder} is a saved dataset with an indices mapping, which chooses its rows, expected none\n"
            "save it once more with a newer version of datasets"
        )
    for name in names:
        if not os.path.exists(os.path.join(folder, name)):
            raise MissingSourceError(f"{folder} is a saved dataset without its file {name}")
    return names
