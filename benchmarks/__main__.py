"""Every comparison with its peers, in one run, into one file that docs/performance.md is made from.

    python -m benchmarks                      everything: about a quarter of an hour
    python -m benchmarks --quick              a few of each, in two minutes
    python -m benchmarks lengths_sum gather   the comparisons whose names contain one of these
    python -m benchmarks --page               everything, and docs/performance.md with its pictures anew

One thread for each contender, unless the name of a comparison says otherwise: ours, torch's, those of OpenMP, BLAS,
Polars and tokenizers. Loaders and jobs take the threads they take by themselves, and so do their peers. Peers that
are not installed are left out: `pip install -e ".[bench]"` brings them. One that fails is noted with its reason, and
ends the run with exit code 1, after everything else was measured; each row is saved when it is measured.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

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
    import machine
    import page
    from suites import SUITES

    output = options.output or HERE.parent / "build" / "performance.json"
    output.parent.mkdir(parents=True, exist_ok=True)

    def save(found: dict[str, Any], path: Path = output) -> None:
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    rounds = QUICK_ROUNDS if options.quick else options.rounds
    found = run(machine.facts(), options.names, SUITES, save, quick=options.quick, rounds=rounds)
    print(f"written: {output}")
    failed = [row["name"] for row in [*found["rows"], *found["series"]] if "failed" in row]
    if failed:
        sys.exit(f"{len(failed)} failed: {', '.join(failed)}")
    if options.page:
        save(found, page.RESULTS)
        page.write()


def run(
    facts: dict[str, Any],
    names: list[str],
    suites: Collection[str],
    save: Callable[[dict[str, Any]], None],
    *,
    quick: bool,
    rounds: int,
) -> dict[str, Any]:
    """All comparisons and series that are asked for, measured; `save` gets all there are after each."""
    from importlib import import_module

    import growth
    from comparison import measure_rest, reason_of, set_threads, show

    def is_asked_for(name: str) -> bool:
        if quick and not any(each in name for each in QUICK):
            return False
        return not names or any(each in name for each in names)

    began = time.perf_counter()
    found: dict[str, Any] = {"machine": facts, "seconds": 0, "missing": {}, "rows": [], "series": []}

    def add(kind: str, row: dict[str, Any]) -> None:
        for contender, reason in row.get("failed", {}).items():
            print(f"{row['name']}: {contender} failed, {reason}", flush=True)
        found[kind].append(row)
        found["seconds"] = round(time.perf_counter() - began)
        save(found)

    print(f"{facts['processor']}, {facts['kernels']}, copy {facts['bandwidth']['copy']} GB/s")
    for suite in suites:
        try:
            module = import_module(suite)
        except ImportError as error:
            found["missing"][suite] = str(error)
            print(f"{suite}: left out, {error}")
            continue
        except Exception as error:
            add("rows", {"suite": suite, "name": suite, "failed": {"its module": reason_of(error)}})
            continue
        for family in module.FAMILIES:
            set_threads(1)
            try:
                for row in family():
                    if is_asked_for(row.name):
                        times, failed = measure_rest(row, rounds)
                        if times:
                            show(row, times)
                        add("rows", result(suite, row, times) | ({"failed": failed} if failed else {}))
            except Exception as error:
                add(
                    "rows",
                    {"suite": suite, "name": family.__name__, "failed": {"its data": reason_of(error)}},
                )
    set_threads(1)
    for one in growth.SERIES:
        if (one.quick or not quick) and (not names or any(each in one.name for each in names)):
            try:
                add("series", growth.measure(one, QUICK_ROUNDS))
            except Exception as error:
                add("series", {"name": one.name, "failed": {"a point": reason_of(error)}})
    return found


def result(suite: str, row: Any, times: dict[str, float]) -> dict[str, Any]:
    """A row as JSON; without times where ours fails."""
    if not times:
        return {"suite": suite, "name": row.name}
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
