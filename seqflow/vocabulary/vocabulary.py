"""Vocabulary: a mapping of integer or string keys to ids."""

import os
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from pyarrow import compute

from seqflow import registry
from seqflow.arguments import FilePath, checked
from seqflow.drawing.tables import html_table, text_table
from seqflow.errors import OpError, OpTypeError, ProviderError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.vocabulary_table import table_of_integers, table_of_strings
from seqflow.output.durable_files import NewFile, temporary_path, writing
from seqflow.record.validation import reading, validated
from seqflow.vocabulary.counting import count, keys_of_column, most_frequent
from seqflow.vocabulary.keys import STRINGS, as_keys, bytes_of

_SHOWN, _LONGEST = 12, 40
"""Number of keys that are shown, and of characters of each."""


@checked()
class Vocabulary:
    """Ids for keys, all integers or all strings: 1, 2, 3, … in the order in which they were added; 0 is unknown.

    `size` counts the ids, including 0: an embedding table needs this many rows. `max_size` limits it. Keys
    are integers or texts in NumPy, Arrow, Python or a Sequence, or the uint8 values of strings with their
    `lengths`; texts are their UTF-8 bytes.

    While it is open, `add` gives ids to new keys. After `freeze`, `table` is the whole vocabulary as one
    array, for the ops `encode` and `encode_strings`, and as a constant in nets.

    Args:
        keys: First keys, ids 1, 2, 3, … in this order: integers or texts in NumPy, Arrow, Python or a
            Sequence.
        max_size: Largest `size`; None for any.

    >>> vocabulary = Vocabulary()
    >>> vocabulary.add(["os", "re", "os"])
    array([1, 2, 1])
    >>> vocabulary.freeze().encode(["re", "numpy"])
    array([2, 0])
    """

    __slots__ = ("_counts", "_frozen", "_keys", "_table", "max_size")

    def __init__(self, keys: Any = (), *, max_size: int | None = None) -> None:
        if max_size is not None and max_size < 1:
            raise OpError(f"max_size is {max_size}, expected 1 or more: id 0 is one")
        self.max_size = max_size
        self._keys: pa.Array = pa.nulls(0)
        self._counts: pa.Array | None = None
        """Number of occurrences of each key in the source it was built from."""
        self._frozen = False
        self._table: Array | None = None
        self.add(keys)

    @classmethod
    def build(
        cls, source: Any, column: str | None = None, *, min_count: int = 1, max_size: int | None = None
    ) -> "Vocabulary":
        """Build a frozen vocabulary of the keys that occur `min_count` times or more, the most frequent first.

        Keys that occur equally often are in ascending order, so the order of rows, blocks and files does not matter.
        With `max_size` the rarest are left out. `source` is keys or, with `column`, any source of `seqflow.open`,
        which is read block by block. `column` names lists at any depth, or a part: `imports.keys`, `imports.values`.
        Nulls are left out.

        >>> Vocabulary.build(["re", "os", "re", "abc"], max_size=3).keys
        ['re', 'abc']
        """
        if min_count < 1:
            raise OpError(f"min_count is {min_count}, expected 1 or more")
        cls(max_size=max_size)  # refused before anything is read
        counts = count([as_keys(source)] if column is None else keys_of_column(source, column))
        return cls.of_counts(counts, min_count, max_size)

    @classmethod
    def of_counts(cls, counts: pa.Table, min_count: int = 1, max_size: int | None = None) -> "Vocabulary":
        """Return the frozen vocabulary of keys that `counting.count` has counted, with their counts, as `build`."""
        made = cls(max_size=max_size)
        made._keys, made._counts = most_frequent(
            counts, min_count, None if max_size is None else max_size - 1
        )
        return made.freeze()

    @property
    def size(self) -> int:
        """Number of ids, including 0."""
        return len(self._keys) + 1

    @property
    def keys(self) -> list[int] | list[str] | list[bytes]:
        """The keys in the order of their ids: id 1 first. Strings are texts if all of them are UTF-8."""
        keys: list[Any] = self._keys.to_pylist()
        if self._keys.type != STRINGS:
            return keys
        try:
            return [text.decode() for text in keys]
        except UnicodeDecodeError:
            return keys

    @property
    def is_frozen(self) -> bool:
        """Whether keys can no longer be added."""
        return self._frozen

    def freeze(self) -> "Vocabulary":
        """Allow no more keys; return the vocabulary itself."""
        self._frozen = True
        return self

    def add(self, keys: Any, lengths: Any = None) -> Array:
        """Return the ids of keys; new keys get the next ids, in the order of their first occurrence.

        Raises OpError, without adding a key, when it is frozen or would need more than `max_size` ids.
        """
        added = as_keys(keys, lengths)
        if self._frozen:
            raise OpError("the vocabulary is frozen, no key can be added\n  `encode` gives unknown keys id 0")
        self._check_kind(added)
        unknown = compute.unique(added.filter(pa.array(self._find(added) == 0)))
        if self.max_size is not None and self.size + len(unknown) > self.max_size:
            first = unknown[self.max_size - self.size].as_py()
            raise OpError(
                f"the vocabulary has {self.size} of {self.max_size} ids (max_size), none is left for"
                f" {first!r}: {len(unknown)} keys are new"
            )
        if len(unknown):
            self._keys = pa.concat_arrays([self._keys, unknown]) if len(self._keys) else unknown
            self._table = None
        return self._find(added)

    def encode(
        self, keys: Any, lengths: Any = None, *, on_unknown: Literal["zero", "raise"] = "zero"
    ) -> Array:
        """Return the ids of keys, 0 for unknown ones; with `on_unknown="raise"`, unknown keys raise an error."""
        asked = as_keys(keys, lengths)
        self._check_kind(asked)
        return self._find(asked, on_unknown)

    @property
    def table(self) -> Array:
        """The frozen vocabulary as one read-only array of bytes, for `encode` and for nets; OpError while it is open.

        `np.save` writes it, and `np.load(mmap_mode="r")` maps it without reading it.
        """
        if not self._frozen:
            raise OpError("the vocabulary is open, its table would change\n  freeze() it first")
        return self._made_table()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.table, dtype, copy=copy)

    def save(self, path: FilePath) -> None:
        """Write an Arrow file with the columns `id` and `key`, and `count` if `build` has counted the keys.

        It appears whole or not at all.
        """
        write_keys(Path(path), self._keys, self._counts, self.max_size, self._frozen)

    @classmethod
    def load(cls, path: FilePath, *, min_count: int = 1) -> "Vocabulary":
        """Read a vocabulary that `save` wrote; raise ProviderError for other files.

        `min_count` leaves out keys that occurred less often, as in `build`; OpError when the file has no counts.
        """
        made = cls()
        made._keys, made._counts, made.max_size, made._frozen = read_keys(Path(path))
        if min_count > 1:
            if made._counts is None:
                raise OpError(
                    f"min_count is {min_count}, but {path} has no counts\n  `build` counts the keys"
                )
            frequent = compute.greater_equal(made._counts, min_count)
            made._keys, made._counts = made._keys.filter(frequent), made._counts.filter(frequent)
        return made

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same keys with the same ids."""
        return isinstance(other, Vocabulary) and self._keys.equals(other._keys)

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        kept = {
            "_keys": self._keys,
            "_counts": self._counts,
            "max_size": self.max_size,
            "_frozen": self._frozen,
        }
        return {**kept, "_table": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        """Return the size, and the first ids with their keys: the most frequent ones first if `build` has made it."""
        return text_table(self._title(), [self._header(), *self._head()])

    def _repr_html_(self) -> str:
        return html_table(self._title(), self._header(), self._head())

    def _title(self) -> str:
        most = "" if self.max_size is None or self._frozen else f" of {self.max_size:,}"
        return f"Vocabulary of {self.size:,}{most} ids, {'frozen' if self._frozen else 'open'}"

    def _header(self) -> tuple[str, ...]:
        return ("id", "key") if self._counts is None else ("id", "key", "count")

    def _head(self) -> list[tuple[object, ...]]:
        """Return the rows of the first ids, and the number of the others."""
        shown = [_shown(key) for key in self._keys.slice(0, _SHOWN).to_pylist()]
        counts = [None] * len(shown) if self._counts is None else self._counts.slice(0, _SHOWN).to_pylist()
        rows: list[tuple[object, ...]] = [(0, "unknown", "")]
        rows += zip(range(1, len(shown) + 1), shown, counts, strict=True)
        left = len(self._keys) - len(shown)
        rows += [("…", f"{left:,} more", "")] if left else []
        return [row[: len(self._header())] for row in rows]

    def _check_kind(self, keys: pa.Array) -> None:
        if len(keys) and len(self._keys) and keys.type != self._keys.type:
            found, expected = _kind(keys), _kind(self._keys)
            raise OpTypeError(f"keys are {found}, but those of the vocabulary are {expected}")

    def _made_table(self) -> Array:
        if self._table is None:
            strings = self._keys.type == STRINGS
            made = (
                table_of_strings(*bytes_of(self._keys)) if strings else table_of_integers(_int64(self._keys))
            )
            made.flags.writeable = False
            self._table = made
        return self._table

    def _find(self, keys: pa.Array, on_unknown: str = "zero") -> Array:
        if not len(keys):
            return np.empty(0, np.int64)
        name, inputs = (
            ("encode_strings", bytes_of(keys)) if keys.type == STRINGS else ("encode", (_int64(keys),))
        )
        ids: Array = registry.get(name).call(*inputs, self._made_table(), on_unknown=on_unknown)
        return ids


def _shown(key: int | bytes) -> str:
    text = repr(key if isinstance(key, int) else key.decode(errors="replace"))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _kind(keys: pa.Array) -> str:
    return "strings" if keys.type == STRINGS else "integers"


def _int64(keys: pa.Array) -> Array:
    return keys.to_numpy() if len(keys) else np.empty(0, np.int64)


_FORMAT = b"seqflow.vocabulary"
_VERSION = b"1"
_COLUMNS = ["id", "key"], ["id", "key", "count"]


def write_keys(
    path: Path, keys: pa.Array, counts: pa.Array | None, max_size: int | None, frozen: bool
) -> None:
    """Write the file under another name, then rename it."""
    settings = {_FORMAT: _VERSION, b"frozen": str(frozen).lower(), b"max_size": str(max_size or "")}
    columns = {"id": pa.array(np.arange(1, len(keys) + 1)), "key": _readable(keys)}
    columns |= {} if counts is None else {"count": counts}
    table = pa.table(columns).replace_schema_metadata(settings)
    temporary = temporary_path(path)
    try:
        with writing(path):
            with closing(NewFile(temporary)) as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _readable(keys: pa.Array) -> pa.Array:
    """Return strings as texts if all of them are UTF-8: other readers of Arrow then show them."""
    if keys.type != STRINGS:
        return keys
    try:
        return compute.cast(keys, pa.large_string())
    except pa.ArrowInvalid:
        return keys


def read_keys(path: Path) -> tuple[pa.Array, pa.Array | None, int | None, bool]:
    """Return the keys, their counts (None if the file has none), `max_size`, and whether they are frozen.

    Raise ProviderError for files of other origin.
    """
    with reading(str(path), "make it again"), pa.OSFile(str(path)) as file:
        table = validated(pa.ipc.open_file(file).read_all(), str(path))
    settings = table.schema.metadata or {}
    if settings.get(_FORMAT) != _VERSION or table.column_names not in _COLUMNS:
        raise ProviderError(f"{path} is not a vocabulary written by Vocabulary.save")
    if not table["id"].equals(pa.chunked_array([np.arange(1, len(table) + 1)])):
        raise ProviderError(f"{path}: the column id is not 1, 2, 3, …")
    try:
        keys = as_keys(table["key"])
    except OpError as error:
        raise ProviderError(f"{path}: {error}") from error
    twice = len(keys) - len(compute.unique(keys))
    if twice:
        raise ProviderError(f"{path}: {twice} keys occur more than once")
    max_size = settings.get(b"max_size", b"")
    counts = table["count"].combine_chunks() if "count" in table.column_names else None
    if counts is not None and (counts.type != pa.int64() or counts.null_count):
        raise ProviderError(f"{path}: the column count is {counts.type}, expected int64 without nulls")
    return keys, counts, int(max_size) if max_size.isdigit() else None, settings.get(b"frozen") == b"true"
