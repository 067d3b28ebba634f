"""Loaders with a filter: every row of the source is counted once, and a state is of one filter."""

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import OpError
from seqflow.loader import Stats

ROWS = 900
TABLE = pa.table(
    {
        "id": np.arange(ROWS),
        "lang": [["py", "c", None, "go"][n // 90 % 4] for n in range(ROWS)],  # whole groups without hits
        "tokens": [[n] * (n % 9) for n in range(ROWS)],
        "mark": [None if n % 50 == 7 else n for n in range(ROWS)],
    }
)
FILTERS = {
    "lang == 'py'": [n for n in range(ROWS) if n // 90 % 4 == 0],
    "tokens.lengths in [1, 4]": [n for n in range(ROWS) if n % 9 in (1, 4)],
    "id >= 850": list(range(850, ROWS)),
    "id < 20": list(range(20)),
    "id < 0": [],
    "id >= 0": list(range(ROWS)),
}
PLANS: dict[str, Any] = {
    "rows": sf.Rows(16),
    "rows, short ones dropped": sf.Rows(16, drop_last=True),
    "budget": sf.TokenBudget(40, lengths="tokens.lengths"),
    "budget that skips": sf.TokenBudget(40, lengths="tokens.lengths", max_length=5),
    "packed": sf.Packed(16, lengths="tokens.lengths"),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("where")
    pq.write_table(TABLE, folder / "many.parquet", row_group_size=90)
    pq.write_table(TABLE, folder / "one.parquet", row_group_size=ROWS)
    with open(folder / "lines.jsonl", "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in TABLE.to_pylist())
    return {name: folder / name for name in ("many.parquet", "one.parquet", "lines.jsonl")}


def total(stats: Stats) -> int:
    return stats.rows + stats.rows_left + stats.dropped + stats.skipped + stats.bad_rows


@pytest.mark.each_choice
@pytest.mark.parametrize("name", ["many.parquet", "one.parquet", "lines.jsonl"])
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("shuffle", [None, True])
def test_rows_that_are_left_out_are_counted(
    files: dict[str, Path], name: str, plan: str, shuffle: bool | None
) -> None:
    batch = PLANS[plan]
    for where, kept in FILTERS.items():
        for window in (5000, "1 MiB"):
            if shuffle and name != "many.parquet" and window == 5000:
                continue  # rows are shuffled in windows that hold a block
            loader = sf.Loader(
                files[name],
                columns=["id", "tokens"],
                where=where,
                batch=batch,
                shuffle=shuffle,
                window=window,
                threads=0,
            )
            ids = [n for record in loader for n in np.asarray(record["id"]).reshape(-1).tolist()]
            stats = loader.stats()
            assert (total(stats), stats.rows_left) == (ROWS, 0), (where, window, stats)
            assert stats.filtered == ROWS - len(kept)
            assert stats.rows_read == len(kept) == stats.rows_done
            if plan == "rows":
                assert (sorted(ids) if shuffle else ids) == kept
            if name != "lines.jsonl" and plan.startswith("rows"):
                assert (
                    len(loader)
                    == stats.batches
                    == (len(kept) // 16 if "dropped" in plan else -(-len(kept) // 16))
                )


def test_bad_rows_are_among_those_that_are_kept(files: dict[str, Path]) -> None:
    for name, file in files.items():
        for window in (2000, "1 MiB"):
            loader = sf.Loader(
                file, columns=["id", "mark"], where="id >= 450", bad_rows="skip", window=window, threads=0
            )
            ids = [n for record in loader for n in record["id"].tolist()]
            stats = loader.stats()
            assert ids == [n for n in range(450, ROWS) if n % 50 != 7], (name, window)
            assert (stats.bad_rows, stats.filtered, total(stats)) == (9, 450, ROWS)


@pytest.mark.parametrize("name", ["many.parquet", "one.parquet", "lines.jsonl"])
def test_a_loader_resumes_at_every_batch_with_equal_counts(files: dict[str, Path], name: str) -> None:
    def loader(**options: Any) -> sf.Loader:
        return sf.Loader(
            files[name],
            columns=["id"],
            where="tokens.lengths in [1, 4]",
            batch=30,
            window=2000,
            threads=0,
            **options,
        )

    whole = [record["id"].tolist() for record in loader()]
    for stop in range(1, len(whole)):
        first = loader()
        iterator = iter(first)
        for _ in range(stop):
            next(iterator)
        state = json.loads(json.dumps(first.state_dict()))
        second = pickle.loads(pickle.dumps(loader()))
        second.load_state_dict(state)
        assert [record["id"].tolist() for record in second] == whole[stop:]


def test_a_state_is_of_one_filter(files: dict[str, Path]) -> None:
    def loader(where: Any) -> sf.Loader:
        return sf.Loader(files["many.parquet"], columns=["id"], where=where, batch=10, threads=0)

    first = loader("lang == 'py' and id > 5")
    next(iter(first))
    state = first.state_dict()
    loader("(lang == 'py') & (5 < id)").load_state_dict(state)
    with pytest.raises(OpError, match=r"where was .*id > 5.* and is .*id > 6"):
        loader("lang == 'py' and id > 6").load_state_dict(state)
    with pytest.raises(OpError, match=r"where was .* and is None now"):
        loader(None).load_state_dict(state)


def test_streams_and_ranks_divide_the_kept_rows(files: dict[str, Path]) -> None:
    for where, kept in FILTERS.items():
        if len(kept) < 100:
            continue
        found = []
        for rank in range(2):
            loader = sf.Loader(
                files["many.parquet"], columns=["id"], where=where, batch=8, window=2000, streams=2, rank=rank,
                world_size=2, tail="pad", threads=0,
            )  # fmt: skip
            batches = [record["id"].tolist() for record in loader]
            assert len(batches) == len(loader)
            found += [n for batch in batches for n in batch]
        assert sorted(found) == kept


def test_an_index_is_of_one_filter(files: dict[str, Path], tmp_path: Path) -> None:
    for name in ("many.parquet", "lines.jsonl"):

        def loader(where: str, name: str = name) -> sf.Loader:
            return sf.Loader(
                files[name], columns=["tokens"], where=where, batch=sf.TokenBudget(40), index=tmp_path / f"{name}.arrow",
                threads=0,
            )  # fmt: skip

        assert len(loader("id >= 450")) == len(list(loader("id >= 450")))
        assert len(loader("450 <= id")) > 0
        with pytest.raises(OpError, match=r"is stale: where was '\(id >= 450\)' and is"):
            len(loader("id >= 451"))


def test_a_mix_counts_what_its_sources_leave_out(files: dict[str, Path]) -> None:
    wheres = {"a": "id < 300", "b": "id >= 600"}
    sources = {
        name: sf.open(files["many.parquet"], columns=["id"], where=where) for name, where in wheres.items()
    }
    mix = sf.Mix(sources, weights={"a": 1, "b": 1}, batch=10, stop="all", threads=0)
    assert {n for record in mix for n in record["id"].tolist()} == {*range(300), *range(600, ROWS)}
    stats = mix.stats()
    assert (stats.filtered, stats.skipped) == (2 * ROWS - 600, 2 * ROWS - 600)
    assert total(stats) == 2 * ROWS


def test_large_blocks_are_read_in_slices_of_bounded_memory(files: dict[str, Path]) -> None:
    loader = sf.Loader(
        files["one.parquet"], where="id >= 100", window=2000, batch=10, columns=["id", "tokens"], threads=0
    )
    assert len(list(loader.recipe.slices())) > 8
    assert [n for record in loader for n in record["id"].tolist()] == list(range(100, ROWS))


MEASURE = """
import resource, sys
import numpy as np
import pyarrow.acero, pyarrow.compute
import seqflow as sf
path, where = sys.argv[1:]
list(sf.Loader(path, where="id < 10", columns=["id"], threads=0))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
options = {"window": "4 MiB", "memory": "16 MiB", "threads": 1, "format": sf.Parquet(memory_map=False)}
rows = sum(batch.num_rows for batch in sf.Loader(path, where=where, batch=200, **options))
print(rows, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows counts memory in another way")
def test_a_large_row_group_is_filtered_in_bounded_memory(tmp_path: Path) -> None:
    """Of 320 MB, with a window of 4 MiB, whichever column is looked at and however many rows are kept."""
    rows, draw = 400_000, np.random.default_rng(0)
    tokens = pa.LargeListArray.from_arrays(np.arange(rows + 1) * 100, draw.integers(0, 1 << 30, rows * 100))
    table = pa.table({"id": np.arange(rows), "score": draw.random(rows), "tokens": tokens})
    path = tmp_path / "one.parquet"
    pq.write_table(table, path, row_group_size=rows, use_dictionary=False, compression="none")
    for where, kept in (
        ("score < 0.01", np.count_nonzero(table["score"].to_numpy() < 0.01)),
        ("tokens.lengths > 5", rows),
    ):
        done = subprocess.run([sys.executable, "-c", MEASURE, path, where], capture_output=True, text=True)
        found, mebibytes = map(int, done.stdout.split())
        assert (found, mebibytes < 120) == (kept, True), (where, mebibytes, done.stderr)
