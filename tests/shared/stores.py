"""Stores for tests: servers on 127.0.0.1, each in folders or processes of their own, and buckets in them.

`own` is our server in this process, with faults; `store` a bucket of each server that runs here: ours, localbucket, moto, and
those whose addresses the variable SEQFLOW_STORES names, as `.ci/full stores` does: `ceph=http://127.0.0.1:19007 azurite=…`.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from store_server import StoreServer, free_port

BY_PIP = ("own", "localbucket", "moto")
BY_ADDRESS = dict(pair.split("=", 1) for pair in os.environ.get("SEQFLOW_STORES", "").split())
AZURITE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Published with the emulator."""
SECRET = "sk-of-tests"


def options_of(url: str, key: str = "ak", secret: str = SECRET) -> dict[str, Any]:
    """Return what one types as `storage_options` for a server of S3 at this address."""
    return {
        "aws_endpoint_url": url, "aws_access_key_id": key, "aws_secret_access_key": secret, "aws_region": "us-east-1",
    }  # fmt: skip


@dataclass
class Bucket:
    """A bucket of a server; objects are put and read by the client alone, or through files where the server has them."""

    server: str
    name: str
    url: str
    options: dict[str, Any]
    scheme: str = "s3"
    client: Any = field(init=False)

    def __post_init__(self) -> None:
        from obstore.store import AzureStore, GCSStore, S3Store

        kind: Any = {"s3": S3Store, "az": AzureStore, "gs": GCSStore}[self.scheme]
        config = {name: value for name, value in self.options.items() if name != "allow_http"}
        self.client = kind(self.name, config=config, client_options={"allow_http": True})

    @property
    def uri(self) -> str:
        return f"{self.scheme}://{self.name}"

    def put(self, key: str, content: bytes | Path) -> str:
        """Write an object and return its URI."""
        import obstore

        content = content.read_bytes() if isinstance(content, Path) else content
        if self.scheme == "gs":  # its emulator does not know the interface that the client writes by
            place = (
                f"{self.url}/upload/storage/v1/b/{self.name}/o?uploadType=media&name={quote(key, safe='')}"
            )
            post(place, content)
        else:
            obstore.put(self.client, key, content, use_multipart=False)
        return f"{self.uri}/{key}"

    def put_raw(self, key: str, content: bytes) -> None:
        """Write an object by its key alone: the client changes some characters of keys."""
        if self.scheme != "s3":
            self.put(key, content)
        else:
            self.s3().put_object(Bucket=self.name, Key=key, Body=content)

    def s3(self) -> Any:
        """Return a client of boto3, which lists uploads and knows every request."""
        keys = self.options["aws_access_key_id"], self.options["aws_secret_access_key"]
        return client_of_boto3(self.url, *keys)

    def put_folder(self, folder: Path, prefix: str = "") -> str:
        """Write all files of a folder and return the URI of the prefix."""
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                self.put(f"{prefix}{file.relative_to(folder).as_posix()}", file)
        return f"{self.uri}/{prefix}".rstrip("/")

    def get(self, key: str) -> bytes:
        import obstore

        return bytes(obstore.get(self.client, key).bytes())

    def keys(self, prefix: str = "") -> list[str]:
        """The key itself, which the client does not list, and all keys below it."""
        import obstore

        found = sorted(one["path"] for page in obstore.list(self.client) for one in page)
        below = f"{prefix.rstrip('/')}/" if prefix else ""
        return [key for key in found if key == prefix or key.startswith(below)]

    def delete(self, *keys: str) -> None:
        import obstore

        for key in keys:
            if (
                self.server == "localbucket"
            ):  # does not know the request that deletes many, which the client sends
                post(f"{self.url}/{self.name}/{quote(key)}", method="DELETE")
            else:
                obstore.delete(self.client, key)


@lru_cache
def client_of_boto3(url: str, key: str, secret: str) -> Any:
    """Make one client for a server: making it reads the descriptions of all requests."""
    boto3 = pytest.importorskip("boto3")
    return boto3.client(
        "s3", endpoint_url=url, aws_access_key_id=key, aws_secret_access_key=secret, region_name="us-east-1"
    )


def post(url: str, content: bytes | None = b"", method: str = "POST") -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, content, method=method), timeout=30) as answer:
        return bytes(answer.read())


class Process:
    """A server in a process of its own, which can be killed and started again at the same address."""

    def __init__(self, *command: object, port: int) -> None:
        self.command, self.port = [str(part) for part in command], port
        self.url = f"http://127.0.0.1:{port}"
        self.options = options_of(self.url)
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Process":
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return self
            except OSError:
                assert self.process.poll() is None, f"{self.command} has ended"
                assert time.monotonic() < end, f"{self.command} does not listen"
                time.sleep(0.02)

    def kill(self) -> None:
        """End it as a machine does that loses its power."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None

    def say(self, word: str, **values: Any) -> dict[str, Any]:
        """Ask our server: `counts`, `clear`, or `faults` with their shares."""
        answer: dict[str, Any] = json.loads(post(f"{self.url}/-/{word}", json.dumps(values).encode()))
        return answer

    __enter__ = start

    def __exit__(self, *error: object) -> None:
        self.kill()


def own_process(folder: Path, **faults: object) -> Process:
    """Return our server as a process, not started yet."""
    port = free_port()
    shares = [f"--{name.replace('_', '-')}={value}" for name, value in faults.items()]
    server = Path(__file__).with_name("store_server.py")
    return Process(sys.executable, server, folder, f"--port={port}", *shares, port=port)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[StoreServer]:
    """Our server in this process, with an empty bucket, `bucket`; `own.faults`, `own.counts` and `own.go_down` are of use."""
    with StoreServer(tmp_path / "store") as server:
        (tmp_path / "store" / "bucket").mkdir()
        yield server


@pytest.fixture
def start_store(tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Start our server in processes of their own: `start_store(latency=0.05)`; all serve one folder, `tmp_path / "store"`."""
    started: list[Process] = []

    def start(**faults: object) -> Process:
        (tmp_path / "store" / "bucket").mkdir(parents=True, exist_ok=True)
        started.append(own_process(tmp_path / "store", **faults).start())
        return started[-1]

    yield start
    for process in started:
        process.kill()


@pytest.fixture(scope="session")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], str]]:
    """Addresses of servers, which are started when they are first asked for."""
    started: dict[str, Process] = {}

    def address_of(server: str) -> str:
        if server in BY_ADDRESS:
            return BY_ADDRESS[server]
        if server not in started:
            port, folder = free_port(), tmp_path_factory.mktemp(server)
            python = [sys.executable, "-m"]
            if server == "localbucket":
                command = [*python, "localbucket", folder, "--port", port]
            elif server == "moto":
                pytest.importorskip("moto.server")
                command = [*python, "moto.server", "-H", "127.0.0.1", "-p", port]
            pytest.importorskip(server)
            started[server] = Process(*command, port=port).start()
        return started[server].url

    yield address_of
    for process in started.values():
        process.kill()


def bucket_of(server: str, url: str) -> Bucket:
    """Make an empty bucket."""
    name = f"bucket-{uuid.uuid4().hex[:12]}"
    if server == "azurite":
        from azure.storage.blob import BlobServiceClient

        account = "devstoreaccount1"
        BlobServiceClient(f"{url}/{account}", credential=AZURITE_KEY).create_container(name)
        options = {
            "azure_storage_account_name": account, "azure_storage_account_key": AZURITE_KEY,
            "azure_storage_endpoint": f"{url}/{account}",
        }  # fmt: skip
        return Bucket(server, name, url, options, "az")
    if server == "gcs":
        post(f"{url}/storage/v1/b?project=tests", json.dumps({"name": name}).encode())
        account = {
            "gcs_base_url": url,
            "disable_oauth": True,
            "client_email": "",
            "private_key": "",
            "private_key_id": "",
        }
        return Bucket(
            server, name, url, {"google_service_account_key": json.dumps(account), "allow_http": True}, "gs"
        )
    options = options_of(url, "rgwak", "rgwsk") if server == "ceph" else options_of(url)
    made = Bucket(server, name, url, options)
    made.s3().create_bucket(Bucket=name)
    return made


@pytest.fixture(params=[*BY_PIP, *BY_ADDRESS])
def store(request: pytest.FixtureRequest, addresses: Callable[[str], str]) -> Bucket:
    """An empty bucket of each server."""
    pytest.importorskip("obstore")
    if request.param == "own":
        server = request.getfixturevalue("own")
        return Bucket("own", "bucket", server.url, options_of(server.url))
    return bucket_of(request.param, addresses(request.param))


@pytest.fixture
def bucket(own: StoreServer) -> Bucket:
    """An empty bucket of our server in this process."""
    pytest.importorskip("obstore")
    return Bucket("own", "bucket", own.url, options_of(own.url))
