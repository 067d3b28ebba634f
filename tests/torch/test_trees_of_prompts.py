"""A model of two layers on packed trees of prompts and answers, with the gradients of separate rows."""

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf

torch = pytest.importorskip("torch")
T = pytest.importorskip("seqflow.torch").ops


class Model(torch.nn.Module):
    """Two layers with rotary positions and grouped heads."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        sizes = {"qkv": (32, 64), "out": (32, 32), "up": (32, 64), "down": (64, 32)}
        self.words = torch.nn.Embedding(50, 32)
        self.layers = torch.nn.ModuleList(
            torch.nn.ModuleDict({name: torch.nn.Linear(*size) for name, size in sizes.items()}) for _ in "12"
        )
        self.double()

    def forward(self, tokens, positions, attend):
        x = self.words(tokens)
        for one in self.layers:
            q, k, v = (part.unflatten(1, (-1, 8)) for part in one.qkv(x).split([32, 16, 16], 1))
            x = x + one.out(attend(T.rotary(q, positions), T.rotary(k, positions), v).flatten(1))
            x = x + one.down(torch.tanh(one.up(x)))
        return (x @ self.words.weight.T).log_softmax(1)


def on_segments(batch):
    keys, path_lengths = T.tree_paths(batch["parents"], batch["node_lengths"])[:2]

    def attend(q, k, v):
        k, v = k[keys], v[keys]
        return T.attention_within(q, batch["node_lengths"], k, v, path_lengths, after=0, align="end").out

    return attend


def by_mask(batch):
    rows, capacity = batch["until"].shape
    places = torch.arange(capacity)
    seen = (places <= places[:, None]) & (places[:, None] < batch["until"][:, None, :])

    def attend(q, k, v):
        q, k, v = (one.unflatten(0, (rows, capacity)).transpose(1, 2) for one in (q, k, v))
        found = torch.nn.functional.scaled_dot_product_attention(q, k, v, seen[:, None], enable_gqa=True)
        return found.transpose(1, 2).flatten(0, 1)

    return attend


@pytest.mark.parametrize("attention", [on_segments, by_mask])
@pytest.mark.parametrize("capacity", [40, 96])
def test_gradients_of_a_packed_batch_are_those_of_separate_rows(attention, capacity):
    rng = np.random.default_rng(3)
    prompts = [rng.integers(0, 50, size).tolist() for size in (20, 9, 1, 26)]
    rows = [prompt + rng.integers(0, 50, rng.integers(1, 9)).tolist() for prompt in prompts for _ in range(5)]
    rows += [rows[0], rows[1][:12], [*rows[1][:12], 3]]
    advantages = [rng.standard_normal(len(row)).tolist() for row in rows]
    table = pa.table({"id": np.arange(len(rows)), "tokens": rows, "advantages": advantages})
    plan = sf.Packed(capacity, ["tokens"], rows=3, share="prefix", min_shared=2)
    loader = sf.Loader(table, batch=plan, shuffle=True, rank=0, world_size=1)
    model, found, seen = Model(), {}, 0
    for batch in loader.to("torch"):
        tokens, positions = batch["tokens"].flatten(), batch["position_ids"].flatten().long()
        scores = model(tokens, positions, attention(batch))
        places = batch["rows.values"]
        before = batch["previous"].flatten()[places]
        inner = before >= 0
        (scores[before[inner], tokens[places[inner]]] * batch["advantages.values"][inner]).sum().backward()
        ends = batch["rows.lengths"].cumsum(0).tolist()
        for number, size, end in zip(batch["id"].tolist(), batch["rows.lengths"].tolist(), ends, strict=True):
            found[number] = scores.detach()[places[end - size : end]]
        seen += batch["until"].numel()
    gradients = [one.grad.clone() for one in model.parameters()]
    model.zero_grad()
    for number, (row, weights) in enumerate(zip(rows, advantages, strict=True)):
        tokens, n = torch.tensor(row), torch.tensor([len(row)])
        scores = model(
            tokens, torch.arange(len(row)), lambda q, k, v, n=n: T.attention_within(q, n, k, v, after=0).out
        )
        assert torch.allclose(found[number], scores.detach(), rtol=1e-12, atol=1e-12)
        (
            scores[torch.arange(len(row) - 1), tokens[1:]] * torch.tensor(weights, dtype=torch.float64)[1:]
        ).sum().backward()
    assert sorted(found) == list(range(len(rows)))
    assert seen < sum(map(len, rows))  # with padding, still fewer
    for one, gradient in zip(model.parameters(), gradients, strict=True):
        assert (one.grad - gradient).abs().max() < 1e-12 * gradient.abs().max()
