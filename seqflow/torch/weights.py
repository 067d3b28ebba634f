"""Loads the weights of PyTorch modules as arguments of ops.

    layers = seqflow.torch.load_lstm(model, prefix="encoder.")
    for weights in layers:
        x = ops.lstm(x, lengths, *weights).h

Each function takes a module, or a state dict of tensors or arrays, and returns NamedTuples with the op's arguments as
fields. Arrays share the memory of the tensors, except sums of two biases, and bfloat16, which NumPy does not have and
which becomes float32. This module never imports PyTorch.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from seqflow.errors import OpError, OpTypeError, ShapeError
from seqflow.kernels.arrays import Array
from seqflow.torch.arrays import to_array

W = TypeVar("W")


@runtime_checkable
class Module(Protocol):
    """Protocol: an object with weights, such as a `torch.nn.Module`."""

    def state_dict(self) -> Mapping[str, Any]: ...


Source = Module | Mapping[str, Any]


class RNNWeights(NamedTuple):
    """Weights of `rnn`: one layer, one direction. The bias is the sum of PyTorch's two biases.

    Args:
        w_ih: Weights of inputs, [gates * H, K].
        w_hh: Weights of states, [gates * H, H].
        bias: Sum of the two biases, [gates * H]; None without biases.
    """

    w_ih: Array
    w_hh: Array
    bias: Array | None


class BidirectionalRNNWeights(NamedTuple):
    """Weights of `bidirectional_rnn`: one layer.

    Args:
        w_ih: Weights of inputs, [gates * H, K].
        w_hh: Weights of states, [gates * H, H].
        w_ih_reverse: Weights of inputs, last to first.
        w_hh_reverse: Weights of states, last to first.
        bias: Sum of the two biases, [gates * H]; None without biases.
        bias_reverse: Sum of the two biases, last to first.
    """

    w_ih: Array
    w_hh: Array
    w_ih_reverse: Array
    w_hh_reverse: Array
    bias: Array | None
    bias_reverse: Array | None


class LSTMWeights(RNNWeights):
    """Weights of `lstm`: one layer, one direction, with the fields of `RNNWeights`."""


class BidirectionalLSTMWeights(BidirectionalRNNWeights):
    """Weights of `bidirectional_lstm`: one layer, with the fields of `BidirectionalRNNWeights`."""


class GRUWeights(NamedTuple):
    """Weights of `gru`: one layer, one direction.

    Args:
        w_ih: Weights of inputs, [gates * H, K].
        w_hh: Weights of states, [gates * H, H].
        bias_ih: Bias of inputs, [3 * H]; None without biases.
        bias_hh: Bias of states, [3 * H]; None without biases.
    """

    w_ih: Array
    w_hh: Array
    bias_ih: Array | None
    bias_hh: Array | None


class BidirectionalGRUWeights(NamedTuple):
    """Weights of `bidirectional_gru`: one layer.

    Args:
        w_ih: Weights of inputs, [gates * H, K].
        w_hh: Weights of states, [gates * H, H].
        w_ih_reverse: Weights of inputs, last to first.
        w_hh_reverse: Weights of states, last to first.
        bias_ih: Bias of inputs, [3 * H]; None without biases.
        bias_hh: Bias of states, [3 * H]; None without biases.
        bias_ih_reverse: Bias of inputs, last to first.
        bias_hh_reverse: Bias of states, last to first.
    """

    w_ih: Array
    w_hh: Array
    w_ih_reverse: Array
    w_hh_reverse: Array
    bias_ih: Array | None
    bias_hh: Array | None
    bias_ih_reverse: Array | None
    bias_hh_reverse: Array | None


class LinearWeights(NamedTuple):
    """Weights of `fc`.

    Args:
        weight: Weights, [M, K].
        bias: Bias, [M]; None without one.
    """

    weight: Array
    bias: Array | None


class EmbeddingWeights(NamedTuple):
    """Table of `sparse_lengths_sum` and similar ops: `sparse_lengths_sum(*weights, indices, lengths)`.

    Args:
        table: Rows of the table, [R, D].
    """

    table: Array


def load_rnn(source: Source, prefix: str = "") -> list[RNNWeights] | list[BidirectionalRNNWeights]:
    """Return the layers of a `torch.nn.RNN`, first to last; pass `nonlinearity` to the op yourself.

    Args:
        source: Module, or state dict of tensors or arrays.
        prefix: Beginning of the names of its weights in the state dict, `encoder.`.

    >>> state = {"weight_ih_l0": np.ones((2, 3)), "weight_hh_l0": np.eye(2)}
    >>> [weights] = load_rnn(state)
    >>> ops.rnn(np.ones((4, 3)), np.array([4]), *weights, nonlinearity="relu").h_last
    array([[12., 12.]])
    """
    return _layers(source, prefix, 1, RNNWeights, BidirectionalRNNWeights)


def load_lstm(source: Source, prefix: str = "") -> list[LSTMWeights] | list[BidirectionalLSTMWeights]:
    """Return the layers of a `torch.nn.LSTM`, first to last; raise OpError for `proj_size`, which `lstm` lacks.

    Args:
        source: Module, or state dict of tensors or arrays.
        prefix: Beginning of the names of its weights in the state dict, `encoder.`.
    """
    return _layers(source, prefix, 4, LSTMWeights, BidirectionalLSTMWeights)


def load_gru(source: Source, prefix: str = "") -> list[GRUWeights] | list[BidirectionalGRUWeights]:
    """Return the layers of a `torch.nn.GRU`, first to last.

    Args:
        source: Module, or state dict of tensors or arrays.
        prefix: Beginning of the names of its weights in the state dict, `encoder.`.
    """
    return _layers(source, prefix, 3, GRUWeights, BidirectionalGRUWeights)


def load_linear(source: Source, prefix: str = "") -> LinearWeights:
    """Return the weights of a `torch.nn.Linear`: `fc(x, *weights)`.

    Args:
        source: Module, or state dict of tensors or arrays.
        prefix: Beginning of the names of its weights in the state dict, `encoder.`.

    >>> load_linear({"head.weight": np.eye(2), "head.bias": np.ones(2)}, prefix="head.").bias
    array([1., 1.])
    """
    state = _state(source)
    weight = _array(state, f"{prefix}weight", rank=2)
    return LinearWeights(weight, _bias(state, f"{prefix}bias", len(weight)))


def load_embedding(source: Source, prefix: str = "") -> EmbeddingWeights:
    """Return the table of a `torch.nn.Embedding` or `EmbeddingBag`: `gather(*weights, indices)`.

    Args:
        source: Module, or state dict of tensors or arrays.
        prefix: Beginning of the names of its weights in the state dict, `encoder.`.
    """
    return EmbeddingWeights(_array(_state(source), f"{prefix}weight", rank=2))


def _layers(
    source: Source, prefix: str, gates: int, one: Callable[..., W], both: Callable[..., Any]
) -> list[W] | list[Any]:
    state = _state(source)
    pattern = re.compile(re.escape(prefix) + r"weight_ih_l(\d+)")
    count = len([name for name in state if pattern.fullmatch(name)])
    if count == 0:
        _array(state, f"{prefix}weight_ih_l0", rank=2)  # its error lists the weights of the state dict
    if f"{prefix}weight_ih_l0_reverse" not in state:
        return [one(**_direction(state, prefix, f"l{layer}", gates)) for layer in range(count)]
    return [
        both(
            **_direction(state, prefix, f"l{layer}", gates),
            **{f"{k}_reverse": v for k, v in _direction(state, prefix, f"l{layer}_reverse", gates).items()},
        )
        for layer in range(count)
    ]


def _direction(state: Mapping[str, Any], prefix: str, suffix: str, gates: int) -> dict[str, Array | None]:
    """Return the weights of one layer in one direction, by the names of the ops' arguments."""
    if f"{prefix}weight_hr_{suffix}" in state:
        raise OpError(f"{prefix}weight_hr_{suffix} projects the states (proj_size), which no op here does")
    w_ih = _array(state, f"{prefix}weight_ih_{suffix}", rank=2)
    w_hh = _array(state, f"{prefix}weight_hh_{suffix}", rank=2)
    rows = gates * w_hh.shape[1]
    for name, weights in (("ih", w_ih), ("hh", w_hh)):
        if len(weights) != rows:
            raise ShapeError(
                f"{prefix}weight_{name}_{suffix} has the shape {weights.shape}, expected {rows} rows:"
                f" {gates} gates of {w_hh.shape[1]} as in {prefix}weight_hh_{suffix} {w_hh.shape}"
            )
    ih, hh = (_bias(state, f"{prefix}bias_{name}_{suffix}", rows) for name in ("ih", "hh"))
    if gates == 3:  # a GRU multiplies one of the biases by the reset gate, so they do not add up
        return {"w_ih": w_ih, "w_hh": w_hh, "bias_ih": ih, "bias_hh": hh}
    biases = [bias for bias in (ih, hh) if bias is not None]
    return {"w_ih": w_ih, "w_hh": w_hh, "bias": sum(biases[1:], biases[0]) if biases else None}


def _state(source: Source) -> Mapping[str, Any]:
    if isinstance(source, Mapping):
        return source
    if not callable(getattr(source, "state_dict", None)):
        raise OpTypeError(f"weights are {type(source).__name__}, expected a module or a state dict")
    return source.state_dict()


def _bias(state: Mapping[str, Any], name: str, size: int) -> Array | None:
    if name not in state:
        return None
    bias = _array(state, name, rank=1)
    if len(bias) != size:
        raise ShapeError(f"{name} has the shape {bias.shape}, expected {(size,)}")
    return bias


def _array(state: Mapping[str, Any], name: str, *, rank: int) -> Array:
    if name not in state:
        raise OpError(f"there is no {name!r}; the state dict has {_listed(list(state))}")
    value = state[name]
    array = to_array(value) if hasattr(value, "detach") else np.asarray(value)
    if array.ndim != rank:
        raise ShapeError(f"{name} has the shape {array.shape}, expected {rank} dimensions")
    return array


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(map(repr, names[:most])) or "nothing"
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
