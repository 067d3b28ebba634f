"""The jobs on text in examples/, held against the package tokenizers alone."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from command import seqflow

from seqflow.job import Job, run

tokenizers = pytest.importorskip("tokenizers")

EXAMPLES = Path(__file__).parents[2] / "examples"
SPECIALS = ["<eos>", "<|im_start|>", "<|im_end|>"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with some source code, the examples, and a tokenizer learned from the code by the command."""
    folder: Path = tmp_path_factory.mktemp("home")
    shutil.copytree(EXAMPLES, folder / "examples")
    source = folder / "source"
    source.mkdir()
    for module in ("textwrap", "bisect", "heapq", "colorsys"):
        shutil.copy(__import__(module).__file__ or "", source / f"{module}.py")
    (source / "latin.py").write_bytes("# naïve\n".encode("latin-1"))
    (source / "empty.py").write_bytes(b"")
    options = [part for name in SPECIALS for part in ("--special", name)]
    done = seqflow(
        "train-tokenizer", "source", "--vocab-size", 600, "--errors", "replace", *options,
        "--output", "bpe.json", "--json", folder=folder,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert (report["texts"], report["vocabulary"]) == (6, 600)
    return folder


@pytest.fixture(scope="module")
def tokenizer(home: Path) -> Any:
    return tokenizers.Tokenizer.from_file(str(home / "bpe.json"))


def rows_of(output: Path) -> dict[str, list[Any]]:
    return pq.read_table(sorted(output.glob("*.parquet"))).to_pydict()


def pieces_of(rows: dict[str, list[Any]], column: str) -> list[list[int]]:
    """The pieces in the packed rows, in the order of the packed rows."""
    found = []
    for packed, lengths in zip(rows[column], rows["piece_lengths"], strict=True):
        stops = [sum(lengths[: i + 1]) for i in range(len(lengths))]
        found += [packed[stop - size : stop] for stop, size in zip(stops, lengths, strict=True)]
    return found


def test_source_code_is_packed_and_decodes_to_itself(home: Path, tokenizer: Any) -> None:
    source = sorted((home / "source").glob("*.py"))
    job = Job.read(home / "examples" / "pack_bpe.toml", {"source.paths": [str(home / "source")]})
    report = run(job)
    texts = [path.read_text(errors="replace") for path in source]
    plain = tokenizer.encode_batch_fast(texts)
    assert report.tokens == sum(len(encoding) for encoding in plain) + len(texts)

    rows = rows_of(home / "out" / "bpe")
    keys = [
        (window, source)
        for window, sources in zip(rows["window"], rows["sources"], strict=True)
        for source in sources
    ]
    pieces = sorted(zip(keys, pieces_of(rows, "tokens"), strict=True))
    stream = [token for _, piece in pieces for token in piece]
    assert stream == [token for encoding in plain for token in (*encoding.ids, 0)]
    assert tokenizer.decode(stream, skip_special_tokens=False) == "".join(f"{text}<eos>" for text in texts)


@pytest.mark.slow
def test_conversations_become_tokens_and_labels(home: Path, tokenizer: Any) -> None:
    make = [sys.executable, "examples/make_conversations.py", "conversations.parquet", "source"]
    assert "conversations in conversations.parquet" in subprocess.check_output(make, cwd=home, text=True)
    conversations = pq.read_table(home / "conversations.parquet")["messages"].to_pylist()
    assert len(conversations) >= 30

    run(Job.read(home / "examples" / "sft.toml"))
    rows = rows_of(home / "out" / "sft")
    expected: Counter[Any] = Counter()
    for turns in conversations:
        tokens, labels = [], []
        for turn in turns:
            start = tokenizer.encode(f"<|im_start|>{turn['role']}\n").ids
            text = [*tokenizer.encode(turn["content"]).ids, *tokenizer.encode("<|im_end|>\n").ids]
            tokens += start + text
            labels += [-100] * len(start) + (text if turn["role"] == "assistant" else [-100] * len(text))
        expected[(*tokens, 0), (*labels, 0)] += 1
    found = zip(pieces_of(rows, "tokens"), pieces_of(rows, "labels"), strict=True)
    assert Counter((tuple(tokens), tuple(labels)) for tokens, labels in found) == expected
    for labels, segments in zip(rows["labels"], rows["segment_ids"], strict=True):
        assert all(label == -100 for label, segment in zip(labels, segments, strict=True) if segment == 0)


def test_a_job_without_its_tokenizer_is_refused(home: Path) -> None:
    for command in ("check", "run"):
        done = seqflow(
            command, "examples/pack_bpe.toml", "--input", "source", "--set", "constants.tokenizer=no.json",
            folder=home,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "seqflow: --set constants.tokenizer: there is no file 'no.json'\n"
