"""Lines of JSON and CSV as columns, in one native pass; tests/providers/lines/test_plain_lines.py has all values."""

import numpy as np
import pytest

from seqflow import kernels

pytestmark = pytest.mark.skipif(kernels.info()["isa"] is None, reason="native kernels are not in use")


def bytes_of(text):
    return np.frombuffer(text, np.uint8)


def json(text, **kinds):
    return kernels.parse_json(bytes_of(text), list(kinds), list(kinds.values()))


def csv(text, *kinds, delimiter=b",", between=b";"):
    return kernels.parse_csv(bytes_of(text), kinds, ord(delimiter), ord(between))


def shown(column):
    return [None if array is None else array.tolist() for array in column]


def places(parsed):
    return [array.tolist() for array in parsed[1:]]


def test_a_column_has_a_value_for_each_row():
    text = b'{"a": 1, "b": 0.5, "c": true}\n \r\n {"c": false , "b":-2}\t\r\n{}\n'
    parsed = json(text, a="int16", b="float32", c="bool")
    assert [shown(column) for column in parsed[0]] == [
        [[1, 0, 0], None, None, [False, True, True]],
        [[0.5, -2, 0], None, None, [False, False, True]],
        [[True, False, False], None, None, [False, False, True]],
    ]
    assert [column[0].dtype for column in parsed[0]] == [np.int16, np.float32, np.bool_]
    assert places(parsed) == [[], [], []]


def test_lists_have_offsets_and_texts_have_their_own():
    text = '{"a": [1, 2], "b": "é\\u00e9", "c": ["x", "", "yz"]}\n{"a": [], "c": null}\n{"a": [3]}\n'.encode()
    a, b, c = json(text, a="[int64]", b="text", c="[text]")[0]
    assert shown(a) == [[1, 2, 3], [0, 2, 2, 3], None, [False] * 3]
    assert (b[0].tobytes().decode(), shown(b)[1:]) == ("éé", [None, [0, 4, 4, 4], [False, True, True]])
    assert (c[0].tobytes(), shown(c)[1:]) == (b"xyz", [[0, 3, 3, 3], [0, 1, 1, 3], [False, True, True]])


@pytest.mark.parametrize(
    "line",
    [
        b'{"b": 1}', b'{"a": 1, "a": 1}', b'{"\\u0061": 1}', b'{"a": 1.0}', b'{"a": 128}', b'{"a": 01}', b'{"a": 1,}',
        b'{"a": 1', b'{"a": 1}{}', b"[1]", b'{"t": "\xff"}', b'{"t": "\\ud800"}', b'{"t": "\x01"}', b'{"t": 1}',
    ],
)  # fmt: skip
def test_lines_that_are_not_plain_are_named_and_leave_nothing(line):
    parsed = json(b'{"a": 7, "t": "x"}\n  ' + line + b' \n{"a": 8, "t": "y"}\n', a="int8", t="text")
    assert places(parsed) == [[1], [21], [21 + len(line)]]
    a, t = parsed[0]
    assert shown(a) == [[7, 0, 8], None, None, [False, True, False]]
    assert (t[0].tobytes(), t[2].tolist()) == (b"xy", [0, 1, 1, 2])


def test_values_of_csv_may_be_empty_or_in_quotes():
    parsed = csv(b'1,"a""b,",1;2\r\n,"",\n"3",,"4"\n', "int64", "text", "[int32]")
    a, b, c = parsed[0]
    assert shown(a) == [[1, 0, 3], None, None, [False, True, False]]
    assert (b[0].tobytes(), shown(b)[1:]) == (b'a"b,', [None, [0, 4, 4, 4], [False, False, True]])
    assert shown(c) == [[1, 2, 4], [0, 2, 2, 3], None, [False] * 3]
    assert places(parsed) == [[], [], []]


@pytest.mark.parametrize(
    "line", [b"1", b"1,2,3", b'1,"a', b'1,"a"b', b'1,a"', b"1,a\rb", b"x,a", b" 1,a", b"1,\xff"]
)
def test_lines_of_csv_that_are_not_plain_are_named(line):
    assert places(csv(b"1,a\n" + line + b"\n2,b\n", "int64", "text")) == [[1], [4], [4 + len(line)]]


def test_columns_that_are_skipped_have_any_value():
    parsed = csv(b'x,1\n"a,""",2\n,3\n', "skipped", "int64")
    assert parsed[0][1][0].tolist() == [1, 2, 3]
    assert places(parsed)[0] == []


def test_most_of_the_lines_must_be_plain():
    assert json(b"{}\n" * 65 + b"x\n" * 65, a="int64") is not None
    assert json(b"{}\n" * 65 + b"x\n" * 66, a="int64") is None


def test_data_are_whole_lines():
    assert json(b"", a="int64") is None
    assert json(b"{}", a="int64") is None
    with kernels.use("reference"):
        assert json(b"{}\n", a="int64") is None
        assert csv(b"1\n", "int64") is None


@pytest.mark.parametrize("size", range(1, 140))
def test_texts_end_anywhere_in_the_data(size):
    for text in (b"x" * size, b'"' + b"x" * size + b'"'):
        assert csv(b"1," + text + b"\n", "int64", "text")[0][1][0].tobytes() == b"x" * size
    (column,), *_ = json(b'{"a":"' + b"x" * size + b'\\n"}\n', a="text")
    assert column[0].tobytes() == b"x" * size + b"\n"
