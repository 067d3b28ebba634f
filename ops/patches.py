"""Patches of images: grids for sizes, patches from pixels and back, their places and windows."""

from collections.abc import Iterator

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array, int64_integers
from seqflow.kernels.memory import check_memory
from seqflow.ops.shared.grids import cells_of, merged_grids
from seqflow.ops.shared.slices import int64, starts_of
from seqflow.registry import op
from seqflow.signature import Positive

_MOST_SIDE, _MOST_RATIO = 2**31 - 1, 200
"""Bounds of the sides of an image and of their ratio; the second is the bound of the models' own function."""


@op("int sizes[G, 2] -> int64 grids[G, 3]")
def image_grids(
    sizes: Array, *, patch: Positive, merge: Positive, min_pixels: Positive, max_pixels: Positive
) -> Array:
    """Return the grid of patches (1, height, width) of images of these sizes (height, width), without their pixels.

    Both sides are rounded to multiples of `patch * merge`, halves to even, and scaled into the bounds of pixels, as
    by `smart_resize` of Qwen2-VL: an image has height * width / merge² tokens. It is to be resized to `patch` times
    height and width. Qwen2-VL has `patch=14, merge=2, min_pixels=3136, max_pixels=1003520`. A side below 1, and sides
    of which one is more than 200 times the other, are errors.

    >>> image_grids(np.array([[480, 640]]), patch=14, merge=2, min_pixels=3136, max_pixels=1003520)
    array([[ 1, 34, 46]])
    """
    if min_pixels > max_pixels:
        raise OpError(f"min_pixels is {min_pixels}, expected at most max_pixels, {max_pixels}")
    found = int64_integers(sizes, "sizes")
    low, high = found.min(1, initial=_MOST_SIDE), found.max(1, initial=1)
    wrong = np.flatnonzero((low < 1) | (high > _MOST_SIDE) | (high > low * float(_MOST_RATIO)))
    if len(wrong):
        raise OpError(
            f"sizes[{wrong[0]}] is {found[wrong[0]].tolist()}, expected sides from 1 to {_MOST_SIDE}, "
            f"the longer at most {_MOST_RATIO} times the shorter"
        )
    factor, sides = patch * merge, found.astype(float)
    rounded, pixels = np.rint(sides / factor), sides.prod(1, keepdims=True)
    area = (rounded * factor).prod(1, keepdims=True)
    smaller = np.maximum(1, np.floor(sides / np.sqrt(pixels / max_pixels) / factor))
    larger = np.ceil(sides * np.sqrt(min_pixels / pixels) / factor)
    merged = np.where(area > max_pixels, smaller, np.where(area < min_pixels, larger, rounded))
    return np.insert(merged.astype(np.int64) * merge, 0, 1, axis=1)


@op(
    "uint8 pixels[sum(lengths), C], int sizes[G, 2], lengths[G]"
    " -> values[sum(lengths'), C*repeat*patch*patch], int64 lengths'[G] := lengths//(patch*patch),"
    " int64 grids[G, 3]",
)
def patchify(
    pixels: Array,
    sizes: Array,
    lengths: Array,
    *,
    patch: Positive = 14,
    merge: Positive = 2,
    repeat: Positive = 2,
) -> tuple[Array, Array, Array]:
    """Cut images into square patches, each one row of the result, in the order in which Qwen-VL models take them.

    `pixels` are the pixels of all images, row by row, and `sizes` height and width of each image, multiples of
    `patch * merge`. Patches come in blocks of `merge` × `merge`, left to right, top to bottom. The elements of a
    patch are ordered by channel, frame, row and column; a still image stands for `repeat` equal frames. `repeat=1`
    keeps patches small until they are on a device: repeat and normalise them there. `grids` are (1, height, width) in
    patches. An empty image has no patches. Sizes that are not multiples, or not those of the pixels, are errors.

    >>> pixels = np.arange(16, dtype=np.uint8)[:, None]
    >>> patchify(pixels, np.array([[4, 4]]), np.array([16]), patch=2, repeat=1).values
    array([[ 0,  1,  4,  5],
           [ 2,  3,  6,  7],
           [ 8,  9, 12, 13],
           [10, 11, 14, 15]], dtype=uint8)
    """
    grids, counts = _grids_of(int64_integers(sizes, "sizes"), int64(lengths), patch, merge)
    area, channels = patch * patch, pixels.shape[1]
    check_memory((int(counts.sum()), channels * repeat * area), pixels.dtype)
    patches = np.empty((int(counts.sum()), channels * repeat * area), pixels.dtype)
    for image, cut in _images(pixels, patches, grids, patch, merge, repeat):
        cut[...] = image[:, :, :, :, :, None]
    return patches, counts, grids


@op(
    "uint8 patches[sum(lengths), C*repeat*patch*patch], int grids[G, 3], lengths[G]"
    " -> values[sum(lengths'), C], int64 lengths'[G] := lengths*(patch*patch), int64 sizes[G, 2]",
)
def unpatchify(
    patches: Array,
    grids: Array,
    lengths: Array,
    *,
    patch: Positive = 14,
    merge: Positive = 2,
    repeat: Positive = 2,
) -> tuple[Array, Array, Array]:
    """Put the patches of `patchify` together: the pixels of all images, row by row, and the sizes of the images.

    Of the `repeat` frames of a patch the first is taken. A grid with more frames than one is an error, as is one that
    has another number of patches. An empty image has no pixels.

    >>> pixels = np.arange(16, dtype=np.uint8)[:, None]
    >>> cut = patchify(pixels, np.array([[4, 4]]), np.array([16]), patch=2)
    >>> unpatchify(cut.values, cut.grids, cut.lengths, patch=2).values.tolist() == pixels.tolist()
    True
    """
    counts, area = int64(lengths), patch * patch
    found = merged_grids(grids, merge) * (1, merge, merge)
    wrong = np.flatnonzero((found[:, 0] != 1) | (found.prod(1) != counts))
    if len(wrong):
        i = int(wrong[0])
        raise OpError(f"grids[{i}] is {found[i].tolist()}, expected one frame and its {counts[i]} patches")
    channels = patches.shape[1] // (repeat * area)
    check_memory((int(counts.sum()) * area, channels), patches.dtype)
    pixels = np.empty((int(counts.sum()) * area, channels), patches.dtype)
    for image, cut in _images(pixels, patches, found, patch, merge, repeat):
        image[...] = cut[:, :, :, :, :, 0]
    return pixels, counts * area, found[:, 1:] * patch


def _grids_of(sizes: Array, pixels: Array, patch: int, merge: int) -> tuple[Array, Array]:
    """Return grids and numbers of patches of images; raise OpError for sizes that do not fit."""
    wrong = (sizes < 0).any(1) | (sizes % (patch * merge) != 0).any(1)
    if wrong.any():
        i = int(np.argmax(wrong))
        raise OpError(
            f"sizes[{i}] is {sizes[i].tolist()}, expected multiples of patch * merge = {patch * merge}"
        )
    wrong = (sizes.prod(1, dtype=float) != pixels) | (sizes.prod(1) != pixels)  # the second may overflow
    if wrong.any():
        i = int(np.argmax(wrong))
        raise OpError(
            f"image {i} has {pixels[i]} pixels, expected {sizes[i, 0]} x {sizes[i, 1]} as in sizes[{i}]"
        )
    grids = np.insert(sizes // patch, 0, 1, axis=1)
    return grids, grids.prod(1)


def _images(
    pixels: Array, patches: Array, grids: Array, patch: int, merge: int, repeat: int
) -> Iterator[tuple[Array, Array]]:
    """Yield views of each image and of its patches with the same axes; those of patches also have their frames."""
    start, area, channels = 0, patch * patch, pixels.shape[1]
    for _, height, width in grids.tolist():
        stop = start + height * width
        high, wide = height // merge, width // merge
        image = pixels[start * area : stop * area].reshape(high, merge, patch, wide, merge, patch, channels)
        cut = patches[start:stop].reshape(high, wide, merge, merge, channels, repeat, patch, patch)
        yield image.transpose(0, 3, 1, 4, 6, 2, 5), cut
        start = stop


@op("int grids[G, 3] -> int64 values[sum(lengths), 2], int64 lengths[G]")
def patch_positions(grids: Array, *, merge: Positive = 2) -> tuple[Array, Array]:
    """Return row and column of each patch in its frame, and the number of patches of each image.

    `grids` has frames, height and width of each image in patches. Patches come frame by frame, in blocks of `merge` ×
    `merge`, as `patchify` gives them; `merge=1` is row by row. An image with a size of 0 has none. A height or width
    that is not a multiple of `merge` is an error.

    >>> patch_positions(np.array([[1, 2, 4]])).values.T
    array([[0, 0, 1, 1, 0, 0, 1, 1],
           [0, 1, 0, 1, 2, 3, 2, 3]])
    """
    merged = merged_grids(grids, merge)
    cells = cells_of(merged)
    check_memory((len(cells.row) * merge * merge, 2), np.dtype(np.int64))
    inside = np.stack(np.divmod(np.arange(merge * merge), merge), axis=1)
    blocks = np.stack([cells.row, cells.column], axis=1) * merge
    return (blocks[:, None] + inside).reshape(-1, 2), merged.prod(1) * (merge * merge)


@op("int grids[G, 3] -> index(N) order[N], int64 lengths[W], W <= N")
def window_order(grids: Array, *, merge: Positive = 2, window: Positive = 4) -> tuple[Array, Array]:
    """Return the order that brings the merged patches of each window together, and the number of patches of each.

    Windows are squares of `window` × `window` merged patches in each frame of each image, smaller at its edges; they
    do not reach into another frame. `grids` has frames, height and width of each image in patches, of which `merge` ×
    `merge` are merged. Qwen2.5-VL has windows of 112 pixels: 4 × 4 merged patches of 28. An image with a size of 0
    has no windows. A height or width that is not a multiple of `merge` is an error.

    >>> window_order(np.array([[1, 4, 4]]), window=1)
    WindowOrderResult(order=array([0, 1, 2, 3]), lengths=array([4, 4, 4, 4]))
    """
    merged = merged_grids(grids, merge)
    frame, row, column = cells_of(merged)
    frame = kernels.expand(starts_of(merged[:, 0]), merged.prod(1)) + frame  # over all images
    row, column = row // window, column // window
    high, wide = (int(one.max(initial=0)) + 1 for one in (row, column))
    # cells are in the order of frames, rows and columns: a stable sort by windows keeps it inside windows
    keys = (frame * high + row) * wide + column
    order = np.argsort(keys, kind="stable")
    _, lengths = np.unique(keys[order], return_counts=True)
    return order, lengths * (merge * merge)
