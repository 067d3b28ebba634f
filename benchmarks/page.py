"""docs/performance.md, docs/performance-tables.md, pictures and the table of the README, from one file of results.

python benchmarks/page.py       writes them anew from docs/performance.json
"""

import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from plot import described, plot
from suites import SUITES

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "performance.json"
PAGE = ROOT / "docs" / "performance.md"
TABLES = ROOT / "docs" / "performance-tables.md"
README = ROOT / "README.md"
PICTURES = ROOT / "docs" / "pictures" / "growth"
WRITTEN = "<!-- Written by `python -m benchmarks --page`; do not edit. -->"
IN_README = (
    ("sum of 4M values in sequences", "ops", "lengths_sum 4M", "torch.segment_reduce"),
    ("pad 32,768 rows to 512", "ops", "pad 32768×512 int64, fresh", "zeros, assign by mask"),
    ("LSTM, 64 sequences", "rnn", "LSTM", "torch, packed"),
    ("a shuffled epoch, padded", "loaders", "shuffled epoch, padded", "torch DataLoader"),
    ("tokenise and pack text", "tokenizing", "tokenize and pack 10 MB", "datasets.map"),
    ("sum of embeddings, 1M × 64", "sparse", "sum 1000k×64 int64 uniform", "EmbeddingBag"),
    ("the main job, files to Parquet", "pack_source", "seqflow run examples/pack_source.toml", "plain pyarrow"),
)  # fmt: skip
"""The rows of the README: what it calls the work, suite, row, and peer."""


def write() -> None:
    """Write all that is made from the results."""
    found = json.loads(RESULTS.read_text(encoding="utf-8"))
    PICTURES.mkdir(exist_ok=True)
    for path in PICTURES.glob("*.svg"):
        path.unlink()
    for name, picture in pictures(found).items():
        (PICTURES / name).write_text(picture, encoding="utf-8")
    PAGE.write_text(text(found), encoding="utf-8")
    TABLES.write_text(tables(found), encoding="utf-8")
    README.write_text(with_table(README.read_text(encoding="utf-8"), found), encoding="utf-8")


def pictures(found: dict[str, Any]) -> dict[str, str]:
    """The plots of a run by the names of their files."""
    return {f"{number}.svg": plot(series) for number, series in enumerate(found["series"])}


def text(found: dict[str, Any]) -> str:
    """The page."""
    machine = found["machine"]
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    bandwidth = ", ".join(f"{name} {speed:g}" for name, speed in machine["bandwidth"].items())
    compared = [row for row in found["rows"] if row["peers"]]
    faster = [row for row in compared if ratio(row) <= 1]
    parts = [
        "# Performance",
        "",
        WRITTEN,
        "",
        "After this page you know where seqflow is faster than what you use, and where it is slower. Figures are",
        "ratios, time of ours divided by the time of the fastest peer: below 1 ours is faster. `--page` also writes",
        "`docs/performance.json` and the table of the README; `python -m benchmarks --quick` takes two minutes.",
        "",
        f"Of {len(compared)} comparisons ours is as fast as the fastest peer or faster in {len(faster)}; the",
        f"geometric mean of the ratios is {geometric_mean(compared):.2f}.",
        "",
        "* A peer does the whole work, on the same arrays; its result is compared with ours before it is timed.",
        "* All contenders of a row take turns, round by round, in one run; the fastest round of each counts. Only",
        "  ratios within one run count: speed differs between machines and over time.",
        "* One thread each, unless a row says otherwise. Loaders and jobs take the threads they take by themselves.",
        "* What a row *needs at least* is not a peer: it is the unavoidable work, such as copying the result.",
        "",
        f"Measured on {machine['date']}: {machine['processor']}, {machine['cores']} cores, {machine['system']},",
        f"kernels {machine['kernels']}, Python {machine['python']}. Memory in GB/s, one thread: {bandwidth}.",
        f"{packages}.",
        "",
    ]
    parts += [
        "## Suites",
        "",
        "| suite | comparisons | a peer is faster in | geometric mean |",
        "| --- | --- | --- | --- |",
    ]
    for _, title, rows in suites_of(found):
        of_peers = [row for row in rows if row["peers"]]
        slower = sum(map(is_slower, of_peers))
        anchor = re.sub(r"[^\w -]", "", title).lower().replace(" ", "-")
        link = f"[{title}](performance-tables.md#{anchor})"
        parts.append(f"| {link} | {len(of_peers)} | {slower} | {geometric_mean(of_peers):.2f} |")
    parts += [
        "",
        "Each row is in [the tables](performance-tables.md), with the reason of each loss.",
        "",
        "## Growth",
        "Lines are told apart by their dashes and by the names at their ends.",
        "",
    ]
    for number, series in enumerate(found["series"]):
        parts += [f"![{series['name']}, {described(series)}](pictures/growth/{number}.svg)", ""]
    return "\n".join(parts).rstrip() + "\n"


def tables(found: dict[str, Any]) -> str:
    """The page of all rows."""
    lead = "After this page you know the times of each comparison of [performance](performance.md)."
    parts = ["# Tables of performance", "", WRITTEN, "", lead, ""]
    for suite, title, rows in suites_of(found):
        parts += [*section(suite, title, rows), ""]
    return "\n".join(parts).rstrip() + "\n"


def suites_of(found: dict[str, Any]) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Name, title and rows of each suite that has rows."""
    for suite, title in SUITES.items():
        if rows := [row for row in found["rows"] if row["suite"] == suite]:
            yield suite, title, rows


def geometric_mean(rows: list[dict[str, Any]]) -> float:
    """The geometric mean of the ratios of rows with peers; NaN of none."""
    return math.exp(sum(math.log(ratio(row)) for row in rows) / len(rows)) if rows else math.nan


def section(suite: str, title: str, rows: list[dict[str, Any]]) -> list[str]:
    """A table, and why peers are faster where they are."""
    lines = [
        f"## {title}",
        f"`python benchmarks/{suite}.py`, {rows[0]['unit']}.",
        "",
        "| work | ours | peers | ratio |",
        "| --- | --- | --- | --- |",
    ]
    reasons: dict[str, list[str]] = {}
    for row in rows:
        beside = [f"{name} {time:.4g}" for name, time in row["peers"].items()]
        beside += [f"*{name} {time:.4g}*" for name, time in row["floors"].items()]
        of_best = f"{ratio(row):.2f}" if row["peers"] else ""
        if row["peers"] and is_slower(row):
            of_best = f"**{of_best}**"
            reasons.setdefault(row["why"], []).append(row["name"])
        lines.append(f"| {row['name']} | {row['ours']:.4g} | {'; '.join(beside)} | {of_best} |")
    if reasons:
        lines += ["", "Where a peer is faster:", ""]
        lines += [f"* {', '.join(names)}: {why}." for why, names in reasons.items()]
    return lines


def ratio(row: dict[str, Any]) -> float:
    """Ours divided by the fastest peer."""
    return float(row["ours"] / min(row["peers"].values()))


def in_words(ratio: float) -> str:
    """Return how many times as fast ours is, in words; from 0.96 to 1.04 no one can tell which is faster."""
    return "a tie" if 0.96 <= round(ratio, 2) <= 1.04 else f"{1 / ratio:.1f} times as fast"


def is_slower(row: dict[str, Any]) -> bool:
    """Whether the fastest peer is faster, as the page shows it."""
    return bool(row["peers"]) and float(f"{ratio(row):.2f}") > 1


def unexplained(found: dict[str, Any]) -> list[str]:
    """The rows in which a peer is faster, and nothing says why."""
    return [row["name"] for row in found["rows"] if is_slower(row) and not row["why"]]


def with_table(readme: str, found: dict[str, Any]) -> str:
    """The README with its table of ratios."""
    rows = {(row["suite"], row["name"]): row for row in found["rows"]}
    lines = ["| work | peer | ours is |", "| --- | --- | --- |"]
    for title, suite, name, peer in IN_README:
        if (row := rows.get((suite, name))) and peer in row["peers"]:
            lines.append(f"| {title} | {peer} | {in_words(row['ours'] / row['peers'][peer])} |")
    machine = found["machine"]
    said = f"`python -m benchmarks`, {machine['date']}, {machine['processor']}: [all](docs/performance.md)."
    pattern = r"\| work \| peer \| ours is \|(?:.*\n)(?:\|.*\n)+\n`python -m benchmarks`.*\n"
    assert re.search(pattern, readme), "the README has no table of ratios"
    return re.sub(pattern, lambda _: "\n".join(lines) + f"\n\n{said}\n", readme)


if __name__ == "__main__":
    write()
