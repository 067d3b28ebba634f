"""The pictures of pages that explain an idea, drawn from what the code finds: `python -m tools.docs` writes them."""

import re
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import seqflow as sf
from seqflow import ops
from seqflow.drawing.svg import THEMES, Theme, box, picture, text

DOCS = Path(__file__).parents[1] / "docs"
_HEIGHT, _STEP, _MARGIN, _CHAR, _CELL, _GAP = 24, 30, 8, 8, 34, 16


class Cell(NamedTuple):
    """A box as wide as what it counts; without a fill, text alone."""

    content: object
    width: float
    fill: str | None = None


class Line(NamedTuple):
    """Cells side by side, and what they are."""

    label: str
    cells: Sequence[Cell] = ()


def pictures() -> dict[Path, str]:
    """Return each picture by its path, in light and dark."""
    drawn = (living_mixes, shared_sequences, prefix_tree, verdict, serving)
    return {
        DOCS / "pictures" / f"{one.__name__.replace('_', '-')}-{name}.svg": one(THEMES[name])
        for one in drawn
        for name in ("light", "dark")
    }


def living_mixes(theme: Theme) -> str:
    """Weights and rows of the first batches of a mix that is changed."""
    names = ("web", "code", "math")
    tables = {name: pa.table({"id": range(100)}) for name in names}
    mix = sf.Mix({name: tables[name] for name in names[:2]}, weights={"web": 0.75, "code": 0.25}, batch=4)
    mix.reweigh({"web": 0.25, "code": 0.75}, at=2)
    mix.add("math", tables["math"], weight=1, at=4)
    mix.remove("web", at=8)
    batches = [batch["source"].tolist() for batch in mix.take(11)]
    changes = mix.state_dict()["history"]
    lines = [Line("batch", [Cell("weights", 240), Cell("", _GAP), Cell("rows", 224)])]
    for number, sources in enumerate(batches):
        weights = [dict(one["weights"]) for one in changes if one["batch"] <= number][-1]
        whole = sum(weights.values())
        shares = [
            Cell(name, 240 * weight / whole, theme.fills[names.index(name)])
            for name, weight in weights.items()
            if weight
        ]
        rows = [Cell(names[source], 56, theme.fills[source]) for source in sources]
        lines.append(Line(str(number), [*shares, Cell("", _GAP), *rows]))
    return _in_lines("A mix whose weights and sources change while a model trains", lines, theme)


def shared_sequences(theme: Theme) -> str:
    """Equal sequences, each stored once, and the index of each row among them."""
    history, lengths = np.array([7, 8, 9, 5, 7, 8, 9, 7, 8, 9]), np.array([3, 1, 3, 3])
    once = ops.distinct_sequences(history, lengths)
    fills = [theme.fills[row] for row in once.row]
    rows = np.split(history, np.cumsum(lengths)[:-1])
    kept = np.split(once.values, np.cumsum(once.lengths)[:-1])
    lines = [Line(f"history of row {n}", _cells(row, fills[n])) for n, row in enumerate(rows)]
    lines += [
        Line(""),
        Line("values", [*chain(*(_cells(row, theme.fills[n]) for n, row in enumerate(kept)))]),
        Line("lengths", [Cell(n, n * _CELL, theme.fills[at]) for at, n in enumerate(once.lengths)]),
        Line("row", [Cell(row, _CELL, fill) for row, fill in zip(once.row, fills, strict=True)]),
    ]
    return _in_lines("Equal histories are stored once", lines, theme)


def prefix_tree(theme: Theme) -> str:
    """Rows with common prefixes, and the segments of their tree in one row."""
    rows = [[1, 2, 3, 4, 5], [1, 2, 3, 4, 6, 7], [1, 2, 3, 8]]
    tokens, lengths = np.concatenate(rows), np.array([len(row) for row in rows])
    tree = ops.prefix_tree(tokens, lengths)
    paths = ops.tree_paths(tree.parents, tree.node_lengths)
    colours = np.array([*theme.fills, theme.empty])
    fills = colours[np.repeat(np.arange(len(tree.node_lengths)), tree.node_lengths) % len(colours)]
    lines = [
        Line(f"row {number}", [Cell(tokens[tree.kept[at]], _CELL, fills[at]) for at in places])
        for number, places in enumerate(np.split(tree.rows, np.cumsum(lengths)[:-1]))
    ]
    lines += [
        Line(""),
        Line("the tree", [Cell(tokens[at], _CELL, fill) for at, fill in zip(tree.kept, fills, strict=True)]),
        Line("positions", [Cell(at, _CELL) for at in paths.positions]),
    ]
    title = f"Common prefixes are computed once: {len(tree.kept)} tokens, not {len(tokens)}"
    return _in_lines(title, lines, theme)


def verdict(theme: Theme) -> str:
    """The step of the verdict on its page: own work and waiting, as it is and as predicted."""
    shown = (DOCS / "verdict.md").read_text("utf-8")
    limit = re.findall(r"^  limit +(\w+)$", shown, re.MULTILINE)[0]
    found = re.findall(r"^  step +(\S+) ms: own (\S+) ms, helped (\S+) ms", shown, re.MULTILINE)[0]
    step, own, helped = map(float, found)
    changes = re.findall(r"^  change +(\S+): (\S+) ms", shown, re.MULTILINE)
    steps = [("as it is", step, helped, f"waits: {limit}, {helped} ms")]
    steps += [(name, float(ms), float(ms) - own, "waits" * (float(ms) - own > 5)) for name, ms in changes]
    lines = [
        Line(name, [
            Cell(f"own {own} ms", 10 * own, theme.fills[0]),
            Cell(words, 10 * waits, theme.fills[2]),
            Cell(f"{whole} ms", 72),
        ])
        for name, whole, waits, words in steps
    ]  # fmt: skip
    title = re.findall(r"^Verdict: (.*)$", shown, re.MULTILINE)[0]
    return _in_lines(title, lines, theme)


def serving(theme: Theme) -> str:
    """Ranks ask servers for batches by their numbers: a ticket is all that a server needs."""
    ranks, servers = 3, "ab"
    colours = dict(zip(servers, theme.fills[1:], strict=False))
    lines = [Line("trainers", [Cell("ask for", 80), Cell("batch of epoch 0", 160), Cell("made by", 80)])]
    for number in range(6):
        server = servers[number % len(servers)]
        made_by = Cell(f"server {server}", 80, colours[server])
        lines.append(
            Line(f"rank {number % ranks}", [Cell("→", 80), Cell(number, 160, theme.fills[0]), made_by])
        )
    lines.append(Line("files", [Cell("", 80), Cell("job.toml, read by any server", 240, theme.empty)]))
    return _in_lines("Tickets of three trainers to two servers", lines, theme)


def _cells(values: Iterable[object], fill: str) -> list[Cell]:
    return [Cell(value, _CELL, fill) for value in values]


def _in_lines(title: str, lines: Sequence[Line], theme: Theme) -> str:
    """Return a picture of lines of cells, one below the other, each after its label."""
    left = max(len(line.label) for line in lines) * _CHAR + 2 * _MARGIN
    parts = [text(_MARGIN, _MARGIN + 14, title, theme.ink, "start", bold=True)]
    right: float = len(title) * _CHAR + _MARGIN
    for number, line in enumerate(lines, 1):
        x, top = float(left), _MARGIN + number * _STEP
        middle = top + _HEIGHT / 2 + 4.5
        parts.append(text(left - _MARGIN, middle, line.label, theme.ink, "end"))
        for cell in line.cells:
            if cell.fill is not None:
                parts.append(box(x, top, cell.width, _HEIGHT, cell.fill, theme.line))
            parts.append(text(x + cell.width / 2, middle, cell.content, theme.ink))
            x += cell.width
        right = max(right, x)
    words = "; ".join(
        f"{line.label}: {', '.join(str(cell.content) for cell in line.cells if cell.content != '')}"
        for line in lines
        if line.cells
    )
    return picture(right + _MARGIN, _MARGIN * 2 + (len(lines) + 1) * _STEP, title, words, parts)
