"""Numbers in lines of fields, natively and in NumPy."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seqflow import kernels
from seqflow.kernels.dispatch import extension


def parse(text, bases, widths=None):
    data = np.frombuffer(text, np.uint8)
    found = kernels.parse_fields(data, np.array(bases), np.array(widths or [len(bases)]))
    numbers, missing, starts, good = found
    return (
        [one.tolist() for one in numbers],
        [one.tolist() for one in missing],
        starts.tolist(),
        good.tolist(),
    )


def test_numbers_and_texts_by_the_base_of_their_field(any_kernels):
    numbers, missing, starts, good = parse(b"-7\tfF\tab\n\n+0\t\t\r\n", [10, 16, 0], [1, 2])
    assert numbers == [[[-7], [0]], [[255, (6 << 32) + 2], [0, (14 << 32)]]]
    assert missing == [[[False], [False]], [[False, False], [True, True]]]
    assert starts == [0, 10]
    assert good == [True, True]


@pytest.mark.parametrize(
    "line",
    [
        b"1",
        b"1\t2\t3",
        b"x\t2",
        b"1\tg",
        b"1\t-2",
        b"+\t2",
        b"9223372036854775808\t1",
        b"1\t8000000000000000",
        b"1 \t2",
    ],
)
def test_a_line_of_other_fields_is_not_good(any_kernels, line):
    numbers, missing, starts, good = parse(b"1\t2\n" + line + b"\n3\t4\n", [10, 16])
    assert good == [True, False, True]
    assert numbers == [[[1, 2], [0, 0], [3, 4]]]
    assert missing == [[[False, False]] * 3]
    assert starts == [0, 4, 5 + len(line)]


@pytest.mark.parametrize("place", range(9))
@pytest.mark.parametrize("letter", [*b"/09:@AFG`afg\x00\x80\xff"])
def test_each_digit_of_a_hexadecimal_number_counts(any_kernels, place, letter):
    digits = bytearray(b"123456789")
    digits[place] = letter
    numbers, _, _, good = parse(bytes(digits) + b"\n", [16])
    is_number = letter in b"09AFaf"
    assert (numbers, good) == ([[[int(digits, 16) if is_number else 0]]], [is_number])


@pytest.mark.parametrize(
    ("text", "bases", "widths", "reason"),
    [
        (b"1", [10], [1], "do not end with a newline"),
        (b"1\n", [8], [1], r"bases are \[8\]"),
        (b"1\n", [], [], r"bases are \[\]"),
        (b"1\t2\n", [10, 10], [1], "expected numbers above 0 that add up to 2"),
        (b"1\t2\n", [10, 10], [0, 2], "expected numbers above 0 that add up to 2"),
    ],
)
def test_what_is_asked_wrongly_is_refused(any_kernels, text, bases, widths, reason):
    with pytest.raises(ValueError, match=reason):
        kernels.parse_fields(np.frombuffer(text, np.uint8), np.array(bases, int), np.array(widths, int))


FIELDS = st.one_of(
    st.integers(-(2**64), 2**64).map(str),
    st.integers(0, 2**65).map("{:x}".format),
    st.text("0123456789abcdefABCDEFg+-. \r\x00", max_size=20),
    st.just(""),
)


@pytest.mark.skipif(extension() is None, reason="native kernels were not built")
@given(
    st.lists(st.lists(FIELDS, max_size=4), max_size=6),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
    st.permutations([10, 16, 0]),
)
@example([["1", "2", "3\r"]], "\r\n", [10, 16, 0])
def test_native_and_numpy_agree_on_any_lines(lines, ending, bases):
    text = "".join("\t".join(line) + ending for line in lines).encode()
    found = parse(text, bases, [2, 1])
    with kernels.use("reference"):
        assert parse(text, bases, [2, 1]) == found
