"""Run cases in a child process, and keep the input of each that crashes, hangs or raises a foreign error."""

from __future__ import annotations

import faulthandler
import mmap
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fuzz.children import FINDINGS, hangs, seconds_of
from seqflow.errors import SeqflowError

Case = Callable[[random.Random, Path], None]
"""Draws its input from the generator, writes it to the folder, and uses it. It may raise any SeqflowError."""

MEMORY = 6 << 30
KEPT = 200
"""The most findings of one run whose input is kept."""


@dataclass(slots=True)
class Counts:
    """What came of the cases of one run."""

    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Cases that raised an error of ours, by its name."""
    out_of_memory: int = 0
    foreign: int = 0
    crashes: int = 0
    hangs: int = 0

    @property
    def cases(self) -> int:
        return self.accepted + self.refused.total() + self.out_of_memory + self.findings

    @property
    def findings(self) -> int:
        return self.foreign + self.crashes + self.hangs

    def add(self, outcome: str) -> None:
        if outcome in ("accepted", "out_of_memory", "foreign", "crashes", "hangs"):
            setattr(self, outcome, getattr(self, outcome) + 1)
        else:
            self.refused[outcome] += 1

    def __str__(self) -> str:
        kinds = ", ".join(f"{name} {count:,}" for name, count in self.refused.most_common())
        return (
            f"{self.cases:,} cases: {self.accepted:,} accepted, {self.refused.total():,} refused ({kinds}), "
            f"{self.out_of_memory:,} out of memory, {self.crashes} crashes, {self.hangs} hangs, "
            f"{self.foreign} foreign errors"
        )


def hunt(name: str, case: Case, seed: int, seconds: float) -> Counter[str]:
    """Run cases 0, 1, … of a seed for this time; the counts. Case k depends on (seed, k) alone."""
    counts, first, end = Counts(), 0, time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        while time.monotonic() < end:
            first = _run_until_finding(name, case, seed, first, end, Path(folder), counts)
    print(f"fuzz.{name}, seed {seed}: {counts}", flush=True)
    return Counter(
        {
            "cases": counts.cases,
            "crashes": counts.crashes,
            "hangs": counts.hangs,
            "foreign exceptions": counts.foreign,
        }
    )


def run_case(case: Case, draw: random.Random, folder: Path) -> str:
    """The outcome of a case in an empty folder: "accepted", "out_of_memory" or the name of an error of ours."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        case(draw, folder)
    except SeqflowError as error:
        return type(error).__name__
    except MemoryError:
        return "out_of_memory"
    return "accepted"


def _run_until_finding(
    name: str, case: Case, seed: int, first: int, end: float, folder: Path, counts: Counts
) -> int:
    """Run cases in one child until the time is over or it finds something; the number of the next case."""
    with mmap.mmap(-1, 8) as current, tempfile.TemporaryFile() as output:
        current[:] = struct.pack("q", first)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            _work(case, seed, first, end, folder, current, write, output.fileno())
        os.close(write)
        hung = _watch(child, read, current, counts)
        _, status = os.waitpid(child, 0)
        os.close(read)
        (number,) = struct.unpack("q", current[:])
        output.seek(0)
        said = output.read().decode(errors="replace")
    if hung:
        _keep(name, "hangs", seed, number, folder, said, counts)
    elif os.WIFSIGNALED(status) or os.WEXITSTATUS(status) not in (0, _FOREIGN):
        _keep(name, "crashes", seed, number, folder, f"status {status}\n{said}", counts)
    elif os.WEXITSTATUS(status) == _FOREIGN:
        _keep(name, "foreign", seed, number, folder, said, counts)
    return int(number) + 1


_FOREIGN = 17
"""The exit code of a child that met a foreign error."""


def _work(
    case: Case, seed: int, number: int, end: float, folder: Path, current: mmap.mmap, write: int, output: int
) -> None:
    """The child: one case after another, each in an empty folder; a line to the pipe for each outcome."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    faulthandler.enable(file=sys.__stderr__)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        while time.monotonic() < end:
            current[:] = struct.pack("q", number)
            outcome = run_case(case, random.Random(f"{seed} {number}"), folder)
            os.write(write, (outcome + "\n").encode())
            number += 1
    except BaseException:
        os.write(2, traceback.format_exc().encode(errors="replace"))
        os._exit(_FOREIGN)
    os._exit(0)


def _watch(child: int, pipe: int, current: mmap.mmap, counts: Counts) -> bool:
    """Count outcomes until the child ends, or is killed because one case takes too long."""
    import select

    buffer, number, since, started = b"", current[:], time.monotonic(), seconds_of(child)
    while True:
        ready, _, _ = select.select([pipe], [], [], 1.0)
        if ready:
            found = os.read(pipe, 1 << 16)
            if not found:
                return False
            *lines, buffer = (buffer + found).split(b"\n")
            for line in lines:
                counts.add(line.decode())
        if current[:] != number:
            number, since, started = current[:], time.monotonic(), seconds_of(child)
        elif hangs(child, since, started):
            os.kill(child, signal.SIGKILL)
            return True


def _keep(name: str, kind: str, seed: int, number: int, folder: Path, said: str, counts: Counts) -> None:
    counts.add(kind)
    if counts.findings > KEPT:
        return
    target = FINDINGS / f"{name}-{kind}-{seed}-{number}"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    (target / "said.txt").write_text(said)
    lines = said.strip().splitlines() or [""]
    print(f"{name}: {kind}, seed {seed}, case {number}: {lines[-1][:150]}", flush=True)
