"""Laws of files of lines: each line is read as the rules say, or is a bad row, wherever it stands."""

import gzip
import json
import re
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import ProviderError

BOM = b"\xef\xbb\xbf"


def outcome(path, format=None):
    """The rows in order, None for a bad one."""
    provider, found = sf.open(path, format=format), []
    for block in provider.blocks():
        bad = []
        rows = provider.read(block, bad_rows=bad).to_pylist()
        for one in bad:
            rows[one.row] = None
        found += rows
    return found


# ---- CSV

SPELLINGS = [r"1", r"+1", r"-1", r"-0", r"007", r"0x10", r"0X1F", r"-0x1", r"1_000", r"1.", r".5", r"1.5", r"1e5", r"1E+5", r"1e", r"1e999", r"-1e999", r"1e39", r"1e-400", r"inf", r"-Infinity", r"INF", r"nan", r"NaN", r"+nan", r"nan(1)", r"true", r"True", r"TRUE", r"0", r"yes", r"128", r"9223372036854775807", r"9223372036854775808", r"-9223372036854775808", r"1f", r"１", r"--1", r"2024-01-31", r"2024-02-30", r"NA", r"null", r'a"b', r'a"b"c', r'"a"b', r'""x', r'""', r'"a""b"', r'"1"', r'"0x10"', r'"nan"', r'"a,b"', r'"a;b"', r'\"1\"', r"12.34", r"1234.5", r"1E+2", r"1e-99", r"0.001", r"é", r"٣"]  # fmt: skip
spelling = st.sampled_from(SPELLINGS)
cell = st.one_of(
    spelling, spelling.map(lambda text: f" {text}"), spelling.map(lambda text: f'"{text} "'),
    st.text('01"x.-eaN ,;\t\ufeff', max_size=5),
)  # fmt: skip


def cells(line, delimiter):
    """The cells of a line, read letter by letter, None for an empty one; or None where the line is malformed."""
    found, at = [], 0
    while line.count('"') % 2 == 0:
        text = ""
        if line[at : at + 1] == '"':
            at += 1
            while at < len(line) and (line[at] != '"' or line[at + 1 : at + 2] == '"'):
                text += line[at]
                at += 1 + (line[at] == '"')
            at += 1
        else:
            text = line[at:].split(delimiter)[0]
            at += len(text)
            text = text or None
        found.append(text)
        if at >= len(line):
            return found if at == len(line) else None
        if line[at] != delimiter:
            return None
        at += 1
    return None


def integer(low, high):
    return lambda text: [int(text)] if re.fullmatch("-?[0-9]+", text) and low <= int(text) <= high else []


def real(kind):
    number = re.compile(r"[-+]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?|nan|inf|infinity)", re.IGNORECASE)

    def read(text):
        if not number.fullmatch(text):
            return []
        with np.errstate(over="ignore"):
            found = float(kind(text))
        return [] if np.isinf(found) and re.search("[0-9]", text) else [found]

    return read


def decimal(text):
    if not re.fullmatch(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]{1,2})?", text, re.IGNORECASE):
        return []
    scaled = Decimal(text) * 100
    fits = abs(scaled) < 10**5 and scaled == int(scaled)
    return [Decimal(text).quantize(Decimal("0.01")) + 0] if fits else []


def date(text):
    try:
        return [np.datetime64(text, "D").item()] if re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text) else []
    except ValueError:
        return []


BOOLS = {"true": [True], "1": [True], "false": [False], "0": [False]}
KINDS = {
    pa.int64(): integer(-(2**63), 2**63 - 1),
    pa.int8(): integer(-128, 127),
    pa.float64(): real(np.float64),
    pa.float32(): real(np.float32),
    pa.bool_(): lambda text: BOOLS.get(text.lower(), []),
    pa.date32(): date,
    pa.decimal128(5, 2): decimal,
    pa.string(): lambda text: [text],
}


def expected(line, delimiter, kind):
    """The row of a line of two columns, None for a bad one."""
    found = cells(line, delimiter)
    if found is None or len(found) != 2:
        return None
    first = [None] if found[0] is None else KINDS[kind](found[0])
    return {"a": first[0], "b": found[1]} if first else None


@st.composite
def tables(draw):
    delimiter = draw(st.sampled_from(",;\t|"))
    lines = draw(st.lists(st.lists(cell, min_size=1, max_size=3).map(delimiter.join), max_size=8))
    return delimiter, lines, draw(st.sampled_from(["\n", "\r\n"]))


@given(tables(), st.sampled_from(list(KINDS)), st.sampled_from([b"", BOM]))
def test_a_line_of_csv_is_read_by_the_rules_or_a_bad_row(tmp_path_factory, table, kind, mark):
    delimiter, lines, end = table
    path = tmp_path_factory.mktemp("lines") / "x.csv"
    path.write_bytes(mark + end.join([f"a{delimiter}b", *lines, ""]).encode())
    found = outcome(path, sf.Csv(schema=pa.schema({"a": kind, "b": pa.string()}), delimiter=delimiter))
    assert repr(found) == repr([expected(line, delimiter, kind) for line in lines if line])


@given(tables())
def test_no_line_that_a_schema_of_csv_is_inferred_from_is_a_bad_row_of_it(tmp_path_factory, table):
    delimiter, lines, end = table
    path = tmp_path_factory.mktemp("lines") / "x.csv"
    path.write_bytes(end.join([f"a{delimiter}b", *lines, ""]).encode())
    good = [expected(line, delimiter, pa.string()) is not None for line in lines if line]
    if good:
        assert [row is not None for row in outcome(path, sf.Csv(delimiter=delimiter))] == good
    else:
        with pytest.raises(ProviderError, match=r"x\.csv(, line \d+)?: .*\n *declare the types"):
            sf.open(path, format=sf.Csv(delimiter=delimiter))


# ---- JSON lines

VALUES = [
    r"1",
    r"-0",
    r"1.0",
    r"1e5",
    r"1e999",
    r"1e39",
    r"-1e39",
    r"NaN",
    r"Infinity",
    r"-Infinity",
    r"01",
    r"+1",
    r".5",
    r"1.",
    r"9223372036854775808",
    r"true",
    r"True",
    r"null",
    r"0x10",
    r"1_0",
    r'"x"',
    r'""',
    r'"\ud800"',
    r'"\ud83d\ude00"',
    r'"\u0000"',
    r'"\q"',
    r'"1"',
    r"[]",
    r"[1]",
    r"[1,NaN,1e39]",
    r"[null]",
    r"{}",
    r'{"k":1,"k":2}',
]
JSON_KINDS = {
    "int64": lambda value: isinstance(value, int) and -(2**63) <= value < 2**63,
    "double": lambda value: isinstance(value, int | float),
    "float": lambda value: isinstance(value, int | float) and is_float32(value),
    "bool": lambda value: isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "list<float>": lambda value: (
        isinstance(value, list) and all(item is None or JSON_KINDS["float"](item) for item in value)
    ),
}


def is_float32(number):
    with np.errstate(over="ignore"):
        return np.isinf(number) or not np.isinf(np.float32(number))


def finite(text):
    if np.isinf(number := float(text)):
        raise ValueError(text)
    return number


def once(pairs):
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def is_row(line, kind):
    try:
        value = json.loads(line, parse_constant=float, parse_float=finite, object_pairs_hook=once)
        json.dumps(value, ensure_ascii=False).encode()
    except ValueError:
        return False
    value = value.get("v")
    return value is None or (JSON_KINDS[kind](value) and isinstance(value, bool) == (kind == "bool"))


@given(
    st.lists(st.lists(st.sampled_from(VALUES), max_size=2), max_size=8),
    st.sampled_from(list(JSON_KINDS)),
)
def test_a_line_of_json_is_read_by_the_rules_or_a_bad_row(tmp_path_factory, lines, kind):
    path = tmp_path_factory.mktemp("lines") / "x.jsonl"
    texts = ["{" + ", ".join(f'"v": {value}' for value in values) + "}" for values in lines]
    path.write_text("\n".join(texts))
    found = outcome(path, sf.JsonLines(schema={"v": kind}))
    assert [row is not None for row in found] == [is_row(text, kind) for text in texts]
    for text, row in zip(texts, found, strict=True):
        if row is not None:
            value = json.loads(text, parse_int=float if kind == "double" else int).get("v")
            if "float" in kind:
                value, row = (np.float32(np.array(one, np.float64)) for one in (value, row["v"]))
                np.testing.assert_array_equal(row, value)
            else:
                assert repr(row["v"]) == repr(value)


def test_other_lines_say_that_nan_is_double(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": NaN, "b": [1]}\n{"a": 1, "b": [Infinity, null]}\n')
    assert repr(outcome(path)) == "[{'a': nan, 'b': [1.0]}, {'a': 1.0, 'b': [inf, None]}]"


@pytest.mark.parametrize("text", ["1e25", "1234.5", "1e-99", '"9e30"'])
def test_a_decimal_of_json_beyond_its_type_is_a_bad_row(tmp_path, text):
    (tmp_path / "x.jsonl").write_text(f'{{"d": {text}}}\n{{"d": 1E+2}}\n')
    schema = pa.schema({"d": pa.decimal128(5, 2)})
    assert outcome(tmp_path / "x.jsonl", sf.JsonLines(schema=schema)) == [None, {"d": Decimal("100.00")}]


# ---- files


@pytest.mark.parametrize(
    ("name", "full", "blanks"),
    [
        ("csv", b"id,t\n1,x\n", [b"id,t\n", b"id,t", b'"id","t"\r\n\r\n', BOM + b"id,t\n"]),
        ("jsonl", b'{"id": 1}\n', []),
    ],
)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_files_without_rows_may_stand_anywhere(tmp_path, name, full, blanks, place):
    for blank in [b"", b"\n\n", b"\r\n", BOM, *blanks]:
        contents = [full, full]
        contents.insert(place, blank)
        paths = [tmp_path / f"{at}.{name}" for at in range(3)]
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content)
        assert outcome(paths) == 2 * outcome(paths[2 if place < 2 else 0])


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("size", [65_500, 65_540, 131_080, 400_000])
def test_a_header_and_a_first_row_may_be_long(tmp_path, suffix, size):
    names = [f"{at}" * (size // 5) for at in range(5)]
    tables = {
        "row.csv": (f"id,t\n1,{'x' * size}\n2,y\n", 2),
        "header.csv": (",".join(names) + "\n" + ",".join("1" for _ in names), 1),
        "blank.jsonl": ("\n" * size + '{"a": 1}\n{"a": 2}', 2),
    }
    for name, (text, count) in tables.items():
        path = tmp_path / (name + suffix)
        path.write_bytes(gzip.compress(text.encode()) if suffix else text.encode())
        found = outcome(path)
        assert len(found) == count
        assert None not in found


@pytest.mark.slow
@given(
    st.lists(st.integers(0, 200_000), max_size=5), st.sampled_from([7_000, 65_535, 65_536, 65_537, 150_000])
)
def test_a_line_is_whole_however_long_it_is(tmp_path_factory, sizes, batch_bytes):
    path = tmp_path_factory.mktemp("lines") / "x.csv"
    path.write_text("t\n" + "\n".join("x" * size for size in sizes))
    found = outcome(path, sf.Csv(schema={"t": "string"}, batch_bytes=batch_bytes))
    assert [len(row["t"]) for row in found] == [size for size in sizes if size]


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=3), st.sampled_from([0, 1, 8, 512, 70_000]), st.data()
)
def test_gzip_is_read_as_gzip_does_with_zeros_after_its_members(tmp_path_factory, counts, zeros, data):
    path = tmp_path_factory.mktemp("lines") / "x.jsonl.gz"
    members = [gzip.compress(b'{"a": 1}\n' * count) + bytes(zeros) for count in counts]
    content = b"".join(members) + data.draw(st.sampled_from([b"", b"", b"junk"]))
    path.write_bytes(content[: len(content) - data.draw(st.sampled_from([0, 0, 1, 600]))])
    try:
        whole = gzip.decompress(path.read_bytes())
    except (OSError, EOFError):
        with pytest.raises(ProviderError, match=r"x\.jsonl\.gz can't be read"):
            outcome(path, sf.JsonLines(schema={"a": "int64"}))
    else:
        assert outcome(path, sf.JsonLines(schema={"a": "int64"})) == [{"a": 1}] * whole.count(b"\n")
