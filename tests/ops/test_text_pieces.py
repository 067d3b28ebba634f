"""Texts cut and joined: answers of Python, ONNX, Spark and Polars."""

import re
from itertools import chain, pairwise

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


def pieces(*given, **options):
    values, lengths, counts = ops.split_text(*texts(*given), **options)
    flat, ends = strings(values, lengths), np.append(0, np.cumsum(counts))
    return [flat[a:b] for a, b in pairwise(ends)]


def test_text_is_cut_as_python_cuts():
    assert pieces("o-n-n--x-", "", delimiter="-") == [["o", "n", "n", "", "x", ""], [""]]
    assert pieces("one,two,,four", delimiter=",", max_splits=1) == [["one", "two,,four"]]
    assert pieces("a,,b", delimiter=",", keep_empty=False) == [["a", "b"]]
    assert pieces(" hello  big world ", max_splits=1) == [["hello", "big world "]]
    assert pieces("añb", "", delimiter="") == [["a", "ñ", "b"], []]


def test_delimiters_may_be_kept_or_be_a_pattern():
    assert pieces("a1b22c", pattern="[0-9]+", keep_delimiter=True) == [["a", "1", "b", "22", "c"]]
    assert pieces("a-b+c", delimiter=["-", "+"]) == [["a", "b", "c"]]
    assert pieces("abc", pattern="x*") == [["abc"]]


def test_texts_are_joined_with_a_separator():
    found = ops.join_texts(*texts("ab", "c", "d", "e"), [3, 0, 1], separator="-")
    assert strings(*found) == ["ab-c-d", "", "e"]


def test_runs_of_texts_are_joined():
    values, lengths, counts = ops.ngram_texts(
        *texts("a", "b", "c", "d"), [3, 1], n=2, separator="|", partial=True
    )
    assert strings(values, lengths) == ["a|b", "b|c", "c", "d"]
    assert counts.tolist() == [3, 1]


def test_each_row_may_have_a_separator_of_its_own():
    words, counts = texts("ab", "c", "d", "e"), [3, 0, 1]
    found = ops.join_texts(*words, counts, *texts("é", "-", ""))
    assert strings(*found) == ["abécéd", "", "e"]
    with pytest.raises(
        OpError, match="separator_lengths is missing, expected both separators and separator_lengths"
    ):
        ops.join_texts(*words, counts, texts("")[0])
    with pytest.raises(OpError, match="separator is '-' and separators are given, expected one of them"):
        ops.join_texts(*words, counts, *texts("a", "b", "c"), separator="-")


def test_runs_of_several_widths_come_width_by_width():
    values, lengths, counts = ops.ngram_texts(*texts("a", "b", "c", "d"), [3, 1], n=[2, 1])
    assert strings(values, lengths) == ["a b", "b c", "a", "b", "c", "d"]
    assert counts.tolist() == [5, 1]
    assert ops.ngram_texts(*texts("a"), [1], n=[]).counts.tolist() == [0]


def test_what_cannot_cut_is_an_error():
    with pytest.raises(OpError, match="split_text: pattern is '\\('"):
        pieces("a", pattern="(")
    with pytest.raises(OpError, match="delimiter and pattern are both given"):
        pieces("a", pattern="a", delimiter="b")


def pieces_of(text, **options):
    found = ops.split_text(np.frombuffer(text.encode(), np.uint8), np.array([len(text.encode())]), **options)
    return [piece.tobytes().decode() for piece in np.split(found.values, np.cumsum(found.lengths)[:-1])]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(-)(=)=", "x-==y-=-z"),
        ("(?i)a", "xAyaz"),
        ("(?s)a.b", "xa\nby"),
        (r"(?P<q>['=])-", "x=-=y'-=z"),
    ],
)
def test_a_pattern_keeps_its_own_groups_and_flags(pattern, text):
    cuts = [match.span() for match in re.finditer(pattern, text)]
    starts, ends = [0, *(end for _, end in cuts)], [*(start for start, _ in cuts), len(text)]
    assert pieces_of(text, pattern=pattern) == [text[a:b] for a, b in zip(starts, ends, strict=True)]


PATTERNS = [
    r"\W+",
    r"\d",
    r"\s",
    r"\pL+",
    r"\p{Greek}",
    "(?i)É",
    "[[:alpha:]]+",
    r"\bb",
    r"o$",
    r"\Qa.b\E",
    "a|b|",
]
TEXTS = ["löve it\n", "a٣b1c", "a\u3000b c", "x éÉe", "a.b αβγ 12", "", "foo"]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_all_text_ops_have_one_dialect(pattern):
    """What is matched is what `replace_text` replaces, so what `count_text` counts and `split_words` leaves out."""
    given = texts(*TEXTS)
    marked = strings(*ops.replace_text(*given, regex=pattern, by="\x01\\0\x02"))
    expected = [re.split("[\x01\x02]", text.replace("\x01\x02", "")) for text in marked]
    assert pieces(*TEXTS, pattern=pattern, keep_delimiter=True) == [
        [piece for at, piece in enumerate(of_text) if piece or at % 2 == 0] for of_text in expected
    ]
    words = [[piece for piece in of_text[::2] if piece] for of_text in expected]
    starts, ends, counts = ops.word_offsets(*given, pattern=pattern, characters=True)
    row = np.repeat(np.arange(len(TEXTS)), counts)
    assert [TEXTS[i][a:b] for i, a, b in zip(row, starts, ends, strict=True)] == [*chain(*words)]
    if pattern != "a|b|":
        assert strings(*ops.split_words(*given, pattern=pattern)[:2]) == [*chain(*words)]
        assert ops.count_text(*given, regex=pattern).tolist() == [len(of_text) // 2 for of_text in expected]


@pytest.mark.parametrize("pattern", [r"\d+", ",", "[ab]*", "x?y", "(?s).", "é|a"])
@pytest.mark.parametrize("most", [None, 0, 1, 2])
@pytest.mark.parametrize(("kept", "empty"), [(False, False), (True, False), (False, True), (True, True)])
def test_pieces_are_those_of_pythons_matches(pattern, most, kept, empty):
    given = ["ab1,22,é", "", ",,", "xyay", "1"]
    expected = []
    for text in given:
        cuts = [match.span() for match in re.finditer(pattern, text) if match[0]][:most]
        bounds = [0, *chain(*cuts), len(text)]
        parts = [text[a:b] for a, b in pairwise(bounds)]
        shown = [part for at, part in enumerate(parts) if at % 2 == 0 or kept]
        expected.append([part for part in shown if part or empty])
    options = {} if most is None else {"max_splits": most}
    assert pieces(*given, pattern=pattern, keep_delimiter=kept, keep_empty=empty, **options) == expected


def test_each_white_space_of_python_cuts_and_nothing_else():
    space = [chr(code) for code in range(0x110000) if chr(code).isspace()]
    others = [chr(code) for code in range(0x3100) if not chr(code).isspace()]
    assert pieces(*(f"a{one}b" for one in space)) == [["a", "b"]] * len(space)
    assert pieces("".join(others)) == [["".join(others)]]


@pytest.mark.parametrize("text", ["", " ", "a", " a", "a ", " a  b \t", "a b\u3000c ", "a b c d"])
@pytest.mark.parametrize("most", [0, 1, 2, 3, 9])
def test_splits_are_limited_as_those_of_str_split(text, most):
    expected = text.split(None, most)
    found = pieces_of(text, max_splits=most)
    assert (found if any(found) else []) == expected
    kept = pieces_of(text, max_splits=most, keep_delimiter=True)
    assert (kept[::2] if any(kept) else []) == expected
    assert pieces_of(text, delimiter=" ", max_splits=most) == text.split(" ", most)
