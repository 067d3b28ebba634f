"""An object store for tests: a folder whose folders are buckets, served in the language of S3, with faults inside it.

    with StoreServer(folder, faults=Faults(unavailable=0.05)) as server:
        sf.open("s3://bucket/*.parquet", storage_options=server.options)
        server.counts["GET"], server.sent, server.most_in_flight
        server.go_down(5)  # no one listens for 5 seconds, and open connections are reset

As a process that can be killed and started again: `python tests/shared/store_server.py FOLDER --port 20100 --latency 0.05
--cut 0.05`; there GET /-/counts returns the counts as JSON, POST /-/clear sets them to 0, POST /-/faults takes faults as
JSON, POST /-/down?seconds=5 is `go_down`. Everything else it knows lies in the folder.

It also serves plain files (`http://127.0.0.1:PORT/bucket/key`) and a hub: the files of FOLDER/datasets/USER/NAME by
`/api/datasets/USER/NAME/tree/REVISION` and `/datasets/USER/NAME/resolve/REVISION/PATH`, which redirects to another host name.
"""

import argparse
import base64
import contextlib
import hashlib
import itertools
import json
import os
import random
import re
import shutil
import socket
import struct
import tempfile
import threading
import time
import uuid
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from email.utils import formatdate
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple
from urllib.parse import parse_qsl, quote, unquote
from xml.sax.saxutils import escape

PIECE = 1 << 20
PAGE = 1000
HTML = b"<html><body>Please log in to the network first.</body></html>"
REASONS = {
    "unavailable": (503, "SlowDown"), "internal": (500, "InternalError"), "denied": (403, "SignatureDoesNotMatch"),
    "skew": (403, "RequestTimeTooSkewed"), "expired": (400, "ExpiredToken"), "region": (301, "PermanentRedirect"),
}  # fmt: skip
OF_BODIES = ("html", "short", "whole")


@dataclass(frozen=True)
class Faults:
    """Latency in seconds, and the share of requests (0 … 1) that each fault meets.

    The draw depends on the seed, the request and how often it came before, not on the order of threads.
    """

    seed: int = 0
    latency: float = 0
    stall_seconds: float = 60
    methods: str = "GET HEAD PUT POST DELETE"
    unavailable: float = 0  # 503 SlowDown
    internal: float = 0  # 500 InternalError
    reset: float = 0  # the connection is reset before the answer
    cut: float = 0  # half of the body, of an answer or an upload, then the end of the connection
    stall: float = 0  # half of the body, then nothing
    lost: float = 0  # a PUT, POST or DELETE is carried out, its answer is lost
    html: float = 0  # a page with status 200 instead of the object
    short: float = 0  # half of the range, with a Content-Length that fits it
    whole: float = 0  # ranges are ignored: status 200 and all of the object
    denied: float = 0  # 403, as for a wrong secret
    skew: float = 0  # 403, the clock of the client is wrong
    expired: float = 0  # 400, the session token is no longer valid
    region: float = 0  # 301, the bucket lies in another region
    ignore_none_match: bool = False
    ignore_match: bool = False

    def draw(self, method: str, target: str, times: int) -> str:
        """Return the name of the fault that this request meets, or an empty text."""
        if method not in self.methods.split():
            return ""
        value = random.Random(f"{self.seed} {method} {target} {times}").random()
        for name in (*REASONS, "reset", "cut", "stall", "lost", *OF_BODIES):
            value -= getattr(self, name)
            if value < 0:
                return name
        return ""


class Request(NamedTuple):
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Iterator[bytes]

    @property
    def place(self) -> tuple[str, str]:
        """The bucket and the key."""
        bucket, _, key = self.path[1:].partition("/")
        return bucket, key

    @property
    def kind(self) -> str:
        """How the request is counted."""
        if self.path.startswith("/api/"):
            return "HUB LIST"
        if not self.place[1] and self.method == "GET":
            return "LIST UPLOADS" if "uploads" in self.query else "LIST"
        names = {"uploads": "CREATE UPLOAD", "delete": "DELETE MANY", "partNumber": "PUT PART"}
        ends = {"POST": "COMPLETE UPLOAD", "DELETE": "ABORT UPLOAD"}
        found = [names[name] for name in names if name in self.query]
        return found[0] if found else ends[self.method] if "uploadId" in self.query else self.method


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    content: bytes = b""
    file: BinaryIO | None = None
    start: int = 0
    stop: int = 0

    @property
    def size(self) -> int:
        return self.stop - self.start if self.file else len(self.content)


class Refusal(Exception):
    """An error of S3: status, code, further headers."""

    def answer(self, path: str) -> Answer:
        status, code, headers = (*self.args, {})[:3]
        text = (
            f"<Error><Code>{code}</Code><Message>{code}</Message><Resource>{escape(path)}</Resource></Error>"
        )
        return Answer(status, {"Content-Type": "application/xml", **headers}, text.encode())


def free_port() -> int:
    """Return a port below those that the system gives to outgoing connections: it stays free for a restart."""
    for port in random.Random().sample(range(20000, 32000), 100):
        with contextlib.suppress(OSError), socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            tried.bind(("127.0.0.1", port))
            return port
    raise OSError("no free port between 20000 and 32000")


class StoreServer:
    """A server in threads of this process, from `__enter__` or `start` to `stop`."""

    def __init__(
        self,
        folder: str | Path,
        port: int = 0,
        faults: Faults | None = None,
        *,
        public: bool = True,
        token: str = "",
    ) -> None:
        self.store = Store(Path(folder))
        self.port = port or free_port()
        self.faults = faults or Faults()
        self.public = public
        """Whether requests without a signature are answered."""
        self.token = token
        """The token that the hub asks for."""
        self.choose: Callable[[Request, int], str] | None = None
        """Chooses the fault of a request and the number of its kind before it, instead of the shares of `faults`."""
        self.lock = threading.Lock()
        self.stopping = threading.Event()
        self.connections: set[socket.socket] = set()
        self.clear()

    url = property(lambda self: f"http://127.0.0.1:{self.port}")
    options = property(
        lambda self: {
            "aws_endpoint_url": self.url, "aws_access_key_id": "ak", "aws_secret_access_key": "sk-of-tests",
            "aws_region": "us-east-1",
        }
    )  # fmt: skip

    def clear(self) -> None:
        """Set the counts to 0."""
        self.counts: Counter[str] = Counter()
        self.met: Counter[str] = Counter()
        """How many requests each fault has met."""
        self.seen: Counter[str] = Counter()
        self.sent = self.received = self.in_flight = self.most_in_flight = 0

    def counted(self) -> dict[str, Any]:
        """Return requests by kind, faults met, bytes of bodies sent and received, most requests at once."""
        names = ("counts", "met", "sent", "received", "most_in_flight")
        return {name: getattr(self, name) for name in names}

    def start(self) -> "StoreServer":
        self.listener = socket.create_server(("127.0.0.1", self.port), backlog=512)
        threading.Thread(target=self.accept, args=(self.listener,), daemon=True).start()
        return self

    def stop(self) -> None:
        self.stopping.set()
        self.close()

    __enter__ = start

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stop()

    def go_down(self, seconds: float) -> None:
        """Refuse connections for so long, and reset those that are open."""
        self.close()
        timer = threading.Timer(seconds, lambda: self.stopping.is_set() or self.start())
        timer.daemon = True
        timer.start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)  # `close` alone would not wake `accept`
        self.listener.close()
        with self.lock:
            for connection in self.connections:
                abort(connection)
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)  # ends what its thread sends

    def accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection: socket.socket) -> None:
        with self.lock:
            self.connections.add(connection)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            with connection, connection.makefile("rb", PIECE) as stream:
                while (request := read_request(connection, stream)) and self.handle(connection, request):
                    pass
        except (OSError, EOFError, ValueError):  # the other side went away, or `abort`
            pass
        finally:
            with self.lock:
                self.connections.discard(connection)

    def handle(self, connection: socket.socket, request: Request) -> bool:
        """Answer a request; return whether the connection goes on."""
        if request.path.startswith("/-/"):
            send(connection, request, self.control(request))
            return True
        fault = self.count(request)
        try:
            self.stopping.wait(self.faults.latency)
            return self.answer(connection, request, fault)
        finally:
            with self.lock:
                self.in_flight -= 1

    def count(self, request: Request) -> str:
        target = f"{request.path} {request.query} {request.headers.get('range')}"
        with self.lock:
            times = self.seen[f"{request.method} {target}"]
            self.seen[f"{request.method} {target}"] += 1
            earlier = self.counts[request.kind]
            self.counts[request.kind] += 1
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            chosen = self.choose(request, earlier) if self.choose else None
            fault = self.faults.draw(request.method, target, times) if chosen is None else chosen
            if fault:
                self.met[fault] += 1
        return fault

    def answer(self, connection: socket.socket, request: Request, fault: str) -> bool:
        reads = request.method in ("GET", "HEAD")
        if fault == "reset" or (fault == "cut" and not reads):
            if fault == "cut":
                next(request.body, None)
            abort(connection)
            return False
        if fault == "stall" and not reads:
            self.stopping.wait(self.faults.stall_seconds)
            return False
        try:
            answer = self.find(request, fault)
        except Refusal as refusal:
            answer = refusal.answer(request.path)
        except FileNotFoundError:
            answer = Refusal(404, "NoSuchKey" if request.place[1] else "NoSuchBucket").answer(request.path)
        with answer.file or contextlib.nullcontext():
            received = sum(map(len, request.body))  # what no one read
            if fault == "lost" and not reads:
                abort(connection)
                return False
            if fault == "short" and request.method == "GET" and answer.status in (200, 206):
                half = answer.size // 2
                answer = answer._replace(content=answer.content[:half], stop=answer.start + half)
            part = 0.5 if fault in ("cut", "stall") and request.method == "GET" else 1
            send(connection, request, answer, part)
        with self.lock:
            self.received += received
            self.sent += 0 if request.method == "HEAD" else int(answer.size * part)
        if fault == "stall":
            self.stopping.wait(self.faults.stall_seconds)
        return part == 1 and request.headers.get("connection", "").lower() != "close"

    def find(self, request: Request, fault: str) -> Answer:
        """Carry out a request."""
        if fault in REASONS:
            raise Refusal(*REASONS[fault], {"x-amz-bucket-region": "eu-x-1"} if fault == "region" else {})
        signed = request.headers.get("authorization", "")
        if fault == "html" and request.method in ("GET", "HEAD"):
            return Answer(200, {"Content-Type": "text/html"}, HTML)
        if request.path.startswith(("/api/datasets/", "/datasets/")):
            if self.token and signed != f"Bearer {self.token}":
                raise Refusal(
                    401, "Unauthorized", {"X-Error-Message": "Invalid credentials in Authorization header"}
                )
            return self.store.hub(request, self.url)
        if request.path.startswith("/hub-data/"):
            if signed:
                self.met["token sent to the data host"] += 1
            request = request._replace(path=request.path.removeprefix("/hub-data"))
        elif not signed and not self.public:
            raise Refusal(403, "AccessDenied")
        elif "Credential=" in signed and "Credential=ak/" not in signed:
            raise Refusal(403, "InvalidAccessKeyId")
        if fault == "whole":
            request.headers.pop("range", None)
        for header, is_ignored in (
            ("if-match", self.faults.ignore_match),
            ("if-none-match", self.faults.ignore_none_match),
        ):
            if is_ignored:
                request.headers.pop(header, None)
        return self.store.carry_out(request)

    def control(self, request: Request) -> Answer:
        match request.path:
            case "/-/faults":
                self.faults = replace(self.faults, **json.loads(b"".join(request.body)))
            case "/-/clear":
                self.clear()
            case "/-/down":
                threading.Timer(0.05, self.go_down, [float(request.query["seconds"])]).start()
        return Answer(200, {}, json.dumps(self.counted() | {"faults": asdict(self.faults)}).encode())


class Store:
    """Buckets in a folder. An object is a file; what else is known of it lies in .meta, under its etag."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lock = threading.Lock()
        for name in (".meta", ".uploads", ".new"):
            (folder / name).mkdir(parents=True, exist_ok=True)

    def path(self, request: Request) -> Path:
        bucket, key = request.place
        if {".", "..", ""} & set(key.split("/")) or bucket.startswith("."):
            raise Refusal(400, "InvalidURI")
        if not (self.folder / bucket).is_dir():
            raise Refusal(404, "NoSuchBucket")
        return self.folder / bucket / key

    def carry_out(self, request: Request) -> Answer:
        bucket, key = request.place
        match request.kind:
            case "LIST":
                return self.list(request)
            case "LIST UPLOADS":
                return self.list_uploads(bucket)
            case "HEAD" if not key:
                return Answer(200 if (self.folder / bucket).is_dir() else 404, {})
            case "PUT" if not key:
                (self.folder / bucket).mkdir(exist_ok=True)
                return Answer(200, {})
            case "GET" | "HEAD":
                return self.read(request)
            case "PUT" if "x-amz-copy-source" not in request.headers:
                return self.write(request, request.body)
            case "DELETE":
                self.path(request).unlink(missing_ok=True)
                return Answer(204, {})
            case "DELETE MANY":
                keys = [one.text or "" for one in ET.fromstring(b"".join(request.body)).iterfind(".//{*}Key")]
                for name in keys:
                    (self.folder / bucket / name).unlink(missing_ok=True)
                return xml(
                    "DeleteResult", "".join(f"<Deleted><Key>{escape(name)}</Key></Deleted>" for name in keys)
                )
            case "CREATE UPLOAD" | "PUT PART" | "COMPLETE UPLOAD" | "ABORT UPLOAD":
                return self.upload(request)
        raise Refusal(405, "MethodNotAllowed")

    def read(self, request: Request) -> Answer:
        path = self.path(request)
        if not path.is_file():
            raise Refusal(404, "NoSuchKey")
        file = path.open("rb")  # a file that is replaced from now on stays the same here
        try:
            state = os.fstat(file.fileno())
            etag, size, wanted = etag_of(state), state.st_size, request.headers.get("range", "")
            if request.headers.get("if-match", etag) not in (etag, "*"):
                raise Refusal(412, "PreconditionFailed")
            if request.headers.get("if-none-match") in (etag, "*"):
                return Answer(304, {"ETag": etag})
            start, stop = 0, size
            if found := re.fullmatch(r"bytes=(\d*)-(\d*)", wanted):
                first, last = found.groups()
                start = int(first) if first else max(size - int(last), 0)
                stop = min(int(last) + 1, size) if first and last else size
                if start >= size:
                    raise Refusal(416, "InvalidRange", {"Content-Range": f"bytes */{size}"})
            headers = {
                "ETag": etag, "Last-Modified": formatdate(state.st_mtime, usegmt=True), "Accept-Ranges": "bytes",
                "Content-Type": "application/octet-stream", **self.metadata(etag),
            }  # fmt: skip
            if found:
                headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
            return Answer(206 if found else 200, headers, b"", file, start, stop)
        except Refusal:
            file.close()
            raise

    def metadata(self, etag: str) -> dict[str, str]:
        kept = self.folder / ".meta" / etag.strip('"')
        return dict(json.loads(kept.read_bytes())) if kept.exists() else {}

    def write(self, request: Request, body: Iterator[bytes], kept: dict[str, str] | None = None) -> Answer:
        """Write an object whole, or not at all."""
        path = self.path(request)
        if kept is None:
            kept = user_metadata(request)
        with tempfile.NamedTemporaryFile(dir=self.folder / ".new") as new:
            for piece in body:
                new.write(piece)
            new.flush()
            etag = etag_of(os.fstat(new.fileno()))
            if kept:
                (self.folder / ".meta" / etag.strip('"')).write_text(json.dumps(kept))
            with self.lock:  # of this process: the only one that writes here
                there = etag_of(path.stat()) if path.is_file() else None
                if request.headers.get("if-none-match") == "*" and there:
                    raise Refusal(412, "PreconditionFailed")
                if request.headers.get("if-match", there) != there:
                    raise Refusal(412 if there else 404, "PreconditionFailed" if there else "NoSuchKey")
                path.parent.mkdir(parents=True, exist_ok=True)
                linked = f"{new.name}.link"
                os.link(new.name, linked)
                os.replace(linked, path)
        return Answer(200, {"ETag": etag})

    def upload(self, request: Request) -> Answer:
        """A multipart upload: a folder of its parts, with the key and metadata of the object."""
        path = self.path(request)
        bucket, key = request.place
        if request.kind == "CREATE UPLOAD":
            number = uuid.uuid4().hex
            (self.folder / ".uploads" / number).mkdir()
            about = {"bucket": bucket, "key": key, "metadata": user_metadata(request)}
            (self.folder / ".uploads" / number / "about").write_text(json.dumps(about))
            content = f"<Bucket>{bucket}</Bucket><Key>{escape(key)}</Key><UploadId>{number}</UploadId>"
            return xml("InitiateMultipartUploadResult", content)
        parts = self.folder / ".uploads" / request.query["uploadId"]
        if not (parts / "about").exists():
            raise Refusal(404, "NoSuchUpload")
        if request.kind == "ABORT UPLOAD":
            shutil.rmtree(parts)
            return Answer(204, {})
        if request.kind == "PUT PART":
            new = parts / f"{uuid.uuid4().hex}.new"
            with new.open("wb") as file:
                for piece in request.body:
                    file.write(piece)
            etag = etag_of(new.stat())
            os.replace(new, parts / f"{int(request.query['partNumber']):05}")
            return Answer(200, {"ETag": etag})
        asked = ET.fromstring(b"".join(request.body)).findall("{*}Part")
        files = [parts / f"{int(one.findtext('{*}PartNumber') or 0):05}" for one in asked]
        named = [(one.findtext("{*}ETag") or "").strip('"') for one in asked]
        if [etag_of(file.stat()).strip('"') if file.exists() else None for file in files] != named:
            raise Refusal(400, "InvalidPart")
        kept = json.loads((parts / "about").read_text())["metadata"]
        etag = self.write(request, itertools.chain.from_iterable(map(pieces_of, files)), kept).headers["ETag"]
        shutil.rmtree(parts)
        return xml("CompleteMultipartUploadResult", f"<Location>{path}</Location><ETag>{escape(etag)}</ETag>")

    def list_uploads(self, bucket: str) -> Answer:
        found = ""
        for about in sorted((self.folder / ".uploads").glob("*/about")):
            upload = json.loads(about.read_text())
            if upload["bucket"] == bucket:
                found += f"<Upload><Key>{escape(upload['key'])}</Key><UploadId>{about.parent.name}</UploadId></Upload>"
        return xml(
            "ListMultipartUploadsResult", f"<Bucket>{bucket}</Bucket><IsTruncated>false</IsTruncated>{found}"
        )

    def keys(self, bucket: str, prefix: str) -> list[str]:
        """Return the keys below a prefix, in the order of their bytes."""
        root = self.folder / bucket
        if not root.is_dir() or bucket.startswith("."):
            raise Refusal(404, "NoSuchBucket")
        found = []
        for folder, _, names in os.walk(root / prefix.rpartition("/")[0]):
            inside = os.path.relpath(folder, root).replace("\\", "/") + "/"
            found += [name if inside == "./" else inside + name for name in names]
        return sorted(key for key in found if key.startswith(prefix))

    def list(self, request: Request) -> Answer:
        query, bucket = request.query, request.place[0]
        if "list-type" not in query:
            raise Refusal(501, "NotImplemented")
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        after = max(
            query.get("start-after", ""), base64.b64decode(query.get("continuation-token", "")).decode()
        )
        most = min(int(query.get("max-keys", PAGE)), PAGE)
        entries: list[str] = []  # keys, and what they share up to the delimiter
        for key in self.keys(bucket, prefix):
            head, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else (key, "", "")
            entry = prefix + head + found if found else key
            if (
                entry > after
                and not (entries and entries[-1] == entry)
                and not (found and after.startswith(entry))
            ):
                entries.append(entry)
                if len(entries) > most:
                    break
        page, is_more = entries[:most], len(entries) > most
        url = query.get("encoding-type") == "url"
        content = f"<Name>{bucket}</Name><KeyCount>{len(page)}</KeyCount><MaxKeys>{most}</MaxKeys>"
        content += f"<IsTruncated>{str(is_more).lower()}</IsTruncated>"
        if is_more:
            token = base64.b64encode(page[-1].encode()).decode()
            content += f"<NextContinuationToken>{token}</NextContinuationToken>"
        if url:
            content += "<EncodingType>url</EncodingType>"
        for entry in page:
            shown = quote(entry) if url else escape(entry)
            if delimiter and entry.endswith(delimiter):
                content += f"<CommonPrefixes><Prefix>{shown}</Prefix></CommonPrefixes>"
                continue
            with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                state = (self.folder / bucket / entry).stat()
                changed = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(state.st_mtime))
                content += (
                    f"<Contents><Key>{shown}</Key><LastModified>{changed}</LastModified><Size>{state.st_size}</Size>"
                    f"<ETag>{escape(etag_of(state))}</ETag><StorageClass>STANDARD</StorageClass></Contents>"
                )
        return xml("ListBucketResult", content)

    def hub(self, request: Request, url: str) -> Answer:
        """The commit of a revision, the list of a data set by pages of 1,000 files, or the redirection to a file."""
        if found := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)/revision/(.+)", request.path):
            if not (self.folder / "datasets" / found[1]).is_dir():
                raise Refusal(404, "RepoNotFound", {"X-Error-Code": "RepoNotFound"})
            commit = hashlib.sha1(found[2].encode()).hexdigest()
            return Answer(200, {"Content-Type": "application/json"}, json.dumps({"sha": commit}).encode())
        if found := re.fullmatch(r"/api/datasets/([^/]+/[^/]+)/tree/([^/]+)(?:/(.*))?", request.path):
            name, _, inside = found.groups()
            root = self.folder / "datasets" / name
            if not (root / (inside or "")).is_dir():
                raise Refusal(404, "EntryNotFound", {"X-Error-Code": "EntryNotFound"})
            keys = [
                key.removeprefix(f"{name}/")
                for key in self.keys("datasets", f"{name}/{inside + '/' if inside else ''}")
            ]
            start = int(request.query.get("cursor", 0))
            files = [
                {"type": "file", "path": key, "size": (root / key).stat().st_size, "oid": oid(root / key)}
                for key in keys[start : start + PAGE]
            ]
            headers = {"Content-Type": "application/json"}
            if start + PAGE < len(keys):
                headers["Link"] = (
                    f'<{url}{quote(request.path)}?recursive=true&cursor={start + PAGE}>; rel="next"'
                )
            return Answer(200, headers, json.dumps(files).encode())
        if found := re.fullmatch(r"/datasets/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", request.path):
            name, _, inside = found.groups()
            path = self.folder / "datasets" / name / inside
            if not path.is_file():
                raise Refusal(404, "EntryNotFound", {"X-Error-Code": "EntryNotFound"})
            target = f"{url.replace('127.0.0.1', 'localhost')}/hub-data/datasets/{name}/{quote(inside)}?X-Amz-Signature=of-the-hub"
            linked = {"X-Linked-ETag": f'"{oid(path)}"', "X-Linked-Size": str(path.stat().st_size)}
            return Answer(302, {"Location": target, "X-Repo-Commit": "0" * 40, **linked})
        raise Refusal(404, "RepoNotFound", {"X-Error-Code": "RepoNotFound"})


def etag_of(state: os.stat_result) -> str:
    return f'"{state.st_mtime_ns:x}-{state.st_ino:x}-{state.st_size:x}"'


def oid(path: Path) -> str:
    return etag_of(path.stat()).strip('"')


def user_metadata(request: Request) -> dict[str, str]:
    return {name: value for name, value in request.headers.items() if name.startswith("x-amz-meta-")}


def xml(name: str, content: str) -> Answer:
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{name} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{content}</{name}>'
    return Answer(200, {"Content-Type": "application/xml"}, text.encode())


def pieces_of(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        while piece := opened.read(PIECE):
            yield piece


def abort(connection: socket.socket) -> None:
    """Let a connection end by a reset when it is closed."""
    with contextlib.suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def read_request(connection: socket.socket, stream: BinaryIO) -> Request | None:
    """Read a request up to its body; None at the end of the connection."""
    line = stream.readline(PIECE)
    if not line.strip():
        return None
    method, target, _ = line.decode("latin-1").split()
    headers = {}
    while line := stream.readline(PIECE).strip():
        name, _, value = line.decode("utf-8", "replace").partition(":")
        headers[name.lower()] = value.strip()
    if headers.get("expect", "").lower() == "100-continue":
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    path, _, query = target.partition("?")
    return Request(method, unquote(path), dict(parse_qsl(query, True)), headers, read_body(headers, stream))


def read_body(headers: dict[str, str], stream: BinaryIO) -> Iterator[bytes]:
    """Yield the pieces of a body without the chunks that HTTP and S3 may cut it into."""
    plain: Any = Chunks(stream) if headers.get("transfer-encoding") == "chunked" else Counted(stream, headers)
    if "aws-chunked" in headers.get("content-encoding", "") or headers.get(
        "x-amz-content-sha256", ""
    ).startswith("STREAMING-"):
        yield from Chunks(plain)
        plain.read()  # trailers
    else:
        while piece := plain.read(PIECE):
            yield piece


class Counted:
    """A body of a known length."""

    def __init__(self, stream: BinaryIO, headers: dict[str, str]) -> None:
        self.stream, self.left = stream, int(headers.get("content-length", 0))

    def read(self, size: int = -1) -> bytes:
        size = self.left if size < 0 else min(size, self.left)
        piece = self.stream.read(size)
        self.left -= size
        if len(piece) < size:
            raise EOFError("the upload was cut")
        return piece

    def readline(self) -> bytes:
        line = self.stream.readline(self.left)
        self.left -= len(line)
        return line


class Chunks:
    """A body in chunks, each after a line with its size in hexadecimal digits; one of size 0 is the last."""

    def __init__(self, stream: Any) -> None:
        self.stream, self.pieces, self.rest = stream, self.walk(), b""

    def walk(self) -> Iterator[bytes]:
        while size := int(self.stream.readline().split(b";")[0].strip() or b"0", 16):
            yield self.stream.read(size)
            self.stream.readline()
        while self.stream.readline().strip():  # trailers
            pass

    def __iter__(self) -> Iterator[bytes]:
        return self.pieces

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self.rest) < size:
            piece = next(self.pieces, b"")
            if not piece:
                break
            self.rest += piece
        size = len(self.rest) if size < 0 else size
        piece, self.rest = self.rest[:size], self.rest[size:]
        return piece

    def readline(self) -> bytes:
        while b"\n" not in self.rest and (piece := next(self.pieces, b"")):
            self.rest += piece
        return self.read(self.rest.find(b"\n") + 1 or len(self.rest))


def send(connection: socket.socket, request: Request, answer: Answer, part: float = 1) -> None:
    headers = {"Content-Length": str(answer.size), "Date": formatdate(usegmt=True), **answer.headers}
    if answer.status == 204:
        del headers["Content-Length"]
    head = f"HTTP/1.1 {answer.status} -\r\n" + "".join(
        f"{name}: {value}\r\n" for name, value in headers.items()
    )
    body = answer.content if request.method != "HEAD" else b""
    connection.sendall(f"{head}\r\n".encode() + body[: int(len(body) * part)])
    size = int(answer.size * part)
    if answer.file and size and request.method != "HEAD":
        connection.sendfile(answer.file, answer.start, size)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--port", type=int, default=0, help="a free one by default; the first line says which"
    )
    for field in fields(Faults):
        kind = (
            {"action": "store_true"} if field.type is bool else {"type": field.type, "default": field.default}
        )
        parser.add_argument(f"--{field.name.replace('_', '-')}", **kind)
    options = vars(parser.parse_args())
    server = StoreServer(options.pop("folder"), options.pop("port"), Faults(**options)).start()
    print(server.url, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
