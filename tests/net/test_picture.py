"""Nets as pictures."""

from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

import seqflow as sf
from seqflow import Net, TensorSpec
from seqflow.drawing.svg import THEMES
from seqflow.signature import Described, OwnRows

SVG = "{http://www.w3.org/2000/svg}"
SPECS = {
    "v": TensorSpec("int32", "{sum(n)}", Described("n")),
    "n": TensorSpec("int64", "{rows:0..8}", OwnRows("rows")),
}
NET = Net("ids, m = truncate(v, n, max_length=5)\nh = gather(table, ids)\nreturn h, m")


def drawn(svg):
    """For each box or label its texts, with the fill and the place of its box."""
    found = {}
    for one in ElementTree.fromstring(svg).iter(f"{SVG}g"):
        box, texts = one.find(f"{SVG}rect"), [text.text for text in one.iter(f"{SVG}text")]
        y = float(one.find(f"{SVG}text").get("y"))
        found[texts[0]] = (texts[1:], None if box is None else box.get("fill"), y)
    return found


def test_ops_stand_between_what_they_take_and_what_they_make():
    shown = drawn(NET.to_svg("light"))
    for above, below in pairwise(["v", "truncate", "ids", "gather", "h"]):
        assert shown[above][2] < shown[below][2]
    assert shown["n"][2] == shown["v"][2]
    assert shown["table"][2] == shown["ids"][2]


def test_ops_inputs_constants_and_results_have_colours():
    theme = THEMES["light"]
    shown = drawn(NET.bind(table=np.ones((9, 2))).to_svg("light"))
    assert {name: shown[name][1] for name in ("truncate", "v", "table", "h", "ids")} == {
        "truncate": theme.fills[0],
        "v": theme.empty,
        "table": theme.fills[2],
        "h": theme.fills[1],
        "ids": None,
    }


def test_an_inference_adds_dtypes_and_shapes():
    shown = drawn(NET.bind(table=np.ones((9, 2))).infer(SPECS).to_svg())
    assert shown["ids"][0] == ["int32{sum(m):0..40}"]
    assert shown["table"][0] == ["float64{9,2}"]
    assert drawn(NET.to_svg())["ids"][0] == []


def test_an_expression_is_shown_as_it_is_written():
    shown = drawn(Net("y = 2 * x + lengths_sum(v, n)").to_svg())
    assert {"2 * x + lengths_sum(v, n)", "lengths_sum", "x", "y"} <= shown.keys()


def test_the_words_have_the_statements_and_shapes():
    (words,) = ElementTree.fromstring(NET.bind(table=np.ones(9)).infer(SPECS).to_svg()).iter(f"{SVG}desc")
    assert words.text.startswith("ids, m = truncate(v, n, max_length=5); h = gather(table, ids); ")
    assert "table float64{9}" in words.text


@pytest.mark.parametrize("text", ["", "return a", "same_lengths(a, b)", "x, _ = pad(a, n)"])
def test_nets_of_one_op_and_of_none_have_a_picture(text):
    ElementTree.fromstring(Net(text).to_svg("dark"))


def test_of_a_long_net_the_beginning_is_drawn():
    shown = drawn(Net("\n".join(f"x{n + 1} = x{n} * 2" for n in range(100))).to_svg())
    assert "… 70 more steps" in shown
    assert "x30" in shown
    assert "x31" not in shown


def test_hostile_text_is_only_ever_text():
    svg = Net("y = gather(x, ['<script>', '\\x1b'])\nlänge = ä < 2").to_svg()
    assert "<script" not in svg
    assert "\x1b" not in svg
    assert "ä < 2" in drawn(svg)


def test_other_themes_are_refused():
    with pytest.raises(sf.OpError, match="theme is 'blue'"):
        NET.to_svg("blue")
