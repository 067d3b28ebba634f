"""Ranges of objects that are fetched before they are read: near ones together, in order, in bounded memory."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future

import pyarrow as pa

from seqflow.files.interface import Range
from seqflow.fork_locks import ForkLock

LARGEST, _HOLE = 8 << 20, 64 << 10
"""Most bytes of one request, and most bytes between two ranges that one request fetches."""
BUDGET = 64 << 20
"""Bytes that are fetched ahead, or being fetched."""
SMALL_FILE = 1 << 20
"""Bytes up to which a file is fetched at once: its footer comes with it."""
_LARGE, _SLOTS, _SLOTS_OF_LARGE = 1 << 20, 64, 4
"""Bytes from which on a request is large; small requests at one time, and how many of them a large one counts for."""

Span = tuple[int, int]
"""First byte of a range, and the byte after its last one."""
Piece = tuple[int, int, pa.Buffer]
Fetch = Callable[[str, Sequence[Span]], Sequence[Piece]]


class _Request:
    """Ranges of one object that are fetched together."""

    def __init__(self, path: str, span: Span, owner: object) -> None:
        self.path, self.owner = path, owner
        self.members = [span]
        self.start, self.stop = span
        self.is_started = False
        self.result: Future[Sequence[Piece]] = Future()
        self.left: set[Span] = set()

    @property
    def size(self) -> int:
        return self.stop - self.start

    @property
    def slots(self) -> int:
        return _SLOTS_OF_LARGE if self.size > _LARGE else 1

    def takes(self, path: str, start: int, stop: int) -> bool:
        """Add a range that follows closely, and return true; else return false."""
        near = path == self.path and self.start <= start <= self.stop + _HOLE
        if not near or max(stop, self.stop) - self.start > LARGEST:
            return False
        self.members.append((start, stop))
        self.stop = max(stop, self.stop)
        return True


class Ahead:
    """Requests that are planned, under way, or done and not yet used. Threads may share it."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._forget()
        self._lock = ForkLock(self._forget)

    def _forget(self) -> None:
        self._queue: deque[_Request] = deque()
        self._of_path: dict[str, list[_Request]] = {}
        self._of_owner: dict[int, list[_Request]] = {}
        self._slots = self._planned = self._held = 0
        self._dropped: deque[object] = deque()
        """Owners whose requests are to be forgotten."""

    @property
    def bytes_held(self) -> int:
        """Bytes of requests that are under way or done."""
        with self._lock:
            self._forget_dropped()
            return self._held

    @property
    def has_room(self) -> bool:
        """Whether fewer bytes are planned or held than are fetched ahead."""
        return self.bytes_held + self._planned < BUDGET

    def has(self, path: str, start: int, stop: int) -> bool:
        """Return whether a range is planned."""
        with self._lock:
            return any(one.start <= start and stop <= one.stop for one in self._of_path.get(path, ()))

    def plan(self, ranges: Iterable[Range], owner: object) -> None:
        """Fetch ranges, in the order of their use, when there is room for them."""
        requests: list[_Request] = []
        for path, start, stop in ranges:
            if stop > start and not (requests and requests[-1].takes(path, start, stop)):
                requests.append(_Request(path, (start, stop), owner))
        with self._lock:
            self._forget_dropped()
            for one in requests:
                one.left = set(one.members)
                self._queue.append(one)
                self._of_path.setdefault(one.path, []).append(one)
                self._of_owner.setdefault(id(owner), []).append(one)
                self._planned += one.size
            self._start()

    def take(self, path: str, start: int, stop: int) -> pa.Buffer | None:
        """Return the bytes of a range that was planned, waiting for them; None if it was not."""
        with self._lock:
            found = (one for one in self._of_path.get(path, ()) if one.start <= start and stop <= one.stop)
            request = next(found, None)
            if request is None:
                return None
            runs_here = not request.is_started
            if runs_here:
                self._queue.remove(request)
                self._begin(request)
        if runs_here:
            self._run(request)
        try:
            pieces = request.result.result()
        except BaseException:
            with self._lock:
                self._remove(request)
            raise
        with self._lock:
            request.left -= {span for span in request.left if start <= span[0] and span[1] <= stop}
            if not request.left:
                self._remove(request)
                self._start()
        return next(
            (data[start - at : stop - at] for at, end, data in pieces if at <= start and stop <= end), None
        )

    def drop(self, owner: object) -> None:
        """Forget what an owner has planned and not used.

        It is done with the next request: the garbage collector may call this while the lock is held.
        """
        self._dropped.append(owner)

    def _forget_dropped(self) -> None:
        while self._dropped:
            for request in self._of_owner.pop(id(self._dropped.popleft()), ()):
                if not request.is_started:
                    self._queue.remove(request)
                    self._planned -= request.size
                self._remove(request, held=request.is_started)
            self._start()

    def _start(self) -> None:
        """Start threads for the next requests that there is room for; the lock is held."""
        while (request := self._next()) is not None:
            self._begin(request)
            threading.Thread(target=self._run_on, args=(request,), name="seqflow fetch").start()

    def _next(self) -> _Request | None:
        """Return the next request if it may start, taken from the queue."""
        if not self._queue or not threading.main_thread().is_alive():
            return None
        request = self._queue[0]
        is_full = self._held and self._held + request.size > BUDGET
        if is_full or (self._slots and self._slots + request.slots > _SLOTS):
            return None
        return self._queue.popleft()

    def _begin(self, request: _Request) -> None:
        request.is_started = True
        self._planned -= request.size
        self._held += request.size
        self._slots += request.slots

    def _run_on(self, request: _Request | None) -> None:
        """Fetch a request, then the next ones while there is room for them."""
        while request is not None:
            self._run(request)
            with self._lock:
                request = self._next()
                if request is not None:
                    self._begin(request)

    def _run(self, request: _Request) -> None:
        try:
            request.result.set_result(self._fetch(request.path, request.members))
        except BaseException as error:
            request.result.set_exception(error)
        finally:
            with self._lock:
                self._slots -= request.slots

    def _remove(self, request: _Request, *, held: bool = True) -> None:
        of_path = self._of_path.get(request.path, [])
        if request in of_path:
            of_path.remove(request)
            self._held -= request.size if held else 0
            if not of_path:
                del self._of_path[request.path]


def split_spans(spans: Iterable[Span]) -> list[Span]:
    """Return the ranges of one reader, in order: near ones together, large ones in parts."""
    found: list[Span] = []
    for start, stop in sorted(spans):
        if found and start <= found[-1][1] + _HOLE and stop - found[-1][0] <= LARGEST:
            found[-1] = (found[-1][0], max(stop, found[-1][1]))
        else:
            found += [(at, min(at + LARGEST, stop)) for at in range(start, stop, LARGEST)]
    return found
