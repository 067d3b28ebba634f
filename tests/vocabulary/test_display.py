"""A vocabulary as a table, in text and in HTML."""

import pickle
from xml.etree import ElementTree

import pytest

from seqflow import Vocabulary


def rows_of(vocabulary):
    root = ElementTree.fromstring(vocabulary._repr_html_())
    return [[cell.text or "" for cell in row] for row in root.iter("tr")]


def test_what_was_built_shows_ids_keys_and_counts_the_most_frequent_first():
    built = Vocabulary.build(["re", "os", "re", "abc"])
    assert repr(built) == (
        "Vocabulary of 4 ids, frozen\n"
        "  id  key      count\n"
        "   0  unknown\n"
        "   1  're'         2\n"
        "   2  'abc'        1\n"
        "   3  'os'         1"
    )
    assert rows_of(built)[:3] == [["id", "key", "count"], ["0", "unknown", ""], ["1", "'re'", "2"]]
    assert repr(pickle.loads(pickle.dumps(built))) == repr(built)


def test_counts_are_left_out_where_they_are_not_known(tmp_path):
    Vocabulary(["re", "os", "re"]).save(tmp_path / "words.arrow")
    assert rows_of(Vocabulary.load(tmp_path / "words.arrow"))[:2] == [["id", "key"], ["0", "unknown"]]


def test_an_open_one_says_how_many_ids_there_can_be():
    assert repr(Vocabulary([30, -1], max_size=9)) == (
        "Vocabulary of 3 of 9 ids, open\n  id  key\n   0  unknown\n   1  30\n   2  -1"
    )


def test_an_empty_one_has_the_unknown_key_alone():
    assert repr(Vocabulary()) == "Vocabulary of 1 ids, open\n  id  key\n   0  unknown"
    assert rows_of(Vocabulary.build([])) == [["id", "key", "count"], ["0", "unknown", ""]]


def test_of_many_keys_the_first_are_shown():
    shown = rows_of(Vocabulary(range(2000)))
    assert len(shown) == 15
    assert shown[-1] == ["…", "1,988 more"]


@pytest.mark.parametrize(
    ("key", "shown"),
    [("<b>", "'<b>'"), ("\x1b", "'\\x1b'"), (b"\xff", "'\ufffd'"), ("x" * 90, f"'{'x' * 38}…")],
)
def test_keys_are_only_ever_text(key, shown):
    assert rows_of(Vocabulary([key]))[-1] == ["1", shown]
    assert shown in repr(Vocabulary([key]))
