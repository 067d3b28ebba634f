"""Every op, each in its own process, with mutated arguments: no crash, no hang, no exception that is not ours.

The kernels of all instruction sets and those in NumPy give one answer.
"""

import os
import random
import time
import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.calls import Attributes, Inputs, call, good_calls, mutated
from fuzz.children import Log, keep, run_children
from seqflow import SeqflowError, kernels, registry
from seqflow.errors import OpMemoryError

SECONDS_PER_OP = 2.5
"""Fewer ops are tried where there is less time for each."""
GOOD_CALLS = 30
SATURATING = {f"{direction}{cell}" for direction in ("", "bidirectional_") for cell in ("gru", "lstm", "rnn")}
"""Ops whose native activations come close to 0 where those in NumPy are 0: times an infinite state it is no NaN."""


def run(seed: int, seconds: float, names: list[str] | None = None) -> Counter[str]:
    """Mutate calls of all ops, or as many as there is time for; the counts, which are printed, too."""
    at_once = os.cpu_count() or 1
    names = names or registry.names()
    chosen = random.Random(seed).sample(
        names, min(len(names), max(1, int(seconds * at_once / SECONDS_PER_OP)))
    )
    each = seconds * at_once / len(chosen)
    counts = run_children(chosen, lambda name, log: _fuzz(name, log, seed, each), seed)
    counts["ops"] = len(chosen)
    print(
        f"fuzz.ops, seed {seed}:",
        ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())),
        flush=True,
    )
    return counts


def case(draw: random.Random, folder: Path) -> None:
    """One mutated call of any op."""
    name = draw.choice(registry.names())
    inputs, attributes = mutated(draw, *draw.choice(_good_calls(name)))
    if wrong := judge(registry.get(name), inputs, attributes):
        raise AssertionError(f"{name}: {wrong}: {inputs}, {attributes}")


@cache
def _good_calls(name: str) -> list[tuple[Inputs, Attributes]]:
    return good_calls(registry.get(name), 0, GOOD_CALLS)


def _fuzz(name: str, log: Log, seed: int, seconds: float) -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    draw, op = random.Random(f"{seed} {name}"), registry.get(name)
    calls = good_calls(op, seed, GOOD_CALLS)
    found: set[str] = set()
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        inputs, attributes = mutated(draw, *draw.choice(calls))
        log.step((name, inputs, attributes))
        log.counts["calls"] += 1
        try:
            wrong = set(judge(op, inputs, attributes))
        except MemoryError:  # for what the kernels' results are compared in
            continue
        for kind in wrong:
            log.counts[kind.split(":")[0]] += 1
            if kind not in found:  # one of each is enough
                found.add(kind)
                keep(name, kind, (name, inputs, attributes), seed)


def judge(op: Any, inputs: Inputs, attributes: Attributes) -> list[str]:
    """What is wrong with a call: nothing, or exceptions and disagreements."""
    wrong, outcomes = [], {}
    for each in ["reference", *kernels.isas()]:
        with kernels.use(each):
            try:
                outcomes[each] = call(op, inputs, attributes)
            except OpMemoryError:
                return wrong  # how much there is changes from one moment to the next
            except SeqflowError as error:
                outcomes[each] = error
            except Exception as error:
                wrong.append(f"foreign exceptions: {type(error).__name__}: {str(error)[:60]}")
                outcomes[each] = error
    reference = outcomes.pop("reference")
    if op.name in SATURATING and not _is_finite(reference):
        return wrong
    given = [each for value in inputs.values() for each in (value if isinstance(value, list) else [value])]
    scale = max(map(_scale, filter(_is_whole, given)), default=1.0)
    wrong += [
        f"disagreements: {each}" for each, found in outcomes.items() if not agree(reference, found, scale)
    ]
    return wrong


def _is_finite(outcome: Any) -> bool:
    return isinstance(outcome, Exception) or all(np.isfinite(array).all() for array in outcome)


def agree(left: Any, right: Any, scale: float = 1.0) -> bool:
    if isinstance(left, Exception) or isinstance(right, Exception):
        return type(left) is type(right) and str(left) == str(right)
    return len(left) == len(right) and all(_same(*both, scale) for both in zip(left, right, strict=True))


def _same(left: Any, right: Any, scale: float) -> bool:
    if not isinstance(left, np.ndarray):
        return left is right or bool(left == right)
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.tobytes() == right.tobytes():  # quick, where results are large
        return True
    if left.dtype.kind in "fc":
        close = 1e-2 if left.dtype.itemsize == 2 else 1e-4
        scale = max(scale, _scale(left))
        return bool(np.allclose(left, right, rtol=close, atol=close * scale, equal_nan=True))
    return False


def _is_whole(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "iu"


def _scale(values: Any) -> float:
    """The size of the values: sums that cancel are as exact as their largest terms."""
    plain = np.asarray(values)
    finite = np.abs(plain[np.isfinite(plain)].astype(np.complex128))
    return float(finite.max(initial=1.0))
