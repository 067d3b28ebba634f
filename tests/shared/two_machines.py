"""Another machine, as far as files go: a process that has its own temporary and home folder, and none of ours."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

_SHARED = str(Path(__file__).parent)


def elsewhere(*command: object) -> list[str]:
    """The command that runs another one where /tmp is empty; the test is skipped where that is not allowed."""
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    script = 'mount -t tmpfs none /tmp && mkdir /tmp/home && cd / && HOME=/tmp/home TMPDIR=/tmp exec "$@"'
    start = [*unshare, "sh", "-c", script, "sh"]
    try:
        allowed = subprocess.run([*start, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        allowed = False
    if not allowed:
        pytest.skip("no mount namespaces here")
    return [*start, *map(str, command)]


def environment(options: Mapping[str, str], home: Path) -> dict[str, str]:
    """Variables of a process with these options of a store, and with another home."""
    keys = {name.upper(): value for name, value in options.items()}
    path = os.pathsep.join([_SHARED, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, **keys, "HOME": str(home), "PYTHONPATH": path}


def ray_command(*arguments: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "ray.scripts.scripts",
        "start",
        "--disable-usage-stats",
        "--block",
        *arguments,
    ]
