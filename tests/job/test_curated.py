"""Jobs whose rules leave out rows: counted, killed and resumed, by workers, of any format, without rows of other files."""

import json
import os
import re
import shutil
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow
from killed_jobs import KILLING

from seqflow.errors import DamagedFileError, JobError, ProviderError
from seqflow.job import Job, run
from seqflow.job.checking import check
from seqflow.job.opening import open_loader
from seqflow.job.planning import plan
from seqflow.job.row_traces import trace_row
from seqflow.providers import open as open_source
from stores import SECRET

DRAW = np.random.default_rng(3)
WORDS = [f"word{number}" for number in range(300)]
TEXTS = [" ".join(DRAW.choice(WORDS, 40)) for _ in range(120)]
TEXTS[70] = TEXTS[100] = TEXTS[5]
TEXTS[110] = TEXTS[71]
TEXTS[90] = TEXTS[8].replace(TEXTS[8].split()[20], "another")
CONTAMINATED, EQUAL, ALIKE = {40}, {70, 100, 110}, {90}
STAY = [row for row in range(120) if row not in CONTAMINATED | EQUAL | ALIKE]
RULES = """
[decontaminate]
column = "text"
against = "eval/e.parquet"
[deduplicate]
columns = ["text"]
[near_duplicates]
column = "text"
rows = 4
"""


@pytest.fixture
def folder(tmp_path):
    for name, start in (("web", 0), ("books", 60)):
        (tmp_path / name).mkdir()
        rows = {"text": TEXTS[start : start + 60], "row": np.arange(start, start + 60)}
        pq.write_table(pa.table(rows), tmp_path / name / "a.parquet", row_group_size=25)
    (tmp_path / "eval").mkdir()
    pq.write_table(pa.table({"text": ["Not " + TEXTS[40].upper()]}), tmp_path / "eval" / "e.parquet")
    return tmp_path


def job_of(folder, rules=RULES, source='paths = ["web/", "books/*.parquet"]\ncolumns = ["row"]', more=""):
    (folder / "job.toml").write_text(
        f'{more}\n[source]\n{source}\n{rules}\n[batch]\nn = 32\n[output]\npath = "out"\n'
    )
    return Job.read(folder / "job.toml")


def rows_of(folder):
    return pq.read_table(folder / "out")["row"].to_pylist()


def test_rows_are_left_out_and_counted_by_rule(folder):
    report = run(job_of(folder))
    assert rows_of(folder) == STAY
    assert report.filtered_by == {"decontaminate": 1, "deduplicate": 3, "near_duplicates": 1}
    assert (report.rows, report.filtered, report.rows_read) == (115, 5, 115)
    assert json.loads((folder / "out" / "_manifest.json").read_text())["curated"] == report.filtered_by
    again = run(job_of(folder))
    assert (again.outcome, again.filtered_by) == ("complete", report.filtered_by)


@pytest.mark.slow
@pytest.mark.parametrize(
    "order", ["", '[order]\nshuffle = true\nwindow = "4 KiB"\nthreads = 2\n', "[engine]\nworkers = 2"]
)
def test_the_same_rows_stay_in_any_order_and_with_workers(folder, order):
    run(job_of(folder, RULES + order))
    assert sorted(rows_of(folder)) == STAY


@pytest.mark.parametrize(
    ("keep", "stays"),
    [("first", {5, 71}), ("last", {100, 110}), ("highest:row", {100, 110}), ("highest:low", {5, 71})],
)
def test_the_row_that_stays_is_chosen(folder, keep, stays):
    for name in ("web", "books"):
        table = pq.read_table(folder / name / "a.parquet")
        low = pa.array(-table["row"].to_numpy())
        pq.write_table(table.append_column("low", low), folder / name / "a.parquet", row_group_size=25)
    run(job_of(folder, f'[deduplicate]\ncolumns = ["text"]\nkeep = "{keep}"'))
    assert {5, 70, 71, 100, 110} & {*rows_of(folder)} == stays


def test_rows_of_other_files_leave_out_equal_ones(folder):
    old = pa.table({"text": pa.array([TEXTS[71], TEXTS[3]], pa.large_string())})
    pq.write_table(old, folder / "eval" / "old.parquet")
    run(job_of(folder, '[deduplicate]\ncolumns = ["text"]\nagainst = ["eval/old.parquet"]'))
    assert {*range(120)} - {*rows_of(folder)} == {3, 70, 71, 100, 110}


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "csv", "arrow"])
def test_any_format_is_curated(folder, form):
    import gzip

    import pyarrow.csv as pc

    table = pa.table({"row": np.arange(120), "text": TEXTS})
    path = folder / f"docs.{form}"
    lines = "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()
    if form == "csv":
        pc.write_csv(table, path)
    elif form == "arrow":
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table, max_chunksize=25)
    else:
        path.write_bytes(gzip.compress(lines) if form.endswith("gz") else lines)
    run(job_of(folder, source=f'paths = "docs.{form}"'))
    assert rows_of(folder) == STAY


def test_rows_that_where_omits_take_no_part(folder):
    run(job_of(folder, source='paths = ["web/", "books/"]\nwhere = "row != 5 and row < 105"'))
    assert rows_of(folder) == [row for row in range(105) if row not in {5, 40, 90, 100}]


def test_bad_rows_stay_bad_and_are_no_duplicates(folder):
    lines = [
        '{"row": 0, "text": "a b c"}',
        "{",
        '{"row": 2, "text": null}',
        '{"row": 3, "text": "a b c"}',
        "{",
    ]
    (folder / "docs.jsonl").write_text("\n".join(lines) + "\n")
    report = run(
        job_of(
            folder,
            '[deduplicate]\ncolumns = ["text"]\n[bad_rows]\npolicy = "skip"',
            'paths = "docs.jsonl"\nfill = ""',
        )
    )
    assert rows_of(folder) == [0, 2]
    assert (report.bad_rows, report.filtered_by) == (2, {"deduplicate": 1})


def test_rows_are_traced_to_the_places_that_they_have_in_their_files(folder):
    job = job_of(folder)
    run(job)
    (found,) = trace_row(folder / "out" / "part-00000.parquet", STAY.index(95))
    assert (os.path.basename(os.path.dirname(found.file)), found.block, found.row) == ("books", 1, 10)


def test_a_job_is_checked_and_planned_before_its_keys_are_there(folder):
    job = job_of(folder)
    check(job)
    assert plan(job).rows == 120
    assert not (folder / "out.curation").exists()
    with pytest.raises(JobError, match=r"keys of the rows cannot be read.*\n.*seqflow run"):
        open_loader(job)


def test_a_changed_rule_or_evaluation_set_is_another_job(folder):
    run(job_of(folder))
    with pytest.raises(JobError, match="near_duplicates"):
        run(job_of(folder, RULES.replace("rows = 4", "rows = 5")))
    pq.write_table(pa.table({"text": ["x " * 13]}), folder / "eval" / "e.parquet")
    with pytest.raises(JobError, match="evaluation"):
        run(job_of(folder))


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ('[deduplicate]\ncolumns = ["words"]', "no column 'words'"),
        ('[deduplicate]\ncolumns = ["text"]\nkeep = "best"', r"line \d+: \[deduplicate\] keep is 'best'"),
        ("[deduplicate]", r"\[deduplicate\] needs 'columns'"),
        ('[near_duplicates]\ncolumn = "row"', "'row' is int64, expected texts"),
        (
            '[near_duplicates]\ncolumn = "text"\nband = 3',
            "unknown key 'band' in .near_duplicates. .did you mean 'bands'",
        ),
        ('[decontaminate]\ncolumn = "text"\nagainst = "nothing/"', "nothing"),
    ],
)
def test_bad_settings_are_errors_before_anything_is_written(folder, rules, message):
    with pytest.raises((JobError, ProviderError), match=message):
        run(job_of(folder, rules))
    assert not (folder / "out").exists()


@pytest.mark.parametrize("columns", ["", '\ncolumns = ["row"]'])
@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            '[deduplicate]\n\ncolumns = ["row", "txt"]',
            "line {2}: .deduplicate. columns has 'txt', .*no column 'txt'",
        ),
        (
            '[deduplicate]\ncolumns = ["doc.tile"]',
            "line {1}: .*doc has no field 'tile' .did you mean 'title'",
        ),
        (
            '[deduplicate]\ncolumns = ["text"]\nkeep = "highest:doc"',
            "line {2}: .* keep 'doc' is struct.*expected num",
        ),
        (
            '[deduplicate]\ncolumns = ["text"]\nagainst = "no/"',
            "line {2}: .* against has nothing to read: .*no",
        ),
        (
            '[deduplicate]\ncolumns = ["doc.title"]\nagainst = "eval/"',
            "line {2}: .* against has files .*'doc.title'",
        ),
        (
            '[near_duplicates]\ncolumn = "texts"',
            "line {1}: .near_duplicates. column has 'texts'.*did you mean 'text'",
        ),
        (
            '[near_duplicates]\ncolumn = "turns.text"',
            "line {1}: .*'turns.text' is list.*\n  a job .* join the texts",
        ),
        (
            '[decontaminate]\ncolumn = "row"\nagainst = "eval/"',
            "line {1}: .decontaminate. column 'row' is int64",
        ),
        (
            '[decontaminate]\ncolumn = "doc.title"\nagainst = "eval/"',
            "line {2}: .*against has files .*'doc.title'",
        ),
        (
            '[decontaminate]\ncolumn = "text"\nagainst = "number/"',
            "line {2}: .*against has files .*'text' is int64",
        ),
    ],
)
def test_check_plan_and_run_refuse_the_same_with_the_line(folder, rules, message, columns):
    for path in (folder / "web" / "a.parquet", folder / "books" / "a.parquet"):
        table = pq.read_table(path)
        table = table.append_column("doc", pa.array([{"title": "a"}] * len(table)))
        pq.write_table(table.append_column("turns", pa.array([[{"text": "a"}]] * len(table))), path)
    (folder / "number").mkdir()
    pq.write_table(pa.table({"text": [1]}), folder / "number" / "a.parquet")
    job = job_of(folder, rules, f'paths = ["web/", "books/"]{columns}')
    line = 4 + columns.count("\n")  # of the header of the section
    where = (
        re.escape(str(folder / "job.toml"))
        + ", "
        + re.sub(r"\{(\d)\}", lambda at: str(line + int(at[1])), message)
    )
    told = set()
    for refusing in (check, plan, run):
        with pytest.raises(JobError, match=where) as caught:
            refusing(job)
        told.add(str(caught.value))
    assert len(told) == 1
    assert sorted(path.name for path in folder.iterdir()) == ["books", "eval", "job.toml", "number", "web"]


def test_a_column_of_a_rule_that_is_set_elsewhere_is_told_so(folder):
    job_of(folder)
    job = Job.read(folder / "job.toml", {"near_duplicates.column": "texts"})
    with pytest.raises(
        JobError, match=r"^--set near_duplicates.column: \[near_duplicates\] column has 'texts'"
    ):
        check(job)
    (folder / "job.toml").unlink()  # the lines are those of a file that has gone
    with pytest.raises(JobError, match="column has 'texts'"):
        check(job)
    tables = {"source": {"paths": "web/"}, "deduplicate": {"columns": ["texts"]}, "output": {"path": "out"}}
    with pytest.raises(JobError, match=r"^job: \[deduplicate\] columns has 'texts'"):
        check(Job.from_dict(tables, folder))


def test_columns_that_cannot_be_read_do_not_matter_to_rules_of_others(folder):
    table = pq.read_table(folder / "web" / "a.parquet")
    pq.write_table(table.append_column("a.b", table["row"]), folder / "dots.parquet")
    job = job_of(folder, '[deduplicate]\ncolumns = ["text"]', 'paths = "dots.parquet"\ncolumns = ["row"]')
    check(job)
    assert run(job).filtered_by == {}


def test_chats_are_compared_by_fields_of_their_turns(folder):
    chats = [[("user", "a", 1), ("bot", "b", 2)], [("user", "a", 3), ("bot", "b", 4)], [("bot", "a", 1)]]
    lines = [
        {"row": row, "messages": [dict(zip(("role", "content", "at"), turn, strict=True)) for turn in chat]}
        for row, chat in enumerate(chats)
    ]
    (folder / "chats.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    rules = '[deduplicate]\ncolumns = ["messages.role", "messages.content"]\nagainst = "old.jsonl"'
    old = {"messages": [{"content": "a", "role": "bot"}]}
    (folder / "old.jsonl").write_text(json.dumps(old) + "\n")
    for columns in ("", '\ncolumns = ["row", "messages.content"]', '\ncolumns = ["row"]'):
        run(job_of(folder, rules, f'paths = "chats.jsonl"{columns}'), overwrite=True)
        assert rows_of(folder) == [0]


def test_decimals_in_structs_whose_fields_are_compared_are_left_out_with_a_warning(folder, caplog):
    docs = [{"price": Decimal("1.5")}, {"price": Decimal("1.50")}]
    pq.write_table(pa.table({"row": [0, 1], "doc": docs}), folder / "p.parquet")
    run(job_of(folder, '[deduplicate]\ncolumns = ["doc.price"]', 'paths = "p.parquet"'))
    assert pq.read_table(folder / "out").to_pylist() == [{"row": 0}]
    assert "'doc' is struct<price: decimal128(3, 2)>: rules compare it" in caplog.text


def test_what_cannot_be_curated_is_refused(folder):
    mix = '[[mix.sources]]\npaths = "web/"\nweight = 1\n[deduplicate]\ncolumns = ["text"]\n'
    (folder / "mix.toml").write_text(mix)
    with pytest.raises(JobError, match=r"line 4: .deduplicate. compares the rows of one source"):
        Job.read(folder / "mix.toml")
    tables = {"source": {"paths": "web/"}, "deduplicate": {"columns": ["text"]}}
    for refusing in (check, run):
        with pytest.raises(JobError, match="has no output"):
            refusing(Job.from_dict({**tables, "output": {"kind": "none"}}, folder))
    check(Job.from_dict(tables, folder))  # a path may be given later
    run(job_of(folder))
    with pytest.raises(JobError, match=r"append: .decontaminate. compares all rows"):
        run(job_of(folder), append=True)


@pytest.mark.slow
def test_a_job_killed_at_ten_points_writes_what_an_undisturbed_one_does(folder):
    (folder / "dying.py").write_text(
        f"{KILLING}\nif 'KILL_AT' in os.environ and 'seqflow' in sys.argv[0]:\n"
        "    os.replace = killing(os.replace)\n    os.rename, os.unlink = killing(os.rename), killing(os.unlink)\n"
    )
    source = 'paths = ["web/", "books/*.parquet"]\ncolumns = ["row"]'
    job_of(folder, RULES, source, 'imports = ["dying"]')

    def call(**environment):
        done = seqflow("run", "job.toml", "--resume", "--quiet", folder=folder, **environment)
        assert done.returncode in (0, -9), done.stderr
        return done.returncode

    def content():
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for name in ("out", "out.curation")
            for path in sorted((folder / name).rglob("*.parquet"))
        }

    assert call() == 0
    expected = content()
    assert rows_of(folder) == STAY
    for name in ("out", "out.curation"):
        shutil.rmtree(folder / name)
    kills = [call(KILL_AT=str(point)) for point in (0, 1, 2, 3, 1, 4, 0, 2, 5, 1)]
    assert kills.count(-9) >= 5
    assert call() == 0
    assert content() == expected


def test_a_job_from_a_store_to_a_store_is_curated_there(folder, own, bucket, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", bucket.options["aws_access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    for name in ("web", "books", "eval"):
        for path in (folder / name).iterdir():
            bucket.put(f"{name}/{path.name}", path)
    access = f'storage_options]\naws_endpoint_url = "{own.url}"\naws_region = "us-east-1"\n'
    rules = RULES.replace('"eval/', '"s3://bucket/eval/')
    (folder / "job.toml").write_text(
        f'[source]\npaths = ["s3://bucket/web/", "s3://bucket/books/*.parquet"]\n[source.{access}{rules}'
        f'[batch]\nn = 32\n[output]\npath = "s3://bucket/out"\n[output.{access}'
    )
    report = run(Job.read(folder / "job.toml"))
    assert report.filtered_by == {"decontaminate": 1, "deduplicate": 3, "near_duplicates": 1}
    written = open_source("s3://bucket/out", storage_options=bucket.options)
    assert written["row"].tolist() == STAY
    assert any(key.startswith("out.curation/keys/part-") for key in bucket.keys(""))
    assert run(Job.read(folder / "job.toml")).outcome == "complete"


SKIP = '\n[bad_files]\npolicy = "skip"'


@pytest.mark.parametrize("engine", ["", "\n[engine]\nworkers = 2"])
def test_damaged_files_are_left_out_of_the_keys_and_the_rows_and_counted_once(folder, engine):
    (folder / "web" / "b.parquet").write_bytes(b"PAR1 rubbish")
    whole = (folder / "books" / "a.parquet").read_bytes()
    start = pq.ParquetFile(folder / "books" / "a.parquet").metadata.row_group(1).column(0).data_page_offset
    (folder / "books" / "a.parquet").write_bytes(whole[:start] + b"\xff" * 40 + whole[start + 40 :])
    report = run(job_of(folder, RULES + SKIP + engine))
    lost = {*range(85, 110)}
    assert rows_of(folder) == [row for row in range(120) if row not in {*lost, 40, 70, 110}]
    assert [(os.path.basename(one.path), one.block) for one in report.bad_files] == [
        ("b.parquet", None),
        ("a.parquet", 1),
    ]
    assert report.filtered_by == {"decontaminate": 1, "deduplicate": 2}


def test_damage_in_the_files_that_rows_are_compared_with_is_an_error(folder):
    (folder / "eval" / "old.parquet").write_bytes(b"PAR1 rubbish")
    with pytest.raises(DamagedFileError, match="old"):
        run(job_of(folder, '[deduplicate]\ncolumns = ["text"]\nagainst = "eval/old.parquet"' + SKIP))


def test_rows_with_fewer_words_than_an_n_gram_stay_and_are_counted(folder):
    texts = [
        "one two",
        "",
        None,
        "one two",
        *(["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m", "n"] * 2),
    ]
    pq.write_table(pa.table({"text": texts, "row": np.arange(len(texts))}), folder / "short.parquet")
    source = 'paths = "short.parquet"\ncolumns = ["row"]'
    report = run(job_of(folder, RULES.replace("rows = 4", "rows = 4\nngram = 2"), source))
    short = 16  # "", null and 14 letters, each once
    assert report.too_short == {"decontaminate": len(texts), "near_duplicates": short}
    # of the rows that deduplicate has left: "one two", "", null, and 14 letters
    assert report.filtered_by == {"deduplicate": len(texts) - 17}
    assert json.loads((folder / "out" / "_manifest.json").read_text())["too_short"] == report.too_short


def test_decimals_are_compared_and_left_out_of_the_output_with_a_warning(folder, caplog):
    price = [Decimal("12345678901234567.89"), Decimal("12345678901234567.90"), None]
    pq.write_table(pa.table({"row": [0, 1, 2], "x": ["d", "d", "d"], "price": price}), folder / "p.parquet")
    rules = '[deduplicate]\ncolumns = ["x"]\nkeep = "highest:price"'
    run(job_of(folder, rules, 'paths = "p.parquet"'))
    assert pq.read_table(folder / "out").to_pylist() == [{"row": 1, "x": "d"}]
    assert (
        caplog.text.count("'price' is decimal128(19, 2): rules compare it, the output does not have it") == 1
    )
    with pytest.raises(ProviderError, match="no tensor form"):
        run(job_of(folder, rules, 'paths = "p.parquet"\ncolumns = ["price"]'), overwrite=True)


@pytest.mark.parametrize("of", ["out", "out.curation/keys"])
def test_an_output_whose_rows_were_compared_in_another_way_is_refused_and_made_again(folder, of):
    run(job_of(folder))
    manifest = folder / of / "_manifest.json"
    record = json.loads(manifest.read_text())
    for rule in ("decontaminate", "deduplicate", "near_duplicates"):
        record["job"].get(rule, {}).pop("comparison", None)
    record["job"]["data"]["read with"].pop("comparison", None)
    manifest.write_text(json.dumps(record))
    if of != "out":
        shutil.rmtree(folder / "out")
    for options in ({}, {"resume": True}):
        with pytest.raises(JobError, match=r"(?s)comparison is new: 2.*--overwrite"):
            run(job_of(folder), **options)
    run(job_of(folder), overwrite=True)
    assert rows_of(folder) == STAY


def test_the_jobs_of_the_page_find_chats_that_are_alike(folder):
    page = (Path(__file__).parents[2] / "docs" / "curation.md").read_text(encoding="utf-8")
    jobs = re.findall(r"```toml\n(.*?)```", page.partition("## Chats")[2], re.DOTALL)
    chats = [(TEXTS[8], "yes"), (TEXTS[9], "yes"), (TEXTS[90].upper(), "Yes"), ("hi", "yes")]
    turns = [[{"role": role, "content": one} for role, one in zip("ab", chat, strict=True)] for chat in chats]
    (folder / "chats").mkdir()
    lines = "".join(json.dumps({"messages": one, "more": 1}) + "\n" for one in turns)
    (folder / "chats" / "a.jsonl").write_text(lines)
    for name, job in zip(("words", "near"), jobs, strict=True):
        (folder / f"{name}.toml").write_text(job)
        report = run(Job.read(folder / f"{name}.toml"))
    assert (report.filtered_by, report.too_short) == ({"near_duplicates": 1}, {"near_duplicates": 1})
    assert pq.read_table(folder / "curated").to_pylist() == [{"messages": turns[at]} for at in (0, 1, 3)]
