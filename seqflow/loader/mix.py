"""Mix: several sources as one sequence of batches, in fixed proportions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

from seqflow.arguments import is_number
from seqflow.byte_sizes import format_bytes
from seqflow.errors import OpError, OpTypeError
from seqflow.loader.arguments import PREFETCH, check_totals, grouped, steps_of_rank
from seqflow.loader.epoch.assign_ranks import spans_of
from seqflow.loader.epoch.weights import Schedule, Weight, check_together
from seqflow.loader.epochs import EpochBatches
from seqflow.loader.loader import Loader
from seqflow.loader.order.recipe import check_seed
from seqflow.loader.plans.balanced_pools import totals_of
from seqflow.loader.plans.row_plans import Rows, batch_plan
from seqflow.loader.run.mixing import MixPipeline
from seqflow.loader.run.workers import Prefetch, byte_count
from seqflow.providers import Provider
from seqflow.providers.paths import is_path


class Mix(EpochBatches):
    """Batches of several sources as one sequence, which is the same for all ranks and after a resume.

        mix = sf.Mix({"web": "web/*.parquet", "books": "books/*.parquet"}, weights={"web": 0.7, "books": 0.3})
        for batch in mix: print(batch.sources)

    Args:
        sources: Sources or Loaders by name, with `weights`. Without `weights`, a mapping of sources or
            Loaders to their weights; a path is then its own name.
        weights: Weight of each source by name: a number, 0 or more, or a `Schedule`, which changes it with
            the number of the batch. A source with a weight of 0 never comes.
        seed: Seed that decides which source comes first, from 0 to 2**64 - 1.
        stop: "first" ends an epoch with the first exhausted source; "all" with the last, and those exhausted
            earlier begin again, in a new order.
        column: Name of the column with the number of the source of each row, its place in `names`; None omits
            it. The order of a source depends on this number, too.
        skip: Spans of batches to omit, as in a Loader.
        totals: Sums over all batches of a training step, as in a Loader.
        steps_of: Number of batches of each rank in a step, as in a Loader.
        options: All other parameters of `Loader`, for the loaders of the sources that are not Loaders. The
            memory of `prefetch` is divided equally among the sources; without it each has its default.

    If batches have a number of rows, and the rows of all sources are known, each batch has rows of all
    sources: 256 rows in proportions of 0.7 and 0.3 are 179 and 77. Remainders carry over from batch to batch:
    after any number of batches each source is less than one row away from its share, and a batch is a function
    of its number. Otherwise, with a `Schedule`, and with a `Balance` whose cost names `longest`, each batch
    comes from one source; after any number of batches no source is more than two batches away from its share.

    `names` has the names of all sources, and `batch.sources` those that a batch has rows of; the dicts of
    `mix.to("torch")` have them too.

    Raise OpTypeError when `sources` is not a mapping, OpError for weights that are negative or do not fit the
    names, and the errors of `Loader`. While batches are made, raise BatchPlanError when a source with a weight
    above 0 has no batch.
    """

    pipeline: MixPipeline

    def __init__(
        self,
        sources: Mapping[Any, Any],
        *,
        weights: Mapping[str, Weight] | None = None,
        seed: int = 0,
        stop: str = "first",
        column: str | None = "source",
        skip: Iterable[Sequence[int]] | None = None,
        totals: Mapping[str, str] | Sequence[str] | None = None,
        steps_of: int | None = None,
        **options: Any,
    ) -> None:
        self.names, found, self.weights = _named(sources, weights)
        check_seed("Mix", seed)
        if stop not in ("first", "all"):
            raise OpError(f"Mix: stop is {stop!r}, expected 'first' or 'all'")
        options = _divided(options, len(found))
        self.loaders, rows = _loaders(found, self.weights, options)
        counted, each = totals_of(totals), steps_of_rank(steps_of, self.loaders[0].batch)
        for loader in self.loaders:
            check_totals(counted, each, loader.streams, loader.assignment.ranks, loader.batch.balance)
        inputs = counted.inputs if counted else ()
        members = [
            loader.pipeline.as_member(number, inputs, of_rows=rows is not None)
            for number, loader in enumerate(self.loaders)
        ]
        super().__init__(
            MixPipeline(
                members, self.names, self.weights, rows, seed, stop, column, spans_of(skip), counted, each
            )
        )

    def __repr__(self) -> str:
        fixed = [weight for weight in self.weights if not isinstance(weight, Schedule)]
        shares: list[str] = [repr(weight) for weight in self.weights]
        if len(fixed) == len(shares):
            shares = [f"{weight / sum(fixed):.3g}" for weight in fixed]
        each = (f"{name!r} {share}" for name, share in zip(self.names, shares, strict=True))
        return f"Mix of {', '.join(each)}, {self._where()}"


_NAMED = "\n  a dict of names and sources needs weights={name: number}"


def _named(
    sources: Any, weights: Mapping[str, Weight] | None
) -> tuple[tuple[str, ...], list[Any], list[Weight]]:
    """Return the names of the sources, the sources, and their weights."""
    if not isinstance(sources, Mapping) or not sources:
        raise OpTypeError(
            f"Mix: sources is {sources!r}, expected a dict of sources or loaders, and their weights"
        )
    if weights is None:
        found, values = list(sources), list(sources.values())
        names = [_name_of(one, number) for number, one in enumerate(found)]
    else:
        if not isinstance(weights, Mapping) or set(weights) != set(sources):
            raise OpError(
                f"Mix: weights is {weights!r}, expected a number for each of {', '.join(map(str, sources))}"
            )
        names, found = [str(name) for name in sources], list(sources.values())
        values = [weights[name] for name in sources]
    for number, weight in enumerate(values):
        if isinstance(weight, Schedule):
            continue
        if not is_number(weight) or weight < 0:
            raise OpError(
                f"Mix: the weight of source {number} is {weight!r}, expected a number, 0 or more"
                f"{_NAMED if weights is None and not isinstance(weight, int | float) else ''}"
            )
    checked = [weight if isinstance(weight, Schedule) else float(weight) for weight in values]
    check_together(checked)
    return tuple(names), found, checked


def _name_of(source: Any, number: int) -> str:
    """Return the name of a source: a path is its own name; other sources have that of their origin."""
    if is_path(source):
        return str(source)
    found = source.source if isinstance(source, Loader) else source
    return found.origin if isinstance(found, Provider) else f"source {number}"


def _loaders(
    sources: list[Any], weights: list[Weight], options: Mapping[str, Any]
) -> tuple[list[Loader], int | None]:
    """Return a loader for each source, and the rows of a batch if each has rows of all sources; None if each
    batch comes from one source.
    """
    plan = batch_plan(options.get("batch", 256))
    balance, n = plan.balance, plan.rows_across
    is_free = any(isinstance(one, Schedule) for one in weights) or any(
        isinstance(one, Loader) for one in sources
    )
    # a cost of `longest` belongs to a whole batch, and rows of a source are not one
    if n is not None and not is_free and not (balance and balance.needs_longest):
        of_rows = {**options, "batch": Rows(n, False, plan.lengths, balance=balance)}
        loaders = [Loader(source, **of_rows) for source in sources]
        if all(loader.pipeline.counts_rows for loader in loaders):
            return loaders, n
    return [_loader(source, options) for source in sources], None


def _loader(source: Any, options: Mapping[str, Any]) -> Loader:
    if not isinstance(source, Loader):
        return Loader(source, **options)
    if options:
        raise OpTypeError(
            f"Mix: {next(iter(options))} is an option of loaders, expected sources instead of loaders\n"
            "  give it to the loaders themselves"
        )
    return source


def _divided(options: Mapping[str, Any], sources: int) -> dict[str, Any]:
    """Return the options of each loader; `memory` is the limit for all together, so each gets its part."""
    prefetch = grouped("prefetch", options.get("prefetch"), Prefetch, PREFETCH, options)
    if prefetch.memory is None:
        return dict(options)
    window = byte_count(
        "Loader: window", options.get("window", signature(Loader).parameters["window"].default)
    )
    memory = byte_count("Prefetch: memory", prefetch.memory)
    if memory // sources < window:
        raise OpError(
            f"Mix: memory is {format_bytes(memory)} for {sources} sources, expected a window for each, "
            f"{format_bytes(window * sources)}\n  raise memory, or lower window"
        )
    others = {name: value for name, value in options.items() if name not in PREFETCH}
    return {**others, "prefetch": replace(prefetch, memory=memory // sources)}
