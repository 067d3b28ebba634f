"""Vocabulary: keys get ids, in memory, in files, and as a constant of nets."""

import pickle

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.errors import OpIndexError, OpTypeError, UnknownColumnError

TEXT, LENGTHS = np.frombuffer("réos".encode(), np.uint8), np.array([3, 0, 2])
MAPS = pa.table(
    {
        "imports": pa.array(
            [[("os", [1, 2]), ("re", [])], None, [("os", [2, None])]],
            pa.map_(pa.string(), pa.list_(pa.int64())),
        ),
        "nested": pa.array([{"names": [["b"], ["a", None]]}, None, {"names": [["b", ""]]}]),
    }
)


def test_new_keys_get_the_next_ids_in_the_order_they_are_seen():
    vocabulary = sf.Vocabulary()
    assert vocabulary.add([700, 30, 700]).tolist() == [1, 2, 1]
    assert vocabulary.add(np.array([5, 30], np.int32)).tolist() == [3, 2]
    assert (vocabulary.keys, vocabulary.size) == ([700, 30, 5], 4)


@pytest.mark.parametrize(
    "keys",
    [
        ["ré", "", "os"],
        np.array(["ré", "", "os"]),
        pa.array(["ré", "", "os"]),
        pa.chunked_array([["ré", ""], ["os"]]).dictionary_encode(),
        pa.array([["ré", ""], [], ["os"]]),
        sf.Sequence(TEXT, LENGTHS),
        dict.fromkeys(["ré", "", "os"]).keys(),
    ],
    ids=["list", "numpy", "arrow", "chunked dictionary", "lists", "Sequence", "iterable"],
)
def test_texts_of_any_form_are_the_same_keys(keys):
    assert sf.Vocabulary(keys).keys == ["ré", "", "os"]


def test_strings_are_bytes_with_lengths():
    vocabulary = sf.Vocabulary()
    assert vocabulary.add(TEXT, LENGTHS).tolist() == [1, 2, 3]
    assert vocabulary.encode(TEXT[3:], [2]).tolist() == [3]
    assert sf.Vocabulary([b"\xff"]).keys == [b"\xff"]


def test_build_orders_by_count_then_by_key_whatever_the_order_of_rows():
    keys = [5, 3, 5, 7, 7, 1, 9]
    found = [sf.Vocabulary.build(order).keys for order in (keys, keys[::-1], sorted(keys))]
    assert found == [[5, 7, 1, 3, 9]] * 3
    assert sf.Vocabulary.build(keys, min_count=2).keys == [5, 7]
    assert sf.Vocabulary.build(keys, max_size=2).keys == [5]
    assert sf.Vocabulary.build(keys, min_count=9).size == 1


@pytest.mark.parametrize(
    ("column", "keys"),
    [
        ("imports.keys", ["os", "re"]),
        ("imports.values", [2, 1]),
        ("nested.names", ["b", "", "a"]),
        ("nested.names.values", ["b", "", "a"]),
    ],
)
def test_a_column_is_read_at_any_depth_without_its_nulls(column, keys):
    assert sf.Vocabulary.build(MAPS, column).keys == keys
    assert sf.Vocabulary.build(pa.concat_tables([MAPS.slice(1), MAPS.slice(0, 1)]), column).keys == keys


LAYOUTS = [pa.list_, pa.large_list, pa.list_view, pa.large_list_view, lambda kind: pa.list_(kind, 1)]


@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.string_view(), pa.binary_view()])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_column_of_any_layout_is_read_without_its_nulls_sliced_or_not(layout, text):
    lists = pa.array([["x"], ["b"], None, [None], ["a"], ["y"]], layout(text)).slice(1, 4)
    assert sf.Vocabulary.build(pa.table({"c": lists}), "c").keys == ["a", "b"]
    runs = pa.RunEndEncodedArray.from_arrays([2, 3, 4], pa.array(["x", None, "a"], text)).slice(1)
    assert sf.Vocabulary.build(pa.table({"c": runs}), "c").keys == ["a", "x"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_null_list_of_keys_is_an_error(layout):
    with pytest.raises(sf.OpError, match=r"keys\[1\] is null, expected a list of keys"):
        sf.Vocabulary.build(pa.array([["a"], None], layout(pa.string())))


def test_counts_of_many_blocks_are_added_up(tmp_path):
    from pyarrow import parquet

    table = pa.table({"ids": np.arange(40) % 7})
    parquet.write_table(table, tmp_path / "ids.parquet", row_group_size=5)
    assert sf.Vocabulary.build(tmp_path / "ids.parquet", "ids", min_count=6).keys == [0, 1, 2, 3, 4]


def test_a_vocabulary_is_a_constant_of_a_net(tmp_path):
    vocabulary = sf.Vocabulary.build([30, 700, 700])
    net = sf.Net("y = encode(x, v)\nreturn y")
    np.save(tmp_path / "v.npy", vocabulary.table)
    for constant in (vocabulary, vocabulary.table, np.load(tmp_path / "v.npy", mmap_mode="r")):
        assert sf.run(net.bind(v=constant), {"x": np.array([700, 5])})["y"].tolist() == [1, 0]


@pytest.mark.parametrize("keys", [[], [3, -1], ["b", "", "ä"], [b"\xff", b""]], ids=repr)
def test_files_and_pickles_keep_it(keys, tmp_path):
    for vocabulary in (sf.Vocabulary(keys, max_size=9), sf.Vocabulary(keys).freeze()):
        vocabulary.save(tmp_path / "keys.arrow")
        for kept in (sf.Vocabulary.load(tmp_path / "keys.arrow"), pickle.loads(pickle.dumps(vocabulary))):
            assert kept == vocabulary
            assert (kept.max_size, kept.is_frozen) == (vocabulary.max_size, vocabulary.is_frozen)
            assert kept.encode(keys).tolist() == list(range(1, len(keys) + 1))


@pytest.mark.parametrize(
    ("run", "error", "message"),
    [
        (lambda: sf.Vocabulary([1]).freeze().add([2]), sf.OpError, "the vocabulary is frozen, no key can be added"),
        (lambda: sf.Vocabulary([4, 5, 6], max_size=3), sf.OpError, r"1 of 3 ids .* none is left for 6: 3 keys are new"),
        (lambda: sf.Vocabulary(max_size=0), sf.OpError, "max_size is 0, expected 1 or more"),
        (lambda: sf.Vocabulary.build([1], min_count=0), sf.OpError, "min_count is 0, expected 1 or more"),
        (lambda: sf.Vocabulary([1]).table, sf.OpError, "the vocabulary is open"),
        (lambda: sf.ops.encode([1], sf.Vocabulary([1])), sf.OpError, "^encode: the vocabulary is open"),
        (lambda: sf.Vocabulary([1]).add(["a"]), OpTypeError, "keys are strings, but .* are integers"),
        (lambda: sf.Vocabulary([1, "a"]), OpTypeError, "neither all integers nor all strings"),
        (lambda: sf.Vocabulary([1.5]), OpTypeError, "keys are double, expected integers or strings"),
        (lambda: sf.Vocabulary("os"), OpTypeError, "keys is str, expected integers or strings"),
        (lambda: sf.Vocabulary([1, None]), sf.OpError, r"keys\[1\] is null"),
        (lambda: sf.Vocabulary(np.array([2**63], np.uint64)), sf.OpError, "do not fit int64"),
        (lambda: sf.Vocabulary().add(TEXT, [9]), sf.OpError, r"sum\(lengths\) is 9 but keys has 5 bytes"),
        (lambda: sf.Vocabulary().add(TEXT, [6, -1]), sf.OpError, r"lengths\[1\] = -1 is negative"),
        (lambda: sf.Vocabulary([1]).encode([7], on_unknown="raise"), OpIndexError, r"ids\[0\] = 7 is not in"),
        (lambda: sf.Vocabulary(["a"]).encode(["a", "b"], on_unknown="raise"), OpIndexError, r"strings\[1\] = b'b'"),
        (lambda: sf.Vocabulary.build(MAPS, "import"), UnknownColumnError, "did you mean 'imports'"),
        (lambda: sf.Vocabulary.build(MAPS, "imports.names"), UnknownColumnError, "has no part 'names'"),
    ],
)  # fmt: skip
def test_what_it_cannot_do_is_said(run, error, message):
    with pytest.raises(error, match=message):
        run()


def test_an_overflow_adds_nothing():
    vocabulary = sf.Vocabulary([1], max_size=3)
    with pytest.raises(sf.OpError):
        vocabulary.add([2, 3])
    assert vocabulary.keys == [1]


def test_a_file_keeps_the_counts_and_is_read_without_rare_keys(tmp_path):
    path = tmp_path / "keys.arrow"
    built = sf.Vocabulary.build(["b", "a", "b", "c", "c", "b"])
    built.save(path)
    assert pa.ipc.open_file(path).read_all()["count"].to_pylist() == [3, 2, 1]
    assert repr(sf.Vocabulary.load(path)) == repr(built)
    assert sf.Vocabulary.load(path, min_count=2).keys == ["b", "c"]
    assert sf.Vocabulary.load(path, min_count=4).keys == []
    sf.Vocabulary(["a"]).save(path)
    with pytest.raises(sf.OpError, match=r"min_count is 2, but .* has no counts"):
        sf.Vocabulary.load(path, min_count=2)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "keys.arrow"
    vocabulary = sf.Vocabulary(["a", "b"])
    vocabulary.save(path)
    table = pa.ipc.open_file(path).read_all()
    assert table.column_names == ["id", "key"]
    assert table["key"].to_pylist() == ["a", "b"]
    for damaged, message in [
        (table.replace_schema_metadata({}), "is not a vocabulary"),
        (table.set_column(0, "id", [[1, 3]]), "the column id is not 1, 2, 3"),
        (table.set_column(1, "key", [["a", "a"]]), "1 keys occur more than once"),
        (table.set_column(1, "key", [["a", None]]), r"keys\[1\] is null"),
        (table.append_column("count", [[1.5, 2.0]]), "the column count is double, expected int64"),
    ]:
        with pa.ipc.new_file(path, damaged.schema) as writer:
            writer.write_table(damaged)
        with pytest.raises(sf.ProviderError, match=message):
            sf.Vocabulary.load(path)
    path.write_bytes(b"no Arrow file")
    with pytest.raises(sf.ProviderError, match=r"keys\.arrow: .*\n  make it again$"):
        sf.Vocabulary.load(path)
    with pytest.raises(sf.ProviderError, match=r"absent\.arrow"):
        sf.Vocabulary.load(tmp_path / "absent.arrow")
