"""FileSet: the files of a source, opened together: which columns and types all give, and which files are damaged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import pyarrow as pa

from seqflow.errors import DamagedFileError, ProviderError, UnknownColumnError
from seqflow.files.interface import LOCAL, Entry, Files
from seqflow.files.uris import is_uri
from seqflow.providers.bad_files import RAISE, BadFile, BadFiles
from seqflow.providers.folders import FolderKeys
from seqflow.providers.provider import Provider, origin_of
from seqflow.providers.schemas import UNIFY, Common, SchemaPolicy, common_selections
from seqflow.providers.source import Source
from seqflow.record.selection import ALL, Picked, Selection

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FileSet:
    """Files of one format, in order, and how they are opened: the argument of `Format.open`."""

    paths: tuple[str, ...]
    picked: Picked = ALL
    schema: SchemaPolicy = UNIFY
    bad_files: BadFiles = RAISE
    store: Files = LOCAL
    """Where the files lie."""
    damaged: dict[str, BadFile] = field(default_factory=dict)
    """The damaged files found so far, by path."""
    keys: FolderKeys | None = None
    """Values in the names of the files' folders, which are columns too."""
    common: list[Common] = field(default_factory=list)
    """The columns that the files give together, once they are known."""

    def each(self, open_file: Callable[[str], T]) -> dict[str, T]:
        """Open each file; leave out damaged ones if the policy says so. Raise DamagedFileError if none is left."""
        found: dict[str, T] = {}
        try:
            for path in self.paths:
                if path in self.damaged:
                    continue
                try:
                    found[path] = open_file(path)
                except DamagedFileError as error:
                    self._leave_out(path, error)
        finally:
            self.store.drop(self.store)
        self.bad_files.check(self.damaged.values())
        if not found:
            first = self.damaged[self.paths[0]]
            raise DamagedFileError(
                f"all files are damaged ({len(self.paths):,}), the first: {first}",
                advice="%(kind)s reads files whose suffix is that of another format",
            )
        return found

    def plan(self, start_of: Callable[[Entry], int]) -> None:
        """Fetch the files of a store ahead, each from this byte to its end, before `each` reads them one by one."""
        entries = filter(None, map(self.store.entry, filter(is_uri, self.paths)))
        self.store.plan(((one.path, start_of(one), one.size) for one in entries), self.store)

    def _leave_out(self, path: str, error: DamagedFileError) -> None:
        if not self.bad_files.leaves_out:
            raise error
        self.damaged[path] = BadFile.of(path, None, error)

    def selections(
        self, schemas: Mapping[str, pa.Schema], *, rows_lack: bool = False
    ) -> dict[str, Selection]:
        """Return what to read from each of these files, so that all give the same columns and types.

        With `rows_lack`, a row need not have all columns of its file. Raise ProviderError if no file has a column,
        since rows without columns are not counted.
        """
        if not any(map(len, schemas.values())):
            raise ProviderError(f"{next(iter(schemas))} has no columns")
        try:
            found = common_selections(schemas, self.picked, self.schema, self.keys, rows_lack=rows_lack)
        except UnknownColumnError as error:
            of_more = f" and {len(schemas) - 1} more" if len(schemas) > 1 else ""
            raise UnknownColumnError(f"{next(iter(schemas))}{of_more}: {error.message}") from None
        self.common[:] = [found]
        return found.selections

    def provider(self, kind: str, source: Source, inferred: str = "") -> Provider:
        """Return a provider of the files that are left, whose columns `selections` has found."""
        (common,) = self.common
        left = [path for path in self.paths if path not in self.damaged]
        return Provider(
            kind,
            origin_of(left),
            common.schema,
            source if common.folders is None else replace(source, folders=common.folders),
            inferred=inferred,
            bad_files=self.bad_files,
            damaged=tuple(self.damaged.values()),
            notes=tuple(common.notes),
        )
