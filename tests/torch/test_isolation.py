"""Faults of masks, positions and labels in packed rows are found, and a right model is not accused."""

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.errors import OpTypeError

torch = pytest.importorskip("torch")
from seqflow.torch import check_isolation  # noqa: E402  (torch may be missing)

CAPACITY, WORDS = 48, 40


@pytest.fixture(scope="module")
def batch():
    rng = np.random.default_rng(1)
    rows = [rng.integers(1, WORDS, n) for n in rng.integers(5, 20, 12)]
    table = pa.table({"tokens": rows, "labels": rows})
    fills = {"labels": -100}
    packed = sf.Packed(CAPACITY, ("tokens", "labels"), rows=2, fills=fills, first_fills=fills)
    return next(iter(sf.Loader(table, batch=packed, rank=0, world_size=1).to("torch")))


class Small(torch.nn.Module):
    """One layer of attention between an embedding and logits, with faults."""

    def __init__(self, fault=None, kind=torch.float64):
        super().__init__()
        torch.manual_seed(0)
        self.fault = fault
        self.words, self.places = torch.nn.Embedding(WORDS, 16), torch.nn.Embedding(2 * CAPACITY, 16)
        self.mix, self.head = torch.nn.Linear(16, 48), torch.nn.Linear(16, WORDS)
        self.state = torch.nn.GRU(16, 16, batch_first=True)
        self.drop = torch.nn.Dropout(0.5 if fault == "dropout" else 0.0)
        self.to(kind)

    def mask(self, batch):
        """Which token may see which."""
        ids, size = batch["segment_ids"], batch["segment_ids"].shape[1]
        causal = torch.ones(size, size, dtype=torch.bool).tril()
        same = ids[:, :, None] == ids[:, None, :]
        match self.fault:
            case "no mask" | "mask of ones":
                return causal.expand(len(ids), size, size)
            case "segments as a padding mask":
                return causal & (ids > 0)[:, None, :] | torch.eye(size, dtype=torch.bool)
            case "not causal":
                return same
            case "offsets off by one":
                late = torch.cat([ids[:, :1], ids[:, :-1]], dim=1)
                return (late[:, :, None] == late[:, None, :]) & causal
            case "offsets with padding":  # each document is taken to be longer than it is
                late = torch.cat([ids[:, :3].clamp(max=1), ids[:, :-3]], dim=1)
                return (late[:, :, None] == late[:, None, :]) & causal
            case "sees everything":
                return torch.ones_like(same)
            case _:
                return same & causal

    def forward(self, batch):
        tokens, positions = batch["tokens"].long(), batch["position_ids"].long()
        if self.fault == "positions go on":
            positions = torch.arange(tokens.shape[1]).expand_as(tokens)
        x = self.drop(self.words(tokens) + self.places(positions))
        if self.fault == "state is carried":
            x = x + self.state(x)[0]
        if self.fault == "window over the row":
            x = x + torch.nn.functional.pad(x, (0, 0, 1, 0))[:, :-1]
        q, k, v = self.mix(x).split(16, dim=2)
        scores = (q @ k.transpose(1, 2)).masked_fill(~self.mask(batch), -1e30)
        return self.head(x + scores.softmax(dim=2) @ v)


@pytest.mark.parametrize("kind", [torch.float64, torch.float32])
def test_a_right_model_is_not_accused(batch, kind):
    found = check_isolation(Small(kind=kind), batch)
    assert found, str(found)
    assert found.documents == 5
    assert str(found) == "5 documents are apart"


@pytest.mark.parametrize("kind", [torch.float64, torch.float32])
@pytest.mark.parametrize(
    ("fault", "kinds"),
    [
        ("no mask", {"later documents moved", "other than alone"}),
        ("mask of ones", {"later documents moved", "other than alone"}),
        ("segments as a padding mask", {"later documents moved", "other than alone"}),
        ("not causal", {"not causal"}),
        ("offsets off by one", {"later documents moved", "other than alone"}),
        ("offsets with padding", {"later documents moved", "other than alone"}),
        (
            "sees everything",
            {"later documents moved", "earlier documents moved", "not causal", "other than alone"},
        ),
        ("positions go on", {"other than alone"}),
        ("state is carried", {"later documents moved", "other than alone"}),
        ("window over the row", {"later documents moved", "other than alone"}),
    ],
)
def test_planted_faults_are_found(batch, fault, kinds, kind):
    found = check_isolation(Small(fault, kind), batch)
    assert not found
    assert found.kinds == kinds
    assert all(one.moved > 0 for one in found.findings)


def test_faults_of_the_batch_are_found(batch):
    labels = batch["tokens"].clone()
    found = check_isolation(Small(), {**batch, "labels": labels})
    assert found.kinds == {"labels", "padding"}
    assert "masks the first label of each document" in str(found)
    assert check_isolation(Small(), {**batch, "labels": labels}, shifts_labels=False).kinds == {"padding"}
    positions = torch.arange(CAPACITY).expand_as(batch["tokens"])
    assert check_isolation(Small(), {**batch, "position_ids": positions}).kinds == {
        "position_ids",
        "other than alone",
    }


def test_logits_may_be_in_an_output_and_tokens_have_another_name(batch):
    class Output:
        def __init__(self, logits):
            self.logits = logits

    renamed = {**batch, "ids": batch["tokens"]}
    del renamed["tokens"]
    model = Small()
    assert check_isolation(lambda b: Output(model({**b, "tokens": b["ids"]})), renamed, tokens="ids")


def test_what_cannot_be_checked_is_an_error(batch):
    with pytest.raises(sf.OpError, match=r"differ by .*\n  switch dropout off"):
        check_isolation(Small("dropout"), batch)
    with pytest.raises(OpTypeError, match="the batch has no segment_ids"):
        check_isolation(Small(), {"tokens": batch["tokens"]})
    with pytest.raises(OpTypeError, match="the batch has no tokens or input_ids"):
        check_isolation(Small(), {"segment_ids": batch["segment_ids"]})
    with pytest.raises(OpTypeError, match=r"expected logits \[2, 48, …\]"):
        check_isolation(lambda b: b["tokens"][:, :3], batch)
    with pytest.raises(sf.OpError, match="no row of the batch has two documents"):
        check_isolation(Small(), {**batch, "segment_ids": torch.ones_like(batch["segment_ids"])})
    with pytest.raises(sf.OpError, match="all of tokens are 3"):
        check_isolation(Small(), {**batch, "tokens": torch.full_like(batch["tokens"], 3)})
