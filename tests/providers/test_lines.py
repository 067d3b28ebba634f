"""Files with a row a line: blocks of bytes, compressed files, damaged ones."""

import bz2
import gzip
import random

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
    assert rows(sf.open(path, batch_bytes=batch_bytes)) == rows(sf.open(path))
    assert [row["label"] for row in rows(sf.open(path))] == [1, -1, 0.5, 2, 3]


def test_blocks_are_known_before_their_rows(path):
    blocks = list(sf.open(path, batch_bytes=100).blocks())
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
        rows(sf.open(path, batch_bytes=batch_bytes))


@pytest.mark.parametrize(("suffix", "compress"), [("gz", gzip.compress), ("bz2", bz2.compress)])
def test_a_compressed_file_is_one_block(path, suffix, compress):
    expected = rows(sf.open(path))
    squeezed = path.with_name(f"x.svm.{suffix}")
    squeezed.write_bytes(compress(LINES))
    provider = sf.open(squeezed, batch_bytes=10)
    assert provider.kind == "libsvm"
    assert len(list(provider.blocks())) == 1
    assert rows(provider) == expected
    squeezed.write_bytes(compress(LINES)[:-20] + b"x")
    with pytest.raises(ProviderError, match=rf"x\.svm\.{suffix} can't be read"):
        rows(sf.open(squeezed))


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
    with pytest.raises(ProviderError, match="batch_bytes is 0, expected at least 1"):
        sf.open(path, batch_bytes=0)


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


@pytest.mark.parametrize(("kind", "content"), [("libsvm", LINES), ("criteo", CRITEO)])
def test_damaged_bytes_are_errors_of_ours_or_bad_rows(tmp_path, kind, content):
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
        provider = sf.open(path, kind=kind, batch_bytes=rng.choice((64, 4096)))
        bad = []
        for block in provider.blocks():
            batch = provider.read(block, bad_rows=bad)
            batch.validate(full=True)
            convert(batch, fill=0)
        if bad:
            with pytest.raises(SeqflowError) as raised:
                rows(provider)
            assert str(raised.value) == bad[0].reason
        else:
            rows(provider)
        found.add(bool(bad))
    assert found == {True, False}
