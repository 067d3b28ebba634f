"""The hot loops: each one in C++ for speed and, beside it, in NumPy for its meaning.

`data`, `table`, `source` and `padded` are arrays of any dtype with at least one axis; non-contiguous and
read-only ones are fine. `lengths` are one-dimensional and, like `indices`, of any integer dtype. Results are
fresh C-contiguous arrays, unless `out` is given: a writable C-contiguous array of exactly the result's shape
and dtype. What does not fit raises KernelError and says at which position; after an error `out` may be partly
written.

Native kernels are used where they were built. The environment variable SEQFLOW_KERNELS changes that:
`reference` takes NumPy, `baseline`, `avx2` or `avx512` the native ones with that instruction set.
"""

# The two implementations are modules with the same functions, which the type checker knows as Any.
# mypy: disable-error-code="no-any-return"

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from seqflow.kernels import reference
from seqflow.kernels.arrays import Array, PackingPlan, check_out, mean_dtype, sum_dtype
from seqflow.kernels.error import KernelError

native: ModuleType | None
_why_not_native: str | None = None
try:
    from seqflow.kernels import native
except ImportError as error:
    native = None
    _why_not_native = str(error)

_chosen: Any = native or reference

quick_check_lengths = reference.quick_check_lengths if native is None else native.quick_check_lengths
"""`check_lengths` of 1-D int32 and int64 arrays and nothing else: TypeError for what it does not take."""


def check_lengths(lengths: Array) -> int:
    """The sum of lengths[B]; KernelError where one is negative or the sum is above int64."""
    return _chosen.check_lengths(lengths)


def max_length(lengths: Array) -> int:
    """The largest of lengths[B], 0 where there are none; KernelError where one is negative."""
    return _chosen.max_length(lengths)


def lengths_to_offsets(lengths: Array) -> Array:
    """int64 offsets[B+1]: where each sequence starts, and the total."""
    return _chosen.lengths_to_offsets(lengths)


def lengths_to_segment_ids(lengths: Array) -> Array:
    """int64 ids[sum(lengths)]: for each row the sequence it belongs to."""
    return _chosen.lengths_to_segment_ids(lengths)


def segment_reduce(kind: str, data: Array, lengths: Array, empty: Any = 0) -> Array:
    """Reduce the rows of each segment: data[sum(lengths), *d], lengths[B] -> out[B, *d].

    kind is "sum" (dtype: `sum_dtype`), "mean" (`mean_dtype`), "max" or "min" (the dtype of data; NaN and NaT
    win). An empty segment gives `empty`, a scalar of the result's dtype. Floats are added up in blocks and
    in float64; integers wrap around, as in NumPy.
    """
    return _chosen.segment_reduce(kind, data, lengths, empty)


def gather(
    data: Array,
    indices: Array,
    *,
    wrap: bool = False,
    ignore_index: int | None = None,
    out: Array | None = None,
) -> Array:
    """The rows of data[R, *d] at indices[N, *i] (any rank): rows[N, *i, *d].

    With `wrap` an index below 0 counts from the end, once. An index equal to `ignore_index` gives a row of
    zeros. Any other index outside [0, R) is a KernelError.
    """
    return _chosen.gather(data, indices, wrap=wrap, ignore_index=ignore_index, out=out)


def gather_segment_reduce(
    kind: str, table: Array, indices: Array, lengths: Array, empty: Any = 0, ignore_index: int | None = None
) -> Array:
    """`segment_reduce` of gathered rows: table[R, *d], indices[sum(lengths)], lengths[B] -> out[B, *d].

    An index equal to `ignore_index` counts for nothing: not in a mean, nor is a segment of such indices
    anything but empty.
    """
    return _chosen.gather_segment_reduce(kind, table, indices, lengths, empty, ignore_index)


def move_slices(
    source: Array, source_starts: Array, sizes: Array, target: Array, target_starts: Array
) -> None:
    """Copy slices of rows: target[t : t + n] = source[s : s + n] for each (s, n, t) of the three [K] arrays.

    `target` is writable, C-contiguous, and has the dtype and row shape of `source`. Nothing is written unless
    all slices are inside their arrays. Where target slices overlap the last one wins. A source that shares
    memory with the target is read as it was before.
    """
    _chosen.move_slices(source, source_starts, sizes, target, target_starts)


def pad(
    data: Array,
    lengths: Array,
    width: int,
    value: Any = 0,
    side: str = "right",
    *,
    truncate: bool = False,
    out: Array | None = None,
    mask: Array | None = None,
) -> tuple[Array, Array]:
    """One row a sequence: data[sum(lengths), *d], lengths[B] -> padded[B, width, *d], bool mask[B, width].

    `side` is where the padding, `value`, goes. A length above `width` is a KernelError, unless `truncate` keeps
    the head of the sequence (its tail with side="left"). `out` and `mask` are arrays to write to.
    """
    return _chosen.pad(data, lengths, width, value, side, truncate=truncate, out=out, mask=mask)


def unpad(padded: Array, lengths: Array, side: str = "right", *, out: Array | None = None) -> Array:
    """The inverse of `pad`: padded[B, T, *d], lengths[B] -> data[sum(lengths), *d]."""
    return _chosen.unpad(padded, lengths, side, out=out)


def plan_packing(lengths: Array, capacity: int, strategy: str = "best_fit") -> PackingPlan:
    """Which sequences share a row of `capacity`: lengths[B] -> sources[P], starts[P], piece_lengths[P], pieces[R].

    An empty sequence has no piece; a sequence longer than `capacity` has several, in increasing order.
    "concat" cuts the stream of all sequences every `capacity`. "best_fit" takes the longest first (ties in
    input order) and puts each into the row with the least room that is enough; of equal rooms, the row that
    changed last. "first_fit" takes them in input order, each into the first row with room. Full pieces of a
    long sequence have rows of their own: before all others in best_fit, which treats the remainder like any
    sequence; in first_fit in their turn, and the remainder opens one more row.
    """
    return _chosen.plan_packing(lengths, capacity, strategy)


def fill_packed(
    data: Array,
    lengths: Array,
    plan: tuple[Array, Array, Array, Array],
    capacity: int,
    value: Any = 0,
    *,
    out: tuple[Array, Array, Array] | None = None,
) -> tuple[Array, Array, Array]:
    """Write the rows of a plan: packed[R, capacity, *d], int32 segment_ids and position_ids[R, capacity].

    segment_ids count from 1 in each row, position_ids from 0 in each piece; padding is 0 in both and `value` in
    packed. `out` is an array for each of the three. Any plan that stays inside data[sum(lengths), *d] will do.
    """
    return _chosen.fill_packed(data, lengths, plan, capacity, value, out=out)


def set_num_threads(count: int) -> None:
    """How many threads one call of a native kernel may use; no result depends on it."""
    if count < 1:
        raise ValueError(f"the number of threads is {count}, expected 1 or more")
    if native is not None:
        native.set_num_threads(count)


def num_threads() -> int:
    """How many threads one call may use: at first as many as there are cores, at most 8."""
    return 1 if native is None else native.num_threads()


@contextmanager
def single_thread() -> Iterator[None]:
    """Inside, kernels called from this Python thread run on it alone."""
    if native is None:
        yield
        return
    native.enter_single_thread()
    try:
        yield
    finally:
        native.leave_single_thread()


@contextmanager
def use(name: str) -> Iterator[None]:
    """Inside, all threads use the "native" or the "reference" kernels; or native ones with the instruction
    set "baseline", "avx2" or "avx512"."""
    global _chosen
    before, isa = _chosen, None if native is None else native.isa()
    _choose(name)
    try:
        yield
    finally:
        _chosen = before
        if native is not None:
            native.set_isa(isa)


def info() -> dict[str, Any]:
    """Which kernels are in use: `kernels`, `isa`, `isas` (all this machine can run), `threads`, and `why`
    native ones are missing (None where they are not)."""
    if native is None or _chosen is reference:
        return {"kernels": "reference", "isa": None, "isas": [], "threads": 1, "why": _why_not_native}
    return {
        "kernels": "native",
        "isa": native.isa(),
        "isas": native.isas(),
        "threads": native.num_threads(),
        "why": None,
    }


def _choose(name: str) -> None:
    global _chosen
    if name not in ("reference", "native", "baseline", "avx2", "avx512"):
        raise ValueError(
            f"kernels are {name!r}, expected 'reference', 'native', 'baseline', 'avx2' or 'avx512'"
        )
    if name == "reference":
        _chosen = reference
        return
    if native is None:
        raise RuntimeError(f"there are no native kernels: {_why_not_native}")
    if name != "native":
        native.set_isa(name)
    _chosen = native


if _wanted := os.environ.get("SEQFLOW_KERNELS"):
    _choose(_wanted)
    if _wanted == "reference":
        _why_not_native = "SEQFLOW_KERNELS=reference"


__all__ = [
    "KernelError",
    "PackingPlan",
    "check_lengths",
    "check_out",
    "fill_packed",
    "gather",
    "gather_segment_reduce",
    "info",
    "lengths_to_offsets",
    "lengths_to_segment_ids",
    "max_length",
    "mean_dtype",
    "move_slices",
    "native",
    "num_threads",
    "pad",
    "plan_packing",
    "reference",
    "segment_reduce",
    "set_num_threads",
    "single_thread",
    "sum_dtype",
    "unpad",
    "use",
]
