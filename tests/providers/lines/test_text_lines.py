"""Files with a row a line: blocks of bytes, compressed files, damaged ones."""

import bz2
import gzip
import random
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.errors import ProviderError, SeqflowError
from seqflow.record import convert

LINES = b"1 3:0.5 7:1\n-1\n\n# nothing\n0.5 2:2\n2 " + b"1:1 " * 40 + b"\n3 4:1"
CRITEO = b"\n".join(
    b"\t".join([str(row % 2).encode(), *[b"12"] * 13, *[b"0a1b2c3d"] * 25, b""]) for row in range(4)
)


def rows(provider):
    return [row for block in provider.blocks() for row in provider.read(block).to_pylist()]


@pytest.fixture
def path(tmp_path):
    (tmp_path / "x.svm").write_bytes(LINES)
    return tmp_path / "x.svm"


@pytest.mark.parametrize("batch_bytes", [1, 2, 3, 5, 8, 40, 100, 1000])
def test_each_line_is_in_one_block_however_they_are_cut(path, batch_bytes):
    assert rows(sf.open(path, format=sf.Libsvm(batch_bytes=batch_bytes))) == rows(sf.open(path))
    assert [row["label"] for row in rows(sf.open(path))] == [1, -1, 0.5, 2, 3]


def test_blocks_are_known_before_their_rows(path):
    blocks = list(sf.open(path, format=sf.Libsvm(batch_bytes=100)).blocks())
    assert [(block.origin, block.index, block.nbytes) for block in blocks] == [
        (str(path), 0, 100),
        (str(path), 1, 100),
        (str(path), 2, len(LINES) - 200),
    ]
    assert {block.num_rows for block in blocks} == {None}
    assert sf.open(path).num_rows is None


@pytest.mark.parametrize("batch_bytes", [1, 7, 20, 1000])
def test_the_line_of_a_fault_is_counted_from_the_start_of_the_file(path, batch_bytes):
    path.write_bytes(b"1 1:1\n\n# x\n1 2:3 4:y\n1 1:1\n")
    with pytest.raises(ProviderError, match=r"x\.svm, line 4, column 9: found '4:y', expected a number"):
        rows(sf.open(path, format=sf.Libsvm(batch_bytes=batch_bytes)))


def squeezed(path, suffix, compress):
    made = path.with_name(f"x.svm.{suffix}")
    made.write_bytes(compress(LINES))
    return made


def zstd(content):
    return bytes(pa.compress(content, codec="zstd", asbytes=True))


COMPRESSIONS = [("gz", gzip.compress), ("bz2", bz2.compress), ("zst", zstd)]
each_compression = pytest.mark.parametrize(
    ("suffix", "compress"), COMPRESSIONS, ids=[one for one, _ in COMPRESSIONS]
)


@pytest.mark.slow
@each_compression
@pytest.mark.parametrize("batch_bytes", [1, 10, 33, 1000])
def test_a_compressed_file_has_the_blocks_of_its_decompressed_bytes(path, suffix, compress, batch_bytes):
    plain, made = (
        sf.open(path, format=sf.Libsvm(batch_bytes=batch_bytes)),
        sf.open(squeezed(path, suffix, compress), format=sf.Libsvm(batch_bytes=batch_bytes)),
    )
    assert made.kind == "libsvm"
    blocks, expected = list(made.blocks()), list(plain.blocks())
    assert [block.nbytes for block in blocks] == [block.nbytes for block in expected]
    order = np.random.default_rng(0).permutation(len(blocks)).tolist()
    for at in [*range(len(blocks)), *order]:
        assert made.read(blocks[at]).to_pylist() == plain.read(expected[at]).to_pylist()


@each_compression
def test_a_compressed_file_that_is_cut_off_is_an_error(path, suffix, compress):
    made = squeezed(path, suffix, compress)
    made.write_bytes(compress(LINES)[:-10])
    with pytest.raises(ProviderError, match=rf"x\.svm\.{suffix} can't be read"):
        rows(sf.open(made))


def test_members_and_frames_behind_each_other_are_one_file(path):
    made = squeezed(path, "gz", lambda content: 2 * gzip.compress(content + b"\n"))
    assert rows(sf.open(made, format=sf.Libsvm(batch_bytes=10))) == 2 * rows(sf.open(path))


def test_the_line_of_a_fault_is_counted_in_a_compressed_file_too(path):
    made = squeezed(path, "gz", lambda content: gzip.compress(b"1 1:1\n\n# x\n1 2:3 4:y\n1 1:1\n"))
    for batch_bytes in (1, 7, 20, 1000):
        with pytest.raises(
            ProviderError, match=r"x\.svm\.gz, line 4, column 9: found '4:y', expected a number"
        ):
            rows(sf.open(made, format=sf.Libsvm(batch_bytes=batch_bytes)))


def test_threads_that_read_blocks_in_any_order_share_one_decompression(path):
    made = sf.open(squeezed(path, "gz", gzip.compress), format=sf.Libsvm(batch_bytes=5))
    blocks = list(made.blocks())
    expected = [made.read(block).to_pylist() for block in blocks]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda block: made.read(block).to_pylist(), blocks))
    assert found == expected


def test_a_file_that_grows_after_its_blocks_were_listed_is_an_error(path):
    made = squeezed(path, "gz", gzip.compress)
    provider = sf.open(made)
    blocks = list(provider.blocks())
    made.write_bytes(gzip.compress(LINES + b"1 1:1\n"))
    with pytest.raises(
        ProviderError, match=r"has not \d+ decompressed bytes, as it had when its blocks were listed"
    ):
        [provider.read(block) for block in blocks]


def test_a_file_may_be_empty(tmp_path):
    for name in ("a.svm", "b.svm"):
        (tmp_path / name).write_bytes(b"" if name == "a.svm" else b"\n#\n")
    assert rows(sf.open(tmp_path)) == []


def test_a_file_that_is_gone_is_an_error_naming_it(path):
    provider = sf.open(path)
    path.unlink()
    with pytest.raises(ProviderError, match=r"x\.svm can't be read: No such file"):
        rows(provider)


def test_blocks_have_at_least_a_byte(path):
    with pytest.raises(ProviderError, match="batch_bytes is 0, expected bytes as a number"):
        sf.open(path, format=sf.Libsvm(batch_bytes=0))


@pytest.mark.parametrize("policy", ["raise", "skip", "quarantine"])
def test_a_loader_treats_malformed_lines_as_bad_rows(path, tmp_path, policy):
    path.write_bytes(b"1 1:1\n2 2\n3 3:3\n")
    quarantine = tmp_path / "bad.parquet"
    bad_rows = sf.BadRows(policy, quarantine if policy == "quarantine" else None)
    loader = sf.Loader(path, batch=1, bad_rows=bad_rows)
    if policy == "raise":
        with pytest.raises(ProviderError, match=r"x\.svm, line 2, column 3: found '2', expected index:value"):
            list(loader)
        return
    assert [batch["label"].item() for batch in loader] == [1, 3]
    assert loader.stats().bad_rows == 1
    if policy == "quarantine":
        (bad,) = rows(sf.open(quarantine))
        assert bad["bad"]["reason"] == f"{path}, line 2, column 3: found '2', expected index:value"
        assert (bad["bad"]["file"], bad["bad"]["row"], bad["bad"]["column"]) == (str(path), 1, "features")


@pytest.mark.parametrize(("format", "content"), [(sf.Libsvm, LINES), (sf.Criteo, CRITEO)])
def test_damaged_bytes_are_errors_of_ours_or_bad_rows(tmp_path, format, content):
    rng = random.Random(5)
    path = tmp_path / "x"
    letters = b"\t\n\r :#+-.eE019afqid\x00\xff"
    found = set()
    for _ in range(60):
        damaged = bytearray(content)
        for _ in range(rng.choice((1, 2, 8))):
            at = rng.randrange(len(damaged))
            match rng.randrange(3):
                case 0:
                    damaged[at] = rng.choice(letters)
                case 1:
                    del damaged[at : at + rng.choice((1, 5, 60))]
                case 2:
                    damaged[at:at] = bytes(rng.choices(letters, k=rng.choice((1, 3, 25))))
        path.write_bytes(damaged)
        provider = sf.open(path, format=format(batch_bytes=rng.choice((64, 4096))))
        bad = []
        for block in provider.blocks():
            batch = provider.read(block, bad_rows=bad)
            batch.validate(full=True)
            convert(batch, fill=0)
        if bad:
            with pytest.raises(SeqflowError) as raised:
                rows(provider)
            assert raised.value.message == bad[0].reason
        else:
            rows(provider)
        found.add(bool(bad))
    assert found == {True, False}
