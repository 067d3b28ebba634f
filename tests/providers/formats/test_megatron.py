"""Megatron's indexed datasets: documents and sequences, what is mapped, and indexes that lie."""

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.errors import ProviderError

CODES = {"u1": 1, "i1": 2, "i2": 3, "i4": 4, "i8": 5, "f8": 6, "f4": 7, "u2": 8}


def write(
    folder: Path,
    sequences: Sequence[Sequence[int]],
    documents: Sequence[int],
    dtype: str = "u2",
    order: Any = None,
    **wrong: Any,
) -> Path:
    """The files that Megatron's builder writes; `order` is another order of the sequences in the file of tokens."""
    arrays = [np.array(one, dtype) for one in sequences]
    pointers = np.zeros(len(arrays), "<i8")
    data = b""
    for at in order or range(len(arrays)):
        pointers[at] = len(data)
        data += arrays[at].tobytes()
    parts = {
        "magic": b"MMIDIDX\0\0", "version": struct.pack("<Q", 1), "code": bytes([CODES[dtype]]),
        "count": struct.pack("<Q", len(arrays)), "num_documents": struct.pack("<Q", len(documents)),
        "lengths": np.array([len(one) for one in arrays], "<i4").tobytes(), "pointers": pointers.tobytes(),
        "indices": np.array(documents, "<i8").tobytes(),
    } | wrong  # fmt: skip
    (folder / "a.bin").write_bytes(parts.pop("data", data))
    (folder / "a.idx").write_bytes(b"".join(parts.values()))
    return folder / "a.idx"


def tokens(provider: Any) -> list[list[int]]:
    return [row["tokens"] for block in provider.blocks() for row in provider.read(block).to_pylist()]


SEQUENCES = [[1, 2], [], [3], [4, 5, 6], [7]]
DOCUMENTS = [0, 2, 2, 4, 5]


@pytest.mark.parametrize("dtype", CODES)
@pytest.mark.parametrize("batch_bytes", [1, 20, "8 MiB"])
def test_rows_are_documents_or_sequences(tmp_path: Path, dtype: str, batch_bytes: int | str) -> None:
    path = write(tmp_path, SEQUENCES, DOCUMENTS, dtype)
    assert tokens(sf.open(path, format=sf.Megatron(batch_bytes=batch_bytes))) == [
        [1, 2],
        [],
        [3, 4, 5, 6],
        [7],
    ]
    provider = sf.open(path, format=sf.Megatron(documents=False, batch_bytes=batch_bytes))
    assert tokens(provider) == SEQUENCES
    assert provider.schema.field("tokens").type.value_type == pa.from_numpy_dtype(dtype)
    assert provider.files == (str(path), str(path.with_suffix(".bin")))


@pytest.mark.parametrize("order", [[4, 3, 2, 1, 0], [0, 1, 3, 2, 4]])
def test_sequences_may_lie_in_any_order(tmp_path: Path, order: list[int]) -> None:
    assert tokens(sf.open(write(tmp_path, SEQUENCES, DOCUMENTS, order=order))) == [
        [1, 2],
        [],
        [3, 4, 5, 6],
        [7],
    ]


def test_tokens_are_mapped_not_copied(tmp_path: Path) -> None:
    path = write(tmp_path, [list(range(1000))] * 1000, range(1001))
    provider = sf.open(path)
    before = pa.total_allocated_bytes()
    tables = [provider.read(block) for block in provider.blocks()]
    assert pa.total_allocated_bytes() - before < 1 << 18
    assert sum(table.num_rows for table in tables) == 1000


def test_empty_datasets_have_no_rows(tmp_path: Path) -> None:
    assert tokens(sf.open(write(tmp_path, [], [0]))) == []
    assert tokens(sf.open(write(tmp_path, [[], []], [0, 1, 2]))) == [[], []]


@pytest.mark.parametrize(("wrong", "message"), [
    ({"magic": b"MMIDIDY\0\0"}, "does not begin as an index"),
    ({"version": struct.pack("<Q", 2)}, "version 2 and element type 8"),
    ({"code": b"\x09"}, "element type 9"),
    ({"count": struct.pack("<Q", 1 << 60)}, "134 bytes, but .* sequences in 5 documents take"),
    ({"num_documents": struct.pack("<Q", 1 << 60)}, "134 bytes, but 5 sequences in .* documents take"),
    ({"modes": bytes(5)}, "139 bytes, but 5 sequences in 5 documents take 134"),
    ({"lengths": np.array([2, -1, 1, 3, 1], "<i4").tobytes()}, "outside the 14 bytes"),
    ({"lengths": np.array([2, 0, 1, 3, 2], "<i4").tobytes()}, "outside the 14 bytes"),
    ({"pointers": np.array([0, 4, 4, -6, 12], "<i8").tobytes()}, "outside the 14 bytes"),
    ({"pointers": np.array([0, 4, 4, 2**63 - 1, 12], "<i8").tobytes()}, "outside the 14 bytes"),
    ({"indices": np.array([0, 2, 1, 4, 5], "<i8").tobytes()}, "documents are not all"),
    ({"indices": np.array([0, 2, 2, 4, 4], "<i8").tobytes()}, "documents are not all"),
    ({"data": b"1234"}, "outside the 4 bytes"),
])  # fmt: skip
def test_indexes_that_lie_are_refused(tmp_path: Path, wrong: Any, message: str) -> None:
    with pytest.raises(ProviderError, match=f"a.idx.*{message}"):
        sf.open(write(tmp_path, SEQUENCES, DOCUMENTS, **wrong))


def test_both_files_are_needed_and_part_of_a_state(tmp_path: Path) -> None:
    path = write(tmp_path, SEQUENCES, DOCUMENTS)
    state = sf.Loader(path, batch=2).state_dict()
    with pytest.raises(ProviderError, match=r"a.bin has the suffix .bin: .*Megatron's .idx next to it can"):
        sf.open(path.with_suffix(".bin"))
    path.with_suffix(".bin").write_bytes(bytes(14))
    with pytest.raises(sf.SeqflowError, match=r"a.bin has other content"):
        sf.Loader(path, batch=2).load_state_dict(state)
    path.with_suffix(".bin").unlink()
    with pytest.raises(ProviderError, match=r"there is no .*a.bin next to it"):
        sf.open(path)
