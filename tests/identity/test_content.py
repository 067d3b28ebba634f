"""Content is known by digests, which don't depend on where and how it is kept."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from seqflow.identity.content import content_of, digest_of_file
from seqflow.identity.samples import WHOLE, sampled_digest


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """Digests of all files are kept here, and of those that were written just now, too."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("seqflow.identity.content._LARGE", 0)
    monkeypatch.setattr("seqflow.identity.content._SETTLED", -1e9)
    return tmp_path / "cache" / "seqflow" / "digests"


@pytest.mark.parametrize("shape", [(), (0,), (7,), (3, 4), (2, 3, 4), (0, 5)])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "M8[s]", "U3", "S2", "complex64"])
def test_layout_and_memory_make_no_other_content(tmp_path, shape, dtype):
    array = (
        np.arange(int(np.prod(shape)))
        .reshape(shape)
        .astype(dtype if dtype != "M8[s]" else "int64")
        .astype(dtype)
    )
    np.save(tmp_path / "a.npy", array)
    copies = [
        array.copy("F"),
        np.load(tmp_path / "a.npy", mmap_mode="r"),
        np.load(tmp_path / "a.npy", mmap_mode="c"),
    ]
    if array.ndim:
        copies += [np.repeat(array, 2, axis=0)[::2]]
    assert {content_of(copy) for copy in copies} == {content_of(array)}


def test_dtype_shape_and_values_make_other_content():
    arrays = [
        np.zeros(4, "int32"),
        np.zeros(2, "int64"),
        np.zeros((2, 2), "int32"),
        np.array([0, 0, 0, 1], "int32"),
    ]
    assert len({content_of(array) for array in arrays}) == 4


def test_large_arrays_of_any_layout_are_hashed_in_pieces(monkeypatch):
    array = np.arange(2 * 3 * 5 * 7).reshape(2, 3, 5, 7)
    expected = content_of(array)
    monkeypatch.setattr("seqflow.identity.content._PIECE", 64)
    others = [array, array.copy("F"), np.concatenate([array, array], axis=1)[:, :3], array[::-1][::-1]]
    assert {content_of(other) for other in others} == {expected}


def test_the_digest_of_a_file_is_kept_until_the_file_changes(tmp_path, cache):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(1000))
    first = content_of(np.load(path, mmap_mode="r")), digest_of_file(str(path))
    assert len([*cache.iterdir()]) == 2
    for entry in cache.iterdir():
        entry.write_text(json.dumps({**json.loads(entry.read_text()), "digest": "as kept"}))
    assert content_of(np.load(path, mmap_mode="r")) == "int64[1000] as kept"
    assert digest_of_file(str(path)) == "as kept"
    np.save(path, np.arange(1000)[::-1])
    os.utime(path, ns=(1, 1))
    assert content_of(np.load(path, mmap_mode="r")) != first[0]
    assert digest_of_file(str(path)) != first[1]


def test_a_map_of_a_file_that_was_replaced_has_its_own_content(tmp_path, cache):
    path, other = tmp_path / "a.npy", tmp_path / "b.npy"
    np.save(path, np.arange(1000))
    mapped = np.load(path, mmap_mode="r")
    expected = content_of(np.arange(1000))
    np.save(other, np.arange(1000)[::-1])
    assert content_of(np.load(other, mmap_mode="r")) != expected
    other.replace(path)
    assert content_of(mapped) == expected
    assert content_of(np.load(path, mmap_mode="r")) != expected


def test_arrays_that_are_written_to_are_not_taken_from_the_cache(tmp_path, cache):
    np.save(tmp_path / "a.npy", np.arange(1000))
    mapped = np.load(tmp_path / "a.npy", mmap_mode="c")
    before = content_of(mapped)
    mapped[500] = -1
    assert content_of(mapped) != before


@pytest.mark.parametrize("text", ["", "{", "[]", '{"file": 3}'])
def test_a_damaged_cache_is_made_anew(tmp_path, cache, text):
    (tmp_path / "a").write_bytes(b"abc")
    first = digest_of_file(str(tmp_path / "a"))
    (kept,) = cache.iterdir()
    kept.write_text(text)
    assert digest_of_file(str(tmp_path / "a")) == first
    assert json.loads(kept.read_text())["digest"] == first


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path, cache):
    cache.parent.parent.mkdir()
    cache.parent.write_text("no folder")
    (tmp_path / "a").write_bytes(b"abc")
    assert digest_of_file(str(tmp_path / "a")) == digest_of_file(str(tmp_path / "a"))


@pytest.mark.parametrize("size", [1, 100, WHOLE, WHOLE + 1, 10 * WHOLE])
def test_a_sample_sees_size_head_and_tail(tmp_path, size):
    path = tmp_path / "data"

    def digest(content: bytes) -> str | None:
        path.write_bytes(content)
        return sampled_digest(str(path))

    content = bytes(size)
    found = {
        digest(content),
        digest(content + b"\0"),
        digest(b"1" + content[1:]),
        digest(content[:-1] + b"2"),
    }
    assert len(found) == 4
    assert digest(content) in found


def test_a_sample_of_a_larger_file_is_of_as_many_bytes_in_places_apart(tmp_path):
    path, content, step = tmp_path / "data", bytes(4 * WHOLE), 1024

    def digest(content: bytes) -> str | None:
        path.write_bytes(content)
        return sampled_digest(str(path))

    whole, seen = digest(content), 0
    for start in range(0, len(content), step):
        seen += digest(content[:start] + b"1" * step + content[start + step :]) != whole
    # A place that does not begin with a block lies in one more.
    assert WHOLE // step <= seen <= WHOLE // step + 8


def test_a_file_that_is_not_there_has_no_sample(tmp_path):
    assert sampled_digest(str(tmp_path / "none")) is None
