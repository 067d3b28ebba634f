"""Places of words and tokens, and labels brought to them."""

import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqflow import ops
from seqflow.errors import OpError

A = np.array


def texts(*of_rows):
    pieces = [one.encode() for one in of_rows]
    return np.frombuffer(b"".join(pieces), np.uint8), A([len(one) for one in pieces], np.int64)


def test_words_start_and_end_in_their_own_text():
    starts, ends, counts = ops.word_offsets(*texts("I löve  it", " x"))
    assert (starts.tolist(), ends.tolist(), counts.tolist()) == ([0, 2, 9, 1], [1, 7, 11, 2], [3, 1])
    by_character = ops.word_offsets(*texts("I löve  it", " x"), characters=True)
    assert by_character.ends.tolist() == [1, 6, 10, 2]


def test_tokens_have_the_label_of_the_first_span_they_overlap():
    starts, ends, counts = ops.word_offsets(*texts("I löve  it", " x"))
    found = ops.labels_of_tokens(A([2]), A([7]), A([5]), A([1, 0]), starts, ends, counts)
    assert found.tolist() == [0, 5, 0, 0]


def test_tokens_cover_their_text():
    text, lengths = texts("löw löwer", "")
    tokenizer = ops.train_tokenizer(text, lengths, vocabulary_size=260)
    tokens = ops.tokenize(text, lengths, tokenizer=tokenizer)
    starts, ends, counts = ops.token_offsets(text, lengths, tokenizer=tokenizer)
    assert counts.tolist() == tokens.lengths.tolist()
    assert ends[-1] == len(text)
    assert (starts <= ends).all()


def test_a_start_after_its_end_is_an_error():
    with pytest.raises(OpError, match=r"labels_of_tokens: starts\[0\] is 3, expected 0 to 2"):
        ops.labels_of_tokens(A([0]), A([1]), A([5]), A([1]), A([3]), A([2]), A([1]))


def test_what_has_no_width_overlaps_nothing():
    one = np.array([1])
    found = ops.labels_of_tokens(A([3]), A([3]), A([5]), one, A([0, 2, 4]), A([2, 4, 6]), A([3]))
    assert found.tolist() == [0, 0, 0]
    found = ops.labels_of_tokens(A([2]), A([5]), A([5]), one, A([0, 3, 3, 5]), A([0, 3, 6, 5]), A([4]))
    assert found.tolist() == [0, 0, 5, 0]


@pytest.mark.parametrize(
    "pattern",
    ["a{1,2000}", "(", "a)|(b", r"(a)\1", "(?=e)", "(?<!e)", "[[:letter:]]", r"\Z"],
)
@pytest.mark.parametrize("op", [ops.word_offsets, ops.split_text])
def test_a_pattern_that_re2_does_not_take_is_an_error_of_ours(op, pattern):
    with pytest.raises(OpError, match="pattern is "):
        op(np.frombuffer(b"aa", np.uint8), A([2]), pattern=pattern)


@pytest.mark.parametrize("pattern", [" *", "", r"\b", "x*", "[[:alpha:]]", "(?:b|)", r"\pL", "(?i)É", r"b\z"])
def test_words_are_the_pieces_of_split_text(pattern):
    text = "to be  ex b"
    pieces = ops.split_text(*texts(text), pattern=pattern, keep_empty=False)
    starts, ends, counts = ops.word_offsets(*texts(text), pattern=pattern)
    assert counts.tolist() == pieces.counts.tolist()
    assert "".join(text[a:b] for a, b in zip(starts, ends, strict=True)) == pieces.values.tobytes().decode()
    assert (ends - starts).tolist() == pieces.lengths.tolist()


@given(
    st.lists(st.text(st.sampled_from("aéẹ́\u0301\u0323ᄀ각ᅡㄱｶﾞﬁ½Å\u0344\U0001d15e"), max_size=6), max_size=3)
)
@pytest.mark.parametrize("form", ["NFC", "NFKC", "NFD", "NFKD"])
def test_each_byte_of_a_normal_form_comes_from_a_part_with_that_normal_form(form, words):
    data, lengths = texts(*words)
    normal = ops.normalize(data, lengths, form=form)
    offsets, sizes = ops.normalize_offsets(data, lengths, form=form)
    assert sizes.tolist() == normal.lengths.tolist()
    for text, own, start in zip(
        words, np.split(offsets, np.cumsum(sizes)[:-1]), np.cumsum(sizes) - sizes, strict=False
    ):
        cuts = [*dict.fromkeys(own.tolist()), len(text.encode())]
        found = normal.values[start : start + len(own)].tobytes()
        at = [*(np.searchsorted(own, cut) for cut in cuts[:-1]), len(own)]
        for begin, end, first, last in zip(cuts, cuts[1:], at, at[1:], strict=False):
            part = text.encode()[begin:end].decode()
            assert unicodedata.normalize(form, part).encode() == found[first:last]


def test_offsets_of_a_normal_form_are_of_utf8_alone():
    with pytest.raises(OpError, match="sequence 1 "):
        ops.normalize_offsets(A([97, 255], np.uint8), A([1, 1]))
