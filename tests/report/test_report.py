"""A report has the figures of the data, needs nothing else, and runs nothing."""

import re
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow

from seqflow.job import Job
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
    assert ["rows", "8"] in page.tables[0]
    assert "Documents in packed rows" in page.texts
    assert ["tokens", "34"] in next(table for table in page.tables if table[0] == ["of them", "is"])
    assert not (path.parent / "out").exists()


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
