"""History of a mix: the weights of its sources, and from which batch of which epoch on they hold."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from seqflow.arguments import is_number
from seqflow.errors import OpError, OpResultError
from seqflow.identity.content import digest_of_text
from seqflow.identity.transforms import SHOWN, name_of, transform_identity
from seqflow.json_schema import is_count, matches_schema
from seqflow.kernels.arrays import Array
from seqflow.loader.epoch.weights import Schedule, Weight


@dataclass(frozen=True, eq=False)
class Choice:
    """A function that chooses the source of each batch: `choose(first, count) -> int[count]`."""

    function: Callable[[int, int], Any] | None
    """None is a function of an earlier run, of which only the identity is known."""
    identity: Mapping[str, Any]
    sources: int
    """Number of sources that it chooses from."""

    @classmethod
    def of(cls, function: Callable[[int, int], Any], version: Any, sources: int) -> "Choice":
        """Return the choice of a function, which is identified by its version, or else by its code."""
        found = transform_identity(function, None if version is None else str(version)) or {}
        return cls(function, {name: part for name, part in found.items() if name not in SHOWN}, sources)

    def __len__(self) -> int:
        return self.sources

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Choice) and (self.identity, self.sources) == (other.identity, other.sources)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        version = self.identity.get("version")
        return f"a function{'' if version is None else f' of version {version!r}'}"

    def members(self, first: int, count: int) -> Array:
        """int64[count]: the sources of batches; raise OpResultError when the function does not give them."""
        if self.function is None:
            raise OpError(
                f"Mix: batch {first} was chosen by {self}, which is not the function of this mix\n"
                "  give weights= the earlier function to have earlier batches again"
            )
        what, found = (
            f"Mix: {name_of(self.function)}({first}, {count})",
            np.asarray(self.function(first, count)),
        )
        if found.dtype.kind not in "iu" or found.shape != (count,):
            raise OpResultError(
                f"{what} returned {found.dtype}{list(found.shape)}, expected integers[{count}]"
            )
        wrong = np.flatnonzero((found < 0) | (found >= self.sources))
        if len(wrong):
            raise OpResultError(
                f"{what} returned source {found[wrong[0]]} for batch {first + wrong[0]}, "
                f"expected 0 to {self.sources - 1}"
            )
        return found.astype(np.int64)


Weights = tuple[Weight, ...] | Choice


class Change(NamedTuple):
    """Weights that hold from a batch on."""

    epoch: int
    batch: int
    weights: Weights
    """Weights of the sources by number; sources after the last have none yet."""
    before: tuple[int, ...] | None = None
    """Batches of each source before this one in the epoch, if an earlier function has chosen them."""


def _are_weights(value: Any) -> bool:
    return matches_schema(value, [(str, object)]) or matches_schema(value, {"choice": Mapping, "of": [str]})


_SCHEMA = [{"epoch": is_count, "batch": is_count, "weights": _are_weights}]


@dataclass(frozen=True)
class History:
    """Names of all sources that a mix has had, by number, and the changes of their weights, in order."""

    names: tuple[str, ...]
    changes: tuple[Change, ...]

    def at(self, epoch: int, batch: int) -> Weights:
        """Return the weights of a batch."""
        return next(one.weights for one in reversed(self.changes) if (one.epoch, one.batch) <= (epoch, batch))

    def pieces(self, epoch: int) -> list[Change]:
        """Return the changes of an epoch, the first at batch 0: the last one of several at a batch."""
        found = {0: Change(epoch, 0, self.at(epoch, 0))}
        return [
            *(found | {one.batch: one for one in self.changes if one.epoch == epoch and one.batch}).values()
        ]

    def changed(self, change: Change, names: Sequence[str] = ()) -> "History":
        """Return the history with one more change, and the names of new sources."""
        return History((*self.names, *names), (*self.changes, change))

    def by_name(self, weights: Weights) -> Any:
        """Return weights by the name of the source, without weights of 0; a function as it is."""
        if isinstance(weights, Choice):
            return weights
        return {name: one for name, one in zip(self.names, weights, strict=False) if one != 0}

    def to_json(self) -> list[dict[str, Any]]:
        """Return the changes as JSON-compatible values."""
        found: list[dict[str, Any]] = []
        for epoch, batch, weights, before in self.changes:
            if isinstance(weights, Choice):
                as_json: Any = {"choice": dict(weights.identity), "of": list(self.names)}
            else:
                # pairs, not an object: the order of names is that of the numbers of the sources
                each = (one.to_json() if isinstance(one, Schedule) else one for one in weights)
                as_json = [list(pair) for pair in zip(self.names, each, strict=False)]
            more = {} if before is None else {"before": list(before)}
            found.append({"epoch": epoch, "batch": batch, "weights": as_json, **more})
        return found

    @classmethod
    def from_json(cls, value: Any, own: Weights) -> "History":
        """Return the history of a state; `own` are the weights of this mix, whose function may be one of it."""
        names: dict[str, None] = {}
        changes = []
        for one in value if matches_schema(value, _SCHEMA) and value else _damaged():
            found = one["weights"]
            if isinstance(found, list):
                names |= dict.fromkeys(name for name, _ in found)
                weights: Weights = tuple(_weight_of(weight) for _, weight in found)
            else:
                names |= dict.fromkeys(found["of"])
                weights = Choice(None, found["choice"], len(found["of"]))
                weights = own if weights == own else weights
            before = tuple(one["before"]) if matches_schema(one.get("before"), [is_count]) else None
            changes.append(Change(one["epoch"], one["batch"], weights, before))
        return cls(tuple(names), tuple(changes))

    @cached_property
    def digest(self) -> str:
        """Digest of all changes."""
        return digest_of_text(json.dumps(self.to_json(), sort_keys=True))

    def __str__(self) -> str:
        first, *others = (self.text_of(one.weights) for one in self.changes)
        later = zip(self.changes[1:], others, strict=True)
        return first + "".join(
            f"; from batch {one.batch} of epoch {one.epoch} on {text}" for one, text in later
        )

    def text_of(self, weights: Weights) -> str:
        """Return names and shares of sources, as text; with a `Schedule`, names and weights."""
        if isinstance(weights, Choice):
            return f"{', '.join(map(repr, self.names))} by {weights}"
        fixed = [one for one in weights if not isinstance(one, Schedule)]
        if len(fixed) < len(weights):
            return ", ".join(f"{name!r} {one!r}" for name, one in zip(self.names, weights, strict=False))
        return ", ".join(
            f"{name!r} {one / sum(fixed):.3g}" for name, one in zip(self.names, fixed, strict=False)
        )


def _damaged() -> Any:
    raise OpError("load_state_dict: the history of the state is damaged, expected what state_dict() gave")


def _weight_of(value: Any) -> Weight:
    if matches_schema(value, {"points": [(is_count, is_number)], "linear": bool}):
        return Schedule(dict(value["points"]), linear=value["linear"])
    return float(value) if is_number(value) and value >= 0 else _damaged()
