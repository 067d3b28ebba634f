"""Options that a loader does not have: what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from seqflow.errors import OpTypeError, nearest

_OTHER_NAMES = {
    "batch_size": "batch=n, or a plan such as TokenBudget(max_tokens) or Packed(capacity)",
    "num_workers": "threads=n; worker processes are not needed",
    "drop_last": "batch=Rows(n, drop_last=True)",
    "seed": "shuffle=Shuffle(seed)",
    "sampler": "rank= and world_size=, and shuffle=",
    "collate_fn": "net=, or pad=",
    "transform": "prepare= for rows, net= for batches",
    "prefetch_factor": "memory=, in bytes",
    "buffer_size": "window=, in bytes",
    "shards": "streams=n",
}
"""Names that other loaders have for what is here."""


def check_options(options: Mapping[str, Any], own: Iterable[str], of_source: Iterable[str]) -> None:
    """OpTypeError for an option that neither a loader nor `sf.open` has, with the nearest one."""
    own, of_source = list(own), list(of_source)
    for name in options:
        if name in of_source:
            continue
        if name in _OTHER_NAMES:
            raise OpTypeError(f"Loader has no option {name!r}\n  write {_OTHER_NAMES[name]}")
        guess = nearest(name, own) or nearest(name, of_source)
        raise OpTypeError(f"Loader has no option {name!r}{guess}; it has {', '.join(own)}")
