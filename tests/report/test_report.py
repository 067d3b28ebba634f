"""A report has the figures of the data, needs nothing else, and runs nothing."""

import re
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow

from seqflow.job import Job, run
from seqflow.report.report import report_of_job, report_of_path
from seqflow.report.survey import SpreadSample


class Page(HTMLParser):
    """The texts of a page, and its tables as rows of cells: all, and those below each heading."""

    def __init__(self, report):
        super().__init__()
        self.texts, self.tables, self.open = [], [], []
        self.tables_of, self.texts_of, self.heading = {}, {}, ""
        self.feed(report if isinstance(report, str) else report.page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "link", "img", "iframe")
        assert "src" not in dict(attrs)
        assert dict(attrs).get("href", "#").startswith("#")
        if tag not in ("meta", "rect"):
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
            self.tables_of[self.heading].append(self.tables[-1])
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
        if self.open and self.open[-1] == "h2":
            self.heading = data
            self.tables_of[data], self.texts_of[data] = [], []
        elif data.strip():
            self.texts.append(data.strip())
            self.texts_of.setdefault(self.heading, []).append(data.strip())


def facts_of(page, heading):
    """The first table of names and values below a heading, as a dictionary."""
    return dict(page.tables_of[heading][0])


@pytest.fixture
def path(tmp_path):
    lengths = [0, 1, 2, 3, 4, 8, 8, 16]
    tokens = [list(range(n)) for n in lengths]
    text = [f"row {n} <b>&" for n in lengths]
    pq.write_table(pa.table({"tokens": tokens, "text": text, "score": lengths}), tmp_path / "few.parquet")
    return tmp_path / "few.parquet"


def test_a_source_has_its_percentiles_fills_and_first_rows(path):
    page = Page(report_of_path(str(path), batch=2, capacity=16))
    assert "8 rows in 1 block." in page.texts
    lengths = next(
        table for table in page.tables if table[0] == ["shortest", "0"] and ["longest", "16"] in table
    )
    assert [value for _, value in lengths] == ["0", "0", "0", "1", "3", "8", "8", "8", "16", "5.2"]
    at = page.texts.index("padded, 2 rows")
    padded = 42 / (2 * (1 + 3 + 8 + 16))
    assert page.texts[at + 1] == f"{padded:.2%}"
    assert page.texts[page.texts.index("of similar lengths") + 1] == f"{padded:.2%}"
    assert page.texts[page.texts.index("packed, 16") + 1] == f"{42 / 48:.2%}"
    first = next(table for table in page.tables if table[0] == ["tokens", "text", "score"])
    assert first[1:4] == [["", "row 0 <b>&", "0"], ["0", "row 1 <b>&", "1"], ["0, 1", "row 2 <b>&", "2"]]


def test_a_page_begins_with_what_matters_and_a_list_of_its_sections(path):
    text = report_of_job(job_of(path), "job.toml").page
    headings = re.findall("<h2>(.*?)</h2>", text)
    assert headings[:3] == ["Summary", "The run", "The first batches"]
    links = re.findall('<li><a href="#(.*?)">(.*?)</a></li>', text)
    assert [name for _, name in links] == headings[1:]
    assert re.findall('<section id="(.*?)">', text)[1:] == [place for place, _ in links]
    assert text.index("<h2>Summary") < text.index("<nav") < text.index("<h2>The run")
    found = facts_of(Page(report_of_path(str(path), batch=2)), "Summary")
    assert (found["rows"], found["rows that cannot be read"]) == ("8", "none")
    assert found["tokens.lengths"] == "8 sequences of 0 to 16, mean 5.2; padded, 2 rows: 75.00% are data"


def test_first_rows_of_a_batch_have_the_lists_that_they_share(tmp_path):
    users, histories = [1, 1, 1, 2, 2], [[1, 2]] * 3 + [[7]] * 2
    pq.write_table(pa.table({"user": users, "history": histories}), tmp_path / "few.parquet")
    job = Job.from_dict({
        "source": {"paths": [str(tmp_path / "few.parquet")]},
        "share": {"history": "user"},
        "batch": {"kind": "rows", "n": 5},
        "output": {"kind": "none"},
    })  # fmt: skip
    page = Page(report_of_job(job, "job.toml"))
    first = next(table for table in page.tables if table[0] == ["user", "history", "history.row"])
    assert first[1:] == [["1", "1, 2", "0"]] * 3 + [["2", "7", "1"]] * 2


def test_lengths_have_their_counts(path):
    page = Page(report_of_path(str(path), batch=2))
    at = page.texts.index("8 – 15")
    assert page.texts[at + 1 : at + 3] == ["2", "25.00%"]


def test_lists_of_structs_are_readable(tmp_path):
    turns = [[{"role": "user", "content": "Hi."}, {"role": "assistant", "content": "Hello!"}]]
    pq.write_table(pa.table({"messages": turns}), tmp_path / "chat.parquet")
    first = Page(report_of_path(str(tmp_path / "chat.parquet"))).tables[-1]
    assert first[1] == ["user | assistant", "Hi. | Hello!"] or first[1] == [
        "Hi. | Hello!",
        "user | assistant",
    ]


def test_a_source_without_rows_has_a_page(tmp_path):
    pq.write_table(pa.table({"tokens": pa.array([], pa.list_(pa.int32()))}), tmp_path / "none.parquet")
    assert "0 rows in" in " ".join(Page(report_of_path(str(tmp_path / "none.parquet"))).texts)


def test_lists_of_lists_and_tensors_are_shown(tmp_path):
    nested = pa.array([[[1, 2], []], [[3]]])
    boxes = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(4.0)), 2)
    pq.write_table(pa.table({"n": nested, "box": boxes}), tmp_path / "n.parquet")
    page = Page(report_of_path(str(tmp_path / "n.parquet")))
    first = page.tables[-1]
    assert sorted(map(tuple, zip(*first, strict=True))) == [
        ("box", "0.0, 1.0", "2.0, 3.0"),
        ("n.values", "1, 2 | ", "3"),
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


def test_a_job_has_shapes_and_the_sizes_of_its_first_batches(path):
    page = Page(report_of_job(job_of(path), "job.toml"))
    assert any("truncate(tokens.values" in cell for table in page.tables for row in table for cell in row)
    assert facts_of(page, "The run")["rows"] == "8"
    assert facts_of(page, "The first batches")["tokens"] == "34"
    assert not (path.parent / "out").exists()


def test_a_job_has_a_page_where_its_output_is_that_of_an_earlier_one(path):
    run(job_of(path))
    edited = job_of(path, batch={"kind": "rows", "n": 3, "lengths": "n"})
    assert facts_of(Page(report_of_job(edited, "job.toml")), "The run")["rows"] == "8"


def test_a_job_has_its_nets_as_tables_with_shapes_and_bounds(path):
    page = Page(report_of_job(job_of(path), "job.toml"))
    header = ["tensor", "dtype and shape", "at most", "made by"]
    _, *bounds = next(table for table in page.tables if table[0] == header)
    assert ["tokens.lengths", "int64{rows:0..8}", "64 B", "input"] in bounds
    assert ("n", "truncate(tokens.values, tokens.lengths, max_length=8)") in {
        (row[0], row[3]) for row in bounds
    }


def bad_job_of(source, **bad_rows):
    short = "lengths_max(tokens.values, tokens.lengths, empty=0) < 10"
    return job_of(source, prepare={}, require=short, **({"bad_rows": bad_rows} if bad_rows else {}))


@pytest.mark.parametrize("policy", ["skip", "quarantine"])
def test_bad_rows_that_a_run_leaves_out_are_listed_and_not_written(path, policy):
    file = path.parent / "bad.arrow"
    to = {"path": str(file)} if policy == "quarantine" else {}
    page = Page(report_of_job(bad_job_of(path, policy=policy, **to), "job.toml"))
    assert facts_of(page, "The first batches")["bad rows"] == "1"
    header, row = page.tables_of["Bad rows of these batches"][0]
    assert header == ["rows", "first file", "first block", "first row", "first column", "first reason"]
    assert row[:4] == ["1", str(path), "0", "7"]
    assert "lengths_max" in row[5]
    assert not file.exists()


def test_a_run_that_stops_at_a_bad_row_is_told_with_the_row(path):
    page = Page(report_of_job(bad_job_of(path), "job.toml"))
    (stops, *_) = page.texts_of["Bad rows of these batches"]
    assert stops.startswith("The run stops at the first")
    assert f"{path}, block 0, row 7" in stops
    assert len(page.tables_of["Bad rows of these batches"][0]) == 2


def test_rows_that_net_refuses_are_listed(path):
    np.save(path.parent / "t.npy", np.arange(10))
    job = job_of(
        path, prepare={}, batch={"kind": "rows", "n": 4}, net={"net": "y = gather(t, tokens.values)\nreturn y, tokens.lengths"}, bad_rows={"policy": "skip"},
        constants={"t": str(path.parent / "t.npy")},
    )  # fmt: skip
    page = Page(report_of_job(job, "job.toml"))
    (_, row) = page.tables_of["Bad rows of these batches"][0]
    assert row[3] == "7"


def test_rows_of_a_file_that_cannot_be_read_are_listed_and_left_out(tmp_path):
    lines = [f'{{"id": {n}}}' for n in range(20_000)]
    lines[15_000] = '{"id": '
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    page = Page(report_of_path(str(tmp_path / "a.jsonl")))
    assert "19,999 rows in 1 block." in page.texts
    assert page.texts_of["Rows that cannot be used"][0].startswith("1 row cannot be read")
    assert page.tables_of["Rows that cannot be used"][0][1][3] == "15,000"


@pytest.fixture
def damaged(tmp_path):
    """A folder of two files, the second with a block that cannot be read."""
    for name in "ab":
        table = pa.table({"tokens": [[n] for n in range(1000)]})
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=500)
    content = bytearray((tmp_path / "b.parquet").read_bytes())
    content[4:200] = bytes(196)
    (tmp_path / "b.parquet").write_bytes(content)
    return tmp_path


def test_blocks_that_are_damaged_are_listed_and_the_others_read(damaged):
    page = Page(report_of_path(str(damaged)))
    assert "1,500 rows in 3 blocks." in page.texts
    _, (file, block, error, _) = page.tables_of["Rows that cannot be used"][0]
    assert (file, block) == (str(damaged / "b.parquet"), "0")
    assert "can't be read" in error


def test_a_job_that_stops_at_a_damaged_block_says_so_once(damaged):
    page = Page(report_of_job(job_of(damaged / "*.parquet"), "job.toml"))
    (line,) = page.texts_of["Where a run stops"]
    assert f"{damaged / 'b.parquet'}, row group 0 can't be read" in line


def test_rows_with_nulls_are_listed(tmp_path):
    pq.write_table(pa.table({"n": [1, None, 3]}), tmp_path / "n.parquet")
    page = Page(report_of_path(str(tmp_path / "n.parquet")))
    _, (_, _, row, column, reason) = page.tables_of["Rows that cannot be used"][0]
    assert (row, column) == ("1", "n")
    assert "null" in reason


def test_a_source_without_a_fault_says_so(path):
    assert Page(report_of_path(str(path))).texts_of["Rows that cannot be used"][0].startswith("None:")


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
    assert "which is the input" in done.stderr
    assert path.read_bytes() == before


def test_a_source_that_is_missing_is_an_error(tmp_path):
    done = seqflow("report", tmp_path / "none.parquet", "-o", tmp_path / "page.html")
    assert done.returncode in (1, 2)
    assert "none.parquet" in done.stderr
    assert not (tmp_path / "page.html").exists()
