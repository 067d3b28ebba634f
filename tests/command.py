"""Running the command as its users do: in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path


def seqflow(*arguments: object, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `seqflow` with these arguments in a folder."""
    return subprocess.run(
        [sys.executable, "-m", "seqflow", *map(str, arguments)],
        capture_output=True, text=True, cwd=folder, env={**os.environ, "COLUMNS": "200"},
    )  # fmt: skip
