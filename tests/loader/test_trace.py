"""Where the rows and elements of batches come from."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf

RNG = np.random.default_rng(6)
LENGTHS = RNG.integers(0, 70, 400)
ENDS = np.cumsum(LENGTHS)
TOKENS = np.arange(int(ENDS[-1]))  # each element is unlike all others
TABLE = pa.table({"id": np.arange(400), "tokens": np.split(TOKENS, ENDS[:-1])})
PLANS = {
    "rows": sf.Rows(7, lengths="tokens"),
    "rows, balanced": sf.Rows(7, lengths="tokens", balance=sf.Balance(group=4, pool=2, linear=5)),
    "tokens": sf.TokenBudget(90, lengths="tokens"),
    "cut": sf.TokenBudget(50, lengths="tokens", oversize="split", columns=("tokens",)),
    "best fit": sf.TokenBudget(90, lengths="tokens", strategy="best_fit"),
    "packed": sf.Packed(48, ("tokens",), rows=3),
    "packed, padded": sf.Packed(48, ("tokens",), rows=3, multiple_of=8),
    "packed, balanced": sf.Packed(48, ("tokens",), rows=3, balance=sf.Balance(group=4, pool=3, linear=5)),
    "buckets": sf.Buckets(3, sf.Rows(6, lengths="tokens")),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("docs")
    for number in range(8):
        pq.write_table(TABLE.slice(50 * number, 50), path / f"{number}.parquet", row_group_size=20)
    return path


def element_of(trace):
    """The element that a trace names, read from its file."""
    rows = pq.ParquetFile(trace.file).read_row_group(trace.block, [trace.column])
    return rows[trace.column][trace.row].as_py()[trace.element]


def elements(batch):
    """Row, place in it and value of each element."""
    if "tokens" in batch:
        for row, at in np.argwhere(batch["segment_ids"] > 0).tolist():
            yield row, at, int(batch["tokens"][row, at])
        return
    ends = np.cumsum(batch["tokens.lengths"])
    for row, (end, size) in enumerate(zip(ends.tolist(), batch["tokens.lengths"].tolist(), strict=True)):
        for at in range(size):
            yield row, at, int(batch["tokens.values"][end - size + at])


@pytest.mark.slow
@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("prepare", [None, "i = id * 2\nreturn i, tokens.values, tokens.lengths"])
def test_elements_are_those_of_their_source(folder, plan, shuffle, prepare):
    loader = sf.Loader(
        str(folder / "*.parquet"), batch=PLANS[plan], shuffle=shuffle, window="20 kB", prepare=prepare, threads=0,
        rank=0, world_size=1,
    )  # fmt: skip
    batches = list(loader)
    for number in RNG.choice(len(batches), 6, replace=False).tolist():
        found = list(elements(batches[number]))
        for at in RNG.choice(len(found), 4).tolist():
            row, place, value = found[at]
            (trace,) = loader.trace(number, row=row, element=place)
            assert element_of(trace) == value
            assert trace.column == "tokens"
            assert str(trace).endswith(f"row {trace.row}, column tokens, element {trace.element}")


@pytest.mark.parametrize("column", [None, "t", "more"])
@pytest.mark.parametrize("plan", [sf.Rows(7, lengths="n"), sf.Packed(48, ("t", "more"), lengths="n", rows=3)])
def test_a_column_whose_lengths_have_another_name_is_called_as_its_values_are(folder, plan, column):
    net = "t, n = truncate(tokens.values, tokens.lengths, max_length=80)\nmore = t + 1\nreturn t, more, n"
    loader = sf.Loader(str(folder / "*.parquet"), batch=plan, prepare=net, threads=0, rank=0, world_size=1)
    batch = next(iter(loader))
    row = int(np.argmax(batch["n"])) if "n" in batch else 0
    value = batch["t"][int(batch["n"][:row].sum()) + 2] if "n" in batch else batch["t"][0, 2]
    (trace,) = loader.trace(0, row=row, element=2, column=column)
    assert trace.column == (column or "t")
    assert pq.read_table(trace.file)["tokens"][20 * trace.block + trace.row].as_py()[trace.element] == value


@pytest.mark.parametrize("plan", ["rows", "packed", "cut"])
def test_rows_of_a_batch(folder, plan):
    loader = sf.Loader(
        str(folder / "*.parquet"), batch=PLANS[plan], shuffle=True, threads=0, rank=0, world_size=1
    )
    batch = loader.batch_at(5)
    traces = loader.trace(5)
    ids = batch["id"].tolist()
    assert len(traces) == len(ids)
    for trace, expected in zip(traces, ids, strict=True):
        assert (
            pq.ParquetFile(trace.file).read_row_group(trace.block, ["id"])["id"][trace.row].as_py()
            == expected
        )
    assert [one for row in range(batch.num_rows) for one in loader.trace(5, row=row)] == traces


def test_filters_and_bad_rows_do_not_shift_numbers(folder):
    loader = sf.Loader(
        str(folder / "*.parquet"), batch=5, where="id > 31 and id != 77", require="id != 7", bad_rows="skip", shuffle=True,
        threads=0, rank=0, world_size=1,
    )  # fmt: skip
    for number, batch in enumerate(list(loader)[:20]):
        for trace, expected in zip(loader.trace(number), batch["id"].tolist(), strict=True):
            assert pq.ParquetFile(trace.file).read_row_group(trace.block)["id"][trace.row].as_py() == expected


@pytest.mark.parametrize("quotas", [True, False])
def test_of_a_mix(folder, quotas):
    sources = {"a": str(folder / "[0-3].parquet"), "b": str(folder / "[4-7].parquet")}
    plan = sf.Rows(9, lengths="tokens") if quotas else PLANS["packed"]
    options = {"stop": "all", "shuffle": True, "threads": 0, "rank": 0, "world_size": 1}
    mix = sf.Mix(sources, weights={"a": 2, "b": 1}, batch=plan, **options)
    batches = list(mix)
    for number in (0, 3, len(batches) - 1):
        found = list(elements(batches[number]))
        for at in RNG.choice(len(found), 5).tolist():
            row, place, value = found[at]
            (trace,) = mix.trace(number, row=row, element=place)
            assert element_of(trace) == value
            assert (trace.source == "a") == (value < ENDS[199])
    with pytest.raises(sf.OpError, match=rf"trace: number is {len(batches)}, expected less than"):
        mix.trace(len(batches))


def test_what_a_function_makes_is_said(folder):
    def prepare(rows):
        return {"id": np.repeat(rows["id"], 2)}

    loader = sf.Loader(str(folder / "*.parquet"), batch=5, prepare=prepare, rank=0, world_size=1)
    trace = loader.trace(0)[0]
    assert trace.row is None
    assert "prepare" in trace.hidden_by
    assert str(trace).endswith(f"block 0, a row that {trace.hidden_by} made")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"number": 10_000}, "trace: number is 10000, expected less than"),
        ({"number": -1}, "trace: number is -1"),
        ({"number": 0, "row": 3}, "trace: row is 3, expected 0 to 2, the rows of batch 0"),
        ({"number": 0, "element": 3}, "trace: element is 3, expected a row with it"),
        ({"number": 0, "row": 0, "element": 48}, "element is 48, expected less than the capacity, 48"),
        (
            {"number": 0, "row": 0, "element": 1, "column": "token"},
            r"column is 'token' \(did you mean 'tokens'\?\)",
        ),
    ],
)
def test_what_is_not_there_is_an_error(folder, arguments, text):
    loader = sf.Loader(str(folder / "*.parquet"), batch=PLANS["packed"], rank=0, world_size=1)
    number = arguments.pop("number")
    with pytest.raises((sf.OpError, IndexError), match=text):
        loader.trace(number, **arguments)


def test_padding_is_said(folder):
    loader = sf.Loader(str(folder / "*.parquet"), batch=PLANS["packed, padded"], rank=0, world_size=1)
    batch = loader.batch_at(0)
    row, at = np.argwhere(batch["segment_ids"] == 0)[0].tolist()
    with pytest.raises(IndexError, match=f"element {at} of row {row} is padding"):
        loader.trace(0, row=row, element=at)


def test_an_element_behind_a_row_is_an_error(folder):
    loader = sf.Loader(str(folder / "*.parquet"), batch=PLANS["rows"], rank=0, world_size=1)
    with pytest.raises(IndexError, match="element is 70, expected less than"):
        loader.trace(0, row=0, element=70)
