"""Mutate the texts that are parsed: signatures, nets, expressions, shapes, dtypes and job files."""

from __future__ import annotations

import random
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import seqflow as sf
from fuzz.hunting import hunt
from seqflow import registry


def run(seed: int, seconds: float) -> Counter[str]:
    """Mutate one text after another; the counts, which are printed, too."""
    return hunt("texts", case, seed, seconds)


def case(rng: random.Random, folder: Path) -> None:
    """One case: a text of one of the languages, mutated."""
    rng.choice((_signature, _net, _net, _expression, _shape, _job, _job))(rng, folder)


_PIECES = (
    "(", ")", "[", "]", "{", "}", ",", ":", ";", ".", "..", "…", "=",
    "==", "->", "→", "*", "**", "+", "-", "/", "//", "%", "<=",
    "?", "|", "&", "!", "'", '"', '"""', "#", "\\", "\n", "\t", " ",
    "\0", "\u2028", "\ufeff", "²", "٣", "é", "\ud800", "_",
    "0", "1", "-1", "1e999", "1e-999", "nan", "inf", "0x10", "1_0", "9" * 30, "9" * 5000, str(2**63), str(-(2**63)), "0.5",  # noqa: E501
    "1.", ".5",
    "True", "None", "true", "return", "import", "lengths", "sum", "max",
    "min", "B", "N", "d", "*d", "int32", "float64", "bool", "str",
    "x", "y", "tokens", "x.lengths", "x.values", "tokens.values", "pad", "lengths_sum", "gather", "lambda",
)  # fmt: skip


def mutated(rng: random.Random, text: str, others: list[str]) -> str:
    """The text with one to six changes: characters, pieces of the languages, parts of itself and of others."""
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice((1, 1, 3, 10, 40)))
        match rng.randrange(8):
            case 0:
                text = text[:at] + text[end:]
            case 1 | 2:
                text = text[:at] + rng.choice(_PIECES) + text[at:]
            case 3:
                text = text[:at] + rng.choice(_PIECES) + text[end:]
            case 4:
                other = rng.choice(others)
                start = rng.randrange(len(other) + 1)
                text = text[:at] + other[start : start + rng.choice((3, 20, 100))] + text[at:]
            case 5:
                times = rng.choice((2, 20, 500))
                text = text[:at] + text[at:end] * times + text[end:]
            case 6:
                opening, closing = rng.choice(("()", "[]", "{}", ("-", ""), ("(1+", ")"), ("not ", "")))
                depth = rng.choice((2, 50, 600, 5000))
                text = text[:at] + opening * depth + text[at:end] + closing * depth + text[end:]
            case 7:
                words = list(re.finditer(r"\w+", text))
                if words:
                    word = rng.choice(words)
                    text = text[: word.start()] + rng.choice(_PIECES) + text[word.end() :]
    return text[:20_000]


@cache
def _signatures() -> list[str]:
    return [str(registry.get(name).signature) for name in registry.names()]


_STEPS = [
    "x{j} = where(x{i} > 0, x{i}, -x{i})",
    "x{j}, p{i} = boolean_mask(x{i}, x{i} > 0)",
    "x{j} = reshape(expand_dims(x{i}, axis=0) * expand_dims(x{i}, axis=1), shape=[-1])",
    "x{j} = slice_axes(x{i}, starts=[0], stops=[1000000000], steps=[2])",
]
"""Steps of nets that repeat them."""


@cache
def _nets() -> list[str]:
    calls = [f"y = {name}(x.values, x.lengths)\nreturn y" for name in registry.names()]
    chains = [
        "\n".join(["x0 = x.values * 1", *(step.format(i=i, j=i + 1) for i in range(40)), "return x40"])
        for step in _STEPS
    ]
    return [
        *calls,
        *chains,
        "x, mask = pad(tokens.values, tokens.lengths)\nreturn x, mask",
        "n = tokens.lengths\nkeep = n > 2\nz = lengths_sum(tokens.values * 2 + 1, n)\nreturn z, keep",
        "# a comment\ny = x.values ** 2 / (1 - x.values)\nreturn y, x.lengths",
        "a = where(tokens.values > 3, tokens.values, 0)\nb: float32[N] = cast(a, dtype='float32')\nreturn b",
    ]


_EXPRESSIONS = [
    "x * 2 + 1",
    "-(x ** 2) % 3 == 1 & ~(y < 4)",
    "where(x > 0, x, y / 2)",
    "min(x, max(y, 3)) // 2",
    "x if y else 1e-3",
]
_SHAPES = [
    "sum(lengths)",
    "B, max(lengths), *d",
    "[2 * B + 1, N // 2]",
    "min(a, b), 3",
    "max(lengths) * B <= 512",
    "-:0,10:3,4",
]


def _signature(rng: random.Random, folder: Path) -> None:
    from seqflow.signature.parser import parse

    parse(mutated(rng, rng.choice(_signatures()), _signatures()))


def _net(rng: random.Random, folder: Path) -> None:
    net = sf.Net(mutated(rng, rng.choice(_nets()), _nets()))
    str(net)
    rows = {"x": np.arange(3), "y": np.ones(3), "x.lengths": np.array([2, 0, 1]), "x.values": np.arange(3.0)}
    rows |= {"tokens.lengths": np.array([1, 0, 2]), "tokens.values": np.arange(3)}
    net.infer({name: sf.TensorSpec.of(array) for name, array in rows.items()})
    if rng.random() < 0.5:
        sf.run(net, rows)


def _expression(rng: random.Random, folder: Path) -> None:
    text = mutated(rng, rng.choice(_EXPRESSIONS), _EXPRESSIONS)
    expression = sf.Expression(text)
    str(expression)
    expression(x=np.arange(3), y=np.ones(3))


def _shape(rng: random.Random, folder: Path) -> None:
    text = mutated(rng, rng.choice(_SHAPES), _SHAPES)
    str(rng.choice((sf.PartialShape.parse, sf.Dimension.parse, sf.TensorSlice.parse))(text))


_JOB = """\
imports = []
[source]
paths = ["docs.parquet"]
columns = ["tokens", "näme x"]
kind = "parquet"
exclude = ["*.pyc", "[a-z]x"]
rename = {"label" = "y"}
fill = 0
[order]
window = "32 MiB"
memory = "1.5 GB"
[prepare]
net = "x = tokens.values * 2\\nreturn x, tokens.lengths"
[batch]
kind = "packed"
capacity = 16
strategy = "best_fit"
[net]
file = "a.net"
[constants]
table = "t.npy"
[output]
path = "out"
kind = "none"
columns = ["tokens"]
compression = "zstd"
threads = 2
[bad_rows]
policy = "quarantine"
path = "bad.parquet"
"""
_TEXT_JOB = """\
batch = 3
[source]
paths = "docs.txt"
[source.text]
encoding = "utf-8"
errors = "strict"
batch_bytes = "1 MiB"
[net]
net = "return text.lengths"
"""
_TOKENS = """\
[source]
paths = "docs.parquet"
columns = ["tokens"]
valid = true
[batch]
kind = "tokens"
max_tokens = 8
padded = true
[output]
kind = "none"
"""


def _job(rng: random.Random, folder: Path) -> None:
    from seqflow.job import Job
    from seqflow.job import run as run_job
    from seqflow.job.checking import check

    text = mutated(rng, rng.choice((_JOB, _TEXT_JOB, _TOKENS)), [_JOB, _TEXT_JOB, _TOKENS])
    content = text.encode(errors="surrogatepass" if rng.random() < 0.1 else "replace")
    if re.search(r"[/~{]", text.replace('rename = {"', "").replace("[a-z]", "")):
        return  # a path out of the folder
    (folder / "job.toml").write_bytes(content)
    name = rng.choice(("tokens", "näme x", "a b", "9", "*", "sum(x)", "\n", "return"))
    rows: dict[str, Any] = {"tokens": [[1, 2], [3], []], "label": [1, None, 3], name: [[1], [], [2, 3]]}
    pq.write_table(pa.table(rows), folder / "docs.parquet")
    (folder / "docs.txt").write_bytes(b"h\xe9llo" if rng.random() < 0.5 else "héllo".encode())
    (folder / "a.net").write_bytes(b"return x\xff" if rng.random() < 0.2 else b"return tokens")
    np.save(folder / "t.npy", np.arange(3))
    job = Job.read(folder / "job.toml", {"order.memory": "1 MiB"} if rng.random() < 0.1 else {})
    str(check(job))
    if job.output.path is None or job.output.kind == "none":
        run_job(job)
