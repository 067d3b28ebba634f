"""Every op, while other threads write to its arrays: the interpreter lives, and every exception is ours.

The result may be of any state of the arrays.
"""

import ctypes
import os
import random
import sys
import threading
import time
import warnings
from collections import Counter
from typing import Any

import numpy as np

from fuzz.calls import Attributes, Inputs, call, good_calls
from fuzz.children import Log, keep, run_children
from seqflow import SeqflowError, kernels, registry

SECONDS_PER_OP = 2
"""Fewer ops are tried where there is less time for each."""
CALLS_PER_STATE = 40
ROWS = 1 << 14
"""About how many rows a call gets: enough for kernels to let other threads run."""


def run(seed: int, seconds: float, names: list[str] | None = None) -> Counter[str]:
    """Race against all ops, or as many as there is time for; the counts, which are printed, too."""
    names = names or registry.names()
    chosen = random.Random(seed).sample(names, min(len(names), max(1, int(seconds / SECONDS_PER_OP))))
    counts = run_children(
        chosen,
        lambda name, log: _race(name, log, seed, seconds / len(chosen)),
        seed,
        at_once=max((os.cpu_count() or 1) // 2, 1),
    )
    counts["ops"] = len(chosen)
    print(
        f"fuzz.races, seed {seed}:",
        ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())),
        flush=True,
    )
    return counts


def _race(name: str, log: Log, seed: int, seconds: float) -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    sys.setswitchinterval(1e-5)
    draw, op = random.Random(f"{seed} {name}"), registry.get(name)
    calls = good_calls(op, seed, 20)
    found: set[str] = set()
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        inputs, attributes = _enlarged(op, *draw.choice(calls))
        log.step((name, inputs, attributes))
        writer = Writer(draw, inputs)
        try:
            for _ in range(CALLS_PER_STATE):
                log.counts["calls"] += 1
                log.beat()
                kind = _outcome(op, inputs, attributes, draw.choice(["native", "reference"]))
                if kind and kind not in found:
                    found.add(kind)
                    log.counts["foreign exceptions"] += 1
                    keep(name, kind, (name, inputs, attributes), seed)
        finally:
            writer.stop()


def _outcome(op: Any, inputs: Inputs, attributes: Attributes, implementation: str) -> str:
    available = "native" if kernels.isas() else "reference"
    with kernels.use(implementation if available == "native" else available):
        try:
            call(op, inputs, attributes)
        except SeqflowError:
            return ""
        except Exception as error:
            return f"{type(error).__name__}: {str(error)[:60]}"
    return ""


def _enlarged(op: Any, inputs: Inputs, attributes: Attributes) -> tuple[Inputs, Attributes]:
    """The same rows many times over, where the op takes that."""
    for times in (ROWS // 8, 1):
        larger = {
            name: [_repeated(one, times) for one in value]
            if isinstance(value, list)
            else _repeated(value, times)
            for name, value in inputs.items()
        }
        try:
            call(op, larger, attributes)
        except SeqflowError:
            continue
        break
    return larger, attributes


def _repeated(value: Any, times: int) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    return np.concatenate([value] * times) if value.ndim else value.copy()


class Writer:
    """A thread that copies other states into the integers and masks among the inputs, with Python's lock released."""

    def __init__(self, draw: random.Random, inputs: Inputs) -> None:
        arrays = [one for value in inputs.values() for one in (value if isinstance(value, list) else [value])]
        self._states = [
            (array, [array.copy(), *(_other(draw, array) for _ in range(3))])
            for array in arrays
            if isinstance(array, np.ndarray)
            and array.dtype.kind in "iub"
            and array.size
            and array.ndim
            and array.flags.c_contiguous
        ]
        self._stopped = False
        self._thread = threading.Thread(target=self._write, args=(random.Random(draw.random()),), daemon=True)
        self._thread.start()

    def _write(self, draw: random.Random) -> None:
        while not self._stopped and self._states:
            array, states = draw.choice(self._states)
            ctypes.memmove(array.ctypes.data, draw.choice(states).ctypes.data, array.nbytes)

    def stop(self) -> None:
        self._stopped = True
        self._thread.join()


def _other(draw: random.Random, array: Any) -> Any:
    """The array in another order, with some elements exchanged, or with values that nothing takes."""
    other = array.copy()
    chosen = draw.randrange(4)
    if chosen == 0:
        return np.ascontiguousarray(other[::-1])
    if chosen == 1:
        return np.roll(other, 1, axis=0)
    flat = other.reshape(-1)
    places = [draw.randrange(flat.size) for _ in range(4)]
    if array.dtype.kind == "b":
        flat[places] ^= True
    else:
        limits = np.iinfo(array.dtype)
        flat[places] = [
            draw.choice([0, 1, 2, 3, 100, limits.max, limits.min, 2**20 % limits.max]) for _ in places
        ]
    return other
