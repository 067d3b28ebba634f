"""Every comparison with its peers, in one run, into one file that docs/performance.md is made from.

    python -m benchmarks                      everything: about a quarter of an hour
    python -m benchmarks --quick              a few of each, in two minutes
    python -m benchmarks lengths_sum gather   the comparisons whose names contain one of these
    python -m benchmarks --page               everything, and docs/performance.md with its pictures anew

One thread for each contender, unless the name of a comparison says otherwise: ours, torch's, those of OpenMP, BLAS,
Polars and tokenizers. Loaders and jobs take the threads they take by themselves, and so do their peers. Peers that
are not installed are left out: `pip install -e ".[bench]"` brings them.
"""

import argparse
import json
import os
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
ONE = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "RAYON_NUM_THREADS",
)
QUICK = (
    "lengths_sum 4M", "softmax_within 4M", "sort_within 4M", "pad 32768", "sum 100k×32 int64 uniform",
    "gather 100k×1", "4M integers among 20k", "a*b + c", "LSTM", "segment sum", "a small call",
    "shuffled epoch, padded", "json ids", "python -c",
)  # fmt: skip
QUICK_ROUNDS = 3


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--quick", action="store_true", help="a few comparisons, a few rounds")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--output", type=Path, help="the file of results; by default build/performance.json")
    parser.add_argument(
        "--page", action="store_true", help="write docs/performance.md, and what it is made from"
    )
    options = parser.parse_args()
    if not all(os.environ.get(name) == "1" for name in ONE):  # libraries read them once, when they are loaded
        os.execve(
            sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **dict.fromkeys(ONE, "1")}
        )
    sys.path[0] = str(HERE)  # as for a script of this folder: not the sources, which have no compiled kernels
    import page

    found = run(options.names, quick=options.quick, rounds=QUICK_ROUNDS if options.quick else options.rounds)
    output = page.RESULTS if options.page else options.output or HERE.parent / "build" / "performance.json"
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"written: {output}")
    if options.page:
        page.write()


def run(names: list[str], *, quick: bool, rounds: int) -> dict[str, object]:
    """All comparisons and series that are asked for, measured."""
    from importlib import import_module

    import growth
    import machine
    from comparison import measure, set_threads, show
    from suites import SUITES

    def is_asked_for(name: str) -> bool:
        if quick and not any(each in name for each in QUICK):
            return False
        return not names or any(each in name for each in names)

    began = time.perf_counter()
    facts, rows, missing = machine.facts(), [], {}
    print(f"{facts['processor']}, {facts['kernels']}, copy {facts['bandwidth']['copy']} GB/s")
    for suite in SUITES:
        try:
            module = import_module(suite)
        except ImportError as error:
            missing[suite] = str(error)
            print(f"{suite}: left out, {error}")
            continue
        for family in module.FAMILIES:
            set_threads(1)
            for row in family():
                if is_asked_for(row.name):
                    times = measure(row, rounds)
                    show(row, times)
                    rows.append(result(suite, row, times))
    set_threads(1)
    series = [
        growth.measure(one, QUICK_ROUNDS)
        for one in growth.SERIES
        if (one.quick or not quick) and (not names or any(each in one.name for each in names))
    ]
    seconds = round(time.perf_counter() - began)
    return {"machine": facts, "seconds": seconds, "missing": missing, "rows": rows, "series": series}


def result(suite: str, row: object, times: dict[str, float]) -> dict[str, object]:
    """A row as JSON."""
    rounded = {name: float(f"{time:.4g}") for name, time in times.items()}
    return {
        "suite": suite,
        "name": row.name,
        "unit": row.unit,
        "ours": rounded.pop("ours"),
        "peers": {name: time for name, time in rounded.items() if name in row.peers},
        "floors": {name: time for name, time in rounded.items() if name in row.floors},
        "why": row.why,
    }


if __name__ == "__main__":
    main()
