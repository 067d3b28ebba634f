"""A matrix for each sequence, next to torch: the layers of a mixture of experts.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/matrices.py [NAME …] [--rounds 15] [--threads 1]

float32, K inputs and M outputs. "uneven" experts have as many tokens as a random router gives them, the others
equally many. The contenders of torch are its grouped product, a loop of `torch.mm` with `out=`, and `torch.bmm` of
padded rows (padding and unpadding included). A grouped product that this torch does not have on the CPU is left out.
The limits are of the best of them.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from comparison import Call, Row, main, optional
from seqflow import ops

torch = optional("torch")
EXPERTS = ((64, 8), (64, 64), (8, 128), (8, 1000))
SIZES = ((64, 64), (64, 512), (512, 64), (512, 512))


def products() -> Iterator[Row]:
    for experts, tokens in EXPERTS:
        for k, m in SIZES:
            for even in (True, False):
                yield _product(experts, tokens, k, m, even)


def _product(experts: int, tokens: int, k: int, m: int, even: bool) -> Row:
    random = np.random.default_rng(0)
    routed = random.multinomial(experts * tokens, random.dirichlet(np.full(experts, 4.0)))
    lengths = np.full(experts, tokens) if even else routed
    x = random.standard_normal((int(lengths.sum()), k), dtype=np.float32)
    weight = random.standard_normal((experts, k, m), dtype=np.float32)
    return Row(
        f"segment_matmul {experts}×{tokens} {k}→{m}{'' if even else ' uneven'}",
        lambda: ops.segment_matmul(x, weight, lengths), torch_products(x, weight, lengths), {"best": 1.0},
        agree=agree_as_products, why="both keep the multipliers busy, or wait for the same matrices",
    )  # fmt: skip


def torch_products(x: Any, weight: Any, lengths: Any) -> dict[str, Call]:
    if torch is None:
        return {}
    rows, matrices, counts = torch.from_numpy(x), torch.from_numpy(weight), torch.from_numpy(lengths)
    ends = torch.cumsum(counts, 0).to(torch.int32)

    def grouped() -> Any:
        return torch._grouped_mm(rows, matrices, offs=ends)

    def loop() -> Any:
        y = torch.empty(len(rows), matrices.shape[2])
        for part, matrix, out in zip(
            rows.split(lengths.tolist()), matrices, y.split(lengths.tolist()), strict=True
        ):
            torch.mm(part, matrix, out=out)
        return y

    def padded() -> Any:
        if len(set(lengths.tolist())) == 1:
            return torch.bmm(rows.view(len(counts), -1, rows.shape[1]), matrices).view(len(rows), -1)
        seen = torch.arange(int(counts.max())) < counts[:, None]
        wide = torch.zeros(*seen.shape, rows.shape[1])
        wide[seen] = rows
        return torch.bmm(wide, matrices)[seen]

    peers: dict[str, Call] = {"torch.mm in a loop": loop, "torch.bmm, padded": padded}
    try:
        grouped()
    except (AttributeError, NotImplementedError, RuntimeError):
        return peers
    return {"torch._grouped_mm": grouped} | peers


def agree_as_products(ours: Any, theirs: Any) -> None:
    """The sums are of hundreds of products, in another order."""
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-3, atol=1e-3)


FAMILIES = [products]

if __name__ == "__main__":
    main(FAMILIES)
