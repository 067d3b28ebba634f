"""Work that may crash or hang, in a child process that says what it is about to do."""

import contextlib
import mmap
import os
import pickle
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FINDINGS = Path(__file__).parent / "found"
"""Where what was found is kept: a pickle of (kind, what was called) for each."""
WRONG = ("crashes", "hangs", "foreign exceptions", "disagreements")
"""The counts that have to be 0."""
SECONDS_PER_STEP = 10
"""A step that computes longer hangs."""
SECONDS_WAITING = 120
"""A step that computes next to nothing hangs after these; one on a busy processor may take SECONDS_AT_MOST."""
SECONDS_AT_MOST = 1200
MEMORY = 1 << 30
"""Bytes of address space that a child may add to what it has, so that no mistake takes the machine down."""
_ROOM = 1 << 24


@dataclass
class Log:
    """What a child tells: how far it is, the step it is in, and what it has found.

    The memory holds a count of beats, the size of a pickle, and the pickle: (counts, step).
    """

    memory: mmap.mmap
    counts: Counter[str] = field(default_factory=Counter)
    beats: int = 0

    def step(self, what: Any) -> None:
        """Say what comes next; it is kept if the process does not outlive it."""
        try:
            text = pickle.dumps((dict(self.counts), what))
        except (MemoryError, OverflowError):  # an array of more rows than can be written down
            text = b""
        if not 0 < len(text) <= _ROOM - 16:
            text = pickle.dumps((dict(self.counts), repr(what)[:1000]))
        self.memory[16 : 16 + len(text)] = text
        self.memory[8:16] = len(text).to_bytes(8, "little")
        self.beat()

    def beat(self) -> None:
        """Say that one more call of the step begins, whose time is counted from here."""
        self.beats += 1
        self.memory[:8] = self.beats.to_bytes(8, "little")

    def heard(self) -> int:
        """The beats so far."""
        return int.from_bytes(self.memory[:8], "little")

    def read(self) -> tuple[dict[str, int], Any]:
        """The counts and the step that were said last."""
        size = int.from_bytes(self.memory[8:16], "little")
        try:
            return pickle.loads(self.memory[16 : 16 + size]) if size else ({}, None)
        except Exception:  # the child was in the middle of writing
            return {}, None


def keep(name: str, kind: str, what: Any, seed: int) -> None:
    """Write down one finding and print its kind."""
    FINDINGS.mkdir(parents=True, exist_ok=True)
    number = len(list(FINDINGS.iterdir()))
    path = FINDINGS / f"{name}-{seed}-{number}.pickle"
    path.write_bytes(pickle.dumps((kind, what)))
    print(f"{name}: {kind} ({path})", flush=True)


def run_children(
    names: list[str], work: Callable[[str, Log], None], seed: int, *, at_once: int | None = None
) -> Counter[str]:
    """Run `work(name, log)` for every name, each in a process of its own; the counts, with crashes and hangs."""
    counts: Counter[str] = Counter()
    waiting, running = list(names), dict[int, tuple[str, Log, int, float, float]]()
    while waiting or running:
        while waiting and len(running) < (at_once or os.cpu_count() or 1):
            name = waiting.pop()
            log = Log(mmap.mmap(-1, _ROOM))
            running[_start(name, work, log)] = name, log, 0, time.monotonic(), 0.0
        time.sleep(0.02)
        for process, (name, log, seen, since, started) in list(running.items()):
            beats = log.heard()
            if beats != seen:
                running[process] = name, log, beats, time.monotonic(), seconds_of(process)
            elif hangs(process, since, started):
                keep(name, f"hangs for more than {SECONDS_PER_STEP} s", log.read()[1], seed)
                counts["hangs"] += 1
                os.kill(process, signal.SIGKILL)
                running[process] = name, log, beats, float("inf"), float("inf")
            ended, status = os.waitpid(process, os.WNOHANG)
            if not ended:
                continue
            found, what = log.read()
            del running[process]
            counts.update(found)
            if status not in (0, signal.SIGKILL):
                keep(name, f"the process ended with {os.waitstatus_to_exitcode(status)}", what, seed)
                counts["crashes"] += 1
    return counts


def hangs(process: int, since: float, started: float) -> bool:
    """Whether a step that began at a time, and at so many processor seconds, computes or waits for too long."""
    computed, passed = seconds_of(process) - started, time.monotonic() - since
    return computed > SECONDS_PER_STEP or passed > (SECONDS_WAITING if computed < 1 else SECONDS_AT_MOST)


def seconds_of(process: int) -> float:
    """The processor seconds of a process, with those of its threads."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _start(name: str, work: Callable[[str, Log], None], log: Log) -> int:
    sys.stdout.flush()
    process = os.fork()
    if process:
        return process
    code = 1
    with contextlib.suppress(KeyboardInterrupt):
        try:
            limit_memory()
            work(name, log)
            log.step(None)
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stderr.flush()
            sys.stdout.flush()
            os._exit(code)
    os._exit(code)


def limit_memory() -> None:
    """Let this process have no more memory than its part."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    kept = 2 if "asan" in os.environ.get("LD_PRELOAD", "") else 1  # it keeps what was freed for a while
    limit = pages * resource.getpagesize() + kept * MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
