"""Arguments of a Loader: their names and types, and checks that convert them to the form in which it keeps them."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from seqflow import providers
from seqflow.arguments import at_least_one
from seqflow.errors import NetError, OpError, OpTypeError, ProviderError, nearest
from seqflow.loader.epoch.ranks import Ranks, Tail
from seqflow.loader.order.conditions import RowCondition
from seqflow.loader.order.index import index_beside
from seqflow.loader.order.recipe import Recipe, Transform
from seqflow.loader.plans.balance import Balance
from seqflow.loader.plans.balanced_pools import Totals
from seqflow.loader.plans.plan import BatchPlan
from seqflow.loader.plans.selection import planned_lengths
from seqflow.loader.plans.window_rows import Pad
from seqflow.loader.run.ledger import BadRows
from seqflow.names_elsewhere import instead
from seqflow.net import Net
from seqflow.output.overwriting import conflict
from seqflow.providers import Provider
from seqflow.providers.opening import OpenOptions, option_names
from seqflow.record import Record

T = TypeVar("T")
MOST_PARTS = 1 << 16
"""Largest number of streams, and of batches of each rank in a step: tables have an entry for each."""
RANKS, PREFETCH = ("rank", "world_size", "tail"), ("threads", "memory", "reuse")
"""Options that are fields of Ranks, and of Prefetch."""
_OF_PROVIDERS = ("columns", "where", "fill", "valid")
"""Options of opening that a source takes that is open already."""


class RankOptions(TypedDict, total=False):
    """Single fields of `ranks`."""

    rank: int | None
    world_size: int | None
    tail: Tail


class LoaderOptions(OpenOptions, RankOptions, total=False):
    """Further keywords of a Loader: those of `sf.open`, and the single fields of `ranks` and `prefetch`."""

    threads: int | None
    memory: int | str | None
    reuse: bool


def check_options(options: Mapping[str, Any], own: Sequence[str]) -> None:
    """Raise OpTypeError for an option that neither a loader nor `sf.open` has; suggest the nearest one."""
    own = [*own, *RANKS, *PREFETCH, "columns", "fill", "valid"]
    for name in options:
        if name in own or name in option_names():
            continue
        if there := instead("option", name):
            raise OpTypeError(f"Loader has no option {name!r}\n  write {there}")
        guess = nearest(name, own) or nearest(name, option_names())
        raise OpTypeError(f"Loader has no option {name!r}{guess}; it has {', '.join(own)}")


def open_source(source: Any, options: Mapping[str, Any]) -> Provider:
    """Return the source, opened with the options of `sf.open`. A provider is already open."""
    given = {name: options[name] for name in options if name not in (*RANKS, *PREFETCH)}
    if isinstance(source, Provider):
        others = [name for name, one in given.items() if name not in _OF_PROVIDERS and one is not None]
        if others:
            raise ProviderError(
                f"Loader: the source is a provider already, and {others[0]} is an option of opening it\n"
                f"write sf.open(…, {others[0]}=…)"
            )
        given = {name: given[name] for name in ("where", "fill", "valid") if name in given}
    return providers.open(source, **given)


def grouped(name: str, value: T | None, kind: type[T], names: Sequence[str], options: Mapping[str, Any]) -> T:
    """Return the Ranks or Prefetch given as `value`, or made from single options; raise OpTypeError when both
    are given.
    """
    given = {one: options[one] for one in names if one in options}
    if value is None:
        return kind(**given)
    if not isinstance(value, kind):
        raise OpTypeError(f"Loader: {name} is {value!r}, expected {kind.__name__}({', '.join(names)})")
    if given:
        raise OpTypeError(
            f"Loader: {next(iter(given))} is given in addition to {name}\n  write it into {name}={kind.__name__}(…)"
        )
    return value


def steps_of_rank(steps_of: int | None, batch: BatchPlan) -> int:
    """Return the number of batches of each rank in a step (default: 1); raise OpError when a balance gives it too."""
    if steps_of is None:
        return 1
    if batch.balance is not None:
        raise OpError(
            "Loader: steps_of is given in addition to a balance, which has its own\n  write Balance(steps_of=…)"
        )
    at_least_one("Loader", MOST_PARTS, steps_of=steps_of)
    return steps_of


def check_totals(
    totals: Totals | None, steps_of: int, streams: int, ranks: Ranks, balance: Balance | None
) -> None:
    """Raise OpError when the totals of a step cannot be counted, or nothing uses the steps."""
    if totals is None:
        if steps_of != 1:
            raise OpError(
                f"Loader: steps_of is {steps_of}, which totals= or a balance needs, and there are none"
            )
        return
    if streams > 1:
        raise OpError(
            f"Loader: totals with streams = {streams}: no rank reads all batches of a step, expected streams = 1"
        )
    if ranks.tail == "repeat":
        raise OpError(
            "Loader: totals with tail='repeat', whose batches count twice, expected 'drop' or 'pad'"
        )
    if balance is not None and balance.step % ranks.world_size:
        raise OpError(
            f"Loader: totals with Balance(group={balance.group}), whose steps of {balance.step} batches "
            f"end inside a round of world_size = {ranks.world_size}, expected a multiple of it\n"
            f"  give group={ranks.world_size}, or leave out totals"
        )


def check_pads(batch: BatchPlan) -> None:
    """Raise OpError when a budget of costs is used with padded rows, whose padding has a cost too."""
    if not batch.takes_pads:
        raise OpError(
            "Loader: pad with TokenBudget(linear=…): padded rows cost what the longest does, expected flat batches\n"
            "  leave out pad, or linear"
        )


def check_shares(recipe: Recipe, index: Path | None) -> None:
    """Raise OpError when an index would have the rows that sharing refuses as bad rows."""
    key = next((one.key for one in recipe.shares if one.key is not None), None)
    if index is not None and key is not None and recipe.keeps_going:
        raise OpError(
            f"Loader: share by {key!r} with an index and bad_rows={recipe.bad_rows!r}: rows that differ from others "
            "of their key are omitted, and the index has their lengths\n  share by content, None, or raise bad rows"
        )


def index_file(index: str | os.PathLike[str] | bool | None, source: Provider) -> Path | None:
    """Return the path of the lengths index; True is a hidden file next to the data, or in the user's cache."""
    if index is None or index is False:
        return None
    if index is True:
        return index_beside(source.files, source.store)
    path = Path(index).expanduser()
    if (why := conflict(path, source)) is not None:
        raise OpError(f"Loader: index {str(path)!r} {why}")
    return path


def bad_rows_of(bad_rows: str | BadRows, source: Provider) -> BadRows:
    """Return the policy for bad rows, from its name; raise ProviderError when its file would be a file of the
    source.
    """
    if isinstance(bad_rows, str):
        bad_rows = BadRows(bad_rows)  # type: ignore[arg-type]
    if bad_rows.path is not None and source.finds(bad_rows.path):
        raise ProviderError(
            f"Loader: bad_rows.path, {str(bad_rows.path)!r}, would be a file of the source\n"
            "write somewhere else, or leave it out with exclude="
        )
    if source.bad_files.policy == "quarantine" and bad_rows.path is None:
        raise OpError.of(
            "Loader.bad_files",
            "is 'quarantine', but bad_rows names no file",
            "%(bad_rows.path)s names one",
        )
    return bad_rows


def transform_of(transform: Net | str | Transform | None) -> Net | Transform | None:
    """Return the Net of a text, and a net or a function unchanged."""
    return Net(transform) if isinstance(transform, str) else transform


def bind_constants(
    constants: Mapping[str, Any] | None,
    prepare: Net | Transform | None,
    net: Net | Transform | None,
    conditions: Sequence[RowCondition],
) -> tuple[Net | Transform | None, Net | Transform | None, tuple[RowCondition, ...]]:
    """Give each net, and each condition, the constants it reads; raise NetError for one that none reads."""
    given = dict(constants or {})
    nets = [item for item in (prepare, net, *(one.net for one in conditions)) if isinstance(item, Net)]
    unused = [name for name in given if not any(name in net.inputs for net in nets)]
    if unused:
        raise NetError(f"net: nothing uses the constant {unused[0]!r}")

    def bound(item: Any) -> Any:
        found = {
            name: value for name, value in given.items() if isinstance(item, Net) and name in item.inputs
        }
        return item.bind(**found) if found else item

    return bound(prepare), bound(net), tuple(replace(one, net=bound(one.net)) for one in conditions)


def pads_of(pad: Pad | float | Mapping[str, Pad | float], empty: Callable[[], Record]) -> dict[str, Pad]:
    """Return the padding of each column: a number is `Pad(number)`; without a name, it is for the only list column.

    `empty` gives a record without rows, which shows its columns.
    """
    if not isinstance(pad, Mapping):
        lengths = planned_lengths(empty(), None, "pad")
        assert lengths is not None  # or planned_lengths has raised
        pad = {lengths.removesuffix(".lengths"): pad}
    return {name: each if isinstance(each, Pad) else Pad(each) for name, each in pad.items()}
