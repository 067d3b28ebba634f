"""Expressions beside plain NumPy and numexpr, where that is installed.

OMP_NUM_THREADS=1 python benchmarks/expression.py [NAME …] [--rounds 15]
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from comparison import Call, Row, main, optional
from seqflow.expression import Expression

numexpr = optional("numexpr")
if numexpr:
    numexpr.set_num_threads(1)
ELEMENTS = 10_000_000

FORMULAS: dict[str, Callable[..., Any]] = {
    "a*b + c": lambda a, b, c: a * b + c,
    "sqrt((2*a + b)/12)": lambda a, b, c: np.sqrt((2 * a + b) / 12),
    "(a - b)**2 + (a - b)*c": lambda a, b, c: (a - b) ** 2 + (a - b) * c,
    "where(a > b, a*c, b - c)": lambda a, b, c: np.where(a > b, a * c, b - c),
    "exp(-a*a/2) + tanh(b)": lambda a, b, c: np.exp(-a * a / 2) + np.tanh(b),
}


def formulas() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    operands = {name: rng.random(ELEMENTS) for name in "abc"}
    out = np.empty(ELEMENTS)
    for text, plain in FORMULAS.items():
        expression = Expression(text)
        used = {name: operands[name] for name in expression.inputs}
        peers: dict[str, Call] = {"NumPy": lambda plain=plain: plain(**operands)}
        if numexpr:
            peers["numexpr"] = lambda text=text, used=used: numexpr.evaluate(text, local_dict=used)
        yield Row(text, lambda expression=expression, used=used: expression(**used), peers, {"best": 1.0})
        yield Row(
            f"{text}, out=",
            lambda expression=expression, used=used: expression(**used, out=out),
            peers,
            {"best": 1.0},
        )


FAMILIES = [formulas]

if __name__ == "__main__":
    main(FAMILIES)
