"""Clients of stores: obstore, and file systems of pyarrow and fsspec that a user passes; lists of objects."""

import json
import os
import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from seqflow.errors import ProviderError, ProviderOptionError, StoreError
from seqflow.files.errors import ChangedError, RequestPlace, ShortError, WholeFileError, again, is_below_file
from seqflow.files.options import StoreOptions, has_profile
from seqflow.files.systems import scheme_of_system
from seqflow.files.uris import CLOUDS
from seqflow.hidden import is_secret, shown, without_options

PAGE = 1000
"""Objects of one answer to a list: most stores send no more."""
Version = tuple[int, str]
"""Size of an object in bytes, and its version; the size alone tells a change where there are no versions."""


class Found(NamedTuple):
    """An object of a store: its key, size in bytes, and version."""

    key: str
    size: int
    version: str


class Client:
    """Requests to one bucket or host. Each raises the error of its library."""

    region = ""
    access_key = ""
    identity = ""
    """Text that only clients of the same system have, in all processes; empty if nothing tells the system."""

    def head(self, key: str) -> Found:
        """Return an object; raise FileNotFoundError if there is none."""
        raise NotImplementedError

    def list(self, prefix: str, after: str = "") -> Iterator[list[Found]]:
        """Yield the objects below a folder by pages, in the order of the store, from the key after `after` on."""
        raise NotImplementedError

    def get(self, key: str, start: int, stop: int, of: Version) -> Any:
        """Return the bytes `start` … `stop - 1` of a version, as an object with a buffer."""
        raise NotImplementedError


class ObstoreClient(Client):
    """A store of obstore. Its own attempts are turned off: they are counted, and end before an outage does."""

    def __init__(self, store: Any) -> None:
        config = getattr(store, "config", None) or {}
        self.store, self.region = store, str(config.get("region", ""))
        self.access_key = str(config.get("access_key_id", ""))
        url = getattr(store, "url", "").partition("?")[0]
        self.identity = _identity(type(store).__name__, {"url": url, **config})

    def head(self, key: str) -> Found:
        import obstore

        try:
            meta = obstore.head(self.store, key)
            if meta["e_tag"] or meta["last_modified"].timestamp():
                return _found(meta)
        except Exception as error:
            if "status code: 403" not in str(error) and "status code: 405" not in str(error):
                raise
        # a presigned URL allows only GET; an error in answer to a HEAD has no body that tells why; and a page that
        # comes instead of an object has no version, and no ranges
        return _found(obstore.get(self.store, key, options={"range": (0, 1)}).meta)

    def list(self, prefix: str, after: str = "") -> Iterator[list[Found]]:
        import obstore

        for page in obstore.list(self.store, prefix or None, offset=after or None, chunk_size=PAGE):
            yield [*map(_found, page)]

    def get(self, key: str, start: int, stop: int, of: Version) -> Any:
        import obstore

        options: Any = {"range": (start, stop)}
        if of[1].startswith('"'):  # only a strong etag can be a condition
            options["if_match"] = of[1]
        result = obstore.get(self.store, key, options=options)
        # some servers ignore conditions, but all tell the version that they send
        if not self._is_same(result.meta, of):
            raise ChangedError
        return _checked(result.bytes(), stop - start)

    def _is_same(self, meta: Any, of: Version) -> bool:
        return _found(meta)[1:] == of


class WebClient(ObstoreClient):
    """Files of a web server."""

    def __init__(self, store: Any, url: str) -> None:
        super().__init__(store)
        self._url = url

    def list(self, prefix: str, after: str = "") -> Iterator[list[Found]]:
        raise ProviderError(
            f"{shown(self._url)}/{prefix}: a web server has no list of files; name them one by one"
        )


class HubClient(ObstoreClient):
    """The files of a repository of the Hugging Face Hub at one revision, which its interface lists.

    A branch is read at the commit that it has at the first request.
    """

    def __init__(self, repository: str, options: StoreOptions) -> None:
        from obstore.store import HTTPStore

        kind, _, rest = repository.partition("/")
        name, _, self._revision = rest.partition("@")
        host = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
        token = options.config.get("token") or os.environ.get("HF_TOKEN")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._api, self._commit = f"{host}/api/{kind}/{name}", ""
        self._listed: dict[str, Found] = {}
        client: Any = {
            **options.client,
            "allow_http": host.startswith("http:"),
            "default_headers": self._headers,
        }
        url = f"{host}/{'' if kind == 'models' else f'{kind}/'}{name}/resolve"
        super().__init__(HTTPStore.from_url(url, client_options=client, retry_config=_NO_RETRIES))

    def head(self, key: str) -> Found:
        if key not in self._listed:
            deque(self.list(key.rpartition("/")[0]), maxlen=0)
        return self._listed.get(key) or _none(key)

    def list(self, prefix: str, after: str = "") -> Iterator[list[Found]]:
        url, found = f"{self._api}/tree/{self._at()}/{quote(prefix)}".rstrip("/") + "?recursive=1", []
        while url:
            try:
                entries, links = self._ask(url)
            except OSError as error:
                if "EntryNotFound" in str(getattr(error, "headers", "")):  # as a prefix without objects
                    break
                raise
            found += [Found(one["path"], one["size"], one["oid"]) for one in entries if one["type"] == "file"]
            url = links.partition("<")[2].partition(">")[0] if 'rel="next"' in links else ""
        self._listed.update((one.key, one) for one in found)
        yield found

    def get(self, key: str, start: int, stop: int, of: Version) -> Any:
        if self.head(key)[1:] != of:
            raise ChangedError
        return super().get(f"{self._at()}/{key}", start, stop, of)

    def _is_same(self, meta: Any, of: Version) -> bool:
        return True  # at this commit

    def _at(self) -> str:
        """Return the commit of the revision."""
        if not self._commit:
            revision = quote(self._revision or "main", safe="")
            self._commit = str(self._ask(f"{self._api}/revision/{revision}")[0]["sha"])
        return self._commit

    def _ask(self, url: str) -> tuple[Any, str]:
        """Return the answer of the interface, and its header that tells the next page."""
        import urllib.error
        import urllib.request

        request = urllib.request.Request(url, headers=self._headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer), answer.headers.get("Link", "")
        except urllib.error.HTTPError as error:
            error.close()
            raise


class ArrowClient(Client):
    """A file system of pyarrow. It has no conditions: the time of a file is compared after each read."""

    def __init__(self, system: Any) -> None:
        self._system = system
        kind = scheme_of_system(system)
        self.identity = _identity(kind, system.__reduce__()[1][0] if kind in _SHARED else {})

    def head(self, key: str) -> Found:
        found = self._system.get_file_info(key)
        return self._found(found) if found.is_file else _none(key)

    def list(self, prefix: str, after: str = "") -> Iterator[list[Found]]:
        from pyarrow.fs import FileSelector

        below = FileSelector(prefix, allow_not_found=True, recursive=True)
        infos = self._system.get_file_info(below)
        yield [self._found(one) for one in infos if one.is_file]

    def get(self, key: str, start: int, stop: int, of: Version) -> Any:
        with self._system.open_input_file(key) as file:
            data = file.read_at(stop - start, start)
        if self.head(key)[1:] != of:
            raise ChangedError
        return _checked(data, stop - start)

    def _found(self, info: Any) -> Found:
        return Found(info.path, info.size, str(info.mtime_ns or ""))


class FsspecClient(Client):
    """A file system of fsspec. It has no conditions: the version of a file is compared after each read."""

    def __init__(self, system: Any) -> None:
        self._system = system
        given = {"args": system.storage_args, **system.storage_options}
        self.identity = _identity(scheme_of_system(system), given)

    def head(self, key: str) -> Found:
        self._system.invalidate_cache()
        info = self._system.info(key)
        return _none(key) if info.get("type") == "directory" else self._found(info)

    def list(self, prefix: str, after: str = "") -> Iterator[list[Found]]:
        self._system.invalidate_cache()
        yield [*map(self._found, self._system.find(prefix, detail=True).values())]

    def get(self, key: str, start: int, stop: int, of: Version) -> Any:
        data = self._system.cat_file(key, start=start, end=stop)
        if self.head(key)[1:] != of:
            raise ChangedError
        return _checked(data, stop - start)

    def _found(self, info: dict[str, Any]) -> Found:
        names = ("ETag", "etag", "mtime", "created", "LastModified")
        told = (info[name] for name in names if info.get(name))
        # one and the same time may come as a number in a list, and as a date alone
        times = (one.timestamp() if hasattr(one, "timestamp") else one for one in told)
        return Found(info["name"], info["size"], str(next(times, "")))


_NO_RETRIES: Any = {"max_retries": 0}
_SHARED = (*CLOUDS, "http", "https", "hf", "S3Store", "GCSStore", "AzureStore", "HTTPStore")
"""Kinds of systems that are the same in all processes: stores in memory, archives and folders look alike."""
_OF_SYSTEM = re.compile("(AWS|AZUR|GOOGLE|STORAGE|HF|FSSPEC).*(ENDPOINT|EMULATOR|ACCOUNT_NAME|PROFILE|URL)")
"""Variables of the environment that decide which system a client speaks to."""
_memory: dict[str, Any] = {}
"""Stores in memory by their root; they last as long as the process."""


def client_of_uri(root: str, options: StoreOptions, retries: Any = _NO_RETRIES) -> Client:
    """Return a client for a bucket or host; raise StoreError without obstore, ProviderOptionError for bad options."""
    try:
        from obstore.exceptions import BaseError
        from obstore.store import HTTPStore, MemoryStore, from_url
    except ImportError:
        raise StoreError(
            f"reading {shown(root)} needs a package that is not installed",
            advice="pip install '.[stores]' in a clone of seqflow",
        ) from None
    scheme = root.partition(":")[0]
    if scheme == "hf":
        return HubClient(root.removeprefix("hf://"), options)
    try:
        if scheme == "memory":
            return ObstoreClient(_memory.setdefault(root, MemoryStore()))
        given: dict[str, Any] = {"client_options": options.client, "retry_config": retries}
        if scheme in ("http", "https"):
            return WebClient(HTTPStore.from_url(root, **given), root)
        if scheme in ("s3", "s3a") and has_profile() and not any("key" in name for name in options.config):
            given["credential_provider"] = _aws_profile()
        config: Any = options.config
        return ObstoreClient(from_url(root, config=config, **given))
    except (BaseError, TypeError, ValueError) as error:
        first = without_options(str(error).partition("\n")[0], {**options.config, **options.client})
        is_account = "Account must be specified" in first
        advice = 'storage_options={"azure_storage_account_name": …} names it' if is_account else ""
        raise ProviderOptionError(f"storage_options of {shown(root)}: {first}", advice=advice) from None


def client_of_system(system: Any) -> Client:
    """Return a client for a store or file system that a user passes; raise ProviderOptionError for other objects."""
    module = type(system).__module__.partition(".")[0]
    if module == "obstore" or hasattr(system, "list_with_delimiter"):
        return ObstoreClient(system)
    if module == "pyarrow":
        if getattr(system, "base_fs", system).type_name == "s3":
            # it fills the rest of a body that comes short with unrelated memory, and raises no error
            raise ProviderOptionError(
                "filesystem is an S3FileSystem of pyarrow, whose reads may return wrong bytes without an error",
                advice="URIs with storage_options=, or a store of obstore, read S3",
            )
        return ArrowClient(system)
    if hasattr(system, "cat_file"):
        return FsspecClient(system)
    raise ProviderOptionError(
        f"filesystem is a {type(system).__name__}, expected a store of obstore, or a file system of pyarrow or fsspec"
    )


def _aws_profile() -> Any:
    """Return what finds the credentials of a profile, by the package that knows them; None without it."""
    try:
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        return None
    return Boto3CredentialProvider()


def _found(meta: Any) -> Found:
    return Found(meta["path"], meta["size"], _version(meta))


def _version(meta: Any) -> str:
    # 1970 stands for the time of a server that tells none
    return etag_of(meta) or (str(time) if (time := meta["last_modified"]).timestamp() else "")


def _identity(kind: str, options: Mapping[str, Any]) -> str:
    """Return what tells a system from others of its kind, without secrets; empty where nothing does."""
    if kind not in _SHARED:
        return ""
    told = {name: value for name, value in options.items() if value and not is_secret(name)}
    # account and endpoint that no option names
    around = sorted(one for one in os.environ.items() if _OF_SYSTEM.match(one[0]))
    try:
        return json.dumps([kind, told, around], sort_keys=True)
    except TypeError:  # an option is an object
        return ""


def etag_of(meta: Any) -> str:
    """Return the etag of an object, in quotes; lists of Azure and Google have none, all other answers have."""
    etag = meta["e_tag"] or ""
    return f'"{etag}"' if etag and not etag.startswith(('"', "W/")) else etag


def _checked(data: Any, size: int) -> Any:
    """Return bytes; raise an error unless they are as many as were asked for."""
    if len(data) == size:
        return data
    if bytes(memoryview(data)[:64]).lstrip().lower().startswith((b"<!doctype html", b"<html")):
        raise WholeFileError("text/html")
    raise ShortError(f"{len(data)} bytes came, expected {size}")


def _none(key: str) -> Any:
    raise FileNotFoundError(key)


def list_all(
    place: RequestPlace, client: Client, prefix: str, seconds: float, after: str = ""
) -> list[Found]:
    """Return all objects from the key after `after` on; a page that fails is asked for again, for so many seconds.

    The client takes a web page that comes instead of a page of the list for an empty one, and that for the last. So
    the end of a long list is believed if another answer, which has the last object, shows it too; and an empty list
    if it comes twice.
    """
    found: list[Found] = []
    pages: Iterator[list[Found]] | None = None

    def next_page() -> list[Found]:
        nonlocal pages
        try:
            pages = client.list(prefix, found[-1].key if found else after) if pages is None else pages
            return next(pages, [])
        except BaseException as error:
            pages = None
            if is_below_file(error):
                return []
            raise

    def rest() -> list[Found]:
        last = [one for page in client.list(prefix, found[-2].key) for one in page]
        if found[-1].key not in {one.key for one in last}:
            raise WholeFileError
        known = {one.key for one in found}
        return [one for one in last if one.key not in known]

    for _ in range(2):
        while page := again(place, next_page, seconds):
            found += page
        if found:
            break
        pages = None
    while len(found) >= PAGE and (more := again(place, rest, seconds)):
        found += more
    return found
