"""Pictures of tensors before and after an op: values below their lengths, grids by rows, notes beside the arrow."""

from xml.etree import ElementTree

import numpy as np

from seqflow.drawing.moved import Cell, Divided, Grid, LevelRow, moved

SVG = "{http://www.w3.org/2000/svg}"


def texts(*before, notes=(), after=()):
    root = ElementTree.fromstring(moved("Op", "words", before, notes, after))
    return [one.text for one in root.iter(f"{SVG}text")]


def test_values_stand_below_their_lengths_and_what_is_empty_has_a_place():
    rows = [LevelRow("lengths", 0, ["2", "0"]), LevelRow("data", 1, (), [Cell("7", 0), Cell("8", 0)])]
    assert texts(Divided([np.array([2, 0])], rows)) == ["lengths", "2", "0", "data", "7", "8"]


def test_grids_are_drawn_by_rows():
    assert texts(after=[Grid("padded", [[Cell("1", 0)], [Cell("0", None)]])]) == ["padded", "1", "0"]


def test_tensors_of_nothing_are_drawn_by_their_names():
    empty = Divided([np.array([0])], [LevelRow("data", 1, (), [])])
    assert texts(empty, after=[Grid("rows", [])]) == ["data", "rows"]


def test_long_notes_are_cut():
    assert texts(notes=["op", "x" * 100]) == ["op", f"{'x' * 55}…"]


def test_names_are_escaped():
    assert texts(Grid("<script>", [[Cell("&", 0)]])) == ["<script>", "&"]
