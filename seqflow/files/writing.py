"""Objects that are written to a store: created only if absent, or uploaded from files of this machine."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from seqflow.errors import StoreError
from seqflow.files.clients import ObstoreClient, client_of_uri, etag_of, list_all
from seqflow.files.errors import RequestPlace, ShortError, again
from seqflow.files.interface import Entry
from seqflow.files.options import store_options
from seqflow.files.store import StoreFiles
from seqflow.files.uris import split

T = TypeVar("T")
LARGEST_PUT = 64 << 20
"""Bytes up to which a file is sent in one request, which can be refused if the object is there."""
_PART, _IN_FLIGHT, _SLOWEST = 16 << 20, 4, 1 << 20
"""Bytes of a part of an upload, parts that are sent at once, and the bytes a second that are waited for."""


class Written(NamedTuple):
    """An object as it is now."""

    size: int
    version: str
    sha256: str
    """Checksum that was noted with it when it was uploaded; empty without one."""


class StoreWriter:
    """Writes objects of stores, and reads them as they are now: nothing is pinned.

    Without `is_conditional`, objects are created although others have created them meanwhile.
    """

    def __init__(self, files: StoreFiles, *, is_conditional: bool = True) -> None:
        self._files = files
        self.refuses = is_conditional
        """Whether an upload of at most 64 MiB does not replace what is there."""
        self._mode: Any = "create" if is_conditional else "overwrite"

    def list(self, folder: str, after: str = "") -> list[Entry]:
        """Return all objects below a folder whose names follow that of `after`."""
        place, client, key, seconds = self._request(folder)
        found = list_all(place, client, key.rstrip("/"), seconds, split(after)[1])
        return sorted(Entry(f"{split(folder)[0]}/{one.key}", one.size, one.version) for one in found)

    def get(self, path: str) -> bytes | None:
        """Return the content of a small object; None if there is none."""
        return self._again(path, lambda store, key: _if_there(lambda: bytes(store.get(key).bytes())))

    def find(self, path: str) -> Written | None:
        """Return an object; None if there is none."""
        found = self._again(
            path, lambda store, key: _if_there(lambda: store.get(key, options={"head": True}))
        )
        if found is None:
            return None
        return Written(found.meta["size"], etag_of(found.meta), found.attributes.get("sha256", ""))

    def fetch(self, path: str, local: Path) -> None:
        """Write an object to a file of this machine."""

        def request(store: Any, key: str) -> None:
            found = store.get(key)
            with local.open("wb") as file:
                file.writelines(found.stream(_PART))
                if file.tell() != found.meta["size"]:
                    raise ShortError(f"{file.tell()} bytes came, expected {found.meta['size']}")

        self._again(path, request)

    def create(self, path: str, content: bytes) -> bytes | None:
        """Create an object; return None, or the content of the object that is there, if it differs."""

        def request(store: Any, key: str) -> bytes | None:
            if _put(store, key, content, self._mode) is not None:
                return None
            # an earlier attempt whose answer was lost may have created it
            there = _if_there(lambda: bytes(store.get(key).bytes()))
            if there is None:  # two writers at the same time are both refused
                raise ShortError("two writers at once")
            return None if there == content else there

        return self._again(path, request)

    def is_conditional(self, path: str) -> bool:
        """Return whether the store refuses to create an object that is there; `path` is a name for trying it."""

        def request(store: Any, key: str) -> bool:
            try:
                return any(_put(store, key, b"", "create") is None for _ in range(2))
            except Exception as error:
                if _is_not_implemented(error):
                    return False
                raise

        found = self._again(path, request)
        self.delete([path])
        return found

    def upload(self, path: str, local: Path, sha256: str, *, replaces: bool = False) -> Written | None:
        """Upload a file; return None if another object is there that it does not replace.

        A file of at most 64 MiB is one request. A larger one replaces any object.
        """
        size = local.stat().st_size
        # the client takes unsigned bytes only
        content = memoryview(pa.memory_map(str(local)).read_buffer() if size else b"").cast("B")
        told: Any = {"sha256": sha256}
        if size <= LARGEST_PUT:
            mode = "overwrite" if replaces else self._mode
            etag = self._again(path, lambda store, key: _put(store, key, content, mode, told), size)
            if etag is not None:
                return Written(size, etag, sha256)
        found = None if replaces else self.find(path)
        if found is not None and (found.size, found.sha256) == (size, sha256):
            return found
        if size <= LARGEST_PUT:
            return None
        # the client has repeated each part by then: no further time for the bytes of all
        self._again(path, lambda _, key: self._put_in_parts(split(path)[0], key, content, told), 0)
        return self.find(path)

    def _put_in_parts(self, root: str, key: str, content: memoryview, told: Any) -> None:
        import obstore

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
        writer = obstore.open_writer(
            client.store, key, attributes=told, buffer_size=_PART, max_concurrency=_IN_FLIGHT
        )
        try:
            for start in range(0, len(content), _PART):
                writer.write(content[start : start + _PART])
        finally:
            writer.close()  # aborts the upload, and raises the error again, if a part has failed

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects, as far as they exist."""
        if some := list(paths):
            self._again(some[0], lambda store, _: _delete(store, [split(path)[1] for path in some]))

    def _again(self, path: str, do: Callable[[Any, str], T], nbytes: int = 0) -> T:
        place, client, key, seconds = self._request(path)
        return again(place, lambda: do(client.store, key), seconds + nbytes / _SLOWEST)

    def _request(self, path: str) -> tuple[RequestPlace, ObstoreClient, str, float]:
        """Return what a request for an object needs; raise StoreError for a store that is only read."""
        place, client, key, seconds = self._files.request(path)
        if type(client) is not ObstoreClient:
            raise StoreError(
                f"{place}: objects of {place.root.partition(':')[0]} cannot be written, only read"
            )
        return place, client, key, seconds


def _put(store: Any, key: str, content: Any, mode: str, told: Any = None) -> str | None:
    """Put an object in one request and return its etag; None if one is there that it does not replace."""
    try:
        return etag_of(store.put(key, content, mode=mode, use_multipart=False, attributes=told))
    except Exception as error:
        if type(error).__name__ != "AlreadyExistsError":
            raise
        return None


def _if_there(get: Callable[[], T]) -> T | None:
    try:
        return get()
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error):
            raise
        return None


def _is_not_implemented(error: Exception) -> bool:
    return type(error).__name__ == "NotImplementedError" or "501 Not Implemented" in str(error)


def _delete(store: Any, keys: list[str]) -> None:
    """Delete objects in one request, or one by one if the store knows no such request."""
    import obstore

    try:
        store.delete(keys)
    except FileNotFoundError:  # of a store that tells which one, and has deleted those before it
        if len(keys) > 1:
            for key in keys:
                _delete(store, [key])
    except Exception as error:
        if not _is_not_implemented(error):
            raise
        from urllib.request import Request, urlopen

        for key in keys:
            signed = obstore.sign(store, "DELETE", key, timedelta(minutes=5))
            urlopen(Request(signed, method="DELETE"), timeout=30).close()
