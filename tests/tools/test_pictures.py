"""Ops that move rows have a picture, in which each row has the colour of its sequence, in light and dark mode."""

import re
from collections.abc import Mapping
from xml.etree import ElementTree

import pytest

from seqflow import registry
from seqflow.drawing.svg import DARK, LIGHT
from seqflow.registry.gradients import MovedRows
from tools import docs
from tools.pictures import draw

SVG = "{http://www.w3.org/2000/svg}"
LETTER = 7.83
"""The width of a letter: 0.602 of the size of the font, in the widest of the fonts."""
PICTURES = {path.stem: svg for path, svg in docs.pictures().items()}
PAGES = {"light": "#ffffff", "dark": "#0d1117"}
each_picture = pytest.mark.parametrize("name", PICTURES)


def colours_of(svg, mode):
    """The colours of a picture by their variables."""
    light, _, dark = re.search(r"<style>(.*?)</style>", svg)[1].partition("@media(prefers-color-scheme:dark)")
    return dict(re.findall(r"(--[\w-]+):(#[0-9a-f]{6})", light if mode == "light" else dark))


def luminance(colour):
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def boxes_of(root):
    """For each box its edges, and what it is filled with."""
    for one in root.iter(f"{SVG}rect"):
        x, y, width, height = (float(one.get(key)) for key in ("x", "y", "width", "height"))
        yield x, y, x + width, y + height, one.get("fill")


def texts_of(root):
    """For each text its edges, its base line, and its colour."""
    for one in root.iter(f"{SVG}text"):
        x, width = float(one.get("x")), len(one.text) * LETTER
        left = x - {"start": 0, "middle": width / 2, "end": width}[one.get("text-anchor")]
        yield left, left + width, float(one.get("y")), one.get("fill"), one.text


def fills(name, tensor):
    """The fills of the boxes in the line of a tensor, the last of this name."""
    root = ElementTree.fromstring(PICTURES[name])
    line = [y for _, _, y, _, text in texts_of(root) if text == tensor][-1]
    inside = [(x, fill) for x, y, _, bottom, fill in boxes_of(root) if y < line < bottom]
    return [fill.removeprefix("var(--").removesuffix(")") for _, fill in sorted(inside)]


@each_picture
def test_a_picture_is_small_and_says_in_words_what_it_shows(name):
    svg = PICTURES[name]
    root = ElementTree.fromstring(svg)
    assert len(svg) < 6_000
    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text == name
    assert root.find(f"{SVG}desc").text.startswith(f"{name} of ")


@each_picture
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_text_has_contrast_on_its_box_or_on_the_page(name, mode):
    root, colours = ElementTree.fromstring(PICTURES[name]), colours_of(PICTURES[name], mode)

    def shown(fill):
        return PAGES[mode] if fill == "none" else colours[fill.removeprefix("var(").removesuffix(")")]

    boxes = [*boxes_of(root)]
    for left, right, y, ink, _ in texts_of(root):
        below = [
            fill for x, top, stop, bottom, fill in boxes if x <= left and right <= stop and top < y < bottom
        ]
        assert contrast(shown(ink), shown(below[-1] if below else "none")) >= 4.5


@each_picture
def test_texts_lie_inside_the_picture_and_not_over_the_edge_of_a_box(name):
    root = ElementTree.fromstring(PICTURES[name])
    width, height = map(float, root.get("viewBox").split()[2:])
    boxes = [*boxes_of(root)]
    for left, right, y, _, text in texts_of(root):
        assert left >= 0, text
        assert right <= width, text
        assert y < height, text
        crossed = [x for x, top, stop, bottom, _ in boxes if top < y < bottom and left < x < right]
        assert crossed == [], text


def test_the_colours_are_those_of_both_themes():
    svg = PICTURES["pad"]
    for mode, theme in (("light", LIGHT), ("dark", DARK)):
        assert [*colours_of(svg, mode).values()] == [theme.ink, theme.line, *theme.fills, theme.empty]


@pytest.mark.parametrize(
    ("op", "tensor", "expected"),
    [
        ("reverse_sequences", "reversed", ["fill-0", "fill-0", "fill-2"]),
        ("gather_sequences", "values", ["fill-2", "fill-0", "fill-0"]),
        ("truncate", "data", ["fill-0", "fill-0", "empty", "fill-2"]),
        ("prepend_token", "values", ["empty", "fill-0", "fill-0", "empty", "empty", "fill-2"]),
        ("concat_sequences", "values", ["fill-0", "fill-0", "fill-1", "fill-3", "fill-3"]),
        ("pack_rows", "packed", ["fill-1", "fill-1", "fill-1"]),
        ("partition", "shards[0]", ["fill-0", "fill-2"]),
        ("filter_sequences", "keep", ["none", "none", "none"]),
    ],
)
def test_what_is_moved_has_the_colour_of_its_sequence(op, tensor, expected):
    assert fills(op, tensor) == expected


def gradients_of(name):
    grad = registry.get(name).grad
    return grad.values() if isinstance(grad, Mapping) else [grad]


def test_ops_whose_gradient_goes_back_to_moved_rows_are_drawn():
    moving = [
        name for name in registry.names() if any(isinstance(one, MovedRows) for one in gradients_of(name))
    ]
    assert len(moving) > 30
    assert set(moving) <= PICTURES.keys()


@pytest.mark.parametrize(
    "op",
    [
        "softmax_within",
        "lengths_sum",
        "cast",
        "zero_after_length",
        "lengths_to_mask",
        "dropout_ids",
        "reshape",
    ],
)
def test_ops_that_compute_or_leave_rows_in_place_are_not_drawn(op):
    assert draw(registry.get(op)) is None


@each_picture
def test_the_page_of_an_op_shows_its_picture_with_the_words(name):
    op = registry.get(name)
    page = (docs.FOLDER / f"{op.family}.md").read_text(encoding="utf-8")
    words = ElementTree.fromstring(PICTURES[name]).find(f"{SVG}desc").text
    assert f"![{words}](../pictures/ops/{name}.svg)" in page
