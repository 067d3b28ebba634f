"""The pictures of pages are drawn by the code, and the pages show them."""

from xml.etree import ElementTree

import pytest

from tools.pictures import DOCS, pictures

DRAWN = pictures()


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: path.name)
def test_a_picture_is_what_the_code_finds(path):
    assert path.read_text(encoding="utf-8") == DRAWN[path], "run `python -m tools.docs`"


@pytest.mark.parametrize("path", DRAWN, ids=lambda path: path.name)
def test_a_picture_has_words_and_its_parts_lie_inside(path):
    root = ElementTree.fromstring(DRAWN[path])
    width, height = map(float, root.get("viewBox").split()[2:])
    boxes = [box.attrib for box in root.iter("{http://www.w3.org/2000/svg}rect")]
    ends = [(float(box["x"]) + float(box["width"]), float(box["y"]) + float(box["height"])) for box in boxes]
    assert all(right <= width and bottom <= height for right, bottom in ends)
    assert all(root.find(f"{{http://www.w3.org/2000/svg}}{name}").text for name in ("title", "desc"))


def test_each_picture_is_on_a_page():
    text = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    light = [path.name for path in DRAWN if path.stem.endswith("-light")]
    assert [name for name in light if f"](pictures/{name})" not in text] == []
