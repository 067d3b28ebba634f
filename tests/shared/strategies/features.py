"""Inputs for the ops that merge features into maps, and for those that take maps apart."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from per_sequence import lengths_arrays, ragged, values

from seqflow import registry
from strategies.text import TEXTS, text_arrays

Call = tuple[dict[str, Any], dict[str, Any]]
KEYS = st.sampled_from([-3, 0, 1, 7, 2**40])
KEY_LISTS = st.lists(KEYS, unique=True, min_size=1, max_size=4)
COLUMN_DTYPES = ["float32", "int64", "uint8", "datetime64[s]"]


@st.composite
def _dense(draw: Any, op: Any = None) -> Call:
    """A matrix of features, and which of them are present."""
    ids = draw(KEY_LISTS)
    shape = draw(st.integers(0, 4)), len(ids)
    data = values(draw, draw(st.sampled_from(COLUMN_DTYPES)), shape)
    return {"data": data, "presence": draw(hnp.arrays(bool, shape))}, {"feature_ids": ids}


@st.composite
def _single(draw: Any, op: Any) -> Call:
    """A column, or lists, for each feature; absent lists are empty."""
    ids, rows = draw(KEY_LISTS), draw(st.integers(0, 4))
    dtype, row = draw(st.sampled_from(COLUMN_DTYPES)), draw(st.lists(st.integers(0, 3), max_size=1))
    presence = [draw(hnp.arrays(bool, rows)) for _ in ids]
    lengths = [
        np.where(present, draw(lengths_arrays(count=rows)), 0).astype(np.int32) for present in presence
    ]
    sizes = [int(one.sum()) for one in lengths] if "lengths" in _names(op) else [rows] * len(ids)
    inputs = {
        "data": [values(draw, dtype, (size, *row)) for size in sizes],
        "value_keys": [draw(hnp.arrays("int32", size, elements=st.integers(-9, 9))) for size in sizes],
        "presence": presence,
        "lengths": lengths,
    }
    return {name: inputs[name] for name in _names(op)}, {"feature_ids": ids}


@st.composite
def _multi(draw: Any, op: Any) -> Call:
    """One to three maps for each example; where keys must not meet twice, each map has its own."""
    count, rows = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    dtype, row = draw(st.sampled_from(COLUMN_DTYPES)), draw(st.lists(st.integers(0, 3), max_size=1))
    maps = [_map(draw, dtype, row, rows, 100 * i, "counts" in _names(op)) for i in range(count)]
    return {name: [one[name] for one in maps] for name in _names(op)}, {}


def _map(draw: Any, dtype: str, row: list[int], rows: int, first_key: int, of_lists: bool) -> dict[str, Any]:
    """A map for each of `rows` rows, with each key once in a row."""
    key_lists = [draw(KEY_LISTS | st.just([])) for _ in range(rows)]
    counts = np.array([len(keys) for keys in key_lists], np.int32)
    keys = np.array([first_key + key for keys in key_lists for key in keys], np.int64)
    lengths = draw(lengths_arrays(count=len(keys), longest=3)) if of_lists else counts
    total = int(lengths.sum())
    return {
        "data": values(draw, dtype, (total, *row)),
        "value_keys": draw(hnp.arrays("int64", total, elements=st.integers(-9, 9))),
        "keys": keys,
        "lengths": lengths,
        "counts": counts,
    }


@st.composite
def _keyed(draw: Any, op: Any) -> Call:
    """A map for each row, and the keys that are asked for."""
    dtype, row = draw(st.sampled_from(COLUMN_DTYPES)), draw(st.lists(st.integers(0, 3), max_size=1))
    drawn = _map(draw, dtype, row, draw(st.integers(0, 3)), 0, True)
    names = draw(KEY_LISTS)
    if op.name == "keyed_permute":
        names = list(dict.fromkeys([*names, *drawn["keys"].tolist()]))
    cut = draw(st.integers(0, len(names)))
    attributes = {"groups": [names[:cut], names[cut:]]} if op.name == "regroup" else {"names": names}
    return {name: drawn[name] for name in _names(op)}, attributes


@st.composite
def _matched(draw: Any, op: Any = None) -> Call:
    texts = draw(TEXTS)
    names = draw(st.lists(st.sampled_from([*texts, "none", ""]), unique=True, max_size=3))
    return text_arrays(texts), {"names": names}


@st.composite
def _crossed(draw: Any, op: Any = None) -> Call:
    count, features = draw(st.integers(0, 4)), draw(st.integers(1, 3))
    lengths = [draw(lengths_arrays(count=count, longest=3)) for _ in range(features)]
    dtypes = [draw(st.sampled_from(["int32", "int64", "uint64"])) for _ in lengths]
    data = [values(draw, dtype, int(one.sum())) for dtype, one in zip(dtypes, lengths, strict=True)]
    buckets = draw(st.sampled_from([1, 7, 2**62]))
    return {"data": data, "lengths": lengths}, {"num_buckets": buckets, "seed": draw(st.integers(0, 3))}


@st.composite
def _positioned(draw: Any, op: Any, wraps: bool = True) -> Call:
    """Positions inside each sequence, as many as `picked` says, or K of each; -1 where `fill` is given."""
    data, lengths = draw(ragged())
    fill = draw(st.sampled_from([None, 0, 1]))
    choices = [[*range(int(length)), *([] if fill is None else [-1])] for length in lengths]
    if op.name == "gather_within":
        counts = [draw(st.integers(0, 3)) if one else 0 for one in choices]
    else:
        counts = [draw(st.integers(0, 3)) if all(choices) else 0] * len(choices)
    positions = [draw(st.sampled_from(one)) for one, n in zip(choices, counts, strict=True) for _ in range(n)]
    dtype = draw(st.sampled_from(["int32", "int64"]))
    inputs = {
        "data": data,
        "positions": np.array(positions, dtype),
        "lengths": lengths,
        "picked": np.array(counts, "int32"),
    }
    if op.name == "gather_within_padded":
        inputs["positions"] = inputs["positions"].reshape(len(counts), counts[0] if counts else 0)
    attributes = {"wrap": wraps and draw(st.booleans())} | ({} if fill is None else {"fill": fill})
    if attributes["wrap"] and fill is None:  # the same rows, counted from the end
        inputs["positions"] -= np.repeat(lengths.astype(dtype), counts).reshape(inputs["positions"].shape)
    return {name: inputs[name] for name in _names(op)}, attributes


@st.composite
def _positions(draw: Any, op: Any) -> Call:
    """The positions that a gather takes."""
    gather = {"to_rows": "gather_within_padded", "to_rows_within": "gather_within"}[op.name]
    inputs, attributes = draw(_positioned(registry.get(gather), wraps=False))
    return {name: inputs[name] for name in _names(op)}, {"keep_missing": "fill" in attributes}


def _names(op: Any) -> list[str]:
    return [argument.name for argument in op.signature.input_arguments]


FEATURES = {
    "cross_features": _crossed,
    "gather_within": _positioned,
    "gather_within_padded": _positioned,
    "keyed_concat": _multi,
    "keyed_permute": _keyed,
    "keyed_select": _keyed,
    "keyed_split": _keyed,
    "to_rows": _positions,
    "to_rows_within": _positions,
    "match_names": _matched,
    "merge_dense_features": _dense,
    "merge_list_features": _single,
    "merge_map_features": _single,
    "merge_multi_list_features": _multi,
    "merge_multi_map_features": _multi,
    "merge_multi_scalar_features": _multi,
    "merge_scalar_features": _single,
    "regroup": _keyed,
}
