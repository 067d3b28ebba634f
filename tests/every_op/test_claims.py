"""A walk over the registry: what ops claim of their outputs, inference believes, so every claim is held against the op."""

import re

import numpy as np
import pytest
from claimed import bases_of, name_axes, owners, permuted, rows_of, size_name, tensors_of
from every_op import EXAMPLES, OPS, results, returned
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from marks import one_in
from strategies.calls import calls

import seqflow as sf
from seqflow import registry
from seqflow.net import Net
from seqflow.registry.results import DeclaredResults, compute
from seqflow.registry.value_numbering import given_attributes
from seqflow.signature import Described
from seqflow.signature.language import Given, Max, Name, OpCall, Sum, parts
from seqflow.signature.rows import name_outputs


def ops_that_claim(what):
    claiming = [op for op in OPS if getattr(op.claims, what)]
    assert claiming, f"no op claims {what}"
    return pytest.mark.parametrize("op", claiming, ids=lambda op: op.name)


@st.composite
def any_call(draw, op):
    """Inputs and attributes that the op takes, optional attributes too."""
    inputs, attributes = draw(calls(op))
    for attribute in op.attributes:
        if attribute.name in attributes or not draw(st.booleans()):
            continue
        if attribute.kind == "bool":
            attributes = {**attributes, attribute.name: draw(st.booleans())}
        elif attribute.kind in ("int", "scalar", "fill"):
            low = max(attribute.minimum or 0, 0)
            attributes = {**attributes, attribute.name: draw(st.integers(low, low + 6))}
        elif attribute.kind == "choice":
            attributes = {**attributes, attribute.name: draw(st.sampled_from(attribute.choices))}
    return inputs, attributes


def outputs_of(op, inputs, attributes):
    """The outputs of a call with their arguments; a call that the op refuses is not drawn."""
    try:
        found = results(op, inputs, attributes)
    except sf.SeqflowError:
        assume(False)
    named = name_outputs(op.signature, op.tensor_names(attributes))
    return [(one.argument, array) for one, array in zip(named, found, strict=True)]


def names_of(op, inputs, attributes):
    """What the names of a claim stand for."""
    return {**bases_of(op, inputs), **op.complete(attributes), **inputs}


def moved(array, by):
    """Other values of the same dtype and shape."""
    return (
        ~array
        if array.dtype.kind == "b"
        else array + np.asarray(by).astype(array.dtype if array.dtype.kind != "M" else "m8[s]")
    )


def same(one, other):
    return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()


# The checks: each fails where the op does not keep the claim


def check_depends(op, inputs, attributes, by=1):
    before = outputs_of(op, inputs, attributes)
    for what, names in op.claims.depends.items():
        others = {
            name: [moved(one, by) for one in value] if isinstance(value, list) else moved(value, by)
            for name, value in inputs.items()
            if name not in names and value is not None
        }
        for (argument, old), (_, new) in zip(
            before, outputs_of(op, {**inputs, **others}, attributes), strict=True
        ):
            if argument.field == what:
                assert same(old, new), f"{what} depends on more than {names}"
            axes = [axis for axis, dim in name_axes(argument, old) if size_name(dim) == what]
            assert all(old.shape[axis] == new.shape[axis] for axis in axes), f"size {what} depends on more"


def is_groups(space):
    return isinstance(space, OpCall) and space.op == "groups"


def base_of(space, op, inputs):
    """The name of the rows that are put in another order: those of the ids, for groups, else the first."""
    if is_groups(space):
        ids = next(a for a, _ in tensors_of(op, inputs) if a.name == str(space.arguments[0]))
        return size_name(ids.dims[0])
    return next(iter(bases_of(op, inputs)))


def check_rows(op, inputs, attributes, order=lambda size: np.arange(size)[::-1]):
    """The rows of the axis are as many as the claim says, and move with the rows they are made from."""
    before = outputs_of(op, inputs, attributes)
    for axis_name, space in op.claims.rows.items():
        names = names_of(op, inputs, attributes)
        old_rows = rows_of(space, names)
        for argument, array in before:
            for axis, dim in name_axes(argument, array):
                if size_name(dim) == axis_name and not (
                    isinstance(dim, Given) and op.complete(attributes).get(dim.attribute) is not None
                ):
                    assert array.shape[axis] == len(old_rows), f"{axis_name} is not {space}"
        base = base_of(space, op, inputs)
        new_order = order(len(names[base]))
        if is_groups(space):  # some ops want sorted ids
            new_order = new_order[np.argsort(inputs["ids"][new_order], kind="stable")]
        new_inputs = permuted(op, inputs, base, new_order)
        new_rows = rows_of(space, {**names_of(op, new_inputs, attributes), base: new_order})
        places = [(j, np.flatnonzero(old_rows == row)) for j, row in enumerate(new_rows)]
        for (argument, old), (_, new) in zip(before, outputs_of(op, new_inputs, attributes), strict=True):
            if argument.dims and size_name(argument.dims[0]) == axis_name and argument.dtype.word != "index":
                for j, (i, *_) in ((j, found) for j, found in places if len(found)):
                    np.testing.assert_allclose(
                        new[j].astype(float),
                        old[i].astype(float),
                        rtol=1e-5,
                        err_msg=f"{axis_name} is not {space}",
                    )
        if not is_groups(space) or "ids" in inputs:
            check_what_rows_are_made_from(op, inputs, attributes, axis_name, space, base, old_rows, before)


def check_what_rows_are_made_from(op, inputs, attributes, axis_name, space, base, rows, before):
    """Other values in one row of the inputs change no other row of the output than the one the claim says."""
    spoken_of = set(re.findall(r"\w+", str(space)))
    for argument, array in tensors_of(op, inputs):
        if argument.name in spoken_of or argument.is_lengths or size_name(argument.dims[0]) != base:
            continue
        for row in range(len(array)):
            changed = array.copy()
            changed[row] = moved(array[row], 1)
            its = rows == (inputs["ids"][row] if is_groups(space) else row)
            after = outputs_of(op, {**inputs, argument.name: changed}, attributes)
            for (output, old), (_, new) in zip(before, after, strict=True):
                if output.dims and size_name(output.dims[0]) == axis_name:
                    assert same(old[~its], new[~its]), f"{axis_name} is not {space}"


def mask_of(lengths, width, side):
    steps = np.arange(width) if side == "right" else np.arange(width)[::-1]
    return steps < np.asarray(lengths).astype(np.int64)[:, None]


def check_steps(op, inputs, attributes):
    """What is padded for lengths changes where these lengths have rows, and nowhere else."""
    side = op.complete(attributes).get("side", "right")
    before = outputs_of(op, inputs, attributes)
    for name, (definition, condition) in op.claims.steps.items():
        if not condition.holds(given_attributes(op, attributes)):
            continue
        lengths = compute(definition, {**op.complete(attributes), **inputs})
        changed = {n: moved(v, 1) for n, v in inputs.items() if n != name}
        after = outputs_of(op, {**inputs, **changed}, attributes)
        for (argument, old), (_, new) in zip(before, after, strict=True):
            sizes = [getattr(dim, "otherwise", dim) for dim in argument.dims]
            if Max(name) not in sizes:
                continue
            mask = mask_of(lengths, old.shape[1], side)
            if argument.field in op.claims.masks:
                np.testing.assert_array_equal(old, mask)
            elif old[0:1, 0:1].size:
                differ = (old != new).reshape(*old.shape[:2], -1)
                assert (differ.any(-1) == mask).all(), f"{argument.name} is padded for other lengths"


def check_masks(op, inputs, attributes):
    side = op.complete(attributes).get("side", "right")
    for argument, array in outputs_of(op, inputs, attributes):
        lengths = op.claims.masks.get(argument.field)
        if lengths is not None:
            np.testing.assert_array_equal(array, mask_of(inputs[lengths], array.shape[1], side))


def check_describes(op, inputs, attributes):
    """The output, taken as lengths, describes as many rows as the claim says; each is of the sequence it was of."""
    for argument, array in outputs_of(op, inputs, attributes):
        space, condition = op.claims.describes.get(argument.field, (None, None))
        if space is None or not condition.holds(given_attributes(op, attributes)):
            continue
        if not is_lengths(array) or not all(is_lengths(one) for one in described(op, space, inputs)):
            continue
        rows = rows_of(space, names_of(op, inputs, attributes))
        assert int(array.sum()) == len(rows), f"{argument.name} does not describe {space}"
        owner = owner_of_each_row(op, space, inputs)
        if owner is not None:
            np.testing.assert_array_equal(owners(array), owner)


def is_lengths(array):
    return array.ndim == 1 and array.dtype.kind in "iu" and (array.dtype.kind == "u" or (array >= 0).all())


def described(op, space, inputs):
    """The tensors that a claim takes as lengths."""
    for part in parts(space):
        if isinstance(part, Sum):
            value = inputs[part.of]
            yield from value if isinstance(value, list) else [value]


def owner_of_each_row(op, space, inputs):
    """The sequence of each row of a claimed space; None where the claim joins all rows there are."""
    lengths = next((array for argument, array in tensors_of(op, inputs) if argument.name == "lengths"), None)
    match space:
        case OpCall(op="select", arguments=(Sum(), Name(name=mask))):
            return owners(lengths)[inputs[mask]]
        case Sum(of="data"):
            return np.repeat(owners(lengths), inputs["data"].astype(np.int64))
        case Name():
            return inputs["ids"]
    return None


def check_inverse(op, data):
    """What the other op made of its inputs comes back as it was."""
    name, condition = op.claims.inverse
    other = registry.get(name)
    inputs, attributes = data.draw(any_call(other))
    made = dict.fromkeys(())
    for argument, array in outputs_of(other, inputs, attributes):
        made[argument.field] = array
    shared = {a.name for a in op.attributes} & {a.name for a in other.attributes}
    own = {name: attributes[name] for name in shared & attributes.keys()}
    for one in condition.given:
        own[one] = len(inputs["lengths"])
    if not condition.holds(given_attributes(op, own) | given_attributes(other, attributes)):
        return
    taken = [argument.name for argument in op.signature.input_arguments]
    first = "values" if "values" in made else taken[0]
    given_back = {
        n: made[first] if n == taken[0] and first in made else made[n] if n in made else inputs[n]
        for n in taken
    }
    for argument, array in outputs_of(op, given_back, own):
        original = "data" if argument.field in ("values", "data") else argument.field
        np.testing.assert_array_equal(
            array, inputs[original], f"{argument.name} is not what {name} was given"
        )


CHECKS = {
    "depends": check_depends,
    "rows": check_rows,
    "steps": check_steps,
    "masks": check_masks,
    "describes": check_describes,
}


@pytest.mark.parametrize(
    ("what", "op"),
    [
        pytest.param(what, op, id=f"{what}-{op.name}")
        for what in CHECKS
        for op in OPS
        if getattr(op.claims, what)
    ],
)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_a_claim_holds(what, op, data):
    inputs, attributes = data.draw(any_call(op))
    if what == "depends":
        check_depends(op, inputs, attributes, data.draw(st.integers(1, 9)))
    elif what == "rows":
        check_rows(
            op, inputs, attributes, lambda size: np.array(data.draw(st.permutations(range(size))), int)
        )
    else:
        CHECKS[what](op, inputs, attributes)


def check_values(op, inputs, attributes):
    """Outputs are what the signature defines them to be, and within its bounds."""
    declared = DeclaredResults(op, list(inputs.values()), op.complete(attributes))
    try:
        found = returned(op, inputs, attributes)
    except sf.SeqflowError as error:
        assume("the result is not what the signature declares" in str(error))
        raise
    declared.check(found)


SAYING = [op for op in OPS if any(op.signature.values())]


@pytest.mark.parametrize("op", SAYING, ids=lambda op: op.name)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_definitions_and_bounds_hold(op, data):
    inputs, attributes = data.draw(any_call(op))
    attributes.pop("missing", None)  # it need not be an index
    check_values(op, inputs, attributes)


@ops_that_claim("inverse")
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_an_inverse_gives_back_what_there_was(op, data):
    check_inverse(op, data)


# What integers point at

POINTING = [
    op for op in OPS if any(a.dtype.word in ("index", "position") for a in op.signature.output_arguments)
]
MOVING = [
    op for op in OPS if op.claims.moves and any(a.dtype.word == "any" for a in op.signature.output_arguments)
]


def number_of(name, op, inputs, attributes):
    """How many rows a name stands for, by the inputs and outputs that have them."""
    for argument, array in (*tensors_of(op, inputs), *outputs_of(op, inputs, attributes)):
        for axis, dim in name_axes(argument, array):
            if size_name(dim) == name:
                return array.shape[axis]
    raise AssertionError(name)


def check_index(op, inputs, attributes):
    """Indices are inside the rows that they point at; -1 is none."""
    outputs = outputs_of(op, inputs, attributes)
    tensors = {argument.name: array for argument, array in outputs} | inputs
    for argument, array in outputs:
        if argument.dtype.word == "index":
            of = argument.dtype.points
            count = (
                int(tensors[of.of].sum())
                if isinstance(of, Sum)
                else number_of(of.name, op, inputs, attributes)
            )
            assert array.dtype == np.int64
            assert ((array >= -1) & (array < count)).all(), f"{argument} is outside"


def check_position(op, inputs, attributes):
    """Positions are inside their sequence; -1 is none. Their rows are those of sequences, or of all their rows."""
    outputs = outputs_of(op, inputs, attributes)
    tensors = {a.name: one for a, one in (*tensors_of(op, inputs), *outputs)}
    for argument, array in outputs:
        if argument.dtype.word == "position":
            lengths = tensors[str(argument.dtype.points)].astype(np.int64)
            first = argument.dims[0]
            sequences = owners(tensors[first.of]) if isinstance(first, Sum) else np.arange(len(lengths))
            longest = lengths[sequences].reshape(-1, *[1] * (array.ndim - 1))
            assert array.dtype == np.int64
            assert ((array >= -1) & (array < longest)).all(), f"{argument} is outside"


def check_moves(op, inputs, attributes):
    """Outputs of no dtype word hold what the moved inputs hold, or what attributes fill in."""
    held = {0, -1, *(v for v in op.complete(attributes).values() if isinstance(v, int))}
    held |= {one for v in op.complete(attributes).values() if isinstance(v, tuple) for one in v}

    def other(array):
        found = (np.arange(array.size, dtype=np.int64) % 90 + 17).reshape(array.shape)
        held.update(found.ravel().tolist())
        return found

    for name in op.claims.moves:
        if inputs.get(name) is not None:
            value = inputs[name]
            inputs = {**inputs, name: list(map(other, value)) if isinstance(value, list) else other(value)}
    for argument, array in outputs_of(op, inputs, attributes):
        if argument.dtype.word == "any":
            assert {*array.ravel().tolist()} <= held, f"{argument.name} is not what was moved"


@pytest.mark.parametrize("op", POINTING, ids=lambda op: op.name)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_integers_point_at_what_the_signature_says(op, data):
    inputs, attributes = data.draw(any_call(op))
    attributes.pop("missing", None)
    check_index(op, inputs, attributes)
    check_position(op, inputs, attributes)


@pytest.mark.parametrize("op", MOVING, ids=lambda op: op.name)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_what_moves_is_not_changed(op, data):
    check_moves(op, *data.draw(any_call(op)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "op", one_in(4, (op for op in OPS if op.claims.pure), first=1), ids=lambda op: op.name
)
@given(data=st.data())
@settings(max_examples=5)
def test_a_pure_op_gives_the_same_twice(op, data):
    inputs, attributes = data.draw(any_call(op))
    before = outputs_of(op, inputs, attributes)
    for (_, one), (_, other) in zip(before, outputs_of(op, inputs, attributes), strict=True):
        assert same(one, other)


def test_without_its_condition_an_inverse_does_not_hold():
    packed = sf.ops.pack_rows([1], [1, 0], capacity=1)
    pieces = packed.packed, packed.sources, packed.piece_lengths, packed.pieces
    assert sf.ops.unpack_rows(*pieces, num_sequences=2).lengths.tolist() == [1, 0]
    assert sf.ops.unpack_rows(*pieces).lengths.tolist() == [1]
    tokens = sf.ops.bytes_to_tokens(np.array([97], np.uint8), [1], end=10)
    assert sf.ops.tokens_to_bytes(*tokens).lengths.tolist() == [2]
    padded = sf.ops.add_padding([1], [1], None, None, before=1)
    assert sf.ops.remove_padding(*padded, before=1, after=0).lengths.tolist() == [2]


@pytest.mark.parametrize(
    "text",
    [
        "p = pack_rows(x.values, x.lengths, capacity=4)\n"
        "y, n = unpack_rows(p.packed, p.sources, p.piece_lengths, p.pieces)",
        "t, m = bytes_to_tokens(x.values, x.lengths, end=10)\ny, n = tokens_to_bytes(t, m)",
        "t, m = add_padding(x.values, x.lengths, before=1)\ny, n = remove_padding(t, m, before=1, after=0)",
    ],
)
def test_inference_believes_no_inverse_whose_condition_does_not_hold(text):
    specs = {
        "x.values": sf.TensorSpec("uint8", "{sum(x.lengths)}", Described("x.lengths")),
        "x.lengths": sf.TensorSpec("int64", "{B}"),
    }
    with pytest.raises(sf.LodError):
        Net(f"{text}\nsums = lengths_sum(x.values, n)").infer(specs)


# Lies: a claim that does not hold is found


@pytest.fixture
def declare():
    """Register ops for one test."""
    made = []

    def register(signature, function, **claims):
        sf.op(signature, **claims)(function)
        made.append(function.__name__)
        return registry.get(function.__name__)

    yield register
    for name in made:
        registry.unregister(name)


DATA = {"data": np.array([1, 2, 3]), "lengths": np.array([2, 0, 1])}
MASK = {"data": np.array([1, 2, 3, 4]), "mask": np.array([True, False, True, False])}


def lying_lengths(data, lengths):
    """Lengths that depend on the data."""
    kept = np.maximum(lengths - (data[:1].sum() % 2), 0)
    return np.arange(int(kept.sum())), kept


def lying_rows(data, mask):
    """The rows that a mask does not select."""
    return data[~mask]


def shuffling_rows(data, mask):
    """The rows that a mask selects, the largest first."""
    return np.sort(data[mask])[::-1]


def lying_pad(data, lengths):
    """A mask that is true everywhere, and padding in the wrong place."""
    mask = np.zeros((len(lengths), int(lengths.max(initial=0))), bool)
    return mask[:, ::-1] | (np.arange(mask.shape[1]) >= mask.shape[1] - lengths[:, None])


def one_longer(data, lengths):
    """One row more in each sequence."""
    return np.zeros(len(data) + len(lengths), data.dtype), lengths + np.int64(1)


def doubled(data, lengths):
    return data * 2


SEQUENCES = "data[sum(lengths)], lengths[B] -> values[sum(lengths')], int64 lengths'[B]"
LIES = [
    ("depends", SEQUENCES, lying_lengths, {"depends": {"lengths": "lengths"}}, DATA),
    ("describes", SEQUENCES, lying_lengths, {"describes": {"lengths": "sum(lengths)"}}, DATA),
    ("rows", "data[N], bool mask[N] -> rows[K]", lying_rows, {"rows": {"K": "select(N, mask)"}}, MASK),
    ("rows", "data[N], bool mask[N] -> rows[K]", shuffling_rows, {"rows": {"K": "select(N, mask)"}}, MASK),
    ("masks", "data[sum(lengths)], lengths[B] -> bool mask[B, max(lengths)]", lying_pad,
     {"masks": {"mask": "lengths"}}, DATA),
]  # fmt: skip


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ("int64 lengths'[B] := minimum(lengths, 2)", "lengths' is .*, defined as minimum.lengths, 2."),
        ("int64 lengths'[B] <= lengths", "lengths' is .*, expected at most lengths"),
        ("int64 lengths'[B], sum(lengths') <= sum(lengths)", "sum.lengths'. is .*, expected at most sum"),
        ("int64 lengths'[K], K <= 2", "K is .*, expected at most 2"),
    ],
)
def test_a_definition_or_a_bound_that_does_not_hold_is_found(said, wrong, declare):
    """By what walks over all ops: it draws the inputs from the signature."""
    op = declare(f"data[sum(lengths)], lengths[B] -> values[sum(lengths')], {said}", one_longer)

    @given(data=st.data())
    @settings(max_examples=100, database=None)
    def walk(data):
        check_values(op, *data.draw(any_call(op)))

    with pytest.raises(sf.OpError, match=wrong):
        walk()


def test_a_change_of_what_is_said_to_move_is_found(declare):
    op = declare("data[sum(lengths)], lengths[B] -> values[sum(lengths)]", doubled, moves="data")
    with pytest.raises(AssertionError):
        check_moves(op, DATA, {})


@pytest.mark.parametrize(
    ("what", "signature", "function", "claims", "inputs"), LIES, ids=lambda one: str(one)[:20]
)
def test_a_lie_is_found(what, signature, function, claims, inputs, declare):
    op = declare(signature, function, **claims)
    with pytest.raises(AssertionError):
        CHECKS[what](op, inputs, {})
