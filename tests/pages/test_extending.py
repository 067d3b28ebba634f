"""The sources of docs/extending.md and examples/ read what the writers of these formats have written."""

import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pages import code_of

import seqflow as sf
from seqflow.errors import ProviderError
from seqflow.job import Job, run

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    found = {
        "my_sources": code_of("docs/extending.md", "# my_sources.py"),
        **{name: (EXAMPLES / f"{name}.py").read_text() for name in ("mds_source", "tfrecord_source")},
    }
    for name, code in found.items():
        (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in found:
        sys.modules.pop(name, None)


ROWS = [{"id": n, "text": "é" * (n % 5), "data": bytes(range(n % 7)), "x": n / 2} for n in range(500)]
ENCODINGS = {"data": "bytes", "id": "int", "text": "str", "x": "float32"}


def write_mds(folder: Path) -> None:
    """Shards as the format's description says."""
    shards = []
    for number in range(5):
        samples = []
        for row in ROWS[number * 100 : number * 100 + 100]:
            parts: list[Any] = [
                row["data"],
                struct.pack("<q", row["id"]),
                row["text"].encode(),
                struct.pack("<f", row["x"]),
            ]  # type: ignore[attr-defined]
            samples.append(struct.pack("<II", len(parts[0]), len(parts[2])) + b"".join(parts))
        config = json.dumps({"anything": 1}).encode()
        begin = 4 + 4 * (len(samples) + 1) + len(config)
        offsets = begin + np.append(0, np.cumsum([len(sample) for sample in samples]))
        content = (
            struct.pack("<I", len(samples)) + offsets.astype(np.uint32).tobytes() + config + b"".join(samples)
        )
        name = f"shard.{number:05}.mds"
        (folder / name).write_bytes(content)
        shards.append({
            "version": 2, "format": "mds", "samples": 100, "raw_data": {"basename": name, "bytes": len(content)},
            "column_names": list(ENCODINGS), "column_encodings": list(ENCODINGS.values()), "column_sizes": [None, 8, None, 4],
        })  # fmt: skip
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": shards}))


def write_with_its_package(folder: Path) -> None:
    mds = pytest.importorskip("streaming.base.format.mds", exc_type=ImportError)
    with mds.MDSWriter(out=str(folder), columns=ENCODINGS, size_limit=4000) as writer:
        for row in ROWS:
            writer.write({**row, "x": np.float32(row["x"])})


@pytest.mark.parametrize("write", [write_mds, write_with_its_package])
def test_shards_of_mds_are_read(tmp_path: Path, write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "shards"
    folder.mkdir()
    write(folder)
    provider = sf.open(folder, kind="mds_source:open_mds")
    rows = [row for block in provider.blocks() for row in provider.read(block).to_pylist()]
    assert rows == ROWS
    assert sf.open(folder, kind="mds_source:open_mds", columns=["x"], where="text == 'éé'")["x"].tolist() == [  # type: ignore[union-attr]
        row["x"] for row in ROWS if row["text"] == "éé"
    ]
    monkeypatch.chdir(tmp_path)
    loader = sf.Loader("shards", kind="mds_source:open_mds", batch=256, shuffle=True)
    for _ in range(2):
        assert sorted(n for batch in loader for n in batch["id"].tolist()) == list(range(500))


def varint(value: int) -> bytes:
    value %= 1 << 64
    found = []
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def message(*fields: tuple[int, bytes]) -> bytes:
    return b"".join(varint(number << 3 | 2) + varint(len(value)) + value for number, value in fields)


def example(row: dict[str, Any]) -> bytes:
    """A tf.train.Example with packed numbers."""
    features = {
        "id": message((3, message((1, varint(row["id"]))))),
        "text": message((1, message((1, row["text"].encode())))),
        "x": message((2, message((1, struct.pack("<f", row["x"]))))),
        "ids": message((3, message((1, b"".join(varint(-n) for n in range(row["id"] % 4)))))),
    }
    return message(
        (
            1,
            b"".join(
                message((1, message((1, name.encode()), (2, value)))) for name, value in features.items()
            ),
        )
    )


FEATURES = {"id": "int64", "text": "bytes", "x": "float", "ids": "int64", "missing": "float"}


def test_records_of_tensorflow_are_read_by_a_job(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    records = map(example, ROWS)
    path.write_bytes(b"".join(struct.pack("<Q", len(one)) + b"crcc" + one + b"crcc" for one in records))
    provider = sf.open(str(path), kind="tfrecord_source:open_tfrecord", options={"features": FEATURES})
    assert len(provider) == len(ROWS)
    rows = [row for block in provider.blocks() for row in provider.read(block).to_pylist()]
    assert rows == [
        {
            "id": [n],
            "text": [row["text"].encode()],
            "x": [row["x"]],
            "ids": [-k for k in range(n % 4)],
            "missing": [],
        }  # type: ignore[attr-defined]
        for n, row in enumerate(ROWS)
    ]
    job = {
        "source": {"kind": "tfrecord_source:open_tfrecord", "paths": "a.tfrecord", "options": {"features": {"id": "int64"}}},
        "output": {"path": str(tmp_path / "out")},
    }  # fmt: skip
    assert run(Job.from_dict(job, tmp_path)).rows == len(ROWS)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ProviderError, match=r"tfrecord_source:open_tfrecord has failed: .*a.tfrecord is cut"):
        sf.open(str(path), kind="tfrecord_source:open_tfrecord", options={"features": FEATURES})


def test_a_query_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("duckdb")
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(
        pa.table(
            {"id": [2, 1, 0], "day": ["2024-06-02", "2024-06-01", "2024-05-30"], "tokens": [[1], [2, 3], []]}
        ),
        tmp_path / "a.parquet",
    )
    provider = sf.open(str(tmp_path / "*.parquet"), kind="my_sources:recent", options={"since": "2024-06-01"})
    assert provider["id"].tolist() == [1, 2]  # type: ignore[union-attr]
    (tmp_path / "events").mkdir()
    (tmp_path / "a.parquet").rename(tmp_path / "events" / "a.parquet")
    monkeypatch.chdir(tmp_path)
    scope: dict[str, Any] = {}
    exec(code_of("docs/extending.md", 'import seqflow as sf\n\nloader = sf.Loader("events'), scope)
    (batch,) = scope["loader"]
    assert batch["id"].tolist() == [1, 2]


PATCH = Path(__file__).parents[2] / ".ci" / "add_kernel.patch"


@pytest.mark.skipif(not PATCH.exists(), reason="a source distribution has no .ci")
def test_the_kernel_of_the_page_is_the_one_that_ci_adds() -> None:
    patch = PATCH.read_text(encoding="utf-8")
    assert code_of("docs/extending.md", "+@kernel") in patch
    assert code_of("docs/extending.md", "+template <class T>") in patch
    binding = code_of("docs/extending.md", "+nb::object").splitlines()
    assert set(binding) <= set(patch.splitlines())
