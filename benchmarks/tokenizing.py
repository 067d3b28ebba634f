"""Tokenising and packing the standard library, beside the package tokenizers alone and Hugging Face datasets.

    python benchmarks/tokenizing.py [NAME …] [--rounds 3]

Duplicates and masking (training_text.py) are measured with them. The contenders here are fresh processes, in turn,
all with the same BPE of 8,192 ids, learned first from the same text:

    encode_batch_fast    `tokenizers` on a list of Python strings; its Encoding objects are thrown away
    tokenize             `ops.tokenize` from flat bytes to flat ids
    seqflow run          examples/pack_bpe.toml without output: files, tokens, packed rows of 2,048
    datasets.map         the same texts from Arrow, tokenised and then grouped into rows of 2,048 by two batched maps,
                         as Hugging Face's own script for language models does
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from comparison import Row, main, optional
from training_text import exact_duplicates, masking, near_duplicates

CAPACITY, MEGABYTES = 2048, 10
EXAMPLE = Path(__file__).parents[1] / "examples" / "pack_bpe.toml"


def timed(function) -> dict[str, float]:
    """Seconds of a call, and the tokens that it gives."""
    start = time.perf_counter()
    tokens = function()
    return {"seconds": time.perf_counter() - start, "tokens": tokens}


def encode_batch_fast(folder: Path) -> dict[str, float]:
    import tokenizers

    encoder = tokenizers.Tokenizer.from_file(str(folder / "bpe.json"))
    texts = texts_of(folder).to_pylist()
    return timed(lambda: sum(map(len, encoder.encode_batch_fast(texts))))


def tokenize(folder: Path) -> dict[str, float]:
    from seqflow import from_arrow, ops

    values, lengths = from_arrow(texts_of(folder)).unpack()
    ops.tokenize(values[: lengths[0]], lengths[:1], tokenizer=folder / "bpe.json")  # reads the file
    return timed(lambda: len(ops.tokenize(values, lengths, tokenizer=folder / "bpe.json").values))


def seqflow_run(folder: Path) -> dict[str, float]:
    from seqflow.job import Job, run

    job = Job.read(EXAMPLE, {
        "source.paths": [str(folder / "source")], "constants.tokenizer": str(folder / "bpe.json"),
        "output.kind": "none",
    })  # fmt: skip
    return timed(lambda: run(job).tokens)


def datasets_map(folder: Path) -> dict[str, float]:
    import datasets
    import tokenizers

    datasets.disable_progress_bars()
    encoder = tokenizers.Tokenizer.from_file(str(folder / "bpe.json"))
    end = encoder.token_to_id("<eos>")
    texts = datasets.Dataset(pa.table({"text": texts_of(folder)}))

    def encoded(batch):
        return {"tokens": [[*one.ids, end] for one in encoder.encode_batch_fast(batch["text"])]}

    def grouped(batch):
        stream = list(chain.from_iterable(batch["tokens"]))
        whole = len(stream) // CAPACITY * CAPACITY
        return {"tokens": [stream[i : i + CAPACITY] for i in range(0, whole, CAPACITY)]}

    def work() -> int:
        tokens = texts.map(encoded, batched=True, remove_columns=["text"], load_from_cache_file=False)
        rows = tokens.map(grouped, batched=True, load_from_cache_file=False)
        return len(rows) * CAPACITY

    return timed(work)


def texts_of(folder: Path) -> pa.Array:
    with pa.memory_map(str(folder / "texts.arrow")) as file:
        return pa.ipc.open_file(file).read_all()["text"].combine_chunks()


def prepare(folder: Path, megabytes: float) -> None:
    """Source files of about so many megabytes in a folder and in one Arrow file, and the tokenizer."""
    import sysconfig

    (folder / "source").mkdir()
    texts: list[str] = []
    size = 0
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if "site-packages" in path.parts or size > megabytes * 1e6:
            continue
        text = path.read_bytes().decode(errors="replace")
        (folder / "source" / f"{len(texts):05}.py").write_text(text, encoding="utf-8")
        texts.append(text)
        size += len(text)
    table = pa.table({"text": pa.array(texts, pa.large_string())})
    with pa.ipc.new_file(str(folder / "texts.arrow"), table.schema) as writer:
        writer.write_table(table)
    train = [sys.executable, "-m", "seqflow", "train-tokenizer", str(folder / "texts.arrow")]
    options = ["--column", "text", "--vocab-size", "8192", "--special", "<eos>", "--quiet"]
    subprocess.run([*train, *options, "--output", str(folder / "bpe.json")], check=True)


def of(way: str, folder: Path) -> float:
    """Milliseconds of a fresh process, since each distinct piece of a text is encoded once."""
    command = [sys.executable, __file__, way, str(folder)]
    environment = {**os.environ, "HF_HOME": str(folder / "cache")}
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment).stdout
    found = json.loads(output)
    TOKENS[way] = found["tokens"]
    return 1e3 * found["seconds"]


TOKENS: dict[str, int] = {}


def texts() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, MEGABYTES)

        def agree(*_: Any) -> None:
            assert TOKENS["tokenize"] == TOKENS["encode_batch_fast"]

        yield Row(
            f"tokenize {MEGABYTES} MB", partial(of, "tokenize", folder),
            {"encode_batch_fast": partial(of, "encode_batch_fast", folder)}, {"encode_batch_fast": 0.5},
            rounds=3, timed=True, agree=agree,
        )  # fmt: skip
        if optional("datasets"):
            yield Row(
                f"tokenize and pack {MEGABYTES} MB", partial(of, "seqflow_run", folder),
                {"datasets.map": partial(of, "datasets_map", folder)}, {"datasets.map": 0.5},
                rounds=3, timed=True, agree=lambda *_: None,  # the peer drops the last tokens
            )  # fmt: skip


FAMILIES = [texts, near_duplicates, exact_duplicates, masking]

if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] in ("encode_batch_fast", "tokenize", "seqflow_run", "datasets_map"):
        print(json.dumps(globals()[sys.argv[1]](Path(sys.argv[2]))))
    else:
        main(FAMILIES)
