"""Text as sequences of bytes."""

import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from per_sequence import assert_same, assert_sequences, cut, ragged
from strategies.text import TEXTS, text_arrays

import seqflow as sf
from seqflow import TensorSpec, ops, registry
from seqflow.net.inference import note_bounds
from seqflow.shape import Dimension, Equalities

BYTES = np.frombuffer("héj".encode(), np.uint8)


def strings(data, lengths):
    return [piece.tobytes().decode() for piece in cut(data, lengths)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("op", "attributes", "growth"),
    [
        (ops.lower, {}, 3 / 2),
        (ops.normalize, {"form": "NFC"}, 3),
        (ops.normalize, {"form": "NFD"}, 3),
        (ops.normalize, {"form": "NFKC"}, 11),
        (ops.normalize, {"form": "NFKD"}, 11),
    ],
)
def test_some_character_grows_as_much_as_inference_says_and_none_more(op, attributes, growth):
    characters = [chr(code).encode() for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    lengths = np.array([len(one) for one in characters])
    data = np.frombuffer(b"".join(characters), np.uint8)
    assert (op(data, lengths, **attributes).lengths / lengths).max() == growth
    specs = {"data": TensorSpec("uint8", "{sum(lengths):0..6}"), "lengths": TensorSpec("int64", "{1}")}
    known = Equalities()
    note_bounds(specs, {}, known)
    registry.get(op.__name__).infer(specs, attributes, equalities=known)
    assert known.resolve(Dimension.sum_of(f"{op.__name__}.lengths")).max_length == 6 * growth
    assert op(np.full(6, 255, np.uint8), [6], **attributes, errors="replace").lengths == [18]


def test_bytes_keep_their_values_unless_an_offset_makes_room_for_specials():
    tokens, sizes = ops.bytes_to_tokens(BYTES, [3, 1])
    assert tokens.dtype == np.int32
    assert tokens.tolist() == [104, 195, 169, 106]
    assert sizes.tolist() == [3, 1]
    assert ops.bytes_to_tokens(BYTES, [4], offset=3).values.tolist() == [107, 198, 172, 109]


def test_specials_go_around_every_sequence_empty_ones_too():
    tokens, sizes = ops.bytes_to_tokens(BYTES, [3, 0, 1], begin=300, end=256)
    assert tokens.tolist() == [300, 104, 195, 169, 256, 300, 256, 300, 106, 256]
    assert sizes.tolist() == [5, 2, 3]
    assert ops.bytes_to_tokens(BYTES, [4], begin=300).values.tolist()[0] == 300


def test_only_bytes_are_taken():
    with pytest.raises(TypeError, match="bytes_to_tokens: data is int64, expected uint8"):
        ops.bytes_to_tokens([1, 2], [2])


@given(ragged(dtypes=("uint8",), max_rank=1), st.integers(0, 9))
def test_tokens_to_bytes_undoes_bytes_to_tokens(sequences, offset):
    data, lengths = sequences
    tokens = ops.bytes_to_tokens(data, lengths, offset=offset, begin=offset + 256, end=offset + 300)
    assert_sequences(*ops.tokens_to_bytes(*tokens, offset=offset), cut(data, lengths), data)


def test_tokens_to_bytes_drops_what_is_no_byte():
    tokens = np.array([2, 3, 258, 259, -1, 2**62])
    assert ops.tokens_to_bytes(tokens, [2, 4], offset=3).values.tolist() == [0, 255]
    assert ops.tokens_to_bytes(np.array([2, 255], np.uint8), [2], offset=300).lengths.tolist() == [0]


def test_an_offset_leaves_room_for_all_bytes():
    for op in (ops.bytes_to_tokens, ops.tokens_to_bytes):
        with pytest.raises(
            sf.OpError, match=rf"^{op.__name__}: offset is 2147483647, expected at most 2147483392"
        ):
            op(np.zeros(1, np.uint8), [1], offset=2**31 - 1)


@given(TEXTS)
def test_lower_makes_each_string_lower_case(texts):
    result = ops.lower(**text_arrays(texts))
    assert strings(result.values, result.lengths) == [text.lower() for text in texts]


def test_lower_may_change_the_number_of_bytes():
    assert ops.lower(**text_arrays(["Ⱥ"])).lengths.tolist() == [len("ⱥ".encode())] == [3]


@given(TEXTS, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_normalize_gives_each_string_its_normal_form(texts, form):
    result = ops.normalize(**text_arrays(texts), form=form)
    assert strings(result.values, result.lengths) == [unicodedata.normalize(form, text) for text in texts]


@given(TEXTS)
def test_split_words_splits_as_python_does(texts):
    result = ops.split_words(**text_arrays(texts))
    words = strings(result.values, result.lengths)
    assert result.counts.tolist() == [len(text.split()) for text in texts]
    assert words == [word for text in texts for word in text.split()]


@pytest.mark.parametrize("after", [b"\xc3", b"\xff", b"a", b" "])
def test_what_is_in_memory_behind_the_text_does_not_matter(after):
    data = np.frombuffer("é ".encode() + after, np.uint8)[:-1]
    assert ops.split_words(data, [3]).lengths.tolist() == [2]


def test_the_white_space_of_split_words_is_that_of_unicode():
    text = "a\u00a0b\u2003c\u3000d\te\nf\x0bg\x0ch\ri\u1680j\u2028k\u0085l"
    assert ops.split_words(**text_arrays([text])).counts.tolist() == [12]


@given(TEXTS)
def test_split_words_at_a_pattern(texts):
    result = ops.split_words(**text_arrays(texts), pattern="[aé]+")
    expected = [[word for word in re.split("[aé]+", text) if word] for text in texts]
    assert result.counts.tolist() == [len(words) for words in expected]
    assert strings(result.values, result.lengths) == [word for words in expected for word in words]


@pytest.mark.parametrize("pattern", ["", "b*", "$", "^", r"\b", r"\B", "(?:)", "b?", "[^b]*"])
def test_a_pattern_may_match_the_empty_string(pattern):
    texts = ["abcb", "", "b", "e b"]
    result = ops.split_words(**text_arrays(texts), pattern=pattern)
    expected = [[word for word in re.split(pattern, text) if word] for text in texts]
    assert [len(words) for words in expected] == result.counts.tolist()
    assert strings(result.values, result.lengths) == [word for words in expected for word in words]


def test_noncharacters_stay_in_words():
    text = "".join(map(chr, range(0xFDD0, 0xFDEF)))
    assert strings(*ops.split_words(**text_arrays([f"{text} {text}"]), pattern=" ")[:2]) == [text, text]
    with pytest.raises(
        sf.OpError, match=r"^split_words: data holds every noncharacter from U\+FDD0 to U\+FDEF"
    ):
        ops.split_words(**text_arrays([text + "\ufdef"]), pattern=" ")


def test_a_malformed_pattern_is_an_error():
    with pytest.raises(sf.OpError, match=r"^split_words: pattern is '\(': "):
        ops.split_words(**text_arrays(["a"]), pattern="(")


def test_no_words_are_none():
    result = ops.split_words(**text_arrays(["", "  ", "a"]))
    assert result.counts.tolist() == [0, 0, 1]
    assert [len(part) for part in ops.split_words(**text_arrays([]))] == [0, 0, 0]


@pytest.mark.parametrize("op", [ops.lower, ops.normalize, ops.split_words], ids=lambda op: op.__name__)
@pytest.mark.parametrize(
    ("pieces", "place"),
    [
        ([b"ab", b"", b"c\xffd"], "sequence 2 is not UTF-8: byte 1 is 0xff"),
        ([b"\xc3", b"\xa9"], "sequence 0 is not UTF-8: byte 0 is 0xc3"),
        ([b"a\xed\xa0\x80"], "sequence 0 is not UTF-8: byte 1 is 0xed"),
    ],
)
def test_bytes_that_are_not_utf8_are_named_or_replaced(op, pieces, place):
    data = np.frombuffer(b"".join(pieces), np.uint8)
    lengths = [len(piece) for piece in pieces]
    with pytest.raises(sf.OpError, match=f"^{op.__name__}: {place}"):
        op(data, lengths)
    replaced = [piece.decode(errors="replace") for piece in pieces]
    for found, expected in zip(op(data, lengths, errors="replace"), op(**text_arrays(replaced)), strict=True):
        assert_same(found, expected)


@given(TEXTS)
def test_as_text_gives_the_texts_back(texts):
    found = ops.as_text(**text_arrays(texts))
    assert found.dtype.kind == "U"
    assert found.tolist() == texts


def test_what_is_no_text_for_numpy_is_an_error_that_names_the_place():
    lengths = np.array([1, 0, 2])
    with pytest.raises(sf.OpError, match="sequence 2 is not UTF-8: byte 1 is 0xff"):
        ops.as_text(np.frombuffer(b"ab\xff", np.uint8), lengths)
    assert ops.as_text(np.frombuffer(b"ab\xff", np.uint8), lengths, errors="replace")[2] == "b\ufffd"
    with pytest.raises(sf.OpError, match="sequence 2 ends with the character NUL"):
        ops.as_text(np.frombuffer(b"ab\0", np.uint8), lengths)
