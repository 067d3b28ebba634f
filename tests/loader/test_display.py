"""A loader shows what it knows before it reads rows, and says what it does not know."""

from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf


@pytest.fixture
def path(tmp_path):
    table = pa.table({"tokens": [[7] * (n % 50) for n in range(400)]})
    pq.write_table(table, tmp_path / "<b>.parquet", row_group_size=50)
    return tmp_path / "<b>.parquet"


def known(loader):
    """The facts by name, which text and HTML have alike."""
    root = ElementTree.fromstring(loader._repr_html_().replace("<wbr/>", ""))
    found = {row[0].text: row[1].text for row in root.iter("tr")}
    title, *lines = repr(loader).split("\n")
    assert title == root[0].text
    assert [line.split(None, 1) for line in lines] == [list(pair) for pair in found.items()]
    return found


def test_rows_windows_and_batches_are_known_from_footers(path):
    found = known(sf.Loader(path, batch=32, window="4 KiB"))
    assert found["source"] == f"parquet, {path}"
    assert found["rows"] == "400"
    assert found["windows"].endswith("up to 4.0 KiB each")
    assert found["batches"] == "13"
    assert found["fill"] == "not known before reading"


def test_the_title_has_the_plan_the_place_and_the_rank(path):
    loader = sf.Loader(path, batch=32, rank=1, world_size=2)
    next(iter(loader))
    assert repr(loader).split("\n")[0].endswith(", epoch 0, batch 2, rank 1 of 2")
    assert known(loader)["batches"] == "13, 6 for each of 2 ranks"


def test_what_lengths_decide_is_known_from_an_index(path, tmp_path):
    options = {"batch": sf.Packed(64, rows=4), "index": tmp_path / "lengths.arrow", "window": "4 KiB"}
    loader = sf.Loader(path, **options)
    assert known(loader)["batches"] == "not known before reading: the first epoch makes the index"
    assert not (tmp_path / "lengths.arrow").exists()
    batches = len(loader)
    assert known(loader)["batches"] == f"{batches:,}"
    assert (
        known(sf.Loader(path, batch=sf.Packed(64)))["batches"]
        == "not known before reading: there is no index"
    )


@pytest.mark.parametrize(
    "plan",
    [
        sf.Packed(64, ("tokens",), rows=4, fills={"tokens": -100}),
        sf.TokenBudget(500),
        sf.TokenBudget(500, strategy="best_fit"),
        sf.TokenBudget(512, padded=True, multiple_of=8),
        sf.Buckets((10, 20, 30), sf.TokenBudget(500)),
        sf.Rows(16, min_length=3),
    ],
    ids=repr,
)
def test_the_fill_by_an_index_is_that_of_the_batches(path, tmp_path, plan):
    loader = sf.Loader(path, batch=plan, index=tmp_path / "lengths.arrow", shuffle=True)
    loader.lengths_index()
    expected = known(loader)["fill"]
    list(loader)
    assert expected == f"about {loader.stats().fill:.2%}, that of the first window"
    assert known(loader)["fill"] == f"{loader.stats().fill:.2%} of the batches of the last iteration"


def test_a_stream_is_not_read(path):
    reader = pq.ParquetFile(path).iter_batches()
    schema = pq.read_schema(path)
    loader = sf.Loader(pa.RecordBatchReader.from_batches(schema, reader), batch=32)
    assert known(loader)["windows"] == "not known before reading the stream, up to 64.0 MiB each"
    assert known(loader)["batches"] == "not known before reading"
    assert sum(batch.num_rows for batch in loader) == 400


def test_given_steps_are_known_of_a_stream(path):
    stream = pq.read_table(path).to_reader()
    assert known(sf.Loader(stream, batch=32, steps_per_epoch=7))["batches"] == "7"


def test_a_filter_is_not_applied(path):
    found = known(sf.Loader(path, batch=32, where="tokens.lengths > 3"))
    assert found["where"] == "(list_value_length(tokens) > 3)"
    assert {found[name] for name in ("rows", "batches", "fill")} == {"not known before reading"}


def test_what_cannot_be_planned_is_said(path):
    found = known(sf.Loader(path, batch=32, window=100, shuffle=True))
    assert found["plan"].startswith("not known: Loader: ")
    loader = sf.Loader(path, batch=32)
    path.unlink()
    assert repr(loader).startswith("Loader of Rows(n=32")
