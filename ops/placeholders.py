"""Tokens that stand for images, videos and audio: placeholders, spans, ids and positions in three dimensions."""

from functools import reduce
from typing import Literal

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array, int64_integers
from seqflow.ops.shared.grids import cells_of, merged_grids, sequence_of
from seqflow.ops.shared.slices import int64, slice_positions, starts_of
from seqflow.registry import NoDerivative, op
from seqflow.signature import Ints, Positive

_MOST_STEPS = 2**31
"""Bound of a position in time, so that positions and their sums stay in int64."""


@op(
    "int tokens[sum(lengths)], lens sizes[sum(images)], lens images[B], lengths[B]"
    " -> values[sum(lengths')], int64 lengths'[B], index(sum(lengths)) sources[sum(lengths')],"
    " sum(lengths') <= sum(lengths) + sum(sizes)",
)
def expand_placeholders(
    tokens: Array, sizes: Array, images: Array, lengths: Array, *, placeholder: Ints
) -> tuple[Array, Array, Array]:
    """Repeat each placeholder token as many times as its image has tokens.

    The k-th placeholder of a sequence is repeated `sizes[k]` times, where `images[i]` of the sizes belong to sequence
    i; a size of 0 drops it. `placeholder` is one id, or several, such as those of images and of videos, with the
    sizes in the order of the text. `sources` is the row that each value comes from, to move labels and masks in the
    same way with `gather`. An empty sequence stays empty. Sequences with another number of placeholders than sizes
    are an error.

    >>> text, sizes, images = np.array([1, 9, 2, 5]), np.array([3]), np.array([1, 0])
    >>> found = expand_placeholders(text, sizes, images, np.array([3, 1]), placeholder=9)
    >>> found.values, found.lengths
    (array([1, 9, 9, 9, 2, 5]), array([5, 1]))
    """
    rows = int64(lengths)
    at = _find_placeholders(tokens, placeholder, rows, int64(images), "the number of its images")
    repeats = np.ones(len(tokens), np.int64)
    repeats[at] = sizes
    sources = kernels.lengths_to_segment_ids(repeats)
    return kernels.gather(tokens, sources), kernels.segment_reduce("sum", repeats, rows), sources


@op(
    "int tokens[sum(lengths)], lens sizes[sum(images)], lens images[B], lengths[B]"
    " -> position(lengths) starts[sum(images)], int64 extents[sum(images)]",
)
def image_spans(
    tokens: Array, sizes: Array, images: Array, lengths: Array, *, placeholder: Ints
) -> tuple[Array, Array]:
    """Return where each image begins in its sequence, and how far it extends: from its first placeholder to its last.

    Image k takes the next `sizes[k]` placeholders of its sequence; `images[i]` of the sizes belong to sequence i.
    Sizes alone tell images apart: those of one image may have other tokens between them, such as row breaks, which
    its extent includes, and two images may touch. `placeholder` is one id or several. An image of size 0 has the
    start -1 and the extent 0; an empty sequence has only such images. Sequences with another number of placeholders
    than their sizes add up to are an error.

    >>> text, sizes, images = np.array([1, 9, 9, 2, 9, 5]), np.array([2, 1]), np.array([2, 0])
    >>> image_spans(text, sizes, images, np.array([5, 1]), placeholder=9)
    ImageSpansResult(starts=array([1, 4]), extents=array([2, 1]))
    """
    sizes, counts, rows = int64(sizes), int64(images), int64(lengths)
    expected = kernels.segment_reduce("sum", sizes, counts)
    at = _find_placeholders(tokens, placeholder, rows, expected, "the sum of the sizes of its images")
    ends, full = np.cumsum(sizes), sizes > 0
    starts, extents = np.full(len(sizes), -1, np.int64), np.zeros(len(sizes), np.int64)
    first = at[(ends - sizes)[full]]
    extents[full] = at[ends[full] - 1] - first + 1
    starts[full] = first - kernels.expand(starts_of(rows), counts)[full]
    return starts, extents


def _find_placeholders(
    tokens: Array, placeholder: tuple[int, ...], lengths: Array, expected: Array, meaning: str
) -> Array:
    """Return the rows of all placeholders; raise OpError for a sequence with another number than `expected`."""
    if not placeholder:
        raise OpError("placeholder is (), expected the id of a token, or several")
    at = np.flatnonzero(reduce(np.logical_or, [tokens == one for one in placeholder]))
    found = np.diff(np.searchsorted(at, kernels.lengths_to_offsets(lengths)))
    wrong = np.flatnonzero(found != expected)
    if len(wrong):
        i = int(wrong[0])
        raise OpError(f"sequence {i} has {found[i]} placeholders, expected {expected[i]}, {meaning}")
    return at


@op(
    "position(lengths) starts[sum(images)], lens extents[sum(images)], lens images[B], lengths[B]"
    " -> int64 ids[sum(lengths)]",
)
def image_ids(starts: Array, extents: Array, images: Array, lengths: Array) -> Array:
    """Return for each token the number of its image in its sequence, from 1; 0 outside images.

    `starts` and `extents` are those of `image_spans`, in any order; the first image of a sequence is number 1. An
    image of extent 0 has no tokens, whatever its start is. Images that do not lie inside their sequence, or overlap,
    are an error. An empty sequence has no ids.

    >>> image_ids(np.array([1, 4]), np.array([2, 1]), np.array([2, 0]), np.array([5, 1]))
    array([0, 1, 1, 0, 2, 0])
    """
    counts, rows = int64(images), int64(lengths)
    extents = int64(extents)
    _, inside = _inside(starts, extents, counts, rows)
    ids = np.zeros(int(rows.sum()), np.int64)
    ids[inside] = kernels.expand(kernels.lengths_to_positions(counts) + 1, extents)
    return ids


def _inside(starts: Array, sizes: Array, images: Array, lengths: Array) -> tuple[Array, Array]:
    """Return the first row of each image and the rows of all images; raise OpError if they are outside or overlap."""
    places, room = int64_integers(starts, "starts"), kernels.expand(lengths, images)
    full = sizes > 0
    # not `places + sizes > room`: the sum may overflow
    wrong = np.flatnonzero(full & ((places < 0) | (sizes > room) | (places > room - sizes)))
    if len(wrong):
        i = int(wrong[0])
        raise OpError(
            f"image {i}, of sequence {sequence_of(i, images)}, has {sizes[i]} tokens from position {places[i]}, "
            f"expected a span inside the {room[i]} tokens of the sequence"
        )
    begins = np.where(full, places + kernels.expand(starts_of(lengths), images), 0)
    order = np.flatnonzero(full)
    order = order[np.argsort(begins[order], kind="stable")]
    late = np.flatnonzero(begins[order[1:]] < (begins + sizes)[order[:-1]])
    if len(late):
        before, i = (int(order[late[0] + k]) for k in (0, 1))
        raise OpError(
            f"image {i}, of sequence {sequence_of(i, images)}, starts at position {places[i]}, expected "
            f"{places[before] + sizes[before]} or more, where image {before} ends"
        )
    return begins, slice_positions(begins, sizes)


@op(
    "position(lengths) starts[sum(images)], int grids[sum(images), 3], lens images[B], lengths[B],"
    " float intervals[sum(images)]? -> int64 positions[sum(lengths), 3]",
    grad=NoDerivative("positions are whole numbers"),
)
def mrope_positions(
    starts: Array,
    grids: Array,
    images: Array,
    lengths: Array,
    intervals: Array | None,
    *,
    after: Literal["side", "max"],
    merge: Positive = 2,
) -> Array:
    """Return the position of each token in time, height and width, as rotary embeddings of Qwen-VL models take them.

    A text counts up by 1 in all three. The tokens of an image, which follow each other from `starts` on, have the
    position p that the text has reached, plus their frame, row and column in the grid: `grids` has frames, height and
    width of each image in patches, of which `merge` × `merge` make a token. `images[i]` of the grids belong to
    sequence i, in any order. Frames of image k are `intervals[k]` apart (default 1), computed in float32 and cut to a
    whole number. An image with a size of 0 has no tokens. An empty sequence has no positions.

    After an image the text goes on at p + the longer side of its grid of tokens with `after="side"`, as Qwen2-VL and
    Qwen2.5-VL do in transformers 5, and at the largest position so far + 1 with `"max"`, as in transformers 4 and in
    Qwen2.5-Omni. They differ for videos that are longer in time than in space; use the one that the model was trained
    with. Grids that are not multiples of `merge`, and images that overlap or are not inside their sequence, are
    errors.

    >>> mrope_positions(np.array([1]), np.array([[1, 4, 2]]), np.array([1]), np.array([4]), after="side").T
    array([[0, 1, 1, 3],
           [0, 1, 2, 3],
           [0, 1, 1, 3]])
    """
    counts, rows = int64(images), int64(lengths)
    merged = merged_grids(grids, merge, counts)
    sizes = merged.prod(1)
    begins, inside = _inside(starts, sizes, counts, rows)
    frames = kernels.lengths_to_positions(merged[:, 0])
    if intervals is not None:
        frames = _in_time(frames, merged[:, 0], intervals)
    used = merged[:, 1:].max(1, initial=0)
    if after == "max":
        used = np.maximum(used, kernels.segment_reduce("max", frames, merged[:, 0]) + 1)
    # how far each token moves the position of the tokens after it: of an image only the last does
    steps = np.ones(int(rows.sum()), np.int64)
    steps[inside] = 0
    full = sizes > 0
    steps[(begins + sizes - 1)[full]] = used[full]
    text = kernels.cumsum_within(steps, rows, exclusive=True)
    positions = np.repeat(text[:, None], 3, axis=1)
    for axis, cell in enumerate(cells_of(merged, frames)):
        positions[inside, axis] += cell
    return positions


def _in_time(frames: Array, counts: Array, intervals: Array) -> Array:
    """Return the positions in time of frames that are intervals apart."""
    last = np.maximum(counts - 1, 1) * intervals
    wrong = np.flatnonzero(~((intervals >= 0) & (last < _MOST_STEPS)))
    if len(wrong):
        i = int(wrong[0])
        raise OpError(
            f"intervals[{i}] is {intervals[i]}, expected 0 or more, and positions below {_MOST_STEPS} for "
            f"{counts[i]} frames"
        )
    # in float32 as models compute it: 3 * 0.7 and the like round differently in float64
    spaced = frames.astype(np.float32) * kernels.expand(intervals.astype(np.float32), counts)
    return spaced.astype(np.int64)
