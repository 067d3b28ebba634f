"""The sections of a job: a frozen dataclass for each, whose fields are the section's keys."""

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Annotated, Any, Literal

from seqflow.arguments import ByteSize, Count, PathText, Seconds, in_range, is_number
from seqflow.errors import OpError
from seqflow.hidden import hides_credentials
from seqflow.loader import BatchPlan, Buckets, Packed, Rows, Schedule, TokenBudget
from seqflow.output import MAX_THREADS
from seqflow.providers.formats.options import option_types


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSection:
    """Keys of [source] that say how one gets to files in a store. They decide no rows: a resume may have others."""

    storage_options: dict[str, Any] | None = field(default=None, repr=False)
    """Options of the store, a section [source.storage_options]: `aws_region`, `endpoint_url` and others, but no
    secrets, which are found in the environment."""
    cache: PathText | None = None
    """Folder that keeps what is fetched, for later epochs and runs; None keeps nothing."""
    cache_bytes: ByteSize | None = None
    """Most bytes of that folder (default: 16 GiB)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedSection:
    """Keys of [source] in the job of a trainer whose batches are made by servers, in place of all others: the
    arguments of `sf.served`. All that decides batches is in the job of the servers.
    """

    served: str | tuple[str, ...]
    """Servers: `"flight://a:8815,b:8815"`, or a list; with TLS `flight+tls://`."""
    token_file: PathText | None = None
    """File with the token that the servers expect."""
    tls_root: PathText | None = None
    """File of the root certificate (PEM); None takes those of the system."""
    ahead: ByteSize = "64 MiB"
    """Most bytes of batches that are read ahead."""
    timeout: Seconds = 60
    """Seconds to wait for a server, at most a day."""
    rank: int | None = None
    """Rank of this process; None takes that of the environment, as in `Ranks`."""
    world_size: int | None = None
    """Number of ranks; None takes that of the environment, else 1."""
    tail: Literal["drop", "pad", "repeat"] = "drop"
    """Treatment of an incomplete last round of ranks, as in `Ranks`."""


@hides_credentials
@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSection:
    """The source of the rows: the arguments of `sf.open`, and how null values are read."""

    paths: PathText | tuple[PathText, ...] = ()
    """Files, folders, globs and URIs, `s3://bucket/docs/*.parquet`; `{stdlib}` and the other names of
    `sysconfig.get_paths` stand for folders. Required, unless `kind` is a function that takes none."""
    columns: tuple[str, ...] | None = None
    """Columns to read, or fields of them, `docs.title`; None reads all."""
    where: str | None = None
    """Rows to keep: a condition on the source's columns, `lang == "py" and tokens.lengths > 30`."""
    kind: str | None = None
    """Kind of the source; None takes it from the suffixes; "text" reads any file as one row.
    `"module:function"` is your own function, of a module in the job's folder or an installed one, which makes
    the source of `paths` and `options`."""
    options: dict[str, Any] | None = None
    """Arguments for that function: a section [source.options]."""
    exclude: tuple[str, ...] = ()
    """Patterns of files to omit."""
    partitioning: tuple[str, ...] | None = None
    """Columns that nested folders name, `["year", "month"]` for `2024/05/`; folders `year=2024` need no such list."""
    rename: dict[str, str] | None = None
    """New names of columns by their old ones."""
    fill: Any = None
    """Values in place of nulls: a number, text, date or list for all columns that can hold it, or a table of
    such values by column, field or level."""
    valid: bool | tuple[str, ...] = False
    """Masks of nulls to add, `c.valid`, `c.values.valid`: true for all columns, or a list of columns."""
    schema: dict[str, str] | Literal["unify", "first"] | None = None
    """Types of columns: `"unify"` (None) takes those that hold the values of all files without loss, `"first"` those
    of the first file; a section [source.schema] declares some, `ids = "list<int64>"`, and the others are unified."""
    batch_bytes: ByteSize | None = None
    """Bytes that are read and prepared together if `kind` is a function; for files an option of their format."""
    format: str = field(default="", metadata={"is_key": False})
    """Format whose options are given, in a section such as [source.csv]; empty without one."""
    given: Mapping[str, Any] = field(default_factory=dict, metadata={"is_key": False})
    """Options of the format, of its section."""
    store: StoreSection = field(default_factory=StoreSection, metadata={"is_key": False})
    """How to get to files in a store."""
    served: "ServedSection | None" = field(default=None, metadata={"is_key": False})
    """Servers that make the batches, in place of all other keys."""

    def settings(self) -> dict[str, Any]:
        """Return the values of its keys and of all options of formats, by name, in the form in which runs are
        recorded.
        """
        keys = {one.name: getattr(self, one.name) for one in keys_of(type(self))}
        if self.schema == "unify":
            keys["schema"] = None
        return {**dict.fromkeys(option_types()), **keys, **self.given}


def keys_of(section: type) -> list[Field[Any]]:
    """Return the fields of a section that are keys of job files."""
    return [one for one in fields(section) if one.metadata.get("is_key", True)]


def _is_weight(value: Any) -> bool:
    return is_number(value) and value >= 0


@dataclass(frozen=True, slots=True, kw_only=True)
class MixSource:
    """Section `[[mix.sources]]`; its other keys are those of `[source]`."""

    name: str = ""
    """Name of the source in errors and traces; the paths if it is not given."""
    weight: Annotated[float, _is_weight, "a number, 0 or more"] | Schedule
    """Weight of the source: a number, 0 or more; or `{points = [[0, 0.8], [10_000, 0.2]], linear = true}`, the
    weight from each of these batches on, changing in a straight line to the next if `linear` is true."""
    source: SourceSection
    """All other keys of the section."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MixSection:
    """Several sources, each a section `[[mix.sources]]`, in place of `[source]`: the arguments of `Mix`."""

    sources: tuple[MixSource, ...]
    """Sources of the mix, each with its weight."""
    seed: int = 0
    """Seed that decides from which source each row, or each batch, comes."""
    stop: Literal["first", "all"] = "first"
    """End of the epoch: with the first exhausted source, or with the last one; the others then begin again."""
    column: str = "source"
    """Column with the number of the source that each row comes from; an empty text omits it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderSection:
    """Order of the rows, and how much of them is in memory at one time: arguments of `Loader`."""

    shuffle: bool = False
    """Whether rows are in random order inside a window, and blocks in random order; else the order of the source."""
    seed: int | None = None
    """Seed that decides that order (default: 0)."""
    by: str | None = None
    """Column whose equal values make groups of rows, which are shuffled in place of single rows."""
    window: ByteSize = "64 MiB"
    """Bytes of rows that are ordered, packed and cut into batches together."""
    memory: ByteSize | None = None
    """Bytes of windows read ahead and in use (default: three windows and one for each thread, at least four)."""
    threads: Annotated[int, in_range(0, MAX_THREADS), f"an integer, 0 to {MAX_THREADS}"] | None = None
    """Number of threads that read and make batches (default: one less than the cores, from 1 to 4)."""
    index: PathText | None = None
    """File with the lengths of all prepared rows, made in the first run, or by `seqflow index`."""

    def __post_init__(self) -> None:
        for name, value in (("seed", self.seed), ("by", self.by)):
            if value is not None and not self.shuffle:
                raise OpError.of(
                    f"order.{name}", "is given, but rows are not shuffled, expected shuffle = true"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class NetSection:
    """A net: its text, or the file that holds it."""

    net: str | None = None
    """Text of the net."""
    file: PathText | None = None
    """File with the text of the net."""

    def __post_init__(self) -> None:
        if self.net is not None and self.file is not None:
            raise OpError.of("net.file", "is given next to net, expected one of them")


@hides_credentials
@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSection:
    """The files that batches are written to."""

    path: PathText | None = None
    """Folder of part files with a manifest, or one file when it ends in .parquet or .arrow."""
    kind: Literal["parquet", "arrow", "none"] | None = None
    """Kind of the output; None takes it from the suffix of `path`, "parquet" for a folder; "none" writes nothing."""
    columns: tuple[str, ...] | None = None
    """Columns to write; None writes all."""
    sort_by: str | tuple[str, ...] | None = None
    """Columns by which all rows of all files are sorted; a leading "-" sorts in descending order: `["lang",
    "-score"]`."""
    partition_by: str | tuple[str, ...] | None = None
    """Columns whose values become folders, `lang=python/part-00000.parquet`; the files no longer contain them."""
    compression: Literal["none", "snappy", "gzip", "brotli", "lz4", "zstd"] | None = None
    """Compression; None is snappy for Parquet and no compression for Arrow."""
    threads: Annotated[int, in_range(1, MAX_THREADS), f"an integer, 1 to {MAX_THREADS}"] = 1
    """Number of threads that write, each a part file of its own; row groups are assigned to them in turn."""
    row_group_bytes: ByteSize = "16 MiB"
    """Approximate Arrow bytes of a row group."""
    part_bytes: ByteSize = "512 MiB"
    """Planned bytes of the source after which a part is closed, at the end of a window: if a run is killed, at
    most so much is lost, and what the last second wrote."""
    rows_per_file: Count | None = None
    """Rows of the source after which a part is closed, at the end of a window; for sorted or partitioned
    output, the exact number of rows in each file."""
    min_rows: Annotated[int, in_range(0), "an integer, 0 or more"] = 0
    """Smallest number of rows that a run must write; with fewer it ends with an error, before the output is
    complete."""
    storage_options: dict[str, Any] | None = field(default=None, repr=False)
    """Options of the store, a section [output.storage_options]: region, endpoint_url and others, but no secrets."""
    single_writer: bool = False
    """Promise that no other run writes there, for a store that cannot refuse a second one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSection:
    """How `seqflow serve` serves the batches; it decides no batch, and other servers may have another."""

    host: str = "127.0.0.1"
    """Address to listen at; one that other machines reach needs a token and TLS."""
    port: Annotated[int, in_range(0, 65535), "an integer, 0 to 65535"] = 8815
    """Port to listen at; 0 lets the system choose one. Further processes take the ports after it."""
    token_file: PathText | None = None
    """File with the token that clients must send; None lets all in."""
    tls_cert: PathText | None = None
    """File of the certificate (PEM), for TLS."""
    tls_key: PathText | None = None
    """File of its key (PEM)."""
    memory: ByteSize = "2 GiB"
    """Most bytes of batches that each process keeps for other clients."""
    processes: Count = 1
    """Number of processes, each with a port of its own: Python functions of nets use one core of each."""


BATCH_KINDS: Mapping[str, type[BatchPlan]] = {
    "rows": Rows,
    "tokens": TokenBudget,
    "buckets": Buckets,
    "packed": Packed,
}
"""Plans by kind. The keys of a kind are the arguments of its plan; for buckets also those of the inner plan,
which is TokenBudget if `max_tokens` is given, and otherwise Rows."""
