"""Planted bottlenecks: is the verdict's name right, and do its predictions hold?

    python benchmarks/verdict.py [NAME ...]

Each plant is a loader with one bottleneck, most of them sleeps, so that other work of the machine moves them little.
The verdict must name it. For plants with a remedy, the time of a step that was predicted before is compared with that
of a run with the remedy: right is less than 15 % off.
"""

import gzip
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import hashlib
import http.server
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import seqflow as sf
from seqflow.loader.verdicts import Verdict, _Judged
from seqflow.providers import Block

ROWS = 250
"""Rows of a batch; a block has two batches."""


class Blocks:
    """Blocks of 500 rows; reading one takes a sleep, or computing that releases the lock."""

    schema = pa.schema([("id", pa.int64()), ("x", pa.float64())])
    version = "1"

    def __init__(
        self, blocks: int = 24, sleep: float = 0.0, decode: float = 0.0, rows: int = 2 * ROWS
    ) -> None:
        self.count, self.sleep, self.decode, self.rows = blocks, sleep, decode, rows

    def blocks(self) -> list[Block]:
        return [Block("blocks", index, self.rows, self.rows * 16) for index in range(self.count)]

    def read(self, block: Block, columns: Sequence[str]) -> Any:
        time.sleep(self.sleep)
        compute(self.decode)
        ids = np.arange(self.rows) + block.index * self.rows
        return {"id": ids, "x": ids * 0.5}


def compute(seconds: float) -> None:
    """Use the processor, without Python's lock for most of the time."""
    end, data = time.thread_time() + seconds, b"x" * (1 << 20)
    while time.thread_time() < end:
        hashlib.sha256(data).digest()


def spin(seconds: float) -> None:
    """Use the processor, and hold Python's lock."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


@dataclass(frozen=True)
class Plant:
    """A bottleneck, the names of it that are right, and the remedy with the change that predicts it."""

    names: tuple[str, ...]
    make: Callable[[Path], Any]
    """Returns the loader, in a folder for its files."""
    own: Callable[[], None]
    """Work of the consumer."""
    remedy: Callable[[Path], Any] | None = None
    own_after: Callable[[], None] | None = None
    change: dict[str, Any] = field(default_factory=dict)
    steps: int | None = None


def sleep(seconds: float) -> Callable[[], None]:
    return lambda: time.sleep(seconds)


def loader(source: Any, **options: Any) -> sf.Loader:
    """A loader whose windows have one block, unless it is told otherwise."""
    return sf.Loader(source, **{"batch": ROWS, "window": 2 * ROWS * 16, "threads": 1, **options})


def large(**options: Any) -> sf.Loader:
    """A loader of batches of 500 rows, four in a window."""
    return loader(Blocks(rows=8 * ROWS, blocks=8), window=1 << 17, batch=2 * ROWS, **options)


def waiting(record: Any) -> Any:
    time.sleep(0.06)
    return dict(record.items())


def spinning(record: Any) -> Any:
    spin(0.04)
    return dict(record.items())


def slow_function(record: Any) -> Any:
    time.sleep(0.03)
    return dict(record.items())


def decoding_images(record: Any) -> Any:
    """Decode images of 512 × 512 pixels, as a function that Python users write."""
    import io

    from PIL import Image

    for png in PNGS:
        Image.open(io.BytesIO(png)).convert("RGB").resize((64, 64))
    return dict(record.items())


PNGS: list[bytes] = []


def images(folder: Path) -> sf.Loader:
    import io

    from PIL import Image

    pixels = np.random.default_rng(0).integers(0, 255, (512, 512, 3), np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    PNGS[:] = [out.getvalue()] * 6
    return loader(Blocks(), prepare=decoding_images, version="1")


def sines(count: int) -> str:
    steps = "\n".join(f"x{i} = sin({'x' if i == 0 else f'x{i - 1}'})" for i in range(count))
    return f"{steps}\nreturn id, x{count - 1}"


def tiny_groups(folder: Path, rows: int = 50) -> sf.Loader:
    table = pa.table({"id": np.arange(12000), **{f"c{i}": np.arange(12000.0) for i in range(40)}})
    if not (folder / "tiny.parquet").exists():
        pq.write_table(table, folder / "tiny.parquet", row_group_size=rows)
    return sf.Loader(folder / "tiny.parquet", batch=25, window="256 KiB", threads=1)


def lists(rows: int = 600_000) -> Any:
    lengths = np.random.default_rng(0).integers(1, 9, rows)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype("i4")
    tokens = pa.ListArray.from_arrays(offsets, np.arange(offsets[-1]).astype("i4"))
    return pa.table({"tokens": tokens})


def gzip_lines(folder: Path) -> sf.Loader:
    text = "".join(f'{{"id": {i}, "text": "{"word " * 20}{i}"}}\n' for i in range(4000)).encode()
    for number in range(24):
        (folder / f"{number}.jsonl.gz").write_bytes(gzip.compress(text, 9))
    return sf.Loader(sorted(map(str, folder.glob("*.jsonl.gz"))), batch=1000, window="512 KiB", threads=1)


class Slow(http.server.SimpleHTTPRequestHandler):
    """A server whose answers take 60 ms: a proxy far away."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        pass

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, *, body: bool) -> None:
        time.sleep(0.06)
        data = Path(self.translate_path(self.path)).read_bytes()
        span = self.headers.get("Range")
        code, part, of = 200, data, ""
        if span:
            first, last = span.removeprefix("bytes=").split("-")
            start = int(first) if first else len(data) - int(last)
            stop = int(last) + 1 if first and last else len(data)
            code, part, of = 206, data[start:stop], f"bytes {start}-{min(stop, len(data)) - 1}/{len(data)}"
        self.send_response(code)
        self.send_header("Content-Length", str(len(part)))
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.send_header("ETag", '"1"')
        if of:
            self.send_header("Content-Range", of)
        self.end_headers()
        if body:
            self.wfile.write(part)


def far_store(folder: Path) -> sf.Loader:
    paths = []
    for number in range(24):
        ids = np.arange(500) + 500 * number
        pq.write_table(pa.table({"id": ids, "x": ids * 0.5}), folder / f"far-{number}.parquet")
        paths.append(f"far-{number}.parquet")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *of: Slow(*of, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_address[1]}"
    return sf.Loader(
        [f"{address}/{path}" for path in paths], batch=ROWS, window=8000, threads=1,
        storage_options={"allow_http": "true"},
    )  # fmt: skip


class Throttled(Blocks):
    """A disk of 4 MB/s that threads share: they wait for it in turn."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def __getstate__(self) -> Any:
        return {}

    def read(self, block: Block, columns: Sequence[str]) -> Any:
        with self.lock:
            time.sleep(0.06)
        return super().read(block, columns)


def giant(folder: Path, window: int = 1 << 30) -> sf.Loader:
    return sf.Loader(Blocks(48, sleep=0.03), batch=ROWS, window=window, memory=1 << 31, threads=1)


def numpy_threads() -> None:
    """A consumer that computes in NumPy, in threads of its own."""
    threads = [threading.Thread(target=compute, args=(0.02,)) for _ in range(2)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


class Both:
    """Two loaders in one process, of which the one that is watched reads slowly."""

    def __init__(self) -> None:
        self.slow, self.fast = loader(Blocks(sleep=0.06)), loader(Blocks())

    def __iter__(self) -> Iterator[Any]:
        for batch, _ in zip(self.slow, self.fast, strict=True):
            yield batch

    def verdict(self) -> Verdict:
        return self.slow.verdict()


def mixed(folder: Path, **options: Any) -> sf.Mix:
    sources = {"fast": loader(Blocks(), **options), "slow": loader(Blocks(sleep=0.09), **options)}
    return sf.Mix(sources, weights={"fast": 1, "slow": 1})


ROOM = 2 * ROWS * 16
PLANTS = {
    "slow store": Plant(
        ("store",), lambda _: loader(Blocks(sleep=0.12)), sleep(0.01),
        lambda _: loader(Blocks(sleep=0.12), threads=4, memory=4 * ROOM), change={"threads": 4},
    ),
    "slow store, free": Plant(
        ("store",), lambda _: loader(Blocks(sleep=0.12)), sleep(0.03),
        lambda _: loader(Blocks()), change={"without": "store"},
    ),
    "slow decoding": Plant(
        ("decode",), lambda _: loader(Blocks(decode=0.05)), sleep(0.005),
        lambda _: loader(Blocks()), change={"without": "decode"},
    ),
    "prepare waits for a service": Plant(
        ("prepare",), lambda _: loader(Blocks(), prepare=waiting, version="1"), sleep(0.005),
        lambda _: loader(Blocks(), prepare=waiting, version="1", threads=3, memory=6 * ROOM),
        change={"threads": 3, "room": 6},
    ),
    "prepare holds the lock": Plant(
        ("lock",), lambda _: loader(Blocks(), prepare=spinning, version="1"), sleep(0.005),
    ),
    "prepare holds the lock, three threads": Plant(
        ("lock",), lambda _: loader(Blocks(), prepare=spinning, version="1", threads=3), sleep(0.005),
    ),
    "Python function net": Plant(
        ("function",), lambda _: loader(Blocks(), net=slow_function, version="1"), sleep(0.01),
        lambda _: loader(Blocks()), change={"without": "function"},
    ),
    "slow consumer": Plant(
        ("consumer",), lambda _: loader(Blocks()), sleep(0.04),
        lambda _: loader(Blocks(), threads=4), change={"threads": 4},
    ),
    "slow consumer, little memory": Plant(
        ("consumer",), lambda _: loader(Blocks(sleep=0.002), memory=ROOM, threads=2), sleep(0.08),
    ),
    "small row groups": Plant(("decode",), lambda folder: tiny_groups(folder, 5), sleep(0.0002)),
    "memory of one window": Plant(
        ("memory",), lambda _: loader(Blocks(sleep=0.12), threads=3, memory=ROOM), sleep(0.03),
        lambda _: loader(Blocks(sleep=0.12), threads=3, memory=8 * ROOM), change={"room": 8},
    ),
    "memory of two windows": Plant(
        ("memory",), lambda _: loader(Blocks(sleep=0.12), threads=3, memory=2 * ROOM), sleep(0.03),
        lambda _: loader(Blocks(sleep=0.12), threads=3, memory=8 * ROOM), change={"room": 8},
    ),
    "no threads": Plant(
        ("threads",), lambda _: loader(Blocks(sleep=0.12), threads=0, memory=8 * ROOM), sleep(0.03),
        lambda _: loader(Blocks(sleep=0.12), threads=1, memory=8 * ROOM), change={"threads": 1},
    ),
    "no threads, to three": Plant(
        ("threads",), lambda _: loader(Blocks(sleep=0.12), threads=0, memory=8 * ROOM), sleep(0.03),
        lambda _: loader(Blocks(sleep=0.12), threads=3, memory=8 * ROOM), change={"threads": 3},
    ),
    "slow net": Plant(
        ("net",), lambda _: large(net=sines(400)), sleep(0.002), lambda _: large(),
        change={"without": "net"},
    ),
    "consumer in Python": Plant(("consumer",), lambda _: loader(Blocks()), lambda: spin(0.02)),
    "consumer in threads of NumPy": Plant(("consumer",), lambda _: loader(Blocks()), numpy_threads),
    "giant first window": Plant(("first window",), giant, sleep(0.02)),
    "images decoded by a function": Plant(("prepare", "lock"), images, sleep(0.005)),
    "throttled disk": Plant(
        ("store",), lambda _: loader(Throttled()), sleep(0.005),
        lambda _: loader(Blocks()), change={"without": "store"},
    ),
    "store behind a proxy": Plant(("store",), far_store, sleep(0.005)),
    "two loaders in one process": Plant(("store",), lambda _: Both(), sleep(0.005)),
    "lines in .gz": Plant(("decode",), gzip_lines, sleep(0.0)),
    "packing with best fit over a long window": Plant(
        ("plan", "first window"),
        lambda _: sf.Loader(
            lists(), batch=sf.Packed(4096, ["tokens"], rows=2), batch_bytes=1 << 18, window="2 MiB",
            shuffle=True, threads=1,
        ),
        sleep(0.0002),
    ),
    "a mix with one slow source": Plant(
        ("store",), mixed, sleep(0.01), lambda folder: mixed(folder, threads=4, memory=8 * ROOM),
        change={"threads": 4, "room": 16},
    ),
}  # fmt: skip


def watched(batches: Any, own: Callable[[], None]) -> dict[str, Any]:
    """The verdict of an epoch against a consumer."""
    for _ in batches:
        own()
    return dict(batches.verdict().to_json())


def main(names: list[str]) -> None:
    right, gains = [], []
    for name, plant in PLANTS.items():
        if names and not any(each in name for each in names):
            continue
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            found = plant.make(folder)
            facts = watched(found, plant.own)
            is_right = facts["limit"] in plant.names
            right.append(is_right)
            line = f"{name:42} {facts['limit'] or facts!s:13} {'' if is_right else 'WRONG':6}"
            if facts["limit"] is not None:
                step, model = facts["step_seconds"], facts["predicted_now_seconds"]
                line += f" step {step * 1e3:6.1f} ms, model {model * 1e3:6.1f}"
            if plant.remedy is not None:
                now = facts["predicted_now_seconds"]
                predicted = facts["step_seconds"] * predict(found, plant.change) / now
                real = watched(plant.remedy(folder), plant.own_after or plant.own)["step_seconds"]
                gains.append(abs(predicted / real - 1) < 0.15)
                line += f" -> {predicted * 1e3:6.1f}, real {real * 1e3:6.1f} ({predicted / real - 1:+.0%})"
            print(line, flush=True)
            if "-v" in sys.argv:
                print(found.verdict())
    print(f"{sum(right)} of {len(right)} named right, {sum(gains)} of {len(gains)} predictions within 15 %")


def predict(loader: Any, change: dict[str, Any]) -> float:
    """The predicted seconds of a step after a change."""
    judged = _Judged(loader._stats.timings, loader._settings(), None)
    return judged.predict(**change)


if __name__ == "__main__":
    main([one for one in sys.argv[1:] if one != "-v"])
