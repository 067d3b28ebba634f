"""Damaged files and Arrow arrays with lying buffers are errors of ours, never crashes."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from marks import slow, thorough

import seqflow as sf
from seqflow.errors import ProviderError

READ = """
import sys
import seqflow as sf
from seqflow.errors import SeqflowError
from seqflow.providers.block_bounds import block_bounds
from seqflow.record import convert
content = bytearray(open(sys.argv[1], "rb").read())
for at in eval(sys.argv[2]):
    for value in eval(sys.argv[3]):
        damaged = bytearray(content)
        damaged[at] = value
        with open(sys.argv[4], "wb") as file:
            file.write(damaged)
        try:
            provider = sf.open(sys.argv[4])
            for block in provider.blocks():
                convert(provider.read(block), valid=True)
            list(block_bounds(provider) or ())
        except SeqflowError:
            pass
print("alive")
"""


def survives(folder: Path, content: bytes, name: str, positions: str, values: str) -> None:
    """Read the content with each of these bytes damaged, in a process of its own."""
    (folder / "whole").write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-c", READ, folder / "whole", positions, values, folder / name],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "alive\n", done.stderr[-2000:]


@pytest.mark.parametrize("step", [5, *slow(2), *thorough(1)])
def test_no_byte_of_a_parquet_footer_ends_the_process(tmp_path: Path, step: int) -> None:
    table = pa.table({"x": [[1, 2], [3]], "y": ["a", "bc"]})
    pq.write_table(table, tmp_path / "x.parquet", store_schema=False)
    content = (tmp_path / "x.parquet").read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    survives(
        tmp_path,
        content,
        "y.parquet",
        f"range({start}, len(content), {step})",
        "(0, content[at] ^ 4, content[at] + 1 & 255, 255)",
    )


@pytest.mark.slow
@pytest.mark.parametrize("column", [
    pa.array(["short", "longer than twelve bytes"], pa.string_view()),
    pa.array([[1], [2, 3]], pa.list_view(pa.int32())),
    pa.array([[[1]], None, [[2, 3], []]]),
    *thorough(pa.array([b"short", b"longer than twelve bytes"], pa.binary_view()), pa.array(["a", "bc"])),
])  # fmt: skip
@pytest.mark.parametrize("step", [5, *thorough(1)])
def test_no_byte_of_an_arrow_file_ends_the_process(tmp_path: Path, column: pa.Array, step: int) -> None:
    table = pa.table({"x": column})
    for name, opener in (("x.arrow", pa.ipc.new_file), ("x.arrows", pa.ipc.new_stream)):
        with opener(tmp_path / name, table.schema) as writer:
            writer.write_table(table)
        survives(
            tmp_path,
            (tmp_path / name).read_bytes(),
            f"y{name}",
            f"range(0, len(content), {step})",
            "(content[at] ^ 64, 255)",
        )


def test_a_footer_that_lies_about_rows_is_an_error(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"x": range(40)}), tmp_path / "x.parquet", store_schema=False, write_statistics=False
    )
    content = (tmp_path / "x.parquet").read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    rows = [at for at in range(start, len(content)) if content[at] == 80]  # 40 as a zigzag number
    assert rows
    for at in rows:
        (tmp_path / "x.parquet").write_bytes(content[:at] + b"\x4f" + content[at + 1 :])
        with pytest.raises(ProviderError, match=r"damaged|footer|can't be read"):
            sf.open(tmp_path / "x.parquet")["x"]


class Foreign:
    """An array of another library."""

    def __init__(self, array: pa.Array) -> None:
        self.array = array

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.array.__arrow_c_array__()


def lying(kind: pa.DataType, buffers: list[Any], *children: pa.Array) -> pa.Array:
    return pa.Array.from_buffers(
        kind, 2, [None if b is None else pa.py_buffer(b) for b in buffers], children=list(children)
    )


VIEW = np.array([20, 0, 0, 0, 20, 0, 7, 10**9], np.int32)  # 20 bytes of buffer 7, from 10**9 on
INNER = pa.Array.from_buffers(
    pa.list_(pa.int8()), 3, [None, pa.py_buffer(np.array([0, 2**30, -5, 2], np.int32))],
    children=[pa.array([1, 2], pa.int8())],
)  # fmt: skip
LIES = {
    "views outside their buffer": lying(pa.string_view(), [None, VIEW, b"abc"]),
    "list views outside": lying(pa.list_view(pa.int8()), [None, np.array([0, 9], np.int32), np.array([1, 3], np.int32)], pa.array([1, 2], pa.int8())),
    "list views of negative size": lying(pa.list_view(pa.int8()), [None, np.array([0, 0], np.int32), np.array([-1, 3], np.int32)], pa.array([1, 2, 3], pa.int8())),
    "offsets that decrease": lying(pa.list_(pa.int8()), [None, np.array([0, 2, 1], np.int32)], pa.array([1, 2], pa.int8())),
    "bad offsets under a null": lying(pa.list_(pa.list_(pa.int8())), [b"\x02", np.array([0, 2, 3], np.int32)], INNER),
    "fixed-size lists behind their values": pa.Array.from_buffers(pa.list_(pa.list_(pa.int8()), 2), 2, [None], offset=1, children=[pa.array([[1], [2, 3], [], [4]], pa.list_(pa.int8()))]),
    "text offsets that decrease": lying(pa.string(), [None, np.array([0, 90, 1], np.int32), b"abc"]),
}  # fmt: skip


@pytest.mark.parametrize("array", LIES.values(), ids=LIES)
@pytest.mark.parametrize("door", [
    lambda array: sf.from_arrow(array),
    lambda array: sf.from_arrow(Foreign(array)),
    lambda array: sf.from_arrow(pa.record_batch([array], ["x"])),
    lambda array: sf.open(pa.table([array], ["x"]))["x"],
    lambda array: sf.open(pa.RecordBatchReader.from_batches(pa.schema([("x", array.type)]), [pa.record_batch([array], ["x"])]))["x"],
])  # fmt: skip
def test_an_array_with_lying_buffers_is_refused_at_every_door(array: pa.Array, door: Any) -> None:
    with pytest.raises(ProviderError):
        door(array)


def test_types_nested_too_deep_and_names_that_are_no_text_are_refused() -> None:
    kind: pa.DataType = pa.int8()
    for _ in range(500):
        kind = pa.list_(kind)
    with pytest.raises(ProviderError, match="nested in 64 levels or more"):
        sf.open(pa.table({"x": pa.array([], kind)}))
    with pytest.raises(ProviderError, match="nested in 64 levels or more"):
        sf.from_arrow(pa.array([], kind))


@pytest.mark.parametrize("encoding", ["rot13", "hex", "no such", "utf\0-8"])
def test_what_is_no_text_encoding_is_refused(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(ProviderError, match="encoding="):
        sf.open(tmp_path / "x.txt", format=sf.Text(encoding=encoding))


@pytest.mark.parametrize("compression", [None, "lz4"])
def test_files_that_are_not_mapped_give_the_same(tmp_path: Path, compression: str | None) -> None:
    table = pa.table({"a": range(9), "x": [[k] * k for k in range(9)], "t": ["ab"] * 9})
    for name, opener in (("x.arrow", pa.ipc.new_file), ("x.arrows", pa.ipc.new_stream)):
        with opener(
            tmp_path / name, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)
        ) as writer:
            writer.write_table(table, max_chunksize=4)
        for columns in (None, ["x"], ["t", "a"]):
            mapped = sf.open(tmp_path / name, columns=columns)
            read = sf.open(tmp_path / name, columns=columns, format=sf.Arrow(memory_map=False))
            for block in read.blocks():
                assert read.read(block).equals(mapped.read(block))


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view()])
def test_views_that_nulls_hide_are_not_followed(kind: pa.DataType) -> None:
    good = np.array([[3, int.from_bytes(b"abc", "little"), 0, 0]], np.int32).tobytes()
    array = pa.Array.from_buffers(
        kind, 2, [pa.py_buffer(b"\x02"), pa.py_buffer(VIEW[4:].tobytes() + good), pa.py_buffer(b"")]
    )
    for offset in (0, 1):
        record = sf.from_arrow(pa.record_batch([array.slice(offset)], ["x"]), fill="")
        assert record["x.lengths"].tolist() == [0, 3][offset:]
        assert bytes(record["x.values"]) == b"abc"
