"""Lock: one writer at a time for each output."""

import errno
import os
import re
import socket
import stat
import sys
from datetime import datetime
from importlib import import_module
from pathlib import Path

from seqflow.errors import JobError
from seqflow.output import unfinished

_CONTENT = re.compile(rb"process \d+ on .*, since [\d :-]{19},", re.DOTALL)
"""Content that an owner writes. A run that was killed before writing it has left an empty file."""
_MOST_BYTES = 1000


def require_locks() -> None:
    """Raise JobError when the system cannot lock an output."""
    try:
        import_module("fcntl")
    except ImportError:
        raise JobError(
            f"output: found {sys.platform}, expected a POSIX system: a job locks its output with flock",
            advice="run jobs on Linux, macOS or WSL; ops and loaders need no lock",
        ) from None


class Lock:
    """A lock file that names its owner. The system releases the lock when the owner's process ends.

    The file is a new one, or one that a run has left; links and files of another origin are refused.
    """

    def __init__(self, path: Path, target: Path) -> None:
        self._path = path
        self._target = target
        self._file: int | None = None

    @property
    def is_held(self) -> bool:
        """Whether this process holds the lock."""
        return self._file is not None

    def acquire(self) -> None:
        """Take the lock; raise JobError, with the owner, when another run writes to the target or the name is
        taken.
        """
        require_locks()
        import fcntl

        while self._file is None:
            file = self._open()
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # The last owner may have removed the file after it was opened here. Then another run may hold a lock
                # on a new file of this name, and this lock protects nothing.
                if self._is_current(file):
                    self._file = file
            except BlockingIOError:
                owner = os.pread(file, _MOST_BYTES, 0).decode(errors="replace") or "another process"
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
        """Remove the lock file and release the lock. Can be called again."""
        if self._file is not None:
            if self._is_current(self._file):
                self._path.unlink(missing_ok=True)  # before closing, which lets others take the lock
            os.close(self._file)
            self._file = None
            unfinished.discard(self._path)

    def _open(self) -> int:
        """Return a descriptor of the lock file, which is created if it does not exist."""
        while True:
            try:
                return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            except FileExistsError:
                pass
            try:
                return self._open_old()
            except FileNotFoundError:  # its owner has removed it meanwhile
                continue

    def _open_old(self) -> int:
        """Return a descriptor of the existing lock file; raise JobError when the file is not a lock file."""
        found = self._path.lstat()
        if not stat.S_ISREG(found.st_mode):
            raise self._foreign(_KINDS.get(stat.S_IFMT(found.st_mode), "not a regular file"))
        try:
            # without O_NONBLOCK, opening a pipe would block
            file = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise self._foreign("a symbolic link") from None
            if error.errno in (errno.EACCES, errno.EPERM):
                raise self._foreign("a file that cannot be written to") from None
            raise
        found = os.fstat(file)
        content = os.pread(file, _MOST_BYTES, 0)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            os.close(file)
            raise self._foreign("a file that has other names, too")
        if found.st_size >= _MOST_BYTES or (content and not _CONTENT.fullmatch(content)):
            os.close(file)
            raise self._foreign("not a lock file of seqflow")
        return file

    def _foreign(self, found: str) -> JobError:
        return JobError(
            f"output: {str(self._path)!r} is {found}, expected a lock file, which keeps other runs from writing to "
            f"{str(self._target)!r}\n  remove it, or choose another output"
        )

    def _is_current(self, file: int) -> bool:
        """Return whether the locked file still has its name: its last owner may have removed it."""
        try:
            return os.path.samestat(os.fstat(file), self._path.lstat())
        except FileNotFoundError:
            return False


_KINDS = {stat.S_IFLNK: "a symbolic link", stat.S_IFDIR: "a folder"}
