"""Text that contains a pattern, and text replaced."""

from itertools import pairwise

import numpy as np
import pytest

from seqflow import ops
from seqflow.errors import OpError

A = np.array


def texts(*given):
    pieces = [one.encode() for one in given]
    return np.frombuffer(b"".join(pieces), np.uint8), A([len(one) for one in pieces], np.int64)


def strings(values, lengths):
    ends = np.append(0, np.cumsum(lengths))
    return [values[a:b].tobytes().decode() for a, b in pairwise(ends)]


def test_occurrences_do_not_overlap():
    assert ops.count_text(*texts("abcabc", "", "aaa"), pattern="aa").tolist() == [0, 0, 1]


def test_texts_are_found_whatever_the_case():
    given = texts("All rights: CoPyRiGhT 1", "fine")
    assert ops.contains_text(*given, pattern="copyright", ignore_case=True).tolist() == [True, False]


def test_beginnings_and_ends():
    given = texts("foobar", "barfoo", "")
    assert ops.starts_with(*given, pattern="foo").tolist() == [True, False, False]
    assert ops.ends_with(*given, pattern="foo").tolist() == [False, True, False]


def test_replacements():
    assert strings(*ops.replace_text(*texts("a1b22"), regex="[0-9]+", by="#")) == ["a#b#"]
    assert strings(*ops.strip(*texts("\u3000 a b ", "xxaxx"))) == ["a b", "xxaxx"]
    assert strings(*ops.strip(*texts("xxaxx"), characters="x")) == ["a"]
    assert strings(*ops.upper(*texts("é"))) == ["É"]
    assert strings(*ops.casefold(*texts("Straße", "ΣΑΣ"))) == ["strasse", "σασ"]


def test_what_cannot_be_searched_is_an_error():
    with pytest.raises(OpError, match="count_text: pattern is empty"):
        ops.count_text(*texts("a"), pattern="")
    with pytest.raises(OpError, match="count_text: pattern and regex are missing"):
        ops.count_text(*texts("a"))
    with pytest.raises(OpError, match="contains_text: regex is '\\('"):
        ops.contains_text(*texts("a"), regex="(")
    with pytest.raises(OpError, match="sequence 0 is not UTF-8"):
        ops.count_text(A([255], np.uint8), [1], pattern="a")


@pytest.mark.parametrize(
    "call",
    [
        lambda *text: ops.count_text(*text, regex="\bcall"),
        lambda *text: ops.contains_text(*text, regex="(c)\1"),
        lambda *text: ops.replace_text(*text, regex="\bcall\b"),
        lambda *text: ops.replace_text(*text, regex="(c)", by="\1"),
        lambda *text: ops.split_text(*text, pattern="\b"),
        lambda *text: ops.split_words(*text, pattern="\b"),
        lambda *text: ops.word_offsets(*text, pattern="\b"),
    ],
)
def test_an_escape_whose_backslash_a_string_took_is_an_error(call):
    """It would match nothing, silently: what was to be masked would stay."""
    with pytest.raises(
        OpError, match=r"is a control character, expected an escape\n.*r'…' keeps backslashes"
    ):
        call(A([99, 97, 108, 108], np.uint8), A([4]))
