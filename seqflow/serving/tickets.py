"""Tickets: requests for batches by their numbers, bounded by their form, so that any of them ends."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from seqflow.json_schema import is_count, matches_schema, numbered
from seqflow.kernels.arrays import Array
from seqflow.serving.wire import FOREIGN, VERSION, refusal

MOST_SPANS = 256
MOST_BYTES = 4096
"""Most spans and bytes of a ticket; the place of a mix may add some bytes for each source."""
BYTES_OF_SOURCE = 256
_MOST_EPOCH, _MOST_SIZE = 1 << 32, 1 << 16
"""Bounds of an epoch, and of the number of batches of a step whose totals are counted."""

Span = tuple[int, int, int]
"""The first batch, the distance from one to the next, and their number."""

_WINDOW = {"window": is_count, "first_batch": is_count, "batches": is_count}
_PLACE = {"epoch": is_count, "batch": is_count, "ranks": is_count, "windows": numbered(_WINDOW)}
_MEMBER = {"passes": [is_count], "windows": numbered((is_count, is_count, is_count))}
_MIX_PLACE = {"epoch": is_count, "batch": is_count, "ranks": is_count, "ended": bool, "members": [_MEMBER]}
_TICKET = {
    "identity": str,
    "epoch": lambda epoch: is_count(epoch) and epoch < _MOST_EPOCH,
    "spans": lambda spans: matches_schema(spans, [(is_count,) * 3]) and 1 <= len(spans) <= MOST_SPANS,
    "low": is_count,
    "size": lambda size: is_count(size) and 1 <= size <= _MOST_SIZE,
    "place": object,
    "fill": lambda fill: fill in ("", "pad"),
}


class Ticket(NamedTuple):
    """Batches of one epoch, in increasing order of their numbers."""

    identity: str
    """Identity of the job, its data and the versions."""
    epoch: int
    spans: Sequence[Span]
    low: int = 0
    """No rank of the client needs a batch before this one: windows are read from here on."""
    size: int = 1
    """Number of batches of a step, for totals."""
    place: Mapping[str, Any] | None = None
    """Place in the epoch from which to read, as in a state, if batches are not counted before reading."""
    fill: str = ""
    """"pad" asks for a batch like these without rows."""

    def numbers(self) -> Iterator[int]:
        return chain.from_iterable(
            range(first, first + step * count, step) for first, step, count in self.spans
        )

    def to_bytes(self) -> bytes:
        return json.dumps({"version": VERSION, **self._asdict()}).encode()


def read_ticket(data: bytes, identity: str, sources: int | None) -> Ticket:
    """Return the ticket of a request to a server of this identity; raise a refusal when it is malformed, or for
    another server. `sources` is the number of sources of a mix.
    """
    if len(data) > MOST_BYTES + BYTES_OF_SOURCE * (sources or 0):
        raise refusal(f"the ticket has {len(data):,} bytes, expected at most {MOST_BYTES:,}", "ticket")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not is_count(found.get("version")):
        raise refusal("this is not a ticket", "ticket")
    if found.pop("version") != VERSION or found.get("identity") != identity:
        raise refusal(
            "this server has another job, other data or another version of seqflow than the client's", FOREIGN
        )
    if not matches_schema(found, _TICKET) or found.keys() != _TICKET.keys():
        raise refusal("this is not a ticket", "ticket")
    ticket = Ticket(**found)
    if not _are_increasing(ticket.spans) or not _is_place(ticket.place, ticket.epoch, sources):
        raise refusal("this is not a ticket", "ticket")
    return ticket


def _are_increasing(spans: Sequence[Span]) -> bool:
    ends = [-1, *(first + step * (count - 1) for first, step, count in spans)]
    starts = zip(spans, ends, strict=False)
    return all(step and count and first > before for (first, step, count), before in starts)


def _is_place(place: Any, epoch: int, sources: int | None) -> bool:
    """Return whether a place of a ticket is one of the epoch, of a mix if there are `sources`."""
    if place is None:
        return True
    fits = matches_schema(place, _PLACE if sources is None else _MIX_PLACE) and place["epoch"] == epoch
    return fits and (sources is None or len(place["members"]) == sources)


def spans_of(numbers: Array) -> list[Span]:
    """Return increasing numbers as spans.

    >>> spans_of(np.array([0, 2, 4, 9, 10]))
    [(0, 2, 3), (9, 1, 2)]
    """
    spans: list[Span] = []
    at = 0
    steps = np.diff(numbers)
    changes = [*(np.flatnonzero(np.diff(steps)) + 1).tolist(), len(steps)]
    for end in changes:
        if at < end:
            spans.append((int(numbers[at]), int(steps[at]), end - at + 1))
            at = end + 1
    return spans + [(int(one), 1, 1) for one in numbers[at:].tolist()]
