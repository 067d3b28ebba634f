"""CSV and TSV: what is read, what is a bad row, which schemas are inferred."""

import csv
import gzip
import io
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import ProviderError, ProviderOptionError

LINES = b'id,tags,text\r\n1,1 2 3,"a,""b"\r\n\r\n2,,""\r\n3,7,\r\n'
SCHEMA = {"id": "int64", "tags": "list<int64>", "text": "string"}
ROWS = [
    {"id": 1, "tags": [1, 2, 3], "text": 'a,"b'},
    {"id": 2, "tags": [], "text": ""},
    {"id": 3, "tags": [7], "text": None},
]


def rows(provider, bad=None):
    return [row for block in provider.blocks() for row in provider.read(block, bad_rows=bad).to_pylist()]


@pytest.fixture
def path(tmp_path):
    (tmp_path / "x.csv").write_bytes(LINES)
    return tmp_path / "x.csv"


@pytest.mark.parametrize("batch_bytes", [1, 3, 10, 40, 1000])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_each_line_is_in_one_block_however_they_are_cut(path, batch_bytes, mark):
    path.write_bytes(mark + LINES)
    provider = sf.open(path, format=sf.Csv(schema=SCHEMA, list_delimiter=" ", batch_bytes=batch_bytes))
    assert rows(provider) == ROWS


LETTERS = "0123456789.+-eEtrufalsTRUFALSxX |a_"


@pytest.mark.parametrize("delimiter", sorted(set(LETTERS)))
def test_any_delimiter_splits_lines_as_pythons_csv_does(path, delimiter):
    for text, kind in [
        ("1.5", "double"), ("-1", "int64"), ("1e5", "float"), ("1E+5", "double"), ("false", "bool"), ("TRUE", "bool"),
        ("true", "string"), ("123456789", "int64"), ('"1.5"', "double"), ("0.5", "double"),
    ]:  # fmt: skip
        values = next(csv.reader([text], delimiter=delimiter))
        path.write_text(text + "\n")
        schema = {f"c{at}": kind if at == 0 else "string" for at in range(len(values))}
        bad = []
        one = rows(sf.open(path, format=sf.Csv(schema=schema, delimiter=delimiter, header=False)), bad)
        try:
            value = pa.array([values[0] or None]).cast(kind)[0].as_py()
        except pa.ArrowInvalid:
            assert len(bad) == 1
        else:
            assert not bad
            assert list(one[0].values()) == [value, *(each or None for each in values[1:])]


def test_files_may_be_compressed_and_separated_by_tabs(path):
    squeezed = path.with_name("y.tsv.gz")
    squeezed.write_bytes(gzip.compress(b"a\tb\n1\tx,y\n\tz\n"))
    assert rows(sf.open(squeezed)) == [{"a": 1, "b": "x,y"}, {"a": None, "b": "z"}]


def test_the_schema_is_inferred_from_the_first_lines_and_says_so(path):
    path.write_text("a,b,c,d,e,f,g\n1,007,1.5,true,2020-01-01,,NA\n2,8,2,false,x,,1\n,9,,,,,\n")
    provider = sf.open(path)
    kinds = [pa.int64(), pa.string(), pa.float64(), pa.bool_(), pa.string(), pa.string(), pa.string()]
    assert provider.schema == pa.schema(list(zip("abcdefg", kinds, strict=True)))
    assert provider.inferred == f"schema inferred from the first 3 lines of {path}"
    assert [row["g"] for row in rows(provider)] == ["NA", "1", None]
    path.write_text("a\n9223372036854775808\n")
    assert sf.open(path).schema == pa.schema({"a": pa.string()})


@pytest.mark.parametrize(
    ("line", "column", "reason"),
    [
        ("x,1,a", 1, "'id' is not a int64: 'x'"),
        ("1.5,1,a", 1, "'id' is not a int64: '1.5'"),
        ("9223372036854775808,1,a", 1, "'id' is not a int64"),
        ("1,2 y,a", 3, "'tags' is not a list<item: int64>: '2 y'"),
        ("1,2", 1, "expected 3 values, found 2"),
        ("1,2,3,4", 1, "expected 3 values, found 4"),
        ('1,2,"a', 1, "a quote that is not closed in its line"),
        ("1,2,a\rb", 1, "a carriage return inside the line"),
    ],
)
def test_a_line_that_does_not_fit_is_a_bad_row(path, line, column, reason):
    path.write_bytes(LINES + line.encode() + b"\n7,,b\n")
    bad, options = [], {"schema": SCHEMA, "list_delimiter": " "}
    found = rows(sf.open(path, format=sf.Csv(**options)), bad)
    assert found[:3] == ROWS
    assert found[-1] == {"id": 7, "tags": [], "text": "b"}
    assert [row.row for row in bad] == [3]
    assert bad[0].reason.startswith(f"{path}, line 6, column {column}: {reason}")
    with pytest.raises(ProviderError) as raised:
        rows(sf.open(path, format=sf.Csv(**options)))
    assert raised.value.message == bad[0].reason


def test_a_value_with_a_newline_that_no_option_allows_is_refused_in_each_of_its_lines(path):
    path.write_bytes(b'a,b\n1,"x\ny"\n2,z\n')
    bad = []
    assert rows(sf.open(path, format=sf.Csv(newlines_in_values=False)), bad)[2:] == [{"a": 2, "b": "z"}]
    assert ["format=sf.Csv(newlines_in_values=True) reads" in row.reason for row in bad] == [True, True]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"a,a\n1,2\n", {}, "two columns are called 'a'"),
        (b"", {}, "no line with the names of the columns"),
        (b"\na\n1\n", {}, "line 1: the header can't be read: expected the names"),
        (b"a\n", {}, "no line to infer a schema from"),
        (b"\xff\n1\n", {}, "line 1: the header can't be read: not UTF-8"),
        (b"a,b\n1,2\n", {"schema": pa.schema({"a": pa.int64()})}, "column 'b' is not in the schema"),
        (b"a\n1\n", {"schema": {"b": "int64"}}, "has no column 'b'"),
        (b"a\n1\n", {"schema": {"a": "duration[s]"}}, "which CSV can't be read as"),
        (b"a\n1\n", {"schema": {"a": "list<date32>"}}, "which CSV can't be read as"),
        (b"a\n1\n", {"decimal": ";"}, "decimal is ';', expected '.' or ','"),
        (b"1\n", {"header": False}, "CSV without a header needs schema="),
        (b"a\n1\n", {"header": 1}, "header is 1, expected True or False"),
        (b"a\n1\n", {"delimiter": ";;"}, "delimiter is ';;', expected one letter"),
    ],
)
def test_what_can_not_be_opened_is_an_error_that_says_why(path, content, options, message):
    path.write_bytes(content)
    with pytest.raises(ProviderError, match=message):
        sf.open(path, format=sf.Csv(**options))


def test_columns_beside_the_schema_may_be_ignored_and_headers_missing(path):
    found = rows(sf.open(path, format=sf.Csv(schema={"text": "string"}, extra_fields="ignore")))
    assert [row["text"] for row in found] == ['a,"b', "", None]
    path.write_bytes(b"1;2\n3;4\n")
    options = {"schema": {"a": "int8", "b": "float"}, "header": False, "delimiter": ";"}
    assert rows(sf.open(path, format=sf.Csv(**options))) == [{"a": 1, "b": 2.0}, {"a": 3, "b": 4.0}]


def write_csv(folder, **contents):
    for name, content in contents.items():
        (folder / f"{name}.csv").write_text(content)
    return folder


def test_columns_are_found_by_the_header_of_each_file(tmp_path, caplog):
    write_csv(
        tmp_path, a="id,text\n1,a\n2,b\n", b="text,id\nc,3\n", c="more,id\n0.5,4\n", d="", e="id,text\n"
    )
    found = [(1, "a", None), (2, "b", None), (3, "c", None), (4, None, 0.5)]
    expected = [dict(zip(("id", "text", "more"), row, strict=True)) for row in found]
    provider = sf.open(tmp_path)
    assert str(provider.schema.field("more").type) == "double"
    assert rows(provider) == expected
    assert f"column 'text' is missing in 1 of 5 files, such as {tmp_path}/c.csv" in caplog.text
    assert "'id'" not in caplog.text
    assert rows(sf.open(tmp_path, schema="first")) == [
        {name: row[name] for name in ("id", "text")} for row in expected
    ]
    assert rows(sf.open(tmp_path, columns=["more"], where="id > 3")) == [{"more": 0.5}]
    assert rows(sf.open(tmp_path, columns=["more"])) == [{"more": one} for one in (None, None, None, 0.5)]


def test_a_column_has_one_type_in_files_of_different_headers(tmp_path):
    write_csv(
        tmp_path, **{f"a{at:02}": "n,x\n1,1\n" for at in range(20)}, b="x,n,late\n1.5,2,7\n", c="late\ntext\n"
    )
    provider = sf.open(tmp_path)
    assert provider.schema == pa.schema({"n": pa.int64(), "x": pa.float64(), "late": pa.string()})
    assert rows(provider)[19:] == [
        {"n": 1, "x": 1.0, "late": None},
        {"n": 2, "x": 1.5, "late": "7"},
        {"n": None, "x": None, "late": "text"},
    ]


def test_declared_columns_may_be_missing_in_some_files(tmp_path):
    write_csv(tmp_path, a="n,x\n1,2\n", b="x,m\n3,4\n")
    both = [{"n": 1, "x": 2.0}, {"n": None, "x": 3.0}]
    for schema in ({"n": "int8", "x": "double"}, pa.schema({"n": pa.int8(), "x": pa.float64()})):
        assert rows(sf.open(tmp_path, format=sf.Csv(schema=schema, extra_fields="ignore"))) == both
    with pytest.raises(ProviderError, match=r"b\.csv: column 'm' is not in the schema"):
        sf.open(tmp_path, schema=pa.schema({"n": pa.int8(), "x": pa.float64()}))
    assert rows(sf.open(tmp_path, schema={"n": "int8"})) == [
        {"n": 1, "x": 2, "m": None},
        {"n": None, "x": 3, "m": 4},
    ]
    with pytest.raises(
        ProviderError, match=r"a\.csv and the other files have no column 'o'.*they have n, x, m"
    ):
        sf.open(tmp_path, schema={"o": "int8"})
    with pytest.raises(ProviderError, match=r"b\.csv has no column of the schema; it has x, m"):
        sf.open(tmp_path, format=sf.Csv(schema={"n": "int8"}, extra_fields="ignore"))


def test_bad_values_and_newlines_have_the_place_of_their_own_file(tmp_path):
    write_csv(tmp_path, a='id,text\n1,"a\nb"\n', b='text,id\n"c\nd",2\ne,x\n')
    bad = []
    found = rows(sf.open(tmp_path, schema={"id": "int64"}), bad)
    assert found[:2] == [{"id": 1, "text": "a\nb"}, {"id": 2, "text": "c\nd"}]
    assert [row.reason for row in bad] == [f"{tmp_path}/b.csv, line 4, column 3: 'id' is not a int64: 'x'"]


def test_a_file_without_a_column_of_the_others_probably_has_no_header(tmp_path):
    write_csv(tmp_path, a="id,text\n1,a\n", b="2,b\n3,c\n", c="text,id\nd,4\n")
    with pytest.raises(
        ProviderError, match=r"no other file has a column of .*b\.csv, whose first is '2'; in .*a\.csv"
    ):
        sf.open(tmp_path)
    assert len(rows(sf.open(tmp_path, exclude="b.csv"))) == 2


def test_files_of_one_header_are_known_as_before(tmp_path):
    """A state of files with equal headers is that of a version without others."""
    write_csv(tmp_path, a="n,t\n1,a\n", b="n,t\n2,b\n")
    state = sf.Loader(tmp_path, batch=1).state_dict()
    assert state["data"]["read with"] == {
        "batch_bytes": 4 << 20, "delimiter": ",", "list_delimiter": None, "header": True,
    }  # fmt: skip


def test_an_option_of_csv_is_none_of_json_lines(path):
    with pytest.raises(
        ProviderOptionError, match=r"'delimiter' is an option of Csv, and .*x\.csv is JsonLines"
    ):
        sf.open(path, kind="jsonl", delimiter=",")


@st.composite
def damaged(draw):
    """Lines of which some bytes are others, left out or doubled."""
    data = bytearray(LINES.partition(b"\n")[2] * 2)
    for _ in range(draw(st.integers(1, 6))):
        at, size = draw(st.integers(0, len(data))), draw(st.integers(0, 9))
        letters = st.text(',"\n\r\\ 01ax\x00\t', max_size=8).map(str.encode)
        data[at : at + size] = draw(st.one_of(st.binary(max_size=6), letters, st.just(b"9" * 400)))
    return b"id,tags,text\n" + bytes(data)


def test_newlines_in_quotes_are_found_by_the_first_lines_or_an_option(path):
    path.write_bytes(b'a,b\r\n1,"x\r\ny"\r\n2,"""\n"\r\n')
    assert rows(sf.open(path)) == [{"a": 1, "b": "x\r\ny"}, {"a": 2, "b": '"\n'}]
    # an odd quote that no later line closes is a bad line, and does not take the lines after it along
    for content in (b'a,b\n1,5" pipe\n2,c\n3,7" pipe\n', b'a,b\n1,"x\n2,y\n', b'a,b\n1,"x\n2,"y\n3,z\n'):
        path.write_bytes(content)
        bad = []
        assert len(rows(sf.open(path), bad)) == content.count(b"\n") - 1
        assert all("newlines_in_values=True" in row.reason for row in bad)


def test_a_bad_row_of_several_lines_is_named_by_its_line_and_kept_whole(path):
    path.write_bytes(b'a,b\n1,"x\ny"\nz,"c\n\nd"\n3,"e\nf"g\n4,h\n5,"i\n')
    bad = []
    found = rows(sf.open(path, format=sf.Csv(schema={"a": "int64"}, newlines_in_values=True)), bad)
    assert [row["a"] for row in found] == [1, None, None, 4, None]
    assert [row.line for row in bad] == [b'z,"c\n\nd"', b'3,"e\nf"g', b'5,"i\n']
    assert f"{path}, line 4, column 1: 'a' is not a int64: 'z'" in bad[0].reason
    assert f"{path}, line 7, column 3: found '\"e\\nf\"g'" in bad[1].reason
    assert "line 10, column 1: a quote that is not closed in its line" in bad[2].reason


VALUES = st.text('a,"\n\r\x01é ', max_size=8)


@pytest.mark.slow
@given(
    st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=12),
    st.sampled_from([1, 7, 40, 4096]),
    st.sampled_from(["x.csv", "x.csv.gz"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_values_with_newlines_come_out_however_blocks_are_cut(
    tmp_path_factory, values, batch_bytes, name, end
):
    file = io.StringIO()
    writer = csv.writer(file, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([("a", "b"), *values])
    path = tmp_path_factory.mktemp("lines") / name
    path.write_bytes((gzip.compress if name.endswith("gz") else bytes)(file.getvalue().encode()))
    options = {"schema": {"a": "string", "b": "string"}, "newlines_in_values": True}
    provider = sf.open(path, format=sf.Csv(batch_bytes=batch_bytes, **options))
    assert [(row["a"], row["b"]) for row in rows(provider)] == values
    blocks = list(provider.blocks())
    assert [row for block in blocks[::-1] for row in provider.read(block).to_pylist()[::-1]] == rows(
        provider
    )[::-1]


@pytest.mark.slow
@given(damaged(), st.sampled_from([5, 30, 4096]))
def test_each_damaged_row_with_newlines_is_counted_once(tmp_path_factory, content, batch_bytes):
    path = tmp_path_factory.mktemp("lines") / "x.csv"
    path.write_bytes(content)
    options = {"schema": SCHEMA, "list_delimiter": " ", "newlines_in_values": True}
    found = rows(sf.open(path, format=sf.Csv(**options, batch_bytes=batch_bytes)), [])
    expected, row = [], b""
    for line in content.split(b"\n")[1:]:
        row += line
        if row.count(b'"') % 2 == 0:
            expected.append(row)
            row = b""
    assert len(found) == sum(bool(row.strip(b"\r")) for row in [*expected, row])


def test_decimal_commas_are_an_option_that_bad_rows_name(path):
    path.write_text("a;b;c\n1,5;-2e3;x\n2;;1,5\n1.5;0,1;\n")
    bad = []
    found = rows(sf.open(path, format=sf.Csv(delimiter=";", decimal=",", schema={"b": "decimal(9, 1)"})), bad)
    assert [row["b"] for row in found] == [Decimal("-2000.0"), None, Decimal("0.1")]
    assert [row["a"] for row in found] == ["1,5", "2", "1.5"]
    options = {"delimiter": ";", "schema": {"a": "double", "b": "double"}}
    found = rows(sf.open(path, format=sf.Csv(decimal=",", **options)), bad)
    assert [row["a"] for row in found] == [1.5, 2.0, None]
    assert [row.row for row in bad] == [2]
    bad.clear()
    rows(sf.open(path, format=sf.Csv(**options)), bad)
    assert [row.reason.partition("; ")[2] for row in bad] == [
        'format=sf.Csv(decimal=",") reads decimal commas'
    ] * 2
    path.write_text("a;b\n1,5;1,0|2,5\n-3;\n")
    options = {"delimiter": ";", "decimal": ",", "list_delimiter": "|", "schema": {"b": "list<float>"}}
    found = rows(sf.open(path, format=sf.Csv(**options)))
    assert found == [{"a": 1.5, "b": [1.0, 2.5]}, {"a": -3.0, "b": []}]


def test_nested_values_are_json(path):
    path.write_text(
        'id,m,l,s\n1,"{""a"": 1, ""b"": 2.50}","[1, 2]","{""x"": [""\n""]}"\n2,,,\n3,{},[],{}\n'
        '4,"{""a"": ""x""}",[1],\n5,"[], ""value"": {}",[2],\n6,{},[,\n'
    )
    kinds = {"m": "map<string, decimal(5, 2)>", "l": "list<int32>", "s": "struct<x: list<string>>"}
    bad = []
    found = rows(sf.open(path, format=sf.Csv(schema=kinds, newlines_in_values=True)), bad)
    assert found[0] == {
        "id": 1,
        "m": [("a", Decimal("1.00")), ("b", Decimal("2.50"))],
        "l": [1, 2],
        "s": {"x": [" "]},
    }
    assert found[1] == {"id": 2, "m": None, "l": None, "s": None}
    assert found[2] == {"id": 3, "m": [], "l": [], "s": {"x": None}}
    assert [row.row for row in bad] == [3, 4, 5]
    assert [row.column for row in bad] == ["m", "m", "l"]


def test_a_mapping_declares_some_columns_and_the_first_lines_of_all_files_the_others(path):
    path.write_text("id,n,t\n1,1,\n")
    path.with_name("y.csv").write_text("id,n,t\n2,1.5,a\n")
    provider = sf.open(path.parent, format=sf.Csv(schema={"id": "string"}))
    assert provider.schema == pa.schema({"id": pa.string(), "n": pa.float64(), "t": pa.string()})
    assert provider.inferred == f"schema inferred from the first 2 lines of {path} and 1 more file"
    only = sf.open(path.parent, format=sf.Csv(schema={"id": "string"}, extra_fields="ignore"))
    assert (only.columns, only.inferred) == (("id",), "")


def test_a_fraction_among_integers_says_which_type_reads_it(path):
    path.write_text("x\n1\n1.5\n")
    bad = []
    rows(sf.open(path, format=sf.Csv(schema={"x": "int64"})), bad)
    assert bad[0].reason.endswith('; schema={"x": "float64"} reads it')


@given(damaged(), st.sampled_from([5, 30, 4096]))
def test_damaged_lines_are_bad_rows_and_never_more(tmp_path_factory, content, batch_bytes):
    path = tmp_path_factory.mktemp("lines") / "x.csv"
    path.write_bytes(content)
    options = {"schema": SCHEMA, "list_delimiter": " ", "newlines_in_values": False}
    provider = sf.open(path, format=sf.Csv(**options, batch_bytes=batch_bytes))
    bad, found = [], []
    for block in provider.blocks():
        before = len(bad)
        batch = provider.read(block, bad_rows=bad)
        batch.validate(full=True)
        wrong = {row.row for row in bad[before:]}
        found += [None if at in wrong else row for at, row in enumerate(batch.to_pylist())]
    lines = [line.strip(b"\r") for line in content.split(b"\n")[1:]]
    lines = [line for line in lines if line]
    assert len(found) == len(lines)
    for line, row in zip(lines, found, strict=True):
        if row is not None:
            values = next(csv.reader([line.decode()]))
            assert len(values) == 3
            assert values[2] == (row["text"] or "")


@pytest.mark.parametrize(("header", "other"), [("id;x", "';'"), ("id\tx", r"'\\t'"), ("id|x", r"'\|'")])
def test_a_header_that_another_delimiter_would_cut_is_no_column(tmp_path, header, other):
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n1\n")
    with pytest.raises(
        sf.ProviderError,
        match=rf"line 1: the header has no ',' and is .*\nformat=sf.Csv\(delimiter={other}\) splits it",
    ):
        sf.open(path)
    assert sf.open(path, format=sf.Csv(delimiter=",")).columns == (header,)


@pytest.mark.parametrize("header", ['"a"b,c', f"a,{'x' * 200_000}"], ids=["quote", "long"])
def test_a_header_that_is_no_csv_is_an_error_of_its_line(tmp_path, header):
    path = tmp_path / "a.csv"
    path.write_text(f"{header}\n1,2\n")
    with pytest.raises(sf.ProviderError, match=r"a\.csv, line 1: the header can't be read"):
        sf.open(path)


def test_a_file_whose_lines_are_all_malformed_has_the_columns_of_its_header(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("a,b\n1,é\n2,é\n".encode("latin-1"))
    opened = sf.open(path)
    assert opened.schema == pa.schema({"a": pa.string(), "b": pa.string()})
    with pytest.raises(sf.ProviderError, match=r"a\.csv, line 2, column 1: not UTF-8"):
        list(sf.Loader(path))
    with pytest.raises(sf.ProviderError, match=r"leaves out all 2 rows.*not UTF-8"):
        list(sf.Loader(path, bad_rows="skip"))
    (tmp_path / "b.csv").write_bytes(b"a,b\n3,x\n")
    found = sf.Loader(tmp_path, bad_rows="skip")
    assert [row for batch in found for row in sf.to_arrow(batch).to_pylist()] == [{"a": 3, "b": "x"}]
