"""Files with a row a line: blocks of bytes, compressed files, damaged ones."""

import bz2
import gzip
import random
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.errors import ProviderError, SeqflowError
from seqflow.record import convert

LINES = b'{"label": 1}\n{"label": -1}\n\n  \n{"label": 0.5}\n{"label": 2, "text": "%s"}\n{"label": 3}' % (
    b"ab" * 80
)
SCHEMA = {"label": "double", "text": "string"}
CSV = b"\n".join(b"%d,12,text %d" % (row % 2, row) for row in range(20))
COLUMNS = {"label": "int64", "n": "int64", "text": "string"}
FAULT = b'{"label": 1}\n\n \n{"label": 2, "text": 4}\n{"label": 1}\n'
IN_FAULT = r"line 4, column \d+: 'text' is not a string"


def lines(batch_bytes=4096):
    return sf.JsonLines(schema=SCHEMA, batch_bytes=batch_bytes)


def rows(provider):
    return [row for block in provider.blocks() for row in provider.read(block).to_pylist()]


@pytest.fixture
def path(tmp_path):
    (tmp_path / "x.jsonl").write_bytes(LINES)
    return tmp_path / "x.jsonl"


@pytest.mark.parametrize("batch_bytes", [1, 2, 3, 5, 8, 40, 100, 1000])
def test_each_line_is_in_one_block_however_they_are_cut(path, batch_bytes):
    assert rows(sf.open(path, format=lines(batch_bytes))) == rows(sf.open(path, format=lines()))
    assert [row["label"] for row in rows(sf.open(path, format=lines()))] == [1, -1, 0.5, 2, 3]


def test_blocks_are_known_before_their_rows(path):
    blocks = list(sf.open(path, format=lines(100)).blocks())
    assert [(block.origin, block.index, block.nbytes) for block in blocks] == [
        (str(path), 0, 100),
        (str(path), 1, 100),
        (str(path), 2, len(LINES) - 200),
    ]
    assert {block.num_rows for block in blocks} == {None}
    assert sf.open(path).num_rows is None


@pytest.mark.parametrize("batch_bytes", [1, 7, 20, 1000])
def test_the_line_of_a_fault_is_counted_from_the_start_of_the_file(path, batch_bytes):
    path.write_bytes(FAULT)
    with pytest.raises(ProviderError, match=rf"x\.jsonl, {IN_FAULT}"):
        rows(sf.open(path, format=lines(batch_bytes)))


def squeezed(path, suffix, compress):
    made = path.with_name(f"x.jsonl.{suffix}")
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
        sf.open(path, format=lines(batch_bytes)),
        sf.open(squeezed(path, suffix, compress), format=lines(batch_bytes)),
    )
    assert made.kind == "jsonl"
    blocks, expected = list(made.blocks()), list(plain.blocks())
    assert [block.nbytes for block in blocks] == [block.nbytes for block in expected]
    order = np.random.default_rng(0).permutation(len(blocks)).tolist()
    for at in [*range(len(blocks)), *order]:
        assert made.read(blocks[at]).to_pylist() == plain.read(expected[at]).to_pylist()


@each_compression
def test_a_compressed_file_that_is_cut_off_is_an_error(path, suffix, compress):
    made = squeezed(path, suffix, compress)
    made.write_bytes(compress(LINES)[:-10])
    with pytest.raises(ProviderError, match=rf"x\.jsonl\.{suffix} can't be read"):
        rows(sf.open(made, format=lines()))


def test_members_and_frames_behind_each_other_are_one_file(path):
    made = squeezed(path, "gz", lambda content: 2 * gzip.compress(content + b"\n"))
    assert rows(sf.open(made, format=lines(10))) == 2 * rows(sf.open(path, format=lines()))


def test_the_line_of_a_fault_is_counted_in_a_compressed_file_too(path):
    made = squeezed(path, "gz", lambda content: gzip.compress(FAULT))
    for batch_bytes in (1, 7, 20, 1000):
        with pytest.raises(ProviderError, match=rf"x\.jsonl\.gz, {IN_FAULT}"):
            rows(sf.open(made, format=lines(batch_bytes)))


def test_threads_that_read_blocks_in_any_order_share_one_decompression(path):
    made = sf.open(squeezed(path, "gz", gzip.compress), format=lines(5))
    blocks = list(made.blocks())
    expected = [made.read(block).to_pylist() for block in blocks]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda block: made.read(block).to_pylist(), blocks))
    assert found == expected


def test_a_file_that_grows_after_its_blocks_were_listed_is_an_error(path):
    made = squeezed(path, "gz", gzip.compress)
    provider = sf.open(made, format=lines())
    blocks = list(provider.blocks())
    made.write_bytes(gzip.compress(LINES + b'\n{"label": 1}\n'))
    with pytest.raises(
        ProviderError, match=r"has not \d+ decompressed bytes, as it had when its blocks were listed"
    ):
        [provider.read(block) for block in blocks]


def test_a_file_may_be_empty(tmp_path):
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_bytes(b"" if name == "a.jsonl" else b"\n \n")
    assert rows(sf.open(tmp_path, format=lines())) == []


def test_a_file_that_is_gone_is_an_error_naming_it(path):
    provider = sf.open(path)
    path.unlink()
    with pytest.raises(ProviderError, match=r"x\.jsonl can't be read: No such file"):
        rows(provider)


def test_blocks_have_at_least_a_byte(path):
    with pytest.raises(ProviderError, match="batch_bytes is 0, expected bytes as a number"):
        sf.open(path, format=lines(0))


@pytest.mark.parametrize("policy", ["raise", "skip", "quarantine"])
def test_a_loader_treats_malformed_lines_as_bad_rows(path, tmp_path, policy):
    path.write_bytes(b'{"label": 1}\n{"label": [2]}\n{"label": 3}\n')
    quarantine, of_label = tmp_path / "bad.parquet", r"line 2, column \d+: 'label' is not a double"
    bad_rows = sf.BadRows(policy, quarantine if policy == "quarantine" else None)
    loader = sf.Loader(path, format=lines(), fill={"text": ""}, batch=1, bad_rows=bad_rows)
    if policy == "raise":
        with pytest.raises(ProviderError, match=rf"x\.jsonl, {of_label}"):
            list(loader)
        return
    assert [batch["label"].item() for batch in loader] == [1, 3]
    assert loader.stats().bad_rows == 1
    if policy == "quarantine":
        (bad,) = rows(sf.open(quarantine))
        assert re.match(f"{path}, {of_label}", bad["bad"]["reason"])
        assert (bad["bad"]["file"], bad["bad"]["row"], bad["bad"]["column"]) == (str(path), 1, "label")


@pytest.mark.parametrize(
    ("form", "content"),
    [(lines(), LINES), (sf.Csv(schema=COLUMNS, header=False, delimiter=","), CSV)],
)
def test_damaged_bytes_are_errors_of_ours_or_bad_rows(tmp_path, form, content):
    rng = random.Random(5)
    path = tmp_path / "x"
    letters = b'\t\n\r :,{}[]"+-.eE019afqid\x00\xff'
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
        provider = sf.open(path, format=replace(form, batch_bytes=rng.choice((64, 4096))))
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
