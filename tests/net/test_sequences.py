"""Nets in the carried style are the explicit nets they stand for."""

import numpy as np
import pytest

import seqflow as sf
from seqflow import LodError, Net, NetError

WORDS = "words = sequence(doc.values, doc.lengths)\n"
LEVELS = "words = sequence(doc.values.values, doc.lengths, doc.values.lengths)\n"


@pytest.mark.parametrize(
    ("carried", "explicit"),
    [
        (WORDS + "s = lengths_sum(words)", "s = lengths_sum(doc.values, doc.lengths)"),
        ("words = sequence(doc)\ns = lengths_sum(words)", "s = lengths_sum(doc.values, doc.lengths)"),
        (
            WORDS + "h = lstm(words, w, v, bias)\ny = fc(h.h, m)\nz = lstm(y, w2, v2)",
            "h = lstm(doc.values, doc.lengths, w, v, bias)\ny = fc(h.h, m)\nz = lstm(y, doc.lengths, w2, v2)",
        ),
        (WORDS + "h = lstm(words, words.lengths, w, v)", "h = lstm(doc.values, doc.lengths, w, v)"),
        (WORDS + "h = lstm(words, w, v, lengths=n)", "h = lstm(doc.values, n, w, v)"),
        (WORDS + "t = truncate(words, max_length=2)\ns = lengths_sum(t.values)",
         "t = truncate(doc.values, doc.lengths, max_length=2)\ns = lengths_sum(t.values, t.lengths)"),
        (WORDS + "s = lengths_sum(tanh(words * 2) + 1)", "s = lengths_sum(tanh(doc.values * 2) + 1, doc.lengths)"),
        (WORDS + "s = 1 + lengths_sum(words)", "s = 1 + lengths_sum(doc.values, doc.lengths)"),
        (WORDS + "x, n = concat_sequences([words, words])",
         "x, n = concat_sequences([doc.values, doc.values], [doc.lengths, doc.lengths])"),
        (WORDS + "r = expand(vectors, words)", "r = expand(vectors, doc.lengths)"),
        (WORDS + "g = sparse_lengths_sum(table, words)", "g = sparse_lengths_sum(table, doc.values, doc.lengths)"),
        (LEVELS + "s = lengths_sum(words)\nt = lengths_mean(s)\nback = expand(s, words)",
         "s = lengths_sum(doc.values.values, doc.values.lengths)\nt = lengths_mean(s, doc.lengths)\n"
         "back = expand(s, doc.values.lengths)"),
        (WORDS + "t = truncate(words, max_length=2)\ns = lengths_sum(t * 2)\nreturn t, s",
         "t = truncate(doc.values, doc.lengths, max_length=2)\ns = lengths_sum(t.values * 2, t.lengths)\n"
         "return t.values, t.lengths, s"),
        (LEVELS + "t = truncate(words, max_length=2)\ns = lengths_mean(lengths_sum(t))",
         "t = truncate(doc.values.values, doc.values.lengths, max_length=2)\n"
         "s = lengths_mean(lengths_sum(t.values, t.lengths), doc.lengths)"),
        (WORDS + "t, _ = truncate(words, max_length=2)\ns = lengths_sum(t, n)",
         "t, _ = truncate(doc.values, doc.lengths, max_length=2)\ns = lengths_sum(t, n)"),
        (WORDS + "y = words * 2 + expand(lengths_sum(words), words)",
         "y = doc.values * 2 + expand(lengths_sum(doc.values, doc.lengths), doc.lengths)"),
        ("doc = sequence(doc)\ns = lengths_sum(doc + doc.values)",
         "s = lengths_sum(doc.values + doc.values, doc.lengths)"),
        ("both = sequence(t.values, t.lengths)\nt = truncate(x, n, max_length=2)\ns = lengths_sum(both)",
         "t = truncate(x, n, max_length=2)\ns = lengths_sum(t.values, t.lengths)"),
        ("s = lengths_sum(y)\ny = words * 2\n" + WORDS, "y = doc.values * 2\ns = lengths_sum(y, doc.lengths)"),
        (WORDS + "return words", "return doc.values, doc.lengths"),
    ],
)  # fmt: skip
def test_lengths_are_filled_in(carried, explicit):
    net = Net(carried)
    assert str(net) == explicit
    assert str(Net(str(net))) == explicit


def test_both_styles_give_the_same():
    tensors = {"doc.values": np.arange(5.0), "doc.lengths": np.array([2, 0, 3])}
    carried = sf.run(WORDS + "s = softmax_within(words)\nt = lengths_sum(s * words)\nreturn t", tensors)
    explicit = sf.run(
        "s = softmax_within(doc.values, doc.lengths)\nt = lengths_sum(s * doc.values, doc.lengths)\nreturn t",
        tensors,
    )
    np.testing.assert_array_equal(carried["t"], explicit["t"])


def test_a_sequence_and_a_group_return_lengths_that_they_share_once():
    net = Net(LEVELS + "t = truncate(words, max_length=2)\nreturn words, t")
    assert net.returned == ("doc.values.values", "doc.lengths", "doc.values.lengths", "t.values", "t.lengths")


def test_a_net_that_declares_no_sequence_writes_all_lengths_out():
    with pytest.raises(NetError, match="t is a group, expected one of"):
        Net("t = truncate(x, n, max_length=2)\ns = lengths_sum(t, t.lengths)")
    with pytest.raises(NetError, match="lengths_sum needs 'lengths'"):
        Net("t = truncate(x, n, max_length=2)\ns = lengths_sum(t.values)")


def test_what_has_no_lengths_says_so():
    with pytest.raises(NetError, match="lengths_sum needs 'lengths'"):
        Net(WORDS + "p = gather(table, indices)\ns = lengths_sum(p)")


def test_two_sequences_of_other_lengths_do_not_mix():
    tensors = {name: np.ones(3) for name in ("a.values", "b.values")}
    tensors |= {"a.lengths": np.array([1, 2]), "b.lengths": np.array([2, 1])}
    with pytest.raises(
        LodError, match=r"the rows of the lengths a.lengths .* those of the lengths b.lengths"
    ):
        sf.run(
            "a = sequence(a.values, a.lengths)\nb = sequence(b.values, b.lengths)\nc = lengths_sum(a + b)",
            tensors,
        )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("words = sequence()", "line 1, column 9: found words = sequence(), expected name = sequence(values, lengths)"),
        ("a, b = sequence(x, n)", "expected name = sequence(values, lengths)"),
        ("words = sequence(x, lengths=n)", "expected name = sequence(values, lengths)"),
        (WORDS + WORDS, "line 2, column 1: words is assigned already, in line 1"),
    ],
)  # fmt: skip
def test_a_sequence_that_cannot_be_says_where(text, message):
    with pytest.raises(NetError) as error:
        Net(text)
    assert message in str(error.value)
