"""Compressed files of several streams, some of them empty."""

import bz2
import gzip

import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.errors import ProviderError


def zstd(content):
    return (
        bytes(pa.compress(content, codec="zstd", asbytes=True))
        if content
        else b"\x28\xb5\x2f\xfd\x20\x00\x01\x00\x00"
    )


each_compression = pytest.mark.parametrize(
    ("suffix", "compress"),
    [("gz", gzip.compress), ("bz2", bz2.compress), ("zst", zstd)],
    ids=["gz", "bz2", "zst"],
)
LINES = b"x\n" + b"".join(b"%d\n" % row for row in range(5000))


def rows(path, **options):
    batches = sf.Loader(path, format=sf.Csv(batch_bytes=4096), batch=1000, threads=0, **options)
    return [value for batch in batches for value in batch["x"].tolist()]


@each_compression
@pytest.mark.parametrize(
    "cuts", [[0], [0, 0], [100, 100], [100, 100, 100, 7000], [7000, 7000, 7001], [30_000]], ids=str
)
def test_streams_may_be_empty(tmp_path, suffix, compress, cuts):
    """A cut that comes twice makes a stream of nothing."""
    stops = [min(cut, len(LINES)) for cut in cuts]
    pieces = [LINES[start:stop] for start, stop in zip([0, *stops], [*stops, None], strict=True)]
    assert b"".join(pieces) == LINES
    path = tmp_path / f"a.csv.{suffix}"
    path.write_bytes(b"".join(map(compress, pieces)))
    assert rows(path) == [*range(5000)]
    assert sorted(rows(path, shuffle=True)) == [*range(5000)]


@each_compression
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-3],
        lambda data: data + b"rubbish",
        lambda data: data[:9] + b"\xff\xff\xff" + data[12:],
    ],
    ids=["cut", "rubbish", "changed"],
)
def test_damage_after_an_empty_stream_is_an_error(tmp_path, suffix, compress, damage):
    path = tmp_path / f"a.csv.{suffix}"
    path.write_bytes(compress(LINES) + compress(b"") + damage(compress(b"7\n" * 3000)))
    with pytest.raises(ProviderError, match="can't be read"):
        rows(path)
