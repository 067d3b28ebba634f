"""FileSet: the files of a source, opened together: which columns and types all give, and which files are damaged."""

import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
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

    def check_in_child(self, read: str) -> None:
        """Run `read(path)`, defined by the text `read`, on each file in a child process; a crash is damage."""
        copies = {self.store.local_copy(path): path for path in self.paths}
        for copy, reason in _damaged_in_child(tuple(copies), read):
            self._leave_out(copies[copy], DamagedFileError(reason.replace(copy, copies[copy])))

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


_PROGRAM = """
import sys
{read}
for number, path in enumerate(sys.stdin.buffer.read().split(b"\\0")[:-1]):
    print(number, flush=True)
    try:
        read(path.decode(errors="surrogateescape"))
    except Exception as error:
        sys.exit(f"{{type(error).__name__}}: {{error}}")
"""


def _damaged_in_child(paths: Sequence[str], read: str) -> Iterator[tuple[str, str]]:
    """Run `read(path)`, defined by the text `read`, on each path; yield each that fails, and the reason."""
    while paths:
        # through stdin: the arguments of a command have a limit of bytes
        names = b"".join(path.encode(errors="surrogateescape") + b"\0" for path in paths)
        command = [sys.executable, "-c", _PROGRAM.format(read=read)]
        done = subprocess.run(command, input=names, capture_output=True, check=False)
        if not done.returncode:
            return
        # each number is flushed before its file is read, so after a crash the last one names the file
        started = done.stdout.split()
        at = int(started[-1]) if started else 0
        said = done.stderr.decode(errors="replace").strip().splitlines()
        how = (
            f"its reader ended with signal {-done.returncode}" if done.returncode < 0 else "it can't be read"
        )
        yield paths[at], f"{paths[at]} is damaged: {how}: {said[0] if said else 'without a message'}"
        paths = paths[at + 1 :]
