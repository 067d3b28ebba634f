"""KeyedRows: a source with the place of each row, and the numbers by which the rules of curation compare rows."""

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
from pyarrow import types

from seqflow import ops, providers
from seqflow.curation.rules import (
    COMPARISON,
    RULES,
    Decontaminate,
    Deduplicate,
    NearDuplicates,
    Rule,
    columns_of,
)
from seqflow.curation.values import hashes, record_of, scores
from seqflow.errors import MissingSourceError, ProviderOptionError, SeqflowError, UnknownColumnError
from seqflow.files.interface import Range
from seqflow.files.uris import is_uri
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.random_bits import output
from seqflow.ops.shared.strings import from_strings, to_strings
from seqflow.providers import Block, Provider
from seqflow.providers.bad_files import RAISE
from seqflow.providers.filter.dropped_rows import PLACE_BITS
from seqflow.providers.formats.options import FORMATS
from seqflow.providers.source import Source, Wanted
from seqflow.providers.store_options import STORE_OPTIONS
from seqflow.record import Record
from seqflow.record.arrow_types import TEXTS, is_any
from seqflow.record.selection import Table, select_schema, selection

PLACE = "place"
KEYS = ("high", "low")
SCORE, SHARE = ("score", "score_low"), "share"
TOO_SHORT = -1
"""Share, or band, of a row that has fewer words than an n-gram."""
# scripts that have no blanks between words: those of Unicode's line breaking class SA, and of East Asia
_LETTER = (
    r"([\p{Balinese}\p{Bopomofo}\p{Han}\p{Hiragana}\p{Javanese}\p{Katakana}\p{Khmer}\p{Lao}\p{Myanmar}"
    r"\p{New_Tai_Lue}\p{Tai_Le}\p{Tai_Tham}\p{Tai_Viet}\p{Thai}\p{Yi}]\pM*)"
)
_BETWEEN_WORDS = r"[^\pL\pM\pN]+"


def band(number: int) -> str:
    """Return the name of the column with the key of a band."""
    return f"band_{number:03}"


@dataclass(frozen=True, slots=True)
class KeyedBlock(Block):
    """A block of the source, and its number among all of its blocks."""

    inner: Block = field(kw_only=True)
    number: int = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class KeyedRows(Source):
    """Rows of a provider as int64 `place`, block number * 2**32 + row in the block, and the columns of some rules."""

    provider: Provider
    rules: tuple[Rule, ...]
    known: Array
    """uint64: hashes of the n-grams of evaluation sets, each once."""
    evaluation: str
    """Digest of these: other sets give other rows."""
    comparison: int = COMPARISON

    @property
    def num_rows(self) -> int | None:
        """Number of rows; None if it is not known before reading."""
        return self.provider.num_rows if self.provider.where is None else None

    @property
    def paths(self) -> tuple[str, ...]:
        """Files of the provider."""
        return self.provider.files

    @property
    def file_per_row(self) -> bool:  # type: ignore[override]
        """Whether each row is a file."""
        return self.provider.source.file_per_row

    @property
    def schema(self) -> pa.Schema:
        """The place, and the columns of each rule."""
        names = [name for rule in self.rules for name in _names(rule)]
        return pa.schema([(name, pa.float64() if name == SHARE else pa.int64()) for name in (PLACE, *names)])

    def blocks(self, schema: pa.Schema) -> Iterator[KeyedBlock]:
        """Yield the blocks of the provider, in order."""
        for number, one in enumerate(self.provider.blocks()):
            yield KeyedBlock(one.origin, one.index, one.num_rows, one.nbytes, inner=one, number=number)

    def stream(self, wanted: Wanted) -> Iterator[Table]:
        block, schema, bad_rows = wanted.block, wanted.schema, wanted.bad_rows
        assert isinstance(block, KeyedBlock)
        found = self.provider.read_kept(block.inner, bad_rows=bad_rows)
        columns = {PLACE: np.asarray(found.numbers, np.int64) + (block.number << PLACE_BITS)}
        tokens = {
            column: _tokens(found.table, column)
            for column in {rule.column for rule in self.rules if not isinstance(rule, Deduplicate)}
        }
        for rule in self.rules:
            if isinstance(rule, Deduplicate):
                columns |= _keys(found.table, rule)
            elif isinstance(rule, Decontaminate):
                ids, lengths = tokens[rule.column]
                shares = ops.ngram_overlap(ids, self.known, lengths, n=rule.ngram)
                columns[SHARE] = np.where(lengths < rule.ngram, TOO_SHORT, shares)
            else:
                columns |= _bands(*tokens[rule.column], rule)
        yield pa.table({name: columns[name] for name in schema.names}, schema)

    def ranges(self, block: Block, schema: pa.Schema) -> Collection[Range]:
        """Return what reading a block of a store will fetch."""
        assert isinstance(block, KeyedBlock)
        return self.provider.ranges(block.inner)

    def rows_of(self, block: Block) -> int | None:
        """Return the number of rows of a block, as the source tells it, also if it may be damaged."""
        assert isinstance(block, KeyedBlock)
        return self.provider.source.rows_of(block.inner) if self.provider.where is None else None

    def paths_of(self, block: Block) -> Sequence[str]:
        """Return the file of each row of a block."""
        assert isinstance(block, KeyedBlock)
        return self.provider.source.paths_of(block.inner)

    def content(self, schema: pa.Schema) -> Any:
        """Return values that are equal if the rows are; None if the provider has none."""
        return self.provider.content

    def of_files(self, paths: Collection[str]) -> Self:
        """Return the source with these files only; its blocks keep their numbers."""
        provider = self.provider.of_files(paths)
        return replace(self, provider=provider, store=provider.store)


def keyed(
    paths: Any = None, *, source: Mapping[str, Any], rules: Mapping[str, Mapping[str, Any]]
) -> Provider:
    """Return a provider of the keys of a source, `paths` with these options of `sf.open`, under some rules.

    This is a kind of sources for jobs, so all options are as in JSON: `format` is a name with options.
    """
    options = dict(source)
    if (form := options.pop("format", None)) is not None:
        options["format"] = FORMATS[form[0]](**form[1])
    kinds: Mapping[str, Callable[..., Rule]] = {rule.name: rule for rule in RULES}
    chosen = tuple(kinds[name](**_as_tuples(given)) for name, given in rules.items())
    access = {name: options[name] for name in STORE_OPTIONS if name in options}
    opened = providers.open(paths, **options)
    for rule in chosen:
        check_columns(rule, opened.schema)
    opened = replace(opened, schema=select_schema(opened.schema, columns_of(chosen)))
    known = next(
        (_grams_of(rule, access) for rule in chosen if isinstance(rule, Decontaminate)),
        np.zeros(0, np.uint64),
    )
    # damaged blocks are left out, and counted, by the provider of the keys
    strict = replace(opened, bad_files=RAISE)
    digest = hashlib.blake2b(known.tobytes(), digest_size=16).hexdigest()
    rows = KeyedRows(strict, chosen, known, digest, store=opened.store)
    return Provider(
        "keys", opened.origin, rows.schema, rows, bad_files=opened.bad_files, damaged=opened.damaged
    )


def _as_tuples(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}


def _names(rule: Rule) -> tuple[str, ...]:
    """Return the names of the columns that a rule makes."""
    if isinstance(rule, Decontaminate):
        return (SHARE,)
    if isinstance(rule, Deduplicate):
        return (*KEYS, *SCORE) if rule.score else KEYS
    return tuple(map(band, range(rule.shape[0])))


def _keys(table: Table, rule: Deduplicate) -> dict[str, Array]:
    found = dict(zip(KEYS, hashes(_record_of(table, rule)), strict=True))
    if rule.score:
        found |= dict(zip(SCORE, scores(_column(table, rule.score).combine_chunks()), strict=True))
    return found


def _record_of(table: Table, rule: Deduplicate) -> Record:
    """Return the columns and fields that are compared, as tensors."""
    return record_of(selection(table.schema, rule.columns).apply(table))


def _column(table: Table, path: str) -> pa.ChunkedArray:
    """Return a column, or a field of structs, which is null where one of these is."""
    import pyarrow.compute as pc

    chosen = pa.table(selection(table.schema, [path]).apply(table))
    found = chosen.column(0)
    for name in path.removeprefix(chosen.schema.names[0]).split(".")[1:]:
        # a text has parts, too: "text.values" is all of it
        found = pc.struct_field(found, [name]) if types.is_struct(found.type) else found
    return found


def _tokens(table: Table, column: str) -> tuple[Array, Array]:
    """Return int64 tokens and lengths: those of lists of integers, hashes of words in lists and texts."""
    found = _column(table, column)
    kind, record = found.type, record_of(pa.table({"column": found}))
    values, lengths = "column.values", record["column.lengths"]
    if is_text(kind):
        words = _words(record[values], lengths)
        return ops.hash_text(words.values, words.lengths), words.counts
    if is_text(kind.value_type):
        return ops.hash_text(record[f"{values}.values"], record[f"{values}.lengths"]), lengths
    return record[values].view(np.int64), lengths


def _words(data: Array, lengths: Array) -> Any:
    """Return the words of texts in lower case: runs of letters, marks and digits, or single letters of scripts that
    have no blanks between words.
    """
    import pyarrow.compute as pc

    # in this order: lower case of one text that is written in two ways would differ
    data, lengths = ops.lower(*ops.normalize(data, lengths, errors="replace"))
    apart = pc.replace_substring_regex(to_strings(data, lengths), pattern=_LETTER, replacement=r" \1 ")
    return ops.split_words(*from_strings(apart), pattern=_BETWEEN_WORDS)


def is_text(kind: pa.DataType) -> bool:
    """Return whether a type is of texts or bytes, encoded or not."""
    if types.is_dictionary(kind):
        kind = kind.value_type
    return is_any(kind, TEXTS)


def check_columns(rule: Rule, schema: pa.Schema) -> None:
    """Raise ProviderOptionError about an argument of a rule if columns of a schema are not there, or of types that it
    cannot compare.
    """
    of, none = type(rule).__name__, schema.empty_table()
    for argument, names in rule.columns_by_argument.items():
        for name in names:
            try:
                select_schema(schema, [name])
            except UnknownColumnError as error:
                raise ProviderOptionError.of(
                    f"{of}.{argument}", f"has {name!r}, and {error.message}"
                ) from None
    if isinstance(rule, Deduplicate):
        try:
            _record_of(none, rule)
        except SeqflowError as error:
            raise ProviderOptionError.of(f"{of}.columns", f"cannot be compared: {error.message}") from None
        if rule.score and not _is_ordered(kind := _column(none, rule.score).type):
            raise ProviderOptionError.of(
                f"{of}.keep", f"{rule.score!r} is {kind}, expected numbers or times to keep the highest"
            )
        return
    kind = _column(none, rule.column).type
    is_list = types.is_list(kind) or types.is_large_list(kind)
    if is_text(kind) or (is_list and (is_text(kind.value_type) or types.is_integer(kind.value_type))):
        return
    raise ProviderOptionError.of(
        f"{of}.column",
        f"{rule.column!r} is {kind}, expected texts, or lists of integers or texts",
        "a job before this one can join the texts of structs in a list (docs/curation.md)"
        if is_list and types.is_struct(kind.value_type)
        else "",
    )


def open_against(rule: Decontaminate | Deduplicate, access: Mapping[str, Any]) -> Provider:
    """Open the other files that rows are compared with; `access` are options of a store. Raise ProviderOptionError
    if there are none, or if they lack the columns, or have types that the rule cannot compare.
    """
    of = type(rule).__name__
    against = [rule.against] if isinstance(rule.against, str) else list(rule.against)
    columns = rule.columns if isinstance(rule, Deduplicate) else (rule.column,)
    try:
        found = providers.open(
            against, columns=list(columns), **(access if any(map(is_uri, against)) else {})
        )
    except MissingSourceError as error:
        raise ProviderOptionError.of(f"{of}.against", f"has nothing to read: {error}") from None
    except UnknownColumnError as error:
        raise ProviderOptionError.of(f"{of}.against", f"has files that do not fit: {error.message}") from None
    try:
        check_columns(replace(rule, keep="first") if isinstance(rule, Deduplicate) else rule, found.schema)
    except ProviderOptionError as error:
        raise ProviderOptionError.of(
            f"{of}.against", f"has files that do not fit: {error.message}", error.advice
        ) from None
    return found


def _is_ordered(kind: pa.DataType) -> bool:
    """Return whether a type is of numbers or times, decimals of up to 38 digits."""
    is_decimal = types.is_decimal(kind) and kind.precision <= 38
    is_time = types.is_temporal(kind) and not types.is_interval(kind)
    return bool(types.is_integer(kind) or types.is_floating(kind) or is_decimal or is_time)


def _grams_of(rule: Decontaminate, access: Mapping[str, Any]) -> Array:
    """Return the hashes of all n-grams of the evaluation sets, each once; `access` are options of a store."""
    provider = open_against(rule, access)
    found = [np.zeros(0, np.uint64)]
    for block in provider.ahead(provider.blocks()):
        tokens, lengths = _tokens(provider.read(block), rule.column)
        found.append(np.unique(ops.hash_ngrams(tokens, lengths, n=rule.ngram).values))
    return np.unique(np.concatenate(found))


def _bands(tokens: Array, lengths: Array, rule: NearDuplicates) -> dict[str, Array]:
    """Return a hash of each band of each row's signature; -1 for a row without n-grams."""
    bands, rows = rule.shape
    grams, counts = ops.hash_ngrams(tokens, lengths, n=rule.ngram)
    sketch = ops.minhash if rule.sketch == "minhash" else ops.one_permutation_minhash
    signature = sketch(grams, counts, num_perm=bands * rows, seed=rule.seed)
    found = {}
    for number in range(bands):
        state = np.zeros(len(counts), np.uint64)
        for column in range(number * rows, (number + 1) * rows):
            state = output(state, signature[:, column])
        found[band(number)] = np.where(counts > 0, (state >> np.uint64(1)).view(np.int64), TOO_SHORT)
    return found
