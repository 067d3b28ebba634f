"""Verdicts: which rows the rules of curation leave out, found from the keys of all rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from seqflow import ops
from seqflow.curation.keyed_rows import KEYS, PLACE, SCORE, SHARE, TOO_SHORT, band
from seqflow.curation.rules import Decontaminate, Deduplicate, NearDuplicates, Rule
from seqflow.kernels.arrays import Array
from seqflow.providers import Provider

MEMORY = 1 << 30
"""Bytes of keys that are compared at one time: more keys are compared in parts, each with a pass over them."""
_ROW_BYTES = 64
"""Bytes that comparing one row takes: its key and place, and the tables by which equal keys are found."""


@dataclass(frozen=True, slots=True)
class Verdicts:
    """Rows that are left out."""

    places: Array
    """int64: places of all of them, ascending."""
    by_rule: Mapping[str, Array] = field(default_factory=dict)
    """The places that each rule has left out, ascending, by its name."""
    too_short: Mapping[str, int] = field(default_factory=dict)
    """Number of rows that each rule of n-grams could not compare, because they have fewer words than one n-gram."""


def find_verdicts(
    keys: Provider, rules: Sequence[Rule], against: Provider | None = None, memory: int = MEMORY
) -> Verdicts:
    """Apply rules, one after the other, to the rows whose keys these are; `against` has the keys of other sets.

    Rows are in the order of their places. Keys of 16 bytes a row are compared in parts of `memory` bytes; near
    duplicates need 24 bytes a row in memory.
    """
    places = _column(keys, PLACE)
    stays = np.ones(len(places), bool)
    by_rule, too_short = {}, {}
    for rule in rules:
        if not isinstance(rule, Deduplicate):
            found = _column(keys, SHARE if isinstance(rule, Decontaminate) else band(0))
            too_short[rule.name] = int(np.count_nonzero(stays & (found == TOO_SHORT)))
        if isinstance(rule, Decontaminate):
            leaves = stays & (found > rule.max_share)
        elif isinstance(rule, Deduplicate):
            leaves = _repeated(keys, rule, stays, against, memory)
        else:
            leaves = _alike(keys, rule, stays)
        by_rule[rule.name] = places[leaves]
        stays &= ~leaves
    return Verdicts(places[~stays], by_rule, too_short)


def _column(keys: Provider, name: str) -> Array:
    """Return a column of all rows."""
    found = [table.column(name).to_numpy() for table in _tables(keys, [name])]
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def _tables(keys: Provider, names: Sequence[str]) -> Iterator[pa.Table]:
    for block in keys.ahead(keys.blocks(), names):
        yield pa.table(keys.read(block, names))


def _repeated(
    keys: Provider, rule: Deduplicate, stays: Array, against: Provider | None, memory: int
) -> Array:
    """Return bool[rows]: the rows that stay so far and are equal to another one, which stays."""
    count = len(stays) + (0 if against is None else len(against))
    parts = -(-count * _ROW_BYTES // memory)
    leaves = np.zeros(len(stays), bool)
    for part in range(parts):
        others = [] if against is None else [_part(against, KEYS, part, parts)[1]]
        rows, own = _part(keys, (*KEYS, *(SCORE if rule.score else ())), part, parts, stays)
        order = np.arange(len(rows))
        if rule.keep == "last":
            order = order[::-1]
        elif rule.score:
            high, low = own[len(KEYS) :]
            order = np.lexsort((~low, ~high))  # stable: the first of equal ones is the first row
        columns = [np.concatenate([*(one[at] for one in others), own[at][order]]) for at in range(len(KEYS))]
        first = ops.first_of_equal(columns)
        is_first = first == np.arange(len(first))
        leaves[rows[order]] = ~is_first[len(first) - len(rows) :]
    return leaves


def _part(
    keys: Provider, names: Sequence[str], part: int, parts: int, stays: Array | None = None
) -> tuple[Array, list[Array]]:
    """Return the numbers of the rows that stay and whose keys are in one part of all, and their columns."""
    rows, found, start = [np.zeros(0, np.int64)], [[np.zeros(0, np.int64)] for _ in names], 0
    for table in _tables(keys, names):
        columns = [table.column(name).to_numpy() for name in names]
        chosen = columns[0] % parts == part
        if stays is not None:
            chosen &= stays[start : start + len(chosen)]
        rows.append(np.flatnonzero(chosen) + start)
        for to, column in zip(found, columns, strict=True):
            to.append(column[chosen])
        start += len(chosen)
    return np.concatenate(rows), [np.concatenate(one) for one in found]


def _alike(keys: Provider, rule: NearDuplicates, stays: Array) -> Array:
    """Return bool[rows]: the rows that stay so far and are not the first of their cluster."""
    roots = np.arange(len(stays))
    for number in range(rule.shape[0]):
        own = _column(keys, band(number))
        rows = np.flatnonzero(stays & (own >= 0))
        first = rows[ops.first_of_equal([own[rows]])]
        linked = np.flatnonzero(roots != np.arange(len(roots)))
        edges = np.concatenate(
            [np.stack([first, rows], 1)[first != rows], np.stack([roots[linked], linked], 1)]
        )
        roots = ops.connected_components(edges, num_rows=len(stays))
    leaves: Array = roots != np.arange(len(roots))
    return leaves
