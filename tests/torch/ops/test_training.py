"""Models of our ops train as the same models in plain torch: the same loss, step by step."""

import pytest

torch = pytest.importorskip("torch")

from seqflow.torch import ops  # noqa: E402

F = torch.nn.functional

STEPS = 20


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(torch.float32)


def train(loss_of, parameters, learning_rate=0.05):
    """The losses of some steps, from copies of these parameters."""
    own = {name: value.detach().clone().requires_grad_() for name, value in parameters.items()}
    optimizer = torch.optim.Adam(own.values(), lr=learning_rate)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(own, step)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def check_same(ours, plain, parameters):
    found, expected = train(ours, parameters), train(plain, parameters)
    assert found == pytest.approx(expected, rel=1e-9)
    assert found[-1] < found[0]


def attention(x, mask, p):
    """One block of attention on rows [R, C, D]; mask [R, C, C] says who sees whom."""
    q, k, v = (x @ p[name] for name in ("q", "k", "v"))
    scores = (q @ k.transpose(-1, -2) / 4).masked_fill(~mask, -1e30)
    return x + torch.softmax(scores, -1) @ v


def test_a_small_gpt_on_packed_rows():
    lengths = [torch.randint(1, 9, (6,)) for _ in range(STEPS)]
    ids = [(3 * ops.lengths_to_positions(n) + 2) % 11 for n in lengths]  # what there is to learn
    shapes = {
        "embedding": (11, 16),
        "place": (8, 16),
        "q": (16, 16),
        "k": (16, 16),
        "v": (16, 16),
        "head": (16, 11),
    }
    parameters = {name: torch.randn(shape) / 4 for name, shape in shapes.items()}

    def ours(p, step):
        n = lengths[step]
        packed = ops.pack_rows(ids[step], n, capacity=16)
        x = p["embedding"][packed.packed] + p["place"][packed.position_ids.long()]
        segments = packed.segment_ids
        together = (segments[:, :, None] == segments[:, None, :]) & torch.ones(16, 16).tril().bool()
        logits = attention(x, together, p) @ p["head"]
        flat = ops.unpack_rows(
            logits, packed.sources, packed.piece_lengths, packed.pieces, num_sequences=len(n)
        )
        # each token predicts the next of its sequence
        target = ops.shift(ids[step], n, by=-1, fill=-1)
        losses = F.cross_entropy(flat.values, target, ignore_index=-1, reduction="none")
        return ops.lengths_mean(losses, n).mean()

    def plain(p, step):
        total = 0
        for sequence in torch.split(ids[step], lengths[step].tolist()):
            size = len(sequence)
            x = (p["embedding"][sequence] + p["place"][:size])[None]
            logits = attention(x, torch.ones(1, size, size).tril().bool(), p)[0] @ p["head"]
            losses = (
                F.cross_entropy(logits[:-1], sequence[1:], reduction="sum") if size > 1 else logits.sum() * 0
            )
            total = total + losses / size
        return total / len(lengths[step])

    check_same(ours, plain, parameters)


def test_a_recommender_on_jagged_features():
    features = 3
    lengths = [torch.randint(0, 5, (features, 8)) for _ in range(STEPS)]
    indices = [[torch.randint(0, 20, (int(n.sum()),)) for n in step] for step in lengths]
    weights = [[torch.rand(len(one)) for one in step] for step in indices]
    dense = [torch.randn(8, 4) for _ in range(STEPS)]
    clicked = [torch.randint(0, 2, (8,)).double() for _ in range(STEPS)]
    parameters = {f"table{i}": torch.randn(20, 6) / 2 for i in range(features)}
    parameters |= {"bottom": torch.randn(4, 6), "top": torch.randn(24, 1) / 4}

    def loss(pooled, p, step):
        x = torch.cat([dense[step] @ p["bottom"], *pooled], 1)
        return F.binary_cross_entropy_with_logits((torch.tanh(x) @ p["top"])[:, 0], clicked[step])

    def ours(p, step):
        pooled = [
            ops.sparse_lengths_weighted_sum(
                p[f"table{i}"], weights[step][i], indices[step][i], lengths[step][i]
            )
            for i in range(features)
        ]
        return loss(pooled, p, step)

    def plain(p, step):
        pooled = [
            F.embedding_bag(
                indices[step][i],
                p[f"table{i}"],
                F.pad(lengths[step][i].cumsum(0), (1, 0))[:-1],
                mode="sum",
                per_sample_weights=weights[step][i],
            )
            for i in range(features)
        ]
        return loss(pooled, p, step)

    check_same(ours, plain, parameters)


def test_a_bidirectional_tagger():
    lengths = [torch.randint(1, 7, (5,)) for _ in range(STEPS)]
    x = [torch.randn(int(n.sum()), 4) for n in lengths]
    tags = [torch.randint(0, 3, (len(one),)) for one in x]
    model = torch.nn.LSTM(4, 6, bidirectional=True)
    names = {"w_ih": "weight_ih_l0", "w_hh": "weight_hh_l0", "bias": "bias_ih_l0", "bias_hh": "bias_hh_l0"}
    parameters = {
        f"{name}{end}": getattr(model, f"{of}{end}").detach() * (name != "bias_hh")
        for name, of in names.items()
        for end in ("", "_reverse")
        if name != "bias_hh"
    } | {"head": torch.randn(12, 3)}

    def ours(p, step):
        h = ops.bidirectional_lstm(
            x[step], lengths[step], **{name: p[name] for name in parameters if name != "head"}
        ).h
        return F.cross_entropy(ops.fc(h, p["head"].T), tags[step])

    def plain(p, step):
        own = {
            names[name.removesuffix("_reverse")] + ("_reverse" if "_reverse" in name else ""): p[name]
            for name in p
            if name != "head"
        }
        own |= {f"bias_hh_l0{end}": torch.zeros(24) for end in ("", "_reverse")}
        packed = torch.nn.utils.rnn.pack_sequence(
            torch.split(x[step], lengths[step].tolist()), enforce_sorted=False
        )
        found, _ = torch.func.functional_call(model, own, (packed,))
        padded, _ = torch.nn.utils.rnn.pad_packed_sequence(found, batch_first=True)
        rows = torch.cat([row[:size] for row, size in zip(padded, lengths[step].tolist(), strict=True)])
        return F.cross_entropy(rows @ p["head"], tags[step])

    check_same(ours, plain, parameters)
