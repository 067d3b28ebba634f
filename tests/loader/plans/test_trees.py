"""Packed rows in which rows share prefixes, against tries of tuples: what is packed, and what a batch tells of it."""

import json
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import cycle, product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow
from hypothesis import given, settings
from hypothesis import strategies as st
from killed_jobs import write_dying_job, written_though_killed
from marks import slow, thorough

import seqflow as sf
from seqflow.errors import BatchPlanError, OpError, ProviderError, UnknownColumnError
from seqflow.job import Job, run

RUNS = {12: 12, 16: 80, 200: 2000}
"""Examples by the profile's own number."""
TOKENS = pa.list_(pa.int32())


def rows_of(seed, count=60, letters=2, longest=9):
    """Rows that begin like others: some are equal, empty, or the beginning of another one."""
    rng, found = np.random.default_rng(seed), [[]]
    while len(found) < count:
        before = found[rng.integers(len(found))][: rng.integers(longest)]
        found.append(before + rng.integers(0, letters, rng.integers(0, 4)).tolist())
    return found


def table_of(rows, seed=0):
    rng = np.random.default_rng(seed)
    image = rng.integers(0, 2, len(rows))
    return pa.table({
        "id": np.arange(len(rows)),
        "tokens": pa.array(rows, TOKENS),
        "image": image,
        "name": [None if one == 3 else f"image {one}" for one in image],
        "crops": pa.array([[one] * one for one in image], TOKENS),
        "weights": [np.arange(len(row)) + 100.0 * at for at, row in enumerate(rows)],
        "number": np.arange(len(rows)),
        "answer": [row[-1:] for row in rows],
    })  # fmt: skip


def pieces_of(batch):
    """For each packed row, its pieces: the row's number, and the places of its elements."""
    flat = np.split(batch["rows.values"], np.cumsum(batch["rows.lengths"])[:-1]) if len(batch["id"]) else []
    ends = np.cumsum(batch["pieces"])
    ids = batch["id"].tolist()
    return [
        [(ids[at], flat[at].tolist()) for at in range(end - count, end)]
        for count, end in zip(batch["pieces"].tolist(), ends.tolist(), strict=True)
    ]


def check_layout(batch, capacity, fill=0):
    """Check that all tensors of a batch tell of each row what its places tell; return the elements in each row."""
    shape = (batch.num_rows, capacity)
    tokens, positions, previous, until = (
        batch[name] for name in ("tokens", "position_ids", "previous", "until")
    )
    assert tokens.shape == positions.shape == previous.shape == until.shape == shape
    lengths, parents = batch["node_lengths"].tolist(), batch["parents"].tolist()
    assert sum(lengths) == batch.num_rows * capacity
    assert len(lengths) == len(parents) == batch["nodes"].sum()
    starts, paths = np.cumsum([0, *lengths]), []
    for node, parent in enumerate(parents):
        own = list(range(starts[node], starts[node] + lengths[node]))
        paths.append((paths[parent] if parent >= 0 else []) + own)
    node_of, used = np.repeat(np.arange(len(lengths)), lengths), []
    for number, pieces in enumerate(pieces_of(batch)):
        first, seen = number * capacity, set()
        for _, places in pieces:
            seen |= set(places)
            assert positions.flat[places].tolist() == list(range(len(places)))
            assert previous.flat[places].tolist() == [-1, *places[:-1]]
            for at, place in enumerate(places):
                sees = [j for j in range(capacity) if j <= place - first < until[number, j]]
                assert [first + j for j in sees] == places[: at + 1]
                path = paths[node_of[place]]
                assert path[: path.index(place) + 1] == places[: at + 1]
        padding = [first + at for at in range(capacity) if first + at not in seen]
        assert padding == list(range(first + len(seen), first + capacity))
        assert set(tokens.flat[padding].tolist()) <= {fill}
        assert set(previous.flat[padding].tolist()) <= {-1}
        used.append(len(seen))
    assert [lengths[end - 1] for end in np.cumsum(batch["nodes"])] == [capacity - one for one in used]
    return used


def units(pieces, capacity, min_shared):
    """The trees of pieces, (number, key, tokens) each, cut in lexicographic order; each with its trie."""
    groups, found = defaultdict(list), []
    for number, key, tokens in pieces:
        alone = number if len(tokens) < min_shared else None
        groups[(key, tokens[:min_shared], alone)].append((tokens, number))
    for group in groups.values():
        rows, trie = [], set()
        for tokens, number in sorted(group):
            nodes = {tokens[: end + 1] for end in range(len(tokens))}
            if len(trie | nodes) > capacity:
                found.append((rows, trie))
                rows, trie = [], set()
            rows, trie = [*rows, (number, tokens)], trie | nodes
        found.append((rows, trie))
    return found


@given(
    seed=st.integers(0, 999), capacity=st.integers(4, 40), min_shared=st.integers(1, 5), letters=st.integers(1, 3),
    oversize=st.sampled_from(["split", "truncate", "skip", "bad_rows"]), shuffle=st.sampled_from([None, 0, 7]),
    strategy=st.sampled_from(["best_fit", "first_fit"]), window=st.sampled_from([1_500, 1 << 20]),
    shared_with=st.sampled_from([(), ("image",), ("name",), ("crops",), ("crops", "name")]),
    max_path=st.sampled_from([None, 3]), rows=st.integers(1, 3),
)  # fmt: skip
@settings(max_examples=RUNS[settings.default.max_examples], deadline=None)
def test_trees_are_packed_and_each_element_is_there_once(
    seed, capacity, min_shared, letters, oversize, shuffle, strategy, window, shared_with, max_path, rows
):
    given_rows = rows_of(seed, letters=letters)
    table = table_of(given_rows, seed)
    blocks = pa.concat_tables([table.slice(at, 7) for at in range(0, len(given_rows), 7)])
    plan = sf.Packed(
        capacity, ["tokens"], rows=rows, fill=-5, strategy=strategy, oversize=oversize, share="prefix",
        shared_with=shared_with, max_path=max_path, min_shared=min_shared,
    )  # fmt: skip
    chosen = ["id", "tokens", "image", "name", "crops", "weights"]
    if oversize in ("split", "truncate") and min(max_path or 99, capacity) < 12:  # rows may be cut
        chosen.remove("crops")  # not as many elements as there are tokens: see below
        if "crops" in shared_with:
            return
    loader = sf.Loader(
        blocks, batch=plan, window=window, shuffle=None if shuffle is None else sf.Shuffle(shuffle), columns=chosen,
        threads=0, bad_rows="skip",
    )  # fmt: skip
    limit, windows, packed, numbers = max_path or capacity, defaultdict(list), defaultdict(list), []
    tokens, cells, distinct = 0, 0, 0
    for number, batch in enumerate(loader):
        used = check_layout(batch, capacity, -5)
        parts = [(number, row, *piece) for row, pieces in enumerate(pieces_of(batch)) for piece in pieces]
        weights = np.split(batch["weights.values"], np.cumsum(batch["weights.lengths"])[:-1])
        places = np.split(batch["rows.values"], np.cumsum(batch["rows.lengths"])[:-1])
        traced = loader.trace(number)
        for at, (of_batch, row, one, _) in enumerate(parts):
            text = tuple(batch["tokens"].flat[places[at]].tolist())
            start = round(weights[at][0] - 100 * one)
            assert weights[at].tolist() == [100.0 * one + start + i for i in range(len(text))]
            assert text == tuple(given_rows[one][start : start + len(text)])
            key = tuple(str(table[name][one].as_py()) for name in shared_with)
            origin = traced[at]
            assert (origin.element, origin.elements) == (start, len(text))
            assert origin.block * 7 + origin.row == one
            windows[int(batch["window"][row])].append(((one, start), key, text))
            packed[of_batch, row].append(((one, start), key, text, tuple(places[at].tolist())))
            numbers.append((one, start))
        tokens, cells = tokens + len(batch["rows.values"]), cells + batch["tokens"].size
        distinct += sum(used)
        assert min(used) > 0
        assert batch.num_rows <= rows
    expected = [
        (at, start)
        for at, row in enumerate(given_rows)
        if len(row) <= limit or oversize in ("split", "truncate")
        for start in range(0, len(row) if oversize == "split" else min(1, len(row)), limit)
    ]
    assert sorted(numbers) == expected
    of_rows = {piece[0]: (where, piece) for where, pieces in packed.items() for piece in pieces}
    needed = Counter()
    for pieces in windows.values():
        for unit, trie in units(pieces, capacity, min_shared):
            (where,) = {of_rows[one][0] for one, _ in unit}
            needed[where] += len(trie)
            # an element of the trie has one place, which is that of no other element
            found = defaultdict(set)
            for one, text in unit:
                for at, place in enumerate(of_rows[one][1][3]):
                    found[text[: at + 1]].add(place)
            assert found.keys() == trie
            assert len(set.union(*found.values())) == sum(map(len, found.values())) == len(trie)
    for where, pieces in packed.items():
        assert needed[where] == len({place for *_, places in pieces for place in places}) <= capacity
    stats = loader.stats()
    assert (stats.tokens, stats.cells, stats.tokens - stats.shared) == (tokens, cells, distinct)
    assert stats.fill == (distinct / cells if cells else None)
    assert stats.saving == (tokens / distinct if tokens else None)
    omitted = sum(not row for row in given_rows) + (oversize == "skip") * sum(
        len(row) > limit for row in given_rows
    )
    assert (stats.rows, stats.skipped) == (len({one for one, _ in numbers}), omitted)
    assert stats.bad_rows == (oversize == "bad_rows") * sum(len(row) > limit for row in given_rows)


PLAN = sf.Packed(24, ["tokens"], rows=2, share="prefix", shared_with=["image"], min_shared=2)


def shown(batch):
    return batch.number, {name: tensor.tolist() for name, tensor in batch.items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two files of 200 rows."""
    path = tmp_path_factory.mktemp("trees")
    for number, name in enumerate("ab"):
        table = table_of(rows_of(number, 200), number)
        table = table.set_column(0, "id", [np.arange(200) + 200 * number])
        pq.write_table(table, path / f"{name}.parquet", row_group_size=40)
    return path


OPTIONS = {
    "order": {"shuffle": None},
    "keep": {"keep": "id % 3 != 1"},
    "skip": {"skip": [(2, 5)]},
    "tail": {"tail": "drop"},
    "bad rows": {"batch": sf.Packed(24, ["tokens"], rows=2, share="prefix", min_shared=2, max_path=6, oversize="bad_rows"),
                 "bad_rows": "skip"},
    "balance": {"batch": sf.Packed(24, ["tokens"], rows=2, share="prefix", min_shared=2,
                                   balance=sf.Balance(group=2, steps_of=2, linear=20))},
    "pool": {"batch": sf.Packed(24, ["tokens"], rows=2, share="prefix", min_shared=2,
                                balance=sf.Balance(group=2, pool=3, linear=20))},
    "refused": {"net": "checked = gather(number, where(number % 50 == 7, 100000, 0))", "bad_rows": "skip"},
    "random": {"net": "drawn, mask = dropout(tokens * 1.0, ratio=0.5, seed=3)"},
    "all": {
        "keep": "number % 3 != 1", "skip": [(1, 2), (4, 6)], "tail": "drop", "bad_rows": "skip",
        "net": "checked = gather(number, where(number % 50 == 7, 100000, 0))",
        "batch": sf.Packed(24, ["tokens"], rows=1, share="prefix", shared_with=["name"], min_shared=2, max_path=6,
                           oversize="bad_rows", balance=sf.Balance(group=2, linear=20)),
    },
    "bad files": {"bad_files": "skip"},
    "cache": {},
    "totals": {"totals": {"n": "tokens.lengths", "w": "weights.values"}},
}  # fmt: skip

QUICK = ("order",)
SLOW = [one for one in OPTIONS if one not in QUICK]


@pytest.mark.filterwarnings("ignore:Balance. world_size")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *product(QUICK, ("loader", "mix")),
        *slow(*zip(SLOW, cycle(("loader", "mix")))),
        *thorough(*zip(SLOW, cycle(("mix", "loader")))),
    ],
)
def test_ranks_resume_batch_at_and_servers_give_what_was_iterated(folder, name, kind, tmp_path, request):
    options = {"batch": PLAN, "window": "6 KiB", "shuffle": sf.Shuffle(5), **OPTIONS[name]}
    files = {one: [str(folder / f"{one}.parquet")] for one in "ab"}
    if name == "bad files":
        files["b"].append(str(tmp_path / "cut.parquet"))
        (tmp_path / "cut.parquet").write_bytes((folder / "b.parquet").read_bytes()[:-9])
    if name == "cache":
        bucket = request.getfixturevalue("bucket")
        files = {one: [bucket.put(f"{one}.parquet", folder / f"{one}.parquet")] for one in "ab"}
        options |= {"storage_options": bucket.options, "cache": tmp_path / "cache"}

    def made(rank=0, world_size=1, **ranks):
        ranks = {**options, "rank": rank, "world_size": world_size, **ranks}
        if kind == "loader":
            return sf.Loader([*files["a"], *files["b"]], **ranks)
        return sf.Mix(files, weights={"a": 1, "b": 2}, stop="first", **ranks)

    batches = [shown(batch) for batch in made()]
    assert len(batches) >= 8
    assert (tmp_path / "cache").exists() == (name == "cache")
    if kind == "loader" and name not in ("skip", "tail", "all"):
        ids = Counter(one for _, batch in batches for one in batch["id"])
        assert set(ids.values()) == {1}
    for world_size in (2, 3, 4):
        if (
            name in ("balance", "pool", "totals", "all")
            and world_size > 2
            and world_size != 4 * (name != "all")
        ):
            continue
        steps = {"steps_of": 12 // world_size} if name == "totals" else {}
        of_ranks = [
            shown(batch)
            for rank in range(world_size)
            for batch in made(rank, world_size, **{"tail": "pad", **steps})
            if batch.num_rows
        ]
        assert sorted(of_ranks, key=str) == sorted((b for b in batches if b[1]["id"]), key=str)
    for at in (1, len(batches) // 2):
        stopped = made()
        iteration = iter(stopped)
        for _ in range(at):
            next(iteration)
        resumed = made()
        resumed.load_state_dict(json.loads(json.dumps(stopped.state_dict())))
        assert [shown(batch) for batch in resumed] == batches[at:]
    again = made()
    number, batch = batches[len(batches) // 2]
    assert shown(again.batch_at(number)) == (number, batch)
    found = [(one.source, 0 if one.file.endswith("a.parquet") else 200, one) for one in again.trace(number)]
    traced = [first + one.block * 40 + one.row for _, first, one in found]
    # rows that the net refuses are traced as they were planned
    refused = range(7, 400, 50) if "checked" in options.get("net", "") else ()
    assert [one for one in traced if one not in refused] == batch["id"]
    with sf.serve(made(), port=0) as server:
        served = sf.served(server.url)
        assert [shown(one) for one in served] == batches
        local = made()
        list(local)
        counts = ("rows", "tokens", "cells", "shared", "saving")
        assert [getattr(served.stats(), one) for one in counts] == [
            getattr(local.stats(), one) for one in counts
        ]


def test_a_trace_of_an_element_names_all_its_owners(folder):
    loader = sf.Loader(str(folder / "a.parquet"), batch=PLAN, shuffle=sf.Shuffle(2))
    several = 0
    for number, batch in enumerate(loader):
        for row, pieces in enumerate(pieces_of(batch)):
            for place in range(24):
                at = row * 24 + place
                owners = [(one, places.index(at)) for one, places in pieces if at in places]
                if not owners:
                    with pytest.raises(sf.OpError, match=f"element {place} of row {row} is padding"):
                        loader.trace(number, row=row, element=place)
                    continue
                traced = loader.trace(number, row=row, element=place)
                assert [(one.block * 40 + one.row, one.element) for one in traced] == owners
                several += len(owners) > 1
            weights = loader.trace(number, row=row, element=0, column="weights")
            assert [one.block * 40 + one.row for one in weights] == [pieces[0][0]]
        if number == 1:
            break
    assert several > 5


def test_other_columns_of_a_row_that_is_cut_are_cut_like_it_or_it_is_a_bad_row():
    table = pa.table({
        "id": [0, 1, 2],
        "tokens": [[1, 2, 3, 4, 5], [1, 2, 3], [1, 2, 3, 4, 6]],
        "labels": [[1, 2, 3, 4, 5], [3], [6]],
        "text": ["five tokens", "three", "a label"],
    })  # fmt: skip
    plan = sf.Packed(4, ["tokens"], rows=9, share="prefix", min_shared=2)
    loader = sf.Loader(table, batch=plan, bad_rows="skip")
    (batch,) = loader
    labels = np.split(batch["labels.values"], np.cumsum(batch["labels.lengths"])[:-1])
    rows = zip(batch["id"].tolist(), batch["rows.lengths"].tolist(), labels, strict=True)
    assert sorted((one, size, of.tolist()) for one, size, of in rows) == [
        (0, 1, [5]), (0, 4, [1, 2, 3, 4]), (1, 3, [3])
    ]  # fmt: skip
    assert loader.stats().bad_rows == 1
    with pytest.raises(
        ProviderError, match=r"'labels': 1 elements, but 5 in 'tokens': they are cut together"
    ):
        list(sf.Loader(table, batch=plan))
    skipping = sf.Loader(table, batch=sf.Packed(4, ["tokens"], share="prefix", oversize="skip"))
    assert next(iter(skipping))["labels.values"].tolist() == [3]


def test_columns_that_are_packed_must_all_be_equal_to_share():
    table = pa.table({
        "tokens": [[1, 2, 3], [1, 2, 3], [1, 2, 4]], "kinds": [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    })  # fmt: skip
    plan = sf.Packed(8, ["tokens", "kinds"], rows=1, share="prefix", min_shared=1, fills={"kinds": -1})
    (batch,) = sf.Loader(table, batch=plan)
    places = np.split(batch["rows.values"], [3, 6])
    found = sorted(
        [[batch[name].flat[one].tolist() for name in ("tokens", "kinds")] for one in places], key=str
    )
    assert found == [[[1, 2, 3], [0, 0, 0]], [[1, 2, 3], [0, 1, 0]], [[1, 2, 4], [0, 0, 0]]]
    assert len({*batch["rows.values"].tolist()}) == 1 + 2 + 1 + 1 + 1
    assert batch["kinds"][0, 6:].tolist() == [-1, -1]


def test_a_balance_costs_what_each_element_sees():
    prompt, answers = list(range(20)), [[30, 31], [32], []]
    table = pa.table({"tokens": [prompt + one for one in answers]})
    plan = sf.Packed(64, ["tokens"], rows=1, share="prefix", balance=sf.Balance(group=1, linear=7))
    loader = sf.Loader(table, batch=plan, rank=0, world_size=1)
    list(loader)
    seen = sum(2 * (depth + 1) - 1 + 7 for depth in [*range(20), 20, 21, 20])
    assert loader.stats().costs.most == seen


def test_a_job_writes_trees_and_its_report_tells_what_they_save(folder, tmp_path):
    from seqflow.job import Job, run
    from seqflow.report.report import report_of_job

    text = f"""
    [source]
    paths = "{folder / "a.parquet"}"
    [order]
    shuffle = true
    seed = 5
    [batch]
    kind = "packed"
    capacity = 24
    rows = 2
    columns = ["tokens"]
    share = "prefix"
    shared_with = ["image"]
    min_shared = 2
    [output]
    path = "out.parquet"
    """
    (tmp_path / "job.toml").write_text(text)
    job = Job.read(tmp_path / "job.toml")
    done = run(job)
    written = pq.read_table(tmp_path / "out.parquet").to_pydict()
    loader = sf.Loader(str(folder / "a.parquet"), batch=PLAN, shuffle=sf.Shuffle(5))
    of_loader = [row for batch in loader for row in sf.to_arrow(batch).to_pylist()]
    assert [{name: written[name][at] for name in of_loader[0]} for at in range(len(of_loader))] == of_loader
    stats = loader.stats()
    assert (done.fill, done.saving) == (stats.fill, stats.saving)
    assert f"{stats.saving:.2f} times" in report_of_job(job, "job.toml").page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"multiple_of": 2}, "Packed: multiple_of is 2 with share = 'prefix', and a part"),
        ({"first_fills": {"tokens": 1}}, "Packed: first_fills is {'tokens': 1} with share"),
        ({"strategy": "concat"}, "Packed: strategy is 'concat' with share"),
        ({"along": ["images"]}, "Packed: along is ('images',) with share"),
        ({"max_pieces": 3}, "Packed: max_pieces is 3 with share"),
        ({"max_path": 9}, "Packed: max_path is 9, expected at most capacity = 8"),
        ({"balance": sf.Balance(group=1, cost="length")}, "Packed: balance has cost = 'length' with share"),
        ({"shared_with": "image"}, "Packed: shared_with is 'image', expected the names of columns"),
        ({"min_shared": 0}, "Packed: min_shared is 0"),
        ({"share": None, "max_path": 3}, "Packed: max_path is 3, which needs share='prefix'"),
        ({"share": None, "shared_with": ["image"]}, "Packed: shared_with is ('image',), which needs share"),
        ({"share": "suffix"}, "'suffix'"),
    ],
)
def test_what_has_no_meaning_with_shared_prefixes_is_refused(options, message):
    with pytest.raises(OpError) as caught:
        sf.Packed(8, **{"columns": ["tokens"], "share": "prefix", **options})
    assert message in str(caught.value)


def test_loaders_refuse_what_lengths_do_not_tell(tmp_path):
    table = table_of(rows_of(1))
    with pytest.raises(OpError, match="rows share prefixes, and lengths do not tell which"):
        sf.Loader(table, batch=PLAN, index=tmp_path / "index").lengths_index()
    with pytest.raises(OpError, match="streams = 2 needs the number of batches of each stream"):
        list(sf.Loader(pa.concat_tables([table, table]), batch=PLAN, window=900, streams=2))
    with pytest.raises(OpError, match="parts the rows of a group"):
        sf.Loader(table, batch=PLAN, shuffle=sf.Shuffle(1, by="image"))
    with pytest.raises(UnknownColumnError, match=r"shared_with has 'imag', which is not a column.*'image'"):
        next(iter(sf.Loader(table, batch=sf.Packed(24, ["tokens"], share="prefix", shared_with=["imag"]))))
    nested = table.append_column("nested", pa.array([[[1]]] * table.num_rows))
    with pytest.raises(BatchPlanError, match="shared_with has 'nested', which holds lists of lists"):
        next(iter(sf.Loader(nested, batch=sf.Packed(24, ["tokens"], share="prefix", shared_with=["nested"]))))
    clashing = table.append_column("previous", pa.array(range(table.num_rows)))
    with pytest.raises(BatchPlanError, match="'previous', which is the name of one that packing makes"):
        next(iter(sf.Loader(clashing, batch=PLAN)))


NET = """
depths = reshape(position_ids, shape=[-1])
of_rows = gather(depths, rows.values)
return of_rows, rows.lengths, pieces, id, node_lengths, parents, nodes
"""


def test_a_net_gets_a_batch_and_a_check_knows_its_shapes(folder, tmp_path):
    loader = sf.Loader(str(folder / "a.parquet"), batch=PLAN, net=NET)
    for batch in loader:
        lengths = batch["rows.lengths"]
        assert batch["of_rows"].tolist() == [at for size in lengths.tolist() for at in range(size)]
    assert str(loader.spec["of_rows"].shape) == "{sum(rows.lengths)}"
    net = NET.replace("\n", "\\n")
    (tmp_path / "job.toml").write_text(f"""
        source = {{paths = "{folder / 'a.parquet'}"}}
        batch = {{kind = "packed", capacity = 24, columns = ["tokens"], share = "prefix", max_path = 20}}
        net = {{net = "{net}"}}
        output = {{path = "out"}}
    """)  # fmt: skip
    checked = seqflow("check", "job.toml", folder=tmp_path)
    assert checked.returncode == 0, checked.stderr
    for line in ("tokens  int32{rows:0..", "previous  int64{rows:0..", "rows.lengths  int64{sum(pieces)}"):
        assert line in checked.stdout


@pytest.mark.slow
def test_a_killed_job_writes_the_same_trees(tmp_path):
    rows = rows_of(3, 400, longest=12)
    pq.write_table(table_of(rows), tmp_path / "a.parquet", row_group_size=40)
    write_dying_job(tmp_path, '[source]\npaths = "?.parquet"', row="id", lists="rows", window="6 kB")
    job = tmp_path / "job.toml"
    plan = 'kind = "packed"\ncapacity = 16\nrows = 1\ncolumns = ["tokens"]\nshare = "prefix"\nmin_shared = 2'
    text = job.read_text().replace('kind = "rows"\nn = 16', plan)
    job.write_text(text.replace("return row", "return tokens, pieces, row"))
    written = [one for row in written_though_killed(tmp_path) for one in row]
    assert sorted(written) == [at for at, row in enumerate(rows) if row]
    found = pq.read_table(tmp_path / "out").to_pylist()
    for one in found:
        for number, places in zip(one["row"], one["rows"], strict=True):
            assert [one["tokens"][place % 16] for place in places] == rows[number]


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [*thorough({}, {"deduplicate": {"columns": ["tokens"]}}), {"keep": "id % 3 > 0"}], ids=str
)
def test_workers_and_an_append_write_the_same_trees(tmp_path, more):
    rows = [row for seed in range(2) for row in rows_of(seed, 300, letters=6, longest=12)]
    table = table_of(rows)
    for number in range(2):
        part = table.slice(300 * number, 300)
        pq.write_table(part, tmp_path / f"{number}.parquet", row_group_size=40)
    plan = {
        "kind": "packed",
        "capacity": 16,
        "rows": 2,
        "columns": ["tokens"],
        "share": "prefix",
        "min_shared": 2,
    }
    source = {"paths": "?.parquet", "columns": ["id", "tokens"]}
    order = {"shuffle": True, "window": "6 kB"}
    outputs = {}
    for name, engine in {"local": {}, "workers": {"workers": 2}}.items():
        settings = {"source": source, "batch": plan, "order": order, "engine": engine, **more}
        output = {"path": f"{name}/out", "part_bytes": 512}
        job = Job.from_dict(
            {**settings, "output": output, "net": {"net": "return tokens, pieces, id"}}, tmp_path
        )
        run(job)
        outputs[name] = {path.name: path.read_bytes() for path in (tmp_path / name / "out").glob("*.parquet")}
    assert outputs["local"] == outputs["workers"]
    assert len(outputs["local"]) > 1
    if "deduplicate" not in more:
        (tmp_path / "1.parquet").rename(tmp_path / "later")
        run(replace(job, output=replace(job.output, path=str(tmp_path / "appended" / "out"))))
        (tmp_path / "later").rename(tmp_path / "1.parquet")
        run(replace(job, output=replace(job.output, path=str(tmp_path / "appended" / "out"))), append=True)
    for name in ("local", "appended")[: 2 - ("deduplicate" in more)]:
        found = [one for row in pq.read_table(tmp_path / name / "out")["id"].to_pylist() for one in row]
        kept = [at for at, row in enumerate(rows) if row and (more.get("keep") is None or at % 3 > 0)]
        if "deduplicate" in more:
            kept = [at for at in kept if rows.index(rows[at]) == at]
        assert sorted(found) == kept


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_workers_of_torch_give_the_same_trees(tmp_path, workers):
    pytest.importorskip("torch")
    from seqflow.torch import data_loader

    pq.write_table(table_of(rows_of(5, 300, longest=12)), tmp_path / "a.parquet", row_group_size=40)
    plan = sf.Packed(16, columns=["tokens"], share="prefix", min_shared=2, rows=2)
    expected, loader = (
        sf.Loader(
            tmp_path / "a.parquet", columns=["id", "tokens"], batch=plan, shuffle=sf.Shuffle(1), window="6 kB"
        )
        for _ in range(2)
    )
    names = ("id", "tokens", "rows.values", "rows.lengths", "until", "node_lengths")
    found = [[batch[name].tolist() for name in names] for batch in data_loader(loader, num_workers=workers)]
    assert found == [[batch[name].tolist() for name in names] for batch in expected]
