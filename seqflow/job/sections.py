"""The sections of a job: a frozen dataclass for each, whose fields are the section's keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, Literal

from seqflow.loader import BatchPlan, Buckets, Packed, Rows, Schedule, TokenBudget
from seqflow.providers.formats.options import option_types


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSection:
    """The source of the rows: the arguments of `sf.open`, and how null values are read."""

    paths: str | tuple[str, ...] = ()
    """Files, folders, globs and URIs `file:///…`; `{stdlib}` and the other names of `sysconfig.get_paths` stand for
    folders. Needed, unless `kind` is a function that takes none."""
    columns: tuple[str, ...] | None = None
    """The columns that are read, or fields of them, `docs.title`; None reads all."""
    where: str | None = None
    """Which rows are kept: a condition on the source's columns, `lang == "py" and tokens.lengths > 30`."""
    kind: str | None = None
    """None takes it from the suffixes; "text" reads any file as one row. `"module:function"` is a function of your
    own, in a module of the job's folder or an installed one, which makes the source of `paths` and `options`."""
    options: dict[str, Any] | None = None
    """Arguments for that function, a section [source.options]."""
    exclude: tuple[str, ...] = ()
    """Patterns of files that are left out."""
    partitioning: tuple[str, ...] | None = None
    """The columns that folders one inside the other give by their names, `["year", "month"]` for `2024/05/`; folders
    `year=2024` need no such list."""
    rename: dict[str, str] | None = None
    """New names of columns by their old ones."""
    fill: Any = None
    """What nulls become: a number, text, date or list for all columns that can hold it, or a table of such by column,
    field or level."""
    valid: bool | tuple[str, ...] = False
    """True, or a list of columns, asks for masks of nulls: `c.valid`, `c.values.valid`."""
    schema: dict[str, str] | None = None
    """Types of the columns of what the function of `kind` returns, `ids = "list<int64>"`; for files it is an option
    of their format."""
    batch_bytes: int | str | None = None
    """Bytes that are read, and prepared, together, of what the function of `kind` returns; for files it is an option
    of their format."""
    format: str = field(default="", metadata={"is_key": False})
    """The format whose options are given, in a section such as [source.csv]; empty for none, and for old keys."""
    given: Mapping[str, Any] = field(default_factory=dict, metadata={"is_key": False})
    """Options of a format: those of its section, or keys of [source] as they once were."""

    def settings(self) -> dict[str, Any]:
        """Return the values of its keys and of all options of formats, by name, as records of runs have them."""
        keys = {one.name: getattr(self, one.name) for one in keys_of(type(self))}
        return {**dict.fromkeys(option_types()), **keys, **self.given}


def keys_of(section: type) -> list[Field[Any]]:
    """Return the fields of a section that are keys of job files."""
    return [one for one in fields(section) if one.metadata.get("is_key", True)]


@dataclass(frozen=True, slots=True, kw_only=True)
class MixSource:
    """A section `[[mix.sources]]`; its other keys are those of `[source]`."""

    name: str = ""
    """Its name in errors and traces; the paths where it is not given."""
    weight: float | Schedule
    """A number above 0; or `{points = [[0, 0.8], [10_000, 0.2]], linear = true}`, the weight from each of these
    batches on, in a straight line to the next where `linear` says so."""
    source: SourceSection
    """The other keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixSection:
    """Several sources, each a section `[[mix.sources]]`, in place of `[source]`: the arguments of `Mix`."""

    sources: tuple[MixSource, ...]
    """The sources, each with its weight."""
    seed: int = 0
    """Decides from which source each row, or each batch, comes."""
    stop: Literal["first", "all"] = "first"
    """Whether the epoch ends with the source that is exhausted first, or with the last; others then begin again."""
    column: str = "source"
    """The column with the number of the source that each row comes from; an empty text leaves it out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSection:
    """The order of the rows, and how much of them is in memory at once: arguments of `Loader`."""

    shuffle: bool = False
    """Rows in a random order inside a window, and blocks in a random order; else the order of the source."""
    seed: int | None = None
    """Decides that order; 0 where it is not given."""
    window: int | str = "64 MiB"
    """Bytes of rows that are ordered, packed and cut into batches together."""
    memory: int | str | None = None
    """Bytes of windows read ahead and in use; None is four windows."""
    threads: int | None = None
    """Number of threads that read and make batches; None is one less than the cores, at least 1 and at most 4."""
    index: str | None = None
    """A file with the lengths of all prepared rows, made in the first run, or by `seqflow index`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NetSection:
    """A net: its text, or the file that holds it."""

    net: str | None = None
    """The text of the net."""
    file: str | None = None
    """The file with the text of the net."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSection:
    """The files that batches are written to."""

    path: str | None = None
    """A folder of part files with a manifest, or one file when it ends in .parquet or .arrow."""
    kind: Literal["parquet", "arrow", "none"] | None = None
    """None takes it from the suffix of `path`, and is "parquet" for a folder; "none" writes nothing."""
    columns: tuple[str, ...] | None = None
    """The columns that are written; None writes all."""
    sort_by: str | tuple[str, ...] | None = None
    """Columns by which all rows are sorted, over all files; a leading "-" counts down: `["lang", "-score"]`."""
    partition_by: str | tuple[str, ...] | None = None
    """Columns whose values become folders, `lang=python/part-00000.parquet`; the files don't have them any more."""
    compression: Literal["none", "snappy", "gzip", "brotli", "lz4", "zstd"] | None = None
    """None is snappy for Parquet and no compression for Arrow."""
    threads: int = 1
    """Each thread writes a part file of its own; row groups go to them in turn."""
    row_group_bytes: int | str = "16 MiB"
    """Arrow bytes of a row group, about."""
    part_bytes: int | str = "512 MiB"
    """Bytes of the source, as they are planned, from which on a part is closed, at the end of a window: so much, and
    what came in the last second, is lost when a run is killed."""
    rows_per_file: int | None = None
    """Rows of the source from which on a part is closed, at the end of a window; of sorted or partitioned output
    rows of each file, exactly."""


BATCH_KINDS: Mapping[str, type[BatchPlan]] = {
    "rows": Rows,
    "tokens": TokenBudget,
    "buckets": Buckets,
    "packed": Packed,
}
"""The keys of a kind are the arguments of its plan; for buckets also those of the plan inside, which is TokenBudget
where there is `max_tokens`, and else Rows."""
