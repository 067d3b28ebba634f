"""Column chunks of Parquet footers, read natively and in Python, also of footers that are damaged."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqflow import kernels
from seqflow.kernels.dispatch import extension

TABLE = pa.table(
    {"id": range(20), "ids": [[1, 2], None] * 10, "text": ["a", "bc"] * 10, "empty": [None] * 20}
)


def footer_of(table, **options):
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    content = file.getvalue()
    size = int.from_bytes(content[-8:-4], "little")
    return np.frombuffer(content[-8 - size : -8], np.uint8)


FOOTER = footer_of(TABLE, row_group_size=7)


def test_the_numbers_are_those_that_pyarrow_reads(any_kernels):
    _, rows, counts, chunks, limits = kernels.read_footer(FOOTER)
    file = io.BytesIO()
    pq.write_table(TABLE, file, row_group_size=7)
    metadata = pq.ParquetFile(file).metadata
    assert counts.tolist() == [4, 4, 4]
    assert rows.tolist() == [7, 7, 6]
    groups = [metadata.row_group(group) for group in range(3)]
    leaves = [group.column(leaf) for group in groups for leaf in range(4)]
    assert chunks[:, 0].tolist() == [leaf.num_values for leaf in leaves]
    assert chunks[:, 1].tolist() == [leaf.total_uncompressed_size for leaf in leaves]
    assert chunks[:, 4].tolist() == [0, 3, 0, -1, 0, 4, 0, -1, 0, 3, 0, -1]
    assert chunks[:, 5].tolist() == [leaf.dictionary_page_offset or leaf.data_page_offset for leaf in leaves]
    assert chunks[:, 6].tolist() == [leaf.total_compressed_size for leaf in leaves]
    assert chunks[:4, 7:].tolist() == [[8, 8], [8, 8], [1, 2], [-1, -1]]
    assert limits[:16] == np.array([0, 6]).tobytes()
    assert limits[32:35] == b"abc"
    assert len(limits) == np.maximum(chunks[:, 7:], 0).sum()


def test_files_of_one_schema_have_one_description(any_kernels):
    def described(table, **options):
        return kernels.read_footer(footer_of(table, **options))[0]

    description = described(TABLE)
    assert description
    assert described(TABLE[3:9], row_group_size=2, compression="zstd") == description
    assert described(TABLE.replace_schema_metadata({"a": "b"})) != description
    assert described(TABLE.rename_columns(["id", "ids", "text", "full"])) != description


def test_a_footer_whose_rows_are_not_those_of_its_row_groups_has_no_description(any_kernels):
    content = FOOTER.tobytes()
    assert content.count(b"\x16\x28\x19") == 1  # 20 rows in row groups of 7, 7 and 6
    wrong = content.replace(b"\x16\x28\x19", b"\x16\x2a\x19")
    assert kernels.read_footer(np.frombuffer(wrong, np.uint8))[0] == b""


@pytest.mark.parametrize(
    ("options", "number"),
    [
        ({"use_dictionary": False}, 0),
        ({}, 8),
        ({"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}, 7),
    ],
)
def test_encodings_are_bits_and_texts_are_counted(any_kernels, options, number):
    *_, chunks, _ = kernels.read_footer(footer_of(TABLE.select(["text"]), **options))
    assert chunks.shape == (1, 9)
    assert chunks[0, 2] in (-1, 30)
    assert chunks[0, 3] >> number & 1


def test_a_file_without_row_groups_has_no_chunks(any_kernels):
    *_, counts, chunks, _ = kernels.read_footer(footer_of(TABLE[:0], row_group_size=1))
    assert len(counts) == len(chunks) // 4


def test_limits_whose_order_nobody_tells_are_left_out(any_kernels):
    footer = footer_of(TABLE)
    (at,) = [at for at in range(len(footer)) if bytes(footer[at : at + 4]) == bytes([0x19, 0x4C, 0x1C, 0x00])]
    unordered = np.concatenate([footer[:at], footer[at + 2 + 4 * 3 :]])  # a list of four structs
    *_, counts, chunks, limits = kernels.read_footer(unordered)
    assert counts.tolist() == [4]
    assert chunks[:, 4].tolist() == [0, 10, 0, -1]
    assert (chunks[:, 7:] == -1).all()
    assert limits == b""


def result_of(function, footer):
    try:
        return [one if isinstance(one, bytes) else one.tolist() for one in function(footer)]
    except kernels.KernelError as error:
        return str(error)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files of two schemas, without rows, with a long footer, damaged, cut, empty and missing; a folder."""
    folder = tmp_path_factory.mktemp("files")
    long = pa.table({f"a column with a long name {n}": ["x" * 30] for n in range(800)})
    for number, table in enumerate([TABLE, TABLE.select(["id"]), TABLE[:0], TABLE[5:], long]):
        pq.write_table(table, folder / f"{number}", row_group_size=7)
    content = (folder / "0").read_bytes()
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    for name, wrong in {
        "damaged": content[:start] + b"\xff" * 40 + content[start + 40 :], "cut": content[:-1], "short": b"PAR1", "empty": b"",
        "claims": content[:-8] + b"\xff\xff\xff\xff" + b"PAR1",
    }.items():  # fmt: skip
        (folder / name).write_bytes(wrong)
    (folder / "folder").mkdir()
    return folder


def test_footers_of_many_files_are_those_of_each(any_kernels, files):
    names = ["0", "damaged", "1", "cut", "2", "4", "folder", "short", "empty", "claims", "missing", "3"]
    descriptions, sizes, *found = kernels.read_footers([bytes(files / name) for name in names])
    assert sizes[:, 0].tolist() == [0, -1, 1, -1, 0, -1, -1, -1, -1, -1, -1, 0]
    assert (sizes[sizes[:, 0] < 0, 1:] == 0).all()
    row = chunk = limit = 0
    for name, (kind, groups, leaves, size) in zip(names, sizes.tolist(), strict=True):
        if kind < 0:
            continue
        content = (files / name).read_bytes()
        footer = content[-8 - int.from_bytes(content[-8:-4], "little") : -8]
        description, rows, counts, chunks, limits = kernels.read_footer(np.frombuffer(footer, np.uint8))
        ends = row + groups, chunk + groups * leaves, limit + size
        assert (descriptions[kind], counts.tolist()) == (description, [leaves] * groups)
        assert found[0][row : ends[0]].tolist() == rows.tolist()
        assert found[1][chunk : ends[1]].tolist() == chunks.tolist()
        assert found[2][limit : ends[2]] == limits
        row, chunk, limit = ends
    assert (row, chunk, limit) == (len(found[0]), len(found[1]), len(found[2]))
    assert len(descriptions) == 2


@pytest.mark.parametrize("paths", [[], [b"no such file"]])
def test_without_footers_there_are_no_numbers(any_kernels, paths):
    descriptions, sizes, rows, chunks, limits = kernels.read_footers(paths)
    shapes = sizes.shape, rows.shape, chunks.shape
    assert (descriptions, shapes, limits) == ((), ((len(paths), 4), (0,), (0, 9)), b"")


@pytest.mark.skipif(extension() is None, reason="native kernels were not built")
@given(st.data())
def test_damaged_footers_are_read_alike_or_refused_alike(data):
    content = bytearray(FOOTER.tobytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        how = data.draw(st.sampled_from(["flip", "cut", "insert", "delete"]))
        if how == "flip":
            content[at] = data.draw(st.integers(0, 255))
        elif how == "cut":
            del content[max(1, at) :]
        elif how == "insert":
            content[at:at] = data.draw(st.binary(min_size=1, max_size=12))
        else:
            del content[at : min(at + 3, len(content) - 1)]
    footer = np.frombuffer(bytes(content), np.uint8)
    assert result_of(kernels.read_footer, footer) == result_of(_in_python, footer)


def _in_python(footer):
    with kernels.use("reference"):
        return kernels.read_footer(footer)


@pytest.mark.parametrize("content", [b"", b"\x19\xfc\xff\xff\xff\xff\x0f", b"\xff" * 40, b"\x1c" * 5000])
def test_what_is_no_footer_is_refused(any_kernels, content):
    with pytest.raises(kernels.KernelError, match=r"^footer is damaged: ") as caught:
        kernels.read_footer(np.frombuffer(content, np.uint8))
    assert caught.value.kind == "damaged"
