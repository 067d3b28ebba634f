"""Expressions beside plain NumPy and numexpr, interleaved in one process on one thread.

    OMP_NUM_THREADS=1 python benchmarks/expression.py [--elements 10000000] [--times 7]

Prints the least milliseconds of each and how many times faster seqflow is. numexpr is optional.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from seqflow.expression import Expression

try:
    import numexpr
except ImportError:
    numexpr = None
else:
    numexpr.set_num_threads(1)

FORMULAS: dict[str, Callable[..., Any]] = {
    "a*b + c": lambda a, b, c: a * b + c,
    "sqrt((2*a + b)/12)": lambda a, b, c: np.sqrt((2 * a + b) / 12),
    "(a - b)**2 + (a - b)*c": lambda a, b, c: (a - b) ** 2 + (a - b) * c,
    "where(a > b, a*c, b - c)": lambda a, b, c: np.where(a > b, a * c, b - c),
    "exp(-a*a/2) + tanh(b)": lambda a, b, c: np.exp(-a * a / 2) + np.tanh(b),
}


def least(runs: list[Callable[[], Any]], times: int) -> list[float]:
    """The least milliseconds of each, taken in turn."""
    best = [float("inf")] * len(runs)
    for _ in range(times):
        for i, run in enumerate(runs):
            started = time.perf_counter()
            run()
            best[i] = min(best[i], (time.perf_counter() - started) * 1e3)
    return best


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--elements", type=int, default=10_000_000)
    parser.add_argument("--times", type=int, default=7)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    operands = {name: rng.random(options.elements) for name in "abc"}
    print(
        f"{'ms':26}{'seqflow':>9}{'out=':>9}{'numpy':>9}{'numexpr':>9}{'  vs numpy':>11}{'  vs numexpr':>13}"
    )
    for text, plain in FORMULAS.items():
        expression = Expression(text)
        used = {name: operands[name] for name in expression.inputs}
        out = np.empty(options.elements)
        np.testing.assert_allclose(expression(**used), plain(**operands))
        runs: list[Callable[[], Any]] = [
            lambda expression=expression, used=used: expression(**used),
            lambda expression=expression, used=used, out=out: expression(**used, out=out),
            lambda plain=plain: plain(**operands),
        ]
        if numexpr is not None:
            runs.append(lambda text=text, used=used: numexpr.evaluate(text, local_dict=used))
        ours, into, numpy, *other = least(runs, options.times)
        line = f"{text:26}{ours:9.1f}{into:9.1f}{numpy:9.1f}"
        line += f"{other[0]:9.1f}" if other else f"{'-':>9}"
        print(line + f"{numpy / ours:11.2f}" + (f"{other[0] / ours:13.2f}" if other else ""))


if __name__ == "__main__":
    main()
