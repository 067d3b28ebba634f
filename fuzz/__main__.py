"""Run fuzzers one after another: `python -m fuzz [--minutes 60] [--seed 0] [NAME …]`. Exit code 1 for a finding."""

import argparse
import time
from importlib import import_module

from fuzz.children import WRONG

FUZZERS = ("files", "saved", "texts", "ops", "races", "kernels_alone")
"""Modules with `run(seed, seconds)`, which prints what it counts and returns it."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(FUZZERS)}; all by default")
    parser.add_argument("--minutes", type=float, default=1.0, help="for each fuzzer")
    parser.add_argument("--seed", type=int, default=None, help="the time of day by default")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(FUZZERS):
        parser.error(f"there is no fuzzer {', '.join(sorted(unknown))}; there are {', '.join(FUZZERS)}")
    seed = int(time.time()) if options.seed is None else options.seed
    counts = [
        import_module(f"fuzz.{name}").run(seed, options.minutes * 60) for name in options.names or FUZZERS
    ]
    return int(any(count[kind] for count in counts for kind in WRONG))


if __name__ == "__main__":
    raise SystemExit(main())
