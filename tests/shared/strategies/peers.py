"""Inputs for ops that other libraries have: by ids, of two columns, of several columns with one budget."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from per_sequence import lengths_arrays

from seqflow import registry
from strategies.text import TEXTS, text_arrays

Call = tuple[dict[str, Any], dict[str, Any]]


@st.composite
def _ids(draw: Any, op: Any = None) -> Call:
    """Ids in any order, with or without the number of segments."""
    dtype = draw(st.sampled_from(["int32", "int64", "uint8"]))
    ids = draw(hnp.arrays(dtype, st.integers(0, 6), elements=st.integers(0, 4)))
    return {"ids": ids}, draw(st.sampled_from([{}, {"num_segments": 5}, {"num_segments": 7}]))


@st.composite
def _columns(draw: Any, op: Any = None) -> Call:
    """Columns of the same rows, each of its own dtype and row shape, and a budget for each row."""
    rows, columns = draw(st.integers(0, 4)), draw(st.integers(1, 3))
    lengths = [draw(hnp.arrays("int64", rows, elements=st.integers(0, 5))) for _ in range(columns)]
    shape, dtype = (
        draw(st.sampled_from([(), (2,)])),
        draw(st.sampled_from(["int32", "float32", "float64", "bool"])),
    )
    data = [(np.arange(n.sum() * int(np.prod(shape))).reshape(-1, *shape) % 7).astype(dtype) for n in lengths]
    budget = draw(hnp.arrays("int32", rows, elements=st.integers(-1, 12)))
    how = draw(st.sampled_from(["longest_first", "waterfall"]))
    keep = draw(st.sampled_from(["head", "tail"]))
    return {"data": data, "lengths": lengths, "budget": budget}, {
        "columns": columns,
        "how": how,
        "keep": keep,
    }


def _numbers(draw: Any, shape: tuple[int, ...], dtype: str = "") -> Any:
    dtype = dtype or draw(st.sampled_from(["float32", "float64"]))
    return draw(hnp.arrays(dtype, shape, elements=st.integers(-8, 8).map(lambda k: k / 4)))


@st.composite
def _quantiles(draw: Any, op: Any) -> Call:
    """Distinct numbers, and shares of them."""
    lengths = draw(lengths_arrays())
    rows, inner = int(lengths.sum()), draw(st.sampled_from([(), (2,)]))
    data = np.random.default_rng(draw(st.integers(0, 99))).permutation(rows * int(np.prod(inner)))
    data = data.reshape(rows, *inner).astype(draw(st.sampled_from(["float32", "float64", "int32"])))
    attributes: dict[str, Any] = {}
    if op.name != "lengths_median":
        attributes["q"] = draw(st.sampled_from([0.25, 0.5, 1.0, [0.1, 0.9], []]))
        ways = ["linear", "lower", "higher", "nearest", "midpoint"]
        attributes["interpolation"] = draw(st.sampled_from(ways))
    inputs = {"data": data, "lengths": lengths}
    if op.name == "quantile_within_backward":
        shape = (len(lengths), *np.shape(attributes["q"]), *inner)
        inputs = {"d": _numbers(draw, shape), **inputs}
    return inputs, attributes


@st.composite
def _matrices(draw: Any, op: Any) -> Call:
    """Rows, and a matrix for each sequence or each id."""
    dtype, (k, m) = (
        draw(st.sampled_from(["float32", "float64"])),
        (draw(st.integers(1, 3)), draw(st.integers(1, 3))),
    )
    transpose = draw(st.booleans())
    if op.name == "segment_matmul":
        by = {"lengths": draw(lengths_arrays())}
        rows, count = int(by["lengths"].sum()), len(by["lengths"])
    else:
        count, rows = draw(st.integers(1, 3)), draw(st.integers(0, 5))
        by = {"ids": draw(hnp.arrays("int32", rows, elements=st.integers(0, count - 1)))}
    weight = _numbers(draw, (count, m, k) if transpose else (count, k, m), dtype)
    return {"x": _numbers(draw, (rows, k), dtype), "weight": weight, **by}, {"transpose": transpose}


@st.composite
def _experts(draw: Any, op: Any = None) -> Call:
    """Choices of experts, with a capacity or a multiple of rows or neither."""
    experts = draw(
        hnp.arrays("int64", (draw(st.integers(0, 4)), draw(st.integers(1, 2))), elements=st.integers(0, 2))
    )
    options = draw(st.sampled_from([{}, {"capacity": 1}, {"multiple_of": 2}]))
    return {"experts": experts}, {"num_experts": 3, **options}


@st.composite
def _routed(draw: Any, op: Any = None) -> Call:
    """Rows of experts, with the choices of each token and their weights."""
    (inputs, attributes) = draw(_experts())
    routed = registry.get("route_topk").call(**inputs, **attributes)
    y = _numbers(draw, (len(routed.choices), *draw(st.sampled_from([(), (2,)]))), "float64")
    weights = _numbers(draw, inputs["experts"].shape, "float64")
    return {"y": y, "choices": routed.choices, "weights": weights}, {}


@st.composite
def _maskable(draw: Any, op: Any = None) -> Call:
    """Tokens of a small vocabulary, in words."""
    words = draw(hnp.arrays("int64", st.integers(0, 6), elements=st.integers(0, 3)))
    cuts = sorted(draw(st.lists(st.integers(0, len(words)), max_size=2)))
    counts = np.diff([0, *cuts, len(words)])
    lengths = np.add.reduceat(np.append(words, 0), np.append(0, np.cumsum(counts)[:-1])) * (counts > 0)
    tokens = draw(
        hnp.arrays(draw(st.sampled_from(["int32", "int64"])), int(words.sum()), elements=st.integers(0, 9))
    )
    attributes = {
        "ratio": draw(st.sampled_from([0.0, 0.5, 1.0])), "mask": 9, "vocabulary_size": 10, "seed": draw(st.integers(0, 9)),
        "never": draw(st.sampled_from([(), (0, 3)])),
    }  # fmt: skip
    return {"tokens": tokens, "lengths": lengths, "words": words, "counts": counts}, attributes


@st.composite
def _corruptible(draw: Any, op: Any = None) -> Call:
    lengths = draw(lengths_arrays())
    total = int(lengths.sum())
    tokens = draw(hnp.arrays(draw(st.sampled_from(["int32", "int64"])), total, elements=st.integers(0, 9)))
    return {"tokens": tokens, "noise": draw(hnp.arrays("bool", total)), "lengths": lengths}, {"first": 99}


@st.composite
def _cuttable(draw: Any, op: Any = None) -> Call:
    """Tokens, with places to cut them at."""
    lengths = draw(lengths_arrays())
    tokens = draw(hnp.arrays("int32", int(lengths.sum()), elements=st.integers(0, 9)))
    cuts = np.sort(draw(hnp.arrays("int64", (len(lengths), 2), elements=st.integers(0, 5))), axis=1)
    cuts = np.minimum(cuts, lengths.astype(np.int64)[:, None])
    attributes = {"prefix": 91, "suffix": 93, "middle": 92, "seed": draw(st.integers(0, 9)), "rate": 0.5}
    return {"tokens": tokens, "lengths": lengths, "cuts": cuts}, attributes


@st.composite
def _drawable(draw: Any, op: Any = None) -> Call:
    lengths = draw(lengths_arrays())
    positive_lengths = draw(hnp.arrays("int64", len(lengths), elements=st.integers(0, 3)))
    positives = draw(hnp.arrays("int64", int(positive_lengths.sum()), elements=st.integers(0, 9)))
    weights = np.arange(1.0, 11.0)
    inputs = {
        "positives": positives,
        "lengths": lengths,
        "positive_lengths": positive_lengths,
        "weights": weights,
    }
    return inputs, {"high": 10, "seed": draw(st.integers(0, 9))}


@st.composite
def _texts(draw: Any, op: Any) -> Call:
    """Texts, and what to look for in them."""
    attributes = {"pattern": draw(st.sampled_from(["a", "B ", "é"]))}
    if op.name == "split_text":
        attributes = draw(st.sampled_from([{}, {"delimiter": " "}, {"delimiter": ""}, {"pattern": "[aB]*"}]))
    if op.name in ("strip", "upper", "casefold"):
        attributes = {}
    return text_arrays(draw(TEXTS)), attributes


@st.composite
def _listed_texts(draw: Any, op: Any) -> Call:
    """Lists of texts."""
    rows = draw(st.lists(TEXTS, max_size=3))
    counts = {"counts": np.array([len(row) for row in rows], np.int64)}
    given = text_arrays([text for row in rows for text in row]) | counts
    if op.name == "ngram_texts":
        attributes = {"separator": draw(st.sampled_from(["", "-", ", "])), "partial": draw(st.booleans())}
        return given, attributes | {"n": draw(st.sampled_from([1, 2, 3, [1, 2], [3, 1]]))}
    between = text_arrays([draw(st.sampled_from(["", "-", "é "])) for _ in rows])
    return given | {"separators": between["data"], "separator_lengths": between["lengths"]}, {}


@st.composite
def _repeating(draw: Any, op: Any = None) -> Call:
    """Pieces of which some are equal, and their sizes."""
    counts = draw(lengths_arrays(longest=8))
    pieces, sizes = (
        draw(hnp.arrays(dtype, int(counts.sum()), elements=st.integers(0, 3)))
        for dtype in ("uint64", "int32")
    )
    options = {"n": draw(st.integers(1, 3)), "top": draw(st.booleans())}
    return {"pieces": pieces, "sizes": sizes, "counts": counts}, options


@st.composite
def _steps(draw: Any, op: Any = None) -> Call:
    """Starts, stops and steps, up and down."""
    rows = draw(st.integers(0, 4))
    start, stop = (draw(hnp.arrays("int32", rows, elements=st.integers(-5, 5))) for _ in range(2))
    step = draw(hnp.arrays("int64", rows, elements=st.sampled_from([-2, -1, 1, 3])))
    return {"start": start, "stop": stop, "step": step}, {"inclusive": draw(st.booleans())}


@st.composite
def _slices(draw: Any, op: Any = None) -> Call:
    """Sequences, and Python's slices of them."""
    from strategies.calls import calls

    inputs, _ = draw(calls(registry.get("reverse_sequences")))
    rows = len(inputs["lengths"])
    start, stop = (draw(hnp.arrays("int64", rows, elements=st.integers(-6, 6))) for _ in range(2))
    step = draw(hnp.arrays("int32", rows, elements=st.sampled_from([-3, -1, 1, 2])))
    return {**inputs, "start": start, "stop": stop, "step": step}, {}


@st.composite
def _components(draw: Any, op: Any = None) -> Call:
    pairs = draw(hnp.arrays("int32", (draw(st.integers(0, 5)), 2), elements=st.integers(0, 6)))
    return {"pairs": pairs}, {"num_rows": 7}


@st.composite
def _spans(draw: Any, op: Any = None) -> Call:
    """Labelled spans and tokens of texts."""
    rows, given = draw(st.integers(0, 3)), {}
    for name in ("label_", ""):
        counts = draw(hnp.arrays("int64", rows, elements=st.integers(0, 3)))
        places = draw(hnp.arrays("int64", (int(counts.sum()), 2), elements=st.integers(0, 9)))
        places.sort(axis=1)
        given |= {
            f"{name}starts": places[:, 0].copy(),
            f"{name}ends": places[:, 1].copy(),
            f"{name}counts": counts,
        }
    given["labels"] = draw(hnp.arrays("int32", len(given["label_starts"]), elements=st.integers(1, 5)))
    return {one.name: given[one.name] for one in op.signature.input_arguments}, {}


@st.composite
def _paths(draw: Any, op: Any = None) -> Call:
    """Scores of at least one state, and which states may follow each other."""
    lengths, states = draw(lengths_arrays()), draw(st.integers(1, 3))
    dtype = draw(st.sampled_from(["float32", "float64"]))
    scores, transitions = (_numbers(draw, (rows, states), dtype) for rows in (int(lengths.sum()), states))
    allowed = draw(hnp.arrays("bool", (states, states)))
    return {"scores": scores, "transitions": transitions, "lengths": lengths, "allowed": allowed}, {}


PEERS = {
    "viterbi_decode": _paths,
    "connected_components": _components,
    "labels_of_tokens": _spans,
    "stride_within": _slices,
    **dict.fromkeys(
        [
            "casefold",
            "contains_text",
            "count_text",
            "ends_with",
            "replace_text",
            "split_text",
            "starts_with",
            "strip",
            "upper",
        ],
        _texts,
    ),
    "join_texts": _listed_texts,
    "lengths_range": _steps,
    "ngram_texts": _listed_texts,
    "fill_in_middle": _cuttable,
    "gather_matmul": _matrices,
    "group_order": _ids,
    "lengths_median": _quantiles,
    "lengths_quantile": _quantiles,
    "quantile_within_backward": _quantiles,
    "mask_tokens": _maskable,
    "random_integers": _drawable,
    "repetition_shares": _repeating,
    "route_topk": _experts,
    "segment_matmul": _matrices,
    "span_corrupt": _corruptible,
    "truncate_together": _columns,
    "unroute": _routed,
}
