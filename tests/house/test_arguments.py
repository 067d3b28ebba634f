"""Every argument of every public function: what it does not take is an error of ours that names it."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from marks import slow

import seqflow as sf
import seqflow.job
import seqflow.ray
import seqflow.torch
from seqflow.errors import OpTypeError, SeqflowError

TABLE = pa.table({"n": [1, 2, 3, 4], "t": [[1, 2], [3], [], [4, 5, 6]]})
MAPS = pa.array([[("k", [1])], [], [("l", [2])]], pa.map_(pa.string(), pa.list_(pa.int64())))
RECORD = sf.from_arrow(pa.table({"m": MAPS}))
X, N = np.arange(6.0), np.array([2, 1, 0, 3])
VALUES: dict[str, Any] = {
    "an object": object(), "None": None, "-1": -1, "0.5": 0.5, "text": "\ud800\0", "a dict": {5: 5}, "[]": [],
}  # fmt: skip
FURTHER: dict[str, Any] = {
    "0": 0, "nan": float("nan"), "True": True, "no text": "", "bytes": b"x", "{}": {}, "twice": ["a", "a"],
    "[None]": [None], "an array": np.array([]), "1j": 1j, "long": 2**70, "a set": set(), "dots": ...,
    "an int of NumPy": np.int64(1), "a dict of objects": {"a": object()}, "()": (),
}  # fmt: skip


WORDS = {
    "source": ["record batch"], "obj": ["record batch"], "tables": ["table"], "level": ["lod[0]"],
    "low": ["not a size"], "high": ["not a size"], "other": ["not a size", "PartialShape"], "lengths": ["keys"], "pad": ["Pad: fill"],
    "shape": ["PartialShape"], "update": ["no index"], "anew": ["no index"],
}  # fmt: skip
"""Arguments whose errors speak of them in other words."""


class Door(NamedTuple):
    """A public function, arguments that it takes, and the use that reads what it opens."""

    function: Callable[..., Any]
    given: dict[str, Any]
    use: Callable[[Any], object] = repr
    any_value: tuple[str, ...] = ()
    """Arguments that take any object, or are looked at in some calls only."""


def loader(**options: Any) -> sf.Loader:
    return sf.Loader(TABLE, **options)


def first(batches: Any) -> list[Any]:
    return list(islice(batches, 2))


def of_plan(plan: Any) -> list[Any]:
    return first(loader(batch=plan, columns=["t"]))


def read(provider: sf.providers.Provider) -> list[Any]:
    return [provider.read(block) for block in provider.blocks()]


def packed() -> Any:
    return next(iter(loader(columns=["t"], batch=sf.Packed(8, multiple_of=2))))


def defaults(function: Any, **given: Any) -> dict[str, Any]:
    """These arguments, and all others with their defaults."""
    parameters = inspect.signature(function).parameters.values()
    own = {
        one.name: one.default_factory() if hasattr(one, "default_factory") else one.default
        for one in parameters
        if one.default is not one.empty and "factory" not in str(one.default)
    }
    return own | given


def door(function: Any, use: Any = repr, any_value: tuple[str, ...] = (), **given: Any) -> Door:
    return Door(function, defaults(function, **given), use, any_value)


OPTIONS = dict.fromkeys(("columns", "where", "rename", "fill", "valid", "batch_bytes"), None) | {
    "valid": False
}
DOORS: dict[str, Door] = {
    "open": door(sf.open, read, source=TABLE, batch_bytes=None),
    "open Parquet": door(sf.open, read, source="x.parquet", partitioning=None, options=None),
    **{name: door(getattr(sf, name)) for name in ("Arrow", "JsonLines", "Megatron", "Numpy", "Tar", "Text")},
    "Parquet": door(sf.Parquet, lambda format: read(sf.open("x.parquet", format=format))),
    "Csv": door(sf.Csv, lambda format: read(sf.open("x.csv", format=format))),
    "from_rows": door(sf.from_rows, rows=TABLE.slice(0, 1).to_pylist(), like=sf.Loader(TABLE)),
    "from_arrow": door(sf.from_arrow, obj=TABLE),
    "to_arrow": door(sf.to_arrow, record=RECORD),
    "features": door(sf.features, record=RECORD, column="m", names=["k"]),
    "pool_features": door(sf.pool_features, any_value=("weights",), tables=np.eye(8), record=sf.features(RECORD, "m", ["k"]), names=["k"]),
    "arrow_function": door(sf.arrow_function, lambda function: function(TABLE), net="y = n + 1"),
    "run": door(sf.run, any_value=("reseed",), net="y = x + 1", tensors={"x": X}),
    "set_num_threads": door(sf.set_num_threads, count=1),
    "Sequence": door(sf.Sequence, values=X, lod=[N]),
    "from_lists": door(sf.Sequence.from_lists, lists=[[1], [2]]),
    "LoD": Door(lambda level: sf.LoD(level), {"level": N}),
    "Dimension.symbol": door(sf.Dimension.symbol, name="n"),
    "Dimension.sum_of": door(sf.Dimension.sum_of, lengths="n"),
    "Dimension.parse": door(sf.Dimension.parse, text="n"),
    "Dimension.merge": door(sf.Dimension.parse("n").merge, other=3),
    "PartialShape": door(sf.PartialShape, dimensions=[1, "n"]),
    "PartialShape.parse": door(sf.PartialShape.parse, text="{1}"),
    "PartialShape.merge": door(sf.PartialShape([2, "n"]).merge, other=[2, 3]),
    "TensorSlice": door(sf.TensorSlice, starts=(0,), lengths=(2,)),
    "TensorSlice.full": door(sf.TensorSlice.full, rank=2),
    "TensorSlice.parse": door(sf.TensorSlice.parse, text="-"),
    "TensorSlice.apply": door(sf.TensorSlice.full(2).apply, array=np.zeros((2, 2))),
    "TensorSlice.intersect": door(sf.TensorSlice.full(2).intersect, other=sf.TensorSlice.full(2)),
    "TensorSpec": door(sf.TensorSpec, any_value=("rows", "axes", "points"), dtype="int64", shape=[2]),
    "Expression": door(sf.Expression, text="a + b"),
    "with_inputs": door(sf.Expression("a + b").with_inputs, names=["a", "b"]),
    "Net": door(sf.Net, text="y = a + w"),
    "Net.infer": door(sf.Net("y = a + 1").infer, specs={"a": sf.TensorSpec("int64", [2])}),
    "Net.gradient": door(sf.Net("l = reduce_sum(x * x)").gradient, of="l", wrt=["x"]),
    "Vocabulary": door(sf.Vocabulary, keys=["a"]),
    "Vocabulary.build": door(sf.Vocabulary.build, source=TABLE, column="n"),
    "Vocabulary.encode": door(sf.Vocabulary(["a"]).encode, keys=["a"]),
    "Vocabulary.save": door(sf.Vocabulary(["a"]).save, path="v.arrow"),
    "Vocabulary.load": door(sf.Vocabulary.load, path="v.arrow"),
    "BadFiles": door(sf.BadFiles, lambda policy: sf.open("rows.parquet", bad_files=policy)),
    "BadRows": door(sf.BadRows, lambda policy: first(loader(bad_rows=policy))),
    "Balance": door(sf.Balance, group=2, linear=2.0),
    "Buckets": door(sf.Buckets, of_plan, boundaries=2, plan=sf.Rows(2)),
    "Rows": door(sf.Rows, of_plan, n=2),
    "TokenBudget": door(sf.TokenBudget, of_plan, max_tokens=8),
    "Packed": door(sf.Packed, of_plan, capacity=8, rows=2, fills={}, first_fills={}),
    "Along": door(sf.Along, repr, start="start", extent="extent"),
    "Pad": door(sf.Pad, lambda pad: first(loader(pad={"t": pad})), fill=0),
    "Prefetch": door(sf.Prefetch, threads=1),
    "Ranks": door(sf.Ranks, rank=0, world_size=1),
    "Shuffle": door(sf.Shuffle, seed=1),
    "Schedule": door(sf.Schedule, points={0: 1.0}),
    "Schedule.at": door(sf.Schedule({0: 1.0}).at, number=1),
    "Loader": door(sf.Loader, first, source=TABLE, batch=2, window=100, threads=0, **OPTIONS),
    "Loader of ranks": door(sf.Loader, first, source=TABLE, rank=0, world_size=1, tail="drop", threads=1, memory=None, reuse=False),
    "lengths_index": door(sf.Loader(TABLE, batch=2).lengths_index),
    "load_state_dict": door(loader().load_state_dict, state=loader().state_dict()),
    "set_epoch": door(loader().set_epoch, epoch=1),
    "batch_at": door(loader().batch_at, number=0),
    "take": door(loader().take, n=1),
    "trace": door(loader().trace, number=0),
    "replay": door(loader().replay, steps=1),
    "metrics": door(loader().metrics, path="metrics.jsonl", every=1.0),
    "verdict": door(sf.verdict, ranks=[{"limit": None, "rank": 0, "steps": 3}]),
    "Mix": door(sf.Mix, first, sources={"a": TABLE, "b": TABLE}, weights={"a": 1, "b": 2}, batch=4, threads=0),
    "serve": door(sf.serve, lambda server: server.close(), loader=loader(), port=0, host="127.0.0.1"),
    "served": door(sf.served, url="flight://127.0.0.1:1", timeout=0.01),
    "registry.get": door(sf.registry.get, name="pad"),
    "registry.register": Door(sf.registry.register, {"definition": 3}),
    "op": door(sf.op, signature="x[N] -> y[N]"),
    "job.run": Door(seqflow.job.run, {"job": 3}),
    "Job.from_dict": door(seqflow.job.Job.from_dict, tables={"source": {"paths": "x.parquet"}}),
    "ray.dataset": Door(seqflow.ray.dataset, {"source": 3}),
}  # fmt: skip


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(TABLE, "x.parquet")
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    sf.Vocabulary(["a"]).save("v.arrow")
    yield
    sf.set_num_threads(1)


@pytest.mark.parametrize("values", ["VALUES", *slow("FURTHER")])
@pytest.mark.parametrize("name", DOORS)
def test_what_an_argument_does_not_take_is_an_error_of_ours_that_names_it(name, values):
    door = DOORS[name]
    with suppress(SeqflowError):
        door.use(door.function(**door.given))
    for argument in door.given:
        for label, value in globals()[values].items():
            found = None
            try:
                door.use(door.function(**{**door.given, argument: value}))
            except SeqflowError as error:
                found = str(error)
            except Exception as error:
                pytest.fail(f"{name}: {argument} of {label} is a bare {type(error).__name__}: {error}")
            if value is VALUES["an object"] and argument not in door.any_value:
                assert found is not None, f"{name} takes any object as {argument}"
                assert any(word in found for word in (argument, *WORDS.get(argument, ()))), found


@pytest.mark.parametrize("given", [
    {"columns": []}, {"columns": ["n", "n"]}, {"columns": ()}, {"columns": np.array(["n", "n"])}, {"columns": "n"},
    {"fill": object()}, {"rename": 5}, {"rename": {5: "a"}}, {"batch_bytes": 0}, {"batch_bytes": "1 X"}, {"exclude": 5},
])  # fmt: skip
def test_empty_values_and_values_given_twice_are_refused_by_name(given):
    (name,) = given
    for call in (sf.open, loader_of_source):
        with pytest.raises(SeqflowError, match=name):
            call(TABLE, **given)


def loader_of_source(source: Any, **given: Any) -> sf.Loader:
    return sf.Loader(source, **given)


def test_each_public_function_of_torch_names_its_argument():
    torch = pytest.importorskip("torch")
    own = seqflow.torch
    functions = [getattr(own, name) for name in own.__all__ if inspect.isfunction(getattr(own, name))]
    assert len(functions) > 15
    for function in functions:
        parameters = inspect.signature(function).parameters.values()
        for one in parameters:
            given = {other.name: torch.ones(2) for other in parameters if other.default is other.empty}
            if function is own.mark_ragged:  # takes batches of any kind
                continue
            with pytest.raises(SeqflowError):
                function(**{**given, one.name: VALUES["an object"]})


def test_each_public_name_has_a_door():
    functions = {
        name
        for name in sf.__all__
        if callable(getattr(sf, name)) and not (inspect.isclass(getattr(sf, name)) and issubclass(getattr(sf, name), Exception))
    }  # fmt: skip
    named = {name.partition(".")[0].partition(" ")[0] for name in DOORS}
    assert functions - named == {"info"}  # without arguments


def test_the_error_says_place_argument_value_and_type():
    for call, message in {
        lambda: sf.Rows(2, drop_last="no"): "Rows: drop_last is 'no', expected True or False",
        lambda: sf.Net(5): "net: found int, expected text",
        lambda: sf.features(RECORD, 3, ["k"]): "features: column is 3, expected text",
        lambda: sf.Vocabulary.build(TABLE, "n", min_count=2.5): "Vocabulary.build: min_count is 2.5, expected an integer",
        lambda: sf.Mix({"a": TABLE}, weights={"a": 1}, seed=-1): "Mix: seed is -1, expected an integer from 0 to 2**64 - 1",
    }.items():  # fmt: skip
        with pytest.raises(SeqflowError) as raised:
            call()
        assert str(raised.value).startswith(message)
    assert issubclass(OpTypeError, TypeError)
