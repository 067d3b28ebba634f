"""Clicks are learned from lines of numbers and lists of ids: columns of lists, hashed, pooled by tables that train.

python examples/click_model.py

The lines are made up here, in the form of the well-known logs of advertisements: tabs between a label, counts that
may be missing, and categories, each a list of hexadecimal ids, which may be empty. What is clicked follows from the
ids, so there is something to learn. Gradients of the tables are sparse: a step touches the rows that it has read.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch

import seqflow as sf
import seqflow.torch
from seqflow.torch import ops

COUNTS, CATEGORIES = [f"count{i}" for i in range(3)], [f"category{i}" for i in range(4)]
BUCKETS, WIDTH = 2_000, 8
SCHEMA = {"clicked": "int8"} | dict.fromkeys(COUNTS, "float") | dict.fromkeys(CATEGORIES, "list<string>")

# Missing counts are 0; each id is the number of one of so many rows of a table.
PREPARE = "\n".join(
    [f"{name}_log = log1p({name})" for name in COUNTS]
    + [
        f"{name}_rows = hash_strings({name}.values.values, {name}.values.lengths, num_buckets={BUCKETS})"
        for name in CATEGORIES
    ]
    + [
        "return clicked, "
        + ", ".join(
            [f"{name}_log" for name in COUNTS] + [f"{name}_rows, {name}.lengths" for name in CATEGORIES]
        )
    ]
)


def made_up_lines(count: int) -> list[str]:
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(len(CATEGORIES), 200))
    lines = []
    for _ in range(count):
        ids = [rng.zipf(1.3, rng.integers(0, 6)) % 200 for _ in CATEGORIES]
        score = sum(weight[row].mean() for weight, row in zip(weights, ids, strict=True) if len(row))
        counts = ["" if rng.random() < 0.2 else str(rng.poisson(3)) for _ in COUNTS]
        lists = ["|".join(f"{one * 2654435761 % 2**32:08x}" for one in row) for row in ids]
        lines.append("\t".join([str(int(score > 0)), *counts, *lists]))
    return lines


def loader_of(path: Path, lines: list[str]) -> sf.Loader:
    path.write_text("\n".join(lines) + "\n")
    source = sf.open(path, format=sf.Csv(header=False, list_delimiter="|", schema=SCHEMA))
    return sf.Loader(source, batch=128, shuffle=True, fill=dict.fromkeys(COUNTS, 0), net=PREPARE)


class ClickModel(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tables = torch.nn.ParameterList(torch.randn(BUCKETS, WIDTH) / 10 for _ in CATEGORIES)
        self.top = torch.nn.Sequential(
            torch.nn.Linear(len(COUNTS) + WIDTH * len(CATEGORIES), 32),
            torch.nn.ReLU(),
            torch.nn.Linear(32, 1),
        )

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        counts = torch.stack([batch[f"{name}_log"] for name in COUNTS], 1)
        pooled = [
            ops.sparse_lengths_mean(table, batch[f"{name}_rows"], batch[f"{name}.lengths"], sparse=True)
            for name, table in zip(CATEGORIES, self.tables, strict=True)
        ]
        scores: torch.Tensor = self.top(torch.cat([counts, *pooled], 1))[:, 0]
        return scores


def loss_of(model: ClickModel, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.nn.functional.binary_cross_entropy_with_logits(model(batch), batch["clicked"].float())


def accuracy(model: ClickModel, loader: sf.Loader) -> float:
    with torch.no_grad():
        hits = [(model(batch) > 0) == (batch["clicked"] > 0) for batch in loader.to("torch")]
    return float(torch.cat(hits).float().mean())


def main() -> None:
    torch.manual_seed(0)
    model = ClickModel()
    of_tables = torch.optim.SparseAdam(model.tables.parameters(), lr=0.02)
    of_top = torch.optim.Adam(model.top.parameters(), lr=0.005)
    lines = made_up_lines(4_000)
    with tempfile.TemporaryDirectory() as folder:
        train = loader_of(Path(folder, "train.tsv"), lines[500:])
        test = loader_of(Path(folder, "test.tsv"), lines[:500])
        print(f"before: {accuracy(model, test):.0%} of the lines that it has not seen are right")
        for epoch in range(3):
            losses = []
            for batch in train.to("torch"):
                loss = loss_of(model, batch)
                loss.backward()
                for optimizer in (of_tables, of_top):
                    optimizer.step()
                    optimizer.zero_grad()
                losses.append(loss.item())
            print(f"epoch {epoch}: loss {np.mean(losses):.3f}, {accuracy(model, test):.0%} right")


if __name__ == "__main__":
    main()
