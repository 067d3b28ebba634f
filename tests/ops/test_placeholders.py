"""Placeholders of images in texts: how often, where, and at which positions in three dimensions."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies.images import PLACEHOLDER, texts

from seqflow import ops
from seqflow.errors import OpError

A = np.array
RECORDED = json.loads((Path(__file__).parent / "mrope_cases.json").read_text())


def spans_of(case):
    grids = A(case["grids"], np.int64).reshape(-1, 3)
    return grids, *ops.image_spans(
        case["tokens"],
        grids.prod(1) // 4,
        A(case["images"], np.int64),
        case["lengths"],
        placeholder=RECORDED["placeholders"],
    )


@pytest.mark.parametrize("after", ["side", "max"])
@pytest.mark.parametrize("case", RECORDED["cases"], ids=lambda case: f"{case['model']}: {case['name']}")
def test_positions_are_those_of_transformers(case, after):
    grids, starts, extents = spans_of(case)
    assert extents.tolist() == (grids.prod(1) // 4).tolist()
    intervals, images = A(case["intervals"], float), A(case["images"], np.int64)
    found = ops.mrope_positions(starts, grids, images, case["lengths"], intervals, after=after)
    assert found.T.tolist() == case[after]


def test_recorded_positions_have_videos_that_tell_the_versions_apart():
    assert len(RECORDED["cases"]) == 46
    assert sum(case["side"] != case["max"] for case in RECORDED["cases"]) == 3


def test_the_position_after_an_image_has_no_default():
    with pytest.raises(TypeError, match="after"):
        ops.mrope_positions(A([0]), A([[1, 2, 2]]), A([1]), A([1]))


@pytest.mark.parametrize("seconds", [0.1, 0.7, 1 / 3, 2.3])
def test_frames_are_apart_as_in_float32(seconds):
    torch = pytest.importorskip("torch")
    frames = 60
    expected = (torch.arange(frames) * seconds).long().tolist()
    found = ops.mrope_positions([0], [[frames, 2, 2]], [1], [frames], [seconds], after="side")
    assert found[:, 0].tolist() == expected


def test_images_may_be_in_any_order_inside_their_sequence():
    starts, grids, lengths = A([1, 4]), A([[1, 2, 4], [3, 2, 2]]), A([8])
    in_order = ops.mrope_positions(starts, grids, A([2]), lengths, A([1.0, 2.0]), after="max")
    turned = ops.mrope_positions(starts[::-1], grids[::-1], A([2]), lengths, A([2.0, 1.0]), after="max")
    assert turned.tolist() == in_order.tolist()
    assert ops.image_ids(starts[::-1], A([3, 2]), A([2]), lengths).tolist() == [0, 2, 2, 0, 1, 1, 1, 0]


def count_up(images, length, after):
    """The positions of one sequence, token by token; `images` has the grid of tokens at each start."""
    found, p = [], 0
    while len(found) < length:
        frames, height, width = images.get(len(found), (0, 0, 0))
        cells = list(np.ndindex(frames, height, width))
        found += [[p + i for i in cell] for cell in cells] or [[p, p, p]]
        sides = (frames, height, width) if after == "max" else (height, width)
        p += max(sides) if cells else 1
    return found


@pytest.mark.parametrize("after", ["side", "max"])
@given(texts())
def test_positions_are_those_of_each_sequence_by_itself(after, text):
    shared = text["images"], text["lengths"]
    starts, extents = ops.image_spans(text["tokens"], text["sizes"], *shared, placeholder=PLACEHOLDER)
    ids = ops.image_ids(starts, extents, *shared)
    assert ((ids > 0) == (text["tokens"] == PLACEHOLDER)).all()
    found = ops.mrope_positions(starts, text["grids"], *shared, after=after, merge=text["merge"])
    merged = (text["grids"].astype(int) // [1, text["merge"], text["merge"]]).tolist()
    expected, ends = [], np.cumsum(text["images"], dtype=int)
    for end, number, length in zip(ends, text["images"].tolist(), text["lengths"].tolist(), strict=True):
        own = range(end - number, end)
        expected += count_up({int(starts[k]): merged[k] for k in own}, length, after)
    assert found.tolist() == expected


@given(st.lists(st.lists(st.integers(0, 4), max_size=3), max_size=4))
def test_spans_of_expanded_placeholders_have_their_sizes(sizes):
    flat, images = A([n for one in sizes for n in one], np.int64), A([len(one) for one in sizes], np.int64)
    tokens = A([token for one in sizes for token in (1, *[PLACEHOLDER, 2] * len(one))], np.int64)
    lengths = 1 + 2 * images
    values, longer, sources = ops.expand_placeholders(tokens, flat, images, lengths, placeholder=PLACEHOLDER)
    assert values.tolist() == tokens[sources].tolist()
    starts, extents = ops.image_spans(values, flat, images, longer, placeholder=PLACEHOLDER)
    assert extents.tolist() == flat.tolist()
    inside = ops.image_ids(starts, extents, images, longer)
    assert (inside > 0).tolist() == (values == PLACEHOLDER).tolist()


def test_a_span_includes_the_breaks_between_rows_and_sizes_part_images_that_touch():
    tokens = A([1, 90, 90, 91, 90, 90, 92, 2, 90, 92, 90, 90])
    starts, extents = ops.image_spans(tokens, A([4, 1, 1, 1]), A([2, 2]), A([10, 2]), placeholder=90)
    assert (starts.tolist(), extents.tolist()) == ([1, 8, 0, 1], [5, 1, 1, 1])


def test_images_and_videos_have_their_own_placeholders():
    found = ops.expand_placeholders(A([8, 1, 9]), A([2, 3]), A([2]), A([3]), placeholder=[9, 8])
    assert found.values.tolist() == [8, 8, 1, 9, 9, 9]


def test_ids_of_tokens_may_be_negative_and_of_any_width():
    for dtype, one in ((np.int16, -200), (np.uint64, 2**63 + 1)):
        tokens = A([1, one, 2], dtype)
        found = ops.expand_placeholders(tokens, A([2]), A([1]), A([3]), placeholder=int(one))
        assert found.values.tolist() == [1, one, one, 2]


ERRORS = {
    "expand_placeholders: sequence 1 has 1 placeholders, expected 2, the number of its images": lambda: (
        ops.expand_placeholders(A([9, 9]), A([1, 1, 1]), A([1, 2]), A([1, 1]), placeholder=9)
    ),
    "image_spans: sequence 1 has 1 placeholders, expected 3, the sum of the sizes of its images": lambda: (
        ops.image_spans(A([9, 9]), A([1, 3]), A([1, 1]), A([1, 1]), placeholder=9)
    ),
    "image_spans: placeholder is (), expected the id of a token, or several": lambda: ops.image_spans(
        A([9]), A([1]), A([1]), A([1]), placeholder=[]
    ),
    "image_ids: image 1, of sequence 1, has 3 tokens from position 1, expected a span inside the 3 tokens": lambda: (
        ops.image_ids(A([0, 1]), A([1, 3]), A([1, 1]), A([2, 3]))
    ),
    "image_ids: image 0, of sequence 0, has 1 tokens from position -1, expected": lambda: ops.image_ids(
        A([-1]), A([1]), A([1]), A([2])
    ),
    "image_ids: image 0, of sequence 0, has 9223372036854775807 tokens from position 1, expected": lambda: (
        ops.image_ids(A([1]), A([2**63 - 1]), A([1]), A([2]))
    ),
    "image_ids: image 1, of sequence 0, starts at position 1, expected 2 or more, where image 0 ends": lambda: (
        ops.image_ids(A([0, 1]), A([2, 2]), A([2]), A([4]))
    ),
    "mrope_positions: image 0, of sequence 1, has 4 tokens from position 0, expected a span inside the 3": lambda: (
        ops.mrope_positions(A([0]), A([[1, 4, 4]]), A([0, 1]), A([2, 3]), after="side")
    ),
    "mrope_positions: grids[1], of sequence 1, is [1, 3, 2], expected frames, height and width": lambda: (
        ops.mrope_positions(A([0, 0]), A([[1, 2, 2], [1, 3, 2]]), A([1, 1]), A([1, 1]), after="side")
    ),
    "mrope_positions: grids[0], of sequence 0, is [4294967296, 4294967296, 2], expected": lambda: (
        ops.mrope_positions(A([0]), A([[2**32, 2**32, 2]]), A([1]), A([1]), after="side")
    ),
    "mrope_positions: intervals[0] is -1.0, expected 0 or more": lambda: ops.mrope_positions(
        A([0]), A([[1, 2, 2]]), A([1]), A([1]), A([-1.0]), after="side"
    ),
    "mrope_positions: intervals[0] is inf, expected 0 or more, and positions below 2147483648 for 1 frames": lambda: (
        ops.mrope_positions(A([0]), A([[1, 2, 2]]), A([1]), A([1]), A([np.inf]), after="side")
    ),
    "mrope_positions: intervals[0] is 1e+300, expected 0 or more": lambda: ops.mrope_positions(
        A([0]), A([[1, 2, 2]]), A([1]), A([1]), A([1e300]), after="side"
    ),
    "mrope_positions: intervals[0] is nan, expected 0 or more": lambda: ops.mrope_positions(
        A([0]), A([[1, 2, 2]]), A([1]), A([1]), A([np.nan]), after="side"
    ),
    "mrope_positions: intervals[1] is 2000000000.0, expected 0 or more, and positions below 2147483648 for 3": lambda: (
        ops.mrope_positions(A([0, 1]), A([[1, 2, 2], [3, 2, 2]]), A([2]), A([4]), A([1, 2e9]), after="side")
    ),
}


@pytest.mark.parametrize("message", ERRORS)
def test_what_does_not_fit_is_named_with_both_numbers(message):
    with pytest.raises(OpError) as found:
        ERRORS[message]()
    assert str(found.value).startswith(message)
