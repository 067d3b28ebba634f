"""How much of a batch is padding on real text: padded batches, batches of similar lengths, and packed rows.

    python benchmarks/fill.py [--pictures]

The text is that of all functions and classes of Python's standard library, a document each, as byte tokens, the parts
behind the first 2,048 left out. Printed is the share of tokens that are no padding; `--pictures` also writes the
pictures of the README, in light and dark, and the figures into `docs/pictures/fill.json`.
"""

import argparse
import ast
import json
import platform
import sysconfig
from pathlib import Path

import numpy as np
import pyarrow as pa

import seqflow as sf
from seqflow.drawing.svg import THEMES, box, picture, text

CAPACITY, ROWS = 2048, 64
PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
_WIDTH, _HEIGHT, _GAP, _MARGIN, _CHAR = 360, 26, 8, 8, 8


def documents():
    """The bytes of each function and class of the standard library."""
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" in path.parts or "test" in path.parts:
            continue
        try:
            text = path.read_text()
            tree = ast.parse(text)
        except (SyntaxError, UnicodeDecodeError):
            continue
        lines = text.splitlines(keepends=True)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield "".join(lines[node.lineno - 1 : node.end_lineno]).encode()[:CAPACITY]


def table_of(texts):
    values = pa.array(np.frombuffer(b"".join(texts), np.uint8))
    ends = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    return pa.table({"tokens": pa.ListArray.from_arrays(pa.array(ends), values)})


def fill_of(table, batch, **options):
    """The share of the places of all batches that hold a token."""
    tokens, places = 0, 0
    for found in sf.Loader(table, batch=batch, shuffle=True, **options):
        places += found["tokens"].size
        tokens += int(
            (found["segment_ids"] > 0).sum() if "segment_ids" in found else found["tokens.lengths"].sum()
        )
    return tokens / places


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--pictures", action="store_true", help="write the pictures and figures of the README"
    )
    arguments = parser.parse_args()
    texts = list(documents())
    table = table_of(texts)
    boundaries = [64, 128, 192, 256, 384, 512, 768, 1024, 1536]
    pad = {"tokens": sf.Pad(0)}
    fills = {
        f"padded, {ROWS} rows": fill_of(table, ROWS, pad=pad),
        f"{len(boundaries) + 1} buckets": fill_of(table, sf.Buckets(boundaries, sf.Rows(ROWS)), pad=pad),
        "packed": fill_of(table, sf.Packed(CAPACITY)),
    }
    for name, fill in fills.items():
        print(f"{name:18} {fill:7.2%}")
    if arguments.pictures:
        write(fills, len(texts), table["tokens"].nbytes)


def bars(title, shares, theme):
    """A picture of shares by name: the rest of each bar is empty."""
    left = max(map(len, shares)) * _CHAR + 2 * _MARGIN
    right = left + _WIDTH + 9 * _CHAR
    parts = [text(_MARGIN, _MARGIN + 14, title, theme.ink, "start")]
    for number, (name, share) in enumerate(shares.items()):
        top = _MARGIN + (number + 1) * (_HEIGHT + _GAP)
        middle = top + _HEIGHT / 2 + 4.5
        parts += [
            text(left - _MARGIN, middle, name, theme.ink, "end"),
            box(left, top, _WIDTH, _HEIGHT, theme.empty, theme.line, dashed=True),
            box(left, top, _WIDTH * share, _HEIGHT, theme.fills[number % len(theme.fills)], theme.line),
            text(right - _MARGIN, middle, f"{share:.2%}", theme.ink, "end"),
        ]
    words = "; ".join(f"{name} {share:.2%}" for name, share in shares.items())
    width = max(right, len(title) * _CHAR + 2 * _MARGIN)
    return picture(width, (len(shares) + 1) * (_HEIGHT + _GAP) + 2 * _MARGIN, title, words, parts)


def write(fills, count, size):
    PICTURES.mkdir(exist_ok=True)
    words = sf.Sequence(
        np.array(["the", "cat", "sat", "on", "a", "mat", "today"]), [[2, 0, 3], [2, 1, 0, 3, 1]]
    )
    title = f"Tokens that are not padding, {count:,} documents"
    for theme in ("light", "dark"):
        (PICTURES / f"values-{theme}.svg").write_text(words.to_svg(theme))
        (PICTURES / f"fill-{theme}.svg").write_text(bars(title, fills, THEMES[theme]))
    facts = {
        "command": "python benchmarks/fill.py --pictures",
        "python": platform.python_version(),
        "documents": count,
        "bytes": size,
        "fill": {name: round(fill, 4) for name, fill in fills.items()},
    }
    (PICTURES / "fill.json").write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
