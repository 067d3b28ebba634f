"""Rows that cannot be used: raise, skip, quarantine; and conditions that rows have to fulfil."""

import re
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import NetError, OpIndexError, OpResultError, OpTypeError, ProviderError
from seqflow.job import Job, run
from seqflow.loader import BadRows

ROWS = [[1, 2], [3, None], [], [], [4, 99], [5]]


@pytest.fixture
def file(tmp_path):
    pq.write_table(
        pa.table({"x": pa.array(ROWS, pa.list_(pa.int64())), "id": range(6)}), tmp_path / "x.parquet"
    )
    return tmp_path / "x.parquet"


GATHER = "y = gather(table, x.values)\nreturn y, x.lengths, id"
TABLE = {"table": np.arange(10.0)}


def test_raise_names_file_block_row_column_and_reason(file):
    with pytest.raises(sf.ProviderError, match=r"x.parquet, block 0, row 1, column 'x.*null value"):
        list(sf.Loader(file))


def test_skip_leaves_bad_rows_out_and_counts_them(file):
    loader = sf.Loader(file, bad_rows="skip")
    (batch,) = loader
    assert batch["id"].tolist() == [0, 2, 3, 4, 5]
    assert batch["x.lengths"].tolist() == [2, 0, 0, 2, 1]
    assert loader.stats().bad_rows == 1


def test_rows_that_prepare_cannot_take_are_bad_rows_too(file):
    loader = sf.Loader(file, prepare=GATHER, constants=TABLE, bad_rows="skip", batch=sf.Rows(10))
    (batch,) = loader
    assert batch["id"].tolist() == [0, 2, 3, 5]
    assert batch["y"].tolist() == [1, 2, 5]
    assert loader.stats().bad_rows == 2


@pytest.mark.parametrize("name", ["bad.arrow", "bad.parquet"])
def test_quarantine_keeps_the_rows_with_their_reasons(file, tmp_path, name):
    path = tmp_path / name
    loader = sf.Loader(file, prepare=GATHER, constants=TABLE, bad_rows=sf.BadRows("quarantine", path))
    list(loader)
    table = pq.read_table(path) if name.endswith("parquet") else pa.ipc.open_file(path).read_all()
    assert table["id"].to_pylist() == [1, 4]
    assert table["x"].to_pylist() == [[3, None], [4, 99]]
    reasons = table["bad"].to_pylist()
    assert [reason["row"] for reason in reasons] == [1, 4]
    assert all(reason["file"].endswith("x.parquet") for reason in reasons)
    assert "null value" in reasons[0]["reason"]
    assert "indices[1] = 99 is outside [0, 10)" in reasons[1]["reason"]


@pytest.mark.parametrize("name", ["bad.arrow", "bad.parquet"])
def test_a_quarantine_file_can_be_opened_as_a_source(file, tmp_path, name):
    list(sf.Loader(file, bad_rows=sf.BadRows("quarantine", tmp_path / name)))
    provider = sf.open(tmp_path / name, columns=["id", "bad.row"])
    assert provider["id"].tolist() == [1]
    assert provider["bad"]["row"].tolist() == [1]
    (batch,) = sf.Loader(tmp_path / name, fill=0, columns=["x"])
    assert batch["x.values"].tolist() == [3, 0]


def test_a_column_called_bad_keeps_its_name_in_the_quarantine(tmp_path):
    table = pa.table({"bad": [1, None, 3]})
    for _ in range(2):  # the second run knows the file of the first
        list(sf.Loader(table, bad_rows=sf.BadRows("quarantine", tmp_path / "bad.arrow")))
    found = pa.ipc.open_file(tmp_path / "bad.arrow").read_all()
    assert found["bad"].to_pylist() == [None]
    assert found["bad_"].to_pylist()[0]["row"] == 1


def test_fill_and_valid_make_null_values_good(file):
    (batch,) = sf.Loader(file, fill={"x": [], "x.values": 0})
    assert batch["x.values"].tolist() == [1, 2, 3, 0, 4, 99, 5]
    (batch,) = sf.Loader(file, valid=True)
    assert batch["x.values.valid"].tolist() == [True, True, True, False, True, True, True]


def test_an_error_that_every_row_would_have_is_raised_even_so(file):
    with pytest.raises(sf.OpError, match="expected integers"):
        list(
            sf.Loader(
                file,
                prepare="y = gather(x.values, table)\nreturn y",
                constants=TABLE,
                bad_rows="skip",
                fill=0,
            )
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("drop",), "policy is 'drop'"),
        (("quarantine",), "needs a path"),
        (("skip", "x"), "takes no path"),
        (("quarantine", "bad.txt"), "path is 'bad.txt', expected a name that ends in .parquet or .arrow"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(sf.OpError, match=message):
        sf.BadRows(*arguments)


def test_files_that_are_not_text_are_bad_rows(tmp_path):
    texts, bad = tmp_path / "texts", tmp_path / "bad.arrow"
    texts.mkdir()
    (texts / "a.txt").write_bytes("é".encode())
    (texts / "b.txt").write_bytes(b"ab\xff")
    (texts / "c.txt").write_bytes(b"c")
    with pytest.raises(sf.ProviderError, match=r"b\.txt"):
        list(sf.Loader(texts, kind="text", format=sf.Text(encoding="utf-8")))
    loader = sf.Loader(
        texts, kind="text", format=sf.Text(encoding="utf-8"), bad_rows=sf.BadRows("quarantine", bad)
    )
    (batch,) = loader
    assert bytes(batch["text.values"]) == "éc".encode()
    assert loader.stats().bad_rows == 1
    assert "b.txt" in str(pa.ipc.open_file(bad).read_all().to_pylist())


def test_a_quarantine_replaces_that_of_an_earlier_run_and_no_other_file(file, tmp_path):
    precious = tmp_path / "notes.arrow"
    precious.write_text("precious")
    with pytest.raises(sf.ProviderError, match="exists and is not a quarantine file of an earlier run"):
        list(sf.Loader(file, bad_rows=sf.BadRows("quarantine", precious)))
    assert precious.read_text() == "precious"
    bad = tmp_path / "bad.arrow"
    for _ in range(2):
        list(sf.Loader(file, bad_rows=sf.BadRows("quarantine", bad)))
    assert bad.exists()
    list(sf.Loader(file, fill=0, bad_rows=sf.BadRows("quarantine", bad)))
    assert not bad.exists()


def test_rows_that_prepare_cannot_take_are_not_counted_as_rows(file):
    loader = sf.Loader(file, prepare=GATHER, constants=TABLE, bad_rows="skip")
    list(loader)
    assert (loader.stats().rows, loader.stats().bad_rows) == (4, 2)


def test_each_rank_has_a_quarantine_file(file, tmp_path):
    bad_rows = sf.BadRows("quarantine", tmp_path / "bad.parquet")
    ranks = [iter(sf.Loader(file, batch=1, bad_rows=bad_rows, rank=rank, world_size=2)) for rank in (0, 1)]
    for _ in zip(*ranks, strict=True):  # at the same time
        pass
    for rank in (0, 1):
        assert pq.read_table(tmp_path / f"bad.rank{rank}.parquet")["id"].to_pylist() == [1]
    assert not (tmp_path / "bad.parquet").exists()


LIMIT = "y = gather(table, tokens.values)\nreturn y, tokens.lengths, id"
"""Refuses rows with an id of 10 or more."""
IDS = [3, 12, 7, 10, 1, 2, 99, 4, 5, 6, 8, 0]


@pytest.fixture
def ids(tmp_path):
    """Row i has the id IDS[i]; three of them are 10 or more."""
    table = pa.table({"id": IDS, "tokens": [[i] * (i % 4 + 1) for i in IDS]})
    pq.write_table(table, tmp_path / "ids.parquet", row_group_size=4)
    return tmp_path / "ids.parquet"


@pytest.mark.parametrize("threads", [0, 2])
@pytest.mark.parametrize("batch", [sf.Rows(3), sf.Rows(100), sf.TokenBudget(9), sf.Buckets(2, sf.Rows(4))])
def test_rows_that_net_refuses_are_left_out_of_their_batch(ids, batch, threads):
    loader = sf.Loader(ids, net=LIMIT, constants=TABLE, bad_rows="skip", batch=batch, threads=threads)
    found = np.concatenate([batch["id"] for batch in loader])
    assert sorted(found) == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    stats = loader.stats()
    assert (stats.rows, stats.bad_rows) == (9, 3)
    assert stats.tokens == sum(i % 4 + 1 for i in range(9))


def test_a_refused_row_goes_to_quarantine_with_its_place_and_the_statement(ids, tmp_path):
    bad = tmp_path / "bad.parquet"
    options = {"net": LIMIT, "constants": TABLE, "bad_rows": sf.BadRows("quarantine", bad), "window": 200}
    list(sf.Loader(ids, shuffle=True, batch=2, **options))
    table = pq.read_table(bad)
    found = {row["id"]: (row["bad"], row["tokens"]) for row in table.to_pylist()}
    assert found.keys() == {10, 12, 99}
    assert found[99] == (
        {
            "file": str(ids), "block": 1, "row": 2, "column": "y = gather(table, tokens.values)",
            "reason": "gather: indices[0] = 99 is outside [0, 10) (data[R, *d], index(R) indices[N, *i])",
            "line": None,
        },
        [99] * 4,
    )  # fmt: skip
    assert (found[10][0]["block"], found[10][0]["row"]) == (0, 3)


def test_of_a_packed_row_only_the_piece_that_is_refused_is_left_out(ids):
    net = "y = gather(table, tokens)\nreturn tokens, segment_ids, piece_lengths, id, pieces"
    options = {"batch": sf.Packed(8, rows=2, fill=0), "constants": TABLE}
    loader = sf.Loader(ids, net=net, bad_rows="skip", **options)
    batches = list(loader)
    assert sorted(np.concatenate([batch["id"] for batch in batches])) == [0, 1, 2, 3, 4, 5, 6, 7, 8]
    for batch in batches:
        ends = np.cumsum(batch["pieces"])
        for row, packed in enumerate(np.split(batch["id"], ends[:-1])):
            tokens = [one for i in packed for one in [i] * (i % 4 + 1)]
            assert batch["tokens"][row].tolist() == tokens + [0] * (8 - len(tokens))
    assert (loader.stats().rows, loader.stats().bad_rows) == (9, 3)
    assert loader.stats().tokens == sum(i % 4 + 1 for i in range(9))
    with pytest.raises(sf.OpError) as caught:
        list(sf.Loader(ids, net=net, **options))
    assert re.fullmatch(rf"at {ids}, block (0, row [13]|1, row 2)", caught.value.__notes__[-1])


def test_a_row_that_is_cut_into_pieces_is_bad_once(tmp_path):
    pq.write_table(pa.table({"tokens": [[99] * 10, [1, 2]]}), tmp_path / "x.parquet")
    bad = tmp_path / "bad.arrow"
    loader = sf.Loader(
        tmp_path / "x.parquet", net="y = gather(table, tokens)\nreturn y", constants=TABLE,
        batch=sf.Packed(4), bad_rows=sf.BadRows("quarantine", bad),
    )  # fmt: skip
    (batch,) = loader
    assert batch["y"].tolist() == [[1, 2, 0, 0]]
    assert loader.stats().bad_rows == 1
    assert pa.ipc.open_file(bad).read_all()["tokens"].to_pylist() == [[99] * 10]


def test_a_batch_whose_rows_are_all_refused_has_none(ids):
    def net(batch):
        if (batch["id"] < 6).any():
            raise sf.OpError("an id below 6")
        return batch

    rows = {"id": np.arange(12)}
    loader = sf.Loader(rows, net=net, bad_rows="skip", batch=5)
    assert [batch.num_rows for batch in loader] == [0, 4, 2]
    assert (loader.stats().rows, loader.stats().bad_rows) == (6, 6)


@pytest.mark.each_choice
@pytest.mark.parametrize("option", ["prepare", "net"])
@pytest.mark.parametrize("engine", [{}, {"workers": 2}])
def test_a_net_that_refuses_all_rows_is_wrong_in_a_loader_and_in_a_job(ids, tmp_path, option, engine):
    net = "y = gather(id, id + 100)"
    pq.write_table(pa.table({"id": range(12)}), tmp_path / "a.parquet")
    message = "leaves out all 12 rows of a source, the net is wrong, not a row"
    loader = sf.Loader(tmp_path / "a.parquet", **{option: net}, bad_rows="skip", batch=5)
    with pytest.raises(sf.ProviderError, match=message):
        list(loader)
    settings = {
        "source": {"paths": "a.parquet"},
        option: {"net": net},
        "batch": {"n": 5},
        "bad_rows": {"policy": "skip"},
        "output": {"path": "out"},
        "engine": engine,
    }
    with pytest.raises(sf.ProviderError, match=message if not engine else "leaves out all 12 rows"):
        run(Job.from_dict(settings, tmp_path))
    assert not (tmp_path / "out" / "_manifest.json").exists()


def test_a_function_refuses_rows_with_an_error_of_ours(ids):
    def net(batch):
        if (batch["id"] >= 10).any():
            raise sf.OpError("an id of 10 or more")
        return batch

    loader = sf.Loader(ids, net=net, bad_rows="skip", batch=4)
    assert [batch["id"].tolist() for batch in loader] == [[3, 7], [1, 2, 4], [5, 6, 8, 0]]
    assert loader.stats().bad_rows == 3


@pytest.mark.parametrize("place", ["prepare", "net"])
def test_an_op_that_breaks_its_signature_makes_no_bad_rows(ids, place):
    @sf.op("int data[N] -> small[N]")
    def below_10(data):
        return data[data < 10]

    loader = sf.Loader(ids, batch=4, bad_rows="skip", **{place: "y = below_10(id)"})
    try:
        with pytest.raises(OpResultError, match="below_10: the result is not what the signature declares"):
            list(loader)
    finally:
        sf.registry.unregister("below_10")


def test_an_error_that_no_row_causes_alone_is_raised_even_so(ids):
    net = "y = gather(table, id)\nz = gather(id, [3])\nreturn y"
    with pytest.raises(sf.OpError) as caught:
        list(sf.Loader(ids, net=net, constants={"table": np.zeros(100)}, bad_rows="skip", batch=3))
    place = f"in a batch of {ids}, block 0, rows 0 to 2: no row of it is the cause alone"
    assert caught.value.__notes__[-1] == place


def test_rows_that_are_refused_in_a_mix_are_counted(ids):
    options = {"net": LIMIT, "constants": TABLE, "bad_rows": "skip", "batch": sf.TokenBudget(6)}
    mix = sf.Mix({sf.Loader(ids, **options): 1, sf.Loader(ids, shuffle=True, **options): 1}, stop="all")
    found = np.concatenate([batch["id"] for batch in mix])
    assert set(found) == {0, 1, 2, 3, 4, 5, 6, 7, 8}
    assert mix.stats().bad_rows >= 6


TEXTS = ["a", "b", "a text of more than twelve bytes"]
LAYOUTS = {
    "text view": pa.array(TEXTS, pa.string_view()),
    "binary view": pa.array([text.encode() for text in TEXTS], pa.binary_view()),
    "list view": pa.array([[text] for text in TEXTS], pa.list_view(pa.string_view())),
    "large list view": pa.array([[text] for text in TEXTS], pa.large_list_view(pa.large_string())),
    "struct": pa.array([{"t": text} for text in TEXTS], pa.struct({"t": pa.string_view()})),
    "map": pa.array([[(text, 1)] for text in TEXTS], pa.map_(pa.string_view(), pa.int8())),
    "dictionary": pa.array(TEXTS).dictionary_encode(),
    "runs": pa.RunEndEncodedArray.from_arrays([1, 2, 3], pa.array(TEXTS)),
    "runs in lists": pa.ListArray.from_arrays(
        [0, 1, 2, 3], pa.RunEndEncodedArray.from_arrays([1, 2, 3], pa.array(TEXTS))
    ),
}


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_bad_rows_of_columns_of_any_layout_are_left_out_and_kept(tmp_path, layout, suffix):
    column = LAYOUTS[layout]
    table = pa.table({"x": pa.array([1, None, 3]), "s": column})
    for policy in ("skip", sf.BadRows("quarantine", tmp_path / f"bad.{suffix}")):
        (batch,) = sf.Loader(table, bad_rows=policy)
        rows = column.to_pylist()
        assert sf.to_arrow(batch).to_pydict() == {"x": [1, 3], "s": [rows[0], rows[2]]}
    (bad,) = sf.open(tmp_path / f"bad.{suffix}").blocks()
    found = sf.open(tmp_path / f"bad.{suffix}").read(bad).to_pylist()
    assert [(one["x"], one["s"]) for one in found] == [(None, rows[1])]


def test_a_null_of_any_type_is_a_bad_row_with_its_reason():
    table = pa.table({"t": ["a", None, "b", "c"], "l": [[1], [1], None, [1]], "id": range(4)})
    with pytest.raises(sf.ProviderError, match="row 1, column 't': null value in t"):
        list(sf.Loader(table))
    loader = sf.Loader(table, bad_rows="skip")
    assert [batch["id"].tolist() for batch in loader] == [[0, 3]]
    assert loader.stats().bad_rows == 2


@pytest.mark.parametrize("option", [{"fill": {"tokns": 0}}, {"valid": ["tokns"]}, {"columns": ["tokns"]}])
def test_columns_that_are_not_there_are_errors_with_the_nearest_name(option):
    with pytest.raises(sf.errors.UnknownColumnError, match="did you mean 'tokens'"):
        list(sf.Loader(pa.table({"tokens": [1]}), **option))


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_rows_that_net_refuses_are_found_again_in_the_slices_of_a_block(tmp_path, suffix):
    ids = np.arange(500) % 50
    table = pa.table({"id": ids, "number": range(500)})
    write = pq.write_table if suffix == "parquet" else feather.write_feather
    write(table, tmp_path / f"x.{suffix}")
    policy = sf.BadRows("quarantine", tmp_path / "bad.arrow")
    net = "y = gather(table, id)\nreturn y, number"
    constants = {"table": np.arange(49.0)}
    loader = sf.Loader(
        tmp_path / f"x.{suffix}", net=net, constants=constants, window="1 KiB", batch=7, bad_rows=policy
    )
    good = np.concatenate([batch["number"] for batch in loader])
    assert good.tolist() == [number for number in range(500) if number % 50 != 49]
    bad = feather.read_table(tmp_path / "bad.arrow").to_pylist()
    assert [one["number"] for one in bad] == [one["bad"]["row"] for one in bad] == list(range(49, 500, 50))


@pytest.fixture
def lines(tmp_path):
    """Three files, each a window: one line of the first and the second is not JSON."""
    for name, bad in (("a", 3), ("b", 1), ("c", None)):
        found = ["{broken" if row == bad else f'{{"id": {row}}}' for row in range(8)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(found) + "\n")
    return tmp_path


def lines_in(path):
    return [row["bad"]["line"] for row in pq.read_table(path).to_pylist()] if path.exists() else []


def left_by_break(batches):
    for _ in batches:
        break


def left_by_an_error(batches):
    for _ in batches:
        raise KeyError


@pytest.mark.parametrize("leave", [left_by_break, left_by_an_error, lambda batches: next(batches)])
def test_bad_rows_that_were_seen_are_kept_however_an_epoch_is_left(lines, leave):
    bad = lines / "bad.parquet"
    loader = sf.Loader(
        lines / "*.jsonl",
        format=sf.JsonLines(schema={"id": "int64"}),
        batch=2,
        window=1,
        bad_rows=sf.BadRows("quarantine", bad),
    )
    batches = iter(loader)
    with suppress(KeyError):
        leave(batches)
    batches.close()
    assert lines_in(bad) == [b"{broken"] * loader.stats().bad_rows == [b"{broken"]
    assert sorted(path.name for path in lines.iterdir() if path.name.startswith(".")) == []
    list(sf.Loader(lines / "c.jsonl", bad_rows=sf.BadRows("quarantine", bad)))
    assert not bad.exists()


def test_bad_rows_are_in_their_file_as_windows_end(lines):
    bad = lines / "bad.arrow"
    format = sf.JsonLines(schema={"id": "int64"})
    options = {"format": format, "batch": 2, "window": 1, "bad_rows": sf.BadRows("quarantine", bad)}
    batches = iter(sf.Loader(lines / "*.jsonl", **options))
    next(batches)
    assert pa.ipc.open_file(bad).read_all()["bad"].to_pylist()[0]["line"] == b"{broken"
    assert [row for batch in batches for row in batch["id"].tolist()][-3:] == [5, 6, 7]
    assert pa.ipc.open_file(bad).read_all().num_rows == 2


@pytest.mark.parametrize("format", [sf.JsonLines(schema={"id": "int64"}), sf.Csv(schema={"id": "int64"})])
def test_a_source_whose_rows_are_all_left_out_is_an_error_with_the_first_reason(tmp_path, format):
    kind = format.kind
    (tmp_path / f"bad.{kind}").write_text("id\n" * (kind == "csv") + "x\n" * 20)
    (tmp_path / f"good.{kind}").write_text("id\n1\n" if kind == "csv" else '{"id": 1}\n')
    options = {"format": format, "bad_rows": "skip"}
    bad, good = (sf.Loader(tmp_path / f"{name}.{kind}", **options) for name in ("bad", "good"))
    for loader in (
        bad,
        sf.Mix({good: 0.5, bad: 0.5}, seed=1),
        sf.Mix({good: 0.5, bad: 0.5}, seed=1, stop="all"),
    ):
        with pytest.raises(
            sf.ProviderError, match=rf"all 20 rows of a source, .*: .*bad.{kind}, line [12], column 1"
        ):
            list(loader)
    both = sf.Loader([tmp_path / f"{name}.{kind}" for name in ("bad", "good")], **options)
    assert [batch["id"].tolist() for batch in both] == [[1]]


RNG = np.random.default_rng(8)
LABELS = [np.where(RNG.random(n) < 0.3, 5, -100) for n in RNG.integers(0, 5, 300)]
LABELLED = pa.table({"id": np.arange(300), "labels": LABELS})
TRAINED = "lengths_any(labels.values != -100, labels.lengths)"
GOOD = [i for i, labels in enumerate(LABELS) if (labels != -100).any()]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "in.parquet"
    pq.write_table(LABELLED, path, row_group_size=50)
    return path


def ids_of(loader):
    return [int(one) for batch in loader for one in batch["id"]]


@pytest.mark.parametrize("plan", [sf.Rows(7), sf.TokenBudget(20, lengths="labels")])
@pytest.mark.parametrize("threads", [0, 2])
def test_rows_that_do_not_are_bad_rows(path, tmp_path, plan, threads):
    bad = tmp_path / "bad.parquet"
    loader = sf.Loader(
        str(path), batch=plan, require=TRAINED, bad_rows=BadRows("quarantine", str(bad)), threads=threads,
        rank=0, world_size=1,
    )  # fmt: skip
    assert ids_of(loader) == GOOD
    stats = loader.stats()
    assert (stats.rows, stats.bad_rows, stats.rows_left) == (len(GOOD), 300 - len(GOOD), 0)
    written = pq.read_table(bad)
    assert written["id"].to_pylist() == sorted(set(range(300)) - set(GOOD))
    reasons = written["bad"].to_pylist()
    assert {one["reason"] for one in reasons} == {f"require: {TRAINED} is false"}
    assert {one["column"] for one in reasons} == {"labels.values, labels"}


def test_the_first_is_an_error_where_bad_rows_are(path):
    first = min(set(range(300)) - set(GOOD))
    loader = sf.Loader(str(path), batch=7, require=TRAINED)
    with pytest.raises(
        ProviderError, match=rf"block 0, row {first}, column .*: require: lengths_any\(.*\) is false"
    ):
        list(loader)


def test_several_conditions_and_prepared_rows(path):
    loader = sf.Loader(
        str(path), batch=7, prepare="n = labels.lengths + 0\nreturn id, n", bad_rows="skip",
        require=["n > 1", "(id < 200) | (id == 250)"], rank=0, world_size=1,
    )  # fmt: skip
    assert ids_of(loader) == [i for i in range(300) if len(LABELS[i]) > 1 and (i < 200 or i == 250)]
    assert loader.stats().bad_rows == 300 - loader.stats().rows


def test_a_resumed_run_leaves_out_the_same(path):
    def loader():
        return sf.Loader(
            str(path), batch=7, require=TRAINED, bad_rows="skip", shuffle=True, rank=0, world_size=1
        )

    whole, first = ids_of(loader()), loader()
    batches = iter(first)
    seen = [int(one) for _ in range(9) for one in next(batches)["id"]]
    state = first.state_dict()
    again = loader()
    again.load_state_dict(state)
    assert seen + ids_of(again) == whole
    with pytest.raises(sf.OpError, match=r"require was .* and is None now"):
        sf.Loader(str(path), batch=7, bad_rows="skip", shuffle=True, rank=0, world_size=1).load_state_dict(
            state
        )


def test_an_index_measures_the_rows_that_are_left(path, tmp_path):
    options = {"batch": sf.TokenBudget(20, lengths="labels"), "bad_rows": "skip", "rank": 0, "world_size": 1}
    loader = sf.Loader(str(path), require=TRAINED, index=tmp_path / "lengths.arrow", **options)
    assert len(loader) == len(list(loader))
    with pytest.raises(sf.OpError, match=r"the lengths index .* is stale: require was"):
        len(sf.Loader(str(path), index=tmp_path / "lengths.arrow", **options))


def test_rows_that_a_function_makes(path):
    def prepare(rows):
        return {"id": np.repeat(rows["id"], 2)}

    loader = sf.Loader(
        str(path), batch=7, prepare=prepare, require="id != 3", bad_rows="skip", rank=0, world_size=1
    )
    assert ids_of(loader) == [i for i in range(300) for _ in range(2) if i != 3]
    assert loader.stats().bad_rows == 2


@pytest.mark.parametrize(
    ("require", "error", "text"),
    [
        ("labels.values != -100", sf.OpError, "require: .* is bool.*, expected one truth value for each"),
        ("id + 1", sf.OpError, r"require: id \+ 1 is int64.*, expected one truth value"),
        ("nothing > 3", NetError, "nothing assigns 'nothing'"),
        ("id >", NetError, "net, line 1"),
        (3, OpTypeError, "require is 3, expected a condition"),
        ([], OpTypeError, r"require is \[\]"),
    ],
)
def test_what_is_no_condition_is_an_error_before_reading(path, require, error, text):
    with pytest.raises(error, match=text):
        next(iter(sf.Loader(str(path), batch=7, require=require)))


WRONG = "y = gather(x, x)\nreturn y"


@pytest.mark.parametrize("option", ["net", "prepare"])
def test_a_net_that_is_wrong_for_every_row_is_blamed_and_no_row(option):
    table = pa.table({"x": range(5, 25)})
    with pytest.raises(OpIndexError) as raised:
        list(sf.Loader(table, batch=4, **{option: WRONG}))
    *_, place = raised.value.__notes__
    assert place.endswith("all rows that were tried fail so: the net is wrong, not a row")
    assert "row 0" not in place
    bounded = BadRows("skip", max_share=0.9)
    for policy in ("skip", bounded) if option == "prepare" else (bounded,):
        with pytest.raises(ProviderError, match=r"y = gather\(x, x\): gather: indices") as left_out:
            list(sf.Loader(table, batch=4, bad_rows=policy, **{option: WRONG}))
        assert "the net is wrong, not a row" in str(left_out.value)
        assert "row 0" not in str(left_out.value)
    some = pa.table({"x": [0, *range(5, 24)]})
    assert sum(batch.num_rows for batch in sf.Loader(some, batch=4, bad_rows="skip", **{option: WRONG})) == 1
