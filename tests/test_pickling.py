"""What users hold can be pickled: by what it was made from, so that spawned processes work."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.job import Job

MAKE = {
    "Net": lambda path: sf.Net("y, m = pad(x.values, x.lengths)\nreturn y"),
    "Expression": lambda path: sf.Expression("x * 2 + 1"),
    "LoD": lambda path: sf.LoD([1, 2]),
    "Sequence": lambda path: sf.open(path)["x"],
    "PartialShape": lambda path: sf.PartialShape([sf.Dimension.dynamic(), 3]),
    "TensorSpec": lambda path: sf.TensorSpec("int32", sf.PartialShape([sf.Dimension.dynamic(), 3])),
    "Provider": lambda path: sf.open(path),
    "Loader": lambda path: sf.Loader(path, shuffle=True, batch=2, net="y, m = pad(x.values, x.lengths)"),
    "Mix": lambda path: sf.Mix({path: 1}, batch=2),
    "Job": lambda path: Job.from_dict({"source": {"paths": str(path)}, "output": {"path": "out"}}),
}


@pytest.fixture
def path(tmp_path):
    pq.write_table(pa.table({"x": [[1, 2], [], [3]], "s": ["a", "b", "a"]}), tmp_path / "x.parquet")
    return tmp_path / "x.parquet"


@pytest.mark.parametrize("kind", MAKE)
def test_it_can_be_pickled(path, kind):
    made = MAKE[kind](path)
    again = pickle.loads(pickle.dumps(made))
    assert type(again) is type(made)
    if kind in ("Loader", "Mix"):
        assert batches(again) == batches(made)
    else:
        assert pickle.dumps(again) == pickle.dumps(made)


def batches(loader):
    return [{name: batch[name].tolist() for name in batch} for batch in loader]


def test_a_loader_goes_on_where_it_was_and_takes_along_nothing_it_has_read(path):
    loader = sf.Loader(path, shuffle=True, batch=2)
    size = len(pickle.dumps(loader))
    first = batches(loader)
    assert len(pickle.dumps(loader)) - size < 100
    again = pickle.loads(pickle.dumps(loader))
    assert again.epoch == 1
    again.set_epoch(0)
    assert batches(again) == first


def test_other_sources_are_read_again_after_a_pickle(path, tmp_path):
    (tmp_path / "x.txt").write_text("text")
    with pa.ipc.new_file(tmp_path / "x.arrow", pa.schema([("x", pa.list_(pa.int64()))])) as file:
        file.write(pa.table({"x": [[1, 2]]}))
    codes = pa.table({"c": pa.array(["a", "b"]).dictionary_encode()})
    for source in (tmp_path / "x.txt", tmp_path / "x.arrow", {"x": [[1], [2, 3]]}, codes):
        loader = sf.Loader(source)
        assert batches(pickle.loads(pickle.dumps(loader))) == batches(loader)


def test_a_mapped_constant_is_pickled_by_its_file(tmp_path):
    np.save(tmp_path / "table.npy", np.arange(100_000.0))
    table = np.load(tmp_path / "table.npy", mmap_mode="r")
    for constant, expected in ((table, 3.0), (table[5:], 8.0)):
        net = sf.Net("y = gather(table, x)").bind(table=constant)
        pickled = pickle.dumps(net)
        assert sf.run(pickle.loads(pickled), {"x": np.array([3])})["y"].tolist() == [expected]
        assert (len(pickled) < 1000) == (constant is table)


def test_a_stream_cannot_be_pickled():
    with pytest.raises(TypeError, match="is a stream, which cannot be pickled"):
        pickle.dumps(sf.open(pa.table({"x": [1]}).to_reader()))
