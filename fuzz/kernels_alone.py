"""Kernels called directly, with good and with hostile arguments: no crash, and what C++ answers NumPy answers, too.

Made to run under sanitizers: what is read or written outside of an array ends the process.
"""

import copy
import random
import time
import warnings
from collections import Counter
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.calls import INTEGERS
from fuzz.children import Log, keep, run_children
from seqflow import kernels
from seqflow.kernels import KernelError
from seqflow.kernels.attention import AttentionSettings
from seqflow.kernels.dispatch import KERNELS
from seqflow.kernels.forms import COUNTS
from seqflow.kernels.forms import INTEGERS as INDICES
from seqflow.kernels.recurrent_cells.forward import NUM_GATES

CHOICES = {
    "kind": ["sum", "mean", "max", "min", "prod", "median"],
    "side": ["right", "left", "top"],
    "strategy": ["best_fit", "first_fit", "concat", "worst_fit"],
}
DTYPES = ["f4", "f8", "i4", "i8", "u1", "i2", "?", "f2", "u8", "M8[s]", "S3", "V5"]
KINDS_OF_COUNTS = ["lengths", "sizes", "piece_lengths", "pieces"]


def run(seed: int, seconds: float) -> Counter[str]:
    """Call all kernels; the counts, which are printed, too."""
    each = seconds / len(KERNELS)
    counts = run_children(list(KERNELS), lambda name, log: _fuzz(name, log, seed, each), seed, at_once=1)
    print(
        f"fuzz.kernels_alone, seed {seed}:",
        ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())),
        flush=True,
    )
    return counts


def case(draw: random.Random, folder: Path) -> None:
    """One call of any kernel."""
    name = draw.choice(list(KERNELS))
    arguments = _arguments(draw, name)
    if wrong := _judge(name, arguments):
        raise AssertionError(f"{name}: {wrong}: {arguments}")


def _fuzz(name: str, log: Log, seed: int, seconds: float) -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    draw, found = random.Random(f"{seed} {name}"), set[str]()
    stop = time.monotonic() + seconds
    while time.monotonic() < stop:
        arguments = _arguments(draw, name)
        log.step((name, arguments))
        log.counts["calls"] += 1
        try:
            wrong = _judge(name, arguments, log)
        except MemoryError:  # for what the results are compared in
            continue
        for kind in wrong:
            log.counts[kind.split(":")[0]] += 1
            if kind not in found:
                found.add(kind)
                keep(name, kind, (name, arguments), seed)


def _judge(name: str, arguments: dict[str, Any], log: Log | None = None) -> set[str]:
    """What is wrong with a call: nothing, or exceptions and disagreements. The time of each kernel counts alone."""
    outcomes = []
    for each in ["reference", *kernels.isas()]:
        outcomes.append(_outcome(name, arguments, each))
        if log is not None:
            log.beat()
    wrong = {kind for kind, _ in outcomes if kind}
    if wrong or any(isinstance(result, MemoryError) for _, result in outcomes):
        return wrong
    same = all(agree(outcomes[0][1], result) for _, result in outcomes[1:])
    return set() if same else {"disagreements"}


def _outcome(name: str, arguments: dict[str, Any], implementation: str) -> tuple[str, Any]:
    """What is wrong with the call, and its result or error, with the arrays it wrote to."""
    given = copy.deepcopy(arguments)
    with kernels.use(implementation):
        try:
            result = getattr(kernels, name)(**given)
        except (ValueError, TypeError, OverflowError, MemoryError) as error:
            return "", error
        except Exception as error:
            return f"foreign exceptions: {type(error).__name__}: {str(error)[:60]}", error
    return "", (
        result,
        given.get("target"),
        [array for batch in given.get("batches", ()) for array in batch[2:]],
    )


def agree(left: Any, right: Any) -> bool:
    if isinstance(left, KernelError) and isinstance(right, KernelError):
        return str(left) == str(right)
    if isinstance(left, Exception) or isinstance(
        right, Exception
    ):  # which of two faults is found first is open
        return isinstance(left, Exception) and isinstance(right, Exception)
    if isinstance(left, tuple | list):
        return len(left) == len(right) and all(map(agree, left, right))
    if not isinstance(left, np.ndarray):
        return bool(left == right)
    if left.dtype != right.dtype or left.shape != right.shape:
        return False
    if left.tobytes() == right.tobytes():  # quick, where results are large
        return True
    return left.dtype.kind == "f" and np.allclose(left, right, rtol=1e-3, atol=1e-3, equal_nan=True)


def _arguments(draw: random.Random, name: str) -> dict[str, Any]:
    """By name, and mostly so that they fit: for lengths, rows of data as many as they add up to."""
    kernel = KERNELS[name]
    lengths = np.array([draw.choice([0, 0, 1, 2, 3, 9, 70, 300]) for _ in range(draw.randrange(6))], np.int64)
    sizes = {"lengths": lengths} | ({"kv_lengths": lengths} if name.startswith("attention") else {})
    if draw.random() < 0.15 and len(lengths):
        lengths[draw.randrange(len(lengths))] = draw.choice([i for i in INTEGERS if -(2**63) <= i < 2**63])
    total = int(lengths.sum()) if 0 <= lengths.sum() < 5000 and (lengths >= 0).all() else 7
    dtype, columns = draw.choice(DTYPES), draw.choice([(), (), (1,), (3,), (40,), (0,), (2, 2)])
    arguments = {}
    cell = draw.choice([*NUM_GATES, "lstm2"])
    hidden, inputs = draw.choice([0, 1, 3, 17]), draw.choice([0, 1, 5])
    gates = NUM_GATES.get(cell, 1) * hidden
    shapes = {
        "x": (total, inputs), "w_ih": (gates, inputs), "w_hh": (gates, hidden),
        "bias_ih": (gates,), "bias_hh": (gates,),
        "h0": (len(lengths), hidden), "c0": (len(lengths), hidden), "w_hr": (hidden, hidden),
        "padded": (len(lengths), draw.choice([0, 3, 9]), *columns),
        "packed": (draw.choice([0, 3, 9]), len(lengths), *columns),
        "target": (draw.choice([0, 5, 50]), *columns),
        "data": (len(lengths) if name == "expand" else total, *columns),
    }  # fmt: skip
    if name.startswith("attention"):
        dtype, (heads, groups) = draw.choice(["f4", "f8"]), draw.choice([(2, 1), (3, 3), (4, 2)])
        shapes |= {"q": (total, heads, inputs), "slopes": (heads,)}
        shapes |= {"k": (total, groups, inputs), "v": (total, groups, hidden)}
        shapes |= {"out": (total, heads, hidden), "d_out": (total, heads, hidden)}
        shapes |= {"lse": (total, heads), "d_lse": (total, heads)}
    for parameter in signature(kernel.body).parameters.values():
        form = kernel.forms.get(parameter.name)
        if parameter.default is not parameter.empty and draw.random() < 0.5:
            continue
        if parameter.name in sizes:
            arguments[parameter.name] = _form(draw, lengths)
        elif parameter.name == "settings":
            band = [draw.choice([0, 2, 2**40]) for _ in range(2)]
            arguments["settings"] = AttentionSettings(
                0.5, *band, draw.random() < 0.5, draw.choice([0.0, 3.0])
            )
        elif parameter.name == "cell":
            arguments["cell"] = cell
        elif parameter.name == "chunks":
            counts = [draw.choice([0, 1, 7, total]) for _ in range(draw.randrange(1, 4))]
            arguments["chunks"] = kernels.ChunkedRows(
                [_numbers(draw, (count, *columns), dtype) for count in counts]
            )
        elif parameter.name == "batches":
            arguments["batches"] = [_batch(draw, columns, dtype) for _ in range(draw.randrange(4))]
        elif parameter.name in CHOICES:
            arguments[parameter.name] = draw.choice(CHOICES[parameter.name])
        elif isinstance(form, dict):
            arguments[parameter.name] = tuple(_integers(draw, 4, 4) for _ in form)
        elif form in (COUNTS, INDICES):
            rows = total if parameter.name in ("indices", "ids") else 4
            ascending = parameter.name == "ids" and draw.random() < 0.5
            drawn = _integers(draw, rows, 8)
            arguments[parameter.name] = np.sort(drawn) if ascending else drawn
        elif form is not None or parameter.name == "target":
            kind = draw.choice(["f4", "f8"]) if "cell" in kernel.parameters else dtype
            shape = shapes.get(parameter.name, (draw.choice([0, 3, total]), *columns))
            filled = _numbers(draw, shape, "f8" if kind == "f8" and "cell" in kernel.parameters else kind)
            if parameter.name == "boundaries":  # of others nothing is promised but that they do no harm
                filled.sort(axis=0)
            arguments[parameter.name] = filled if parameter.name == "target" else _form(draw, filled)
        elif parameter.name in ("out", "mask"):
            arguments[parameter.name] = None
        elif "bool" in str(parameter.annotation):
            arguments[parameter.name] = draw.random() < 0.5
        elif "int" in str(parameter.annotation):
            arguments[parameter.name] = draw.choice(
                [0, 1, 2, 5, 300, *INTEGERS] if draw.random() < 0.3 else [0, 1, 2, 5, 300]
            )
        else:
            arguments[parameter.name] = draw.choice([0, 0, 1, -1, 2.5])
    return arguments


def _batch(draw: random.Random, columns: tuple[int, ...], dtype: str) -> tuple[Any, ...]:
    """Starts and sizes of slices, an array that they are padded into, and perhaps a mask."""
    rows, width = draw.randrange(4), draw.choice([0, 1, 3])
    mask = np.zeros((rows, width), bool) if draw.random() < 0.5 else None
    padded = _numbers(draw, (rows, width, *columns), dtype)
    return _integers(draw, rows, 8), _integers(draw, rows, 3), padded, mask


def _integers(draw: random.Random, count: int, limit: int) -> Any:
    drawn = np.array([draw.randrange(limit) for _ in range(count)], draw.choice(["i4", "i8", "u1"]))
    if count and draw.random() < 0.1:
        drawn = drawn.astype("i8")
        drawn[draw.randrange(count)] = draw.choice([-1, 2**31, 2**62, 2**63 - 1, -(2**63)])
    return drawn


def _numbers(draw: random.Random, shape: tuple[int, ...], dtype: str) -> Any:
    drawn = np.random.default_rng(draw.randrange(2**32)).integers(0, 6, shape)
    return drawn.astype("S3" if dtype == "V5" else dtype)


def _form(draw: random.Random, array: Any) -> Any:
    """The same values, sometimes with strides, read-only or in another byte order."""
    if draw.random() < 0.8 or array.ndim == 0:
        return array
    strided = np.repeat(array, 2, axis=0)[::2]
    return draw.choice([strided, array[::-1].copy()[::-1], np.asfortranarray(array)])
