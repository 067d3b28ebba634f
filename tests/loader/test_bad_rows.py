"""Rows that cannot be used: raise, skip, quarantine."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf

ROWS = [[1, 2], [3, None], [], None, [4, 99], [5]]


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
    (batch,) = sf.Loader(file, fill=0)
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
    (tmp_path / "a.txt").write_bytes("é".encode())
    (tmp_path / "b.txt").write_bytes(b"ab\xff")
    (tmp_path / "c.txt").write_bytes(b"c")
    with pytest.raises(sf.ProviderError, match=r"b\.txt"):
        list(sf.Loader(tmp_path, kind="text", encoding="utf-8"))
    loader = sf.Loader(
        tmp_path, kind="text", encoding="utf-8", bad_rows=sf.BadRows("quarantine", tmp_path / "bad.arrow")
    )
    (batch,) = loader
    assert bytes(batch["text.values"]) == "éc".encode()
    assert loader.stats().bad_rows == 1
    assert "b.txt" in str(pa.ipc.open_file(tmp_path / "bad.arrow").read_all().to_pylist())


def test_a_quarantine_replaces_that_of_an_earlier_run_and_no_other_file(file, tmp_path):
    precious = tmp_path / "notes.arrow"
    precious.write_text("precious")
    with pytest.raises(sf.ProviderError, match="exists and is no quarantine file of an earlier run"):
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
