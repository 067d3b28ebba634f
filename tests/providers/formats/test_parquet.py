"""Parquet files as blocks of columns."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from marks import thorough

import seqflow as sf
from seqflow.errors import ProviderError, UnknownColumnError
from seqflow.record import from_arrow

ROWS = 1000


@pytest.fixture(scope="module")
def table():
    return pa.table(
        {
            "tokens": pa.array([[i] * (i % 4) for i in range(ROWS)], pa.list_(pa.int32())),
            "label": pa.array(range(ROWS), pa.int64()),
            "docs": [[{"title": f"t{i}", "words": [i, i]}] for i in range(ROWS)],
            "s": [{"a": i, "b": str(i)} for i in range(ROWS)],
            "m": pa.array([[("k", i)] for i in range(ROWS)], pa.map_(pa.string(), pa.int64())),
        }
    )


@pytest.fixture
def path(table, tmp_path):
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=300)
    return tmp_path / "x.parquet"


def test_a_list_column_is_values_and_lengths_across_row_groups(path, table):
    values, lengths = sf.open(path)["tokens"].unpack()
    assert values.tolist() == table["tokens"].combine_chunks().flatten().to_pylist()
    assert values.dtype == np.int32
    assert lengths.tolist() == [i % 4 for i in range(ROWS)]


def test_a_list_column_is_a_sequence(path):
    tokens = sf.open(path)["tokens"]
    assert isinstance(tokens, sf.Sequence)
    assert len(tokens) == ROWS
    assert tokens[3].tolist() == list(tokens)[3].tolist() == tokens.values[3:6].tolist()


def test_a_path_may_be_text(path):
    assert len(sf.open(str(path))["label"]) == ROWS


def test_a_column_of_structs_in_lists_is_a_record(path):
    assert list(sf.open(path)["docs"]) == [
        "lengths",
        "values.title.lengths",
        "values.title.values",
        "values.words.lengths",
        "values.words.values",
    ]


def test_row_groups_are_blocks(path):
    provider = sf.open(path)
    blocks = list(provider.blocks())
    assert [(block.origin, block.index, block.num_rows) for block in blocks] == [
        (str(path), 0, 300),
        (str(path), 1, 300),
        (str(path), 2, 300),
        (str(path), 3, 100),
    ]
    assert provider.read(blocks[1], ["label"])["label"].to_pylist() == list(range(300, 600))


def test_footers_give_the_number_of_rows_and_the_bytes_in_memory(path):
    provider = sf.open(path, columns=["label"])
    assert len(provider) == provider.num_rows == ROWS
    assert [block.nbytes for block in provider.blocks()] == [2400, 2400, 2400, 800]


def test_bytes_count_only_the_columns_chosen(path):
    def whole(columns):
        return sum(block.nbytes for block in sf.open(path, columns=columns).blocks())

    assert whole(["label"]) < whole(["label", "tokens"]) < whole(None)


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        (["label", "tokens"], ["label", "tokens.lengths", "tokens.values"]),
        (["docs.title"], ["docs.lengths", "docs.values.title.lengths", "docs.values.title.values"]),
        (["docs.values.words"], ["docs.lengths", "docs.values.words.lengths", "docs.values.words.values"]),
        (["s.b", "label", "s.a"], ["s.a", "s.b.lengths", "s.b.values", "label"]),
        (["m"], ["m.lengths", "m.keys.lengths", "m.keys.values", "m.values"]),
    ],
)
def test_columns_pick_columns_and_fields(path, columns, names):
    provider = sf.open(path, columns=columns)
    batch = provider.read(next(provider.blocks()))
    assert batch.schema.equals(provider.schema)
    assert list(from_arrow(batch)) == names


def test_columns_that_were_not_chosen_are_not_read(path):
    provider = sf.open(path)
    data = bytearray(path.read_bytes())
    column = pq.ParquetFile(path).metadata.row_group(0).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    path.write_bytes(data)
    assert provider.read(next(provider.blocks()), ["docs.title"]).num_rows == 300
    with pytest.raises(ProviderError, match=r"x\.parquet, row group 0 can't be read"):
        provider.read(next(provider.blocks()), ["tokens"])


def test_a_read_may_narrow_the_columns_further(path):
    provider = sf.open(path, columns=["docs", "s.b"])
    assert provider.read(next(provider.blocks()), ["docs.title"]).schema.names == ["docs"]
    with pytest.raises(UnknownColumnError, match="s has no field 'a'"):
        provider.read(next(provider.blocks()), ["s.a"])


def test_no_columns_are_rows_all_the_same(path):
    provider = sf.open(path)
    assert provider.read(next(provider.blocks()), []).num_rows == 300


def test_columns_come_under_their_new_names(path):
    provider = sf.open(path, rename={"label": "y", "docs.title": "t"}, columns=["docs.t", "y"])
    batch = provider.read(next(provider.blocks()))
    assert batch.schema.names == ["docs", "y"]
    assert batch["docs"][7].as_py() == [{"t": "t7"}]
    assert provider["y"].tolist() == list(range(ROWS))


def test_a_dotted_column_asks_for_rename(tmp_path):
    pq.write_table(pa.table({"a.b": [[1], [2]], "a": [3, 4]}), tmp_path / "x.parquet")
    with pytest.raises(ProviderError, match="rename="):
        sf.open(tmp_path / "x.parquet")
    provider = sf.open(tmp_path / "x.parquet", rename={"a.b": "ab"})
    assert provider["ab"].values.tolist() == [1, 2]
    assert provider["a"].tolist() == [3, 4]


def test_duplicate_columns_ask_for_rename(tmp_path):
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "x.parquet")
    with pytest.raises(ProviderError, match="rename="):
        sf.open(tmp_path / "x.parquet")
    provider = sf.open(tmp_path / "x.parquet", rename=["a", "b"])
    assert (provider["a"].tolist(), provider["b"].tolist()) == ([1], [2])


def test_many_files_are_one_provider_in_order_of_their_paths(table, tmp_path):
    for part in (2, 0, 1):
        pq.write_table(table.slice(part * 100, 100), tmp_path / f"{part}.parquet")
    assert sf.open(tmp_path)["label"].tolist() == list(range(300))
    assert sf.open(tmp_path / "*.parquet").num_rows == 300


def test_files_may_have_their_columns_in_another_order(tmp_path):
    pq.write_table(pa.table({"a": [1], "b": ["x"]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"b": ["y"], "a": [2]}), tmp_path / "1.parquet")
    provider = sf.open(tmp_path)
    assert provider["a"].tolist() == [1, 2]
    assert [provider.read(block).schema.names for block in provider.blocks()] == [["a", "b"]] * 2


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"a": ["x"]}, r"'a' is int64 in .*0\.parquet, but string in .*1\.parquet: a number is not a text"),
        (
            {"a": [1.5]},
            r"'a' is int64 in .*0\.parquet, but double in .*1\.parquet[^$]*schema=\{'a': 'float64'\}",
        ),
    ],
)
def test_files_that_disagree_are_an_error_naming_both(tmp_path, other, message):
    pq.write_table(pa.table({"a": [1]}), tmp_path / "0.parquet")
    pq.write_table(pa.table(other), tmp_path / "1.parquet")
    with pytest.raises(ProviderError, match=message):
        sf.open(tmp_path)


def test_files_may_disagree_about_columns_that_were_not_chosen(tmp_path):
    pq.write_table(pa.table({"a": [1], "s": [{"x": 1}]}), tmp_path / "0.parquet")
    pq.write_table(pa.table({"s": [{"x": 2, "y": 3}], "b": [4], "a": [2]}), tmp_path / "1.parquet")
    assert sf.open(tmp_path, columns=["a"])["a"].tolist() == [1, 2]
    assert sf.open(tmp_path, columns=["s.x"])["s"]["x"].tolist() == [1, 2]


def test_an_unknown_column_names_the_nearest(path):
    with pytest.raises(UnknownColumnError, match="did you mean 'tokens'"):
        sf.open(path, columns=["token"])
    with pytest.raises(UnknownColumnError, match="did you mean 'tokens'"):
        sf.open(path)["token"]


@pytest.mark.parametrize("data", [b"", b"PAR1", b"this is not Parquet at all"])
def test_what_is_not_parquet_is_an_error_naming_the_file(tmp_path, data):
    (tmp_path / "x.parquet").write_bytes(data)
    with pytest.raises(ProviderError, match=r"x\.parquet is not a Parquet file, or damaged"):
        sf.open(tmp_path / "x.parquet")


def test_a_truncated_file_is_an_error_naming_the_file(path):
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ProviderError, match=r"x\.parquet is not a Parquet file, or damaged"):
        sf.open(path)


@pytest.mark.parametrize("options", [{"memory_map": False}, {"use_threads": True}])
def test_reading_may_be_tuned(path, options):
    assert sf.open(path, format=sf.Parquet(**options))["label"].tolist() == list(range(ROWS))


def test_a_file_without_rows_has_a_schema(tmp_path):
    pq.write_table(pa.table({"c": pa.array([], pa.list_(pa.int8()))}), tmp_path / "x.parquet")
    provider = sf.open(tmp_path / "x.parquet")
    values, lengths = provider["c"].unpack()
    assert len(provider) == len(values) == len(lengths) == 0
    assert provider


def test_a_file_without_row_groups_has_no_rows(tmp_path):
    table = pa.table({"a": [1, 2], "b": [["x"], []]})
    pq.write_table(table, tmp_path / "one.parquet")
    pq.ParquetWriter(tmp_path / "none.parquet", table.schema).close()
    provider = sf.open(tmp_path / "none.parquet", where="a > 0")
    assert provider.schema == table.schema
    assert list(sf.Loader(provider)) == []
    for first, second in (("one", "none"), ("none", "one")):
        paths = [tmp_path / f"{name}.parquet" for name in (first, second)]
        found = [sf.to_arrow(batch) for batch in sf.Loader(paths, shuffle=sf.Shuffle(seed=1))]
        assert sorted(row["a"] for one in found for row in one.to_pylist()) == [1, 2]
        assert len(sf.open(paths)) == 2
    assert sf.open(tmp_path / "*.parquet")["a"].tolist() == [1, 2]


def test_files_without_columns_are_an_error(tmp_path):
    table = pa.table({"a": [1, 2]})
    pq.write_table(table, tmp_path / "one.parquet")
    pq.write_table(table.select([]), tmp_path / "none.parquet")
    with pa.ipc.new_file(tmp_path / "none.arrow", pa.schema([])):
        pass
    for suffix in ("parquet", "arrow"):
        with pytest.raises(ProviderError, match=rf"none\.{suffix} has no columns"):
            sf.open(tmp_path / f"none.{suffix}")
    assert sf.open(tmp_path / "*.parquet")["a"].tolist() == [1, 2]


def test_the_repr_shows_source_rows_and_schema(path):
    shown = repr(sf.open(path, columns=["label", "tokens"]))
    assert shown == (
        f"Provider of parquet, {path}, 1000 rows\n  label: int64\n  tokens: list<element: int32>"
    )


@pytest.mark.slow
@pytest.mark.parametrize("dictionary", [*thorough(False), True])
def test_a_row_group_with_more_than_2_gib_of_nested_text_is_shuffled(tmp_path, dictionary):
    """Arrow makes no list array of them. Of a dictionary, which has each text once, the footer need not tell it."""
    text = "x" * (1 << 20)
    rows = 264
    lists = pa.chunked_array([pa.array([[text] * 8] * 24, pa.list_(pa.string()))] * (rows // 24))
    table = pa.table({"i": range(rows), "l": lists})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, row_group_size=rows, compression="zstd", use_dictionary=dictionary)
    loader = sf.Loader(path, batch=8, shuffle=True, window="4 GiB", memory="8 GiB")
    found = []
    for batch in loader:
        assert batch["l.values.lengths"].tolist() == [1 << 20] * 8 * batch.num_rows
        assert batch["l.values.values"][:: 1 << 18].tolist() == [ord("x")] * 32 * batch.num_rows
        found += batch["i"].tolist()
    assert found != sorted(found)
    assert sorted(found) == list(range(rows))


def test_files_that_are_described_together_are_described_as_each_alone(tmp_path):
    texts = pa.array(["long text " * 9] * 40 + ["x"] * 60).dictionary_encode()
    tables = {
        "a": pa.table({"x": range(100), "text": ["a" * n for n in range(100)]}),
        "b": pa.table({"x": range(100), "text": texts}),
        "c": pa.table({"x": range(0), "text": pa.array([], pa.string())}),
        "d": pa.table({"x": range(100), "other": [[1, 2]] * 100}),
        "e": pa.table({"x": range(100), "text": texts}),
    }
    for name, table in tables.items():
        for size in (1, 7, 1000):  # 100 row groups, 15 and 1: more of them than are described at once
            pq.write_table(table, tmp_path / f"{name}{size}.parquet", row_group_size=size)
    provider = sf.open(str(tmp_path), schema="unify")
    found = {path: [] for path in provider.source.paths}
    for block in provider.blocks():
        found[block.origin].append(block)
    for path, blocks in found.items():
        alone = provider.source.of_files([path])
        assert blocks == list(alone.blocks(provider.schema))
        assert provider.source.uncounted[path] == alone.uncounted[path]
    columns = provider.source.blocks(provider.schema)
    assert columns.nbytes.tolist() == [block.nbytes for blocks in found.values() for block in blocks]


def test_of_many_files_of_one_schema_a_damaged_one_is_named(tmp_path):
    table = pa.table({"x": range(20)})
    for name in "abc":
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=7)
    content = (tmp_path / "b.parquet").read_bytes()
    assert content.count(b"\x16\x28\x19") == 1  # 20 rows in row groups of 7, 7 and 6
    (tmp_path / "b.parquet").write_bytes(content.replace(b"\x16\x28\x19", b"\x16\x2a\x19"))
    with pytest.raises(
        ProviderError, match=r"b\.parquet has a damaged footer: 21 rows, in row groups of \[7, 7, 6\]"
    ):
        sf.open(str(tmp_path / "*.parquet"))
    assert list(sf.open(str(tmp_path / "*.parquet"), bad_files="skip")["x"]) == [*range(20)] * 2


def test_files_of_one_schema_have_their_own_metadata(tmp_path):
    for name, metadata in (("a", None), ("b", {"k": "1"}), ("c", None)):
        pq.write_table(pa.table({"x": [1]}).replace_schema_metadata(metadata), tmp_path / f"{name}.parquet")
    first, second = (sf.open(tmp_path / f"{name}.parquet").schema.metadata for name in "ab")
    assert (first, second) == (None, {b"k": b"1"})
    assert list(sf.open(tmp_path)["x"]) == [1, 1, 1]


def test_files_that_are_read_together_and_alone_keep_their_order(tmp_path):
    """Footers are read 256 at a time, but for long ones and damaged ones."""
    for number, name in enumerate("abc"):
        columns = {f"{name * 1000}{at}": ["x"] for at in range(40)} if name == "b" else {}
        pq.write_table(pa.table({"n": [number], **columns}), tmp_path / f"{name}0.parquet")
    (tmp_path / "c1.parquet").write_bytes((tmp_path / "c0.parquet").read_bytes()[:-1])
    for number in range(300):
        (tmp_path / f"a0-{number:03}.parquet").write_bytes((tmp_path / "a0.parquet").read_bytes())
    provider = sf.open(tmp_path, columns=["n"], bad_files="skip")
    assert provider["n"].tolist() == [0] * 301 + [1, 2]
    assert [one.path for one in provider.damaged] == [str(tmp_path / "c1.parquet")]
