"""Running the command as its users do: in a process of its own.

Where processes can be forked, each is a copy of one that has imported what the command needs, which takes a second.
"""

import atexit
import json
import os
import select
import signal
import struct
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from weakref import finalize

SERVER = """
import gc, io, json, os, sys, traceback, warnings
from contextlib import redirect_stdout
import pyarrow.dataset, pyarrow.parquet, seqflow.cli, seqflow.cli.run, seqflow.job, seqflow.job.running

pyarrow.array([])  # imports pandas where it is installed
with redirect_stdout(io.StringIO()):
    seqflow.cli.app(["ops"], standalone_mode=False)
gc.freeze()
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)

def run(arguments, folder, environment, output, errors):
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, file in enumerate((os.devnull, output, errors)):
        os.dup2(os.open(file, os.O_RDWR), number)
    sys.argv = ["seqflow", *arguments]
    code = 1
    try:
        seqflow.cli.main()
    except SystemExit as stopped:
        code = stopped.code or 0
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(code)

for line in sys.stdin:
    asked = json.loads(line)
    if isinstance(asked, list):  # what to run; the answer is the process
        answer = os.fork() or run(*asked)
    else:  # the process to wait for; the answer is its exit code
        answer = os.waitstatus_to_exitcode(os.waitpid(asked, 0)[1])
    print(answer, flush=True)
"""


class Forked:
    """A process of the command that can be killed, as of `subprocess.Popen`."""

    def __init__(self, command: list[str], folder: Path, environment: dict[str, str]) -> None:
        files = ExitStack()
        self._files = [files.enter_context(tempfile.NamedTemporaryFile("r")) for _ in range(2)]  # noqa: SIM115
        finalize(self, files.close)  # a process that was killed is often forgotten
        self.pid = ask([command, str(folder), environment, *(file.name for file in self._files)])
        self._descriptor = os.pidfd_open(self.pid)
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code; None while the process runs."""
        if self.returncode is None and select.select([self._descriptor], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self) -> int:
        if self.returncode is None:
            self.returncode = ask(self.pid)
            os.close(self._descriptor)
        return self.returncode

    def communicate(self) -> tuple[str, str]:
        """Wait for the end; the texts that it wrote to its output and as errors. Once."""
        self.wait()
        output, errors = (file.read() for file in self._files)
        return output, errors

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


Process = Forked | subprocess.Popen[str]


def start(*arguments: object, folder: Path | None = None, **environment: str) -> Process:
    """A running `seqflow` with these arguments, in a folder."""
    command = [str(argument) for argument in arguments]
    variables = {**os.environ, "COLUMNS": "200", **environment}
    if hasattr(os, "pidfd_open"):
        return Forked(command, folder or Path.cwd(), variables)
    return subprocess.Popen(
        [sys.executable, "-m", "seqflow", *command], cwd=folder, env=variables,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def seqflow(
    *arguments: object, folder: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `seqflow` with these arguments in a folder."""
    process = start(*arguments, folder=folder, **environment)
    output, errors = process.communicate()
    return subprocess.CompletedProcess([*map(str, arguments)], process.wait(), output, errors)


def in_terminal(*arguments: object, folder: Path | None = None, **environment: str) -> tuple[int, str]:
    """Run `seqflow` in a terminal of 24 lines of 80 characters: its exit code, and all that the terminal gets."""
    import fcntl
    import pty
    import termios

    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    hidden = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
    variables = {name: value for name, value in os.environ.items() if name not in hidden}
    variables |= {"TERM": "xterm-256color", **environment}
    command = [sys.executable, "-m", "seqflow", *map(str, arguments)]
    with subprocess.Popen(command, stdin=end, stdout=end, stderr=end, cwd=folder, env=variables) as process:
        os.close(end)
        seen = b""
        try:
            while part := os.read(terminal, 1 << 16):
                seen += part
        except OSError:  # the other end is closed
            pass
    os.close(terminal)
    return process.returncode, seen.decode().replace("\r\n", "\n")


def ask(request: object) -> int:
    """The answer of the server to a request."""
    server = start_server()
    print(json.dumps(request), file=server.stdin, flush=True)
    assert server.stdout is not None
    return int(server.stdout.readline())


@cache
def start_server() -> subprocess.Popen[str]:
    """A process that runs the command in copies of itself; it ends with this one."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.communicate)
    return server
