"""Small tables, as text and as HTML."""

from xml.etree import ElementTree

import pytest

from seqflow.drawing.tables import breakable, html_table, text_table


def test_columns_are_aligned_and_integers_stand_on_the_right():
    rows = [("id", "key"), (5, "a"), (1000, "long")]
    assert text_table("T", rows) == "T\n  id     key\n      5  a\n  1,000  long"
    assert text_table("T", []) == "T"


def test_the_html_has_the_same_cells_escaped():
    root = ElementTree.fromstring(html_table("<T>", ("a<", "b"), [("<b>", 1000), ("\x1b", "&")]))
    rows = [[cell.text for cell in row] for row in root.iter("tr")]
    assert rows == [["a<", "b"], ["<b>", "1,000"], ["\\x1b", "&"]]
    assert (root[0].text, root[1].get("aria-label")) == ("<T>", "<T>")


def test_without_a_header_the_first_cell_is_the_heading_of_its_row():
    root = ElementTree.fromstring(html_table("T", (), [("rows", "5")]))
    assert [(cell.tag, cell.get("scope")) for cell in next(root.iter("tr"))] == [("th", "row"), ("td", None)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("doc.values", ["doc.", "values"]),
        ("data/long_name.parquet", ["data/", "long_", "name.", "parquet"]),
        ("uint8{sum(n):0..2095665}", ["uint8{", "sum(", "n):0..", "2095665}"]),
        ("1,234.5 of 20", ["1,234.5 of 20"]),
        ("<script>", ["&lt;script&gt;"]),
    ],
)
def test_long_texts_break_behind_marks_and_not_inside_words_and_numbers(text, parts):
    assert breakable(text).split("<wbr/>") == parts
