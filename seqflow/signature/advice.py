"""Advice for arguments that come in another form: it names the op that makes lengths."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.signature.language import Argument, Repeated, Signature, Sum

LISTS_ADVICE = (
    "sf.from_arrow(table) has flat values and lengths of columns, sf.Sequence.from_lists(lists) of lists"
)


def holds_lists(array: Array) -> bool:
    """Return whether the first object that is not null is a list or an array, as in columns of lists."""
    first = next((one for one in array.flat if one is not None), None)
    return isinstance(first, (list, tuple, np.ndarray))


def advice_on_lengths(signature: Signature, values: Iterable[Any]) -> str:
    """Return the op that makes lengths of what is given for them, or rows of a padded array; else "".

    `values` has one value for each input, and for a group a list with one list for each of its arguments.
    """
    for given in _calls(signature, values):
        arrays = {argument: array for argument, value in given if (array := _array(value)) is not None}
        for lengths in filter(lambda one: one.is_lengths, arrays):
            described = [(one.name, arrays[one]) for one in arrays if one.dims[:1] == (Sum(lengths.name),)]
            if found := instead_of_lengths(lengths.name, arrays[lengths], described):
                return found
    return ""


def _calls(signature: Signature, values: Iterable[Any]) -> Iterator[list[tuple[Argument, Any]]]:
    """Yield the arguments with their values: plain ones, then those of each repetition of a group."""
    pairs = list(zip(signature.inputs, values, strict=False))
    yield [(item, value) for item, value in pairs if isinstance(item, Argument)]
    for item, value in pairs:
        if isinstance(item, Repeated) and all(isinstance(one, (list, tuple)) for one in value):
            yield from (list(zip(item.arguments, one, strict=True)) for one in zip(*value, strict=False))


def _array(value: Any) -> Array | None:
    try:
        return None if value is None else np.asarray(value)
    except Exception:  # raised by the object's own __array__; another error says so
        return None


def instead_of_form(dtype: np.dtype[Any], rank: int | None) -> str:
    """Return the op that makes lengths of an array of this dtype and rank; "" if lengths may have them."""
    if dtype.kind == "b" and rank == 2:
        return "reduce_sum(mask, axes=1) makes lengths of a mask with a row for each sequence"
    if dtype.kind == "b":
        return (
            "boolean_mask_lengths(mask, lengths) makes lengths of a mask of rows, starts_to_lengths(starts, lengths) "
            "those of pieces that starts mark"
        )
    if dtype.kind in "iuf" and rank is not None and rank > 1:
        return "reduce_sum(padded != fill, axes=1) makes lengths of a padded array, unpad(padded, lengths) its rows"
    return ""


def instead_of_lengths(name: str, given: Array, described: Iterable[tuple[str, Any]]) -> str:
    """Return the op that makes lengths of `given`, judged by its form and by the arrays that it should describe."""
    if by_form := instead_of_form(given.dtype, given.ndim):
        return by_form
    if given.ndim != 1 or given.dtype.kind not in "iu" or not given.size or int(given.min()) < 0:
        return ""
    for other, array in described:
        rows = len(array) if array.ndim else 1
        if given.sum(dtype=np.float64) == rows:
            continue
        if array.ndim > 1 and rows == len(given) and int(given.max()) <= array.shape[1]:
            return f"unpad({other}, {name}) has the rows of a padded array"
        is_ascending = bool((given[1:] >= given[:-1]).all())
        if is_ascending and given[0] == 0 and given[-1] == rows:
            return "offsets_to_lengths(offsets) makes lengths of offsets"
        if is_ascending and len(given) == rows:
            return "segment_ids_to_lengths(ids) makes lengths of the ids of segments"
        if is_ascending and given[0] == 0 and given[-1] < rows:
            return f"offsets_to_lengths(np.append(offsets, {rows})) makes lengths of offsets without the last one"
    return ""
