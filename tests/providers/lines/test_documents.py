"""JSON in one array, or in objects over several lines, has the rows and bad rows of the same values in lines."""

import bz2
import gzip
import json
import math
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import MissingSourceError, ProviderError, ProviderOptionError
from seqflow.providers.lines import text_lines
from seqflow.providers.lines.documents import RowFinder

ROWS = [{"id": at, "ids": [at] * (at % 3), "s": {"x": f'a"{at}\\'}, "t": "[{,\n}]"} for at in range(20)]


def read(source, bad=None, **options):
    provider = sf.open(source, **options)
    bad = [] if bad is None else bad
    found = []
    for block in provider.blocks():
        before = len(bad)
        rows = provider.read(block, bad_rows=bad).to_pylist()
        wrong = {one.row for one in bad[before:]}
        found += [row for at, row in enumerate(rows) if at not in wrong]
    return found


FORMS = {
    "array": lambda rows: json.dumps(rows),
    "compact": lambda rows: json.dumps(rows, separators=(",", ":")),
    "indented": lambda rows: json.dumps(rows, indent=2),
    "tabs": lambda rows: (
        "\n\n \t" + json.dumps(rows, indent="\t", ensure_ascii=False).replace("\n", "\r\n") + "\r\n\n"
    ),
    "a row a line": lambda rows: "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n",
    "leading commas": lambda rows: "[" + "\n, ".join(map(json.dumps, rows)) + "]",
    "objects": lambda rows: "\n".join(json.dumps(row, indent=1) for row in rows),
    "objects apart": lambda rows: "\n\n".join(json.dumps(row, indent="\t") for row in rows) + "\n\n",
    "mark": lambda rows: "\ufeff" + json.dumps(rows, indent=1),
    "lines": lambda rows: "".join(json.dumps(row) + "\n" for row in rows),
}


@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".json.gz", ".ndjson.bz2"])
@pytest.mark.parametrize("batch_bytes", [7, 100, 1 << 20, 1])  # a byte each takes long
def test_rows_are_those_of_the_values(tmp_path, form, suffix, batch_bytes):
    path, data = tmp_path / f"x{suffix}", FORMS[form](ROWS).encode()
    path.write_bytes({"gz": gzip.compress, "z2": bz2.compress}.get(suffix[-2:], bytes)(data))
    assert read(path, format=sf.JsonLines(batch_bytes=batch_bytes)) == ROWS
    assert sf.open(path).kind == "jsonl"


letters = st.text(st.sampled_from('a"\\[]{},:\n é\x00'), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | letters,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(letters, inner, max_size=3),
    max_leaves=6,
)


@given(
    st.lists(st.dictionaries(letters, values, max_size=3), max_size=6),
    st.sampled_from([None, 0, 1, "\t"]), st.booleans(), st.integers(1, 60), st.booleans(),
)  # fmt: skip
def test_rows_are_found_in_pieces_of_any_size(rows, indent, ascii, size, is_array):
    each = [json.dumps(row, indent=indent, ensure_ascii=ascii) for row in rows]
    text = (json.dumps(rows, indent=indent, ensure_ascii=ascii) if is_array else "\n".join(each)).encode()
    finder = RowFinder("array" if is_array else "objects", at_start=True)
    shown = b"".join(finder(text[at : at + size]) for at in range(0, len(text), size))
    assert len(shown) == len(text)
    assert finder.is_whole or not text
    assert [json.loads(line) for line in shown.split(b"\n") if line.strip()] == rows


MALFORMED = {
    "1": 1, '{"id": "x"}': 1, '{"id": 1.5}': 1, '{"id": 1} {"id": 2}': 1, '{"id": 1 "s": 2}': 1, '{"id": 2e400}': 1, "": 1,
    '{"id": 1, "other": 2}': 1, "[1]": 1, '"a"': 1, '{"id": 1,}': 1, "[[{}]]": 1, '{"id": NaN}': 1, "nonsense": 1,
}  # fmt: skip


@pytest.mark.each_choice
@pytest.mark.parametrize("value", MALFORMED)
@pytest.mark.parametrize("place", [0, 1, 3])
@pytest.mark.parametrize("batch_bytes", [20, 4096, 1])
def test_a_malformed_element_is_a_bad_row(tmp_path, value, place, batch_bytes):
    texts = ['{"id": 0}', '{\n "id": 1}', '{"id": 2}']
    texts.insert(place, value)
    (tmp_path / "x.json").write_text("[\n" + ",\n".join(texts) + "\n]\n")
    bad, options = (
        [],
        {"format": sf.JsonLines(schema={"id": "int64"} if value == "" else None, batch_bytes=batch_bytes)},
    )
    if value in ('{"id": "x"}', '{"id": 1.5}', '{"id": 1, "other": 2}', '{"id": NaN}'):
        options["format"] = sf.JsonLines(schema=sf.open({"id": [1]}).schema, batch_bytes=batch_bytes)
    found = read(tmp_path / "x.json", bad, **options)
    if value:
        assert [row["id"] for row in found] == [0, 1, 2]
        line = 2 + place + (place > 1)
        assert [one.reason.partition(", column")[0] for one in bad] == [f"{tmp_path / 'x.json'}, line {line}"]
        with pytest.raises(ProviderError, match=rf"x\.json, line {line}, column"):
            [
                provider.read(block)
                for provider in [sf.open(tmp_path / "x.json", **options)]
                for block in provider.blocks()
            ]
    else:  # of two commas with nothing between, one belongs to a row
        assert len(bad) == 1
        assert len(found) + len(bad) >= 3


@pytest.mark.parametrize(
    "text",
    ["[,]", '[{"id": 0},]', '[,{"id": 0}]', '[{"id": 0},,{"id": 1}]', '[{"id": 0}]]', '[{"id": 0}] [{"id": 1}]', '[{"id": 0}]x]'],
)  # fmt: skip
@pytest.mark.parametrize("batch_bytes", [1, 5, 4096])
def test_what_is_not_one_array_has_bad_rows(tmp_path, text, batch_bytes):
    (tmp_path / "x.json").write_text(text)
    bad = []
    found = read(
        tmp_path / "x.json", bad, format=sf.JsonLines(schema={"id": "int64"}, batch_bytes=batch_bytes)
    )
    assert bad
    assert all(row["id"] in (0, 1) for row in found)


@pytest.mark.parametrize("text", ["[]", "[ \n ]\n", "", "\n"])
def test_an_empty_array_has_no_rows(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    assert read(tmp_path / "x.json", format=sf.JsonLines(schema={"id": "int64"})) == []
    (tmp_path / "y.json").write_text('[{"id": 1}]')
    assert read([tmp_path / "x.json", tmp_path / "y.json"]) == [{"id": 1}]


@pytest.mark.parametrize("text", ['[{"id": 0}, {"id": 1]', '[{"id": 0}, {"id": "1]'])
def test_a_bracket_or_quote_that_is_not_closed_is_damage(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ProviderError, match=r"x\.json can't be read: a bracket or quote is not closed"):
        read(tmp_path / "x.json", format=sf.JsonLines(schema={"id": "int64"}))


@pytest.mark.parametrize(
    "text",
    [
        '[{"id": 0},\n{"id": 1}\n', '{"id": 0,\n{"id": 1}\n', '{"id": 0},\n{"id": 1},\n', '{"id": [\n{"id": 1}\n',
        '[1, 2\n{"id": 1}\n',
    ],
)  # fmt: skip
def test_lines_that_begin_like_a_document_are_lines(tmp_path, text):
    (tmp_path / "x.jsonl").write_text(text + '{"id": 2}\n')
    bad = []
    found = read(tmp_path / "x.jsonl", bad, format=sf.JsonLines(schema={"id": "int64"}))
    lines = [line for line in text.splitlines() if line]
    assert {"id": 2} in found
    assert len(found) + len(bad) == len(lines) + 1


def test_numbers_and_texts_are_read_as_in_lines(tmp_path):
    rows = [{"x": 0.1, "f": 16777217.0000000001}, {"x": math.inf, "f": math.nan}, {"x": 2.5, "f": 1}]
    text = json.dumps(rows, indent=1).replace("2.5", "2e308").replace("16777217.0", "16777217.0000000001")
    (tmp_path / "x.json").write_text(text)
    bad = []
    found = read(tmp_path / "x.json", bad, format=sf.JsonLines(schema={"x": "double", "f": "float"}))
    assert found[0] == {"x": 0.1, "f": 16777218.0}
    assert found[1]["x"] == math.inf
    assert math.isnan(found[1]["f"])
    assert len(found) == 2
    assert "2e308 is beyond double" in bad[0].reason


def test_json_files_of_folders_are_read_when_they_are_asked_for(tmp_path):
    (tmp_path / "d").mkdir()
    for name in ("a.json", "b.json"):
        (tmp_path / "d" / name).write_text(json.dumps([{"name": name}], indent=1))
    (tmp_path / "d" / "README.md").write_text("# about")
    (tmp_path / "d" / "c.jsonl").write_text('{"name": "c.jsonl"}\n')
    names = lambda source, **options: [row["name"] for row in read(source, **options)]  # noqa: E731
    (tmp_path / "d" / "README.md").unlink()
    assert names(tmp_path / "d") == ["c.jsonl"]
    assert names(tmp_path / "d" / "*.json") == ["a.json", "b.json"]
    assert names(f"{tmp_path}/**/*.json") == ["a.json", "b.json"]
    assert names(tmp_path / "d", kind="json") == ["a.json", "b.json", "c.jsonl"]
    assert names(tmp_path / "d", kind="jsonl") == ["c.jsonl"]
    assert names([tmp_path / "d" / "b.json", tmp_path / "d" / "c.jsonl"]) == ["b.json", "c.jsonl"]
    assert names(tmp_path / "d" / "*", format=sf.JsonLines()) == ["c.jsonl"]
    assert sf.open(tmp_path / "d").left_out == "2 files of other kinds left out (.json)"
    (tmp_path / "d" / "c.jsonl").unlink()
    with pytest.raises(ProviderOptionError, match=r"kind=\"json\" or a glob '\*\.json' reads it"):
        sf.open(tmp_path / "d")
    with pytest.raises(MissingSourceError):
        sf.open(tmp_path / "*.json")


def test_a_search_finds_the_json_files_that_are_asked_for(tmp_path):
    (tmp_path / "a.json").write_text('[{"x": 1}]')
    (tmp_path / "a.jsonl").write_text('{"x": 1}')
    new = tmp_path / "new.json"
    for source, options, finds in [
        (tmp_path / "*.json", {}, True), (tmp_path, {"kind": "json"}, True), (tmp_path, {}, False),
        (tmp_path / "a.json", {}, False), (tmp_path, {"kind": "jsonl"}, False),
    ]:  # fmt: skip
        assert sf.open(source, **options).search.finds(new) is finds
    assert not sf.open(tmp_path, kind="json").search.finds(tmp_path / "new.csv")


def test_larger_documents_are_an_error_that_says_to_write_lines(tmp_path):
    (tmp_path / "x.json").write_text(json.dumps(ROWS, indent=1))
    with (
        mock.patch.object(text_lines, "INT32_MAX", 100),
        pytest.raises(ProviderError, match="one object in each line"),
    ):
        next(iter(sf.Loader(tmp_path / "x.json")))


def test_a_loader_shuffles_and_resumes_documents(tmp_path):
    rows = [{"id": at, "text": "x" * (at % 50)} for at in range(500)]
    paths = []
    for name, form in (
        ("a.json", "indented"),
        ("b.jsonl", "lines"),
        ("c.json.gz", "a row a line"),
        ("d.jsonl", "objects"),
    ):
        data = FORMS[form](rows).encode()
        paths.append(tmp_path / name)
        paths[-1].write_bytes(gzip.compress(data) if name.endswith("gz") else data)

    def loader():
        return sf.Loader(paths, batch=7, shuffle=sf.Shuffle(seed=3), format=sf.JsonLines(batch_bytes=900))

    ids = [batch["id"].tolist() for batch in loader()]
    assert sorted(one for batch in ids for one in batch) == sorted(list(range(500)) * 4)
    first, iterator = loader(), None
    iterator = iter(first)
    for _ in range(20):
        next(iterator)
    resumed = loader()
    resumed.load_state_dict(first.state_dict())
    assert [batch["id"].tolist() for batch in resumed] == ids[20:]


def test_damaged_documents_are_left_out(tmp_path):
    (tmp_path / "a.json").write_text('[{"id": 0}]')
    (tmp_path / "b.json").write_text('[{"id": 0}, {"id": "1]')
    loader = sf.Loader(tmp_path / "*.json", format=sf.JsonLines(schema={"id": "int64"}), bad_files="skip")
    assert [batch["id"].tolist() for batch in loader] == [[0]]
