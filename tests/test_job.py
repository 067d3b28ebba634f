import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seqflow.errors import JobError, NetError, UnknownColumnError
from seqflow.job import Job, OutputSection, SourceSection, run
from seqflow.job.toml import line_of, parse_value
from seqflow.loader import BadRows, Packed, Rows, Stats, TokenBudget

EXAMPLE = Path(__file__).parents[1] / "examples" / "pack_source.toml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with docs.parquet: 10 rows of tokens."""
    tokens = [list(range(n)) for n in (3, 0, 5, 1, 4, 2, 0, 6, 2, 2)]
    table = pa.table({"tokens": pa.array(tokens, pa.list_(pa.int32())), "label": np.arange(10)})
    pq.write_table(table, tmp_path / "docs.parquet", row_group_size=4)
    return tmp_path


def job_file(folder: Path, text: str) -> Path:
    path = folder / "job.toml"
    path.write_text(text)
    return path


def test_a_job_has_defaults_for_everything_but_its_source(tmp_path: Path) -> None:
    job = Job.read(job_file(tmp_path, '[source]\npaths = "a.parquet"'))
    assert job.source.paths == str(tmp_path / "a.parquet")
    assert job.batch == Rows(256)
    assert job.order.window == "32 MiB"
    assert job.bad_rows == BadRows("raise")
    assert job.net.net is None


def test_every_section_is_read(folder: Path) -> None:
    np.save(folder / "table.npy", np.zeros(3))
    (folder / "net.txt").write_text("x = cast(tokens.values)")
    path = job_file(
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
        value = -1
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
    assert job.batch == Packed(8, "first_fit", 2, -1)
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


def test_a_batch_may_be_a_number_of_rows_alone(tmp_path: Path) -> None:
    assert Job.from_dict({"source": {"paths": ["x"]}, "batch": 32}).batch == Rows(32)
    assert Job.from_dict({"source": {"paths": ["x"]}, "batch": {"n": 32}}).batch == Rows(32)


def test_overrides_replace_values_and_their_paths_are_those_of_the_current_folder(folder: Path) -> None:
    path = job_file(folder, '[source]\npaths = ["docs.parquet"]\n[batch]\nkind = "packed"\ncapacity = 8')
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
    path = job_file(inner, '[source]\npaths = ["*.parquet"]\n[output]\nkind = "none"')
    assert run(Job.read(path)).rows == 10


MALFORMED = [
    ('[source]\npaths = ["x"]\n[batch]\nkind = "packed"\ncapacty = 8', r"job.toml, line 5: unknown key 'capacty' in \[batch\] with kind = \"packed\" \(did you mean 'capacity'\?\)\n  known are capacity, "),
    ('[sourc]\npaths = ["x"]', r"line 1: unknown section \[sourc\] \(did you mean 'source'\?\)"),
    ('import = ["x"]\n[source]\npaths = "x"', r"line 1: unknown key 'import' \(did you mean 'imports'\?\)"),
    ('[source]\npath = ["x"]', r"line 2: unknown key 'path' in \[source\] \(did you mean 'paths'\?\)"),
    ('[batch]\nn = 3', r"job.toml: there is no \[source\]"),
    ('[source]\ncolumns = ["x"]', r"line 1: \[source\] needs 'paths'"),
    ('[source]\npaths = []', r"line 2: paths is empty"),
    ('[source]\npaths = 3', r"line 2: paths is 3, expected text or a list of text"),
    ('[source]\npaths = ["x", 3]', r"line 2: paths is \['x', 3\], expected text or a list of text"),
    ('[source]\npaths = "x"\nvalid = "yes"', r"line 3: valid is 'yes', expected true or false"),
    ('[source]\npaths = "x"\nkind = "parqet"', r"line 3: kind is 'parqet', expected 'parquet' or 'arrow' or 'text' \(did you mean 'parquet'\?\)"),
    ('[source]\npaths = "x"\n[source.rename]\na = 3', r"line 3: rename is \{'a': 3\}, expected a table of text"),
    ('[source]\npaths = "x"\n[batch]\nkind = "pack"', r"line 4: kind is 'pack', expected 'rows' or 'tokens' or 'packed' \(did you mean 'packed'\?\)"),
    ('[source]\npaths = "x"\n[batch]\nkind = "packed"', r"line 3: \[batch\] with kind = \"packed\" needs 'capacity'"),
    ('[source]\npaths = "x"\n[batch]\nn = 2.5', r"line 4: n is 2.5, expected an integer"),
    ('[source]\npaths = "x"\n[batch]\nn = 0', r"line 4: \[batch\] n is 0, expected an integer, 1 or more"),
    ('[source]\npaths = "x"\n[batch]\nn = true', r"line 4: n is True, expected an integer"),
    ('[source]\npaths = "x"\n[order]\nseed = 7', r"line 4: seed belongs to shuffling, which this version does not have"),
    ('[source]\npaths = "x"\n[order]\nstreams = 7', r"line 4: streams belongs to shuffling"),
    ('[source]\npaths = "x"\n[order]\nwindow = "big"', r"line 4: window: size is 'big', expected bytes"),
    ('[source]\npaths = "x"\nbatch_bytes = 0', r"line 3: batch_bytes: size is 0, expected bytes"),
    ('[source]\npaths = "x"\n[prepare]\nnet = "a"\nfile = "b"', r"line 5: \[prepare\] has both net and file"),
    ('[source]\npaths = "x"\n[net]\nfile = "b"', r"line 4: there is no file '.*b'"),
    ('[source]\npaths = "x"\n[constants]\nt = "b.npy"', r"line 4: there is no file '.*b.npy'"),
    ('[source]\npaths = "x"\n[constants]\nt = 3', r"line 4: t is 3, expected text"),
    ('[source]\npaths = "x"\n[output]\nthreads = 0', r"line 4: threads is 0, expected 1 or more"),
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
        Job.read(job_file(tmp_path, text))


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
        Job.read(job_file(tmp_path, '[source]\npaths = "x"'), {name: value})


def test_a_missing_job_file_is_a_job_error(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"there is no job file '.*nowhere.toml'"):
        Job.read(tmp_path / "nowhere.toml")


def test_a_job_file_that_is_not_text_is_a_job_error(tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(JobError, match="cannot read the job file"):
        Job.read(tmp_path / "job.toml")


TEXT = '''a.b = 1           # 1
text = """
[fake]
fake = 1
"""
inline = { x = 1 }      # 6
other = "a # \\" = b"
[s . "t"]               # 8
k = [
  "k = 2",
]
# [comment]
[[list]]                # 13
'quoted' = 3
'''


@pytest.mark.parametrize(
    ("name", "line"),
    [("a.b", 1), ("a", 1), ("text", 2), ("inline.x", 6), ("other", 7), ("s", 8), ("s.t", 8), ("s.t.k", 9),
     ("list", 13), ("list.quoted", 14), ("fake", None), ("fake.x", None), ("comment", None)],
)  # fmt: skip
def test_the_line_of_a_setting_is_found(name: str, line: int | None) -> None:
    assert line_of(TEXT, name) == line


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("true", True), ("'x'", "x"), ("x", "x"), ("[1, 2]", [1, 2]), ("32 MiB", "32 MiB"), ("", ""),
     ("1\nb = 2", "1\nb = 2")],
)  # fmt: skip
def test_an_override_is_a_toml_value_or_else_text(text: str, value: object) -> None:
    assert parse_value(text) == value


def test_running_a_job_reports_what_it_did(folder: Path) -> None:
    seen: list[tuple[int, int | None]] = []

    def progress(stats: Stats, total: int | None) -> None:
        seen.append((stats.batches, total))

    path = job_file(
        folder, '[source]\npaths = "docs.parquet"\n[batch]\nn = 4\n[output]\npath = "out.parquet"'
    )
    report = run(Job.read(path), progress)
    assert (report.rows, report.tokens, report.batches, report.bad_rows) == (10, 25, 3, 0)
    assert report.fill == 25 / (4 * 5 + 4 * 6 + 2 * 2)
    assert report.files == (folder / "out.parquet",)
    assert report.output_bytes == (folder / "out.parquet").stat().st_size
    assert report.peak_memory > 10 << 20
    assert seen == [(1, 10), (2, 10), (3, 10)]
    before, after = (pq.read_table(folder / name) for name in ("docs.parquet", "out.parquet"))
    assert after.to_pylist() == before.to_pylist()


def test_a_job_with_prepare_constants_and_net(folder: Path) -> None:
    np.save(folder / "table.npy", np.arange(12.0).reshape(6, 2))
    job = Job.from_dict(
        {
            "source": {"paths": "docs.parquet", "columns": ["tokens"]},
            "prepare": {
                "net": "t = truncate(tokens.values, tokens.lengths, max_length=2)\nreturn t.rows, t.kept"
            },
            "net": {"net": "x = sparse_lengths_sum(table, t.rows, t.kept)\nreturn x"},
            "constants": {"table": "table.npy"},
            "output": {"path": "out.parquet"},
        },
        folder,
    )
    run(job)
    x = pq.read_table(folder / "out.parquet")["x"].to_pylist()
    assert x == [[2, 4], [0, 0], [2, 4], [0, 1], [2, 4], [2, 4], [0, 0], [2, 4], [2, 4], [2, 4]]


def test_own_ops_are_imported_from_the_folder_of_the_job_which_is_on_the_path_only_then(folder: Path) -> None:
    (folder / "job_ops.py").write_text(
        "from seqflow import op\n\n"
        '@op("x[N] -> doubled[N]")\ndef doubled_in_a_job(x):\n    """Twice x."""\n    return x * 2\n'
    )
    job = Job.from_dict(
        {
            "imports": ["job_ops"],
            "source": {"paths": "docs.parquet", "columns": ["label"]},
            "net": {"net": "y = doubled_in_a_job(label)\nreturn y"},
            "output": {"path": "out.parquet"},
        },
        folder,
    )
    program = f"import sys; from seqflow.job import run, Job; run(Job.read({str(folder / 'job.toml')!r})); print(sys.path)"
    job_file(
        folder,
        'imports = ["job_ops"]\n[source]\npaths = "docs.parquet"\ncolumns = ["label"]\n'
        '[net]\nnet = "y = doubled_in_a_job(label)\\nreturn y"\n[output]\npath = "out.parquet"',
    )
    assert job.imports == ("job_ops",)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert str(folder) not in done.stdout
    assert pq.read_table(folder / "out.parquet")["y"].to_pylist() == list(range(0, 20, 2))


def test_a_missing_module_is_a_job_error(folder: Path) -> None:
    job = Job.from_dict({"imports": ["no_such_ops"], "source": {"paths": "docs.parquet"}}, folder)
    with pytest.raises(JobError, match="imports: there is no module 'no_such_ops'"):
        run(job)


def test_a_malformed_net_says_where_in_the_job_it_stands(folder: Path) -> None:
    job = Job.from_dict({"source": {"paths": "docs.parquet"}, "prepare": {"net": "x = nope(label)"}}, folder)
    with pytest.raises(NetError) as caught:
        run(job)
    assert caught.value.__notes__ == ["in [prepare] of the job"]


def test_a_constant_that_is_not_an_array_file_is_a_job_error(folder: Path) -> None:
    (folder / "t.npy").write_text("no array")
    job = Job.from_dict({"source": {"paths": "docs.parquet"}, "constants": {"t": "t.npy"}}, folder)
    with pytest.raises(JobError, match=r"constants.t: .*t.npy is not a .npy file"):
        run(job)


def test_an_unknown_column_fails_before_anything_is_written(folder: Path) -> None:
    source = {"paths": "docs.parquet", "columns": ["token"]}
    with pytest.raises(UnknownColumnError, match="tokens"):
        run(Job.from_dict({"source": source, "output": {"path": "out"}}, folder))
    assert not (folder / "out").exists()


def test_bad_rows_are_counted_and_set_aside(folder: Path) -> None:
    table = pa.table({"tokens": pa.array([[1, 2], [None], [3]], pa.list_(pa.int32()))})
    pq.write_table(table, folder / "holes.parquet")
    job = Job.from_dict(
        {
            "source": {"paths": "holes.parquet"},
            "output": {"path": "out.parquet"},
            "bad_rows": {"policy": "quarantine", "path": "bad.arrow"},
        },
        folder,
    )
    report = run(job)
    assert (report.rows, report.bad_rows) == (2, 1)
    assert pq.read_table(folder / "out.parquet")["tokens"].to_pylist() == [[1, 2], [3]]
    assert pa.ipc.open_file(folder / "bad.arrow").read_all()["bad.row"].to_pylist() == [1]


def files_of(output: Path, end: int = 256) -> list[bytes]:
    """The files that were packed: pieces sorted by source, put together, cut at the end token."""
    pieces: list[tuple[int, np.ndarray]] = []
    for path in sorted(output.glob("*.parquet")):
        for batch in pq.ParquetFile(path).iter_batches(batch_size=1024):
            tokens = batch.column("tokens").flatten().to_numpy().reshape(batch.num_rows, -1)
            for row, numbers, lengths in zip(
                tokens,
                batch.column("sources").to_pylist(),
                batch.column("piece_lengths").to_pylist(),
                strict=True,
            ):
                starts = np.cumsum([0, *lengths])
                pieces += [
                    (n, row[a:b].copy()) for n, a, b in zip(numbers, starts[:-1], starts[1:], strict=True)
                ]
    pieces.sort(key=lambda piece: piece[0])
    assert [number for number, _ in pieces] == list(range(len(pieces)))
    stream = np.concatenate([piece for _, piece in pieces])
    assert stream[-1] == end
    stops = np.flatnonzero(stream == end)
    starts = np.concatenate(([0], stops[:-1] + 1))
    return [stream[a:b].astype(np.uint8).tobytes() for a, b in zip(starts, stops, strict=True)]


def test_the_example_packs_a_folder_and_every_byte_of_it_comes_back(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    source = tmp_path / "source"
    source.mkdir()
    for i, size in enumerate([0, 1, 2047, 2048, 2049, 10_000, *random.integers(0, 6000, 40)]):
        (source / f"{i:02}.py").write_bytes(random.integers(0, 256, size, np.uint8).tobytes())
    job = Job.read(EXAMPLE, {"source.paths": [str(source)], "output.path": str(tmp_path / "out")})
    report = run(job)
    expected = [path.read_bytes() for path in sorted(source.iterdir())]
    assert report.tokens == sum(map(len, expected)) + len(expected)
    assert files_of(tmp_path / "out") == expected


def test_packed_rows_say_which_piece_each_token_belongs_to(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x" * 3000)
    (tmp_path / "b.py").write_bytes(b"y" * 500)
    job = Job.read(EXAMPLE, {"source.paths": [str(tmp_path / "*.py")], "output.path": str(tmp_path / "out")})
    run(job)
    table = pq.read_table(tmp_path / "out" / "part-00000.parquet")
    assert table.column_names == ["tokens", "segment_ids", "position_ids", "sources", "piece_lengths"]
    lengths = table["piece_lengths"].to_pylist()
    assert table["sources"].to_pylist() == [[0], [1, 2]]
    assert lengths == [[2048], [953, 501]]
    assert table["segment_ids"].to_pylist()[1] == [1] * 953 + [2] * 501 + [0] * (2048 - 953 - 501)
    assert table["position_ids"].to_pylist()[1][:1454] == [*range(953), *range(501)]


def test_the_example_packs_the_standard_library_nearly_without_padding(tmp_path: Path) -> None:
    report = run(Job.read(EXAMPLE, {"output.path": str(tmp_path / "out")}))
    root = Path(sysconfig.get_paths()["stdlib"])
    left_out = ("site-packages", "__pycache__", ".")
    expected = sorted(
        str(path)
        for path in root.rglob("*.py")
        if not any(part.startswith(left_out) for part in path.relative_to(root).parts)
    )
    assert report.fill is not None
    assert report.fill >= 0.999
    assert report.rows == len(expected)
    assert files_of(tmp_path / "out") == [Path(path).read_bytes() for path in expected]


def test_a_run_never_writes_over_its_own_input(tmp_path):
    source = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": [[1, None], [2]]}), source)
    before = source.read_bytes()
    for output, bad in (
        ({"path": str(source)}, {}),
        ({"path": str(tmp_path)}, {}),
        ({"kind": "none"}, {"policy": "quarantine", "path": str(source)}),
        (
            {"path": str(tmp_path / "o")},
            {"policy": "quarantine", "path": str(tmp_path / "o" / "part-00000.parquet")},
        ),
    ):
        job = Job.from_dict({"source": {"paths": [str(source)]}, "output": output, "bad_rows": bad})
        with pytest.raises(JobError, match="source"):
            run(job)
    assert source.read_bytes() == before


def test_a_module_that_cannot_be_imported_is_an_error_of_the_job(tmp_path):
    (tmp_path / "broken.py").write_text("x = = 1")
    job = Job.from_dict({"source": {"paths": ["*"]}, "imports": ["broken"]}, tmp_path)
    with pytest.raises(JobError, match="imports: the module 'broken' cannot be imported: SyntaxError"):
        run(job)


EMPTY_JOBS = {
    "as they come": {},
    "with nets": {
        "prepare": {"net": "t = truncate(tokens.values, tokens.lengths, max_length=2)\nreturn t.rows, t.kept, label"},
        "net": {"net": "x, mask = pad(t.rows, t.kept, max_length=2)\nreturn x, mask, label"},
    },
    "by tokens": {"batch": {"kind": "tokens", "max_tokens": 8}},
    "packed": {"batch": {"kind": "packed", "capacity": 8}},
    "some columns": {"output": {"columns": ["label"]}},
}  # fmt: skip


@pytest.mark.parametrize("settings", EMPTY_JOBS.values(), ids=EMPTY_JOBS.keys())
@pytest.mark.parametrize("path", ["out", "out.parquet", "out.arrow"])
def test_a_job_without_rows_leaves_an_empty_file_of_the_same_schema(
    folder: Path, settings: dict[str, dict[str, object]], path: str
) -> None:
    whole = pq.read_table(folder / "docs.parquet")
    pq.write_table(whole.slice(0, 0), folder / "none.parquet")
    reports, schemas = [], []
    for source in ("docs.parquet", "none.parquet"):
        target = folder / source.removesuffix(".parquet") / path
        output = {**settings.get("output", {}), "path": str(target)}
        report = run(Job.from_dict({**settings, "source": {"paths": source}, "output": output}, folder))
        (file,) = report.files
        reports.append(report)
        schemas.append(pa.ipc.open_file(file).schema if path == "out.arrow" else pq.read_schema(file))
    assert schemas[0].equals(schemas[1])
    assert (reports[1].rows, reports[1].batches) == (0, 0)
    if path == "out":
        manifest = json.loads((folder / "none" / "out" / "_manifest.json").read_text())
        assert (manifest["rows"], manifest["columns"]) == (0, schemas[1].names)
        assert [entry["rows"] for entry in manifest["files"]] == [0]
        assert pq.read_table(folder / "none" / "out").num_rows == 0


def test_where_all_rows_are_bad_the_output_is_empty_too(folder: Path) -> None:
    tokens = pa.array([[None], [1, None]], pa.list_(pa.int32()))
    pq.write_table(pa.table({"tokens": tokens}), folder / "holes.parquet")
    source, bad = {"paths": "holes.parquet"}, {"policy": "skip"}
    report = run(Job.from_dict({"source": source, "output": {"path": "o.parquet"}, "bad_rows": bad}, folder))
    assert (report.rows, report.bad_rows) == (0, 2)
    assert pq.read_table(folder / "o.parquet").schema.field("tokens").type == tokens.type


def test_a_tilde_stands_for_the_folder_of_the_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    np.save(folder / "table.npy", np.zeros((10, 2)))
    path = job_file(
        folder,
        '[source]\npaths = ["~/docs.parquet"]\n[net]\nfile = "~/net.txt"\n[constants]\ntable = "~/table.npy"\n'
        '[output]\npath = "~/out"\n[bad_rows]\npolicy = "quarantine"\npath = "~/bad.arrow"\n',
    )
    (folder / "net.txt").write_text("x = sparse_lengths_sum(table, tokens.values, tokens.lengths)\nreturn x")
    assert run(Job.read(path)).files == (folder / "out" / "part-00000.parquet",)
    job = Job.read(path, {"output.path": "~/other.parquet", "source.paths": "~/*.parquet"})
    assert run(job).files == (folder / "other.parquet",)
    with pytest.raises(JobError, match="is or holds"):
        run(Job(source=SourceSection(paths="~/docs.parquet"), output=OutputSection(path="~/docs.parquet")))
