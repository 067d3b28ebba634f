"""Mix: several sources as one sequence of batches, in fixed proportions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

from seqflow.arguments import at_least_one, is_number
from seqflow.byte_sizes import format_bytes
from seqflow.errors import OpError, OpTypeError, nearest
from seqflow.json_schema import is_count
from seqflow.loader.arguments import PREFETCH, check_totals, grouped, steps_of_rank
from seqflow.loader.epoch.assign_ranks import spans_of
from seqflow.loader.epoch.history import Change, Choice, History, Weights
from seqflow.loader.epoch.weights import Schedule, Weight, check_together
from seqflow.loader.epochs import EpochBatches
from seqflow.loader.loader import Loader
from seqflow.loader.mix_plan import PlannedSource, plan_of
from seqflow.loader.order.recipe import check_seed
from seqflow.loader.plans.balanced_pools import totals_of
from seqflow.loader.plans.row_plans import Rows, batch_plan
from seqflow.loader.run.mixing import MixPipeline, MixRun
from seqflow.loader.run.pipeline import Pipeline
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
            the number of the batch. A source with a weight of 0 never comes. Or a function that chooses the
            source of each batch: `choose(first, count) -> int[count]`, the numbers in `names` of the sources of
            `count` batches from batch `first` of an epoch on. It must depend on its arguments alone, and is
            identified by its code, or by `version=`.
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

    Weights and sources may change while a model trains: `reweigh`, `add` and `remove` change them from a batch
    on that no rank has begun. `state_dict()["history"]` has all changes, and a state goes on with them. With
    `load_state_dict(state, changes="accept")`, the weights and sources of this mix hold from the batch of the
    state on.

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
        weights: Mapping[str, Weight] | Callable[[int, int], Any] | None = None,
        seed: int = 0,
        stop: str = "first",
        column: str | None = "source",
        skip: Iterable[Sequence[int]] | None = None,
        totals: Mapping[str, str] | Sequence[str] | None = None,
        steps_of: int | None = None,
        **options: Any,
    ) -> None:
        names, found, values = _named(sources, weights, options.get("version"))
        check_seed("Mix", seed)
        if stop not in ("first", "all"):
            raise OpError(f"Mix: stop is {stop!r}, expected 'first' or 'all'")
        if isinstance(values, Choice) and stop == "all":
            raise OpError(
                "Mix: stop is 'all' with a function as weights, expected 'first': no one knows which sources it will "
                "choose again"
            )
        self._options = _divided(options, len(found))
        loaders, self._rows = _loaders(found, values, self._options)
        self.by_name = dict(zip(names, loaders, strict=True))
        """The loader of each source by name."""
        counted, each = totals_of(totals), steps_of_rank(steps_of, loaders[0].batch)
        self._counted = counted, each
        members: list[Pipeline | None] = [
            self._member(loader, number) for number, loader in enumerate(loaders)
        ]
        history = History(names, (Change(0, 0, values),))
        super().__init__(
            MixPipeline(
                members,
                history,
                weights is not None,
                self._rows,
                seed,
                stop,
                column,
                spans_of(skip),
                counted,
                each,
            )
        )

    def _member(self, loader: Loader, number: int) -> Pipeline:
        """Return the pipeline of a loader as source `number`."""
        counted, each = self._counted
        check_totals(counted, each, loader.streams, loader.assignment.ranks, loader.batch.balance)
        inputs = counted.inputs if counted else ()
        return loader.pipeline.as_member(number, inputs, of_rows=self._rows is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all sources by number; a number is never used again."""
        return self.pipeline.names

    @property
    def can_fork(self) -> bool:
        return all(loader.can_fork for loader in self.loaders)

    @property
    def loaders(self) -> list[Loader]:
        """The loaders of all sources."""
        return list(self.by_name.values())

    @property
    def weights(self) -> Sequence[Weight] | Callable[[int, int], Any]:
        """Weights of all sources by number after the last change, or the function that chooses."""
        weights = self.pipeline.history.changes[-1].weights
        return weights.function if isinstance(weights, Choice) else weights  # type: ignore[return-value]

    def reweigh(self, weights: Mapping[str, float], *, at: int | None = None) -> None:
        """Change the weights from batch `at` of the epoch on, counted over all ranks.

        `weights` has a number for each source; one that is missing must have a weight of 0 already. `at` is a batch
        that no rank has begun, at the beginning of a step, or of a pool of a Balance. By default it is the first
        such batch that this process has not begun; with several ranks it must be given, and be the same on all of
        them: the largest `next_change` of all. Shares are carried over: sources that had less than their share
        come first.

        Raise OpTypeError unless `weights` is a mapping, and OpError for unknown names, weights that are negative or
        all 0, an `at` that is begun or inside a step, and in a mix whose sources a function chooses.
        """
        if not isinstance(weights, Mapping):
            raise OpTypeError(f"Mix.reweigh: weights is {weights!r}, expected a dict of numbers by name")
        if any(isinstance(one, Schedule) for one in weights.values()):
            raise OpError(
                "Mix.reweigh: weights has a Schedule, expected numbers: a Schedule is known before the run"
            )
        names, (epoch, batch), now = self.names, self._at("reweigh", at), self._current("reweigh")
        if unknown := [name for name in weights if name not in names]:
            raise OpError(f"Mix.reweigh: there is no source {unknown[0]!r}{nearest(unknown[0], names)}")
        if missing := [name for name, one in zip(names, now, strict=True) if one and name not in weights]:
            raise OpError(f"Mix.reweigh: weights has no number for {missing[0]!r}, expected one, 0 or more")
        self._change(Change(epoch, batch, _checked([weights.get(name, 0.0) for name in names], names)))

    def add(self, name: str, source: Any, *, weight: float, at: int | None = None) -> None:
        """Add a source from batch `at` of the epoch on, as `reweigh` describes it; the other weights stay.

        It begins with its own first batch, and gets the next number, the options of the mix if it is not a Loader,
        and an index of its own if the mix has `index=True`. Raise OpError for a name that the mix has had, and for
        a source of which batches differ from those of the others, and the errors of `reweigh`.
        """
        (epoch, batch), now = self._at("add", at), self._fixed("add")
        if name in self.names:
            raise OpError(f"Mix.add: {name!r} is the name of a source already, expected a new one")
        weights = _checked([*now, weight], [*self.names, name])
        is_loader = isinstance(source, Loader)
        made = _loader(source, _of_rows(self._options) if self._rows else {} if is_loader else self._options)
        if self._rows is not None and not made.pipeline.counts_rows:
            raise OpError(
                f"Mix.add: the rows of {name!r} are not known before reading, expected a source with known rows\n"
                "  each batch of this mix has rows of all sources"
            )
        self.pipeline.add(self._member(made, len(self.names)))
        self.by_name[name] = made
        self._change(Change(epoch, batch, weights), [name])

    def remove(self, name: str, *, at: int | None = None) -> None:
        """Remove a source from batch `at` of the epoch on, as `reweigh` describes it; the other weights stay.

        A mix that goes on with the state need not have the source. Raise OpError for an unknown name, when no
        other source has a weight above 0, and the errors of `reweigh`.
        """
        (epoch, batch), now = self._at("remove", at), self._fixed("remove")
        if name not in self.names:
            raise OpError(f"Mix.remove: there is no source {name!r}{nearest(name, self.names)}")
        weights = [0.0 if one == name else weight for one, weight in zip(self.names, now, strict=True)]
        self._change(Change(epoch, batch, _checked(weights, self.names)))

    def plan(self, *, steps: int) -> list[PlannedSource]:
        """Return share, batches, rows, passes and ends of passes of each source after so many steps from epoch 0 on.

        A step has a batch for each rank, or `steps_of` if that is given. No row is read: without an index, or
        counts in the metadata of files, rows and passes are None.
        """
        at_least_one("Mix.plan", steps=steps)
        return plan_of(self.pipeline, steps * (self.pipeline.step_size() or self.world_size))

    def _change(self, change: Change, names: Sequence[str] = ()) -> None:
        run = self._run
        self.pipeline.history = self.pipeline.history.changed(change, names)
        if isinstance(run, MixRun) and run.start.epoch == change.epoch:
            run.change(change)

    @property
    def next_change(self) -> int:
        """First batch of the epoch from which on weights may change, as this process knows it.

        The largest of all ranks is a batch that no rank has begun, if all ask before they go on.
        """
        return self.pipeline.next_change(self._begun()[1])

    def _begun(self) -> tuple[int, int]:
        """Return the epoch, and its first batch that is not begun here, after the last change."""
        run, last = self._run, self.pipeline.history.changes[-1]
        epoch, begun = (run.start.epoch, run.begun) if isinstance(run, MixRun) else self.place[:2]
        return epoch, max(begun, last.batch) if last.epoch == epoch else begun

    def _at(self, what: str, at: int | None) -> tuple[int, int]:
        """Return epoch and batch of a change; raise OpError when weights cannot change there."""
        if self.is_elsewhere:
            raise OpError(
                f"Mix.{what}: worker processes of a DataLoader hand out the batches, which do not learn of it\n"
                "  change weights before an epoch begins, or use num_workers=0"
            )
        (epoch, begun), first = self._begun(), self.next_change
        if at is None and self.world_size > 1:
            raise OpError(
                f"Mix.{what}: at is None on {self.world_size} ranks, expected a batch that no rank has begun, the "
                f"same on all\n  this one may begin at batch {first}"
            )
        at = first if at is None else at
        if not is_count(at) or at < begun:
            raise OpError(f"Mix.{what}: at is {at!r}, expected a batch that is not begun: {first} or later")
        if self.pipeline.next_change(at) != at:
            raise OpError(
                f"Mix.{what}: batch {at} is inside a step or a pool, expected where one begins: "
                f"{self.pipeline.next_change(at)}"
            )
        return epoch, at

    def _current(self, what: str) -> Sequence[Weight]:
        """Return the weights after the last change, of all sources."""
        found = self.pipeline.history.changes[-1].weights
        if isinstance(found, Choice):
            raise OpError(f"Mix.{what}: a function chooses the sources, and has no weights to change")
        return [*found, *[0.0] * (len(self.names) - len(found))]

    def _fixed(self, what: str) -> Sequence[Weight]:
        found = self._current(what)
        if any(isinstance(one, Schedule) for one in found):
            raise OpError(
                f"Mix.{what}: weights change by a Schedule, which has no share for other sources\n"
                "  give all of them numbers with reweigh first"
            )
        return found

    def __repr__(self) -> str:
        return f"Mix of {self.pipeline.history}, {self._where()}"


_NAMED = "\n  a dict of names and sources needs weights={name: number}"


def _named(sources: Any, weights: Any, version: Any) -> tuple[tuple[str, ...], list[Any], Weights]:
    """Return the names of the sources, the sources, and their weights."""
    if not isinstance(sources, Mapping) or not sources:
        raise OpTypeError(
            f"Mix: sources is {sources!r}, expected a dict of sources or loaders, and their weights"
        )
    if weights is None:
        found, values = list(sources), list(sources.values())
        names: list[str] = []
        for number, one in enumerate(found):
            name = _name_of(one, number)
            names.append(f"{name}, source {number}" if name in names else name)
        return tuple(names), found, _checked(values, range(len(names)), _NAMED)
    names, found = [str(name) for name in sources], list(sources.values())
    if callable(weights):
        return tuple(names), found, Choice.of(weights, version, len(names))
    if not isinstance(weights, Mapping) or set(weights) != set(sources):
        raise OpError(
            f"Mix: weights is {weights!r}, expected a number for each of {', '.join(map(str, sources))}"
        )
    return tuple(names), found, _checked([weights[name] for name in sources], range(len(names)))


def _checked(values: Sequence[Any], names: Sequence[Any], advice: str = "") -> tuple[Weight, ...]:
    """Return weights; raise OpError when one is not a weight, or all are 0 for some batch."""
    for name, weight in zip(names, values, strict=True):
        if not isinstance(weight, Schedule) and (not is_number(weight) or weight < 0):
            raise OpError(
                f"Mix: the weight of source {name!r} is {weight!r}, expected a number, 0 or more"
                f"{'' if isinstance(weight, int | float) else advice}"
            )
    checked = [weight if isinstance(weight, Schedule) else float(weight) for weight in values]
    check_together(checked)
    return tuple(checked)


def _name_of(source: Any, number: int) -> str:
    """Return the name of a source: a path is its own name; other sources have that of their origin."""
    if is_path(source):
        return str(source)
    found = source.source if isinstance(source, Loader) else source
    return found.origin if isinstance(found, Provider) else f"source {number}"


def _loaders(
    sources: list[Any], weights: Weights, options: Mapping[str, Any]
) -> tuple[list[Loader], int | None]:
    """Return a loader for each source, and the rows of a batch if each has rows of all sources; None if each
    batch comes from one source.
    """
    plan = batch_plan(options.get("batch", 256))
    balance, n = plan.balance, plan.rows_across
    is_free = (
        isinstance(weights, Choice)
        or any(isinstance(one, Schedule) for one in weights)
        or any(isinstance(one, Loader) for one in sources)
    )
    # a cost of `longest` belongs to a whole batch, and rows of a source are not one
    if n is not None and not is_free and not (balance and balance.needs_longest):
        loaders = [Loader(source, **_of_rows(options)) for source in sources]
        if all(loader.pipeline.counts_rows for loader in loaders):
            return loaders, n
    return [_loader(source, options) for source in sources], None


def _of_rows(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the loaders of a mix of rows, whose short batches are those of the mix."""
    plan = batch_plan(options.get("batch", 256))
    return {**options, "batch": Rows(plan.rows_across or 1, False, plan.lengths, balance=plan.balance)}


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
