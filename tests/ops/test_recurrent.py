"""Recurrent cells agree with a loop over sequences and steps, and with PyTorch's."""

import kernel_sets
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seqflow as sf
from seqflow import kernels, ops
from seqflow.errors import OpTypeError

GATES = {"rnn": 1, "gru": 3, "lstm": 4}
TOLERANCE = {"float32": 1e-5, "float64": 1e-10}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def looped(
    op,
    x,
    lengths,
    w_ih,
    w_hh,
    *,
    bias_ih=0,
    bias_hh=0,
    h0=None,
    c0=None,
    w_hr=None,
    proj_size=None,
    reverse=False,
    **how,
):
    """One sequence after another, one step after another, in float64."""
    hidden = len(w_hh) // GATES[op]
    width = proj_size or hidden
    x, w_ih, w_hh = (np.asarray(a, np.float64) for a in (x, w_ih, w_hh))
    bias_ih, bias_hh = (np.broadcast_to(np.asarray(b, np.float64), len(w_hh)) for b in (bias_ih, bias_hh))
    out = np.zeros((len(x), width))
    h_last, c_last = (
        np.zeros((len(lengths), size)) if a is None else np.array(a, np.float64)
        for a, size in ((h0, width), (c0, hidden))
    )
    start = 0
    for i, length in enumerate(lengths):
        rows = range(start, start + int(length))
        for row in reversed(rows) if reverse else rows:
            a, b = w_ih @ x[row] + bias_ih, w_hh @ h_last[i] + bias_hh
            h, c_last[i] = STEPS[op](a, b, h_last[i], c_last[i], w_hh, bias_hh, **how)
            out[row] = h_last[i] = h if w_hr is None else np.asarray(w_hr, np.float64) @ h
        start += int(length)
    return (out, h_last, c_last) if op == "lstm" else (out, h_last)


def lstm_step(a, b, h, c, w_hh, bias_hh):
    i, f, g, o = np.split(a + b, 4)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def gru_step(a, b, h, c, w_hh, bias_hh, linear_before_reset=True):
    (ra, za, na), (rb, zb, nb) = np.split(a, 3), np.split(b, 3)
    r, z = sigmoid(ra + rb), sigmoid(za + zb)
    if not linear_before_reset:
        n = np.tanh(na + np.split(w_hh, 3)[2] @ (r * h) + np.split(bias_hh, 3)[2])
    else:
        n = np.tanh(na + r * nb)
    return (1 - z) * n + z * h, c


def rnn_step(a, b, h, c, w_hh, bias_hh, nonlinearity="tanh"):
    return np.tanh(a + b) if nonlinearity == "tanh" else np.maximum(a + b, 0), c


STEPS = {"lstm": lstm_step, "gru": gru_step, "rnn": rnn_step}


def draw_problem(draw, op, dtype, *, states=True, directions=1):
    """x, lengths, weights for each direction with those of a projection last, or None, and initial states."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    lengths = np.array(
        draw(st.lists(st.one_of(st.integers(0, 3), st.integers(0, 40)), max_size=20)), np.int64
    )
    inputs, hidden = draw(st.integers(1, 40)), draw(st.integers(1, 40))

    def normal(*shape):
        return (random.standard_normal(shape) / (2 * np.sqrt(hidden))).astype(dtype)

    gates = GATES[op] * hidden
    projects = op == "lstm" and hidden > 1 and draw(st.booleans())
    width = draw(st.integers(1, hidden - 1)) if projects else hidden
    weights = [
        (
            normal(gates, inputs), normal(gates, width), normal(gates), normal(gates),
            normal(width, hidden) if projects else None,
        )
        for _ in range(directions)
    ]  # fmt: skip
    initial = {}
    if states and draw(st.booleans()):
        initial = {"h0": normal(len(lengths), directions * width)}
        if op == "lstm":
            initial["c0"] = normal(len(lengths), directions * hidden)
    return normal(int(lengths.sum()), inputs), lengths, weights, initial


def biases(op, ih, hh, w_hr=None):
    """The biases of an op, and the weights of a projection."""
    projection = {} if w_hr is None else {"w_hr": w_hr}
    return ({"bias_ih": ih, "bias_hh": hh} if op == "gru" else {"bias": ih + hh}) | projection


def projected(w_hr):
    return {} if w_hr is None else {"proj_size": len(w_hr)}


ATTRIBUTES = [
    ("rnn", {}), ("rnn", {"nonlinearity": "relu"}), ("gru", {}), ("gru", {"linear_before_reset": False}), ("lstm", {}),
]  # fmt: skip


@pytest.mark.each_choice
@pytest.mark.parametrize("name", kernel_sets.ALL)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("op", "attributes"), ATTRIBUTES, ids=lambda value: str(value))
@given(data=st.data(), reverse=st.booleans())
@settings(max_examples=15, deadline=None)
def test_every_cell_gives_what_a_loop_over_sequences_and_steps_gives(
    name, op, attributes, dtype, data, reverse
):
    x, lengths, [(w_ih, w_hh, ih, hh, w_hr)], states = draw_problem(data.draw, op, dtype)
    same = states | attributes | projected(w_hr) | {"reverse": reverse}
    expected = looped(op, x, lengths, w_ih, w_hh, bias_ih=ih, bias_hh=hh, w_hr=w_hr, **same)
    with kernels.use(name):
        found = getattr(ops, op)(x, lengths, w_ih, w_hh, **biases(op, ih, hh, w_hr), **same)
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE[dtype])


@pytest.mark.each_choice
@pytest.mark.parametrize("name", kernel_sets.ALL)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("op", GATES)
@given(data=st.data(), bidirectional=st.booleans())
@settings(max_examples=15, deadline=None)
def test_every_cell_gives_what_torch_gives_on_packed_sequences(name, op, dtype, data, bidirectional):
    torch = pytest.importorskip("torch")
    directions = 1 + bidirectional
    x, lengths, weights, states = draw_problem(data.draw, op, dtype, directions=directions)
    module = torch_module(torch, op, weights, bidirectional)
    prefix = "bidirectional_" if bidirectional else ""
    arguments = torch_arguments(op, weights)
    with kernels.use(name):
        found = getattr(ops, prefix + op)(x, lengths, **arguments, **states, **projected(weights[0][-1]))
    filled = lengths > 0  # torch refuses empty sequences
    for state in ("h0", "c0"):
        last = getattr(found, state.replace("0", "_last"), None)
        if last is not None:
            np.testing.assert_array_equal(last[~filled], states[state][~filled] if states else 0)
    if not filled.any():
        return
    sequences = np.split(x, np.cumsum(lengths)[:-1])
    packed = torch.nn.utils.rnn.pack_sequence(
        [torch.from_numpy(s) for s in sequences if len(s)], enforce_sorted=False
    )
    first = tuple(
        torch.from_numpy(np.stack(np.split(state[filled], directions, axis=1))) for state in states.values()
    )
    with torch.no_grad():
        output, last = module(packed, *([first if op == "lstm" else first[0]] if first else []))
    unpacked = torch.cat(torch.nn.utils.rnn.unpack_sequence(output)).numpy()
    np.testing.assert_allclose(found.h, unpacked, rtol=0, atol=TOLERANCE[dtype])
    for ours, theirs in zip(found[1:], last if op == "lstm" else [last], strict=True):
        theirs = np.concatenate(list(theirs.numpy()), axis=1)
        np.testing.assert_allclose(ours[filled], theirs, rtol=0, atol=TOLERANCE[dtype])


def torch_module(torch, op, weights, bidirectional):
    gates, inputs = weights[0][0].shape
    kind = getattr(torch.nn, op.upper())
    module = kind(
        inputs, gates // GATES[op], bidirectional=bidirectional, dtype=torch.from_numpy(weights[0][0]).dtype,
        **projected(weights[0][-1]),
    )  # fmt: skip
    names = ["weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0", "weight_hr_l0"]
    names += [f"{name}_reverse" for name in names]
    arrays = [array for direction in weights for array in direction]
    given = zip(names, arrays, strict=False)
    module.load_state_dict({name: torch.from_numpy(a) for name, a in given if a is not None})
    return module


def torch_arguments(op, weights):
    arguments = {}
    for suffix, (w_ih, w_hh, *more) in zip(["", "_reverse"], weights, strict=False):
        arguments |= {f"w_ih{suffix}": w_ih, f"w_hh{suffix}": w_hh}
        arguments |= {f"{name}{suffix}": array for name, array in biases(op, *more).items()}
    return arguments


@pytest.mark.parametrize("op", GATES)
def test_two_directions_are_a_forward_and_a_reverse_cell_side_by_side(op):
    random = np.random.default_rng(1)
    lengths = np.array([3, 0, 5, 1])
    x = random.standard_normal((9, 4))
    gates = GATES[op] * 2
    forward, backward = (
        {
            "w_ih": random.standard_normal((gates, 4)),
            "w_hh": random.standard_normal((gates, 2)),
            **biases(op, *random.standard_normal((2, gates))),
        }
        for _ in range(2)
    )
    states = {"h0": random.standard_normal((4, 4))} | (
        {"c0": random.standard_normal((4, 4))} if op == "lstm" else {}
    )
    both = getattr(ops, f"bidirectional_{op}")(
        x, lengths, **forward, **{f"{name}_reverse": w for name, w in backward.items()}, **states
    )
    one = getattr(ops, op)(x, lengths, **forward, **{name: s[:, :2] for name, s in states.items()})
    other = getattr(ops, op)(
        x, lengths, **backward, **{name: s[:, 2:] for name, s in states.items()}, reverse=True
    )
    for joined, left, right in zip(both, one, other, strict=True):
        np.testing.assert_array_equal(joined, np.concatenate([left, right], axis=1))


def problem(op, *, hidden=3, inputs=2, lengths=(2, 0, 3), dtype="float32"):
    random = np.random.default_rng(3)
    lengths = np.array(lengths, np.int64)
    gates = GATES[op] * hidden
    shapes = (int(lengths.sum()), inputs), (gates, inputs), (gates, hidden)
    x, w_ih, w_hh = (random.standard_normal(shape).astype(dtype) for shape in shapes)
    return {"x": x, "lengths": lengths, "w_ih": w_ih, "w_hh": w_hh}


def swapped(weights):
    i, f, g, o = np.split(weights, 4)
    return np.concatenate([i, f, o, g])


def test_caffe2s_order_of_gates_is_i_f_o_g():
    plain = problem("lstm")
    bias = np.arange(12, dtype=np.float32) / 8
    expected = ops.lstm(**plain, bias=bias)

    given = plain | {"w_ih": swapped(plain["w_ih"]), "w_hh": swapped(plain["w_hh"])}
    found = ops.lstm(**given, bias=swapped(bias), gate_order="ifog")
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("gate_order", ["ifgo", "ifog"])
@pytest.mark.parametrize("bias", [None, np.ones(12, np.float32)])
def test_forget_bias_is_added_to_the_bias_of_the_forget_gate(gate_order, bias):
    plain = problem("lstm")
    other = np.zeros(12, np.float32) if bias is None else bias.copy()
    other[3:6] += 1.5
    found = ops.lstm(**plain, bias=bias, forget_bias=1.5, gate_order=gate_order)
    expected = ops.lstm(**plain, bias=other, gate_order=gate_order)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert bias is None or (bias == 1).all()


@pytest.mark.parametrize("proj_size", [1, 2])
@pytest.mark.parametrize("gate_order", ["ifgo", "ifog"])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_projection_goes_with_any_attribute(proj_size, gate_order, reverse):
    random = np.random.default_rng(4)
    plain = problem("lstm", dtype="float64") | {"w_hh": random.standard_normal((12, proj_size))}
    states = {"h0": random.standard_normal((3, proj_size)), "c0": random.standard_normal((3, 3))}
    more = states | {
        "w_hr": random.standard_normal((proj_size, 3)),
        "proj_size": proj_size,
        "reverse": reverse,
    }
    bias = random.standard_normal(12)
    expected = looped("lstm", **plain, bias_ih=bias + np.repeat([0, 1.5, 0, 0], 3), **more)
    if gate_order == "ifog":
        plain |= {name: swapped(plain[name]) for name in ("w_ih", "w_hh")}
        bias = swapped(bias)
    found = ops.lstm(**plain, bias=bias, gate_order=gate_order, forget_bias=1.5, **more)
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("op", GATES)
def test_an_empty_sequence_gives_its_initial_state(op):
    plain = problem(op, lengths=(0, 0))
    h0 = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    found = getattr(ops, op)(**plain, h0=h0)
    assert found.h.shape == (0, 3)
    np.testing.assert_array_equal(found.h_last, h0)
    assert not np.may_share_memory(found.h_last, h0)


@pytest.mark.parametrize("op", GATES)
def test_there_may_be_no_sequences_no_inputs_and_no_hidden_units(op):
    assert getattr(ops, op)(**problem(op, lengths=())).h_last.shape == (0, 3)
    assert getattr(ops, op)(**problem(op, inputs=0)).h.shape == (5, 3)
    assert getattr(ops, op)(**problem(op, hidden=0)).h.shape == (5, 0)


@pytest.mark.parametrize("op", GATES)
def test_float16_is_computed_in_float32(op):
    half = problem(op, dtype="float16")
    how = {}
    if op == "lstm":
        half |= {"w_hh": half["w_hh"][:, :2], "w_hr": np.arange(6, dtype="float16").reshape(2, 3) / 8}
        how = {"proj_size": 2}
    full = {name: a.astype("float32") if name != "lengths" else a for name, a in half.items()}
    for ours, theirs in zip(getattr(ops, op)(**half, **how), getattr(ops, op)(**full, **how), strict=True):
        np.testing.assert_array_equal(ours, theirs.astype("float16"))


@pytest.mark.parametrize("name", kernel_sets.ALL)
@pytest.mark.parametrize("op", GATES)
def test_nan_stays_in_its_sequence_and_behind_its_step(name, op):
    plain = problem(op, lengths=(4, 5, 3))
    plain["x"][5] = np.nan
    with kernels.use(name):
        found = getattr(ops, op)(**plain).h
    np.testing.assert_array_equal(np.isnan(found).all(axis=1), [False] * 5 + [True] * 4 + [False] * 3)
    assert np.isnan(found).any(axis=1).sum() == 4


@pytest.mark.parametrize("name", kernel_sets.ALL)
@pytest.mark.parametrize("op", GATES)
def test_infinite_inputs_saturate_the_gates(name, op):
    plain = problem(op, lengths=(1, 1), hidden=5, inputs=1)
    plain["x"][:] = [[np.inf], [-np.inf]]
    with kernels.use(name), np.errstate(all="ignore"):
        expected = looped(op, *plain.values())[0]
        np.testing.assert_allclose(getattr(ops, op)(**plain).h, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", kernel_sets.ALL)
@pytest.mark.parametrize("op", GATES)
def test_sequences_do_not_depend_on_the_others_they_are_run_with(name, op):
    plain = problem(op, hidden=33, inputs=17, lengths=range(20), dtype="float64")
    with kernels.use(name):
        together = getattr(ops, op)(**plain).h
        for i, rows in enumerate(np.split(np.arange(190), np.cumsum(range(20))[:-1])):
            alone = getattr(ops, op)(plain["x"][rows], np.array([i]), plain["w_ih"], plain["w_hh"]).h
            np.testing.assert_allclose(alone, together[rows], rtol=0, atol=1e-10)


BAD = [
    (
        {"w_ih": np.zeros((11, 2), "f")},
        sf.ShapeError,
        r"lstm: w_ih.shape\[0\] is 11, expected 4\*H for some H",
    ),
    (
        {"w_ih": np.zeros((12, 3), "f")},
        sf.ShapeError,
        r"lstm: w_ih.shape\[1\] is 3, expected 2 as in x.shape\[1\]",
    ),
    (
        {"w_hh": np.zeros((12, 4), "f")},
        sf.ShapeError,
        r"lstm: w_hh.shape\[1\] is 4, expected 3 .*H is 3 as in w_ih.shape\[0\]",
    ),
    (
        {"w_hh": np.zeros((8, 3), "f")},
        sf.ShapeError,
        r"lstm: w_hh.shape\[0\] is 8, expected 12 .*H is 3 as in w_ih.shape\[0\]",
    ),
    ({"w_hh": np.zeros(12, "f")}, sf.ShapeError, r"lstm: w_hh has 1 dimensions \(12,\), expected 2"),
    ({"bias": np.zeros(13, "f")}, sf.ShapeError, r"lstm: bias.shape\[0\] is 13, expected 12"),
    (
        {"h0": np.zeros((2, 3), "f")},
        sf.ShapeError,
        r"lstm: h0.shape\[0\] is 2, expected 3 as in lengths.shape\[0\]",
    ),
    (
        {"c0": np.zeros((3, 4), "f")},
        sf.ShapeError,
        r"lstm: w_ih.shape\[0\] is 12, expected 16 .*H is 4 as in c0.shape\[1\]",
    ),
    ({"x": np.zeros((6, 2), "f")}, sf.LodError, r"lstm: sum\(lengths\) is 5 but x has 6 rows"),
    ({"w_hh": np.zeros((12, 3))}, OpTypeError, "lstm: w_hh is float64 but x is float32"),
    ({"bias": np.zeros(12)}, OpTypeError, "lstm: bias is float64 but x is float32"),
    ({"c0": np.zeros((3, 3), "f2")}, OpTypeError, "lstm: c0 is float16 but x is float32"),
    ({"x": np.zeros((5, 2), int)}, OpTypeError, "lstm: x is int64, expected floats"),
    ({"w_ih": None}, sf.SeqflowError, "lstm: w_ih"),
    ({"gate_order": "iofg"}, sf.OpError, "lstm: gate_order is 'iofg', expected 'ifgo' or 'ifog'"),
    ({"proj_size": 3}, sf.OpError, "lstm: proj_size=3 is given without w_hr, expected both"),
    ({"w_hr": np.zeros((3, 3), "f")}, sf.OpError, "lstm: w_hr is given without proj_size, expected both"),
    (
        {"w_hr": np.zeros((3, 3), "f"), "proj_size": 3},
        sf.OpError,
        "lstm: proj_size is 3, expected less than 3, the columns of w_hr",
    ),
    ({"proj_size": 0}, sf.OpError, "lstm: proj_size is 0, expected an integer, 1 or more, or None"),
    (
        {"w_hr": np.zeros((2, 3), "f")},
        sf.ShapeError,
        r"lstm: w_hr.shape\[0\] is 2, expected 3 \(proj_size\|H is 3",
    ),
    (
        {"w_hr": np.zeros((3, 3), "f"), "proj_size": 2},
        sf.ShapeError,
        r"lstm: w_hh.shape\[1\] is 3, expected 2 \(proj_size\|H is 2",
    ),
    ({"w_hr": np.zeros((3, 3))}, OpTypeError, "lstm: w_hr is float64 but x is float32"),
    ({"forget_bias": "1"}, sf.SeqflowError, r"lstm: forget_bias is '1' \(str\), expected a number"),
]


@pytest.mark.parametrize(("wrong", "error", "message"), BAD, ids=[next(iter(w)) for w, _, _ in BAD])
def test_what_does_not_fit_is_an_error_that_says_which_dimension(wrong, error, message):
    with pytest.raises(error, match=message):
        ops.lstm(**{**problem("lstm"), **wrong})


@given(data=st.data())
def test_ctc_decoding_merges_repeats_and_drops_blanks(data):
    labels = data.draw(st.lists(st.lists(st.integers(0, 3), max_size=8), max_size=5))
    blank, merge = data.draw(st.integers(0, 3)), data.draw(st.booleans())
    lengths = np.array([len(sequence) for sequence in labels], np.int64)
    scores = np.eye(4)[[label for sequence in labels for label in sequence]].reshape(-1, 4)
    expected = []
    for sequence in labels:
        best, before = [], None
        for label in sequence:
            if label != blank and not (merge and label == before):
                best.append(label)
            before = label
        expected.append(best)
    found = ops.ctc_greedy_decode(scores, lengths, blank=blank, merge_repeated=merge)
    assert found.values.tolist() == [label for sequence in expected for label in sequence]
    assert found.lengths.tolist() == [len(sequence) for sequence in expected]


def test_the_first_of_equal_scores_is_the_best_label():
    assert ops.ctc_greedy_decode(np.array([[0, 2, 2], [1, 1, 1]]), np.array([2])).values.tolist() == [1]


def test_a_blank_is_one_of_the_labels():
    with pytest.raises(sf.OpError, match=r"ctc_greedy_decode: blank is 3, expected less than 3"):
        ops.ctc_greedy_decode(np.zeros((2, 3)), np.array([2]), blank=3)
