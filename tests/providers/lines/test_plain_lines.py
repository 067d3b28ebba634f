"""Lines that a native kernel parses have the rows, bad rows and reasons that Arrow's parsers give them."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from marks import slow, thorough

from seqflow import kernels
from seqflow.providers.lines.csv_lines import CsvLines
from seqflow.providers.lines.json_lines import JsonLineFormat

pytestmark = pytest.mark.skipif(kernels.info()["isa"] is None, reason="native kernels are not in use")

NUMBERS = [
    "0", "-0", "7", "-12", "007", "-007", "+1", "127", "128", "-128", "-129", "255", "256", "65536", "2147483647", "2147483648",
    "-2147483649", "999999999999999999", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
    "-9223372036854775807", "18446744073709551615", "18446744073709551616", "00000000000000000000000000000001",
    "1.0", "-0.0", "0.1", "1.", ".5", "-.5", "1e5", "1E+5", "1e-5", "1e", "1e+", "1.5e3x", "0e5", "0e400", "0.0e309",
    "0.001e310", "1e308", "1.7976931348623157e308", "1.7976931348623159e308", "1e309", "1e999", "-1e999", "4.9e-324", "1e-400",
    "2.2250738585072011e-308", "3.4028235677973366e38", "3.4028234e38", "1e39", "1.17549435e-38", "1e-45", "1e-46", "7.0064923216240853546186479164495e-46",
    "9007199254740993", "9007199254740992.999999999999999", "0.30000000000000004440892098500626",
    "1.00000005960464477539062499999999999999", "1.00000005960464477539062500000000000001", "16777217", "8.5899345920000001e9",
    "123456789012345678901234567890", "0." + "1" * 400, "1" * 320, "1" * 301 + "e9", "0." + "0" * 340 + "1e300", "1_0", "0x10", "1f", "\u0661",
    "NaN", "nan", "-nan", "Infinity", "-Infinity", "inf", "true", "false", "True", "TRUE", "tRUE", "False", "FALSE", "1", "null", "none", "nullx",
]  # fmt: skip
TEXTS = [
    '""', '"a"', '"h\u00e9llo \u4e16\U0001f600"', r'"\u00e9\ud83d\ude00"', r'"\ud83d"', r'"\ude00"', r'"\ud83dx"', r'"\ud83d\u0041"', r'"\u00zz"', r'"\u12"',
    r'"\n\t\r\b\f\/\\\""', r'"\q"', '"\\', '"tab\there"', '"\x00"', '"\x1f"', '"\x7f"', '"' + "x" * 70 + r'\"' + "y" * 31 + '"', r'"\u0000"',
    '"' + "z" * 31 + '"', '"' + "z" * 32 + '"', '"' + "z" * 64 + '"', '"open', "'a'", r'"a\u000ab"', '"\ufeff"',
]  # fmt: skip
LISTS = ["[]", "[ ]", "[1]", "[1, 2 ,3]", "[1,]", "[,1]", "[1 2]", "[null]", "[1,null]", "[[1]]", "[true]", '["a","b"]', '["a" , ""]', "[1", "1]", "[0.5,-0]", "[1.0]", "[128]", "{}", '{"k":1}']  # fmt: skip
LEAVES = [pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_(), pa.string()]  # fmt: skip
KINDS = [*LEAVES, *map(pa.list_, LEAVES)]


def some_kinds(*some):
    """Kinds for each value, in slow tests: narrower, wider and like ones say nearly all of the others."""
    return [*slow(*some), *thorough(*(one for one in LEAVES if one not in some))]


kind = st.sampled_from(KINDS)


def same(parser, data):
    """Assert that both ways give the same; return whether the kernel parsed the lines."""
    data = np.frombuffer(data, np.uint8)
    rows, malformed = parser.parse(data)
    with kernels.use("reference"):
        expected, expected_malformed = parser.parse(data)
    rows.validate(full=True)
    assert rows.schema == expected.schema
    assert repr(rows.to_pylist()) == repr(expected.to_pylist())
    assert list(malformed) == list(expected_malformed)
    return parser.plain_lines(data) is not None


# ---- JSON

blank = st.sampled_from(["", "", "", " ", "\t", "\r", "  "])


@st.composite
def pairs(draw):
    name = draw(st.sampled_from(['"a"', '"a"', '"b"', '"b"', '"c"', r'"\u0061"', '"aa"', '""', '"a', "a"]))
    value = draw(st.sampled_from([*NUMBERS, *TEXTS, *LISTS]) | st.text(max_size=5).map(json.dumps))
    return f"{name}{draw(blank)}:{draw(blank)}{value}"


@st.composite
def objects(draw):
    inside = f"{draw(blank)},{draw(blank)}".join(draw(st.lists(pairs(), max_size=3)))
    line = f"{draw(blank)}{{{draw(blank)}{inside}{draw(blank)}}}{draw(blank)}"
    return draw(st.sampled_from([line] * 6 + ["", " ", line + ",", line + line, line[:-1], "\ufeff" + line]))


@st.composite
def damaged(draw, lines, letters):
    """Lines as bytes, some of which are changed."""
    data = bytearray("\n".join([*draw(st.lists(lines, min_size=1, max_size=8)), ""]).encode())
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        data[draw(st.integers(0, len(data) - 1))] = draw(st.sampled_from(letters) | st.integers(0, 255))
    return bytes(data if data[-1] == 10 else data + b"\n")


@given(damaged(objects(), b'{}[]",:\\\n\r \xff\x80'), kind, kind, st.sampled_from(["error", "ignore"]))
def test_json_is_parsed_as_by_arrow(data, first, second, extra):
    schema = pa.schema({"a": first, "b": second, "c": pa.null()})
    assert same(JsonLineFormat(schema, extra, frozenset({"c"})), data)


@pytest.mark.parametrize("kind", some_kinds(pa.float64(), pa.string()), ids=str)
def test_each_value_of_json_is_parsed_as_by_arrow(kind):
    values = [*NUMBERS, *TEXTS, *LISTS]
    lines = [
        f'{{"a": {value}, "b": [{other}, {value}]}}\n' for value in values for other in (value, "1", '"x"')
    ]
    both = JsonLineFormat(pa.schema({"a": kind, "b": pa.list_(kind)}), "error")
    alone = JsonLineFormat(pa.schema({"b": pa.list_(kind)}), "ignore")
    for line in lines:
        same(both, line.encode())
        same(alone, line.encode())


@pytest.mark.parametrize("name", ['a"b', "a\\", "a\n"])
def test_keys_that_lines_have_escaped_are_left_to_arrow(name):
    parser = JsonLineFormat(pa.schema({name: pa.int64()}), "error")
    line = json.dumps({name: 1}).encode() + b"\n"
    assert not same(parser, line)
    assert parser.parse(np.frombuffer(line, np.uint8))[0].to_pylist() == [{name: 1}]
    assert not same(parser, f'{{"{name}": 1}}\n'.encode())


@pytest.mark.parametrize(
    "kind", [pa.struct({"x": pa.int64()}), pa.large_string(), pa.list_(pa.list_(pa.int64())), pa.timestamp("us")], ids=str
)  # fmt: skip
def test_columns_of_other_types_are_left_to_arrow(kind):
    assert not same(JsonLineFormat(pa.schema({"a": kind}), "error"), b'{"a": null}\n{"a": 1}\n')


def test_columns_of_texts_grow_with_their_texts():
    lines = [
        json.dumps({"a": "x" * (5 * at), "b": "é" * (3 * (300 - at)), "c": ["yz"] * at}) for at in range(300)
    ]
    schema = pa.schema({"a": pa.string(), "b": pa.string(), "c": pa.list_(pa.string())})
    parser, data = JsonLineFormat(schema, "error"), np.frombuffer("\n".join([*lines, ""]).encode(), np.uint8)
    assert parser.plain_lines(data).rows.to_pylist() == [json.loads(line) for line in lines]
    assert not len(parser.plain_lines(data).odd)


def test_lines_of_which_most_are_not_plain_are_left_to_arrow():
    data = b'{"a": 1}\n' * 64 + b'{"a": 1e0}\n{"a": x}\n' * 64
    assert not same(JsonLineFormat(pa.schema({"a": pa.int64()}), "error"), data)


def test_rows_of_lines_that_are_not_plain_are_in_their_places():
    data = b'{"a": 1}\n\n{"\\u0061": 2}\n{"a": x}\n{"a": 3}\n'
    parser = JsonLineFormat(pa.schema({"a": pa.int64()}), "error")
    assert same(parser, data)
    rows, malformed = parser.parse(np.frombuffer(data, np.uint8))
    assert rows.column(0).to_pylist() == [1, 2, None, 3]
    assert [(one.row, one.position) for one in malformed] == [(2, data.index(b'{"a": x'))]


def test_keys_in_any_order_and_lists_of_any_share_are_plain():
    names = [f"column_{at}" for at in range(40)]
    kinds = [pa.list_(pa.int32()), pa.string(), pa.list_(pa.string()), pa.float64()]
    schema = pa.schema([(name, kinds[at % 4]) for at, name in enumerate(names)])
    generator, lines = np.random.default_rng(1), []
    for at in range(60):
        # one column has most of the items of a block, another most of its letters
        large = {
            "column_0": [1] * (90 * at),
            "column_1": "x" * (70 * at),
            "column_2": ["a,b"] * (at % 7) * at,
        }
        row = {name: [[1, 2], "ä,", ["b", ""], 0.5][i % 4] for i, name in enumerate(names)} | large
        kept = generator.permutation(names)[: generator.integers(1, 41)]
        lines.append(json.dumps({name: row[name] for name in kept}, ensure_ascii=at % 2 == 0))
        lines += [""] * (at % 3 * 30)
    data = "\n".join([*lines, ""]).encode()
    parser = JsonLineFormat(schema, "error")
    assert same(parser, data)
    plain = parser.plain_lines(np.frombuffer(data, np.uint8))
    assert not len(plain.odd)
    parsed = [json.loads(line) for line in lines if line]
    assert plain.rows.to_pylist() == [{name: row.get(name) for name in names} for row in parsed]


def test_a_line_that_is_parsed_again_with_more_room_may_be_malformed():
    schema = pa.schema([(f"c{at}", pa.list_(pa.int64())) for at in range(9)])
    long = json.dumps({"c0": [1] * 2000})
    data = f'{long}\n{long[:-1]}, "c1": [x]}}\n{long}\n'.encode()
    assert same(JsonLineFormat(schema, "error"), data)


# ---- CSV

CELLS = [
    "", '""', '"', '"a"', '"a""b"', '"""a"""', '""""', 'a"b', 'a"b"c', '"a"b', '""x', "x", " 1", "1 ", '" 1"', '"1"', '"-2.5"', '"true"',
    "a,b", '"a,b"', '"a;b"', "1;2", '"1;2"', ";", "1;", ";1", '"1;2', '";"', "a;;b", "\u00e9", '"\ufeff"', "\ufeff1", "\r", 'a\rb', '"\r"', "\x00", "z" * 40, '"' + "z" * 40 + '"', *NUMBERS,
]  # fmt: skip


@st.composite
def rows_of_cells(draw):
    cell = st.sampled_from(CELLS) | st.text('1"-e.,;\tx', max_size=4)
    line = draw(st.sampled_from(",,,;\t")).join(draw(st.lists(cell, min_size=1, max_size=4)))
    return line + draw(st.sampled_from(["", "", "\r", "\r\r"]))


@given(
    damaged(rows_of_cells(), b'",;\n\r\t \xff\x80'), kind, kind,
    st.sampled_from(",,;\t"), st.sampled_from([";", ";", "|", None, ",", "1"]), st.sampled_from(".,"), st.booleans(),
)  # fmt: skip
@example(b'\r\r\n1,2,3\r\n"1",,\r\r\n', pa.int64(), pa.string(), ",", ";", ".", False)
def test_csv_is_parsed_as_by_arrow(data, first, second, delimiter, between, decimal, newlines):
    if between is None and (pa.types.is_list(first) or pa.types.is_list(second)):
        between = ";"  # lists of JSON are slow
    schema = pa.schema({"b": second, "a": first})
    parser = CsvLines(schema, ("a", "x", "b"), delimiter, between, True, decimal, newlines)
    parsed = same(parser, data)
    has_lists = pa.types.is_list(first) or pa.types.is_list(second)
    has_floats = "float" in str(schema) or "double" in str(schema)
    assert newlines or parsed == (
        not (has_lists and between in (delimiter, "1")) and not (has_floats and decimal == ",")
    )


@pytest.mark.parametrize("kind", some_kinds(pa.uint64(), pa.bool_()), ids=str)
def test_each_value_of_csv_is_parsed_as_by_arrow(kind):
    parser = CsvLines(pa.schema({"a": kind, "b": pa.list_(kind)}), ("a", "b"), ",", ";", True)
    for cell in CELLS:
        for line in (f"{cell},{cell}\n", f"{cell},1\n", f"1,{cell};{cell}\n", f'"{cell}","{cell};{cell}"\n'):
            same(parser, line.encode())


def test_a_column_of_csv_that_is_not_read_may_have_any_value():
    parser = CsvLines(pa.schema({"b": pa.int64()}), ("a", "b", "c"), ",", None, True)
    data = b'x,1,"a,"""\n"long %b",2,\n,3,y\n' % (b"z" * 500)
    assert same(parser, data)
    assert parser.plain_lines(np.frombuffer(data, np.uint8)).rows.column(0).to_pylist() == [1, 2, 3]


# ---- bytes


@given(st.binary(max_size=300), st.sampled_from([b"", b'{"a": "', b"1,2,"]))
def test_any_bytes_are_parsed_as_by_arrow(data, before):
    data = before + data + b"\n"
    same(JsonLineFormat(pa.schema({"a": pa.string(), "b": pa.list_(pa.int64())}), "error"), data)
    same(CsvLines(pa.schema({"a": pa.string(), "b": pa.int64()}), ("a", "b"), ",", None, True), data)


PLANES = [0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF]


@given(
    st.lists(st.sampled_from(PLANES) | st.integers(0, 0x10FFFF), max_size=40), st.integers(0, 70),
    st.lists(st.tuples(st.integers(0, 250), st.integers(128, 255)), max_size=1),
)  # fmt: skip
def test_texts_are_utf8_wherever_they_lie(codes, before, changes):
    text = bytearray(b"x" * before + "".join(map(chr, codes)).encode(errors="surrogatepass"))
    for at, byte in changes:
        text[at % max(len(text), 1) : at % max(len(text), 1) + 1] = bytes([byte])
    data = b"1," + bytes(text).translate(None, b'\n\r",') + b"\n2,y\n"
    parser = CsvLines(pa.schema({"a": pa.int64(), "b": pa.string()}), ("a", "b"), ",", None, True)
    assert same(parser, data)
