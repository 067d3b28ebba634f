"""Cases guided by what they reach: `python -m fuzz.guided NAME [--minutes 60]`, where Atheris is installed.

libFuzzer changes the bytes that the numbers of a generator are made of, and keeps those that reach more code.
It sees C++ where the kernels were compiled for it; `.ci/full guided` does that, and says how.
"""

import argparse
import random
import sys
import tempfile
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np

from fuzz.children import FINDINGS, limit_memory

FUZZERS = ("kernels_alone", "ops", "texts", "files", "saved")
"""Modules with `case(draw, folder)`."""
SECONDS_PER_CASE = 60
LONGEST = 1 << 14
"""The most bytes that a case is made of."""


class Drawn(random.Random):
    """A generator whose numbers are made of given bytes, and after their end the same as ever."""

    def __init__(self, content: bytes) -> None:
        super().__init__(0)
        self._content, self._at = content, 0

    def getrandbits(self, k: int, /) -> int:
        size = (k + 7) // 8
        if self._at + size > len(self._content):
            return super().getrandbits(k)
        taken = self._content[self._at : self._at + size]
        self._at += size
        return int.from_bytes(taken, "little") & ((1 << k) - 1)

    def random(self) -> float:
        return self.getrandbits(16) / (1 << 16)


def main(arguments: list[str] | None = None) -> None:
    """Guide one fuzzer, from what earlier runs kept. libFuzzer ends the process: with 0 where nothing is wrong."""
    import atheris

    parser = argparse.ArgumentParser(prog="python -m fuzz.guided", description=__doc__)
    parser.add_argument("name", choices=FUZZERS)
    parser.add_argument("--minutes", type=float, default=1.0)
    options = parser.parse_args(arguments)
    with atheris.instrument_imports(include=["seqflow"]):
        case = import_module(f"fuzz.{options.name}").case
        from fuzz.hunting import run_case

    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    limit_memory()
    kept = FINDINGS / f"guided-{options.name}"
    kept.mkdir(parents=True, exist_ok=True)
    flags = {
        "max_total_time": round(options.minutes * 60),
        "timeout": SECONDS_PER_CASE,
        "max_len": LONGEST,
        "len_control": 0,  # long ones from the start
        "rss_limit_mb": 0,  # limit_memory is the limit
        "artifact_prefix": f"{kept}-",
    }
    with tempfile.TemporaryDirectory() as folder:
        atheris.Setup(
            [sys.argv[0], *(f"-{name}={value}" for name, value in flags.items()), str(kept)],
            lambda content: run_case(case, Drawn(content), Path(folder, "case")),
        )
        atheris.Fuzz()


if __name__ == "__main__":
    main()
