"""Lock: one writer at a time for each output."""

from __future__ import annotations

import fcntl
import os
import socket
from datetime import datetime
from pathlib import Path

from seqflow.errors import JobError
from seqflow.output import unfinished


class Lock:
    """A lock file that names its owner. The system releases it where the owner's process dies."""

    def __init__(self, path: Path, target: Path) -> None:
        self._path = path
        self._target = target
        self._file: int | None = None

    def acquire(self) -> None:
        """JobError, with the owner, where another run writes to the target."""
        while self._file is None:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if self._is_current(file):
                    self._file = file
            except BlockingIOError:
                owner = os.read(file, 1000).decode(errors="replace") or "another process"
                raise JobError(
                    f"output: {owner} is writing to {str(self._target)!r}\n"
                    "  wait for its end, or choose another output"
                ) from None
            finally:
                if self._file is None:
                    os.close(file)
        unfinished.add(self._path)
        started = datetime.now().isoformat(sep=" ", timespec="seconds")
        os.ftruncate(self._file, 0)
        os.pwrite(
            self._file, f"process {os.getpid()} on {socket.gethostname()}, since {started},".encode(), 0
        )

    def release(self) -> None:
        """Remove the lock file. May be called again."""
        if self._file is not None:
            self._path.unlink(missing_ok=True)  # before others can get the lock
            os.close(self._file)
            self._file = None
            unfinished.discard(self._path)

    def _is_current(self, file: int) -> bool:
        """Whether the lock is on the file that has the name now: its last owner may have removed it meanwhile."""
        try:
            return os.path.samestat(os.fstat(file), self._path.stat())
        except FileNotFoundError:
            return False
