"""Pairs of options of a loader or a mix, against what was iterated: ledgers, rows that are found, ranks, states, servers."""

from collections import Counter
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf

OPTIONS = {
    "by": {"shuffle": sf.Shuffle(3, by="session")},
    "share": {"share": {"history": "session"}},
    "keep": {"keep": "item % 3 != 1"},
    "skip": {"skip": [(2, 5)]},
    "tail": {"tail": "drop"},
    "streams": {"streams": 2},
}
PAIRS = [chosen for count in (0, 1, 2) for chosen in combinations(OPTIONS, count)]
UNCOUNTED = {"keep", "streams"}
"""These need the number of batches of each stream, which is not known."""
CASES = [
    (pair, kind)
    for pair in PAIRS
    for kind in ("loader", "mix")
    if set(pair) != UNCOUNTED and not (kind == "mix" and "streams" in pair)  # a mix here has one stream
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two files of 200 rows, in sessions of five rows with one history."""
    path, items = tmp_path_factory.mktemp("pairs"), np.arange(400)
    histories = [[number, 1, 2][: 1 + number % 3] for number in (items // 5).tolist()]
    table = pa.table({"session": items // 5, "history": histories, "item": items})
    for number, name in enumerate("ab"):
        pq.write_table(table.slice(200 * number, 200), path / f"{name}.parquet", row_group_size=40)
    return path


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize(("pair", "kind"), CASES, ids=str)
def test_all_that_tells_of_an_epoch_agrees_with_its_batches(folder, pair, kind):
    options = {"batch": 16, "window": "6 KiB", "shuffle": True, "rank": 0, "world_size": 1}
    for name in pair:
        options |= OPTIONS[name]

    def made(**ranks):
        if kind == "loader":
            return sf.Loader([str(folder / "a.parquet"), str(folder / "b.parquet")], **{**options, **ranks})
        sources = {name: str(folder / f"{name}.parquet") for name in "ab"}
        return sf.Mix(sources, weights={"a": 1, "b": 2}, **{**options, **ranks})

    batches = [(batch.number, batch["item"].tolist(), dict(batch.shares)) for batch in made()]
    places = {item: (number, row) for number, items, _ in batches for row, item in enumerate(items)}
    assert len(places) == sum(len(items) for _, items, _ in batches) > 0

    ledger = made().ledger(upto=max(number for number, *_ in batches) + 1)
    assert (ledger.batches, sum(one.rows for one in ledger.by_source)) == (len(batches), len(places))
    seen, asked = made(), (0, 7, 199, 201, 399)
    for item in asked:
        found = seen.find(str(folder / f"{'ab'[item // 200]}.parquet"), item % 200)
        assert [(one.batch, one.row) for one in found] == ([places[item]] if item in places else [])

    of_ranks = Counter(
        item
        for rank in (0, 1)
        for batch in made(rank=rank, world_size=2, tail="pad")
        for item in batch["item"].tolist()
    )
    assert of_ranks == Counter(places.keys())

    loader = made()
    iteration = iter(loader)
    for _ in range(4):
        next(iteration)
    resumed = made()
    resumed.load_state_dict(loader.state_dict())
    assert [batch["item"].tolist() for batch in resumed] == [items for _, items, _ in batches[4:]]

    with sf.serve(made(), port=0) as server:
        served = [(one.number, one["item"].tolist(), dict(one.shares)) for one in sf.served(server.url)]
    assert served == batches
