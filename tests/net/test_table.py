"""Nets as HTML tables."""

from xml.etree import ElementTree

import numpy as np
import pytest

from seqflow import Net, TensorSpec
from seqflow.signature import Described, OwnRows

RECORD = OwnRows("the record")
SPECS = {
    "doc.lengths": TensorSpec("int64", "{rows:0..256}", RECORD),
    "doc.values": TensorSpec("int32", "{sum(doc.lengths)}", Described("doc.lengths")),
}
TEXT = """
ids, n = truncate(doc.values, doc.lengths, max_length=512)
x, mask = pad(ids, n, side="left")
score = sparse_lengths_sum(table, ids, n)
ends = lengths_to_offsets(n)
again, _ = truncate(doc.values, doc.lengths, max_length=3)
return x, mask, score, again, doc.lengths
"""
NET = Net(TEXT).bind(table=np.zeros((10, 4), np.float32))


def table(net):
    return ElementTree.fromstring(net._repr_html_().replace("<wbr/>", ""))


def texts(net):
    """The texts of all cells and notes that have one."""
    return [
        element.text
        for element in table(net).iter()
        if element.tag in ("td", "div") and (element.text or "").strip()
    ]


def rows(net):
    """The cells of each row of the table, below its head."""
    return [[cell.text or "" for cell in row] for row in table(net).iter("tr")][1:]


def test_every_tensor_has_a_row_with_the_call_that_makes_it():
    shown = rows(NET)
    assert [row[0] for row in shown] == [
        "doc.values", "doc.lengths", "table", "ids", "n", "x", "mask", "score", "ends", "again",
    ]  # fmt: skip
    assert [row[2] for row in shown if row[2]] == [
        "input",
        "input",
        "constant",
        "truncate(doc.values, doc.lengths, max_length=512)",
        "pad(ids, n, side='left')",
        "sparse_lengths_sum(table, ids, n)",
        "lengths_to_offsets(n)",
        "truncate(doc.values, doc.lengths, max_length=3)",
    ]


def test_results_are_in_the_title_and_constants_are_named():
    title = "a net of 5 steps: x, mask, score, again, doc.lengths"
    assert texts(NET)[0] == title
    assert [row[0] for row in rows(NET) if row[2] == "constant"] == ["table"]


def test_a_call_inside_an_expression_has_a_row_of_its_own_without_a_name():
    net = Net("y = 2 * x + lengths_sum(v, n)\nz = concat([x, y], axis=0)")
    assert [row[::2] for row in rows(net)[3:]] == [
        ["", "lengths_sum(v, n)"],
        ["y", "2 * x + lengths_sum(v, n)"],
        ["z", "concat([x, y], axis=0)"],
    ]


def test_an_inference_adds_dtypes_shapes_and_bytes():
    shown = texts(NET.infer(SPECS))
    assert "bool{rows:0..256,max(n):0..512} ≤ 128.0 KiB" in shown
    assert "float32{10,4} ≤ 160 B" in shown
    assert shown[-1] == "all tensors ≤ ?"
    assert [text for text in texts(NET) if text not in shown] == []


def test_a_tensor_is_made_above_the_steps_that_take_it():
    net = Net("z = gather(y, n)\ny = gather(x, n)")
    assert [row[0] for row in rows(net)] == ["x", "n", "y", "z"]


@pytest.mark.parametrize(
    "literal", ["</td><script>alert(1)</script>", "]]>", "&amp;", "a\\x00b\\x1b", "\\ud800", "\"'<"]
)
def test_hostile_text_is_only_ever_text(literal):
    net = Net(f'y = pad(x, n, side="right", fill=0)\nz = gather(x, [{literal!r}])')
    html = net._repr_html_()
    tags = {element.tag for element in table(net).iter()}
    assert tags == {"div", "table", "tr", "th", "td"}
    assert "script>" not in html.replace("&lt;script&gt;", "").replace("&lt;/script&gt;", "")


def test_names_in_any_script_are_shown():
    net = Net("länge, 長さ = truncate(ä, ß, max_length=1)")
    assert {"länge", "長さ", "ä", "ß"} < set(texts(net))


def test_long_calls_are_cut():
    net = Net(f"y = gather({'x' * 60}, {list(range(100))})")
    assert [len(row[2]) for row in rows(net)] == [5, 100]
    assert rows(net)[1][2].endswith("…")


def test_the_page_needs_nothing_from_elsewhere():
    html = NET._repr_html_()
    assert "http" not in html
    assert "<script" not in html
    assert "color" not in html  # the page's: light or dark


def test_nets_of_one_statement_and_of_none_are_shown():
    assert [row[-1] for row in rows(Net("same_lengths(a, b)"))] == ["input", "input", "same_lengths(a, b)"]
    assert rows(Net("return a")) == [["a", "", "input"]]


def test_results_that_are_thrown_away_have_no_row():
    assert [row[0] for row in rows(Net("x, _ = pad(a, n)"))] == ["a", "n", "x"]
    assert [row[-1] for row in rows(Net("_, _ = pad(a, n)"))] == ["input", "input", "pad(a, n)"]
