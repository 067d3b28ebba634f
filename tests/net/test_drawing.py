"""Nets as pictures."""

from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest

from seqflow import Net, TensorSpec
from seqflow.net.layout import arrange
from seqflow.signature import Described, OwnRows

SVG = "{http://www.w3.org/2000/svg}"
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


def picture(net):
    return ElementTree.fromstring(net._repr_html_())


def texts(net):
    return [element.text for element in picture(net).iter(f"{SVG}text")]


def edges(net):
    """How many arrow heads there are."""
    return sum(path.get("d").count("L") == 2 for path in picture(net).iter(f"{SVG}path"))


def test_every_step_and_every_tensor_is_drawn_once():
    drawn = texts(NET)
    for tensor in (*NET.inputs, *NET.assigned, "table"):
        assert drawn.count(tensor) == 1, tensor
    for op, count in {"truncate": 2, "pad": 1, "sparse_lengths_sum": 1, "lengths_to_offsets": 1}.items():
        assert drawn.count(op) == count
    assert {"max_length=512", "max_length=3", "side='left'"} < set(drawn)
    assert edges(NET) == 2 + 2 + 3 + 1 + 2


def test_an_expression_is_its_own_title_and_its_parts_have_no_names():
    net = Net("y = 2 * x + lengths_sum(v, n)\nz = concat([x, y], axis=0)")
    assert sorted(texts(net)) == sorted(
        ["x", "v", "n", "lengths_sum", "2 * x + lengths_sum(v, n)", "y", "concat", "axis=0", "z"]
    )
    assert edges(net) == 2 + 2 + 2


def test_an_inference_adds_dtypes_shapes_and_bytes():
    drawn = texts(NET.infer(SPECS))
    assert "bool{rows:0..256,max(n):0..512} ≤ 128.0 KiB" in drawn
    assert "float32{10,4} ≤ 160 B" in drawn
    assert drawn[-1] == "all tensors ≤ ?"
    assert [text for text in texts(NET) if text not in drawn] == []


def test_a_step_lies_below_what_it_needs():
    height = {text.text: float(text.get("y")) for text in picture(NET).iter(f"{SVG}text")}
    assert height["doc.values"] == height["doc.lengths"] == height["table"] < height["ids"]
    assert height["ids"] < height["pad"] < height["x"]


@pytest.mark.parametrize(
    "literal", ["</text><script>alert(1)</script>", "]]>", "&amp;", "a\\x00b\\x1b", "\\ud800", "\"'<"]
)
def test_hostile_text_is_only_ever_text(literal):
    net = Net(f'y = pad(x, n, side="right", fill=0)\nz = gather(x, [{literal!r}])')
    html = net._repr_html_()
    elements = {element.tag.removeprefix(SVG) for element in picture(net).iter()}
    assert elements == {"div", "svg", "title", "g", "path", "rect", "text"}
    assert "script>" not in html.replace("&lt;/text&gt;&lt;script&gt;", "").replace("&lt;/script&gt;", "")


def test_names_in_any_script_are_drawn():
    net = Net("länge, 長さ = truncate(ä, ß, max_length=1)")
    assert {"länge", "長さ", "ä", "ß"} < set(texts(net))


def test_long_texts_are_cut_and_whole_in_the_tooltip():
    net = Net(f"y = gather({'x' * 60}, {list(range(100))})")
    (box,) = [group for group in picture(net).iter(f"{SVG}g") if f"{SVG}title" in [e.tag for e in group]][1:]
    assert box.find(f"{SVG}title").text == f"line 1: {net.steps[0].statement}"
    assert all(len(text) <= 44 for text in texts(net))


def test_the_picture_needs_nothing_from_elsewhere():
    html = NET._repr_html_()
    assert html.count("http") == html.count("http://www.w3.org/2000/svg") == 1
    assert "<script" not in html
    assert 'fill="currentColor"' in html  # the page's colour: light or dark


def test_nets_of_one_statement_and_of_none_are_drawn():
    assert texts(Net("same_lengths(a, b)")) == ["a", "b", "same_lengths"]
    assert texts(Net("return a")) == ["a"]


def test_a_net_of_200_statements_is_drawn_without_boxes_that_overlap():
    rng = np.random.default_rng(0)
    lines = ["x0 = lengths_to_offsets(n)"]
    lines += [f"x{i} = gather(x{rng.integers(i)}, x{rng.integers(max(0, i - 5), i)})" for i in range(1, 200)]
    net = Net("\n".join(lines))
    drawn = texts(net)
    assert [drawn.count(name) for name in net.assigned] == [1] * 200
    boxes = [
        [float(rectangle.get(key)) for key in ("x", "y", "width", "height")]
        for rectangle in picture(net).iter(f"{SVG}rect")
    ]
    assert len(boxes) == 401
    for (x, y, width, height), (x2, y2, width2, height2) in combinations(boxes, 2):
        assert x + width <= x2 or x2 + width2 <= x or y + height <= y2 or y2 + height2 <= y


def test_boxes_stand_in_layers_and_edges_that_pass_a_layer_have_a_place_in_it():
    sizes = [(10.0, 5.0)] * 4
    layout = arrange(sizes, {"a": 0, "b": 1, "c": 2}, [[], ["a"], ["b"], ["a", "c"]], (4.0, 6.0))
    assert [place.layer for place in layout.boxes] == [0, 1, 2, 3]
    assert [place.layer for place in layout.ways["a", 3]] == [0, 1, 2, 3]
    assert layout.tops == [0.0, 11.0, 22.0, 33.0]
    for way in layout.ways["a", 3][1:3]:
        assert all(abs(way.x - box.x) >= 10 for box in layout.boxes if box.layer == way.layer)
