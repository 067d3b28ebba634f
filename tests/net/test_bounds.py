"""Upper bounds of sizes and bytes, and that what really comes out stays within them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from marks import one_in

from seqflow import Net, TensorSpec
from seqflow.executor import run
from seqflow.record import Record
from seqflow.signature import Described, OwnRows

RECORD = OwnRows("the record")


def specs(rows, total="sum(n)"):
    return {
        "x": TensorSpec("int32", f"{{{total}}}", Described("n")),
        "n": TensorSpec("int64", f"{{rows:0..{rows}}}", RECORD),
    }


def bounds(text, rows=64, total="sum(n)", limits=None):
    return Net(text).infer(specs(rows, total), limits)


def test_truncation_bounds_the_longest_and_so_the_sum():
    found = bounds("y, k = truncate(x, n, max_length=10)\np, mask = pad(y, k)")
    assert found.byte_bounds == {
        "x": None, "n": 64 * 8, "y": 64 * 10 * 4, "k": 64 * 8, "p": 64 * 10 * 4, "mask": 64 * 10
    }  # fmt: skip
    assert found.longest == {"k": 10}
    assert found.byte_bound is None


def test_truncation_never_makes_more_than_there_was():
    found = bounds("y, k = truncate(x, n, max_length=10)", total="sum(n):0..100")
    assert found.byte_bounds["y"] == 100 * 4


def test_a_bound_of_the_sum_bounds_the_longest():
    found = bounds("p, mask = pad(x, n)", rows=3, total="sum(n):0..100")
    assert (found.longest["n"], found.byte_bounds["p"]) == (100, 3 * 100 * 4)


def test_sizes_beyond_those_of_the_inputs_are_taken_into_account():
    assert bounds("ids = lengths_to_segment_ids(n)", limits={"max(n)": 7}).byte_bounds["ids"] == 64 * 7 * 8
    assert bounds("p, mask = pad(x, n)", limits={"max(n)": 7}).byte_bounds["p"] == 64 * 7 * 4


def test_the_cells_of_a_padded_batch_may_be_bounded_though_neither_side_is():
    found = bounds("p, mask = pad(x, n)", limits={"max(n)*rows": 100})
    assert (found.byte_bounds["p"], found.byte_bounds["mask"], found.byte_bounds["x"]) == (400, 100, 400)


def test_a_padded_width_bounds_the_lengths_it_must_hold():
    width = {"p": TensorSpec("int32", "{rows,12}", RECORD), "n": TensorSpec("int64", "{rows:0..5}", RECORD)}
    assert Net("y = unpad(p, n)").infer(width).byte_bounds["y"] == 5 * 12 * 4


def test_bounds_hold_through_expressions():
    found = bounds("k = minimum(n, 5)\np, mask = pad(x, n)\nq = p * 2.5", limits={"max(n)*rows": 100})
    assert (found.byte_bounds["k"], found.byte_bounds["q"]) == (64 * 8, 100 * 8)


def test_the_bound_of_the_whole_counts_what_is_thrown_away():
    found = Net("k, _ = truncate(x, n, max_length=4)").infer(specs(8, "sum(n):0..32"))
    assert found.byte_bound == 32 * 4 + 8 * 8 + 32 * 4 + 8 * 8
    assert str(found).endswith("# all tensors ≤ 384 B")


NETS = [
    "y, k = prepend_token(x, n, token=0)\nz, j = remove_padding(y, k, before=1, after=0)",
    "y, k = add_padding(x, n, before={small}, after={large})\nz, j = pad_empty(x, n)",
    "y, k = mask_sequences(x, x > 3, n)\nz, j = filter_sequences(x, n > {small}, n)",
    "y, k = erase_tokens(x, n, tokens=[0, 1])\nz, j = dropout_sequences(x, n, ratio=0.5, seed={large})",
    "y, k, c = unique_within(x, n)\no = lengths_to_segment_ids(c)",
    "y, k = concat_sequences([x, x], [n, n])\nz, j = interleave([x, y], [n, k])",
    "y, k = trim_dataset(x, n, multiple_of={small})\nz, j = slice_sequences(x, n - n, minimum(n, {small}), n)",
    "y, k = truncate(x, n, max_length={small})",
    "y, k = append_token(x, n, token=0)\nz, j = append_token(y, k, token=1)",
    "y, k, c = split_sequences(x, n, chunk={large})",
    "y, k, c = split_sequences(x, n, chunk={large}, stride={small})\np, mask = pad(y, k)\nq, r = pad(k, c)",
    "y, k, c = split_sequences(x, n, chunk={large}, stride={small})\nw, o = truncate(k, c, max_length=2)",
    "p, s, i, src, k, c = pack_rows(x, n, capacity={large})\no = lengths_to_segment_ids(c)",
    "p, s, i, src, k, c = pack_rows(x, n, capacity={large}, strategy='first_fit')\nq, r = pad(k, c)",
    "p, s, i, src, k, c = pack_rows(x, n, capacity={large}, strategy='concat')",
    "p, m = pad(x, n, multiple_of={small})\no = lengths_to_segment_ids(n)",
    "y, p = boolean_mask(x, x > 2)\nk = boolean_mask_lengths(x > 2, n)\nz, m = truncate(y, k, max_length={small})",
    "b, k = bytes_to_tokens(cast(x, dtype='uint8'), n, end=300)\nt, j = tokens_to_bytes(b, k)",
    "t, k = lower(cast(x % 64, dtype='uint8'), n)\nu, j = normalize(t, k, form='NFKC')\nw, m, c = split_words(u, j)",
    "y, k = repeat_sequences(x, n, n)\nz, j = reshape_sequences(x, n, width=1)",
    "y, b, o = pack_sequence(x, n)\nz, k = unpack_sequence(y, o, b)",
    "p, s, i, src, k, c = pack_rows(x, n, capacity={large})\ny, j = unpack_rows(p, src, k, c)\n"
    "u = packed_cu_seqlens(k, c, capacity={large})",
    "o = lengths_to_offsets(n)\nk = offsets_to_lengths(o)\np = lengths_split(n, n={small})\nd = lengths_to_segment_ids(p)",
    "i = lengths_to_segment_ids(n)\ns = unsorted_segment_sum(x, i)\nk = segment_ids_to_lengths(i)\nr = segment_ids_to_ranges(i)",
    "y, k, c = split_sequences(x, n, chunk={small})\nm = collapse_lengths(k, c)\no = lengths_to_segment_ids(m)",
    "z, j = pad_empty(x, n)\ni = lengths_to_segment_ids(j)\ns = sorted_segment_sum(z, i)",
]


@pytest.mark.slow
@pytest.mark.parametrize("text", one_in(2, NETS))
@given(
    lengths=st.lists(st.integers(0, 9), max_size=8),
    small=st.integers(1, 3),
    more=st.integers(0, 4),
    slack=st.integers(0, 2),
)
def test_what_comes_out_stays_within_the_bounds(text, lengths, small, more, slack):
    net = Net(text.format(small=small, large=small + more))
    n = np.array(lengths, np.int64)
    record = Record({"x": np.arange(n.sum(), dtype=np.int32), "n": n}, {"x": "n", "n": None}, len(n))
    known = {"max(n)": max(lengths, default=0) + slack}
    for total in ("sum(n)", f"sum(n):0..{sum(lengths) + slack}"):
        found = net.infer(specs(len(n) + slack, total), known)
        assert None not in found.byte_bounds.values()
        for name, tensor in run(net, record).items():
            assert tensor.nbytes <= found.byte_bounds[name], name
            if name in found.longest:
                assert tensor.max(initial=0) <= found.longest[name], name
