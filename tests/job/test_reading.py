"""Job files and dicts become jobs; errors name the line."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from outputs import write_job

from seqflow.errors import JobError
from seqflow.job import Job, run
from seqflow.loader import BadRows, Balance, Buckets, Packed, Rows, TokenBudget


def test_a_job_has_defaults_for_everything_but_its_source(tmp_path: Path) -> None:
    job = Job.read(write_job(tmp_path, '[source]\npaths = "a.parquet"'))
    assert job.source.paths == str(tmp_path / "a.parquet")
    assert job.batch == Rows(256)
    assert job.order.window == "64 MiB"
    assert job.bad_rows == BadRows("raise")
    assert job.net.net is None


def test_every_section_is_read(folder: Path) -> None:
    np.save(folder / "table.npy", np.zeros(3))
    (folder / "net.txt").write_text("x = cast(tokens.values)")
    path = write_job(
        folder,
        """
        imports = []
        [source]
        paths = ["docs.parquet"]
        columns = ["tokens"]
        kind = "parquet"
        exclude = ["*.bak"]
        rename = { tokens = "ids" }
        fill = 0
        valid = false
        [order]
        window = "1 MiB"
        memory = 1048576
        [prepare]
        file = "net.txt"
        [batch]
        kind = "packed"
        capacity = 8
        strategy = "first_fit"
        rows = 2
        fill = -1
        [net]
        net = "return tokens"
        [constants]
        table = "table.npy"
        [output]
        path = "out"
        kind = "arrow"
        columns = ["tokens"]
        compression = "zstd"
        threads = 2
        [bad_rows]
        policy = "quarantine"
        path = "bad.arrow"
        """,
    )
    job = Job.read(path)
    assert job.source.rename == {"tokens": "ids"}
    assert job.batch == Packed(8, strategy="first_fit", rows=2, fill=-1)
    assert job.prepare.file == str(folder / "net.txt")
    assert job.constants == {"table": str(folder / "table.npy")}
    assert job.output.path == str(folder / "out")
    assert job.bad_rows == BadRows("quarantine", str(folder / "bad.arrow"))


def test_the_arguments_of_a_batch_are_those_of_its_python_class(tmp_path: Path) -> None:
    source = {"source": {"paths": ["x"]}}
    tokens = {"kind": "tokens", "max_tokens": 9, "padded": True, "max_rows": 3, "lengths": "x.lengths"}
    job = Job.from_dict({**source, "batch": tokens})
    assert job.batch == TokenBudget(9, padded=True, max_rows=3, lengths="x.lengths")
    assert Job.from_dict({**source, "batch": {"n": 4, "drop_last": True}}).batch == Rows(4, drop_last=True)
    packed = {"kind": "packed", "capacity": 8, "columns": ["x", "y"], "fills": {"y": -100}}
    assert Job.from_dict({**source, "batch": packed}).batch == Packed(8, ("x", "y"), {"y": -100})


def test_the_keys_of_buckets_are_those_of_the_plan_inside_too() -> None:
    source = {"source": {"paths": ["x"]}}
    rows = {"kind": "buckets", "boundaries": [4, 8], "n": 32, "drop_last": True}
    assert Job.from_dict({**source, "batch": rows}).batch == Buckets((4, 8), Rows(32, drop_last=True))
    tokens = {"kind": "buckets", "boundaries": 16, "max_tokens": 64, "padded": True, "multiple_of": 8}
    assert Job.from_dict({**source, "batch": tokens}).batch == Buckets(
        16, TokenBudget(64, padded=True, multiple_of=8)
    )


def test_a_batch_may_be_a_number_of_rows_alone(tmp_path: Path) -> None:
    assert Job.from_dict({"source": {"paths": ["x"]}, "batch": 32}).batch == Rows(32)
    assert Job.from_dict({"source": {"paths": ["x"]}, "batch": {"n": 32}}).batch == Rows(32)


def test_overrides_replace_values_and_their_paths_are_those_of_the_current_folder(folder: Path) -> None:
    path = write_job(folder, '[source]\npaths = ["docs.parquet"]\n[batch]\nkind = "packed"\ncapacity = 8')
    job = Job.read(path, {"batch.capacity": 16, "source.paths": ["a/b"], "output.path": "out"})
    assert job.batch == Packed(16)
    assert job.source.paths == ("a/b",)
    assert job.output.path == "out"


def test_placeholders_urls_and_absolute_paths_are_not_put_into_the_folder(tmp_path: Path) -> None:
    paths = ["{stdlib}/*.py", "s3://bucket/x.parquet", "/data/x.parquet"]
    assert Job.from_dict({"source": {"paths": paths}}, tmp_path).source.paths == tuple(paths)


def test_a_glob_means_the_same_in_a_folder_with_brackets_in_its_name(folder: Path) -> None:
    inner = folder / "run[1]"
    inner.mkdir()
    (folder / "docs.parquet").rename(inner / "docs.parquet")
    path = write_job(inner, '[source]\npaths = ["*.parquet"]\n[output]\nkind = "none"')
    assert run(Job.read(path)).rows == 10


MALFORMED = [
    ('[source]\npaths = ["x"]\n[batch]\nkind = "packed"\ncapacty = 8', r"job.toml, line 5: unknown key 'capacty' in \[batch\] with kind = \"packed\" \(did you mean 'capacity'\?\)\n  known are capacity, "),
    ('[sourc]\npaths = ["x"]', r"line 1: unknown section \[sourc\] \(did you mean 'source'\?\)"),
    ('import = ["x"]\n[source]\npaths = "x"', r"line 1: unknown key 'import' \(did you mean 'imports'\?\)"),
    ('[source]\nserverd = "flight://a:1"', r"line 2: unknown key 'serverd' in \[source\] \(did you mean 'served'\?\)\n  known are .*served"),
    ('[source]\npath = ["x"]', r"line 2: unknown key 'path' in \[source\] \(did you mean 'paths'\?\)"),
    ('[batch]\nn = 3', r"job.toml: there is no \[source\]"),
    ('[source]\ncolumns = ["x"]', r"line 1: \[source\] needs 'paths'"),
    ('[source]\npaths = []', r"line 2: paths is empty"),
    ('[source]\npaths = 3', r"line 2: paths is 3, expected a path or a list of paths"),
    ('[source]\npaths = ["x", 3]', r"line 2: paths is \['x', 3\], expected a path or a list of paths"),
    ('[source]\npaths = "x"\nvalid = "yes"', r"line 3: valid is 'yes', expected true or false"),
    ('[source]\npaths = "x"\nkind = "parqet"', r"line 3: kind is 'parqet' \(did you mean 'parquet'\?\), but must be one of arrow, .* or 'module:function'"),
    ('[source]\npaths = "x"\n[source.rename]\na = 3', r"line 3: rename is \{'a': 3\}, expected a table of text"),
    ('[source]\npaths = "x"\n[batch]\nkind = "pack"', r"line 4: kind is 'pack', expected 'rows' or 'tokens' or 'buckets' or 'packed' or 'module:Name' \(did you mean 'packed'\?\)"),
    ('[source]\npaths = "x"\n[batch]\nkind = "packed"', r"line 3: \[batch\] with kind = \"packed\" needs 'capacity'"),
    ('[source]\npaths = "x"\n[batch]\nkind = "buckets"\nn = 2', r"line 3: .* needs 'boundaries'"),
    ('[source]\npaths = "x"\n[batch]\nkind = "buckets"\nboundaries = 2', r"line 3: .* needs 'n' rows, or 'max_tokens'"),
    ('[source]\npaths = "x"\n[batch]\nkind = "buckets"\nboundaries = [4, 2]\nn = 8',
     r"line 5: \[batch\] boundaries has 2 after 4"),
    ('[source]\npaths = "x"\n[batch]\nkind = "buckets"\nboundaries = "all"\nn = 8',
     "line 5: boundaries is 'all', expected an integer or a list of integers"),
    ('[source]\npaths = "x"\n[batch]\nkind = "buckets"\nboundaries = 2\nn = 8\nmax_row = 2',
     r"line 7: unknown key 'max_row' in \[batch\] with kind"),
    ('[source]\npaths = "x"\n[batch]\nn = 2.5', r"line 4: n is 2.5, expected an integer"),
    ('[source]\npaths = "x.csv"\n[source.csv]\n[source.tar]', r"line 4: \[source.tar\] is given next to \[source.csv\]"),
    ('[source]\npaths = "x.csv"\nheader = true\n[source.csv]', r"line 3: unknown key 'header' in \[source\]; \[source.csv\] has it"),
    ('[source]\npaths = "x"\n[batch]\nn = 0', r"line 4: \[batch\] n is 0, expected an integer, 1 or more"),
    ('[source]\npaths = "x"\n[batch]\nn = true', r"line 4: n is True, expected an integer"),
    ('[source]\npaths = "x"\n[order]\nseed = 7', r"line 4: \[order\] seed is given, but rows are not shuffled, expected shuffle = true"),
    ('[source]\npaths = "x"\n[order]\nstreams = 7', r"line 4: unknown key 'streams' in \[order\]"),
    ('[source]\npaths = "x"\n[order]\nwindow = "big"', r"line 4: window is 'big', expected bytes"),
    ('[source]\npaths = "x"\nbatch_bytes = 0', r"line 3: batch_bytes is 0, expected bytes"),
    ('[source]\npaths = "x"\n[prepare]\nnet = "a"\nfile = "b"', r"line 5: \[prepare\] file is given next to net"),
    ('[source]\npaths = "x"\n[net]\nfile = "b"', r"line 4: there is no file '.*b'"),
    ('[source]\npaths = "x"\n[constants]\nt = "b.npy"', r"line 4: there is no file '.*b.npy'"),
    ('[source]\npaths = "x"\n[constants]\nt = 3', r"line 4: t is 3, expected a path"),
    ('[source]\npaths = "x"\n[output]\nthreads = 0', r"line 4: threads is 0, expected an integer, 1 to 256"),
    ('[source]\npaths = "x"\n[bad_rows]\npolicy = "quarantine"', r"line 4: \[bad_rows\] policy 'quarantine' needs a path"),
    ('batch = 0\n[source]\npaths = ["x"]', r"line 1: \[batch\] n is 0, expected an integer, 1 or more"),
    ('batch = "x"\n[source]\npaths = ["x"]', r"line 1: batch is 'x', expected a number of rows or a section \[batch\]"),
    ('source = 3', r"line 1: source is 3, expected a section \[source\]"),
    ('[source]\npaths = "x\n', r"not TOML: .*line 2"),
    ('[source]\nx = 1\nx = 2\ny = 1', r"not TOML: .*line 3"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), MALFORMED)
def test_a_malformed_job_is_an_error_that_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(JobError, match=message):
        Job.read(write_job(tmp_path, text))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("batch.capacty", 8, r"^--set batch.capacty: unknown key 'capacty' in \[batch\]"),
        ("bach.n", 8, r"^--set bach.n: unknown section \[bach\] \(did you mean 'batch'\?\)"),
        ("batch.n", "x", r"^--set batch.n: n is 'x', expected an integer"),
        ("source.paths.x", "x", r"^--set source.paths.x: 'paths' is 'x', not a section"),
    ],
)
def test_a_malformed_override_is_an_error_that_names_it(
    tmp_path: Path, name: str, value: object, message: str
) -> None:
    with pytest.raises(JobError, match=message):
        Job.read(write_job(tmp_path, '[source]\npaths = "x"'), {name: value})


def test_a_missing_job_file_is_a_job_error(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"there is no job file '.*nowhere.toml'"):
        Job.read(tmp_path / "nowhere.toml")


def test_a_job_file_that_is_not_text_is_a_job_error(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(JobError, match="cannot read the job file"):
        Job.read(tmp_path / "job.toml")


BALANCED = """
[source]
paths = "in.parquet"

[batch]
kind = "packed"
capacity = 64

[batch.balance]
group = 8
{}
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("linear = 57_000", Balance(group=8, linear=57_000)),
        ('pool = "window"\ncost = "length * 2"', Balance(group=8, pool=None, cost="length * 2")),
    ],
)
def test_a_plan_has_a_section_for_its_balance(tmp_path: Path, line: str, expected: Balance) -> None:
    job = Job.read(write_job(tmp_path, BALANCED.format(line)))
    assert job.batch == Packed(64, balance=expected)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("lineer = 1", r"line 11: unknown key 'lineer' in \[batch.balance\] \(did you mean 'linear'\?\)"),
        ("linear = -1", r"line 11: \[batch.balance\] linear is -1"),
        ("steps_of = true", "line 11: steps_of is True, expected an integer"),
        ("", r"\[batch.balance\] neither linear nor cost is given"),
    ],
)
def test_a_wrong_balance_is_named_with_its_line(tmp_path: Path, line: str, text: str) -> None:
    with pytest.raises(JobError, match=text):
        Job.read(write_job(tmp_path, BALANCED.format(line)))


def test_conditions_on_rows_are_a_key(tmp_path: Path) -> None:
    text = 'require = {}\n[source]\npaths = "in.parquet"'
    assert Job.read(write_job(tmp_path, text.format('"x > 3"'))).require == ("x > 3",)
    assert Job.read(write_job(tmp_path, text.format('["x > 3", "y"]'))).require == ("x > 3", "y")
    with pytest.raises(JobError, match=r"line 1: .*found"):
        Job.read(write_job(tmp_path, text.format('"x >"')))
    with pytest.raises(JobError, match="line 1: require is 3, expected text or a list of text"):
        Job.read(write_job(tmp_path, text.format("3")))


def test_rows_that_a_job_requires_are_left_out(folder: Path) -> None:
    path = write_job(
        folder,
        """
        require = "x.lengths > 1"
        [source]
        paths = "docs.parquet"
        [bad_rows]
        policy = "skip"
        [output]
        path = "out"
        """,
    )
    pq.write_table(pa.table({"x": [[1], [2, 3], [], [4, 5, 6]]}), folder / "docs.parquet")
    report = run(Job.read(path))
    assert (report.rows, report.bad_rows) == (2, 2)


@pytest.mark.parametrize(
    ("tables", "says"),
    [
        ({"source": {"paths": "x", "window": 1}}, r"unknown key 'window' in \[source\]; \[order\] has it"),
        ({"source": {"paths": "x"}, "window": 1}, r"unknown key 'window'; \[order\] has it"),
        ({"source": {"paths": "x"}, "order": {"require": "n > 1"}}, "the top of the file, before all sections, has it"),
        ({"source": {"paths": "x"}, "output": {"policy": "skip"}}, r"\[bad_rows\] and \[bad_files\] have it"),
        ({"source": {"paths": "x"}, "csv": {}}, r"\[source\] as \[source.csv\] has it"),
        ({"source": {"paths": "x"}, "order": {"delimiter": ";"}}, r"\[source.csv\] has it"),
        (
            {"source": {"paths": "x"}, "batch": {"n": 1, "capacity": 2}},
            r'in \[batch\] with kind = "rows"; \[batch\] with kind = "packed" has it',
        ),
    ],
)  # fmt: skip
def test_a_key_in_the_wrong_table_is_told_where_it_belongs(tables: dict[str, object], says: str) -> None:
    with pytest.raises(JobError, match=says):
        Job.from_dict(tables)


def test_another_policy_takes_no_file_of_bad_rows_along(tmp_path):
    (tmp_path / "a.parquet").touch()
    text = '[source]\npaths = "a.parquet"\n[bad_rows]\npolicy = "quarantine"\npath = "bad.parquet"\n'
    (tmp_path / "job.toml").write_text(text)
    job = Job.read(tmp_path / "job.toml", {"bad_rows.policy": "skip"})
    assert (job.bad_rows.policy, job.bad_rows.path) == ("skip", None)
    with pytest.raises(JobError, match="'skip' takes no path"):
        Job.read(tmp_path / "job.toml", {"bad_rows.policy": "skip", "bad_rows.path": "other.parquet"})
