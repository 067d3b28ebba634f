"""The main job packs files, and they can be put together again."""

import sysconfig
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from seqflow.job import Job, run

EXAMPLE = Path(__file__).parents[2] / "examples" / "pack_source.toml"


def files_of(output: Path, end: int = 256) -> list[bytes]:
    """The files that were packed: pieces sorted by window and source, put together, cut at the end token."""
    pieces: list[tuple[int, int, np.ndarray]] = []
    for path in sorted(output.glob("*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(batch_size=1024):
            tokens = batch.column("tokens").flatten().to_numpy().reshape(batch.num_rows, -1)
            for row, window, numbers, lengths in zip(
                tokens,
                batch.column("window").to_pylist(),
                batch.column("sources").to_pylist(),
                batch.column("piece_lengths").to_pylist(),
                strict=True,
            ):
                starts = np.cumsum([0, *lengths])
                pieces += [
                    (window, number, row[a:b].copy())
                    for number, a, b in zip(numbers, starts[:-1], starts[1:], strict=True)
                ]
    pieces.sort(key=lambda piece: piece[:2])
    counts = np.bincount([window for window, _, _ in pieces])
    assert [number for _, number, _ in pieces] == [number for count in counts for number in range(count)]
    stream = np.concatenate([piece for _, _, piece in pieces])
    assert stream[-1] == end
    stops = np.flatnonzero(stream == end)
    starts = np.concatenate(([0], stops[:-1] + 1))
    return [stream[a:b].astype(np.uint8).tobytes() for a, b in zip(starts, stops, strict=True)]


def test_the_example_packs_a_folder_and_every_byte_of_it_comes_back(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    source = tmp_path / "source"
    source.mkdir()
    for i, size in enumerate([0, 1, 2047, 2048, 2049, 10_000, *random.integers(0, 6000, 40)]):
        (source / f"{i:02}.py").write_bytes(random.integers(0, 256, size, np.uint8).tobytes())
    job = Job.read(EXAMPLE, {"source.paths": [str(source)], "output.path": str(tmp_path / "out")})
    report = run(job)
    expected = [path.read_bytes() for path in sorted(source.iterdir())]
    assert report.tokens == sum(map(len, expected)) + len(expected)
    assert files_of(tmp_path / "out") == expected


def test_files_of_several_windows_come_back_too(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for i in range(30):
        (source / f"{i:02}.py").write_bytes(bytes([i]) * 1500 * (i % 4))
    settings = {"source.paths": [str(source)], "source.text.batch_bytes": 5000, "order.window": 9000}
    run(Job.read(EXAMPLE, {**settings, "output.path": str(tmp_path / "out")}))
    windows = pq.read_table(tmp_path / "out")["window"].to_pylist()
    assert max(windows) > 2
    assert files_of(tmp_path / "out") == [path.read_bytes() for path in sorted(source.iterdir())]


def test_packed_rows_say_which_piece_each_token_belongs_to(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x" * 3000)
    (tmp_path / "b.py").write_bytes(b"y" * 500)
    job = Job.read(EXAMPLE, {"source.paths": [str(tmp_path / "*.py")], "output.path": str(tmp_path / "out")})
    run(job)
    table = pq.read_table(tmp_path / "out" / "part-00000.parquet")
    assert table.column_names == [
        "tokens", "segment_ids", "position_ids", "window", "sources", "piece_lengths",
    ]  # fmt: skip
    lengths = table["piece_lengths"].to_pylist()
    assert table["sources"].to_pylist() == [[0], [1, 2]]
    assert lengths == [[2048], [953, 501]]
    assert table["segment_ids"].to_pylist()[1] == [1] * 953 + [2] * 501 + [0] * (2048 - 953 - 501)
    assert table["position_ids"].to_pylist()[1][:1454] == [*range(953), *range(501)]


@pytest.mark.slow
def test_the_example_packs_the_standard_library_nearly_without_padding(tmp_path: Path) -> None:
    report = run(Job.read(EXAMPLE, {"output.path": str(tmp_path / "out")}))
    root = Path(sysconfig.get_paths()["stdlib"])
    left_out = ("site-packages", "__pycache__", ".")
    expected = sorted(
        str(path)
        for path in root.rglob("*.py")
        if not any(part.startswith(left_out) for part in path.relative_to(root).parts)
    )
    assert report.fill is not None
    assert report.fill >= 0.9995
    assert report.rows_read == len(expected)
    assert files_of(tmp_path / "out") == [Path(path).read_bytes() for path in expected]
