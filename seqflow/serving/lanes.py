"""The client's side of a stream: batches of a lane in order, from one server after another."""

import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

import pyarrow.flight as fl

from seqflow.errors import OpError
from seqflow.identity.differences import differences
from seqflow.logs import log
from seqflow.record import Record
from seqflow.serving.tickets import MOST_BYTES, MOST_SPANS, Span, Ticket
from seqflow.serving.wire import ELSEWHERE, FOREIGN, Decoder, bearer, kind_of, local_error

Facts = Mapping[str, Any]
_LONGEST_PAUSE = 1.0
"""Seconds between two attempts to reach servers of which none answers."""
_OPTIONS = [("grpc.use_local_subchannel_pool", 1)]
"""gRPC would share failed connections: a server that is back would be unreachable for seconds."""


class Servers:
    """The servers of one job, and requests to any of them."""

    def __init__(
        self, urls: Sequence[str], *, token: str | None, tls_root: bytes | None, timeout: float
    ) -> None:
        self._places = [_place_of(one) for url in urls for one in _split(url)]
        if len({tls for *_, tls in self._places}) != 1:
            raise OpError(f"served: {', '.join(urls)} has flight:// and flight+tls://, expected one of them")
        self.timeout, self._tls_root = timeout, tls_root
        self._headers = [] if token is None else [(b"authorization", bearer(token))]
        self.names = [f"{host}:{port}" for host, port, _ in self._places]
        self.addresses: list[tuple[str, str]] = []
        """Address and host name of each server, in an order that all clients share."""
        self.refusals: dict[str, str] = {}
        """For each server that has another job or other data, what it said."""
        self._lost: dict[str, float] = {}
        """When servers failed that have not answered since: a warning tells each once, not once for each request."""
        self.failures = 0
        """Number of times that a server failed, and another one was asked."""
        self.info: Mapping[str, Any] = {}
        """Facts about the job, from the first server that answered."""
        self.look_up()

    def lose(self, address: str, why: str) -> None:
        """Log a warning that a server has failed, unless one did since it answered."""
        now = monotonic()
        is_new = self._lost.setdefault(address, now) is now  # of several threads, one has set it
        if is_new and len(self.addresses) > 1:
            left = {one for one, _ in self.addresses} - self._lost.keys() - self.refusals.keys()
            then = "the other servers are asked" if left else "no other server is left: all are asked again"
            log.warning("served: %s: %s; %s", address, why, then)

    def answered(self, address: str) -> None:
        """Record that a server has answered."""
        self._lost.pop(address, None)

    def look_up(self) -> None:
        """Find the addresses of all names: a name may have several, which change as servers come and go."""
        found: set[tuple[str, str]] = set()
        for host, port, _ in self._places:
            try:
                infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            except OSError:
                found.add((f"{host}:{port}", host))
                continue
            families = [info for info in infos if info[0] == infos[0][0]]  # the same server by IPv4 and IPv6
            for family, *_, address in families:
                ip = f"[{address[0]}]" if family == socket.AF_INET6 else address[0]
                found.add((f"{ip}:{port}", host))
        self.addresses = sorted(found)

    def client(self, number: int) -> tuple[str, fl.FlightClient, fl.FlightCallOptions]:
        """Return the address of a server, counted in turn, and a connection to it."""
        address, host = self.addresses[number % len(self.addresses)]
        return address, self._connected(address, host), self.options()

    def _connected(self, address: str, host: str) -> fl.FlightClient:
        tls = self._places[0][2]
        options: dict[str, Any] = {"generic_options": _OPTIONS}
        if tls:
            options |= {"override_hostname": host, "tls_root_certs": self._tls_root}
        return fl.connect(f"grpc{'+tls' if tls else ''}://{address}", **options)

    def options(self, timeout: float | None = None) -> fl.FlightCallOptions:
        return fl.FlightCallOptions(timeout=timeout, headers=self._headers)

    def ask(self, what: str, body: bytes = b"", lane: int = 0) -> Any:
        """Return the answer of the first server that answers; raise its error if it is not the server's own."""
        attempts = Attempts(self)
        while True:
            address, client, _ = self.client(lane + attempts.number)
            try:
                found = self._answer(client, what, body, self.timeout)
            except Exception as error:
                attempts.failed(address, error)
            else:
                self.answered(address)
                return found

    def _answer(self, client: fl.FlightClient, what: str, body: bytes = b"", timeout: float = 1) -> Any:
        with client:
            (found,) = client.do_action(fl.Action(what, body), self.options(timeout))
            return json.loads(found.body.to_pybytes())

    def difference(self, address: str) -> str:
        """Return how the job of a server differs from the client's; "" if it does not answer within a second."""
        host = dict(self.addresses).get(address)
        if host is None:  # its name has other addresses since
            return ""
        try:
            found, expected = self._answer(self._connected(address, host), "info"), self.info
        except fl.FlightError:
            return ""
        for name in ("version", "seqflow"):
            if found[name] != expected[name]:
                return f": {name} is {found[name]}, expected {expected[name]}"
        if found["sources"] != expected["sources"]:
            return f": the sources are {found['sources'] or 'one'}, expected {expected['sources'] or 'one'}"
        both = [_comparable(expected), _comparable(found)]
        for (place, before), after in zip(both[0].items(), both[1].values(), strict=True):
            if (first := next(iter(differences(before, after)), None)) is not None:
                return f": {place}{first.text}"
        return ""

    def each(self, what: str) -> dict[str, Any]:
        """Return the answer of each server that answers within a second, by its address."""
        found = {}
        for number in range(len(self.addresses)):
            address, client, _ = self.client(number)
            try:
                found[address] = self._answer(client, what)
            except fl.FlightError as error:
                found[address] = {"error": _line(error)}
        return found


def _comparable(info: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what decides batches, as sections to compare, by the place that a message names: that of each source of
    a mix first.
    """
    whole = {**info["fingerprint"], "totals": info["totals"]}
    sources = zip(info["sources"] or (), whole.pop("sources", ()), strict=True)
    found = {f"source {name}: ": one for name, one in sources} | {"": whole}
    return {place: {**one, **one["settings"], "settings": None} for place, one in found.items()}


class Attempts:
    """Failures in a row: servers are asked in turn until one answers, or the time is over."""

    def __init__(self, servers: Servers, wait: Callable[[float], object] | None = None) -> None:
        self._servers, self._wait = servers, wait or threading.Event().wait
        self.number = 0
        """Number of failures: the server to ask, counted from the first choice."""
        self.answered()

    def answered(self) -> None:
        """Record that a server has answered."""
        self._since: float | None = None
        self._errors: dict[str, str] = {}
        self._final: set[str] = set()
        self._in_turn = 0

    @property
    def told(self) -> str:
        """Lines of the last error of each server since one answered; empty if none has failed."""
        return "\n  ".join(f"{one}: {text}" for one, text in sorted(self._errors.items()))

    def failed(self, address: str, error: Exception) -> None:
        """Record a failure, and pause once all servers have failed; raise an error that no other server mends.

        That is an error of the batch itself, or OpError when no server answered for `timeout` seconds, or all
        have refused.
        """
        servers, kind = self._servers, kind_of(error)
        if kind not in (None, ELSEWHERE, FOREIGN) or (kind is None and not isinstance(error, fl.FlightError)):
            raise local_error(error) from None
        now = monotonic()
        self._since = now if self._since is None else self._since
        self._errors[address] = _line(local_error(error))
        if kind == FOREIGN or isinstance(error, fl.FlightUnauthenticatedError):
            self._final.add(address)
            if not servers.refusals.get(address, "").startswith(self._errors[address]):
                difference = servers.difference(address) if kind == FOREIGN else ""
                servers.refusals[address] = self._errors[address] + difference
                if kind == FOREIGN:
                    log.warning("served: %s: %s", address, servers.refusals[address])
            self._errors[address] = servers.refusals[address]
        else:
            servers.lose(address, self._errors[address])
        servers.failures += 1
        self.number += 1
        self._in_turn += 1
        if self._in_turn < len(servers.addresses):
            return
        every = {one for one, _ in servers.addresses}
        if every <= self._final or now - self._since > servers.timeout:
            told = self.told
            what = "all refuse" if every <= self._final else f"none answers for {servers.timeout:g} seconds"
            raise OpError(f"served: {', '.join(servers.names)}: {what}\n  {told}") from None
        self._in_turn = 0
        servers.look_up()
        self._wait(min(_LONGEST_PAUSE, 0.02 * 2 ** min(10, self.number // len(servers.addresses))))


def _line(error: BaseException) -> str:
    """Return the first line of an error, without what gRPC adds to it."""
    return (
        (str(error).splitlines() or [type(error).__name__])[0]
        .partition(". Detail:")[0]
        .partition(". gRPC client")[0]
    )


def _split(url: str) -> Iterator[str]:
    scheme, _, rest = url.partition("://")
    yield from (f"{scheme}://{one}" for one in rest.split(","))


def _place_of(url: str) -> tuple[str, int, bool]:
    """Return host, port, and whether TLS is used; raise OpError for another URL."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host = port = None
    else:
        if parts.scheme not in ("flight", "flight+tls") or parts.path or parts.query or "@" in url:
            host = None
    if not host or port is None:
        raise OpError(
            f"served: {url!r} is not a server, expected flight://host:port or flight+tls://host:port"
        )
    return host, port, parts.scheme == "flight+tls"


class Lane:
    """Batches of a lane, read ahead in order by a thread, into a buffer of bounded bytes.

    When a server fails, or gives no batch for `timeout` seconds, the next one is asked from there on: a batch is
    taken exactly once.
    """

    def __init__(
        self,
        servers: Servers,
        number: int,
        ticket: Ticket,
        spans: Iterable[Span],
        low: Callable[[int], int],
        most: int,
    ) -> None:
        self._servers, self._number, self._ticket, self._low, self._most = servers, number, ticket, low, most
        self._spans = iter(spans)
        self._wanted: deque[Span] = deque()
        """Numbers that are still to come, from the next one on."""
        self._place = ticket.place
        self._changed = threading.Condition()
        self._ready: deque[tuple[Facts, Record, int]] = deque()
        self._bytes = 0
        self._error: BaseException | None = None
        self._is_closed = False
        self._reader: Any = None
        self._turn = 0
        self._attempts = Attempts(servers, self._pause)
        """Failures since a batch came; a new thread goes on with those of the thread before."""
        self._begin()

    def _begin(self) -> None:
        """Begin to read with a new thread; an earlier one, which may hang, ends when it can."""
        self._current = object()
        thread = threading.Thread(
            target=self._read, args=(self._current,), name="seqflow-served", daemon=True
        )
        thread.start()

    def take(self) -> tuple[Facts, Record]:
        """Return the next batch with its facts; raise the error in its place."""
        servers, slow = self._servers, 0
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._ready or self._error, servers.timeout)
                if self._ready:
                    facts, batch, nbytes = self._ready.popleft()
                    self._bytes -= nbytes
                    self._changed.notify_all()
                    return facts, batch
                if self._error is not None:
                    raise self._error
                slow += 1
                if slow > len(servers.addresses):
                    told = filter(None, (self._attempts.told, "raise timeout= if batches take as long"))
                    raise OpError(
                        f"served: {', '.join(servers.names)}: no batch for {servers.timeout:g} seconds "
                        "from each server\n  " + "\n  ".join(told)
                    )
                servers.failures += 1
                self._turn += 1
                reader, self._reader = self._reader, None
                self._begin()
            if reader is not None:
                reader.cancel()

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            reader = self._reader
            self._changed.notify_all()
        if reader is not None:
            reader.cancel()

    def _read(self, me: object) -> None:
        attempts = self._attempts
        try:
            while (ticket := self._next_ticket(me)) is not None:
                address, client, options = self._servers.client(self._number + self._turn + attempts.number)
                try:
                    with client:
                        stream = client.do_get(fl.Ticket(ticket.to_bytes()), options)
                        came = self._read_stream(me, stream, address)
                except Exception as error:
                    if not self._is_mine(me):
                        return
                    attempts.failed(address, error)
                    continue
                if not came and self._is_mine(me):
                    raise OpError(f"served: epoch {ticket.epoch} has no batch {ticket.spans[0][0]}")
        except BaseException as error:
            with self._changed:
                if self._current is me:
                    self._error = error
                    self._changed.notify_all()

    def _pause(self, seconds: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed, seconds)

    def _is_mine(self, me: object) -> bool:
        return self._current is me and not self._is_closed

    def _next_ticket(self, me: object) -> Ticket | None:
        """Return the ticket of the batches that are still to come; None if none are, or another thread reads them."""
        with self._changed:
            if not self._is_mine(me):
                return None
            while len(self._wanted) < MOST_SPANS and (span := next(self._spans, None)) is not None:
                self._wanted.append(span)
            spans = list(self._wanted)[:MOST_SPANS]
            if not spans:
                return None
            ticket = self._ticket._replace(spans=spans, low=self._low(spans[0][0]), place=self._place)
        while len(ticket.to_bytes()) > MOST_BYTES and len(spans) > 1:  # long numbers
            spans = spans[: len(spans) // 2]
            ticket = ticket._replace(spans=spans)
        return ticket

    def _read_stream(self, me: object, reader: Any, address: str) -> int:
        """Return the number of batches that came, until the stream ends or another thread reads."""
        with self._changed:
            self._reader = reader if self._is_mine(me) else self._reader
        decoder, came = Decoder(reader.schema), 0
        for chunk in reader:
            found = decoder.batches(chunk)
            if not came:
                self._attempts.answered()
                self._servers.answered(address)
            for facts, batch in found:
                if not self._put(me, facts, batch, chunk.data.nbytes // len(found)):
                    reader.cancel()
                    return came
                came += 1
        return came

    def _put(self, me: object, facts: Facts, batch: Record, nbytes: int) -> bool:
        """Add a batch to the buffer once it has room; return whether this thread is still the one that reads."""
        with self._changed:
            self._changed.wait_for(
                lambda: not self._bytes or self._bytes + nbytes <= self._most or not self._is_mine(me)
            )
            if not self._is_mine(me):
                return False
            first, step, count = self._wanted.popleft()
            if facts["number"] != first and not self._ticket.fill:
                raise OpError(f"served: batch {facts['number']} came, expected {first}")
            if count > 1:
                self._wanted.appendleft((first + step, step, count - 1))
            self._place = facts.get("place")
            self._ready.append((facts, batch, nbytes))
            self._bytes += nbytes
            self._changed.notify_all()
            return True
