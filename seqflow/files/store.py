"""Objects of stores: listed, pinned at their versions, and read in ranges, or as open files."""

import atexit
import io
import os
import re
import shutil
import sys
import tempfile
import uuid
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, groupby
from typing import IO, Any
from urllib.parse import unquote

import pyarrow as pa

from seqflow.errors import ProviderError, StoreError
from seqflow.files.ahead import LARGEST, Ahead, Piece, Span, split_spans
from seqflow.files.cache import Cache
from seqflow.files.clients import Client, Found, client_of_system, client_of_uri, list_all
from seqflow.files.errors import RequestPlace, again, is_below_file, missing
from seqflow.files.interface import Entry, Files, Range
from seqflow.files.options import RETRY_SECONDS, secret_in, store_options
from seqflow.files.systems import key_in, uri_in
from seqflow.files.uris import is_uri, split, without_query
from seqflow.fork_locks import ForkLock
from seqflow.hidden import shown

_LOOK_UPS = 64
"""Objects that are asked for at one time."""
_BLOCK, _MOST_BLOCKS = 4 << 20, 8
"""Bytes that are read at once where nothing tells what will be read, and how many such blocks are kept."""
_first_use: list[int] = []
"""The process that made the first request: the client does not live through a fork."""


class StoreFiles(Files):
    """Objects of stores, and files of this machine among them.

    `options` are the `storage_options` of a user; `system` is a store or file system that a user passes, for all
    paths. A pickle holds only these, so credentials of the environment are found again in each process.
    """

    def __init__(
        self, options: Mapping[str, Any] | None = None, system: Any = None, cache: Cache | None = None
    ) -> None:
        self.options, self.system, self.cache = dict(options or {}), system, cache
        self._pinned: dict[str, Entry] = {}
        self._clients: dict[str, tuple[Client, float]] = {}
        self._copies: dict[str, tuple[Cache, str]] = {}
        self._urls: dict[str, str] = {}
        self._listed: dict[str, list[Entry]] = {}
        self._own = (
            uuid.uuid4().hex
        )  # not pickled: of two systems without identity, none has the copies of another
        self._lock, self._copying = ForkLock(), ForkLock()
        self.ahead = Ahead(self._fetch)

    def __reduce__(self) -> tuple[Any, ...]:
        known = {name: getattr(self, name) for name in ("_pinned", "_copies", "_urls")}
        return _unpickled, (self.options, self.system, self.cache, known)

    def __repr__(self) -> str:
        return f"StoreFiles({sorted(self.options)})"

    def masked(self, uri: str) -> str:
        """Return the text that stands for a URI everywhere else, without its query and password."""
        # in keys of other stores `?` and `=` are characters as others
        is_web, named = uri[:4].lower() == "http", dict.fromkeys(re.findall("[?&]([^=&]+)=", uri))
        text = shown(uri) if is_web or "@" in uri or secret_in(named) else uri
        while text != uri and self._urls.setdefault(text, uri) != uri:
            text += "&…"  # another one with the same keys
        return text

    def pin(self, entry: Entry) -> None:
        """Let all reads of an object be of this version."""
        self._pinned[entry.path] = entry

    def cached_as(self, path: str) -> str | None:
        if self._is_local(path):
            return super().cached_as(path)
        return self._name(path) if self._of(path).version else None

    def _name(self, path: str) -> str:
        _, key, client, _ = self._client_for(path)
        has_name = client.identity and self._of(path).version
        # a fork may change its system, such as one in memory
        system = client.identity if has_name else f"{self._own} {os.getpid()}"
        url, _, query = self._urls.get(path, path).partition("?")
        is_signed = key == "" and "sig" in query.lower()  # each signature differs
        return f"{system}\0{url}?{'' if is_signed else query}"

    def of(self, paths: Iterable[str]) -> "StoreFiles":
        names, known = set(paths), ("_pinned", "_copies", "_urls")
        some = {
            one: {key: value for key, value in getattr(self, one).items() if key in names} for one in known
        }
        return _unpickled(self.options, self.system, self.cache, some)

    def entry(self, path: str) -> Entry | None:
        if path not in self._pinned:
            if self._is_local(path):
                return super().entry(path)
            place, client, key, seconds = self.request(path)
            found = again(place, lambda: _head(client, key), seconds)
            if found is None:
                return None
            self.pin(Entry(path, found.size, found.version))
        return self._pinned[path]

    def _is_local(self, path: str) -> bool:
        # each `is_uri` asks the system for a folder of that name: threads that fetch would wait for each other
        return path not in self._pinned and not is_uri(path)

    def look_up(self, paths: Iterable[str]) -> None:
        unknown = [path for path in paths if path not in self._pinned]
        if len(unknown) > 1:
            with ThreadPoolExecutor(_LOOK_UPS) as pool:
                deque(pool.map(self.entry, unknown), maxlen=0)

    def list(self, folder: str) -> Iterator[Entry]:
        if not is_uri(folder):
            yield from super().list(folder)
            return
        place, client, key, seconds = self.request(folder)
        for one in sorted(list_all(place, client, key.rstrip("/"), seconds)):
            path = f"{split(folder)[0]}/{one.key}" if self.system is None else uri_in(self.system, one.key)
            yield Entry(path, one.size, one.version)

    def listing(self, folder: str) -> Sequence[Entry]:
        if folder not in self._listed:
            self._listed[folder] = list(self.list(folder))
        return self._listed[folder]

    @property
    def listed(self) -> Iterator[Entry]:
        return chain.from_iterable(self._listed.values())

    def read(self, path: str, start: int, stop: int) -> pa.Buffer:
        if self._is_local(path):
            return super().read(path, start, stop)
        stop = min(stop, self._of(path).size)
        if start >= stop:
            return pa.py_buffer(b"")
        taken = self.ahead.take(path, start, stop)
        if taken is not None:
            return taken
        if stop - start <= LARGEST:
            return self._fetch(path, [(start, stop)])[0][2]
        return pa.py_buffer(b"".join(self.pieces(path, split_spans([(start, stop)]))))

    def pieces(self, path: str, spans: Sequence[Span]) -> Iterator[pa.Buffer]:
        """Yield ranges of an object, each of one request; those that are not planned yet are fetched together."""
        wanted, owner = [one for one in spans if not self.ahead.has(path, *one)], object()
        # the thread that reads makes a single request itself
        self.ahead.plan(((path, *one) for one in wanted if len(wanted) > 1), owner)
        try:
            for one in spans:
                yield self.read(path, *one)
        finally:
            self.ahead.drop(owner)

    def stream(self, path: str) -> IO[bytes]:
        if self._is_local(path):
            return super().stream(path)
        return _open_stream(self, path, self._of(path).size)

    def random(self, path: str, ranges: Iterable[Span] = ()) -> Any:
        if self._is_local(path):
            return path
        return pa.PythonFile(_RangeFile(self, path, self._of(path).size, ranges), mode="r")

    def plan(self, ranges: Iterable[Range], owner: object) -> None:
        sizes = ((path, start, stop, self.entry(path)) for path, start, stop in ranges)
        known = ((path, start, min(stop, one.size)) for path, start, stop, one in sizes if one is not None)
        self.ahead.plan(known, owner)

    def drop(self, owner: object) -> None:
        self.ahead.drop(owner)

    @property
    def has_room(self) -> bool:
        return self.ahead.has_room

    @property
    def bytes_ahead(self) -> int:
        return self.ahead.bytes_held

    def local_copy(self, path: str) -> str:
        if self._is_local(path):
            return path
        with self._copying:
            entry = self._of(path)
            cache, name = self._copies.get(path, (None, ""))
            # another process may have made it, and have ended, or run on another machine
            if cache is None or not os.path.isdir(cache.folder):
                cache = self.cache or Cache(_temporary_folder(), sys.maxsize)
                whole = entry._replace(path=self._name(path))
                name = (
                    f"{cache.place(whole, 0, entry.size)[-32:]}-{os.path.basename(without_query(path))[-60:]}"
                )
                self._copies[path] = cache, name
                if self._own in whole.path:
                    atexit.register(_remove, os.path.join(cache.folder, "copies", name), os.getpid())
            try:
                return cache.copy(name, entry.size, lambda: self.pieces(path, split_spans([(0, entry.size)])))
            except OSError as error:
                raise StoreError(
                    f"{path}: cannot be copied to this machine: {error.strerror}",
                    advice="%(cache)s names a folder with room for it",
                ) from None

    def _of(self, path: str) -> Entry:
        entry = self.entry(path)
        if entry is None:
            raise missing(RequestPlace(split(path)[0], shown(path)))
        return entry

    def request(self, path: str) -> tuple[RequestPlace, Client, str, float]:
        """Return what a request for an object needs: its place, client, key, and for how long to try."""
        if _first_use and _first_use[0] != os.getpid():
            raise StoreError(
                f"this process was forked after reading from {split(path)[0]}, and the store's client cannot live "
                "through that",
                advice='DataLoader(…, multiprocessing_context="spawn") starts processes in another way',
            )
        _first_use[:] = [os.getpid()]
        root, key, client, seconds = self._client_for(path)
        place = RequestPlace(shown(root), shown(path), region=client.region, access_key=client.access_key)
        return place, client, key, seconds

    def _client_for(self, path: str) -> tuple[str, str, Client, float]:
        """Return the root and key of an object, its client, and for how long to try."""
        path = self._urls.get(path, path)
        if self.system is not None:
            root, key = split(path)[0], key_in(self.system, path)
        elif "?" in path and path[:4].lower() == "http":  # a presigned URL: its query signs this one object
            root, key = path, ""
        else:
            root, key = split(path)
            key = unquote(key) if root[:4] == "http" else key  # the client quotes it
        with self._lock:
            if root not in self._clients:
                self._clients[root] = self._client(root)
            return root, key, *self._clients[root]

    def _client(self, root: str) -> tuple[Client, float]:
        if self.system is not None:
            return client_of_system(self.system), RETRY_SECONDS
        options = store_options(self.options, root.partition(":")[0])
        return client_of_uri(root, options), options.retry_seconds

    def _fetch(self, path: str, members: Sequence[Span]) -> Sequence[Piece]:
        """Return the bytes of ranges of an object, in one request where the cache has none of them."""
        cache = self.cache
        if cache is None or (name := self.cached_as(path)) is None:
            return [self._get(path, members[0][0], max(stop for _, stop in members))]
        entry = self._of(path)._replace(path=name)
        places = {span: cache.place(entry, *span) for span in members}
        found = {span: data for span, place in places.items() if (data := cache.get(place)) is not None}
        mine = [span for span in members if span not in found and cache.claim(places[span])]
        try:
            for run in _runs(mine, members):
                start, _, data = self._get(path, run[0][0], max(stop for _, stop in run))
                for span in run:
                    found[span] = data.slice(span[0] - start, span[1] - span[0])
                    cache.put(places[span], found[span])
        finally:
            for span in mine:
                cache.release(places[span])
        others = [span for span in members if span not in found]
        cache.wait([places[span] for span in others])
        for span in others:
            data = cache.get(places[span])
            found[span] = self._get(path, *span)[2] if data is None else data
        return [(*span, data) for span, data in found.items()]

    def _get(self, path: str, start: int, stop: int) -> Piece:
        entry = self._of(path)
        place, client, key, seconds = self.request(path)
        here = place._replace(span=f", bytes {start} … {stop - 1}", version=entry.version)
        data = again(here, lambda: client.get(key, start, stop, entry[1:]), seconds)
        return start, stop, pa.py_buffer(data)


def _head(client: Client, key: str) -> Found | None:
    try:
        return client.head(key)
    except Exception as error:
        if isinstance(error, FileNotFoundError) or is_below_file(error):
            return None
        raise


def _runs(mine: Sequence[Span], members: Sequence[Span]) -> Iterator[Sequence[Span]]:
    """Yield ranges that one request fetches: those with none between them that another process fetches."""
    for is_mine, run in groupby(members, mine.__contains__):
        if is_mine:
            yield list(run)


def _unpickled(options: Any, system: Any, cache: Cache | None, known: dict[str, Any]) -> StoreFiles:
    files = StoreFiles(options, system, cache)
    vars(files).update(known)
    if system is None:  # a worker gets a source with each task: connections and credentials stay
        files._clients = _clients_of.setdefault(repr(sorted(options.items())), {})
    return files


_clients_of: dict[str, dict[str, tuple[Client, float]]] = {}
"""Clients by options, of all files that came from other processes."""


def _temporary_folder() -> str:
    """Return a folder of this process, which is removed when it ends."""
    if not _temporary:
        _temporary.append(tempfile.mkdtemp(prefix="seqflow-"))
        atexit.register(_remove, _temporary[0], os.getpid())
    return _temporary[0]


def _remove(path: str, owner: int) -> None:
    if os.getpid() == owner:  # not a fork of it
        with suppress(OSError):
            (shutil.rmtree if os.path.isdir(path) else os.unlink)(path)


_temporary: list[str] = []


class _RangeFile:
    """An object as a file for pyarrow: ranges that are fetched together, or blocks as they are asked for."""

    closed = False

    def __init__(self, files: StoreFiles, path: str, size: int, spans: Iterable[Span]) -> None:
        self._files, self._path, self._size = files, path, size
        self._spans, self._position = split_spans(spans), 0
        self._blocks: dict[int, pa.Buffer] = {}
        self._owner = object()
        if self._spans:
            self._held = list(files.pieces(path, self._spans))
        self._starts = [start for start, _ in self._spans]

    def read(self, count: int = -1) -> pa.Buffer:
        start = self._position
        stop = self._size if count < 0 else min(start + count, self._size)
        self._position = max(start, stop)
        if stop <= start:
            return pa.py_buffer(b"")
        return self._of_spans(start, stop) if self._spans else self._of_blocks(start, stop)

    def _of_spans(self, start: int, stop: int) -> pa.Buffer:
        at = bisect_right(self._starts, start) - 1
        pieces = []
        position = start
        while at < len(self._spans) and position < stop:
            first, last = self._spans[max(at, 0)]
            if not first <= position < last:
                break
            end = min(stop, last)
            pieces.append(self._held[at].slice(position - first, end - position))
            position, at = end, at + 1
        if position < stop:
            raise ProviderError(
                f"{self._path}, bytes {start} … {stop - 1}: not among the ranges of its footer"
            )
        return pieces[0] if len(pieces) == 1 else pa.py_buffer(b"".join(pieces))

    def _of_blocks(self, start: int, stop: int) -> pa.Buffer:
        first, last = start // _BLOCK, (stop - 1) // _BLOCK
        pieces = [self._block(number) for number in range(first, last + 1)]
        offset = start - first * _BLOCK
        if len(pieces) == 1:
            return pieces[0].slice(offset, stop - start)
        return pa.py_buffer(memoryview(b"".join(pieces))[offset : offset + stop - start])

    def _block(self, number: int) -> pa.Buffer:
        found = self._blocks.pop(number, None)
        if found is None:
            span = (number * _BLOCK, min((number + 1) * _BLOCK, self._size))
            found = self._files.read(self._path, *span)
            following = (span[1], min(span[1] + _BLOCK, self._size))
            # readers of columns go on after what they have read
            goes_on = number - 1 in self._blocks and following[0] < following[1]
            if goes_on and not self._files.ahead.has(self._path, *following):
                self._files.ahead.plan([(self._path, *following)], self._owner)
        self._blocks[number] = found
        while len(self._blocks) > _MOST_BLOCKS:
            del self._blocks[next(iter(self._blocks))]
        return found

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        self.closed = True
        self._blocks.clear()
        self._files.ahead.drop(self._owner)

    def __del__(self) -> None:  # pyarrow closes only what it has opened
        self.close()


class _Stream(io.RawIOBase):
    """An object; the next pieces are under way while one is read."""

    def __init__(self, files: StoreFiles, path: str, size: int) -> None:
        self._files, self._path, self._size = files, path, size
        self._position = self._planned = self._start = 0
        self._piece, self._owner = pa.py_buffer(b""), object()

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        if self._position >= self._start + self._piece.size:
            if self._position >= self._size:
                return 0
            self._plan()
            self._start, stop = self._position, min(self._position + _BLOCK, self._size)
            self._piece = self._files.read(self._path, self._start, stop)
        part = self._piece.slice(self._position - self._start, None)[: len(target)]
        target[: part.size] = memoryview(part).cast("B")
        self._position += part.size
        return int(part.size)

    def _plan(self) -> None:
        """Plan the next piece and two after it."""
        end = min(self._position + 3 * _BLOCK, self._size)
        while self._planned < end:
            stop = min(self._planned + _BLOCK, self._size)
            self._files.ahead.plan([(self._path, self._planned, stop)], self._owner)
            self._planned = stop

    def close(self) -> None:
        if not self.closed:
            self._files.ahead.drop(self._owner)
        super().close()


def _open_stream(files: StoreFiles, path: str, size: int) -> IO[bytes]:
    """Return an object as a file that is read front to back."""
    return io.BufferedReader(_Stream(files, path, size), 1 << 20)
