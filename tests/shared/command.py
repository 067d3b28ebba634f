"""Running the command as its users do: in a process of its own.

Where processes can be forked, each is a copy of one that has imported what the command needs, which takes a second.
"""

import atexit
import json
import os
import struct
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

SERVER = """
import gc, io, json, os, sys, traceback, warnings
from contextlib import redirect_stdout
import pyarrow.dataset, pyarrow.parquet, seqflow.cli, seqflow.job

with redirect_stdout(io.StringIO()):
    seqflow.cli.app(["ops"], standalone_mode=False)
gc.freeze()
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
for line in sys.stdin:
    arguments, folder, environment, output, errors = json.loads(line)
    child = os.fork()
    if child == 0:
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
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


def seqflow(
    *arguments: object, folder: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `seqflow` with these arguments in a folder."""
    command = [str(argument) for argument in arguments]
    variables = {**os.environ, "COLUMNS": "200", **environment}
    if not hasattr(os, "fork"):
        return subprocess.run(
            [sys.executable, "-m", "seqflow", *command],
            capture_output=True, text=True, cwd=folder, env=variables,
        )  # fmt: skip
    with tempfile.NamedTemporaryFile("r") as output, tempfile.NamedTemporaryFile("r") as errors:
        server = start_server()
        request = [command, str(folder or Path.cwd()), variables, output.name, errors.name]
        print(json.dumps(request), file=server.stdin, flush=True)
        assert server.stdout is not None
        code = int(server.stdout.readline())
        return subprocess.CompletedProcess(command, code, output.read(), errors.read())


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


@cache
def start_server() -> subprocess.Popen[str]:
    """A process that runs the command in copies of itself; it ends with this one."""
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(server.communicate)
    return server
