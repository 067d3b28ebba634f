"""A report has the figures of the data, needs nothing else, and runs nothing."""

import re
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow

from seqflow.job import Job
from seqflow.report.ranks import imbalance
from seqflow.report.report import report_of_job, report_of_path
from seqflow.report.survey import SpreadSample


class Page(HTMLParser):
    """The texts of a page, and its tables as rows of cells."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.tables, self.open = [], [], []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "link", "img", "iframe")
        assert not {"src", "href"} & dict(attrs).keys()
        if tag not in ("meta", "rect"):
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        if tag not in ("meta", "rect"):
            assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data
        if data.strip():
            self.texts.append(data.strip())


@pytest.fixture
def path(tmp_path):
    lengths = [0, 1, 2, 3, 4, 8, 8, 16]
    tokens = [list(range(n)) for n in lengths]
    text = [f"row {n} <b>&" for n in lengths]
    pq.write_table(pa.table({"tokens": tokens, "text": text, "score": lengths}), tmp_path / "few.parquet")
    return tmp_path / "few.parquet"


def test_a_source_has_its_percentiles_fills_and_first_rows(path):
    page = Page(report_of_path(str(path), batch=2, capacity=16))
    assert "8 rows in 1 blocks." in page.texts
    (row,) = next(table[1:] for table in page.tables if table[0][0] == "shortest" and table[1][-2] == "16")
    assert row == ["0", "0", "0", "1", "3", "8", "8", "8", "16", "5.2"]
    at = page.texts.index("padded, 2 rows")
    padded = 42 / (2 * (1 + 3 + 8 + 16))
    assert page.texts[at + 1] == f"{padded:.2%}"
    assert page.texts[page.texts.index("of similar lengths") + 1] == f"{padded:.2%}"
    assert page.texts[page.texts.index("packed, 16") + 1] == f"{42 / 48:.2%}"
    first = next(table for table in page.tables if table[0] == ["tokens", "text", "score"])
    assert first[1:4] == [["", "row 0 <b>&", "0"], ["0", "row 1 <b>&", "1"], ["0, 1", "row 2 <b>&", "2"]]


def test_a_source_without_rows_has_a_page(tmp_path):
    pq.write_table(pa.table({"tokens": pa.array([], pa.list_(pa.int32()))}), tmp_path / "none.parquet")
    assert "0 rows in" in " ".join(Page(report_of_path(str(tmp_path / "none.parquet"))).texts)


def test_lists_of_lists_and_tensors_are_shown(tmp_path):
    nested = pa.array([[[1, 2], []], [[3]]])
    boxes = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(4.0)), 2)
    pq.write_table(pa.table({"n": nested, "box": boxes}), tmp_path / "n.parquet")
    page = Page(report_of_path(str(tmp_path / "n.parquet")))
    first = page.tables[-2]
    assert sorted(map(tuple, zip(*first, strict=True))) == [
        ("box", "0.0, 1.0", "2.0, 3.0"),
        ("n.values", "1, 2", "3"),
    ]


def job_of(path, **tables):
    return Job.from_dict(
        {
            "source": {"paths": [str(path)], "columns": ["tokens"]},
            "prepare": {"net": "t, n = truncate(tokens.values, tokens.lengths, max_length=8)\nreturn t, n"},
            "batch": {"kind": "packed", "capacity": 16},
            "output": {"path": str(path.parent / "out"), "kind": "parquet"},
            **tables,
        }
    )


def test_a_job_has_shapes_the_steps_that_cost_and_a_picture_of_its_first_batch(path):
    text = report_of_job(job_of(path), "job.toml")
    page = Page(text)
    assert any("truncate(tokens.values" in cell for table in page.tables for row in table for cell in row)
    assert ["rows", "8"] in next(table for table in page.tables if table[0] == ["size", "is"])
    assert "Documents in packed rows" in page.texts
    assert ["tokens", "34"] in next(table for table in page.tables if table[0] == ["of them", "is"])
    assert not (path.parent / "out").exists()


def test_a_job_has_its_nets_as_pictures_with_shapes_and_as_tables_with_bounds(path):
    page = Page(report_of_job(job_of(path), "job.toml"))
    picture = page.texts[page.texts.index("A net of 1 step") :]
    assert {"tokens.lengths", "truncate", "n", "int64{rows:0..8}"} <= {*picture[: picture.index("made by")]}
    header = ["tensor", "dtype and shape", "at most", "made by"]
    _, *bounds = next(table for table in page.tables if table[0] == header)
    assert ["tokens.lengths", "int64{rows:0..8}", "64 B", "input"] in bounds
    assert ("n", "truncate(tokens.values, tokens.lengths, max_length=8)") in {
        (row[0], row[3]) for row in bounds
    }


def ranks_of(page):
    return next(table[1:] for table in page.tables if table[0] == ["ranks", "in a step", "in all steps"])


def test_a_plain_split_gives_rank_k_every_kth_batch(path):
    tokens = [0 + 1, 2 + 3, 4 + 8, 8 + 16]
    steps = (5 + 24) / (sum(tokens) / 2)
    overall = (5 + 24) / (sum(tokens) / 2)
    assert ranks_of(Page(report_of_path(str(path), batch=2))) == [
        ["2", f"{steps:.3f}", f"{overall:.3f}"],
        ["4", f"{24 / (sum(tokens) / 4):.3f}", f"{24 / (sum(tokens) / 4):.3f}"],
        ["8", "too few batches", "too few batches"],
    ]
    assert imbalance(np.array([3, 1, 1, 3]), 2) == (1.5, 1.0)
    assert imbalance(np.zeros(8, int), 2) is None


def test_a_job_with_a_balance_has_the_ranks_that_it_deals(tmp_path):
    lengths = np.random.default_rng(0).integers(1, 200, 400)
    pq.write_table(pa.table({"tokens": [np.zeros(n, int) for n in lengths]}), tmp_path / "t.parquet")
    plain = {"kind": "rows", "n": 4, "lengths": "tokens"}
    dealt = {**plain, "balance": {"group": 8, "cost": "length"}}
    (_, one, _), *_ = ranks_of(
        Page(report_of_job(job_of(tmp_path / "t.parquet", prepare={}, batch=plain), "j"))
    )
    page = Page(report_of_job(job_of(tmp_path / "t.parquet", prepare={}, batch=dealt), "j"))
    assert any("dealt by Balance(group=8" in text for text in page.texts)
    assert [float(step) < 1.05 < float(one) for _, step, _ in ranks_of(page)] == [True] * 3


def test_bad_rows_are_counted_and_not_written(path):
    job = job_of(
        path,
        prepare={},
        require="lengths_max(tokens.values, tokens.lengths, empty=0) < 10",
        bad_rows={"policy": "quarantine", "path": str(path.parent / "bad.arrow")},
    )
    page = Page(report_of_job(job, "job.toml"))
    assert ["bad rows", "1"] in next(table for table in page.tables if table[0] == ["of them", "is"])
    assert not (path.parent / "bad.arrow").exists()


def test_a_sample_is_spread_evenly():
    sample = SpreadSample()
    for start in range(0, 1 << 19, 1000):
        sample.add(np.arange(start, min(start + 1000, 1 << 19)))
    assert len(sample.values) <= 1 << 17
    assert np.unique(np.diff(sample.values)).tolist() == [4]


def test_the_command_writes_the_page(path):
    done = seqflow("report", path, "-o", path.parent / "pages" / "few.html")
    assert done.returncode == 0, done.stderr
    assert re.search(r"few\.html: [\d,]+ characters", done.stdout)
    Page((path.parent / "pages" / "few.html").read_text(encoding="utf-8"))


def test_what_is_read_is_not_written_over(path):
    before = path.read_bytes()
    done = seqflow("report", path, "-o", path)
    assert done.returncode == 2
    assert "which is what is read" in done.stderr
    assert path.read_bytes() == before


def test_a_source_that_is_missing_is_an_error(tmp_path):
    done = seqflow("report", tmp_path / "none.parquet", "-o", tmp_path / "page.html")
    assert done.returncode in (1, 2)
    assert "none.parquet" in done.stderr
    assert not (tmp_path / "page.html").exists()
