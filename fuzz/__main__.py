"""Run fuzzers one after another: `python -m fuzz [--minutes 60] [--seed 0] [NAME …]`. Exit code 1 for a finding."""

import argparse
import time
from importlib import import_module

FUZZERS = {"files": "fuzz.files", "texts": "fuzz.texts"}
"""Modules with `run(seed, seconds)`, which returns the number of findings."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FUZZERS)}; all by default")
    parser.add_argument("--minutes", type=float, default=1.0, help="for each fuzzer")
    parser.add_argument("--seed", type=int, default=None, help="the time of day by default")
    options = parser.parse_args()
    if unknown := set(options.names) - set(FUZZERS):
        parser.error(f"there is no fuzzer {', '.join(sorted(unknown))}; there are {', '.join(FUZZERS)}")
    seed = int(time.time()) if options.seed is None else options.seed
    findings = 0
    for name in options.names or FUZZERS:
        findings += import_module(FUZZERS[name]).run(seed, options.minutes * 60)
    return min(findings, 1)


if __name__ == "__main__":
    raise SystemExit(main())
