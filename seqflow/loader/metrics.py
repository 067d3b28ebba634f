"""Times of an iteration for monitoring: OpenMetrics text, and lines of JSON."""

from collections.abc import Iterator, Mapping
from typing import Any

from seqflow.loader.run.ledger import Stats
from seqflow.loader.run.timings import StepTimes

_FAMILIES = {
    "seqflow_steps": ("counter", "Steps of the iteration, after its first batch."),
    "seqflow_step_seconds": ("gauge", "Mean seconds of a step, by its parts."),
    "seqflow_first_batch_seconds": ("gauge", "Seconds to the first batch."),
    "seqflow_stage_calls": ("counter", "Calls of a stage."),
    "seqflow_stage_seconds": ("counter", "Seconds in a stage, over all threads."),
    "seqflow_stage_cpu_seconds": ("counter", "Processor time of a stage, over all threads."),
    "seqflow_rows": ("counter", "Rows handed out."),
    "seqflow_tokens": ("counter", "Tokens handed out."),
    "seqflow_shared_tokens": (
        "counter",
        "Tokens that rows share with others of their batch, which has them once.",
    ),
    "seqflow_bad_rows": ("counter", "Rows that could not be used."),
    "seqflow_window_bytes": ("counter", "Bytes of the windows that were opened."),
    "seqflow_bytes_in_flight": ("gauge", "Bytes of windows read ahead or in use."),
}
"""Type and help of each family of metrics. A counter's samples end with `_total`."""


def _samples(stats: Stats) -> Iterator[tuple[str, Mapping[str, str], float]]:
    """Yield family, labels and value of each sample."""
    timings = stats.timings
    yield "seqflow_steps", {}, timings.num_steps
    for part, seconds in zip(StepTimes._fields, timings.sums, strict=True):
        yield "seqflow_step_seconds", {"part": part}, seconds / max(1, timings.num_steps)
    if timings.first_batch is not None:
        yield "seqflow_first_batch_seconds", {}, timings.first_batch
    for family, field in (
        ("seqflow_stage_calls", "calls"),
        ("seqflow_stage_seconds", "seconds"),
        ("seqflow_stage_cpu_seconds", "cpu_seconds"),
    ):
        for name, stage in timings.stages.items():
            yield family, {"stage": name}, getattr(stage, field)
    counts = {
        "rows": stats.rows,
        "tokens": stats.tokens,
        "shared_tokens": stats.shared,
        "bad_rows": stats.bad_rows,
    }
    for name, count in counts.items():
        yield f"seqflow_{name}", {}, count
    yield "seqflow_window_bytes", {}, timings.bytes
    yield "seqflow_bytes_in_flight", {}, stats.bytes_in_flight


def metrics_of(stats: Stats, rank: int) -> dict[str, float]:
    """Return the value of each sample by its name and labels, as in OpenMetrics text."""
    found = {}
    for family, labels, value in _samples(stats):
        total = "_total" if _FAMILIES[family][0] == "counter" else ""
        of = ",".join(f'{name}="{text}"' for name, text in {**labels, "rank": str(rank)}.items())
        found[f"{family}{total}{{{of}}}"] = round(value, 9)
    return found


def open_metrics(stats: Stats, rank: int) -> str:
    """Return the samples as OpenMetrics text, with type and help of each family."""
    lines: list[str] = []
    family: Any = None
    for sample, value in metrics_of(stats, rank).items():
        name = sample.partition("{")[0].removesuffix("_total")
        if name != family:
            family = name
            kind, text = _FAMILIES[name]
            lines += [f"# TYPE {name} {kind}", f"# HELP {name} {text}"]
        lines.append(f"{sample} {value}")
    return "\n".join([*lines, "# EOF", ""])
