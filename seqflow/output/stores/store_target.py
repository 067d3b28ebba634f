"""StoreTarget: an output in an object store, whose parts are uploaded under their final names while a run goes on."""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from seqflow.errors import JobError, SeqflowError
from seqflow.files.interface import Entry
from seqflow.files.outputs import LOG, MANIFEST, last_manifest
from seqflow.files.store import StoreFiles
from seqflow.files.uris import join, split
from seqflow.files.writing import StoreWriter
from seqflow.hidden import shown
from seqflow.output.attempt_folders import new_name
from seqflow.output.committed_files import committed_path, schema_of
from seqflow.output.committed_files import join as join_pieces
from seqflow.output.file_writer import FileEncoding, FileKind, FileWriter
from seqflow.output.output_file import Batches, OutputFile
from seqflow.output.output_names import OutputNames, names_in
from seqflow.output.overwriting import normal
from seqflow.output.progress_file import FORMAT, Change
from seqflow.output.stores.progress_log import ProgressLog
from seqflow.output.stores.spool import Spool
from seqflow.output.stores.store_attempts import StoreAttempts
from seqflow.version import __version__


class StoreTarget:
    """A prefix of a store that holds `part-00000.parquet`, … and `_manifest.json`; or one object.

    A part is written to a spool on this machine and uploaded under its final name. Sorted runs, and pieces of one
    file, get hidden names, and those of a single object lie in a hidden prefix next to it. The log has the record;
    the manifest is written last. An append writes a manifest of the next number: the one of the highest number holds.

    A prefix with a log and without a manifest is not complete. Nothing is renamed: a run that replaces a complete
    output removes its manifest and its parts at the beginning.
    """

    def __init__(
        self,
        uri: str,
        encoding: FileEncoding,
        is_file: bool,
        options: Mapping[str, Any] | None,
        *,
        is_single: bool,
    ) -> None:
        """`is_single` promises that no other run writes there, for a store that cannot refuse one."""
        self._uri = normal(uri)
        above, _, name = self._uri.rpartition("/")
        self._root = f"{above}/.{name}" if is_file else self._uri
        self._is_single = is_single
        self._files = StoreFiles(options)
        self._store = StoreWriter(self._files, is_conditional=not is_single)
        self._spool = Spool(self._store, self.place, lambda: self._log.check())
        folder = self._spool.folder
        self.names = OutputNames(folder / name if is_file else folder, encoding, is_file)
        self._log = ProgressLog(self._store, join(self._root, LOG), self.shown)
        own = "" if is_file else r"(?:[^/]+=[^/]*/)*"
        self._own = re.compile(
            rf"{own}(?:{self.names.part_names})|\.run-\d+(?:-\d+)?|\.tasks-[0-9a-f]{{16}}/.+"
        )

    @property
    def shown(self) -> str:
        return shown(self._uri)

    @property
    def progress(self) -> str:
        return shown(join(self._root, LOG))

    def place(self, file: OutputFile) -> str:
        name = file.stored or self.names.name_of(file)
        if file.path == self.names.path:
            return self._uri
        # readers skip names that begin with a dot
        return join(self._root, f".{name}" if name.startswith("run-") else name)

    def _listed(self) -> dict[str, Entry]:
        """Return the objects of the output by their names, without a single object itself."""
        return {entry.path[len(self._root) + 1 :]: entry for entry in self._store.list(self._root)}

    # The state of the output

    @property
    def has_output(self) -> bool:
        return bool(self._manifests() or self._single())

    @property
    def has_progress(self) -> bool:
        return self._log.has_record

    def _single(self) -> list[Entry]:
        """Return the single object; nothing if there is none, or the output is a prefix."""
        found = self._store.find(self._uri) if self.names.is_file else None
        return [] if found is None else [Entry(self._uri, found.size, found.version)]

    def _manifests(self) -> list[str]:
        return list(filter(MANIFEST.fullmatch, self._listed()))

    def read_manifest(self) -> dict[str, Any] | None:
        if (name := last_manifest(self._listed())) is None:
            return None
        try:
            found = json.loads(self._store.get(join(self._root, name)) or b"")
        except (ValueError, RecursionError):
            return None
        return self.names.manifest_in(found, next((one.size for one in self._single()), None))

    def read_progress(self) -> dict[str, Any] | None:
        self._spool.wait()
        return self.names.progress_in(self._log.record)

    def damaged_files(self, record: Mapping[str, Any]) -> list[OutputFile]:
        return self._damaged(self.names.files(record["files"]))

    damaged_commits = damaged_files

    def _damaged(self, files: Sequence[OutputFile]) -> list[OutputFile]:
        """Return the files whose objects are missing or changed."""
        return self._spool.damaged(files, [*self._listed().values(), *self._single()])

    # One run at a time

    def check(self) -> None:
        self._log.read()
        self._check_foreign()

    def _check_foreign(self) -> None:
        """Raise JobError when there are data files that neither manifest nor record lists, and no killed run left."""
        if self.names.is_file:
            return
        named = names_in(self.read_manifest()) | names_in(self.read_progress())
        # a killed run may have uploaded parts without noting them
        left = self._own if self._log.has_begun else re.compile(r"(?!)")
        foreign = sorted(
            name
            for name in self._listed()
            if name.endswith((".parquet", ".arrow")) and "/." not in f"/{name}"
            if name not in named and not left.fullmatch(name)
        )
        if foreign:
            raise JobError(
                f"output: {self.shown!r} holds {foreign[0]!r}, which its manifest does not list\n"
                "  choose an empty or new prefix"
            )

    def prepare(self, *, takes_over: bool) -> None:
        self.check()
        probe = join(self._root, LOG, f"probe-{new_name()}")
        if not self._is_single and not self._store.is_conditional(probe):
            raise JobError(
                f"output: {split(self.shown)[0]} ignores If-None-Match, so two runs could write there at once\n"
                "  single_writer = true in [output] promises that none will"
            )
        self._spool.open()
        try:
            self._log.claim(takes_over=takes_over)
            self._check_foreign()
        except BaseException:
            self.leave()
            raise

    def attempts_folder(self, run: str) -> StoreAttempts:
        return StoreAttempts(self._root, f".tasks-{run}", self._store, self._log)

    def leave(self) -> None:
        try:
            with suppress(SeqflowError):  # the run has ended by it
                self._spool.wait()
                if self._log.is_held and self._log.has_record:
                    self._log.release()
                elif self._log.is_held:
                    self.keep_committed(())
                    self._log.save(None, ended=True)
        finally:
            self._spool.close()

    # Parts

    def commit(self, writer: FileWriter, path: Path, batches: Batches | None = None) -> OutputFile:
        local = committed_path(writer.piece)
        file = writer.finish(local, path, batches)
        self._spool.later(self._upload, file, local)
        return file

    def adopt(self, file: OutputFile, path: Path) -> OutputFile:
        named = replace(file, path=path)
        if self._is_merged(named):  # it stays where the worker has put it
            return named
        own = replace(named, stored="")
        if self.place(own) != self.place(named):
            self._spool.later(self._move, named, own)
        return own

    def _move(self, file: OutputFile, own: OutputFile) -> None:
        """Give a part the name that it has, since earlier parts have fewer files than its worker had to assume."""
        local = committed_path(own.path)
        self._store.fetch(self.place(file), local)
        self._upload(own, local)

    def _upload(self, file: OutputFile, local: Path) -> None:
        self._spool.upload(file, local)
        if not self._is_merged(file):
            local.unlink()

    def _is_merged(self, file: OutputFile) -> bool:
        """Whether a file is a piece or a sorted run, which is read again at the end."""
        return self.names.is_file or file.path.name.startswith("run-")

    def sync(self) -> None:
        """Do nothing: the thread notes parts after it has uploaded them."""

    def committed(self, files: Sequence[OutputFile]) -> list[Path]:
        self._spool.wait()
        return self._spool.fetch(files)

    def schema_of(self, files: Sequence[OutputFile], kind: FileKind) -> pa.Schema | None:
        return schema_of(self._files.random(self.place(files[0])), kind) if files else None

    def schema_of_final(self, file: OutputFile) -> pa.Schema:
        return schema_of(self._files.random(self.place(file)), self.names.kind)

    def keep_committed(self, parts: Sequence[OutputFile]) -> None:
        self._spool.wait()
        kept = {self.place(file) for file in parts}
        kept |= {join(self._root, name) for name in names_in(self.read_manifest())}
        left = [entry.path for name, entry in self._listed().items() if self._own.fullmatch(name)]
        self._store.delete(path for path in left if path not in kept)

    # The record

    def save_progress(self, content: Mapping[str, Any]) -> None:
        self._spool.later(self._save, {"progress": FORMAT, "seqflow": __version__, **content})

    def _save(self, content: Mapping[str, Any]) -> None:
        self._log.save({**content, "files": self._with_etags(content["files"])})

    def append_progress(self, change: Change, files: Sequence[OutputFile]) -> None:
        entries = self.names.entries(files)
        self._spool.later(self._append, change, entries)

    def _append(self, change: Change, entries: Sequence[Mapping[str, Any]]) -> None:
        extend = {**change.extend, "files": self._with_etags(entries)} if entries else change.extend
        self._log.append(replace(change, extend=extend))

    def _with_etags(self, entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        etags, folder = self._spool.etags, self.names.folder
        return [{**one, "etag": etags.get(folder / one["name"], one.get("etag", ""))} for one in entries]

    def note(self, key: str, value: Any) -> None:
        self._spool.later(self._append, Change(set={key: value}), ())
        # what is noted counts as done by whatever follows, such as the removal of the pieces of a joined file
        self._spool.wait()

    # The end

    def install(self, content: Mapping[str, Any]) -> list[OutputFile]:
        self._spool.wait()
        self._log.check()
        former, parts = self.names.files(content["former"]), self.names.files(content["files"])
        if self.names.is_file:
            parts = self._joined(parts)
        parts = [*former, *self.names.files(self._with_etags(self.names.entries(parts)))]
        if damaged := self._damaged(parts):
            raise JobError(
                f"output: {shown(self.place(damaged[0]))!r} is not as it was written: something else has changed or "
                "removed it\n  --overwrite begins again"
            )
        before = self._manifests()
        if not self.names.is_file or "job" in content:
            manifest = (json.dumps(self.names.manifest_of(parts, content), indent=2) + "\n").encode()
            name = last_manifest(before) or "_manifest.json"
            if before and self._store.get(join(self._root, name)) != manifest:
                name = f"_manifest-{self._log.claim_number:08}.json"
            if self._store.create(join(self._root, name), manifest) is not None:
                self._log.check()
                raise JobError(f"output: another run has written {join(self.shown, name)!r}")
            before = [one for one in before if one != name]
        # after the manifest: a crash between leaves too many objects, never too few
        stale = set(content["stale"]) - {self.names.name_of(part) for part in parts}
        self._store.delete(join(self._root, one) for one in (*before, *stale))
        self._log.save(None, ended=True)
        if self.names.is_file:
            self.keep_committed(())
        return parts

    def _joined(self, pieces: Sequence[OutputFile]) -> list[OutputFile]:
        """Join the pieces of a single object, and upload it in place of an earlier one."""
        self.committed(pieces)
        made: list[OutputFile] = []
        join_pieces(pieces, self.names.path, self.names.encoding, made.append)
        for file in made:
            self._spool.upload(file, file.path)
        return made

    def abandon(self) -> None:
        self._spool.wait()
        # the record first: one that lists parts which are removed would be that of a damaged output
        if self._log.has_record or self._manifests():
            self._log.save(None)
        self._store.delete(join(self._root, name) for name in self._manifests())
        self.keep_committed(())
