"""The part of a report about ranks: the tokens of the fullest rank, compared with the mean."""

from seqflow.kernels.arrays import Array
from seqflow.report.page import paragraph, table

_WORLD_SIZES = (2, 4, 8)


def imbalance_of_ranks(tokens: Array, dealt: str) -> str:
    """Return a table of the imbalance for a few world sizes: batch k, with tokens[k], goes to rank k mod ranks."""
    rows = [(ranks, *_shown(imbalance(tokens, ranks)), _each(tokens, ranks)) for ranks in _WORLD_SIZES]
    what = (
        f"The tokens of the fullest rank divided by the mean of all ranks, {dealt}. In a step each rank has one "
        "batch, and the others wait for the fullest: at 1.20 they wait for 17 % of their time."
    )
    return paragraph(what) + table(("ranks", "in a step", "in all steps", "tokens of each"), rows)


def _each(tokens: Array, ranks: int) -> str:
    """Return the tokens that each rank has in complete steps."""
    steps = tokens[: len(tokens) // ranks * ranks].reshape(-1, ranks)
    return ", ".join(f"{count:,}" for count in steps.sum(axis=0).tolist()) if len(steps) else ""


def imbalance(tokens: Array, ranks: int) -> tuple[float, float] | None:
    """Return the fullest rank over the mean, for each step and over all steps; None without a complete step of
    tokens.
    """
    steps = tokens[: len(tokens) // ranks * ranks].reshape(-1, ranks)
    if not steps.sum():
        return None
    sums = steps.sum(axis=0)
    return float(steps.max(axis=1).sum() / steps.mean(axis=1).sum()), float(sums.max() / sums.mean())


def _shown(found: tuple[float, float] | None) -> tuple[str, str]:
    return ("too few batches",) * 2 if found is None else (f"{found[0]:.3f}", f"{found[1]:.3f}")
