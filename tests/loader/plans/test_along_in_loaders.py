"""Items that travel with their row hold in mixes, jobs, reports and with bad rows: each goes once, with its piece."""

import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from ray_session import ray_session

import seqflow as sf
from seqflow.errors import ProviderError
from seqflow.job import Job, run
from seqflow.report.report import report_of_job

ITEM = pa.struct(
    [("start", pa.int64()), ("extent", pa.int64()), ("name", pa.int64()), ("patches", pa.list_(pa.uint8()))]
)
SCHEMA = pa.schema([("tokens", pa.list_(pa.int64())), ("images", pa.list_(ITEM))])
PLAN = sf.Packed(24, columns=["tokens"], along={"images": sf.Along("start", "extent")}, rows=2)
JOB = """
[source]
paths = "a.parquet"
fill = {images = []}
[order]
shuffle = true
seed = 3
[batch]
kind = "packed"
capacity = 24
rows = 2
columns = ["tokens"]
[batch.along.images]
start = "start"
extent = "extent"
[output]
path = "out"
"""


def rows_of(count, *, first=0, seed=0, images=4, nulls=False):
    """Rows with up to so many images of three tokens each, which have their numbers in the tokens, too.

    Token t of row r is 1000 r + t.
    """
    rng = np.random.default_rng(seed)
    rows = []
    for row in range(first, first + count):
        found = [
            {
                "start": 6 * k + 1,
                "extent": 3,
                "name": 10 * row + k,
                "patches": [row % 250] * int(rng.integers(0, 5)),
            }
            for k in range(rng.integers(0, images + 1))
        ]
        size = 6 * len(found) + int(rng.integers(1, 15))
        is_null = nulls and not found and row % 2
        rows.append({"tokens": [1000 * row + t for t in range(size)], "images": None if is_null else found})
    return rows


def pieces_of(batch):
    """Each piece: its tokens, and name and patches of its items."""
    tokens, counts = batch["tokens"][batch["segment_ids"] > 0], batch["images.lengths"]
    names = np.split(batch["images.values.name"], np.cumsum(counts)[:-1])
    patches = np.split(
        batch["images.values.patches.values"], np.cumsum(batch["images.values.patches.lengths"])[:-1]
    )
    assert len(counts) == len(batch["piece_lengths"])
    texts = np.split(tokens, np.cumsum(batch["piece_lengths"])[:-1])
    of_item = iter(patches)
    return [
        (text.tolist(), [(int(name), next(of_item).tolist()) for name in own])
        for text, own in zip(texts, names, strict=True)
    ]


def check(pieces, rows):
    """The pieces are those of the rows: all tokens once, and with each piece the items that begin in it."""
    found = {}
    for tokens, items in pieces:
        found.setdefault(tokens[0] // 1000, []).append((tokens, items))
    by_number = {row["tokens"][0] // 1000: row for row in rows}
    assert found.keys() == by_number.keys()
    for number, parts in found.items():
        row, parts = by_number[number], sorted(parts)
        assert [token for tokens, _ in parts for token in tokens] == row["tokens"]
        for tokens, items in parts:
            start = tokens[0] % 1000
            expected = [
                (item["name"], item["patches"])
                for item in row["images"] or []
                if start <= item["start"] < start + len(tokens)
            ]
            assert items == expected


def all_pieces(loader):
    return [piece for batch in loader for piece in pieces_of(batch)]


def table(rows):
    return pa.Table.from_pylist(rows, SCHEMA)


def test_a_mix_has_rows_with_images_and_texts_without():
    images, texts = rows_of(40), rows_of(40, first=40, images=0)
    mix = sf.Mix(
        {"images": table(images), "texts": table(texts)},
        weights={"images": 1, "texts": 1}, batch=PLAN, shuffle=True, stop="all", rank=0, world_size=1,
    )  # fmt: skip
    # the source that ends first begins again until the other one ends
    pieces = {str(piece): piece for piece in all_pieces(mix)}
    check(pieces.values(), images + texts)
    without = next(batch for batch in mix if batch.sources == ("texts",))
    shapes = {name: without[name].shape for name in without if name.startswith("images")}
    assert shapes == {
        "images.lengths": without["piece_lengths"].shape,
        **{f"images.values.{name}": (0,) for name in ("start", "extent", "name")},
        "images.values.patches.lengths": (0,), "images.values.patches.values": (0,),
    }  # fmt: skip


def test_a_list_that_is_null_is_a_bad_row_unless_it_is_filled():
    rows = rows_of(40, nulls=True)
    assert sum(row["images"] is None for row in rows) > 2
    with pytest.raises(ProviderError, match="null"):
        list(sf.Loader(table(rows), batch=PLAN))
    check(all_pieces(sf.Loader(table(rows), batch=PLAN, fill={"images": []}, shuffle=True)), rows)
    skipping = sf.Loader(table(rows), batch=PLAN, bad_rows="skip")
    check(all_pieces(skipping), [row for row in rows if row["images"] is not None])
    assert skipping.stats().bad_rows == sum(row["images"] is None for row in rows)


@pytest.mark.parametrize("threads", [0, 2])
def test_pieces_that_the_net_refuses_are_left_out_with_their_items(threads):
    rows = rows_of(40)
    # of each item in turn: the number of a row that divides by 70 is a bad one
    net = sf.Net("y = gather(table, where(images.values.name % 70 == 0, 9, 0))\nreturn tokens, segment_ids, "
                 "pieces, piece_lengths, images.lengths, images.values.name, images.values.patches.lengths, "
                 "images.values.patches.values, y", {"table": np.zeros(1)})  # fmt: skip
    bad = {item["name"] for row in rows for item in row["images"] if item["name"] % 70 == 0}
    assert len(bad) > 2
    loader = sf.Loader(
        table(rows), batch=PLAN, net=net, bad_rows="skip", shuffle=True, threads=threads,
    )  # fmt: skip
    pieces, whole = all_pieces(loader), all_pieces(sf.Loader(table(rows), batch=PLAN, shuffle=True))
    assert sorted(pieces) == sorted(
        (tokens, items) for tokens, items in whole if not {name for name, _ in items} & bad
    )
    assert loader.stats().bad_rows == len(bad)


def job_of(folder, rows, text=JOB):
    pq.write_table(table(rows), folder / "a.parquet", row_group_size=10)
    (folder / "job.toml").write_text(text)
    return Job.read(folder / "job.toml")


def test_rows_that_a_job_writes_are_read_again(tmp_path):
    rows = rows_of(60, nulls=True)
    job = job_of(tmp_path, rows)
    run(job)
    made = sf.Loader(
        tmp_path / "a.parquet", batch=PLAN, shuffle=sf.Shuffle(3), fill={"images": []}, rank=0, world_size=1
    )
    expected = all_pieces(made)
    check(expected, rows)
    assert pq.read_schema(next((tmp_path / "out").glob("*.parquet"))).field("images").type == pa.list_(
        pa.list_(ITEM)
    )
    found = [
        (row["tokens"][begin : begin + size], [(item["name"], item["patches"]) for item in items])
        for row in pq.read_table(tmp_path / "out").to_pylist()
        for begin, size, items in zip(
            np.cumsum([0, *row["piece_lengths"]]), row["piece_lengths"], row["images"], strict=False
        )
    ]
    assert found == expected
    # images of the pieces of a row: one more level of lengths
    (batch,) = sf.Loader(tmp_path / "out", batch=1000, rank=0, world_size=1)
    assert (batch["images.lengths"] == batch["piece_lengths.lengths"]).all()
    assert batch["images.values.lengths"].tolist() == [len(items) for _, items in expected]
    assert batch["images.values.values.name"].tolist() == [name for _, items in expected for name, _ in items]


@pytest.mark.slow
@pytest.mark.thorough
def test_ray_writes_the_same(tmp_path):
    rows = rows_of(60)
    run(job_of(tmp_path, rows))
    alone = pq.read_table(tmp_path / "out")
    text = JOB.replace('"out"', '"by_ray"') + '[engine]\nkind = "ray"\n'
    with ray_session(2):
        run(job_of(tmp_path, rows, text))
    assert pq.read_table(tmp_path / "by_ray").equals(alone)


def test_a_report_has_the_items(tmp_path):
    page = report_of_job(job_of(tmp_path, rows_of(60, nulls=True)), "job.toml").page
    assert "images.values.patches.lengths" in page
    assert re.search(r"bad rows</th><td[^>]*>none", page)


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_other_ranks_go_on_at_any_batch(ranks):
    def load(rank, world_size):
        return sf.Loader(
            table(rows_of(60)),
            batch=PLAN,
            shuffle=True,
            threads=0,
            rank=rank,
            world_size=world_size,
            tail="pad",
        )

    whole = [pieces_of(batch) for batch in load(0, 1)]
    for done in range(0, len(whole), 3):
        loader = load(0, 1)
        iterator = iter(loader)
        for _ in range(done):
            next(iterator)
        state, by_rank = loader.state_dict(), []
        for rank in range(ranks):
            resumed = load(rank, ranks)
            resumed.load_state_dict(state)
            by_rank.append([pieces_of(batch) if batch.num_rows else [] for batch in resumed])
        dealt = [batch for step in zip(*by_rank, strict=True) for batch in step]
        assert [batch for batch in dealt if batch] == whole[done:]


def test_the_figures_of_a_loader_count_rows_tokens_and_pieces():
    rows = rows_of(60)
    loader = sf.Loader(table(rows), batch=PLAN, totals={"images": "images.lengths"}, rank=0, world_size=1)
    totals = [batch.totals["images"] for batch in loader]
    stats = loader.stats()
    assert stats.rows == 60
    assert stats.tokens == sum(len(row["tokens"]) for row in rows)
    assert sum(totals) == sum(len(row["images"]) for row in rows)


@pytest.mark.parametrize("options", [{"reuse": True}, {"reuse": True, "threads": 3}, {"window": "32 KiB"}])
def test_items_are_the_same_in_memory_that_is_used_again_and_in_windows(options):
    rows = rows_of(120)
    blocks = pa.concat_tables([table(rows).slice(start, 20) for start in range(0, 120, 20)])
    pieces = all_pieces(sf.Loader(blocks, batch=PLAN, shuffle=True, **options))
    check(pieces, rows)
    if "window" not in options:
        assert pieces == all_pieces(sf.Loader(blocks, batch=PLAN, shuffle=True, threads=0))


def test_any_batch_is_made_by_its_number():
    loader = sf.Loader(table(rows_of(60)), batch=PLAN, shuffle=True, rank=0, world_size=1)
    for number, batch in enumerate(list(loader)):
        assert pieces_of(loader.batch_at(number)) == pieces_of(batch)


def test_rows_from_the_middle_of_a_table_have_their_items():
    rows = rows_of(60)
    middle = table(rows).combine_chunks().slice(7, 40)
    check(all_pieces(sf.Loader(middle, batch=PLAN, shuffle=True)), rows[7:47])


def test_buckets_of_flat_batches_cut_rows_outside_their_items():
    rows = rows_of(60)
    budget = sf.TokenBudget(
        24, columns=["tokens"], along=PLAN.along, oversize="split", lengths="tokens.lengths"
    )
    pieces = []
    for batch in sf.Loader(table(rows), batch=sf.Buckets(3, budget), shuffle=True):
        assert len(batch["tokens.values"]) <= 24
        as_packed = {"tokens": batch["tokens.values"], "segment_ids": np.ones_like(batch["tokens.values"])}
        pieces += pieces_of({**batch, **as_packed, "piece_lengths": batch["tokens.lengths"]})
    check(pieces, rows)
