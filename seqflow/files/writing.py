"""Objects that are written to a store: created only if absent, or uploaded from files of this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from urllib.request import Request, urlopen

import pyarrow as pa

from seqflow.errors import StoreError
from seqflow.files.again import again
from seqflow.files.clients import ObstoreClient, client_of_uri, etag_of
from seqflow.files.errors import ShortError
from seqflow.files.options import store_options
from seqflow.files.place import Entry, split
from seqflow.files.store import StoreFiles

T = TypeVar("T")
LARGEST_PUT = 64 << 20
"""Bytes up to which a file is sent in one request, which can be refused if the object is there."""
_PART, _IN_FLIGHT, _SLOWEST = 16 << 20, 4, 1 << 20
"""Bytes of a part of an upload, parts that are sent at once, and the bytes a second that are waited for."""
_SHA256 = "sha256"
"""Name of the checksum among the metadata of an object."""


class StoreWriter:
    """Writes objects of stores. All entries that it returns are those of now: nothing is pinned.

    Without `is_conditional`, objects are created although others have created them meanwhile.
    """

    def __init__(self, files: StoreFiles, *, is_conditional: bool = True) -> None:
        self._files = files
        self.refuses = is_conditional
        """Whether an upload of at most 64 MiB does not replace what is there."""
        self._mode: Any = "create" if is_conditional else "overwrite"

    def check(self, path: str) -> None:
        """Raise StoreError when objects of this scheme cannot be written."""
        self._store(path)

    def list(self, folder: str, after: str = "") -> list[Entry]:
        """Return all objects below a folder whose names follow that of `after`."""
        import obstore

        root, key = split(folder)

        def request(store: Any, _: str) -> list[Entry]:
            offset = split(after)[1] or None
            pages = obstore.list(store, key.rstrip("/") or None, offset=offset, chunk_size=1000)
            return [
                Entry(f"{root}/{one['path']}", one["size"], etag_of(one)) for page in pages for one in page
            ]

        return sorted(self._again(folder, request))

    def get(self, path: str) -> bytes | None:
        """Return the content of a small object; None if there is none."""
        import obstore

        return self._again(path, lambda store, key: _if_there(lambda: bytes(obstore.get(store, key).bytes())))

    def sha256(self, path: str) -> str | None:
        """Return the checksum that was noted with an object when it was uploaded; None without one."""
        import obstore

        def request(store: Any, key: str) -> str | None:
            found = _if_there(lambda: obstore.get(store, key, options={"head": True}).attributes)
            return None if found is None else found.get(_SHA256)

        return self._again(path, request)

    def entry(self, path: str) -> Entry | None:
        """Return an object; None if there is none."""
        import obstore

        def request(store: Any, key: str) -> Entry | None:
            found = _if_there(lambda: obstore.head(store, key))
            return None if found is None else Entry(path, found["size"], etag_of(found))

        return self._again(path, request)

    def fetch(self, path: str, local: Path) -> None:
        """Write an object to a file of this machine."""
        import obstore

        def request(store: Any, key: str) -> None:
            found = obstore.get(store, key)
            with local.open("wb") as file:
                for piece in found.stream(_PART):
                    file.write(piece)
                if file.tell() != found.meta["size"]:
                    raise ShortError(f"{file.tell()} bytes came, expected {found.meta['size']}")

        self._again(path, request)

    def create(self, path: str, content: bytes) -> bytes | None:
        """Create an object; return None, or the content of the object that is there, if it differs."""
        import obstore

        def request(store: Any, key: str) -> bytes | None:
            try:
                obstore.put(store, key, content, mode=self._mode, use_multipart=False)
            except obstore.exceptions.AlreadyExistsError:
                # an earlier attempt whose answer was lost may have created it
                there = _if_there(lambda: bytes(obstore.get(store, key).bytes()))
                if there is None:  # two writers at the same time are both refused
                    raise ShortError("two writers at once") from None
                return None if there == content else there
            return None

        return self._again(path, request)

    def is_conditional(self, path: str) -> bool:
        """Return whether the store refuses to create an object that is there; `path` is a name for trying it."""
        import obstore

        def request(store: Any, key: str) -> bool:
            try:
                for _ in range(2):
                    obstore.put(store, key, b"", mode="create", use_multipart=False)
            except obstore.exceptions.AlreadyExistsError:
                return True
            except Exception as error:
                if _is_not_implemented(error):
                    return False
                raise
            return False

        found: bool = self._again(path, request)
        self.delete([path])
        return found

    def upload(self, path: str, local: Path, sha256: str, *, replaces: bool = False) -> Entry | None:
        """Upload a file; return None if another object is there that it does not replace.

        A file of at most 64 MiB is one request. A larger one replaces any object.
        """
        size = local.stat().st_size
        # the client takes unsigned bytes only
        content = memoryview(pa.memory_map(str(local)).read_buffer()).cast("B") if size else memoryview(b"")
        if size <= LARGEST_PUT:
            return self._put(path, content, size, sha256, "overwrite" if replaces else self._mode)
        there = None if replaces else self._same(path, size, sha256)
        return there or self._put_in_parts(path, content, sha256)

    def _put(self, path: str, content: Any, size: int, sha256: str, mode: Any) -> Entry | None:
        import obstore

        def request(store: Any, key: str) -> Entry | None:
            try:
                made = obstore.put(
                    store, key, content, mode=mode, use_multipart=False, attributes={_SHA256: sha256}
                )
            except obstore.exceptions.AlreadyExistsError:
                return None
            return Entry(path, size, etag_of(made))

        return self._again(path, request, size) or self._same(path, size, sha256)

    def _same(self, path: str, size: int, sha256: str) -> Entry | None:
        """Return the object that is there if it was uploaded from the same bytes."""
        import obstore

        def request(store: Any, key: str) -> Entry | None:
            found = _if_there(lambda: obstore.get(store, key, options={"head": True}))
            if found is None or found.meta["size"] != size or found.attributes.get(_SHA256) != sha256:
                return None
            return Entry(path, size, etag_of(found.meta))

        return self._again(path, request)

    def _put_in_parts(self, path: str, content: memoryview, sha256: str) -> Entry:
        import obstore

        root, key = split(path)
        # the client repeats requests for single parts; what it gives up is aborted
        options = store_options(self._files.options, root.partition(":")[0])
        retries: Any = {
            "max_retries": 1000,
            "retry_timeout": timedelta(seconds=options.retry_seconds),
            "backoff": {
                "init_backoff": timedelta(seconds=0.1),
                "max_backoff": timedelta(seconds=4),
                "base": 2,
            },
        }
        client: Any = client_of_uri(root, options, retries)

        def request(_: Any, __: str) -> None:
            writer = obstore.open_writer(
                client.store, key, attributes={_SHA256: sha256}, buffer_size=_PART, max_concurrency=_IN_FLIGHT
            )
            try:
                for start in range(0, len(content), _PART):
                    writer.write(content[start : start + _PART])
            finally:
                writer.close()  # aborts the upload, and raises the error again, if a part has failed

        self._again(path, request, len(content))
        made = self._same(path, len(content), sha256)
        if made is None:
            raise StoreError(f"{path}: another process has replaced this object while it was written")
        return made

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects, as far as they exist."""
        some = list(paths)
        keys = [split(path)[1] for path in some]
        if some:
            self._again(some[0], lambda store, _: _delete(store, keys))

    def _again(self, path: str, do: Callable[[Any, str], T], nbytes: int = 0) -> T:
        place, _, key, seconds = self._files.request(path)
        store = self._store(path)
        return again(place, lambda: do(store, key), seconds + nbytes / _SLOWEST)

    def _store(self, path: str) -> Any:
        place, client, _, _ = self._files.request(path)
        if type(client) is not ObstoreClient:
            raise StoreError(
                f"{place}: objects of {place.root.partition(':')[0]} cannot be written, only read"
            )
        return client.store


def _if_there(get: Callable[[], T]) -> T | None:
    try:
        return get()
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error):
            raise
        return None


def _is_not_implemented(error: Exception) -> bool:
    return (
        isinstance(error, NotImplementedError) or "status code: 501" in str(error) or "501 Not" in str(error)
    )


def _delete(store: Any, keys: list[str]) -> None:
    """Delete objects in one request, or one by one if the store knows no such request."""
    import obstore

    try:
        obstore.delete(store, keys)
    except FileNotFoundError:
        if len(keys) > 1:
            for key in keys:
                _delete(store, [key])
    except Exception as error:
        if not _is_not_implemented(error):
            raise
        for key in keys:
            signed = obstore.sign(store, "DELETE", key, timedelta(minutes=5))
            urlopen(Request(signed, method="DELETE"), timeout=30).close()
