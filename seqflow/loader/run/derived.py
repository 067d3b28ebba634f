"""Tensors of a batch that follow from lengths in it, so that they need not be sent: masks and ids of packed rows."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from seqflow import kernels
from seqflow.kernels.arrays import Array
from seqflow.kernels.packing import PackingPlan
from seqflow.loader.order.recipe import Recipe
from seqflow.loader.plans.packed import Packed, fill_padded
from seqflow.net import Net

Kind = Literal["mask", "mask_left", "segment_ids", "position_ids"]
PIECES = "pieces", "piece_lengths"


@dataclass(frozen=True, slots=True)
class Derived:
    """How a dense tensor [rows, width] follows from lengths."""

    kind: Kind
    """A mask of elements on the right or the left side, or ids of packed rows."""
    lengths: tuple[str, ...]
    """Lengths of each row; for packed rows the number of pieces of each, and their lengths. Empty if a net makes
    other tensors with these names."""
    multiple_of: int = 1
    """Each piece is padded to a multiple of this."""

    def make(self, shape: tuple[int, int], *lengths: Array) -> Array:
        """Return the tensor of this shape."""
        if self.kind in ("mask", "mask_left"):
            sizes = lengths[0][:, None]
            places = np.arange(shape[1])
            return np.asarray(places >= shape[1] - sizes if self.kind == "mask_left" else places < sizes)
        pieces, sizes = lengths
        # one byte for each element stands for the packed data, which are not needed
        data = np.zeros(int(sizes.sum()), np.int8)
        if self.multiple_of > 1:
            plan = Packed(shape[1], multiple_of=self.multiple_of)
            ids = fill_padded(data, sizes, pieces, plan, 0, None)
        else:
            packing = PackingPlan(np.arange(len(sizes)), np.zeros_like(sizes), sizes, pieces)
            ids = kernels.fill_packed(data, sizes, packing, shape[1])
        return ids[1 if self.kind == "segment_ids" else 2]


def lengths_of_mask(mask: Array) -> tuple[Array]:
    """Return the number of elements of each row."""
    return (mask.sum(axis=1),)


def lengths_of_segments(segment_ids: Array) -> tuple[Array, Array]:
    """int64 twice: the pieces of each packed row, and the lengths of all pieces; ids count from 1 in each row."""
    pieces = segment_ids.max(axis=1, initial=0).astype(np.int64)
    of_piece = segment_ids + (np.cumsum(pieces) - pieces)[:, None]
    sizes = np.bincount(of_piece[segment_ids > 0] - 1, minlength=int(pieces.sum()))
    return pieces, sizes.astype(np.int64)


def derived_tensors(recipe: Recipe) -> Mapping[str, Derived]:
    """Return the tensors of batches that follow from lengths, by name: those that the plan makes and `net` passes on.

    The result of a Python function is not known before it runs.
    """
    if recipe.net is not None and not isinstance(recipe.net, Net):
        return {}
    found = {
        f"{name}.mask": Derived("mask_left" if pad.side == "left" else "mask", (f"{name}.lengths",))
        for name, pad in recipe.pad.items()
        if pad.mask
    }
    if isinstance(recipe.batch, Packed) and recipe.batch.share is None:
        for kind in ("segment_ids", "position_ids"):
            found[kind] = Derived(kind, PIECES, recipe.batch.multiple_of)
    changed = changed_tensors(recipe)
    return {
        name: how if changed.isdisjoint(how.lengths) else replace(how, lengths=())
        for name, how in found.items()
        if name not in changed
    }


def changed_tensors(recipe: Recipe) -> set[str]:
    """Return the names that in the result of `net` stand for other tensors than before it."""
    net = recipe.net
    if not isinstance(net, Net):
        return set()
    return {*net.constants, *(name for step in net.steps for name in step.results)}
