"""JSON lines: what is read, what is a bad row, which schemas are inferred."""

import bz2
import gzip
import json
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import thorough

import seqflow as sf
from seqflow.errors import ProviderError, ProviderOptionError, SeqflowError

LINES = b'{"id":1,"ids":[1,2],"s":{"x":"a"}}\n\n{"id":2,"ids":[],"s":null}\r\n  \n{"id":3,"ids":[5]}'
ROWS = [
    {"id": 1, "ids": [1, 2], "s": {"x": "a"}},
    {"id": 2, "ids": [], "s": None},
    {"id": 3, "ids": [5], "s": None},
]


def rows(provider, bad=None):
    return [row for block in provider.blocks() for row in provider.read(block, bad_rows=bad).to_pylist()]


def reasons(path, **options):
    bad = []
    rows(sf.open(path, format=sf.JsonLines(**options)), bad)
    return [row.reason.partition(": ")[2] for row in bad]


@pytest.fixture
def path(tmp_path):
    (tmp_path / "x.jsonl").write_bytes(LINES)
    return tmp_path / "x.jsonl"


@pytest.mark.parametrize("batch_bytes", [1, 3, 10, 40, 1000])
def test_each_line_is_in_one_block_however_they_are_cut(path, batch_bytes):
    assert rows(sf.open(path, format=sf.JsonLines(batch_bytes=batch_bytes))) == ROWS


@pytest.mark.parametrize(("suffix", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress)])
def test_files_may_be_compressed(path, suffix, compress):
    squeezed = path.with_name(f"y.jsonl.{suffix}")
    squeezed.write_bytes(compress(LINES))
    provider = sf.open(squeezed)
    assert provider.kind == "jsonl"
    assert rows(provider) == ROWS
    squeezed.write_bytes(compress(LINES)[:-9])
    with pytest.raises(ProviderError, match="can't be read"):
        rows(sf.open(squeezed, format=sf.JsonLines(schema={"id": "int64"})))


def test_the_schema_is_inferred_from_the_first_lines_and_says_so(path):
    provider = sf.open(path)
    types = {"id": pa.int64(), "ids": pa.list_(pa.int64()), "s": pa.struct({"x": pa.string()})}
    assert provider.schema == pa.schema(types)
    assert provider.inferred == f"schema inferred from the first 3 lines of {path}"
    assert provider.inferred in repr(provider)
    assert sf.open(path, format=sf.JsonLines(schema=types)).inferred == ""


def test_inference_keeps_texts_and_widens_integers_to_numbers(path):
    path.write_text('{"t": "2020-01-01", "n": 1}\n{"n": 1.5}\n')
    assert sf.open(path).schema == pa.schema({"t": pa.string(), "n": pa.float64()})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 9223372036854775808}', "beyond int64"),
        ("[1]", "expected an object"),
        ('{"a": 1', "line 1: the schema can't be inferred"),
        ('{"a": ' + "[" * 3000 + "]" * 3000 + "}", "the schema can't be inferred"),
        ("\n\n", "no line to infer a schema from"),
        ("", "no line to infer a schema from"),
        ("{}", "no line to infer a schema from"),
    ],
)
def test_what_can_not_be_inferred_has_to_be_declared(path, content, message):
    path.write_text(content)
    with pytest.raises(ProviderError, match=rf"(?s){message}.*declare the types with schema="):
        sf.open(path)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"id": "x"}', "'id' is not a int64: Column(/id) changed from number to string"),
        ('{"id": 1.5}', "'id' is not a int64: Failed to convert JSON to int64, couldn't parse:1.5"),
        ('{"id": 9223372036854775808}', "'id' is not a int64: Failed to convert JSON to int64"),
        ('{"id": 1}{"id": 2}', "found several rows in one line"),
        ('{"id":\n4}', "expected one whole object"),
        ('{"no": 1}', "the key 'no' is not in the schema"),
        ('{"id": 1, "id": 2}', "twice"),
        ('{"id": 1', "expected one whole object"),
        ('{"id": 1,}', "Missing a name"),
        ('{"s": {"y": 1}}', "the key 's.y' is not in the schema; declare it with schema="),
        ('{"s": {"x": 1}}', "'s' is not a struct<x: string>"),
        ('{"ids": [1, "x"]}', "'ids' is not a list<item: int64>"),
        ("[1]", "expected one whole object"),
        ('{"ids": ' + "[" * 30_000 + "]" * 30_000 + "}", "nested in 64 levels or more"),
    ],
)
def test_a_line_that_does_not_fit_is_a_bad_row(path, line, reason):
    path.write_bytes(LINES + b"\n" + line.encode() + b'\n{"id": 7}\n')
    bad = []
    struct = pa.struct({"x": pa.string()})
    options = {"schema": pa.schema({"id": pa.int64(), "ids": pa.list_(pa.int64()), "s": struct})}
    found = rows(sf.open(path, format=sf.JsonLines(**options)), bad)
    assert found[:3] == ROWS
    assert found[-1]["id"] == 7
    assert len(found) == 4 + len(bad)
    assert bad[0].reason.startswith(f"{path}, line 6, column ")
    assert reason in bad[0].reason
    with pytest.raises(ProviderError) as raised:
        rows(sf.open(path, format=sf.JsonLines(**options)))
    assert raised.value.message == bad[0].reason


def test_a_broken_line_is_of_no_column(path):
    path.write_bytes(LINES + b'\n{"id": \n{"id": "x"}\n')
    loader = sf.Loader(
        path, format=sf.JsonLines(schema={"id": "int64"}), bad_rows="skip", fill={"id": 0}, columns=["id"]
    )
    list(loader)
    broken, wrong = sorted(loader.stats().reasons)
    assert broken == "expected one whole object, {…}, in the line"
    assert wrong.startswith("id: ")


def test_texts_are_utf8(path):
    path.write_bytes(b'{"t": "a"}\n{"t": "\xff"}\n{"t": "\\ud800"}\n{"t": "\xc3\xa4"}\n')
    schema = {"t": "string"}
    not_utf8, surrogate = reasons(path, schema=schema)
    assert not_utf8 == "not UTF-8"
    assert "surrogate" in surrogate
    assert [row["t"] for row in rows(sf.open(path, format=sf.JsonLines(schema=schema)), [])] == [
        "a",
        None,
        None,
        "ä",
    ]


def test_brackets_in_texts_are_no_levels(path):
    path.write_text(json.dumps({"t": "[" * 500 + '\\"' * 3}) + "\n")
    assert rows(sf.open(path)) == [{"t": "[" * 500 + '\\"' * 3}]


def test_a_byte_order_mark_is_no_part_of_the_first_line(path):
    path.write_bytes(b"\xef\xbb\xbf" + LINES)
    assert rows(sf.open(path)) == ROWS


def test_a_line_may_be_longer_than_a_block(path):
    path.write_text(json.dumps({"ids": list(range(50_000))}) + '\n{"ids": [1]}\n')
    assert [len(row["ids"]) for row in rows(sf.open(path, format=sf.JsonLines(batch_bytes=1000)))] == [
        50_000,
        1,
    ]


def test_maps_and_other_lists_are_declared(path):
    path.write_text(
        '{"m": [{"key": "a", "value": 1.5}], "l": [1], "f": [1, 2], "n": [[{"key": "k", "value": [3]}]]}\n'
        '{"m": null, "l": [], "f": null, "n": []}\n'
        '{"m": [{"value": 1}]}\n'
        '{"f": [1]}\n'
        '{"m": {"a": 1}}\n'
        '{"m": {"a": "x"}}\n'
        '{"m": {"a": 1, "a": 2}}\n'
    )
    schema = pa.schema(
        {
            "m": pa.map_(pa.string(), pa.float64()),
            "l": pa.large_list(pa.int32()),
            "f": pa.list_(pa.int8(), 2),
            "n": pa.list_(pa.map_(pa.string(), pa.list_(pa.int64()))),
        }
    )
    provider, bad = sf.open(path, format=sf.JsonLines(schema=schema)), []
    (block,) = provider.blocks()
    batch = provider.read(block, bad_rows=bad)
    batch.validate(full=True)
    assert batch.schema == schema
    assert batch.to_pylist()[:2] == [
        {"m": [("a", 1.5)], "l": [1], "f": [1, 2], "n": [[("k", [3])]]},
        {"m": None, "l": [], "f": None, "n": []},
    ]
    assert batch.to_pylist()[4]["m"] == [("a", 1.0)]
    assert [row.row for row in bad] == [2, 3, 5, 6]


def test_keys_beside_the_schema_may_be_ignored(path):
    options = {"schema": {"id": "int64"}, "extra_fields": "ignore"}
    assert rows(sf.open(path, format=sf.JsonLines(**options))) == [{"id": 1}, {"id": 2}, {"id": 3}]
    with pytest.raises(ProviderOptionError, match="extra_fields is 'skip', expected 'error' or 'ignore'"):
        sf.open(path, format=sf.JsonLines(extra_fields="skip"))


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"a": "int65"}, "the type of 'a', column 1: found 'int65', expected a type of Arrow"),
        ({"a": "list<int64"}, "this bracket is never closed, expected '>'"),
        ({"a": "list<int64>>"}, "column 12: found '>', expected the end"),
        ({"a": "set<int64>"}, "'set' has no types inside"),
        ({"a": "list<" * 70 + "int8" + ">" * 70}, "nested in more than 63 levels"),
        ({"a": "duration[s]"}, r"column 'a' is duration\[s\], which JSON can't be read as"),
        (pa.schema([pa.field("a", pa.int64(), nullable=False)]), "'a' may have no nulls"),
        ("int64", "schema is 'int64', expected Schema or a dict"),
        ({}, "schema has no columns"),
    ],
)
def test_a_wrong_schema_is_an_error(path, schema, message):
    with pytest.raises(SeqflowError, match=message):
        sf.open(path, format=sf.JsonLines(schema=schema))


def test_types_are_written_as_text(path):
    schema = {
        "a": "list<item: int32>",
        "b": "struct<x: list<string>, y: timestamp[us, tz=UTC]>",
        "c": "map<string, decimal(10, 2)>",
    }
    assert sf.open(path, format=sf.JsonLines(schema=schema, extra_fields="ignore")).schema == pa.schema(
        {
            "a": pa.list_(pa.int32()),
            "b": pa.struct({"x": pa.list_(pa.string()), "y": pa.timestamp("us", "UTC")}),
            "c": pa.map_(pa.string(), pa.decimal128(10, 2)),
        }
    )


@pytest.mark.parametrize("policy", ["skip", "quarantine"])
def test_a_shuffled_loader_resumes_and_leaves_bad_lines_out(tmp_path, policy):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(f'{{"id": {row if row % 50 != 7 else "null,"}}}\n' for row in range(500)))
    bad_rows = sf.BadRows(policy, tmp_path / "bad.parquet" if policy == "quarantine" else None)

    def loader():
        return sf.Loader(
            path, format=sf.JsonLines(schema={"id": "int64"}, batch_bytes=900), fill=-1, batch=20, window=2000,
            shuffle=sf.Shuffle(3), bad_rows=bad_rows,
        )  # fmt: skip

    whole, first = [batch["id"].tolist() for batch in loader()], loader()
    assert sorted(row for batch in whole for row in batch) == [row for row in range(500) if row % 50 != 7]
    if policy == "skip":
        batches = iter(first)
        begun = [next(batches)["id"].tolist() for _ in range(9)]
        second = loader()
        second.load_state_dict(first.state_dict())
        assert begun + [batch["id"].tolist() for batch in second] == whole


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ("[]", "[[]]", "null or empty"),
        ('"text"', '[{"type": "image"}]', "of several types"),
        ("NaN", "null", "NaN or infinite"),
        *thorough(("null", "null", "null or empty"), ("{}", "null", "null or empty")),
    ],
)
def test_a_key_whose_type_the_first_lines_do_not_tell_is_no_obstacle_until_it_is_read(
    path, first, second, why
):
    lines = [
        f'{{"a": 1, "b": {first}}}',
        f'{{"a": 2, "b": {second}}}',
        *['{"a": 3}'] * 9000,
        '{"a": 4, "b": 5}',
    ]
    path.write_text("\n".join(lines))
    provider = sf.open(path, columns=["a"])
    assert [row["a"] for row in rows(provider)] == [1, 2, *[3] * 9000, 4]
    assert f"'b' is {why}" in sf.open(path).inferred
    bad = []
    rows(sf.open(path), bad)
    assert bad[-1].row == 9002
    assert 'schema={"b": …} declares its type' in bad[-1].reason
    assert sum(batch["a"].sum() for batch in sf.Loader(path, net="return a")) == 27007
    with pytest.raises(
        ProviderError, match=r"'b'.* no tensor form\nno value tells its type: declare it with schema="
    ):
        list(sf.Loader(path, bad_rows="skip"))


def test_a_key_that_comes_after_the_first_lines_is_an_error_or_ignored_and_named(path):
    lines = [{"a": row, "t": None} for row in range(6000)] + [{"a": 1, "t": "x"}, {"a": 2, "late": [1]}]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    bad = []
    rows(sf.open(path, columns=["a"]), bad)
    assert [row.row for row in bad] == [6001]
    assert "the key 'late' is not in the schema" in bad[0].reason
    assert 'format=sf.JsonLines(extra_fields="ignore")' in bad[0].reason
    ignoring = sf.open(path, columns=["a"], format=sf.JsonLines(extra_fields="ignore"))
    assert [row["a"] for row in rows(ignoring)] == [line["a"] for line in lines]
    declared = sf.open(path, format=sf.JsonLines(schema={"late": "list<int64>", "t": "string"}))
    assert rows(declared) == [
        {"a": line["a"], "t": line.get("t"), "late": line.get("late")} for line in lines
    ]


def test_types_come_from_the_first_lines_of_several_files(path):
    path.write_text('{"a": 1, "n": 1}\n')
    for number, line in enumerate(["", '{"a": 2, "n": 1.5, "b": ["x"]}', '{"a": 3, "c": {"d": true}}']):
        path.with_name(f"y{number}.jsonl").write_text(line + "\n")
    provider = sf.open(path.parent)
    kinds = {
        "a": pa.int64(),
        "n": pa.float64(),
        "b": pa.list_(pa.string()),
        "c": pa.struct({"d": pa.bool_()}),
    }
    assert provider.schema == pa.schema(kinds)
    assert provider.inferred == f"schema inferred from the first 3 lines of {path} and 2 more files"
    assert [row["a"] for row in rows(provider)] == [1, 2, 3]
    path.write_text("\n")
    for number in range(3):
        path.with_name(f"y{number}.jsonl").write_text("")
    with pytest.raises(
        ProviderError, match="no line to infer a schema from\n  declare the types with schema="
    ):
        sf.open(path.parent)


def test_malformed_lines_among_the_first_do_not_count(path):
    path.write_text('{"a": 1\n{"a": 1}\n[1]\n{"a": 9223372036854775808}\n{"a": 2.5}\n')
    provider, bad = sf.open(path), []
    assert provider.schema == pa.schema({"a": pa.float64()})
    assert provider.inferred.startswith("schema inferred from the first 2 lines")
    assert [row["a"] for row in rows(provider, bad)] == [None, 1.0, None, 9223372036854775808.0, 2.5]
    assert [row.row for row in bad] == [0, 2]


def test_a_fraction_in_a_column_of_integers_says_which_type_reads_it(path):
    path.write_text('{"x": 1}\n{"x": 1.5}\n')
    (reason,) = reasons(path, schema={"x": "int64"})
    assert reason.endswith('; schema={"x": "float64"} reads it')
    assert rows(sf.open(path, format=sf.JsonLines(schema={"x": "float64"})))[1] == {"x": 1.5}


@pytest.mark.parametrize("key", ["int64", "double", "string", "bool"])
def test_objects_become_maps_with_keys_of_their_type(path, key):
    names = {"int64": "-3", "double": "1.5", "string": '3, "x": "\\n', "bool": "true"}
    path.write_text("".join(json.dumps({"m": {name: 0.1}}) + "\n" for name in ["1, 2", names[key]]))
    bad = []
    found = rows(sf.open(path, format=sf.JsonLines(schema={"m": f"map<{key}, decimal(20, 17)>"})), bad)
    expected = {"int64": -3, "double": 1.5, "string": names["string"], "bool": True}[key]
    assert found[1] == {"m": [(expected, Decimal("0.1"))]}
    assert [row.row for row in bad] == ([] if key == "string" else [0])


def values_of(depth):
    leaves = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text("ab{\n", max_size=3)
    nested = st.lists(st.deferred(lambda: values_of(depth - 1)), max_size=2)
    objects = st.dictionaries(st.sampled_from("uvw"), st.deferred(lambda: values_of(depth - 1)), max_size=3)
    return leaves | nested | objects if depth else leaves


def agrees(value, found, kind):
    """Whether a value came out, or is of a type that no line tells."""
    if value is None or pa.types.is_null(kind):
        return found is None
    if pa.types.is_struct(kind):
        return all(agrees(value.get(one.name), found[one.name], one.type) for one in kind)
    if pa.types.is_list(kind):
        return len(value) == len(found) and all(
            agrees(*pair, kind.value_type) for pair in zip(value, found, strict=True)
        )
    return value == found


@given(st.lists(st.dictionaries(st.sampled_from("abc"), values_of(2)), min_size=1, max_size=6), st.data())
def test_optional_keys_come_out_as_the_values_that_json_has(tmp_path_factory, lines, data):
    path = tmp_path_factory.mktemp("lines") / "x.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    if not any(lines):
        return
    schema, bad = sf.open(path).schema, []
    known = [field.name for field in schema if "null" not in str(field.type)]
    chosen = data.draw(st.lists(st.sampled_from(known), unique=True, min_size=1)) if known else []
    found = rows(sf.open(path, columns=chosen)) if chosen else []
    for line, row in zip(lines, found, strict=bool(chosen)):
        assert all(agrees(line.get(name), row[name], schema.field(name).type) for name in chosen)
    found = rows(sf.open(path), bad)
    wrong = {row.row for row in bad}
    for number, (line, row) in enumerate(zip(lines, found, strict=True)):
        if number not in wrong:
            assert all(agrees(line.get(field.name), row[field.name], field.type) for field in schema)


@st.composite
def damaged(draw):
    """Lines of which some bytes are others, left out or doubled."""
    data = bytearray(draw(st.sampled_from([LINES, LINES * 3])))
    for _ in range(draw(st.integers(1, 6))):
        at, size = draw(st.integers(0, len(data))), draw(st.integers(0, 9))
        piece = draw(
            st.one_of(
                st.binary(max_size=6),
                st.text('{}[]",:\n\r\\ 0u-e\x00', max_size=8).map(str.encode),
                st.sampled_from(
                    [b"[" * 70, b'{"a":' * 80, b"1" * 400, b"\n" * 9, b'"\xff', b"NaN", b"1e999"]
                ),
            )
        )
        data[at : at + size] = piece
    return bytes(data)


def holds(found, said):
    """Whether a value that was read is that of its line; fields that the line does not name are null."""
    if not isinstance(said, dict) or not isinstance(found, dict):
        return found == said
    return said.keys() <= found.keys() and all(holds(one, said.get(name)) for name, one in found.items())


@given(damaged(), st.sampled_from([5, 30, 4096]))
def test_damaged_lines_are_bad_rows_and_never_more(tmp_path_factory, content, batch_bytes):
    path = tmp_path_factory.mktemp("lines") / "x.jsonl"
    path.write_bytes(content)
    schema = {"id": "int64", "ids": "list<int64>", "s": "struct<x: string>"}
    provider, bad, found = sf.open(path, format=sf.JsonLines(schema=schema, batch_bytes=batch_bytes)), [], []
    for block in provider.blocks():
        before = len(bad)
        batch = provider.read(block, bad_rows=bad)
        batch.validate(full=True)
        wrong = {row.row for row in bad[before:]}
        found += [(None if at in wrong else row) for at, row in enumerate(batch.to_pylist())]
    lines = [line for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip(b" \t\r")]
    assert len(found) == len(lines)
    for line, row in zip(lines, found, strict=True):
        if row is not None:
            assert holds(row, json.loads(line))


@pytest.mark.parametrize("wrap", ["{}", "[{}]", '{{"y": {}}}', '[{{"key": 1, "value": {}}}]'])
@pytest.mark.parametrize(
    ("kind", "text", "is_read"),
    [
        (pa.timestamp("us"), '"2024-01-31T12:30:00"', True),
        (pa.timestamp("us"), '"2024-01-31"', True),
        (pa.timestamp("us"), '"2024-01-31T12:30:00Z"', False),
        (pa.timestamp("us"), '"2024-01-31T12:30:00+02:00"', False),
        (pa.timestamp("s"), '"2024-01-31T12:30:00.5"', False),
        (pa.timestamp("us", "UTC"), '"2024-01-31T12:30:00+02:00"', True),
        (pa.timestamp("us", "UTC"), '"2024-01-31T12:30:00"', False),
        (pa.float32(), "3.4e38", True),
        (pa.float32(), "1e39", False),
        (pa.float32(), "-1e39", False),
        (pa.float64(), "1e39", True),
        (pa.uint8(), "255", True),
        (pa.uint8(), "256", False),
    ],
)
def test_times_keep_their_zone_and_numbers_are_finite_at_every_depth(path, wrap, kind, text, is_read):
    nested = {"{": kind, "[": pa.list_(kind)}.get(wrap[0]) if len(wrap) < 5 else pa.struct({"y": kind})
    if "key" in wrap:
        nested = pa.map_(pa.int64(), kind)
    path.write_text('{"x": ' + wrap.format(text) + '}\n{"x": null}\n')
    provider, bad = sf.open(path, format=sf.JsonLines(schema=pa.schema({"x": nested}))), []
    found = rows(provider, bad)
    assert [row.row for row in bad] == ([] if is_read else [0])
    if is_read and wrap == "{}":
        expected = (
            pa.array([json.loads(text)]).cast(kind) if text[0] == '"' else pa.array([json.loads(text)], kind)
        )
        assert found[0]["x"] == expected[0].as_py()
