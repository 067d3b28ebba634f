"""Keys of rows: equal for equal values, of any type, in any file; places that find the rows again."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seqflow.curation import NearDuplicates
from seqflow.curation.keyed_rows import keyed
from seqflow.curation.rules import COMPARISON, identity
from seqflow.errors import OpError, OpTypeError, ProviderError, ProviderOptionError


def key_table(path, **rules):
    provider = keyed(str(path), source={}, rules=rules)
    return pa.concat_tables(pa.table(provider.read(block)) for block in provider.blocks())


def exact_keys(path, *columns):
    table = key_table(path, deduplicate={"columns": list(columns)})
    return list(zip(table["high"].to_pylist(), table["low"].to_pylist(), strict=True))


COLUMNS = {
    "text": ["a", "", None, "a", "b"],
    "dictionary": pa.array(["a", "", None, "a", "b"]).dictionary_encode(),
    "number": [1, 0, None, 1, 2],
    "float": [0.5, 0.0, None, 0.5, float("nan")],
    "list": [[1, None], [], None, [1, None], [1, 0]],
    "texts": [["a", "b"], [], None, ["a", "b"], ["ab"]],
    "struct": [{"x": 1, "y": "a"}, {"x": 0, "y": ""}, None, {"x": 1, "y": "a"}, {"x": 1, "y": "b"}],
}


@pytest.mark.parametrize("name", COLUMNS)
def test_equal_values_have_equal_keys_and_others_have_others(tmp_path, name):
    pq.write_table(pa.table({"c": COLUMNS[name]}), tmp_path / "a.parquet")
    first, empty, null, again, other = exact_keys(tmp_path / "a.parquet", "c")
    assert first == again
    assert len({first, empty, null, other}) == 4
    assert all(0 <= half < 2**63 for half in first)


def test_keys_are_those_of_all_columns_and_of_no_place(tmp_path):
    rows = {"a": [1, 1, 2, 1], "b": ["x", "y", "x", "x"], "c": [1, 2, 3, 4]}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet", row_group_size=1)
    one, two, three, four = exact_keys(tmp_path / "a.parquet", "a", "b")
    assert one == four
    assert len({one, two, three}) == 3
    assert exact_keys(tmp_path / "a.parquet", "b", "a")[0] != one  # columns in another order


def test_texts_that_run_together_are_not_equal(tmp_path):
    pq.write_table(pa.table({"a": ["ab", "a"], "b": ["c", "bc"]}), tmp_path / "a.parquet")
    one, two = exact_keys(tmp_path / "a.parquet", "a", "b")
    assert one != two


def test_places_are_of_rows_before_where(tmp_path):
    pq.write_table(pa.table({"n": np.arange(10), "t": ["a"] * 10}), tmp_path / "a.parquet", row_group_size=4)
    provider = keyed(
        str(tmp_path / "a.parquet"), source={"where": "n % 3 == 1"}, rules={"deduplicate": {"columns": ["t"]}}
    )
    found = np.concatenate(
        [pa.table(provider.read(block))["place"].to_numpy() for block in provider.blocks()]
    )
    assert [(place >> 32) * 4 + (place & 0xFFFFFFFF) for place in found.tolist()] == [1, 4, 7]


def test_bands_are_equal_where_the_words_are(tmp_path):
    texts = ["The cat, the dog & the bird.", "the cat the DOG -- the bird", "", "one two", None]
    tokens = [[1, 2, 3, 4, 5], [1, 2, 3, 4, 5], [], [1, 2], None]
    words = [None if text is None else text.split() for text in texts]
    pq.write_table(pa.table({"text": texts, "tokens": tokens, "words": words}), tmp_path / "a.parquet")
    for column in ("text", "tokens"):
        table = key_table(tmp_path / "a.parquet", near_duplicates={"column": column, "bands": 3, "ngram": 4})
        assert table.column_names == ["place", "band_000", "band_001", "band_002"]
        bands = list(zip(*(table[name].to_pylist() for name in table.column_names[1:]), strict=True))
        assert bands[0] == bands[1]
        assert min(bands[0]) >= 0
        assert bands[2:] == [(-1, -1, -1)] * 3  # without n-grams of 4
    listed = key_table(tmp_path / "a.parquet", near_duplicates={"column": "words", "bands": 1, "ngram": 2})
    assert [one >= 0 for one in listed["band_000"].to_pylist()] == [True, True, False, True, False]


def test_shares_are_of_n_grams_in_the_evaluation_sets(tmp_path):
    (tmp_path / "eval").mkdir()
    pq.write_table(pa.table({"text": ["alpha beta gamma delta", None]}), tmp_path / "eval" / "e.parquet")
    texts = ["Beta, gamma! Delta?", "x alpha beta gamma y z", "gamma beta alpha", "alpha beta", None]
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    rule = {"column": "text", "against": str(tmp_path / "eval"), "ngram": 3}
    shares = key_table(tmp_path / "a.parquet", decontaminate=rule)["share"].to_pylist()
    assert shares == [1.0, 0.25, 0.0, -1.0, -1.0]  # fewer words than 3


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            {"near_duplicates": {"column": "number"}},
            "NearDuplicates: column 'number' is int64, expected texts",
        ),
        (
            {"deduplicate": {"columns": ["text"], "keep": "highest:text"}},
            "'text' is string, expected numbers",
        ),
        ({"deduplicate": {"columns": ["texts"]}}, "no column 'texts'"),
        (
            {"deduplicate": {"columns": ["text", "text.size"]}},
            "columns has 'text.size', and text has type string",
        ),
        (
            {"deduplicate": {"columns": ["text"], "against": "a.parquet", "keep": "highest:doc.size"}},
            "keep has 'doc.size', and there is no column 'doc.size'",
        ),
    ],
)
def test_columns_of_a_wrong_type_are_refused_when_opened(tmp_path, rules, message):
    pq.write_table(pa.table({"text": ["a"], "number": [1]}), tmp_path / "a.parquet")
    with pytest.raises(ProviderError, match=message):
        keyed(str(tmp_path / "a.parquet"), source={}, rules=rules)


def test_bytes_are_compared_as_text_also_where_they_are_none(tmp_path):
    texts = [b"One two three", "one two three \xe9".encode("latin-1"), "ONE two three é".encode(), None]
    pq.write_table(pa.table({"bytes": pa.array(texts, pa.binary())}), tmp_path / "a.parquet")
    rule = {"column": "bytes", "bands": 2, "ngram": 3}
    first, broken, other, null = key_table(tmp_path / "a.parquet", near_duplicates=rule)[
        "band_000"
    ].to_pylist()
    assert null == -1
    assert first == broken  # U+FFFD is no letter
    assert other >= 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (pa.array([1, None, -7], pa.int16()), pa.array([1, None, -7], pa.int64())),
        (pa.array([1, None, 7], pa.uint16()), pa.array([1, None, 7], pa.int32())),
        (
            pa.array([0.5, None, float("nan")], pa.float32()),
            pa.array([0.5, None, float("nan")], pa.float64()),
        ),
        (pa.array([-0.0, None, 1.0]), pa.array([0.0, None, 1.0])),
        (pa.array(["a", None, ""], pa.string()), pa.array(["a", None, ""], pa.large_string())),
        (
            pa.array([[1], None, []], pa.list_(pa.int32())),
            pa.array([[1], None, []], pa.large_list(pa.int64())),
        ),
    ],
)
def test_widths_do_not_count(tmp_path, one, other):
    pq.write_table(pa.table({"c": one}), tmp_path / "one.parquet")
    pq.write_table(pa.table({"c": other}), tmp_path / "other.parquet")
    assert exact_keys(tmp_path / "one.parquet", "c") == exact_keys(tmp_path / "other.parquet", "c")


def bands_of(path, texts, **rule):
    pq.write_table(pa.table({"text": texts}), path)
    table = key_table(path, near_duplicates={"column": "text", "bands": 1, "rows": 32, **rule})
    return table["band_000"].to_pylist()


def test_bands_are_those_of_the_sketch(tmp_path):
    texts = ["one two three four five six", "one two three four five", "", "ONE two three, four five six"]
    found = {
        sketch: bands_of(tmp_path / "a.parquet", texts, sketch=sketch)
        for sketch in ("minhash", "one_permutation")
    }
    assert found["minhash"] == bands_of(tmp_path / "a.parquet", texts)
    for one in found.values():
        assert (one[0] == one[3], one[0] == one[1], one[2]) == (True, False, -1)
    assert found["minhash"][0] != found["one_permutation"][0]


def test_the_identity_of_a_rule_has_its_sketch_if_it_is_not_the_one_of_earlier_runs():
    fields = {"column": "text", "ngram": 5, "bands": None, "rows": None, "threshold": None, "seed": 1}
    assert identity(NearDuplicates(column="text")) == {**fields, "comparison": COMPARISON}
    other = identity(NearDuplicates(column="text", sketch="one_permutation"))
    assert other == {**fields, "sketch": "one_permutation", "comparison": COMPARISON}


def test_a_sketch_that_is_not_taken(tmp_path):
    with pytest.raises(OpError, match="NearDuplicates: bands times rows is 4100, expected at most 4096"):
        NearDuplicates(column="text", bands=1025, rows=4, sketch="one_permutation")
    with pytest.raises(OpTypeError, match="sketch"):
        NearDuplicates(column="text", sketch="simhash")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("किताबें की दुकान", ["किताबें", "की", "दुकान"]),
        ("e\u0301te\u0301 a", ["été", "a"]),
        ("don't 3 ٣", ["don", "t", "3", "٣"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("中文 and かな", ["中", "文", "and", "か", "な"]),
        ("iPhone15发布", ["iphone15", "发", "布"]),
        ("ကမ္ဘာ", ["က", "မ္", "ဘာ"]),
        ("한국어 문장", ["한국어", "문장"]),
    ],
)
def test_words_are_runs_of_letters_marks_and_digits_or_letters_of_scripts_without_blanks(
    tmp_path, text, words
):
    import unicodedata

    spaced = [" ".join(words), " ".join(f"{word} x" for word in words)]
    forms = [text, unicodedata.normalize("NFD", text), text.upper()]
    found = bands_of(tmp_path / "a.parquet", [*spaced, *forms], ngram=len(words))
    lists = pa.table({"text": [[word.lower() for word in words]]})
    pq.write_table(lists, tmp_path / "b.parquet")
    rule = {"column": "text", "bands": 1, "rows": 32, "ngram": len(words)}
    (listed,) = key_table(tmp_path / "b.parquet", near_duplicates=rule)["band_000"].to_pylist()
    assert {found[0], *found[2:]} == {listed}
    assert found[1] != listed
    assert bands_of(tmp_path / "a.parquet", [text], ngram=len(words) + 1) == [-1]


def test_the_lost_rows_of_a_damaged_block_are_known(tmp_path):
    for name in "ab":
        table = pa.table({"text": [f"{name}{at}" for at in range(30)]})
        pq.write_table(table, tmp_path / f"{name}.parquet", write_page_checksum=True, compression="none")
    provider = keyed(
        str(tmp_path), source={"bad_files": "skip"}, rules={"deduplicate": {"columns": ["text"]}}
    )
    path = tmp_path / "b.parquet"
    chunk, content = pq.read_metadata(path).row_group(0).column(0), bytearray(path.read_bytes())
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    content[start + chunk.total_compressed_size - 9] ^= 255
    path.write_bytes(content)
    found = [provider.read_kept(block) for block in provider.blocks()]
    assert [(one.table.num_rows, one.damage and one.damage.rows) for one in found] == [(30, None), (0, 30)]


def turns(*rows):
    """Return chats of (role, content, name)."""
    return [
        None if row is None else [dict(zip(("role", "content", "name"), turn, strict=True)) for turn in row]
        for row in rows
    ]


CHATS = turns(
    [("user", "a", "x"), ("bot", "b", "y")],
    [("user", "a", "z"), ("bot", "b", None)],
    [("user", "ab", "x"), ("bot", "", "y")],
    [("bot", "a", "x"), ("user", "b", "y")],
    [("user", "a", "x")],
    [],
    None,
)


@pytest.mark.parametrize("form", ["parquet", "jsonl"])
def test_fields_of_structs_in_lists_are_compared_without_the_others(tmp_path, form):
    path = tmp_path / f"chats.{form}"
    if form == "parquet":
        pq.write_table(pa.table({"messages": CHATS, "n": np.arange(7)}), path, row_group_size=2)
    else:
        path.write_text("".join(json.dumps({"messages": chat}) + "\n" for chat in CHATS))
    keys = exact_keys(path, "messages.role", "messages.content")
    assert keys[0] == keys[1]
    assert len({*keys}) == 6
    roles = exact_keys(path, "messages.role")
    assert roles[0] == roles[1] == roles[2]
    assert len({*roles}) == 5


def test_keys_of_fields_are_the_same_whatever_other_fields_there_are(tmp_path):
    few = [
        None if chat is None else [{"content": one["content"], "role": one["role"]} for one in chat]
        for chat in CHATS
    ]
    for name, chats in (("all", CHATS), ("few", few)):
        pq.write_table(pa.table({"messages": chats}), tmp_path / f"{name}.parquet")
    names = ("messages.role", "messages.content")
    assert exact_keys(tmp_path / "all.parquet", *names) == exact_keys(tmp_path / "few.parquet", *names[::-1])
    assert exact_keys(tmp_path / "few.parquet", *names) == exact_keys(tmp_path / "few.parquet", "messages")


def test_rules_of_different_fields_of_one_column_do_not_mix(tmp_path):
    words = "one two three four five six"
    docs = [{"title": "a", "text": words, "at": 3}, {"title": "a", "text": words, "at": None}, None]
    pq.write_table(pa.table({"doc": docs, "text": [words, words, None]}), tmp_path / "a.parquet")
    of_fields = key_table(
        tmp_path / "a.parquet",
        deduplicate={"columns": ["doc.title"], "keep": "highest:doc.at"},
        near_duplicates={"column": "doc.text", "bands": 2},
    )
    of_column = key_table(tmp_path / "a.parquet", near_duplicates={"column": "text", "bands": 2})
    for name in ("band_000", "band_001"):
        assert of_fields[name].to_pylist() == of_column[name].to_pylist()
    high = of_fields["high"].to_pylist()
    assert high[0] == high[1] != high[2]
    score = of_fields["score"].to_pylist()
    assert score[0] > score[1] == score[2]  # a field of a null is null


@pytest.mark.parametrize(
    ("column", "is_told_to_join"), [("messages", True), ("messages.content", True), ("n", False)]
)
def test_texts_of_structs_in_lists_are_no_text_of_a_row(tmp_path, column, is_told_to_join):
    pq.write_table(pa.table({"messages": CHATS, "n": np.arange(7)}), tmp_path / "a.parquet")
    with pytest.raises(
        ProviderOptionError, match=rf"column '{column}' is .*, expected texts, or lists"
    ) as caught:
        key_table(tmp_path / "a.parquet", near_duplicates={"column": column})
    assert ("join the texts" in str(caught.value)) is is_told_to_join
