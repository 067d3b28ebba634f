"""The pages that are looked at: reports, a gallery of what notebooks show, and the site."""

from __future__ import annotations

import json
import subprocess
import sys
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import seqflow as sf
from seqflow.job import Job, run
from seqflow.job.last_verdict import save_verdict
from seqflow.report.report import report_of_job, report_of_path
from seqflow.signature import Described, OwnRows

ROOT = Path(__file__).resolve().parents[2]
_STYLE = """:root { color-scheme: light dark; }
body { font: 16px/1.5 sans-serif; margin: 1rem; color: #1f2328; background: #fff; }
pre { overflow-x: auto; }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #111; } }"""


def make_reports(folder: Path) -> dict[str, Path]:
    """Reports of a job with all that one can have, of a small job for the documentation, of one with 1,000 windows
    and sequences that rows share, and of a faulty file.
    """
    job = folder / "conversations.html"
    job.write_text(report_of_job(_job(folder), "conversations.toml", batch=32).page, encoding="utf-8")
    example = folder / "example.html"
    packed = Job.read(
        ROOT / "examples" / "pack_source.toml",
        {"source.paths": [str(ROOT / "seqflow" / "**" / "*.py")], "output.path": str(folder / "packed")},
    )
    _run(packed)
    example.write_text(report_of_job(packed, "examples/pack_source.toml").page, encoding="utf-8")
    windows = folder / "windows.html"
    windows.write_text(report_of_job(_windows(folder), "windows.toml").page, encoding="utf-8")
    faulty = folder / "faulty.html"
    faulty.write_text(report_of_path(str(_faulty_lines(folder)), batch=32).page, encoding="utf-8")
    return {"job": job, "example": example, "windows": windows, "path": faulty}


def _job(folder: Path) -> Job:
    """A job that tokenizes, packs, has labels, bad rows, and a net on its batches."""
    rng = np.random.default_rng(0)
    words = [
        "to",
        "be",
        "or",
        "not",
        "that",
        "is",
        "the",
        "question",
        "whether",
        "it",
        "nobler",
        "in",
        "mind",
        "suffer",
        "slings",
        "and",
        "arrows",
    ]
    texts = [" ".join(rng.choice(words, rng.integers(1, 60))) for _ in range(400)]
    data = np.frombuffer(" ".join(texts).encode(), np.uint8)
    tokenizer = sf.ops.train_tokenizer(
        data, np.array([len(data)]), vocabulary_size=300, special_tokens="<eos>"
    )
    tokenizer.tofile(folder / "bpe.json")
    given: list[str | None] = [*texts]
    given[7] = None
    pq.write_table(pa.table({"text": given, "score": rng.random(400)}), folder / "texts.parquet")
    prepare = """
    ids, sizes = tokenize(text.values, text.lengths, tokenizer=tokenizer, end="<eos>")
    tokens.values, tokens.lengths = truncate(ids, sizes, max_length=128)
    labels = where(tokens.values == 0, -100, tokens.values)
    return tokens.values, tokens.lengths, labels
    """
    return Job.from_dict({
        "source": {"paths": [str(folder / "texts.parquet")], "columns": ["text"]},
        "constants": {"tokenizer": str(folder / "bpe.json")},
        "prepare": {"net": prepare},
        "require": "tokens.lengths > 3",
        "batch": {"kind": "packed", "capacity": 256, "columns": ["tokens", "labels"], "rows": 8,
                  "fills": {"labels": -100}},
        "net": {"net": "filled = segment_ids > 0\nreturn tokens, labels, segment_ids, position_ids, filled"},
        "bad_rows": {"policy": "skip"},
        "output": {"kind": "none"},
    })  # fmt: skip


def _windows(folder: Path) -> Job:
    """A job of 1,000 windows that has run, whose rows share the histories of users."""
    users = np.repeat(np.arange(2000), 5)
    lengths = np.repeat([[n % 40, 40 - n % 40] for n in range(1000)], 5)  # 200 ids in each 10 rows
    histories = [list(range(user, user + n)) for user, n in zip(users, lengths, strict=True)]
    pq.write_table(
        pa.table({"user": users, "history": histories}), folder / "users.parquet", row_group_size=10
    )
    job = Job.from_dict({
        "source": {"paths": [str(folder / "users.parquet")]},
        "order": {"window": 10 * (8 + 8) + 200 * 8},
        "share": {"history": "user"},
        "batch": {"kind": "rows", "n": 10},
        "output": {"path": str(folder / "windows")},
    })  # fmt: skip
    _run(job)
    return job


def _run(job: Job) -> None:
    """Run a job, as the command does with `--verdict`."""
    verdict = run(job).verdict
    assert verdict is not None
    save_verdict(job, verdict)


def _faulty_lines(folder: Path) -> Path:
    """A file with lines that cannot be read, and nulls."""
    path = folder / "faulty.jsonl"
    rows: list[dict[str, Any]] = [
        {"id": n, "title": f"a title of row {n} that_is_rather_long", "words": [[n] * (n % 5), []]}
        for n in range(20_000)
    ]
    rows[3]["title"] = None
    lines = [json.dumps(row) for row in rows]
    lines[15_000], lines[16_000] = '{"id": ', '{"id": "x"}'
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def make_gallery(folder: Path) -> Path:
    """A page of all that notebooks show, each beside its text."""
    parts = [
        f"<section><h2>{escape(name)}</h2>{shown._repr_html_()}<pre>{escape(repr(shown))}</pre></section>"
        for name, shown in _displayed(folder).items()
    ]
    page = folder / "gallery.html"
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
    page.write_text(
        f'<!doctype html><html lang="en"><head>{head}<title>Gallery</title><style>{_STYLE}</style></head>'
        f"<body><main><h1>Gallery</h1>{''.join(parts)}</main></body></html>",
        encoding="utf-8",
    )
    return page


def _displayed(folder: Path) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 40, 200)
    table = pa.table({
        "tokens": [rng.integers(0, 1000, n) for n in lengths],
        "labels": [np.where(np.arange(n) < n // 2, -100, 1) for n in lengths],
    })  # fmt: skip
    pq.write_table(table, folder / "tokens.parquet")
    packing = sf.Loader(
        table, batch=sf.Packed(64, columns=("tokens", "labels"), fills={"labels": -100}, rows=8)
    )
    packed = next(iter(packing))
    loader = sf.Loader(folder / "tokens.parquet", batch=sf.TokenBudget(512, lengths="tokens"), shuffle=True)
    for _ in loader:
        pass
    net = sf.Net(
        "ids, n = truncate(tokens.values, tokens.lengths, max_length=512)\n"
        'x, mask = pad(ids, n, side="left")\nscore = sparse_lengths_sum(table, ids, n)\nreturn x, mask, score'
    ).bind(table=np.zeros((1000, 8), np.float32))
    rows = OwnRows("the record")
    specs = {
        "tokens.lengths": sf.TensorSpec("int64", "{rows:0..256}", rows),
        "tokens.values": sf.TensorSpec("int64", "{sum(tokens.lengths)}", Described("tokens.lengths")),
    }
    nested = [["to", "be"], ["or", "not", "to", "be"]], [], [["that", "is"], []]
    return {
        "LoD": sf.LoD([2, 0, 3], [2, 1, 0, 3, 1]),
        "LoD of a long sequence": sf.LoD([100], [3] * 100),
        "Sequence": sf.Sequence(np.arange(7), [[2, 0, 3], [2, 1, 0, 3, 1]]),
        "Sequence of texts": sf.Sequence(
            np.array(["to", "be", "or", "not", "a text that is longer than others"]), [3, 2]
        ),
        "Sequence of rows": sf.Sequence(rng.random((500, 8)), [20] * 25),
        "Sequence from Arrow": sf.from_arrow(pa.array(nested)),
        "Record": next(iter(loader)),
        "Packed batch": packed,
        "Net": net,
        "Net with shapes": net.infer(specs),
        "Loader": loader,
        "Vocabulary": sf.Vocabulary.build(
            pa.array(["to", "be", "or", "not", "to", "be", "that", "is", "the", "question"])
        ),
        "Stats": loader.stats(),
    }


def make_site(folder: Path) -> list[Path]:
    """All pages of the site, without those that only lead to others."""
    site = folder / "site"
    subprocess.run([sys.executable, str(ROOT / "docs" / "site.py"), str(site)], check=True)
    pages = (page for page in site.rglob("*.html") if page.name != "404.html")
    return sorted(page for page in pages if 'http-equiv="refresh"' not in page.read_text("utf-8"))
