"""Damage what seqflow has written for itself: indexes, states, progress, manifests, vocabularies, tokenizers."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import seqflow as sf
from fuzz.files import damaged
from fuzz.hunting import hunt
from seqflow.loader.order.index import CHECKSUM, checksum

ROWS = 60


def run(seed: int, seconds: float) -> Counter[str]:
    """Damage one thing after another; the counts, which are printed, too."""
    return hunt("saved", case, seed, seconds)


def case(rng: random.Random, folder: Path) -> None:
    """One case: something saved, damaged, and used again."""
    rng.choice(_KINDS)(rng, folder)


def mutated_json(rng: random.Random, value: Any) -> Any:
    """The value with one to four of its parts changed."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        parts = list(_parts(value))
        value = _replaced(value, rng.randrange(len(parts)), lambda part, all=parts: _other(rng, part, all))
    return value


_STRANGE = (
    None, True, False, 0, 1, -1, 2, 7, 2**31, 2**63 - 1, 2**63, -(2**63), 10**30, 0.5, -0.0, 1e308,
    float("nan"), float("inf"), "", "0", "x", "-1", "\ud800", "é" * 50, "../x", "/x", "\0",
    [], {}, [[]], [None], {"": None}, {"x": {}}, [0, 1],
)  # fmt: skip


def _parts(value: Any) -> Iterator[Any]:
    """The value, and everything in it."""
    yield value
    for part in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _parts(part)


def _replaced(value: Any, number: int, other: Callable[[Any], Any]) -> Any:
    """The value with another part in the place of that of a number, in the order of `_parts`."""
    left = number

    def walk(part: Any) -> Any:
        nonlocal left
        left -= 1
        if left == -1:
            return other(part)
        if isinstance(part, dict):
            return {name: walk(each) for name, each in part.items()}
        return [walk(each) for each in part] if isinstance(part, list) else part

    return walk(value)


def _other(rng: random.Random, part: Any, parts: list[Any]) -> Any:
    """Another value for a part: something near it, another one of the parts, or something strange."""
    alike = [each for each in parts if type(each) is type(part)]
    match rng.randrange(8):
        case 0 if isinstance(part, dict) and part:
            gone = rng.choice(list(part))
            return {name: value for name, value in part.items() if name != gone}
        case 1 if isinstance(part, dict) and part:
            return {**part, rng.choice(("x", "", "0", *part)): rng.choice(parts)}
        case 0 | 1 | 2 if isinstance(part, list) and part:
            at, copies = rng.randrange(len(part)), rng.choice((0, 2))
            return part[:at] + part[at : at + 1] * copies + part[at + 1 :]
        case 0 | 1 | 2 | 3 if isinstance(part, int):
            return part + rng.choice((-1, 1, -part * 2, 1000, 2**40))
        case 0 | 1 if isinstance(part, str):
            return damaged(rng, part.encode(errors="replace")).decode(errors="replace")
        case 4 | 5 | 6:
            return rng.choice(alike)
    return rng.choice((*_STRANGE, rng.choice(parts)))


def _damaged_json(rng: random.Random, content: bytes) -> bytes:
    """JSON with parts exchanged, mostly; otherwise damaged as bytes."""
    if rng.random() < 0.2:
        return damaged(rng, content)
    return json.dumps(mutated_json(rng, json.loads(content))).encode()


@cache
def _rows() -> pa.Table:
    rng = np.random.default_rng(0)
    return pa.table(
        {"tokens": [list(range(k)) for k in rng.integers(0, 9, ROWS)], "label": list(range(ROWS))}
    )


def _source(folder: Path) -> Path:
    path = folder / "rows.parquet"
    pq.write_table(_rows(), path, row_group_size=20)
    return path


def _read_all(loader: sf.Loader) -> None:
    for number, _ in enumerate(loader):
        if number == 2 * ROWS:
            return


_PLANS: tuple[Callable[[], Any], ...] = (
    lambda: 7,
    lambda: sf.TokenBudget(16, lengths="tokens"),
    lambda: sf.Packed(16, columns=("tokens",)),
)


def _index(rng: random.Random, folder: Path) -> None:
    """A lengths index: its bytes, its settings, or its columns, with a checksum that is right."""
    source, path = _source(folder), folder / "rows.lengths.arrow"
    batch = _PLANS[rng.randrange(1, 3)]()
    sf.Loader(source, batch=batch, index=path).lengths_index()
    if rng.random() < 0.3:
        path.write_bytes(damaged(rng, path.read_bytes()))
    else:
        table = pa.ipc.open_file(path).read_all()
        metadata = dict(table.schema.metadata)
        if rng.random() < 0.4:
            metadata = {name: _damaged_json(rng, text) for name, text in metadata.items()}
        else:
            table, metadata[CHECKSUM] = _other_index(rng, table)
        with pa.ipc.new_file(path, table.schema.with_metadata(metadata)) as writer:
            writer.write_table(table.replace_schema_metadata(metadata))
    _read_all(sf.Loader(source, batch=batch, index=path, streams=rng.choice((1, 2))))


def _other_index(rng: random.Random, table: pa.Table) -> tuple[pa.Table, bytes]:
    """An index with other columns, and their checksum."""
    try:
        table = pa.table(mutated_json(rng, table.to_pydict()))
    except Exception:  # what pyarrow cannot build
        return table, b""
    large = pa.schema(
        [
            (name, pa.large_list(pa.int64()) if name == "lengths" else kind)
            for name, kind in zip(table.column_names, table.schema.types, strict=True)
        ]
    )
    try:
        table = table.cast(large)
        return table, checksum(table)
    except Exception:
        return table, b""


def _state(rng: random.Random, folder: Path) -> None:
    """The state of a loader, or of a mix of two."""
    source = _source(folder)

    def make() -> Any:
        loaders = [sf.Loader(source, batch=batch, shuffle=shuffled, window="1 KiB") for _ in range(1 + mixed)]
        return sf.Mix(dict.fromkeys(loaders, 0.5)) if mixed else loaders[0]

    batch, shuffled, mixed = rng.choice(_PLANS)(), rng.random() < 0.5, rng.random() < 0.3
    loader = make()
    taken = rng.randrange(5)
    for _, _ in zip(range(taken), loader, strict=False):
        pass
    state = json.loads(json.dumps(loader.state_dict()))
    place = {name: state[name] for name in ("epoch", "batch", "windows", "members") if name in state}
    changed = mutated_json(rng, place if rng.random() < 0.7 else state)
    state = {**state, **changed} if isinstance(changed, dict) else changed
    loader = make()
    loader.load_state_dict(state)
    _read_all(loader)


def _job(folder: Path, kind: str) -> Any:
    from seqflow.job import Job

    return Job.from_dict(
        {
            "source": {"paths": ["rows.parquet"]},
            "batch": {"kind": "tokens", "max_tokens": 20},
            "order": {"window": "1 KiB"},
            "output": {"path": kind, "part_bytes": "100 B", "row_group_bytes": "100 B", "threads": 1},
            "bad_rows": {"policy": "quarantine", "path": "bad.parquet"},
        },
        folder,
    )


class _Killed(Exception):
    """The run ends here, as one that is killed."""


def _record(rng: random.Random, folder: Path) -> None:
    """The progress file of a run that was killed, or the manifest of one that ended."""
    from seqflow.job import run as run_job

    _source(folder)
    job = _job(folder, rng.choice(("out", "out.parquet")))
    batches = rng.choice((3, 6, 9, 12, 1000))

    def progress(stats: Any, total: int | None) -> None:
        if stats.batches >= batches:
            raise _Killed

    with suppress(_Killed):
        run_job(job, progress)
    for path in folder.glob("**/*.json"):
        damage = _damaged_line if "progress" in path.name else _damaged_json
        path.write_bytes(damage(rng, path.read_bytes()))
    resume = rng.random() < 0.8
    run_job(job, resume=resume, overwrite=not resume)


def _manifest(rng: random.Random, folder: Path) -> None:
    """The manifest of an output that no job has written."""
    from seqflow.output import open_output
    from seqflow.record import from_arrow

    for again in range(2):
        with open_output(folder / "out") as output:
            output.write(from_arrow(_rows()))
            output.finish()
        if not again:
            path = folder / "out" / "_manifest.json"
            path.write_bytes(_damaged_json(rng, path.read_bytes()))


def _damaged_line(rng: random.Random, content: bytes) -> bytes:
    """A progress file one of whose lines is damaged, or ends in its middle."""
    *lines, _ = content.split(b"\n")
    at = rng.randrange(len(lines))
    lines[at] = _damaged_json(rng, lines[at])
    whole = b"\n".join([*lines, b""])
    return whole if rng.random() < 0.8 else whole[: rng.randrange(len(whole))]


def _vocabulary(rng: random.Random, folder: Path) -> None:
    path = folder / "keys.arrow"
    keys: Any = [3, 1, 2**40, -7] if rng.random() < 0.5 else ["a", "bcd", "é", ""]
    sf.Vocabulary.build(keys).save(path)
    path.write_bytes(damaged(rng, path.read_bytes()))
    vocabulary = sf.Vocabulary.load(path)
    vocabulary.encode(keys)
    repr(vocabulary), vocabulary.keys, vocabulary.freeze().table


def _table(rng: random.Random, folder: Path) -> None:
    """The table of a vocabulary, which nets take as a constant."""
    keys = np.array([3, 1, 2**40, -7]), np.array(["a", "bcd", "é", ""])
    table = sf.Vocabulary.build(rng.choice(keys)).table
    changed = np.frombuffer(damaged(rng, table.tobytes()), np.uint8)
    sf.ops.encode(keys[0], changed)
    sf.ops.encode_strings(np.frombuffer("abcdé".encode(), np.uint8), np.array([1, 3, 2]), changed)


@cache
def _tokenizers() -> list[bytes]:
    """Files of tokenizers of all kinds of models."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    texts = ["def f(x):\n    return x + 1", "the cat and the hat", "häuser 日本語"]
    values = np.frombuffer("".join(texts).encode(), np.uint8)
    lengths = np.array([len(text.encode()) for text in texts])
    learned = sf.ops.train_tokenizer(values, lengths, vocabulary_size=300, special_tokens=["<s>", "</s>"])
    words = {word: number for number, word in enumerate(["[UNK]", "the", "cat", "##s", "h", "##at"])}
    piece = Tokenizer(models.WordPiece(words, unk_token="[UNK]"))
    piece.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    piece.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Digits()])
    piece.post_processor = processors.TemplateProcessing("[UNK] $A", None, [("[UNK]", 0)])
    piece.decoder = decoders.WordPiece()
    piece.enable_truncation(4)
    piece.enable_padding()
    word = Tokenizer(models.WordLevel({"the": 0, "cat": 1, "?": 2}, unk_token="?"))
    word.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    unigram = Tokenizer(models.Unigram([("<unk>", 0.0), ("▁the", -1.0), ("c", -2.0), ("at", -3.5)], 0, True))
    unigram.pre_tokenizer = pre_tokenizers.Metaspace()
    unigram.decoder = decoders.Metaspace()
    return [learned.tobytes(), *(each.to_str().encode() for each in (piece, word, unigram))]


def _tokenizer(rng: random.Random, folder: Path) -> None:
    path = folder / "tokenizer.json"
    path.write_bytes(_damaged_json(rng, rng.choice(_tokenizers())))
    texts = ["the cats and the hat", "", "def f(x): <s> return 1", "日本語 é\u0301 \x00"]
    values = np.frombuffer("".join(texts).encode(), np.uint8)
    lengths = np.array([len(text.encode()) for text in texts])
    ids, counts = sf.ops.tokenize(values, lengths, tokenizer=path)
    sf.ops.decode(ids, counts, tokenizer=path)


_KINDS = (*[_index, _state, _record, _tokenizer] * 2, _manifest, _vocabulary, _table)
