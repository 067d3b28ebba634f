"""Ops that a user of the library wrote, for nets."""

import numpy as np
import pytest

import seqflow as sf


@pytest.fixture
def ops_of_a_user():
    """Two ops that shorten sequences: one says that each call may give others."""
    signature = "data[sum(lengths), *d], lengths[B] -> values[sum(lengths'), *d], int64 lengths'[B]"

    @sf.op(signature, pure=False)
    def sampled_of_a_test(data, lengths):
        """Shorten each sequence to its half."""
        return halves(data, lengths)

    @sf.op(signature)
    def halved_of_a_test(data, lengths):
        """Shorten each sequence to its half."""
        return halves(data, lengths)

    yield
    sf.registry.unregister("sampled_of_a_test")
    sf.registry.unregister("halved_of_a_test")


def halves(data, lengths):
    starts = np.cumsum(lengths) - lengths
    short = lengths // 2
    return data[[i for start, n in zip(starts, short, strict=True) for i in range(start, start + n)]], short
