"""Sources of the user's own: what they must have, what is checked, and kinds that make them."""

import pickle
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.errors import ProviderError, ProviderOptionError, UnknownColumnError
from seqflow.providers import Block, OwnSource

SCHEMA = pa.schema([("id", pa.int64()), ("ids", pa.list_(pa.int32()))])


class Counting:
    """Blocks of consecutive numbers."""

    schema = SCHEMA

    def __init__(self, sizes: Sequence[int] = (3, 0, 4), rows: bool = True) -> None:
        self.sizes, self.rows = sizes, rows

    def blocks(self) -> Iterator[Block]:
        for index, size in enumerate(self.sizes):
            yield Block("numbers", index, size if self.rows else None, 100 * size)

    def read(self, block: Block, columns: Sequence[str]) -> Any:
        start, size = sum(self.sizes[: block.index]), self.sizes[block.index]
        numbers = range(start, start + size)
        found = {
            "id": pa.array(numbers, pa.int64()),
            "ids": pa.array([[n] * (n % 3) for n in numbers], pa.list_(pa.int32())),
        }
        return pa.table({name: found[name] for name in columns})


class Wrong(Counting):
    """A source that gives something else than it promises."""

    def __init__(self, **wrong: Any) -> None:
        super().__init__()
        self.__dict__ |= wrong

    def blocks(self) -> Any:
        return self.__dict__.get("given", super().blocks())

    def read(self, block: Block, columns: Sequence[str]) -> Any:
        return self.__dict__.get("table", super().read(block, columns))


def ids(loader: sf.Loader) -> list[int]:
    return [n for batch in loader for n in batch["id"].tolist()]


def test_a_source_of_your_own_is_read_as_any_other() -> None:
    assert isinstance(Counting(), OwnSource)
    provider = sf.open(Counting())
    assert (provider.kind, len(provider), provider.files) == ("own", 7, ())
    assert "a Counting, 7 rows" in repr(provider)
    assert provider["ids"].lengths.tolist() == [0, 1, 2, 0, 1, 2, 0]  # type: ignore[union-attr]
    assert sf.open(Counting(), rename={"id": "n"}, columns=["n"])["n"].tolist() == list(range(7))  # type: ignore[union-attr]
    assert sf.open(Counting(), where="id >= 5")["id"].tolist() == [5, 6]  # type: ignore[union-attr]
    with pytest.raises(UnknownColumnError):
        sf.open(Counting(), columns=["idd"])


@pytest.mark.parametrize("rows", [True, False])
def test_it_is_read_again_resumed_and_pickled(rows: bool) -> None:
    loader = sf.Loader(Counting(rows=rows), batch=2, window=400)
    assert ids(loader) == ids(loader) == list(range(7))
    batches = iter(loader)
    first = next(batches)["id"].tolist()
    state = loader.state_dict()
    other = sf.Loader(Counting(rows=rows), batch=2, window=400)
    other.load_state_dict(state)
    assert first + ids(other) == list(range(7))
    assert ids(pickle.loads(pickle.dumps(sf.Loader(Counting(rows=rows), batch=2)))) == list(range(7))


def test_a_state_compares_files_or_the_version_or_some_rows(tmp_path: Path) -> None:
    def state_of(own: Counting) -> Any:
        loader = sf.Loader(own, batch=2)
        next(iter(loader))
        return loader.state_dict()

    def versioned(version: Any) -> Counting:
        own = Counting()
        own.version = version  # type: ignore[attr-defined]
        return own

    with pytest.raises(sf.SeqflowError, match=r"version was 1 and is 2 now"):
        sf.Loader(versioned(2), batch=2).load_state_dict(state_of(versioned(1)))
    with pytest.raises(sf.SeqflowError, match="rows was 7 and is 8 now"):
        sf.Loader(Counting([3, 0, 5]), batch=2).load_state_dict(state_of(Counting()))
    file = tmp_path / "a.bin"
    file.write_bytes(b"1")
    own = Counting()
    own.paths = [file]  # type: ignore[attr-defined]
    state = state_of(own)
    sf.Loader(own, batch=2).load_state_dict(state)
    file.write_bytes(b"2")
    with pytest.raises(sf.SeqflowError, match="other content"):
        sf.Loader(own, batch=2).load_state_dict(state)


@pytest.mark.parametrize(("wrong", "message"), [
    ({"schema": {"id": "int64"}}, "a Wrong: schema is a dict, expected a pyarrow.Schema"),
    ({"given": [1]}, "a Wrong: blocks.. gives a int, expected seqflow.providers.Block"),
    ({"given": [Block("a", 0, 1, 9), Block("a", 0, 1, 9)]}, "a Wrong: blocks.. gives block 0 of a twice"),
    ({"given": [Block("a", 0, -1, 9)]}, "num_rows of block 0 is -1, expected an integer of 0 or more, or None"),
    ({"given": [Block("a", None, 1, 9)]}, "index of block 0 is None"),  # type: ignore[arg-type]
    ({"given": [Block("a", 0, 1, None)]}, "nbytes of block 0 is None, expected an integer .*size of its rows in memory"),
    ({"given": None}, "a Wrong can't be opened"),
    ({"paths": ["nowhere"]}, "nowhere of its paths is not a file"),
    ({"paths": "nowhere"}, "paths is 'nowhere', expected a list"),
])  # fmt: skip
def test_what_promises_nothing_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ProviderError, match=message):
        sf.open(Wrong(**wrong))


TABLE = Counting().read(Block("", 0, 3, 9), ["id", "ids"])
LYING = pa.Array.from_buffers(
    pa.list_(pa.int32()), 3, [None, pa.py_buffer(np.array([0, 2, 1, 2], np.int32))], children=[pa.array([7, 8], pa.int32())]
)  # fmt: skip


@pytest.mark.parametrize(("table", "message"), [
    (TABLE.slice(1), "a Wrong, block 0 of numbers has 2 rows, expected 3"),
    (TABLE.drop(["id"]), "column 'id' is not there, expected int64"),
    (TABLE.set_column(0, "id", pa.array([1, 2, 3], pa.int32())), "column 'id' is int32, expected int64"),
    (5, "block 0 of numbers can't be read: expected a record batch"),
    (None, "block 0 of numbers can't be read"),
    (TABLE.set_column(1, "ids", LYING), "not valid Arrow data"),
])  # fmt: skip
def test_what_is_not_as_promised_is_an_error_that_names_the_source(table: Any, message: str) -> None:
    provider = sf.open(Wrong(table=table))
    with pytest.raises(ProviderError, match=message):
        provider.read(next(provider.blocks()))


def test_errors_of_its_own_code_are_named_and_chained() -> None:
    class Failing(Counting):
        def read(self, block: Block, columns: Sequence[str]) -> Any:
            raise KeyError("shard 7")

    provider = sf.open(Failing())
    with pytest.raises(
        ProviderError, match="a Failing, block 0 of numbers can't be read: 'shard 7'"
    ) as error:
        provider.read(next(provider.blocks()))
    assert isinstance(error.value.__cause__, KeyError)


OWN = """
from pathlib import Path
import pyarrow as pa
import pyarrow.dataset as ds
from seqflow.providers import Block

class Words:
    schema = pa.schema([("word", pa.string())])
    def __init__(self, path, upper):
        self.paths, self.upper = [path], upper
    def blocks(self):
        yield Block(self.paths[0], 0, None, 100)
    def read(self, block, columns):
        words = Path(self.paths[0]).read_text().split()
        return {"word": [word.upper() if self.upper else word for word in words]}

class opening:
    @staticmethod
    def words(path, upper=False):
        return Words(path, upper)

words = opening.words
def table(rows=3):
    return {"x": list(range(rows))}
def stream():
    return lambda: (pa.record_batch({"x": [day]}) for day in range(3))
def dataset(path):
    return ds.dataset(path)
def nothing():
    return None
def failing(path):
    raise ValueError(f"no {path}")
number = 5
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "own_words.py").write_text(OWN)
    (tmp_path / "a.txt").write_text("the cat sat")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    sys.modules.pop("own_words", None)


def test_a_kind_is_a_function_that_makes_a_source_or_what_open_takes(module: Path) -> None:
    words = sf.open("a.txt", kind="own_words:words", options={"upper": True})
    assert words.files == (str(module / "a.txt"),)
    assert [t for block in words.blocks() for t in words.read(block)["word"].to_pylist()] == [
        "THE",
        "CAT",
        "SAT",
    ]
    assert "own_words:words" in repr(words)
    assert sf.open("a.txt", kind="own_words:opening.words").schema.names == ["word"]
    assert len(sf.open(None, kind="own_words:table", options={"rows": 5})) == 5
    assert ids_of(sf.Loader(None, kind="own_words:stream", batch_bytes=8)) == [0, 1, 2]


def ids_of(loader: sf.Loader) -> list[int]:
    return [n for batch in loader for n in batch["x"].tolist()]


@pytest.mark.parametrize(("kind", "options", "message"), [
    ("own_wrods:words", {}, "kind: there is no module 'own_wrods'"),
    ("own_words:word", {}, r"there is no 'word' in the module 'own_words' \(did you mean 'words'\?\)"),
    ("own_words:number", {}, "is a int, expected a function"),
    ("own_words://bucket/a.parquet", {}, "expected 'module:function'"),  # a URI, whose scheme is no module to import
    ("own_words:", {}, "expected 'module:function'"),
    ("own_words:failing", {}, "own_words:failing has failed: no a.txt"),
    ("own_words:words", {"options": {"uper": 1}}, r"own_words:words: got an unexpected keyword argument 'uper', expected words\("),
    ("own_words:words", {"options": {"upper": object()}}, "'upper' is a object, expected text"),
    ("own_words:words", {"options": 5}, "options is a int"),
    ("own_words:words", {"options": {5: 1}}, "5 is not a name"),
    ("own_words:words", {"exclude": "*.py"}, "exclude is of files that are found"),
    ("own_words:words", {"encoding": "utf-8"}, "no option 'encoding' for a source of your own"),
    ("parqet", {}, r"kind is 'parqet' \(did you mean 'parquet'\?\), but must be one of arrow, .*'module:function'"),
    ("text", {"options": {"a": 1}}, "options are passed to the function of a kind"),
])  # fmt: skip
def test_wrong_kinds_and_options_are_refused(module: Path, kind: str, options: Any, message: str) -> None:
    with pytest.raises(ProviderError, match=message):
        sf.open("a.txt", kind=kind, **options)


def test_arguments_that_the_function_does_not_take_are_wrong_options(module: Path) -> None:
    with pytest.raises(ProviderOptionError, match=r"words\(.*\n *options= are its arguments"):
        sf.open("a.txt", kind="own_words:words", options={"uper": 1})


def test_a_kind_that_returns_nothing_is_refused(module: Path) -> None:
    with pytest.raises(ProviderOptionError, match="own_words:nothing has returned None"):
        sf.open(None, kind="own_words:nothing")


def test_a_state_is_of_the_kind_its_options_and_its_code(module: Path) -> None:
    def loader(**options: Any) -> sf.Loader:
        return sf.Loader("a.txt", kind="own_words:words", options=options, batch=2)

    state = loader().state_dict()
    loader().load_state_dict(state)
    with pytest.raises(sf.SeqflowError, match=r"options was .*upper"):
        loader(upper=True).load_state_dict(state)
    (module / "own_words.py").write_text(OWN + "\n# other code\n")
    with pytest.raises(sf.SeqflowError, match=r"code of its kind\.own_words\.py has other content"):
        loader().load_state_dict(state)
