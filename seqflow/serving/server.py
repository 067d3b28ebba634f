"""A server of batches over Arrow Flight. It has no state: any server of the same job answers any ticket."""

import hmac
import json
import threading
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict
from functools import wraps
from hashlib import sha256
from operator import index
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.flight as fl

from seqflow.arguments import FilePath, at_least_one, checked
from seqflow.errors import OpError
from seqflow.loader import Loader, Mix
from seqflow.loader.run.pipeline import Pipeline
from seqflow.loader.run.workers import byte_count
from seqflow.serving.batches import Batches
from seqflow.serving.tickets import Ticket, read_ticket
from seqflow.serving.wire import VERSION, EncodedBatch, bearer, message, refusal, stream_schema, wire_error
from seqflow.version import __version__

_TOGETHER, _TOGETHER_BYTES, _TOGETHER_SECONDS = 16, 512 << 10, 0.002
"""Most batches and bytes of one message, and the longest time for which it waits for another small batch. A message
costs as much as gathering 64 KiB several times."""
SECONDS_TO_END = 10
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a method of a server raise only errors of Flight: of all others Flight sends the traceback."""

    @wraps(method)
    def call(*args: Any) -> Any:
        try:
            return method(*args)
        except BaseException as error:
            raise wire_error(error) from None

    return call


class _Token(fl.ServerMiddlewareFactory):  # type: ignore[misc]
    """Refuses requests without the token."""

    def __init__(self, header: bytes) -> None:
        self._expected = header

    @_guarded
    def start_call(self, info: Any, headers: Any) -> None:
        given = (headers.get("authorization") or [""])[0].encode()
        if not hmac.compare_digest(given, self._expected):
            raise fl.FlightUnauthenticatedError("seqflow serve: there is no token, or another one")


class BatchServer(fl.FlightServerBase):  # type: ignore[misc]
    """Serves the batches of a loader until it is closed."""

    def __init__(
        self, loader: Loader | Mix, host: str, port: int, *, header: bytes | None, tls: tuple[bytes, bytes] | None,
        memory: int, streams: int,
    ) -> None:  # fmt: skip
        _check(loader)
        self._batches = Batches(loader, memory)
        self._batches.epoch(0)  # an index that is missing is made before the first client comes
        pipeline, names = loader.pipeline, None if isinstance(loader, Loader) else loader.names
        fingerprint, totals = pipeline.fingerprint(0), pipeline.totals
        balance = _members(loader)[0].recipe.batch.balance
        settings = {name: one for name, one in fingerprint["settings"].items() if name != "skip"}
        deciding = {
            "version": VERSION,
            "seqflow": __version__,
            "fingerprint": {**fingerprint, "settings": settings},
            "totals": None if totals is None else totals.texts,
        }
        self.identity = sha256(json.dumps(deciding, sort_keys=True, default=str).encode()).hexdigest()
        """The same for servers whose batches are the same, and are sent the same way."""
        self._sources = None if names is None else len(names)
        self._info: dict[str, Any] = {
            **deciding,
            "identity": self.identity,
            "sources": names,
            "streams": self._batches.streams,
            "balance": None if balance is None else [balance.group, balance.steps_of],
            "steps_of": pipeline.steps_of,
            "skip": [list(span) for span in pipeline.skip],
            "epochs_differ": pipeline.epochs_differ,
            "counts_rows": isinstance(pipeline, Pipeline) and pipeline.counts_rows,
        }
        self._slots, self._most = threading.BoundedSemaphore(streams), streams
        self._open, self._opening = 0, threading.Lock()
        self._stopping = threading.Event()
        self.started = monotonic()
        shown = f"[{host}]" if ":" in host else host
        super().__init__(
            f"grpc{'+tls' if tls else ''}://{shown}:{port}",
            tls_certificates=None if tls is None else [tls],
            middleware=None if header is None else {"token": _Token(header)},
        )
        self.address = f"{shown}:{self.port}"
        """Host and port, which may be one that the system has chosen."""
        self.url = f"flight{'+tls' if tls else ''}://{self.address}"
        """The argument of `sf.served`."""

    # Requests

    @_guarded
    def do_get(self, context: Any, ticket: Any) -> Any:
        """Answer a ticket with a stream of batches."""
        found = read_ticket(ticket.ticket, self.identity, self._sources)
        if self._stopping.is_set():
            raise refusal("this server stops")
        if not self._slots.acquire(blocking=False):
            raise refusal(f"all {self._most} streams of this server are in use")
        messages = self._messages(found)
        # begun here: only a generator that has begun gives its slot back when it is dropped
        return fl.GeneratorStream(next(messages), messages)

    def _messages(self, ticket: Ticket) -> Generator[Any, None, None]:
        """Yield the schema of a stream, then its messages."""
        with self._opening:
            self._open += 1
        try:
            numbers = ticket.numbers()
            first = batch = self._batch(ticket, next(numbers))
            yield stream_schema(first)
            # with other tensors the stream ends, and the client asks on from there
            while batch is not None and first is not None and batch.goes_with(first):
                together, following = self._together(ticket, batch, numbers)
                with self._opening:
                    self._batches.counts["sent"] += len(together)
                    self._batches.counts["bytes"] += sum(one.nbytes for one in together)
                yield message(together)
                if isinstance(following, BaseException):
                    raise following
                batch = following
        except GeneratorExit:
            raise
        except BaseException as error:
            raise wire_error(error) from None
        finally:
            with self._opening:
                self._open -= 1
            self._slots.release()

    def _together(
        self, ticket: Ticket, batch: EncodedBatch, numbers: Iterator[int]
    ) -> tuple[list[EncodedBatch], EncodedBatch | BaseException | None]:
        """Return the batches of a message from this one on, and the batch after them, or the error in its place."""
        together, size, started = [batch], batch.nbytes, monotonic()
        while True:
            number = None if self._stopping.is_set() else next(numbers, None)
            try:
                following = None if number is None else self._batch(ticket, number)
            except BaseException as error:
                return together, error  # after the batches before it
            if following is None:
                return together, None
            size += following.nbytes
            if (
                len(together) == _TOGETHER
                or size > _TOGETHER_BYTES
                or monotonic() - started > _TOGETHER_SECONDS
                or not following.goes_with(batch)
            ):
                return together, following
            together.append(following)

    def _batch(self, ticket: Ticket, number: int) -> EncodedBatch | None:
        return self._batches.empty(ticket, number) if ticket.fill else self._batches.get(ticket, number)

    @_guarded
    def do_action(self, context: Any, action: Any) -> Iterator[Any]:
        """Answer a question about the job, an epoch, a batch, or the server."""
        body = action.body.to_pybytes() if action.body is not None else b""
        found = self._answer(action.type, body)
        return iter([fl.Result(json.dumps(found).encode())])

    def _answer(self, what: str, body: bytes) -> Any:
        if what == "info":
            return self._info
        if what == "stats":
            return self.counts()
        if what == "known":
            ticket = read_ticket(body, self.identity, self._sources)
            number = next(ticket.numbers())
            batch = self._batches.get(ticket, number)
            facts = {} if batch is None else json.loads(batch.head)
            known = {"known": 0 if batch is None else number + 1, "place": facts.get("place")}
            return {**known, "total": self._batches.end_of(ticket.epoch)}
        if what == "epoch":
            ticket = read_ticket(body, self.identity, self._sources)
            total, firsts = self._batches.epoch(ticket.epoch)
            return {"total": total, "firsts": None if firsts is None else firsts.tolist()}
        if what == "trace":
            asked = json.loads(body[:4096])
            ticket = read_ticket(json.dumps(asked.pop("ticket")).encode(), self.identity, self._sources)
            found = self._batches.loader.trace(next(ticket.numbers()), epoch=ticket.epoch, **asked)
            return [asdict(one) for one in found]
        raise refusal("this is not a question that it answers", "ticket")

    @_guarded
    def _refuse(self, *args: Any) -> NoReturn:
        raise refusal("it answers tickets of batches only", "ticket")

    do_put = do_exchange = list_flights = get_flight_info = get_schema = list_actions = _refuse

    # The server

    def counts(self) -> dict[str, Any]:
        """Return what the server has done so far: batches and bytes sent, batches made, hits of those that are kept,
        open streams, rows read, and the stage that took the most time.
        """
        found = {**dict.fromkeys(("sent", "made", "hits", "bytes", "opened"), 0), **self._batches.summary()}
        return {**found, "streams": self._open, "seconds": round(monotonic() - self.started, 1)}

    def stop(self) -> None:
        """Accept no more streams, and end those that are open after their current message."""
        self._stopping.set()

    def close(self) -> bool:
        """Stop, and wait until the streams have ended; return whether they have, which a stalled client prevents."""
        self.stop()
        ending = threading.Thread(target=self.shutdown, name="seqflow-serve-end", daemon=True)
        ending.start()
        ending.join(SECONDS_TO_END)
        self._batches.close()
        return not ending.is_alive()

    def __enter__(self) -> "BatchServer":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _check(loader: Loader | Mix) -> None:
    """Raise OpError for a loader that cannot be served."""
    if loader.world_size > 1:
        raise OpError(
            f"serve: the loader is rank {loader.rank} of {loader.world_size}, expected one rank\n"
            "  a server gives all batches: sf.served(…, ranks=…) takes those of a rank"
        )
    for one in _members(loader):
        if one.recipe.source.read_once:
            raise OpError(
                "serve: the source is a stream, which can be read once\n  serve files, or a function that makes it"
            )
        if one.bad_rows.path is not None or one.recipe.source.bad_files.policy == "quarantine":
            raise OpError(
                "serve: bad rows or files go to a quarantine file, which several servers would write\n"
                '  serve with policy "skip": they are counted, and `seqflow run` writes such a file'
            )


@checked()
def serve(
    loader: Loader | Mix,
    *,
    host: str = "127.0.0.1",
    port: int = 8815,
    token: str | None = None,
    tls_cert: FilePath | None = None,
    tls_key: FilePath | None = None,
    memory: int | str = "2 GiB",
    streams: int = 256,
    insecure: bool = False,
) -> BatchServer:
    """Begin to serve the batches of a loader to `sf.served`, and return the server.

        with sf.serve(loader, port=0) as server:
            for batch in sf.served(server.url): ...

    Any number of servers of the same loader share the work, and any of them may end at any time. Nets and
    functions of the loader run here. The server runs in threads of its own until `close()`, at the end of the
    `with` block; `wait()` waits for that.

    Args:
        loader: Loader or Mix, of one rank, without a quarantine file.
        host: Address to listen at.
        port: Port to listen at; 0 lets the system choose one, which `server.port` and `server.url` tell.
        token: Text that clients must send; None lets all in.
        tls_cert: File of the certificate (PEM), for TLS.
        tls_key: File of its key (PEM).
        memory: Most bytes of batches that are kept for other clients, as a number or a text such as "2 GiB".
        streams: Most streams at one time; a client has one for each server and iteration.
        insecure: Whether a host other than this machine may be used without token and TLS.

    Raise OpError for a loader that cannot be served, for a host beyond this machine without token and TLS, and
    when the port is in use.
    """
    if (tls_cert is None) != (tls_key is None):
        raise OpError("serve: tls_cert and tls_key belong together, expected both or neither")
    if host not in LOOPBACK and not insecure and (token is None or tls_cert is None):
        raise OpError(
            f"serve: host {host} can be reached from other machines, expected a token and TLS",
            advice="give %(token)s, %(tls_cert)s and %(tls_key)s, or %(insecure)s in a network that you trust",
        )
    header = None if token is None else bearer(token)
    port, most = index(port), byte_count("serve: memory", memory)
    at_least_one("serve", streams=streams)
    try:
        tls = (
            None
            if tls_cert is None or tls_key is None
            else (Path(tls_cert).read_bytes(), Path(tls_key).read_bytes())
        )
        return BatchServer(loader, host, port, header=header, tls=tls, memory=most, streams=streams)
    except (fl.FlightError, pa.ArrowException, OSError) as error:
        raise OpError(f"serve: cannot listen at {host}:{port}: {str(error).splitlines()[0]}") from None


def _members(loader: Loader | Mix) -> list[Pipeline]:
    """Return the pipelines of all sources."""
    return loader.pipeline.present if isinstance(loader, Mix) else [loader.pipeline]
