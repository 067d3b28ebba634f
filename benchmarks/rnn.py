"""Recurrent cells beside PyTorch's: a batch of 64 sequences of log-normal length (mean 128), input 128, hidden 256.

    python benchmarks/rnn.py [--times 7] [--threads 1 2] [--batch 64] [--dtype float32] [--cpu-time]

For each number of threads one process of its own, in which all are measured in turn: PyTorch on packed sequences
(packing included), PyTorch on sequences padded to the longest (padding included), our native kernels, and our
NumPy kernels. `--cpu-time` counts the process's seconds of CPU, not of the clock: for one thread beside other work.
The chain is an LSTM, a linear layer and another LSTM. Prints the best time of each in ms, and its
ratio to PyTorch on packed sequences. Needs `pip install seqflow[torch]`.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

INPUT, HIDDEN = 128, 256


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--cpu-time", action="store_true")
    options = parser.parse_args()
    if len(options.threads) == 1 and "OMP_NUM_THREADS" in os.environ:
        measure(options)
        return
    for threads in options.threads:
        counts = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
        command = [sys.executable, __file__, "--threads", str(threads), "--times", str(options.times)]
        command += ["--batch", str(options.batch), "--dtype", options.dtype]
        command += ["--cpu-time"] * options.cpu_time
        subprocess.run(command, env={**os.environ, **counts}, check=True)


def measure(options: argparse.Namespace) -> None:
    import numpy as np
    import torch

    from seqflow import kernels

    [threads], dtype = options.threads, options.dtype
    clock = time.process_time if options.cpu_time else time.perf_counter
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    kernels.set_num_threads(threads)
    rng = np.random.default_rng(0)
    lengths = np.maximum(rng.lognormal(np.log(128) - 0.32, 0.8, options.batch), 1).astype(np.int64)
    x = rng.standard_normal((int(lengths.sum()), INPUT)).astype(dtype)
    print(f"{threads} thread(s), {kernels.info()['isa']}, {dtype}: {options.batch} sequences of {len(x)} rows,"
          f" longest {lengths.max()}")  # fmt: skip
    print(f"{'':6}{'torch packed':>16}{'torch padded':>16}{'native':>16}{'NumPy':>16}")
    for name, contenders in cases(x, lengths).items():
        best = interleaved_minima(contenders, options.times, clock)
        print(f"{name:6}" + "".join(f"{1e3 * t:9.1f} ({t / best[0]:4.2f})" for t in best), flush=True)


def interleaved_minima(
    contenders: list[Callable[[], Any]], times: int, clock: Callable[[], float]
) -> list[float]:
    best = [float("inf")] * len(contenders)
    for _ in range(times):
        for i, run in enumerate(contenders):
            started = clock()
            run()
            best[i] = min(best[i], clock() - started)
    return best


def cases(x: Any, lengths: Any) -> dict[str, list[Callable[[], Any]]]:
    """PyTorch packed, PyTorch padded, native, NumPy: what each of them runs."""
    import numpy as np
    import torch
    from torch.nn.utils import rnn

    from seqflow import kernels, ops
    from seqflow.torch import load_gru, load_linear, load_lstm, load_rnn

    sequences = list(torch.split(torch.from_numpy(x), lengths.tolist()))
    dtype = sequences[0].dtype
    modules = {
        "LSTM": [torch.nn.LSTM(INPUT, HIDDEN, dtype=dtype)],
        "GRU": [torch.nn.GRU(INPUT, HIDDEN, dtype=dtype)],
        "RNN": [torch.nn.RNN(INPUT, HIDDEN, dtype=dtype)],
        "chain": [
            torch.nn.LSTM(INPUT, HIDDEN, dtype=dtype),
            torch.nn.Linear(HIDDEN, INPUT, dtype=dtype),
            torch.nn.LSTM(INPUT, HIDDEN, dtype=dtype),
        ],
    }
    load = {"LSTM": load_lstm, "GRU": load_gru, "RNN": load_rnn}
    run = {"LSTM": ops.lstm, "GRU": ops.gru, "RNN": ops.rnn}

    def ours(layers: list[Any]) -> Callable[[], Any]:
        weights = [
            load_linear(layer) if isinstance(layer, torch.nn.Linear) else load[type(layer).__name__](layer)[0]
            for layer in layers
        ]

        def forward() -> Any:
            h = x
            for layer, given in zip(layers, weights, strict=True):
                if isinstance(layer, torch.nn.Linear):
                    h = ops.fc(h, *given)
                else:
                    h = run[type(layer).__name__](h, lengths, *given).h
            return h

        return forward

    def in_numpy(forward: Callable[[], Any]) -> Any:
        with kernels.use("reference"):
            return forward()

    @torch.inference_mode()
    def packed(layers: list[Any]) -> Any:
        h = rnn.pack_sequence(sequences, enforce_sorted=False)
        for layer in layers:
            h = h._replace(data=layer(h.data)) if isinstance(layer, torch.nn.Linear) else layer(h)[0]
        return h

    @torch.inference_mode()
    def padded(layers: list[Any]) -> Any:
        h = rnn.pad_sequence(sequences)
        for layer in layers:
            h = layer(h) if isinstance(layer, torch.nn.Linear) else layer(h)[0]
        return h

    found = {}
    for name, layers in modules.items():
        forward = ours(layers)
        theirs = torch.cat(rnn.unpack_sequence(packed(layers))).numpy()
        assert np.abs(forward() - theirs).max() < 1e-4
        found[name] = [
            lambda layers=layers: packed(layers),
            lambda layers=layers: padded(layers),
            forward,
            lambda forward=forward: in_numpy(forward),
        ]
    return found


if __name__ == "__main__":
    main()
