"""Datasets of Hugging Face, and folders that they are saved in."""

import json
import pickle

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.errors import MissingSourceError, OpError, ProviderError, ProviderOptionError

datasets = pytest.importorskip("datasets")
ROWS = 1000
COLUMNS = {"id": list(range(ROWS)), "tokens": [[i] * (i % 5) for i in range(ROWS)]}
OPTIONS = {"batch": 64, "window": "4 KiB", "memory": "64 KiB", "batch_bytes": 2048}


@pytest.fixture
def dataset():
    return datasets.Dataset.from_dict(COLUMNS)


def ids(loader):
    return [i for batch in loader for i in batch["id"].tolist()]


def resumed(source):
    loader = sf.Loader(source, **OPTIONS)
    batches = iter(loader)
    before = [i for _ in range(5) for i in next(batches)["id"].tolist()]
    state = loader.state_dict()
    batches.close()
    other = sf.Loader(source, **OPTIONS)
    other.load_state_dict(state)
    return before + ids(other)


@pytest.mark.parametrize("form", [None, "arrow", "numpy", "pandas"])
def test_a_dataset_of_any_format_has_blocks_whose_rows_are_known(dataset, form):
    loader = sf.Loader(dataset.with_format(form), **OPTIONS)
    assert [ids(loader) for _ in range(2)] == [COLUMNS["id"]] * 2
    assert ids(pickle.loads(pickle.dumps(loader))) == COLUMNS["id"]
    assert loader.num_rows == ROWS
    assert len(list(loader.source.blocks())) > 5
    assert loader.source["tokens"].lengths.tolist() == [i % 5 for i in range(ROWS)]


def test_the_order_and_choice_of_rows_are_kept_and_not_flattened(dataset):
    chosen = dataset.shuffle(seed=1).filter(lambda i: i % 3 == 0, input_columns="id")
    expected = chosen["id"][:]
    loader = sf.Loader(chosen, **OPTIONS)
    assert [ids(loader) for _ in range(2)] == [expected] * 2
    assert resumed(chosen) == expected
    assert chosen.data.num_rows == ROWS


def test_columns_are_pruned_and_rows_of_a_block_are_read(dataset):
    provider = sf.open(dataset, columns=["tokens"], batch_bytes=2048)
    block = list(provider.blocks())[1]
    part = provider.read(block, rows=range(2, 5))
    assert part.column_names == ["tokens"]
    assert part.equals(provider.read(block).slice(2, 3))
    hidden = dataset.with_format("numpy", columns=["id"])
    assert sf.open(hidden).columns == ("id",)


def test_a_state_is_of_the_rows(dataset):
    state = sf.Loader(dataset).state_dict()
    sf.Loader(datasets.Dataset.from_dict(COLUMNS)).load_state_dict(state)
    with pytest.raises(OpError, match="data"):
        sf.Loader(dataset.shuffle(seed=1)).load_state_dict(state)


def test_images_are_fixed_size_lists():
    features = datasets.Features(
        {"x": datasets.Array2D((2, 3), "int32"), "label": datasets.ClassLabel(names=["a", "b"])}
    )
    images = datasets.Dataset.from_dict(
        {"x": np.arange(12).reshape(2, 2, 3), "label": [1, 0]}, features=features
    )
    batch = next(iter(sf.Loader(images)))
    assert batch["x.values.values"].tolist() == list(range(12))
    assert batch["label"].tolist() == [1, 0]


def test_a_transform_is_refused(dataset):
    with pytest.raises(ProviderOptionError, match=r"with a transform .*\n.*prepare="):
        sf.open(dataset.with_transform(lambda batch: batch))


def test_an_iterable_dataset_is_a_stream_for_each_epoch(dataset):
    stream = dataset.to_iterable_dataset(num_shards=3)
    loader = sf.Loader(stream, **OPTIONS)
    assert [ids(loader) for _ in range(2)] == [COLUMNS["id"]] * 2
    assert ids(pickle.loads(pickle.dumps(loader))) == COLUMNS["id"]
    assert resumed(stream) == COLUMNS["id"]
    shuffled = stream.shuffle(seed=3, buffer_size=100)
    assert resumed(shuffled) == [row["id"] for row in shuffled]
    assert sf.open(stream, columns=["tokens"])["tokens"].lengths.tolist() == [i % 5 for i in range(ROWS)]


def rows():
    yield from ({"id": i} for i in range(ROWS))


def test_an_iterable_dataset_without_features_needs_a_schema():
    stream = datasets.IterableDataset.from_generator(rows)
    with pytest.raises(ProviderOptionError, match="pass schema="):
        sf.open(stream)
    schema = pa.schema({"id": pa.int64()})
    assert resumed_with_schema(stream, schema) == COLUMNS["id"]
    with pytest.raises(ProviderError, match="without the column 'x'"):
        sf.open(stream, schema=pa.schema({"x": pa.int64()}))["x"]


def resumed_with_schema(stream, schema):
    loader = sf.Loader(stream, schema=schema, batch=64)
    assert ids(loader) == COLUMNS["id"]
    return ids(loader)


@pytest.mark.parametrize("kind", ["DatasetDict", "IterableDatasetDict"])
def test_splits_are_refused_by_their_names(dataset, kind):
    splits = getattr(datasets, kind)({"train": dataset, "test": dataset})
    with pytest.raises(
        ProviderError, match=rf"a {kind} has .* 'train', 'test'\nopen one of them, source\['train'\]"
    ):
        sf.open(splits)


def test_a_saved_dataset_is_read_in_its_order_without_caches_beside_it(dataset, tmp_path):
    dataset.shuffle(seed=1).save_to_disk(tmp_path / "d", num_shards=3)
    expected = dataset.shuffle(seed=1)["id"][:]
    cache = pa.table({"indices": pa.array([1, 2], pa.uint64())})
    with (
        pa.OSFile(str(tmp_path / "d" / "cache-1.arrow"), "w") as file,
        pa.ipc.new_stream(file, cache.schema) as writer,
    ):
        writer.write_table(cache)
    assert ids(sf.Loader(tmp_path / "d", batch=64)) == expected
    assert ids(sf.Loader(datasets.load_from_disk(str(tmp_path / "d")), batch=64)) == expected
    state = json.loads((tmp_path / "d" / "state.json").read_text())
    state["_data_files"].reverse()
    (tmp_path / "d" / "state.json").write_text(json.dumps(state))
    shards = [expected[:334], expected[334:667], expected[667:]]
    assert ids(sf.Loader(tmp_path / "d", batch=64)) == [i for shard in reversed(shards) for i in shard]
    (tmp_path / "d" / state["_data_files"][0]["filename"]).unlink()
    with pytest.raises(MissingSourceError, match="a saved dataset without its file data-00002"):
        sf.open(tmp_path / "d")


def test_a_saved_dataset_with_an_indices_mapping_is_refused(dataset, tmp_path):
    dataset.save_to_disk(tmp_path / "d")
    state = json.loads((tmp_path / "d" / "state.json").read_text())
    for files, is_refused in (([], False), (None, False), ([{"filename": "indices.arrow"}], True)):
        (tmp_path / "d" / "state.json").write_text(json.dumps(state | {"_indices_data_files": files}))
        if is_refused:
            with pytest.raises(ProviderError, match="a saved dataset with an indices mapping"):
                sf.open(tmp_path / "d")
        else:
            assert len(sf.open(tmp_path / "d")) == ROWS
