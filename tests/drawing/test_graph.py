"""Graphs: no text leaves its box, no boxes overlap, and lines lead down."""

import re
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqflow.drawing.graph import GraphNode, graph
from seqflow.drawing.svg import THEMES

SVG = "{http://www.w3.org/2000/svg}"
LETTER = 7.83
"""The width of a letter: 0.602 of the size of the font, in the widest of the fonts."""


def boxes_of(root):
    found = []
    for one in root.iter(f"{SVG}rect"):
        x, y, width, height = (float(one.get(key)) for key in ("x", "y", "width", "height"))
        found.append((x, y, x + width, y + height))
    return found


def drawn(names, edges):
    nodes = [GraphNode(name, "int64{?}", THEMES["light"].empty, is_target=True) for name in names]
    root = ElementTree.fromstring(graph("Graph", "words", nodes, edges, THEMES["light"]))
    width, height = map(float, root.get("viewBox").split()[2:])
    return root, boxes_of(root), width, height


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 30))
    names = [f"n{'x' * draw(st.integers(0, 60))}" for _ in range(count)]
    edges = {
        (above, below) for below in range(1, count) for above in draw(st.sets(st.integers(0, below - 1), max_size=4))
    }  # fmt: skip
    return names, sorted(edges)


@given(graphs())
def test_boxes_are_apart_inside_the_picture_and_hold_their_texts(given):
    root, boxes, width, height = drawn(*given)
    assert len(boxes) == len(given[0])
    for x, y, right, bottom in boxes:
        assert x >= 0 <= y
        assert right <= width
        assert bottom <= height
    for one, other in combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    for group in root.iter(f"{SVG}g"):
        ((x, _, right, _),) = boxes_of(group)
        assert all(len(text.text) * LETTER <= right - x for text in group.iter(f"{SVG}text"))


@given(graphs())
def test_every_edge_leads_down(given):
    names, edges = given
    names = [f"{number} {name}" for number, name in enumerate(names)]
    root, _, _, _ = drawn(names, edges)
    groups = {group.find(f"{SVG}text").text.split()[0]: boxes_of(group)[0] for group in root.iter(f"{SVG}g")}
    for above, below in edges:
        assert groups[str(above)][3] < groups[str(below)][1]
    curves = [one.get("d") for one in root.iter(f"{SVG}path") if one.get("fill") == "none"]
    ends = np.array([[float(one) for one in re.findall(r"-?[\d.]+", curve)] for curve in curves]).reshape(
        -1, 8
    )
    assert (ends[:, 1] <= ends[:, 7]).all()


@pytest.mark.parametrize("name", ["<script>", "長さ" * 9, ""])
def test_names_are_escaped_and_wide_letters_have_room(name):
    root, ((x, _, right, _),), _, _ = drawn([name], [])
    assert next(root.iter(f"{SVG}text")).text == (name or "int64{?}")
    assert right - x >= len(name) * LETTER * (2 if "長" in name else 1)


def test_a_graph_of_nothing_is_a_picture():
    root, boxes, _, _ = drawn([], [])
    assert boxes == []
    assert root.find(f"{SVG}title").text == "Graph"


def test_many_results_of_one_node_take_several_layers():
    names = ["n", *(f"result number {number}" for number in range(20))]
    _, boxes, width, _ = drawn(names, [(0, number) for number in range(1, 21)])
    assert width < 1000
    assert len({y for _, y, _, _ in boxes}) > 4
    _, boxes, width, _ = drawn(names, [(number, 20) for number in range(20)])
    assert width < 1000
