"""Inputs for ops on images: placeholders in texts, grids of patches, pixels."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from seqflow import registry

Call = tuple[dict[str, Any], dict[str, Any]]
PLACEHOLDER = 9
INTEGERS = st.sampled_from(["int32", "int64", "uint16"])


@st.composite
def _grids(draw: Any, op: Any = None, count: int | None = None, frames: int = 2) -> Call:
    """Grids whose height and width are multiples of `merge`; some have no patches."""
    merge = draw(st.integers(1, 2))
    count = draw(st.integers(0, 3)) if count is None else count
    grids = draw(hnp.arrays(draw(INTEGERS), (count, 3), elements=st.integers(0, 3)))
    grids = np.minimum(grids, [frames, 3, 3]).astype(grids.dtype) * np.array([1, merge, merge], grids.dtype)
    return {"grids": grids}, {"merge": merge}


@st.composite
def texts(draw: Any) -> dict[str, Any]:
    """Texts, and images with a grid and as many placeholders as it has merged patches, one after another."""
    images = draw(hnp.arrays("int64", st.integers(0, 3), elements=st.integers(0, 2)))
    given, attributes = draw(_grids(count=int(images.sum())))
    merged = given["grids"].astype(np.int64) // [1, attributes["merge"], attributes["merge"]]
    sizes, words = merged.prod(1), st.lists(st.integers(0, 8), max_size=3)
    documents, image = [], 0
    for number in images:
        tokens = draw(words)
        for size in sizes[image : image + number]:
            tokens = [*tokens, *[PLACEHOLDER] * int(size), *draw(words)]
        image += int(number)
        documents.append(tokens)
    return {
        "tokens": np.array([one for tokens in documents for one in tokens], draw(INTEGERS)),
        "sizes": sizes.astype(draw(INTEGERS)),
        "images": images.astype(draw(INTEGERS)),
        "lengths": np.array([len(tokens) for tokens in documents], draw(INTEGERS)),
        **given,
        **attributes,
    }


@st.composite
def _expandable(draw: Any, op: Any = None) -> Call:
    images = draw(hnp.arrays("int64", st.integers(0, 3), elements=st.integers(0, 2)))
    documents = []
    for number in images:
        words = [draw(st.lists(st.integers(0, 8), max_size=2)) for _ in range(number + 1)]
        documents.append([*words[0], *(one for word in words[1:] for one in (PLACEHOLDER, *word))])
    tokens = np.array([one for tokens in documents for one in tokens], draw(INTEGERS))
    sizes = draw(hnp.arrays(draw(INTEGERS), int(images.sum()), elements=st.integers(0, 4)))
    lengths = np.array([len(tokens) for tokens in documents], draw(INTEGERS))
    return {"tokens": tokens, "sizes": sizes, "images": images, "lengths": lengths}, {
        "placeholder": PLACEHOLDER
    }


@st.composite
def _spans(draw: Any, op: Any = None) -> Call:
    given = draw(texts())
    return {name: given[name] for name in ("tokens", "sizes", "images", "lengths")}, {
        "placeholder": PLACEHOLDER
    }


@st.composite
def _located(draw: Any, op: Any) -> Call:
    """The spans of texts, with the grids of their images."""
    given = draw(texts())
    inputs = {name: given[name] for name in ("tokens", "sizes", "images", "lengths")}
    starts, extents = registry.get("image_spans").call(**inputs, placeholder=PLACEHOLDER)
    known = given | {"starts": starts, "extents": extents}
    steps = st.sampled_from([0.0, 0.5, 1.0, 2.5])
    known["intervals"] = draw(
        hnp.arrays(draw(st.sampled_from(["float32", "float64"])), len(starts), elements=steps)
    )
    attributes = {}
    if op.name == "mrope_positions":
        attributes = {"merge": given["merge"], "after": draw(st.sampled_from(["side", "max"]))}
    return {one.name: known[one.name] for one in op.signature.input_arguments}, attributes


@st.composite
def _pixels(draw: Any, op: Any = None) -> Call:
    given, attributes = draw(_grids(frames=1))
    patch = draw(st.integers(1, 2))
    sizes = given["grids"][:, 1:] * given["grids"].dtype.type(patch)
    lengths = sizes.astype(np.int64).prod(1)
    pixels = draw(hnp.arrays("uint8", (int(lengths.sum()), draw(st.integers(0, 3)))))
    attributes |= {"patch": patch, "repeat": draw(st.integers(1, 2))}
    return {"pixels": pixels, "sizes": sizes, "lengths": lengths.astype(draw(INTEGERS))}, attributes


@st.composite
def _patches(draw: Any, op: Any = None) -> Call:
    inputs, attributes = draw(_pixels())
    values, lengths, grids = registry.get("patchify").call(**inputs, **attributes)
    return {"patches": values, "grids": grids, "lengths": lengths}, attributes


@st.composite
def _sizes(draw: Any, op: Any = None) -> Call:
    sizes = draw(hnp.arrays(draw(INTEGERS), (draw(st.integers(0, 3)), 2), elements=st.integers(10, 2000)))
    return {"sizes": sizes}, {"patch": 14, "merge": 2, "min_pixels": 3136, "max_pixels": 50176}


IMAGES = {
    "expand_placeholders": _expandable,
    "image_grids": _sizes,
    "image_ids": _located,
    "image_spans": _spans,
    "mrope_positions": _located,
    "patch_positions": _grids,
    "patchify": _pixels,
    "unpatchify": _patches,
    "window_order": _grids,
}
