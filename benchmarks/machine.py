"""What a run was measured on, and how fast that machine moves memory at the same time."""

import os
import platform
from collections.abc import Callable
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from comparison import fastest
from seqflow import kernels

PACKAGES = (
    "seqflow",
    "numpy",
    "pyarrow",
    "torch",
    "pandas",
    "polars",
    "awkward",
    "tokenizers",
    "datasets",
    "numexpr",
)


def facts() -> dict[str, Any]:
    """Processor, kernels, packages and bandwidths."""
    return {
        "date": date.today().isoformat(),
        "processor": processor(),
        "cores": os.cpu_count(),
        "kernels": f"{kernels.info()['kernels']}, {kernels.info()['isa']}",
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := version_of(name))},
        "bandwidth": bandwidth(),
    }


def processor() -> str:
    """Its name, with the family and model that tell those apart whose names are cut short."""
    try:
        with open("/proc/cpuinfo") as file:
            lines = dict(
                line.split(":", 1) for line in file.read().split("\n\n")[0].splitlines() if ":" in line
            )
    except OSError:
        return platform.processor() or platform.machine()
    found = {name.strip(): value.strip() for name, value in lines.items()}
    name = found.get("model name", platform.machine())
    return f"{name} (family {found.get('cpu family')}, model {found.get('model')})"


def version_of(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def bandwidth() -> dict[str, float]:
    """GB/s of one thread: a copy (bytes read), and rows gathered at random places (bytes of the rows)."""
    source = np.ones(32 << 20, np.float32)
    target = np.ones_like(source)
    found = {"copy": (source.nbytes, lambda: np.copyto(target, source))}
    for columns in (16, 64):
        table = source.reshape(-1, columns)
        indices = np.random.default_rng(0).integers(0, len(table), 200_000)
        rows = np.ones((len(indices), columns), np.float32)
        call: Callable[[], Any] = lambda t=table, i=indices, r=rows: np.take(t, i, 0, out=r, mode="clip")  # noqa: E731
        found[f"gather of {4 * columns} bytes"] = (rows.nbytes, call)
    times = fastest({name: call for name, (_, call) in found.items()}, 7)
    return {name: round(size / times[name] / 1e6, 2) for name, (size, _) in found.items()}
