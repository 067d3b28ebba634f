"""Pictures say in words what they show, fit what they are of, and run nothing."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import seqflow as sf
from seqflow.drawing.svg import THEMES

SVG = "{http://www.w3.org/2000/svg}"


def shown(svg):
    """The texts of a picture, and its boxes as (x, y, width, height)."""
    root = ElementTree.fromstring(svg)
    texts = [one.text for one in root.iter(f"{SVG}text")]
    boxes = [
        tuple(float(one.get(key)) for key in ("x", "y", "width", "height")) for one in root.iter(f"{SVG}rect")
    ]
    width, height = map(float, root.get("viewBox").split()[2:])
    assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in boxes)
    assert root.find(f"{SVG}title").text
    assert root.find(f"{SVG}desc").text
    return texts, boxes


def luminance(colour):
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_contrast_on_every_fill(theme):
    colours = THEMES[theme]
    for fill in (*colours.fills, colours.empty):
        dark, light = sorted((luminance(colours.ink), luminance(fill)))
        assert (light + 0.05) / (dark + 0.05) >= 7


@pytest.mark.parametrize(("ink", "page"), [("#1f2328", "#ffffff"), ("#e6edf3", "#0d1117")])
def test_text_of_a_page_has_contrast_on_the_fills_of_pictures_inside(ink, page):
    colours = THEMES["inline"]
    assert colours.ink == "currentColor"
    below = np.array([int(page[at : at + 2], 16) for at in (1, 3, 5)])
    for fill in (*colours.fills, colours.empty):
        *rgb, alpha = map(float, re.findall(r"[\d.]+", fill))
        seen = "#" + "".join(f"{round(one):02x}" for one in np.array(rgb) * alpha + below * (1 - alpha))
        dark, light = sorted((luminance(ink), luminance(seen)))
        assert (light + 0.05) / (dark + 0.05) >= 7


def test_values_lie_below_the_lengths_that_count_them():
    words = sf.Sequence(np.arange(7), [[2, 0, 3], [2, 1, 0, 3, 1]])
    texts, boxes = shown(words.to_svg("light"))
    assert texts == [
        "lengths[0]", "2", "0", "3", "lengths[1]", "2", "1", "0", "3", "1", "values", *map(str, range(7))
    ]  # fmt: skip
    outer, inner, cells = boxes[:3], boxes[3:8], boxes[8:]
    for level, below, lengths in ((outer, inner, [2, 0, 3]), (inner, cells, [2, 1, 0, 3, 1])):
        at = 0
        for (x, _, width, _), length in zip(level, lengths, strict=True):
            for inside in below[at : at + length]:
                assert x <= inside[0]
                assert inside[0] + inside[2] <= x + width
            at += length


@pytest.mark.parametrize(
    "levels", [[[]], [[0]], [[0] * 100], [[100]], [[3], [50, 1, 2]], [[60], [1] * 60], [[30] * 5]]
)
def test_pictures_of_long_and_of_empty_data_are_small(levels):
    texts, boxes = shown(sf.LoD(*levels).to_svg())
    assert len(boxes) <= 24 * (len(levels) + 1)
    assert "rows" in texts


def test_long_data_say_how_many_are_left_out():
    svg = sf.LoD([1] * 100).to_svg()
    assert "of 100 sequences the first 24" in svg
    assert "…" in shown(svg)[0]
    assert shown(sf.LoD([100]).to_svg())[0][-1] == "23"


def test_texts_are_escaped():
    svg = sf.Sequence(np.array(["<script>", "&"]), [2]).to_svg()
    assert "<script" not in svg
    assert shown(svg)[0][-2:] == ["<script>", "&"]


def test_other_themes_are_refused():
    with pytest.raises(sf.OpError, match="theme is 'blue', expected 'light', 'dark', 'inline'"):
        sf.LoD([1]).to_svg("blue")


def test_notebooks_show_lengths_in_the_colour_of_the_page():
    assert "currentColor" in sf.LoD([2, 1])._repr_html_()


def test_a_picture_in_a_notebook_is_scrolled_where_it_is_too_wide_to_read():
    html = sf.LoD([100])._repr_html_()
    assert html.startswith('<div style="overflow-x:auto"><svg')
    assert "max-width:none" in html
    assert "max-width:100%" in sf.LoD([100]).to_svg("light")
