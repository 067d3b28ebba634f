"""Another machine, as far as files go: a process that has its own temporary and home folder, and none of ours."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

_SHARED = str(Path(__file__).parent)


def elsewhere(*command: object) -> list[str]:
    """The command that runs another one where /tmp is empty but for this project and its Python; the test is skipped
    where that is not allowed."""
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    start = [*unshare, "sh", "-c", _HIDE, "sh", str(Path(__file__).parents[2]), sys.prefix]
    try:
        allowed = subprocess.run([*start, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        allowed = False
    if not allowed:
        pytest.skip("no mount namespaces here")
    return [*start, *map(str, command)]


# Folders that are open stay reachable when something is mounted over them.
_HIDE = """
set -e
cd /
exec 3< "$1" 4< "$2"
mount -t tmpfs none /tmp
for open in "3:$1" "4:$2"; do
  path="${open#*:}"
  case "$path" in /tmp/*) mkdir -p "$path"; mount --no-canonicalize --bind "/proc/self/fd/${open%%:*}" "$path" ;; esac
done
exec 3<&- 4<&-
mkdir /tmp/home
shift 2
HOME=/tmp/home TMPDIR=/tmp exec "$@"
"""


def environment(options: Mapping[str, str], home: Path) -> dict[str, str]:
    """Variables of a process with these options of a store, and with another home.

    A cluster that this process started before may have left word that clusters ask for a token, which lies at home.
    """
    keys = {name.upper(): value for name, value in options.items()}
    path = os.pathsep.join([_SHARED, *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**os.environ, **keys, "HOME": str(home), "PYTHONPATH": path, "RAY_AUTH_MODE": "disabled"}


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
