"""Read untrusted files in a child process first, so that a crash of the reader ends the child alone."""

import subprocess
import sys
from collections.abc import Iterator, Sequence

_PROGRAM = """
import sys
{read}
for number, path in enumerate(sys.stdin.buffer.read().split(b"\\0")[:-1]):
    print(number, flush=True)
    try:
        read(path.decode(errors="surrogateescape"))
    except Exception as error:
        sys.exit(f"{{type(error).__name__}}: {{error}}")
"""


def damaged_in_child(paths: Sequence[str], read: str) -> Iterator[tuple[str, str]]:
    """Run `read(path)`, defined by the text `read`, on each path; yield each that fails, and the reason."""
    while paths:
        # through stdin: the arguments of a command have a limit of bytes
        names = b"".join(path.encode(errors="surrogateescape") + b"\0" for path in paths)
        command = [sys.executable, "-c", _PROGRAM.format(read=read)]
        done = subprocess.run(command, input=names, capture_output=True, check=False)
        if not done.returncode:
            return
        # each number is flushed before its file is read, so after a crash the last one names the file
        started = done.stdout.split()
        at = int(started[-1]) if started else 0
        said = done.stderr.decode(errors="replace").strip().splitlines()
        how = (
            f"its reader ended with signal {-done.returncode}" if done.returncode < 0 else "it can't be read"
        )
        yield paths[at], f"{paths[at]} is damaged: {how}: {said[0] if said else 'without a message'}"
        paths = paths[at + 1 :]
