"""Sequences of tensors: RNN → FC → RNN is written once, and trains."""

import numpy as np
import pytest

import seqflow as sf
from seqflow import auto
from seqflow.errors import LodError

torch = pytest.importorskip("torch")


def weights(rng, gates, inputs, hidden):
    return rng.normal(size=(gates * hidden, inputs)) / 3, rng.normal(size=(gates * hidden, hidden)) / 3


def model(words, first, between, second):
    """An LSTM, a layer, a GRU, and the mean of each sequence."""
    h = auto.lstm(words, *first).h
    y = auto.fc(auto.tanh(h) * 2, between)
    z = auto.gru(y, *second).h
    return auto.lengths_mean(z)


def test_a_chain_of_ops_gives_what_arrays_give_and_trains():
    rng = np.random.default_rng(0)
    given = weights(rng, 4, 3, 5), rng.normal(size=(4, 5)), weights(rng, 3, 4, 2)
    values, lengths = rng.normal(size=(9, 3)), [4, 0, 5]
    expected = model(sf.Sequence(values, lengths), *given)

    def trained(array):
        return torch.from_numpy(array).requires_grad_()

    first, between, second = tuple(map(trained, given[0])), trained(given[1]), tuple(map(trained, given[2]))
    found = model(sf.Sequence(torch.from_numpy(values), lengths), first, between, second)
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12, atol=1e-14)
    found.square().sum().backward()
    assert all(one.grad is not None and one.grad.abs().sum() > 0 for one in (*first, between, *second))


def test_lengths_may_be_tensors_too():
    words = sf.Sequence(torch.arange(4.0), torch.tensor([3, 0, 1]))
    assert auto.lengths_sum(words).tolist() == [3, 0, 3]


def test_new_lengths_ride_along():
    words = sf.Sequence(torch.arange(6.0, requires_grad=True), [4, 2])
    short = auto.truncate(words, max_length=2)
    assert short.lengths.tolist() == [2, 2]
    assert isinstance(short.values, torch.Tensor)
    assert short.values.requires_grad


def test_a_sequence_of_tensors_behaves_like_one_of_arrays():
    words = sf.Sequence(torch.arange(4.0), [3, 0, 1])
    assert words[0].tolist() == [0, 1, 2]
    assert words[[2, 0]].values.tolist() == [3, 0, 1, 2]
    assert words[:1].lengths.tolist() == [3]
    assert (words * 2 + words).values.tolist() == [0, 3, 6, 9]
    assert words.to_lists() == [[0, 1, 2], [], [3]]
    assert "Sequence of 3 sequences, 4 rows, torch.float32" in repr(words)


def test_values_have_as_many_rows_as_the_lengths_say():
    with pytest.raises(LodError, match="the lengths describe 4 rows but values has 3"):
        sf.Sequence(torch.ones(3), [4])
    with pytest.raises(LodError, match="different lengths"):
        sf.Sequence(torch.ones(3), [3]) + sf.Sequence(torch.ones(3), [1, 2])
