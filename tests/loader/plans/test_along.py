"""Columns that travel with their row: each item goes once, with the piece in which it begins, and none is cut."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import BatchPlanError, OpError, ProviderError

ITEM = pa.struct(
    [("start", pa.int64()), ("extent", pa.int32()), ("name", pa.int64()), ("patches", pa.list_(pa.uint8()))]
)


def documents(count=120, seed=0, longest=90, most=4):
    """Documents with items that touch, at the beginning and the end, without elements and without patches."""
    draw = np.random.default_rng(seed)
    rows, name = [], 0
    for row in range(count):
        size = int(draw.integers(0, longest))
        edges = np.sort(draw.integers(0, size + 1, 2 * int(draw.integers(0, most + 1)))).reshape(-1, 2)
        items = []
        for start, stop in edges.tolist():
            patches = [name % 251] * int(draw.integers(0, 4))
            items.append({"start": start, "extent": min(stop - start, 20), "name": name, "patches": patches})
            name += 1
        rows.append({"tokens": [row * 1000 + i for i in range(size)], "images": items, "id": row})
    schema = pa.schema([("tokens", pa.list_(pa.int64())), ("images", pa.list_(ITEM)), ("id", pa.int64())])
    return pa.Table.from_pylist(rows, schema)


TABLE = documents()
SPANS = {"images": sf.Along("start", "extent")}
WHOLE = {"images": None}


def pieces_of(batch):
    """Each piece of a packed batch or of a flat one: its tokens, and its items as pairs of name and patches."""
    packed = "pieces" in batch
    sizes = batch["piece_lengths"] if packed else batch["tokens.lengths"]
    counts, patches = batch["images.lengths"], batch["images.values.patches.lengths"]
    tokens = batch["tokens"][batch["segment_ids"] > 0] if packed else batch["tokens.values"]
    names, values = batch["images.values.name"], batch["images.values.patches.values"]
    token, item, patch, found = 0, 0, 0, []
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        items = []
        for at in range(item, item + count):
            items.append((int(names[at]), values[patch : patch + patches[at]].tolist()))
            patch += int(patches[at])
        found.append((tokens[token : token + size].tolist(), items))
        token, item = token + size, item + count
    assert (token, item, patch) == (len(tokens), len(names), len(values))
    return found


def load(batch, table=TABLE, **options):
    return sf.Loader(table, batch=batch, shuffle=True, threads=0, rank=0, world_size=1, **options)


def all_pieces(batch, table=TABLE, **options):
    return [piece for one in load(batch, table, **options) for piece in pieces_of(one)]


def check_pieces(pieces, table, limit, *, whole=True):
    """Pieces of a document follow each other, have the items that begin in them, and end inside none."""
    by_row = {}
    for tokens, items in pieces:
        assert len(tokens) <= limit
        by_row.setdefault(tokens[0] // 1000, []).append((tokens[0] % 1000, tokens, items))
    for row, document in enumerate(table.to_pylist()):
        parts = sorted(by_row.pop(row, []), key=lambda part: part[0])
        if not document["tokens"]:
            assert not parts
            continue
        joined = [token for _, tokens, _ in parts for token in tokens]
        assert joined == document["tokens"][: len(joined)]
        if whole:
            assert joined == document["tokens"]
        ends = np.cumsum([len(tokens) for _, tokens, _ in parts]).tolist()
        for item in document["images"]:
            assert not any(item["start"] < end < item["start"] + item["extent"] for end in ends)
        for (start, _, items), end in zip(parts, ends, strict=True):
            is_last = end == len(document["tokens"])
            begin_here = [
                (item["name"], item["patches"])
                for item in document["images"]
                if start <= item["start"] < end + is_last
            ]
            assert items == begin_here
    assert not by_row


@pytest.mark.parametrize("strategy", ["best_fit", "first_fit"])
@pytest.mark.parametrize(("oversize", "whole"), [("split", True), ("truncate", False)])
def test_rows_are_cut_only_outside_items_which_go_once(strategy, oversize, whole):
    plan = sf.Packed(32, columns=["tokens"], along=SPANS, strategy=strategy, oversize=oversize, rows=3)
    check_pieces(all_pieces(plan), TABLE, 32, whole=whole)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 999), capacity=st.integers(20, 60), multiple=st.sampled_from([1, 4]))
def test_any_documents(seed, capacity, multiple):
    table = documents(40, seed)
    capacity -= capacity % multiple
    plan = sf.Packed(capacity, columns=["tokens"], along=SPANS, multiple_of=multiple, rows=2)
    if multiple == 1:
        check_pieces(all_pieces(plan, table), table, capacity)
    flat = sf.TokenBudget(
        capacity, columns=["tokens"], along=SPANS, oversize="split", lengths="tokens.lengths"
    )
    check_pieces([piece for piece in all_pieces(flat, table) if piece[0]], table, capacity)


def test_without_places_rows_stay_whole_with_all_of_their_items():
    plan = sf.Packed(90, columns=["tokens"], along=["images"], oversize="bad_rows", rows=2)
    pieces = all_pieces(plan)
    check_pieces(pieces, TABLE, 90)
    flat = sf.TokenBudget(90, lengths="tokens.lengths")
    assert sorted(pieces) == sorted(piece for piece in all_pieces(flat) if piece[0])
    kept = all_pieces(sf.Packed(40, columns=["tokens"], along=["images"], oversize="skip"))
    assert max(len(tokens) for tokens, _ in kept) <= 40


def test_an_item_longer_than_a_row_is_a_bad_row_that_says_so():
    plan = sf.Packed(12, columns=["tokens"], along=SPANS)
    with pytest.raises(ProviderError, match=r"column 'images': an item of \d+ elements, expected at most 12"):
        list(load(plan))
    loader = load(plan, bad_rows="skip")
    pieces = [piece for one in loader for piece in pieces_of(one)]
    long = [
        row
        for row, one in enumerate(TABLE.to_pylist())
        if len(one["tokens"]) > 12 and max([item["extent"] for item in one["images"]], default=0) > 12
    ]
    assert loader.stats().bad_rows == len(long)
    assert not {tokens[0] // 1000 for tokens, _ in pieces} & {*long}


@pytest.mark.parametrize(
    ("items", "message"),
    [
        ([(2, 3), (4, 2)], "item 1 begins at 4, before 5, where the item before it ends"),
        ([(7, 5)], "item 0 has the elements 7 to 11, expected places from 0 to 9"),
        ([(-1, 1)], "item 0 has the elements -1 to -1, expected places from 0 to 9"),
        ([(3, -1)], "item 0 has the elements 3 to 1, expected"),
    ],
)
def test_items_that_are_not_where_they_can_be_are_bad_rows(items, message):
    made = [{"start": start, "extent": extent, "name": 0, "patches": []} for start, extent in items]
    table = pa.table(
        {"tokens": [[1] * 10, [2] * 10], "images": pa.array([made, []], pa.list_(ITEM)), "id": [0, 1]}
    )
    plan = sf.Packed(8, columns=["tokens"], along=SPANS)
    with pytest.raises(ProviderError, match=message):
        list(load(plan, table))
    loader = load(plan, table, bad_rows="skip")
    assert sum(batch["piece_lengths"].sum() for batch in loader) == 10
    assert loader.stats().bad_rows == 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: sf.Packed(8, along=["images"]),
            r"Packed: oversize is 'split', which cuts rows, and along = 'images'",
        ),
        (lambda: sf.Packed(8, along=["images"], oversize="truncate"), "oversize is 'truncate'"),
        (
            lambda: sf.Packed(8, along=SPANS, strategy="concat"),
            "strategy is 'concat', which cuts rows anywhere",
        ),
        (lambda: sf.Packed(8, max_pieces=2, strategy="concat"), "with max_pieces = 2"),
        (lambda: sf.Packed(8, along="images"), "along is 'images', expected names"),
        (lambda: sf.Packed(8, along={"images": ("a", "b")}), r"along has \('a', 'b'\), expected Along"),
        (lambda: sf.TokenBudget(8, along=["images"], oversize="split"), "TokenBudget: oversize is 'split'"),
        (lambda: sf.Packed(8, max_pieces=0), "max_pieces is 0"),
    ],
)
def test_settings_that_would_cut_items_are_refused_when_the_plan_is_made(make, message):
    with pytest.raises(OpError, match=message):
        make()


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"columns": ["tokens"]}, r"'images' is neither cut nor left out\n.*in along= to let it travel"),
        (
            {"columns": ["tokens"], "along": ["image"]},
            r"'image', which is not a list column.*did you mean 'images'",
        ),
        ({"columns": ["tokens"], "along": ["tokens", "images"]}, "'tokens', which is cut with its row"),
        (
            {"columns": ["tokens"], "along": {"images": sf.Along("begin", "extent")}},
            "no field 'begin' of one integer",
        ),
        ({"columns": ["tokens"], "along": {"images": sf.Along("start", "patches")}}, "no field 'patches'"),
    ],
)
def test_columns_that_cannot_travel_are_errors(plan, message):
    with pytest.raises(BatchPlanError, match=message):
        list(load(sf.Packed(100, oversize="skip", **plan)))


def test_the_text_of_a_plan_can_be_typed():
    plan = sf.Packed(32, ["tokens"], {"tokens": 1.5}, along=SPANS)
    assert repr(plan).endswith("along={'images': Along(start='start', extent='extent')})")
    assert eval(repr(plan), {"Packed": sf.Packed, "Along": sf.Along}) == plan


def test_packed_rows_hold_at_most_so_many_pieces():
    free, bound = (
        list(load(sf.Packed(90, columns=["tokens"], along=SPANS, max_pieces=most))) for most in (None, 2)
    )
    assert max(batch["pieces"].max() for batch in free) > 2
    assert max(batch["pieces"].max() for batch in bound) == 2
    assert sum(batch["piece_lengths"].sum() for batch in bound) == sum(
        batch["piece_lengths"].sum() for batch in free
    )


@pytest.mark.slow
def test_resume_and_ranks_give_the_same_batches():
    plan = sf.Packed(32, columns=["tokens"], along=SPANS, rows=2)
    whole = [pieces_of(batch) for batch in load(plan)]
    for start in range(len(whole)):
        loader = load(plan)
        iterator = iter(loader)
        for _ in range(start):
            next(iterator)
        resumed = load(plan)
        resumed.load_state_dict(loader.state_dict())
        assert [pieces_of(batch) for batch in resumed] == whole[start:]
    for ranks in (2, 5):
        by_rank = [
            [
                pieces_of(b)
                for b in sf.Loader(
                    TABLE, batch=plan, shuffle=True, threads=0, rank=rank, world_size=ranks, tail="drop"
                )
            ]
            for rank in range(ranks)
        ]
        dealt = [batch for batches in by_rank for batch in batches]
        assert sorted(map(str, dealt)) == sorted(map(str, whole[: len(whole) // ranks * ranks]))


def test_costs_and_totals_sum_the_items_of_each_piece():
    plan = sf.Packed(
        32,
        columns=["tokens"],
        along=SPANS,
        rows=2,
        balance=sf.Balance(group=2, cost="length + 10 * images.values.name + images.values.patches.lengths"),
    )
    pieces = []
    for rank in (0, 1):
        loader = sf.Loader(TABLE, batch=plan, shuffle=True, threads=0, rank=rank, world_size=2, tail="pad")
        pieces += [piece for batch in loader for piece in pieces_of(batch)]
    check_pieces(pieces, TABLE, 32)
    loader = load(
        sf.Packed(32, columns=["tokens"], along=SPANS, rows=4),
        totals={"patches": "images.values.patches.lengths", "images": "images.lengths"},
    )
    patches = images = 0
    for batch in loader:
        found = pieces_of(batch)
        assert batch.totals["images"] == sum(len(items) for _, items in found)
        assert batch.totals["patches"] == sum(len(of) for _, items in found for _, of in items)
        images, patches = images + batch.totals["images"], patches + batch.totals["patches"]
    assert images == sum(len(one["images"]) for one in TABLE.to_pylist() if one["tokens"])


def test_items_are_traced_to_their_places_in_the_source():
    loader = load(sf.Packed(32, columns=["tokens"], along=SPANS, rows=2))
    for number, batch in enumerate(loader):
        items = np.split(batch["images.values.name"], np.cumsum(batch["images.lengths"])[:-1])
        row_of = np.repeat(np.arange(batch.num_rows), batch["pieces"])
        for row in range(batch.num_rows):
            names = np.concatenate([items[piece] for piece in np.flatnonzero(row_of == row)])
            for element, name in enumerate(names.tolist()):
                (found,) = loader.trace(number, row=row, element=element, column="images")
                assert TABLE["images"][found.row].as_py()[found.element]["name"] == name
        if number == 2:
            break


def test_an_index_is_refused_where_lengths_do_not_tell_the_pieces(tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(TABLE, tmp_path / "a.parquet")
    plan = sf.Packed(32, columns=["tokens"], along=SPANS)
    with pytest.raises(OpError, match="index: rows are cut outside the items of along"):
        list(sf.Loader(tmp_path / "a.parquet", batch=plan, index=tmp_path / "lengths.arrow"))
    whole = sf.Packed(90, columns=["tokens"], along=["images"], oversize="bad_rows")
    loader = sf.Loader(tmp_path / "a.parquet", batch=whole, index=tmp_path / "lengths.arrow")
    first = len(list(loader))
    assert len(sf.Loader(tmp_path / "a.parquet", batch=whole, index=tmp_path / "lengths.arrow")) == first


def test_jobs_name_the_columns_and_the_fields_of_their_items(tmp_path):
    import pyarrow.parquet as pq

    from seqflow.job import Job, run

    pq.write_table(TABLE, tmp_path / "a.parquet")
    (tmp_path / "job.toml").write_text(
        '[source]\npaths = "a.parquet"\n[batch]\nkind = "packed"\ncapacity = 32\nrows = 2\ncolumns = ["tokens"]\n'
        '[batch.along.images]\nstart = "start"\nextent = "extent"\n[output]\npath = "out"\n'
    )
    job = Job.read(tmp_path / "job.toml")
    assert job.batch.along == SPANS
    run(job)
    written = pq.read_table(tmp_path / "out")["images"].to_pylist()
    names = [item["name"] for row in written for piece in row for item in piece]
    assert sorted(names) == [
        item["name"] for one in TABLE.to_pylist() if one["tokens"] for item in one["images"]
    ]


def test_budgets_are_planned_on_a_number_a_row():
    numbers = np.random.default_rng(1).integers(0, 50, 200)
    table = pa.table({"n": numbers, "id": np.arange(200)})
    batches = list(load(sf.TokenBudget(100, lengths="n"), table))
    assert all(batch["n"].sum() <= 100 for batch in batches)
    assert sorted(id for batch in batches for id in batch["id"].tolist()) == list(range(200))
    packed = list(load(sf.TokenBudget(100, lengths="n", strategy="best_fit", max_rows=5), table))
    assert all(batch["n"].sum() <= 100 and batch.num_rows <= 5 for batch in packed)
    assert sorted(id for batch in packed for id in batch["id"].tolist()) == list(range(200))
    buckets = load(sf.Buckets([10, 30], sf.TokenBudget(100, lengths="n")), table)
    assert sum(batch.num_rows for batch in buckets) == 200
    negative = pa.table({"n": [3, -4], "id": [0, 1]})
    with pytest.raises(ProviderError, match="column 'n': -4, expected 0 or more"):
        list(load(sf.TokenBudget(100, lengths="n"), negative))
    with pytest.raises(BatchPlanError, match="lengths = 'n' has a number a row"):
        list(load(sf.Packed(100, lengths="n", columns=["tokens"]), TABLE.append_column("n", TABLE["id"])))
