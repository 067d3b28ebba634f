"""Tokenising and packing the standard library, beside the package tokenizers alone and Hugging Face datasets.

    python benchmarks/tokenizing.py [--times 3] [--megabytes 30]

One process each, in turn, all with the same BPE of 8,192 ids, learned first from the same text. Prints seconds (the
least of all times), CPU seconds and the ratio to `encode_batch_fast`:

    encode_batch_fast    `tokenizers` on a list of Python strings; its Encoding objects are thrown away
    tokenize             `ops.tokenize` from flat bytes to flat ids
    seqflow run          examples/pack_bpe.toml without output: files, tokens, packed rows of 2,048
    datasets.map         the same texts from Arrow, tokenised and then grouped into rows of 2,048 by two batched maps,
                         as Hugging Face's own script for language models does; where datasets is installed
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from itertools import chain
from pathlib import Path

import pyarrow as pa

CAPACITY = 2048
EXAMPLE = Path(__file__).parents[1] / "examples" / "pack_bpe.toml"
WAYS = ("encode_batch_fast", "tokenize", "seqflow run", "datasets.map")


def timed(function) -> dict[str, float]:
    """Seconds and CPU seconds of a call, and the tokens that it gives."""
    cpu, start = time.process_time(), time.perf_counter()
    tokens = function()
    return {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "tokens": tokens,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--megabytes", type=float, default=30)
    parser.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        print(json.dumps(globals()[options.way.replace(" ", "_").replace(".", "_")](options.folder)))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder, options.megabytes)
        ways = [way for way in WAYS if way != "datasets.map" or _has_datasets()]
        found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
        for _ in range(options.times):
            for way in ways:
                command = [sys.executable, __file__, "--way", way, "--folder", name]
                environment = {**os.environ, "HF_HOME": str(folder / "cache")}
                output = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment).stdout
                found[way].append(json.loads(output))
        report({way: {key: min(run[key] for run in runs) for key in runs[0]} for way, runs in found.items()})


def _has_datasets() -> bool:
    try:
        import datasets
    except ImportError:
        return False
    return bool(datasets)


def report(found: dict[str, dict[str, float]]) -> None:
    base = found["encode_batch_fast"]["seconds"]
    for way, run in found.items():
        print(
            f"{way:18} {run['seconds']:7.2f} s  {run['cpu']:7.2f} s CPU  {run['seconds'] / base:5.2f}"
            f"  {run['tokens']:12,.0f} tokens  {run['peak']:6.0f} MB"
        )
    print(f"encode_batch_fast / tokenize    {base / found['tokenize']['seconds']:.2f}")
    if "datasets.map" in found:
        ratio = found["seqflow run"]["seconds"] / found["datasets.map"]["seconds"]
        print(f"seqflow run / datasets.map      {ratio:.2f}")


if __name__ == "__main__":
    main()
