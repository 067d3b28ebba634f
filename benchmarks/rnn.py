"""Recurrent cells beside PyTorch's: a batch of 64 sequences of log-normal length (mean 128), input 128, hidden 256.

Attention (attention.py) and grouped products (matrices.py) are measured with them.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/rnn.py [NAME …] [--rounds 7] [--threads 1]

PyTorch runs on packed sequences (packing included), and on sequences padded to the longest (padding included).
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.nn.utils import rnn

from attention import attention, trees
from comparison import Row, main
from matrices import products
from seqflow import ops

BATCH, INPUT, HIDDEN = 64, 128, 256


def _weights(layer: Any) -> list[Any]:
    """The weights of one of PyTorch's layers as arguments of an op; LSTM and RNN have one bias, the sum of two."""
    given = [one.detach().numpy() for one in layer.parameters()]
    return [*given[:2], given[2] + given[3]] if isinstance(layer, torch.nn.LSTM | torch.nn.RNN) else given


def cells() -> Iterator[Row]:
    """Three cells, and a chain of an LSTM, a linear layer and another LSTM."""
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    lengths = np.maximum(rng.lognormal(np.log(128) - 0.32, 0.8, BATCH), 1).astype(np.int64)
    x = rng.standard_normal((int(lengths.sum()), INPUT), dtype=np.float32)
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
    run = {"LSTM": ops.lstm, "GRU": ops.gru, "RNN": ops.rnn}

    def ours(layers: list[Any]) -> Callable[[], Any]:
        weights = [_weights(layer) for layer in layers]

        def forward() -> Any:
            h = x
            for layer, given in zip(layers, weights, strict=True):
                if isinstance(layer, torch.nn.Linear):
                    h = ops.fc(h, *given)
                else:
                    h = run[type(layer).__name__](h, lengths, *given).h
            return h

        return forward

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

    def by_sequence(ours: Any, theirs: Any) -> None:
        sequences = rnn.unpack_sequence(theirs) if isinstance(theirs, rnn.PackedSequence) else [
            theirs[:size, at] for at, size in enumerate(lengths.tolist())
        ]  # fmt: skip
        np.testing.assert_allclose(ours, torch.cat(sequences).numpy(), atol=1e-4)

    for name, layers in modules.items():
        yield Row(
            name,
            ours(layers),
            {
                "torch, packed": lambda layers=layers: packed(layers),
                "torch, padded": lambda layers=layers: padded(layers),
            },
            {"torch, packed": 0.8},
            agree=by_sequence,
            rounds=7,
        )


FAMILIES = [cells, attention, trees, products]

if __name__ == "__main__":
    main(FAMILIES)
