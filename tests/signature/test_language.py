"""The signature language: what it reads, and what it says about what it cannot read."""

import pytest

from seqflow.errors import OpError
from seqflow.signature.language import (
    Arithmetic,
    AtLeast,
    Each,
    FixedSize,
    Fresh,
    Given,
    Max,
    Name,
    OpCall,
    Repeated,
    Rest,
    Sum,
    evaluate,
)
from seqflow.signature.parser import parse, parse_value

SIGNATURES = [
    "data[sum(lengths), *d], lengths[B] -> sum_of(data) sums[B, *d]",
    "data[sum(lengths), *d], lengths[B] -> padded[B, max_length|max(lengths), *d], bool mask[B, max_length|max(lengths)]",
    "padded[B, T>=max(lengths), *d], lengths[B] -> data[sum(lengths), *d]",
    "table[R, *d], weights[P>=max(lengths)], index(R) indices[sum(lengths)], lengths[B] -> out[B, *d]",
    "data[sum(lengths), *d], lengths[B] -> values[sum(lengths'), *d], int64 lengths'[sum(counts)], int64 counts[B]",
    "{data[sum(lengths), *d], lengths[B]}+ -> values[sum(lengths'), *d], int64 lengths'[B]",
    "float x[N, *e, K], float weight[M, K], float bias[M]? -> y[N, *e, M]",
    "float x[sum(lengths), K], lengths[B], w_ih[4*H, K], w_hh[4*H, H], bias[4*H]? -> h[sum(lengths), H]",
    "data[N, *d] -> sorted[P=N, *d]",
    "x[N] -> unique[U], int64 inverse[N], int64 counts[U]",
    "lengths[B], lens other[B] -> ",
    "int keys[sum(lengths)], lengths[B] -> {int64 values[sum(lengths')], int64 lengths'[B]}*parts",
    "lengths[B] -> int64 offsets[B+1]",
    "lengths[B] -> int64 parts[n*B]",
    "float x[N, K], like(x) weight[M, K], like(x) bias[M]? -> y[N, M]",
    "{like(values) values[_, *d], bool mask[N]}+ -> data[N, *d]",
    "data[sum(lengths), *d], lengths[B] -> values[sum(lengths'), *d], int64 lengths'[B] := minimum(lengths, k)",
    "{data[sum(lengths)], lengths[B]}+ -> values[sum(lengths')], int64 lengths'[B] := add(*lengths)",
    "data[sum(lengths)], lengths[B] -> {values[sum(lengths')], int64 lengths'[B] <= lengths}*parts",
    "x[N] -> unique[U], index(U) inverse[N], int64 counts[U], U <= N, sum(counts) <= N",
    "lengths[B] -> offset(sum(lengths)) offsets[B+1]",
    "x[N] -> str text[N//2*2], bool presence[N, len(mask)]",
    "q[sum(lengths), G*R], lengths[B], k[sum(kv_lengths), G], kv_lengths[B]?=lengths -> out[sum(lengths), G*R]",
]


@pytest.mark.parametrize("text", SIGNATURES)
def test_every_form_of_the_language_parses(text):
    signature = parse(text)
    assert signature.text == " ".join(text.split())


def test_dimensions_become_small_syntax_trees():
    padded, lengths = parse(SIGNATURES[2]).inputs
    assert padded.dims == (Name("B"), AtLeast("T", Max("lengths")), Rest("d"))
    assert lengths.dims == (Name("B"),)
    assert parse("x[4*H, B+1, 3] ->").inputs[0].dims == (
        Arithmetic("*", FixedSize(4), Name("H")),
        Arithmetic("+", Name("B"), FixedSize(1)),
        FixedSize(3),
    )
    assert parse("x[N] -> y[P=N], z[width|N]").outputs[0].dims == (Fresh("P", Name("N")),)
    assert parse("x[N] -> y[P=N], z[width|N]").outputs[1].dims == (Given("width", Name("N")),)


def test_definitions_and_bounds_are_syntax_trees_too():
    _, lengths = parse(
        "data[sum(lengths)], lengths[B] -> values[sum(lengths')], int64 lengths'[B] := minimum(lengths, k) <= k|B"
    ).outputs
    assert lengths.definition == OpCall("minimum", (Name("lengths"), Name("k")))
    assert lengths.most == Given("k", Name("B"))
    assert str(lengths) == "int64 lengths'[B]"
    signature = parse("x[N] -> unique[U], int64 counts[U], U <= N, sum(counts) <= 2*(N+1)//k")
    assert [str(limit) for limit in signature.limits] == ["U <= N", "sum(counts) <= 2*(N+1)//k"]
    assert parse("{lengths[B]}+ -> int64 lengths'[B] := add(*lengths)").outputs[0].definition == OpCall(
        "add", (Each("lengths"),)
    )


def test_a_bound_that_speaks_of_a_sum_makes_no_lengths_of_it():
    (ids,) = parse("int ids[N] -> sums[S], S <= max(ids)+1").inputs
    assert not ids.is_lengths


def test_values_print_with_the_brackets_they_need():
    for text in ("(a+1)//2", "a-(b-1)", "2*(k|n)+1", "a*b//c", "minimum(a+1, b, k=2)", "k|a+1"):
        assert str(parse_value(text)) == text


def test_a_long_signature_is_printed_in_lines():
    signature = parse("data[N, *d] -> rows[K, *d], index(N) positions[K], K <= minimum(N, k)")
    assert signature.in_lines() == signature.text
    assert signature.in_lines(48).splitlines() == [
        "data[N, *d]",
        "  -> rows[K, *d], index(N) positions[K],",
        "     K <= minimum(N, k)",
    ]


def test_an_integer_input_that_a_sum_speaks_of_is_lengths():
    inner, outer = parse("lens inner[sum(outer)], outer[B] -> int64 rows[B]").inputs
    assert inner.is_lengths
    assert outer.is_lengths
    assert outer.dtype.word == "int"


def test_outputs_may_be_lengths_too():
    rows, kept = parse("data[N] -> rows[sum(kept)], int64 kept[B]").outputs
    assert not rows.is_lengths
    assert kept.is_lengths


def test_a_prime_tells_new_lengths_from_those_that_come_in():
    signature = parse(
        "data[sum(lengths)], lengths[B] -> values[sum(lengths')], int64 lengths'[max(lengths')]"
    )
    values, lengths = signature.outputs
    assert values.dims == (Sum("lengths'"),)
    assert lengths.dims == (Max("lengths'"),)
    assert lengths.is_lengths
    assert (values.field, lengths.field) == ("values", "lengths")
    assert [argument.field for argument in signature.inputs] == ["data", "lengths"]


def test_new_lengths_are_lengths_though_no_sum_speaks_of_them():
    assert parse("lengths[B] -> int64 lengths'[B]").outputs[0].is_lengths


def test_a_group_keeps_its_arguments_together():
    (group,) = parse(SIGNATURES[5]).inputs
    assert isinstance(group, Repeated)
    assert [argument.name for argument in group.arguments] == ["data", "lengths"]


def test_arguments_print_as_they_are_written():
    signature = parse("float x[N, *e, K], int ids[N], lens inner[B], float bias[M]? -> sum_of(x) y[N]")
    assert [str(argument) for argument in signature.input_arguments] == [
        "float x[N, *e, K]", "int ids[N]", "lens inner[B]", "float bias[M]?",
    ]  # fmt: skip
    assert str(signature.outputs[0]) == "sum_of(x) y[N]"
    new = parse("lengths[B] -> values[sum(lengths')], int64 lengths'[B]")
    assert [str(argument) for argument in new.outputs] == ["values[sum(lengths')]", "int64 lengths'[B]"]


def test_like_names_the_input_whose_dtype_it_has():
    signature = parse("float x[N], like(x) weight[N], like(x) bias[N]? -> y[N]")
    assert signature.alike == (("weight", "x"), ("bias", "x"))
    assert str(signature.inputs[1]) == "like(x) weight[N]"


@pytest.mark.parametrize(
    "text",
    [
        "float x[N], like(z) y[N] ->",
        "float x[N], like(y) y[N] ->",
        "float x[N]?, like(x) y[N] ->",
        "{x[N]}+, like(x) y[N] ->",
        "float x[N], float y[N], like(x, y) z[N] ->",
    ],
)
def test_like_needs_one_other_input_that_is_always_given(text):
    with pytest.raises(OpError, match=r"is like.*expected one other input, which is required"):
        parse(text)


def test_an_output_is_like_an_input_that_is_always_given():
    for text in ("x[N] -> like(z) y[N]", "x[N], z[N]? -> like(z) y[N]", "x[N] -> y[N], like(y) z[N]"):
        with pytest.raises(OpError, match=r"is like\(.\), expected an input that is required"):
            parse(text)
    assert parse("x[N], z[N] -> like(z) y[N]").output_arguments[0].dtype.of == ("z",)


def test_like_speaks_of_a_name():
    with pytest.raises(OpError, match="expected a dtype word before the name"):
        parse("x[N], like y[N] ->")


def test_sizes_are_evaluated_against_what_is_known():
    dims = parse("x[n*B, width|max(lengths)], lengths[B] -> y[sum(lengths)]").inputs[0].dims
    assert evaluate(dims[0], {"n": 3, "B": 4}) == 12
    assert evaluate(dims[0], {"B": 4}) is None
    assert evaluate(dims[1], {Max("lengths"): 5}) == 5
    assert evaluate(dims[1], {"width": 0, Max("lengths"): 5}) == 0
    assert evaluate(Sum("lengths"), {}) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x[N", "column 2: this bracket is never closed, expected ']'"),
        ("x[N, int64 n[B] -> y[N]", "column 2: this bracket is never closed, expected ']'"),
        ("x[N] y[M] ->", "column 6: found 'y', expected ','"),
        ("x[N]", "expected ','"),
        ("quick x[N] -> y[N]", "expected a dtype word"),
        ("index x[N] -> y[N]", "expected a dtype word"),
        ("int(R) x[N] -> y[N]", "expected a dtype word"),
        ("index(R) x[N] -> y[N]", "x is index(R), expected the name of an axis"),
        ("index(max(lengths)) x[N], lengths[B] -> y[N]", "expected a name or sum(…)"),
        ("x[N] -> position(lengths) y[N]", "'lengths', which it does not name"),
        ("x[N] -> y[sum(z)]", "'z', which it does not name"),
        ("x[N] -> x[N]", "stands for two tensors"),
        ("x[N] -> y[N], y'[N]", "the name 'y' stands for two tensors"),
        ("lengths'[B] -> y[B]", "the input lengths' has a prime, which marks outputs"),
        ("lengths[B'] -> y[B']", 'column 9: found "B\'", expected a name without a prime'),
        ("lengths[B] -> y[sum(lengths')]", '"lengths\'", which it does not name'),
        ("x[N]; -> y[N]", "column 5: found ';'"),
        ("x[*] ->", "expected a name"),
        (
            "lengths[B], lens n[B]?=m ->",
            "n is m if it is left out, expected an input that is required and has its axes",
        ),
        ("lengths[B], lens n[C]?=lengths ->", "n is lengths if it is left out, expected an input"),
        ("x[N]=y ->", "column 5: found '=', expected ','"),
        ("x[N] -> y[minimum(N, k)]", "column 11: found 'minimum', expected a size"),
        ("x[N] := N -> y[N]", "column 6: found ':=', expected ','"),
        ("x[N] -> y[N] <= max(z)", "y speaks of max(z), expected inputs"),
        ("x[N] -> y[N] := y + 1", "y speaks of y, expected inputs"),
        ("x[N] -> y[N], sum(z) <= N", "sum(z) is of no tensor that it names"),
        ("x[N] -> y[N] <= " + "(" * 99 + "N", "nested in more than 64 levels"),
        ("x[" + "+".join("a" * 99) + "] ->", "nested in more than 64 levels"),
        ("x[" + "a|" * 99 + "a] ->", "nested in more than 64 levels"),
        ("x[N] -> y[N], 2 <= N", "expected the name of a size, sum(…) or max(…)"),
        ("{x[N] -> y[N]", "expected '}'"),
        ("", "column 1: found the end, expected a name"),
    ],
)
def test_a_malformed_signature_says_where_and_what_was_expected(text, expected):
    with pytest.raises(OpError) as error:
        parse(text)
    assert expected in str(error.value)
