"""Attention on tensors: torch's own attention of each sequence, in values and gradients, compiled and in bfloat16."""

import numpy as np
import pytest

from seqflow.errors import GradientError

torch = pytest.importorskip("torch")

from torch_calls import compiled  # noqa: E402

from seqflow.torch import ops  # noqa: E402
from seqflow.torch.device import IMPLEMENTATIONS  # noqa: E402

SDPA = torch.nn.functional.scaled_dot_product_attention


def given(lengths, heads=4, groups=2, depth=16, dtype=torch.float32):
    torch.manual_seed(0)
    count = int(sum(lengths))
    shapes = [(count, heads, depth), (count, groups, depth), (count, groups, depth)]
    return [torch.randn(shape, dtype=dtype).requires_grad_() for shape in shapes], torch.tensor(lengths)


def by_torch(q, lengths, k, v, causal):
    sizes = lengths.tolist()
    parts = zip(*(one.split(sizes) for one in (q, k, v)), strict=True)
    return torch.cat(
        [
            SDPA(*(one.transpose(0, 1) for one in part), is_causal=causal, enable_gqa=True).transpose(0, 1)
            for part in parts
        ]
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("of", ["cpu", "device"])
def test_each_sequence_is_attended_as_by_torch(of, causal):
    (q, k, v), lengths = given([5, 40, 1, 130])
    function = ops.attention_within if of == "cpu" else IMPLEMENTATIONS["attention_within"]
    found = function(q, lengths, k, v, after=0 if causal else None)[0]
    expected = by_torch(q, lengths, k, v, causal)
    torch.testing.assert_close(found, expected, atol=2e-6, rtol=0)
    weights = torch.randn_like(found)
    ours, theirs = (torch.autograd.grad((one * weights).sum(), (q, k, v)) for one in (found, expected))
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-4)


def test_padded_attention_with_a_mask_is_the_same():
    (q, k, v), lengths = given([7, 0, 12], groups=4)
    mask = torch.arange(12)[None] < lengths[:, None]
    padded = [ops.pad(one, lengths).padded.transpose(1, 2) for one in (q, k, v)]
    expected = SDPA(*padded, attn_mask=mask[:, None, None]).transpose(1, 2)
    found = ops.attention_within(q, lengths, k, v).out
    torch.testing.assert_close(found, ops.unpad(expected, lengths), atol=1e-6, rtol=0)


@pytest.mark.slow
def test_a_compiled_call_takes_other_lengths():
    def loss(q, lengths, k, v):
        return ops.attention_within(q, lengths, k, v, after=0).out.square().sum()

    function, counter = compiled(loss)
    for lengths in ([5, 3], [6, 9, 2], [11, 1, 4, 5], [30, 2]):
        (q, k, v), lengths = given(lengths)
        found = torch.autograd.grad(function(q, lengths, k, v), (q, k, v))
        torch.testing.assert_close(found, torch.autograd.grad(loss(q, lengths, k, v), (q, k, v)))
    assert counter.frame_count <= 2  # once for the first sizes, once for all


@pytest.mark.parametrize(
    "function", [ops.attention_within, IMPLEMENTATIONS["attention_within"]], ids=["cpu", "device"]
)
def test_bfloat16_is_computed_in_float32_and_its_logarithms_stay(function):
    (q, k, v), lengths = given([300, 20], dtype=torch.bfloat16)
    out, lse = function(q, lengths, k, v)
    assert out.dtype is torch.bfloat16
    assert lse.dtype is torch.float32
    wide = [one.detach().float().requires_grad_() for one in (q, k, v)]
    exact, logs = ops.attention_within(wide[0], lengths, *wide[1:])
    torch.testing.assert_close(lse, logs)
    torch.testing.assert_close(out.float(), exact, atol=5e-3, rtol=1e-2)
    weights = torch.randn_like(exact)
    found = torch.autograd.grad((out.float() * weights).sum(), (q, k, v))
    expected = torch.autograd.grad((exact * weights).sum(), wide)
    torch.testing.assert_close([one.float() for one in found], list(expected), atol=2e-2, rtol=2e-2)


def test_a_second_derivative_is_refused_with_words():
    (q, k, v), lengths = given([3, 2])
    (first,) = torch.autograd.grad(ops.attention_within(q, lengths, k, v).out.sum(), (q,), create_graph=True)
    with pytest.raises(GradientError, match="the second derivative of attention is not there"):
        first.sum().backward()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("which", range(3))
def test_on_devices_what_is_not_finite_stays_with_the_rows_that_see_it(which, bad):
    (q, k, v), lengths = given([6, 3], heads=1, groups=1, dtype=torch.float64)
    function = IMPLEMENTATIONS["attention_within"]
    plain = [one.detach() for one in function(q, lengths, k, v, after=0)]
    tensors = [one.detach().clone() for one in (q, k, v)]
    tensors[which][4] = bad
    q, k, v = (one.requires_grad_() for one in tensors)
    out, lse = function(q, lengths, k, v, after=0)
    untouched = [0, 1, 2, 3, 6, 7, 8] + [5] * (which == 0)
    torch.testing.assert_close(out[untouched], plain[0][untouched])
    torch.testing.assert_close(lse[untouched], plain[1][untouched])
    assert not out[4].isfinite().any()
    # rows 4 and 5 see it; they and the keys they see have gradients that are not numbers
    gradients = torch.autograd.grad(out.sum() + lse.sum(), (q, k, v))
    assert gradients[0][untouched].isfinite().all()
    assert all(one[6:].isfinite().all() for one in gradients)


def test_lengths_without_data_are_refused():
    q = torch.ones(3, 1, 2, device="meta")
    with pytest.raises(ValueError, match="attention_within: lengths are on the device meta"):
        IMPLEMENTATIONS["attention_within"](q, torch.ones(1, dtype=torch.long, device="meta"), q, q)


def test_rotary_is_rotation_by_complex_numbers():
    x, positions = torch.randn(5, 2, 8, dtype=torch.float64), torch.tensor([0, 1, 2, 0, 7])
    angles = positions[:, None].double() * 10000.0 ** (-torch.arange(4, dtype=torch.float64) / 4)
    turns = torch.polar(torch.ones_like(angles), angles)[:, None]
    expected = torch.view_as_real(torch.view_as_complex(x.unflatten(-1, (4, 2))) * turns).flatten(-2)
    for function in (ops.rotary, IMPLEMENTATIONS["rotary"]):
        torch.testing.assert_close(function(x, positions, interleaved=True), expected)
    half = torch.cat([x[..., ::2], x[..., 1::2]], dim=-1)
    found = ops.rotary(half, positions)
    torch.testing.assert_close(found, torch.cat([expected[..., ::2], expected[..., 1::2]], dim=-1))
    np.testing.assert_allclose(ops.rotary(found, positions, inverse=True), half, atol=1e-12)
