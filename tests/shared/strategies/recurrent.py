"""Inputs for recurrent cells, whose weights have to fit together, and for what reads their outputs."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from seqflow import registry

Call = tuple[dict[str, Any], dict[str, Any]]
GATES = {"rnn": 1, "gru": 3, "lstm": 4}
LENGTHS = st.sampled_from(["int32", "int64", "uint16"]).flatmap(
    lambda dtype: hnp.arrays(dtype, st.integers(0, 4), elements=st.integers(0, 4))
)


@st.composite
def _recurrent(draw: Any, op: Any) -> Call:
    """Weights small enough not to blow up what rounding differs in."""
    lengths, inputs, hidden = draw(LENGTHS), draw(st.integers(0, 4)), draw(st.integers(0, 4))
    dtype = draw(st.sampled_from(["float32", "float64"]))
    gates = GATES[op.name.removeprefix("bidirectional_")] * hidden
    directions = 2 if op.name.startswith("bidirectional_") else 1
    may_project = "w_hr" in op.signature.arguments and hidden > 1
    proj_size = draw(st.none() | st.integers(1, hidden - 1)) if may_project else None
    width = proj_size or hidden
    shapes = {
        "x": (int(lengths.sum()), inputs), "w_ih": (gates, inputs), "w_hh": (gates, width),
        "bias": (gates,), "bias_ih": (gates,), "bias_hh": (gates,), "h0": (len(lengths), width * directions),
        "c0": (len(lengths), hidden * directions), "w_hr": (width, hidden),
    }  # fmt: skip
    given = {}
    for argument in op.signature.input_arguments:
        if argument.is_lengths:
            given[argument.name] = lengths
        elif proj_size or not argument.name.startswith("w_hr"):
            shape = shapes[argument.name.removesuffix("_reverse")]
            values = draw(hnp.arrays("int64", shape, elements=st.integers(-8, 8)))
            given[argument.name] = (values / 16).astype(dtype)
    choices = {a.name: st.sampled_from(a.choices) for a in op.attributes if a.kind == "choice"}
    choices |= {a.name: st.booleans() for a in op.attributes if a.kind == "bool"}
    if proj_size is not None:
        choices["proj_size"] = st.just(proj_size)
    return given, draw(st.fixed_dictionaries(choices))


@st.composite
def _label_scores(draw: Any, op: Any = None) -> Call:
    lengths, labels = draw(LENGTHS), draw(st.integers(1, 3))
    dtype = draw(st.sampled_from(["float16", "float32", "float64", "int8", "int64", "uint8", "uint64"]))
    scores = draw(hnp.arrays(dtype, (int(lengths.sum()), labels), elements=st.integers(0, 3)))
    attributes = {"blank": draw(st.integers(0, labels - 1)), "merge_repeated": draw(st.booleans())}
    return {"scores": scores, "lengths": lengths}, attributes


@st.composite
def _recurrent_backward(draw: Any, op: Any) -> Call:
    """What a recurrent op was given, the states it gave, and what arrives at these."""
    forward = registry.get(op.name.removesuffix("_backward"))
    given, attributes = draw(_recurrent(forward))
    results = forward.call(**given, **attributes)
    states = {"h": results.h, "d_h": results.h / 2 - 0.25}
    states |= {f"d_{name}": value + 0.5 for name, value in results._asdict().items() if name != "h"}
    known = {name: np.asarray(value, given["x"].dtype) for name, value in states.items()} | given
    inputs = (one.name for one in op.signature.input_arguments)
    return {name: known[name] for name in inputs if name in known}, attributes


LAYERS = ("rnn", "lstm", "gru", "bidirectional_rnn", "bidirectional_lstm", "bidirectional_gru")
RECURRENT = {
    **dict.fromkeys(LAYERS, _recurrent),
    **dict.fromkeys((f"{layer}_backward" for layer in LAYERS), _recurrent_backward),
    "ctc_greedy_decode": _label_scores,
}
