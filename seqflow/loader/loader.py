"""Loader: batches from a source of rows, in an order that a seed decides, for one rank or many."""

import inspect
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Unpack

from seqflow.arguments import FilePath, at_least_one, checked
from seqflow.byte_sizes import format_bytes
from seqflow.drawing.tables import html_table, text_table
from seqflow.errors import OpError, SeqflowError
from seqflow.files.interface import LOCAL
from seqflow.loader import arguments
from seqflow.loader.epoch.assign_ranks import Assignment, spans_of
from seqflow.loader.epoch.ranks import Ranks
from seqflow.loader.epochs import EpochBatches
from seqflow.loader.order.conditions import conditions_of
from seqflow.loader.order.groups import check_groups
from seqflow.loader.order.index import LengthsIndex
from seqflow.loader.order.recipe import Recipe, Shuffle, Transform
from seqflow.loader.plans.balanced_pools import totals_of
from seqflow.loader.plans.plan import BatchPlan
from seqflow.loader.plans.row_plans import batch_plan
from seqflow.loader.plans.shares import check_plan, shares_of
from seqflow.loader.plans.window_rows import Pad
from seqflow.loader.run.ledger import BadRowHandler, BadRows, Stats
from seqflow.loader.run.pipeline import Pipeline, empty_rows
from seqflow.loader.run.workers import Prefetch, byte_count
from seqflow.net import Net
from seqflow.record import Record
from seqflow.tensor import TensorSpec


class Loader(EpochBatches):
    """Batches of named tensors from a source of rows.

        loader = sf.Loader("docs/*.parquet", columns=["tokens"], shuffle=True, batch=256, pad={"tokens": 0})
        for batch in loader:
            batch["tokens"], batch["tokens.mask"]

    The blocks of the source are divided into windows. In a window, and independently of all others, `prepare`
    runs on each block and may change lengths and the number of rows; batches are planned on lengths; `net`
    runs on each batch.

    Args:
        source: Path, URI, glob, folder, or a list of these; an object with `__arrow_c_stream__`; any other
            source of `sf.open`; or a provider that it returned.
        prepare: Net that runs on whole blocks before batches are planned (tokenise, truncate, split): a Net,
            its text, or a function from record to mapping. None leaves the rows as they are.
        net: Net that runs on each batch, in the same forms. None leaves the batch as it is.
        constants: Tensors by name, which both nets and the conditions may read.
        batch: Number of rows in a batch, or a plan: `Rows`, `TokenBudget`, `Buckets`, `Packed`, or one of
            your own.
        pad: Padding of list columns, which become tensors [B, T] with a mask: a mapping of names to `Pad` or a
            fill value, or one of them for the only list column. None pads nothing.
        shuffle: True or `Shuffle(seed)`: blocks come in a random order each epoch, and rows in a random order
            inside a window. A window that holds everything is shuffled exactly, and is kept for the next
            epoch. `Shuffle(seed, by="session")` keeps the rows of each session together.
        window: Bytes of a window, as a number or a text such as "64 MiB".
        streams: Number of interleaved streams of windows, so that a rank reads only its part of the data.
            More than one needs a known number of batches: an `index`, `steps_per_epoch`, or `Rows` of data
            whose rows are known.
        index: File with the lengths of all prepared rows; True keeps it next to the data. It is made during
            the first epoch, or by a pass over the data if `len` or `streams` need it earlier.
        steps_per_epoch: Number of batches of each rank in an epoch. None takes what the data give.
        ranks: `Ranks(rank, world_size, tail=)`: which of the batches this process gets. None takes those of
            Ray Train or of the environment.
        prefetch: `Prefetch(threads=, memory=, reuse=)`: bounds of reading ahead.
        bad_rows: Policy for rows that cannot be used: "raise", "skip", or a `BadRows`.
        version: Text or number that stands for the code of Python functions in states. None compares the code
            itself.
        skip: Spans of batches to omit, by their numbers: `[(5000, 5024)]` omits 5000 to 5023 of epoch 0,
            `[(5000, 5024, 1)]` those of epoch 1. All others keep their numbers and rows.
        totals: Sums over all batches of a training step, on all ranks, without communication: `{"trained":
            "labels.values != -100"}` gives `batch["step.trained"]`, by which a sum of losses is divided. A
            list names tensors.
        steps_of: Number of batches of each rank in a step, for `totals`. None takes that of the plan's
            `Balance`, else 1.
        keep: Condition on prepared rows, or a list of them. A row for which one is false is left out on
            purpose, and counted in `stats().filtered`. It may read `constants`: `keep="find(drop, id) < 0"`.
        require: The same, but a row for which one is false is a bad row, with the text as its reason; only
            kept rows are judged. `"lengths_any(labels.values != -100, labels.lengths)"` rejects rows whose
            labels are all masked.
        share: List columns of which a batch has each of equal lists once, by the column whose equal values share:
            `{"history": "session"}` gives `history.values` and `history.lengths` of the lists, and `history.row`,
            int64[rows], the index of each row among them. A row whose list differs from that of an earlier row of
            its window with the same key is a bad row, as is one whose key is null, also by `valid`. None in place
            of the key compares the lists. A tuple of columns has one index, named after the first. `net` gets the
            shared columns; all before it sees rows.
        columns: Columns to read, or fields of them; None reads all.
        where: Condition on the rows of the source, before they are read where possible.
        kind: Kind of the source; None takes it from the suffix.
        format: Options of one format of files, such as `sf.Csv(delimiter=";")`.
        exclude: Patterns of files to omit.
        rename: New names of columns by their old ones.
        fill: Values in place of nulls, as in `from_arrow`. Without `fill` and `valid` a null of any type
            makes its row a bad row.
        valid: True, or columns: adds masks that are true where not null.
        options: Arguments of your own function that makes the source.
        partitioning: Columns that nested folders name.
        batch_bytes: Bytes of a block of data in memory, or of a stream.
        schema: "unify", "first", or types of columns.
        bad_files: Policy for damaged files: "raise", "skip", "quarantine", or a `BadFiles`.
        storage_options: Options of an object store.
        filesystem: Store of obstore, or file system of pyarrow or fsspec.
        cache: Folder that keeps what is fetched from a store.
        cache_bytes: Most bytes of that folder.
        rank: Field of `ranks`.
        world_size: Field of `ranks`.
        tail: Field of `ranks`.
        threads: Field of `prefetch`.
        memory: Field of `prefetch`.
        reuse: Field of `prefetch`.

    From `columns` to `cache_bytes` the parameters are those of `sf.open`, which describes them. A batch is a
    Record: a mapping of names to tensors that knows which lengths describe each; `batch.num_rows` counts its
    rows. `batch.number` is its number in the epoch, counted over all ranks, and `batch_at(number)` gives that
    batch again.

    Each `iter(loader)` gives the batches of one epoch, and `epoch` advances when it is exhausted.
    `state_dict()` is the place after the last batch that was handed out, and `load_state_dict` goes on there,
    with any number of ranks and threads. A state belongs to these data, settings, nets and the code of
    functions.

    Raise OpTypeError for an option that does not exist, OpError for a value that a parameter does not take,
    NetError for a net, and the errors of `sf.open`. While batches are made, raise ProviderError at a bad row.
    """

    pipeline: Pipeline

    def __init__(
        self,
        source: Any,
        batch: BatchPlan | int = 256,
        *,
        prepare: Net | str | Transform | None = None,
        net: Net | str | Transform | None = None,
        constants: Mapping[str, Any] | None = None,
        pad: Mapping[str, Pad | float] | Pad | float | None = None,
        shuffle: Shuffle | bool | None = None,
        window: int | str = "64 MiB",
        streams: int = 1,
        index: FilePath | bool | None = None,
        steps_per_epoch: int | None = None,
        ranks: Ranks | None = None,
        prefetch: Prefetch | None = None,
        bad_rows: str | BadRows = "raise",
        version: str | int | None = None,
        skip: Iterable[Sequence[int]] | None = None,
        totals: Mapping[str, str] | Sequence[str] | None = None,
        steps_of: int | None = None,
        keep: str | Sequence[str] | None = None,
        require: str | Sequence[str] | None = None,
        share: Mapping[str | tuple[str, ...], str | None] | None = None,
        **options: Unpack[arguments.LoaderOptions],
    ) -> None:
        arguments.check_options(options, _OWN)
        self.source = arguments.open_source(source, options)
        self.columns = options.get("columns")
        self.fill, self.valid = self.source.fill, self.source.valid
        kept, required = conditions_of("keep", keep), conditions_of("require", require)
        self.prepare, self.net, conditions = arguments.bind_constants(
            constants,
            arguments.transform_of(prepare),
            arguments.transform_of(net),
            (*kept, *required),
        )
        self.batch = batch_plan(batch)
        self.shuffle = Shuffle() if shuffle is True else shuffle or None
        self.window = byte_count("Loader: window", window)
        at_least_one("Loader", arguments.MOST_PARTS, streams=streams)
        at_least_one("Loader", steps_per_epoch=steps_per_epoch)
        self.streams, self.steps_per_epoch = streams, steps_per_epoch
        self.index = arguments.index_file(index, self.source)
        self.bad_rows = arguments.bad_rows_of(bad_rows, self.source)
        self.prefetch = arguments.grouped("prefetch", prefetch, Prefetch, arguments.PREFETCH, options)
        found, each = totals_of(totals), arguments.steps_of_rank(steps_of, self.batch)
        self.memory = self.prefetch.bytes_for(self.window, self.streams)
        self.recipe = Recipe(
            self.source, self.columns, self.prepare, self.net, self.batch, {}, self.shuffle, self.window,
            self.streams, self.steps_per_epoch, self.fill, self.valid, self.bad_rows.policy, self.memory,
            found.inputs if found else set(), conditions[: len(kept)], conditions[len(kept) :],
        )  # fmt: skip
        if self.shuffle is not None and self.shuffle.by is not None:
            grouped = check_groups(self.shuffle.by, self.source.schema, self.columns, self.batch)
            self.recipe = replace(self.recipe, grouped=grouped)
        if pad is not None:
            arguments.check_pads(self.batch)
            self.recipe = replace(self.recipe, pad=arguments.pads_of(pad, lambda: empty_rows(self.recipe)))
        if share is not None:
            self.recipe = replace(self.recipe, shares=shares_of(share))
            check_plan(self.batch)
            arguments.check_shares(self.recipe, self.index)
        self.recipe = replace(self.recipe, columns=self.recipe.readable_columns())
        assignment = Assignment(arguments.grouped("ranks", ranks, Ranks, arguments.RANKS, options))
        arguments.check_totals(found, each, self.streams, assignment.ranks, self.batch.balance)
        super().__init__(
            Pipeline(
                self.recipe, assignment, self.index, self.bad_rows, None if version is None else str(version),
                self.prefetch, spans_of(skip), found, each,
            )
        )  # fmt: skip
        self.pipeline.check_rows()

    def __repr__(self) -> str:
        """Return a text with its batches, source, windows, and the known facts about their number and fill; no
        row is read.
        """
        return text_table(self._title(), known_of(self))

    def _repr_html_(self) -> str:
        return html_table(self._title(), (), known_of(self))

    def _title(self) -> str:
        return f"Loader of {self.batch}, {self._where()}"

    @property
    def can_fork(self) -> bool:
        """Whether a forked process can go on with it: clients of stores do not work there."""
        return self.source.store is LOCAL

    @property
    def num_rows(self) -> int | None:
        """Rows of the source; None if the format does not record them."""
        return self.source.num_rows

    @property
    def spec(self) -> dict[str, TensorSpec]:
        """Dtype and shape of each tensor of the batches by name, before anything is read.

        Sizes that differ from batch to batch are unknown. Raise OpError when a Python function makes the batches.
        """
        return self.pipeline.spec()

    def empty_batch(self) -> Record | None:
        """Return a batch without rows, with the tensors that batches have.

        None if Python functions make them, or a net needs rows.
        """
        return self.pipeline.empty_batch()

    @checked()
    def lengths_index(self, *, anew: bool = False, update: bool = False) -> LengthsIndex:
        """Return the lengths of all prepared rows from the file `index`, which is made if it does not exist.

        `anew` always makes it, and replaces an older index once the new one is complete; `update` also
        replaces it, but reads only files that are new or have changed. Raise OpError when the file is not an
        index, or belongs to other data or settings; the message names the difference.
        """
        return self.pipeline.lengths_index(anew=anew, update=update)

    def runs(self, windows: int = 8, *, epoch: int = 0) -> list[range]:
        """Return the batches of each run of so many consecutive windows of an epoch: `batches_at` reads one alone.

        Pools of steps are not cut. With several streams, which take turns, there is one run. Raise OpError when
        batches are not counted before reading.
        """
        at_least_one("runs", windows=windows)
        found = self.pipeline.first_batches(epoch, windows)
        if found is None:
            raise OpError(
                "runs: the batches of windows are not known before reading\n"
                '  give index="lengths.arrow", or Rows(n) of data whose rows are known and kept'
            )
        firsts, total = found
        return [range(*ends) for ends in pairwise([*firsts.tolist(), total])]

    def batches(self, handler: BadRowHandler, stats: Stats) -> Generator[Record, None, None]:
        """Return the batches of the coming epoch. Bad rows go to `handler`, counts are added to `stats`.

        When `at_window_end` is true, both cover exactly the batches handed out.
        """
        return self._iterate([handler], stats)


_OWN = tuple(inspect.signature(Loader).parameters)[1:-1]
"""Options of the loader, except those for `sf.open`, and those of ranks and prefetching."""


_UNKNOWN = "not known before reading"


def known_of(loader: Loader) -> list[tuple[str, str]]:
    """Return name and value of each known fact. No row is read, no index made, and no block of a stream taken."""
    recipe = loader.pipeline.recipe
    source = recipe.source
    where = [("where", source.condition)] if source.condition else []
    keep = [("keep", one.text) for one in recipe.keep]
    lines = [("source", f"{source.kind}, {source.origin}"), *where, *keep]
    try:
        rows = None if source.where is not None else source.num_rows
        return [
            *lines,
            ("rows", _UNKNOWN if rows is None else f"{rows:,}"),
            ("windows", _windows(loader)),
            ("batches", _batches(loader)),
            ("fill", _fill(loader)),
        ]
    except (SeqflowError, OSError) as error:
        return [*lines, ("plan", f"not known: {str(error).partition(chr(10))[0]}")]


def _windows(loader: Loader) -> str:
    recipe = loader.pipeline.recipe
    each = f"up to {format_bytes(recipe.window)} each"
    if recipe.source.is_stream:
        return f"{_UNKNOWN} the stream, {each}"
    if not _lists_at_once(loader.pipeline):
        return f"{_UNKNOWN}, {each}"
    epoch = loader.place.epoch
    windows = recipe.windows(loader.pipeline.of_epoch(epoch).listing.slices(), epoch)
    return f"{len(windows):,} of {format_bytes(int(windows.nbytes.sum()))}, {each}"


def _batches(loader: Loader) -> str:
    pipeline = loader.pipeline
    if pipeline.recipe.steps_per_epoch is None:
        if not _lists_at_once(pipeline):
            return _UNKNOWN
        if not _has_index(loader) and (loader.index is not None and not pipeline.counts_rows):
            return f"{_UNKNOWN}: the first epoch makes the index"
    total = pipeline.num_batches(loader.place.epoch)
    if total is None:
        return f"{_UNKNOWN}: there is no index"
    ranks = pipeline.assignment.ranks
    each = f", {ranks.rounds(total):,} for each of {ranks.world_size} ranks" if ranks.world_size > 1 else ""
    return f"{total:,}{each}"


def _fill(loader: Loader) -> str:
    """Return the fill of the batches so far; before there are any, that of the first window, by the index."""
    stats, pipeline = loader.stats(), loader.pipeline
    if stats.fill is not None:
        return f"{stats.fill:.2%} of the batches of the last iteration"
    if not _has_index(loader) or not _lists_at_once(pipeline):
        return _UNKNOWN
    epoch = loader.place.epoch
    pipeline = pipeline.of_epoch(epoch)
    windows = pipeline.recipe.windows(pipeline.listing.slices(), epoch)
    index = pipeline.lengths_index(anew=False)
    fill = index.fill(pipeline.recipe, windows[0], epoch) if len(windows) else None
    return _UNKNOWN if fill is None else f"about {fill:.2%}, that of the first window"


def _has_index(loader: Loader) -> bool:
    return loader.index is not None and loader.index.exists()


def _lists_at_once(pipeline: Pipeline) -> bool:
    """Return whether blocks are listed by metadata alone: filters look at rows, and formats without counts read
    them.
    """
    source = pipeline.recipe.source
    counted = source.where is None and not source.is_stream and source.num_rows is not None
    return counted or pipeline.listing.is_known
