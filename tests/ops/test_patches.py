"""Patches of images: what image processors of transformers make, and back."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from per_sequence import cut
from strategies.calls import calls

from seqflow import ops, registry
from seqflow.errors import OpError, OpMemoryError

A = np.array
RECORDED = json.loads((Path(__file__).parent / "patch_cases.json").read_text())
QWEN2 = {"patch": 14, "merge": 2, "min_pixels": 3136, "max_pixels": 1003520}


@pytest.mark.parametrize("case", RECORDED["grids"], ids=lambda case: str(case["grids"])[:40])
def test_places_and_windows_are_those_of_the_encoders(case):
    order, lengths = ops.window_order(case["grids"])
    assert (order.tolist(), lengths.tolist()) == (case["window_order"], case["window_lengths"])
    places, patches = ops.patch_positions(case["grids"])
    assert case["positions"] in (None, places.tolist())
    assert patches.tolist() == A(case["grids"]).prod(1).tolist()


@pytest.mark.parametrize("case", RECORDED["patchify"], ids=lambda case: str(case["sizes"]))
def test_patches_are_those_of_the_image_processor(case):
    pixels, sizes = A(case["pixels"], np.uint8).reshape(-1, 3), A(case["sizes"])
    patches, lengths, grids = ops.patchify(pixels, sizes, sizes.prod(1), patch=2)
    assert case["patches"] in (None, patches.tolist())
    assert patches.sum(dtype=np.int64) == case["digest_sum"]
    assert lengths.tolist() == grids.prod(1).tolist()


@pytest.mark.slow
def test_patches_and_sizes_are_those_of_transformers():
    module = pytest.importorskip("transformers.models.qwen2_vl.image_processing_pil_qwen2_vl")
    processor = module.Qwen2VLImageProcessorPil(do_rescale=False, do_normalize=False)
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (*size, 3), dtype=np.uint8) for size in ((56, 84), (112, 56), (84, 84))]
    theirs = processor(images=images, return_tensors="np")
    sizes = A([image.shape[:2] for image in images])
    found = ops.patchify(np.concatenate([image.reshape(-1, 3) for image in images]), sizes, sizes.prod(1))
    assert np.array_equal(found.values, theirs["pixel_values"])
    assert np.array_equal(found.grids, theirs["image_grid_thw"])


@pytest.mark.parametrize("case", RECORDED["smart_resize"], ids=lambda case: str(case[:4]))
def test_sizes_are_those_of_smart_resize(case):
    height, width, factor, low, high, *size = case
    bounds = {"patch": factor // 2, "merge": 2, "min_pixels": low, "max_pixels": high}
    frames, *grid = ops.image_grids([[height, width]], **bounds)[0].tolist()
    assert (frames, [side * (factor // 2) for side in grid]) == (1, size)


@given(calls(registry.get("patchify")))
def test_pixels_of_patches_are_the_pixels_of_the_images(call):
    inputs, attributes = call
    patches, lengths, grids = ops.patchify(**inputs, **attributes)
    back = ops.unpatchify(patches, grids, lengths, **attributes)
    assert np.array_equal(back.values, inputs["pixels"])
    assert np.array_equal(back.sizes, inputs["sizes"])
    assert np.array_equal(back.lengths, inputs["lengths"])


@given(calls(registry.get("patchify")))
def test_each_patch_is_the_square_at_its_place(call):
    inputs, attributes = call
    patches, lengths, grids = ops.patchify(**inputs, **attributes)
    places, _ = ops.patch_positions(grids, merge=attributes["merge"])
    side, repeat, channels = attributes["patch"], attributes["repeat"], inputs["pixels"].shape[1]
    images = cut(inputs["pixels"], inputs["lengths"])
    expected = []
    for image, size, of_image in zip(images, inputs["sizes"], cut(places, lengths), strict=True):
        image = image.reshape(*size, channels).transpose(2, 0, 1)
        for row, column in of_image * side:
            square = image[:, None, row : row + side, column : column + side]
            expected.append(np.repeat(square, repeat, axis=1).ravel())
    assert patches.tolist() == [one.tolist() for one in expected]


@given(calls(registry.get("window_order")))
def test_windows_are_squares_inside_a_frame(call):
    inputs, attributes = call
    merge, merged = attributes["merge"], []
    for frames, high, wide in inputs["grids"].astype(int):
        merged += [
            (len(merged), frame, row // 2, column // 2)
            for frame in range(frames)
            for row in range(high // merge)
            for column in range(wide // merge)
        ]
    order, lengths = ops.window_order(**inputs, **attributes, window=2)
    assert sorted(order.tolist()) == list(range(len(merged)))
    assert lengths.sum() == len(merged) * merge**2
    ends = np.cumsum(lengths) // merge**2
    for start, end in zip(ends - lengths // merge**2, ends, strict=True):
        assert len({merged[at][1:] for at in order[start:end]}) == 1
        assert end - start <= 4


ERRORS = {
    "image_grids: sizes[1] is [0, 5], expected sides from 1 to 2147483647": lambda: ops.image_grids(
        [[9, 9], [0, 5]], **QWEN2
    ),
    "image_grids: sizes[0] is [1, 201], expected sides from 1 to 2147483647, the longer at most 200 times": lambda: (
        ops.image_grids([[1, 201]], **QWEN2)
    ),
    "image_grids: min_pixels is 2000000, expected at most max_pixels, 1003520": lambda: ops.image_grids(
        [[9, 9]], **QWEN2 | {"min_pixels": 2_000_000}
    ),
    "patchify: sizes[0] is [4, 6], expected multiples of patch * merge = 4": lambda: ops.patchify(
        np.zeros((24, 3), np.uint8), [[4, 6]], [24], patch=2
    ),
    "patchify: image 1 has 8 pixels, expected 4 x 4 as in sizes[1]": lambda: ops.patchify(
        np.zeros((24, 3), np.uint8), [[4, 4], [4, 4]], [16, 8], patch=2
    ),
    "patchify: image 0 has 0 pixels, expected 4294967296 x 4294967296 as in sizes[0]": lambda: ops.patchify(
        np.zeros((0, 3), np.uint8), [[2**32, 2**32]], [0], patch=2
    ),
    "unpatchify: grids[0] is [2, 2, 2], expected one frame and its 8 patches": lambda: ops.unpatchify(
        np.zeros((8, 24), np.uint8), [[2, 2, 2]], [8], patch=2
    ),
    "unpatchify: grids[0] is [1, 2, 4], expected one frame and its 4 patches": lambda: ops.unpatchify(
        np.zeros((4, 24), np.uint8), [[1, 2, 4]], [4], patch=2
    ),
    "unpatchify: grids[0] is [1, 3, 4], expected frames, height and width of 0 or more, of which": lambda: (
        ops.unpatchify(np.zeros((12, 24), np.uint8), [[1, 3, 4]], [12], patch=2)
    ),
    "patch_positions: grids[0] is [1, -2, 4], expected frames, height and width of 0 or more": lambda: (
        ops.patch_positions([[1, -2, 4]])
    ),
    "window_order: grids[1] is [1, 2, 3], expected frames, height and width": lambda: ops.window_order(
        [[1, 2, 2], [1, 2, 3]]
    ),
}


@pytest.mark.parametrize("message", ERRORS)
def test_what_does_not_fit_is_named_with_both_numbers(message):
    with pytest.raises(OpError) as found:
        ERRORS[message]()
    assert str(found.value).startswith(message)


def test_grids_larger_than_memory_are_refused():
    for op in (ops.patch_positions, ops.window_order):
        with pytest.raises(MemoryError):
            op([[2**20, 2**20, 2**20]])


@pytest.mark.parametrize("op", [ops.window_order, ops.patch_positions])
@pytest.mark.parametrize("grid", [[10**12, 2, 2], [2, 10**12, 2], [10**12, 0, 2], [1, 2 * 10**6, 2 * 10**6]])
def test_a_grid_beyond_the_memory_is_refused_before_any_memory_is_taken(op, grid):
    with pytest.raises(OpMemoryError):
        op(np.array([[1, 2, 2], grid]))


def test_windows_are_those_of_each_frame_of_each_image():
    grids = np.array([[2, 4, 2], [1, 0, 2], [1, 2, 6]])
    order, lengths = ops.window_order(grids, merge=1, window=2)
    expected, sizes, first = [], [], 0
    for frames, height, width in grids.tolist():
        for _ in range(frames):
            for top in range(0, height, 2):
                for left in range(0, width, 2):
                    cells = [
                        (r, c)
                        for r in range(top, min(top + 2, height))
                        for c in range(left, min(left + 2, width))
                    ]
                    expected += [first + r * width + c for r, c in cells]
                    sizes.append(len(cells))
            first += height * width
    assert (order.tolist(), lengths.tolist()) == (expected, sizes)
