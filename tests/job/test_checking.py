"""Checking a job from its files' schemas and footers alone."""

import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow
from hypothesis import given, settings
from hypothesis import strategies as st

from seqflow import JobError, LodError, NetError, SeqflowError, ops
from seqflow.job import Job, run
from seqflow.job.checking import check
from seqflow.job.opening import open_loader
from seqflow.job.planning import plan
from seqflow.job.source_bounds import SourceBounds
from seqflow.shape import Dimension
from seqflow.signature import Described, Positions


@pytest.fixture
def source(tmp_path):
    lists = pa.array([[1, 2], [3]], pa.list_(pa.int32()))
    pq.write_table(pa.table({"tokens": lists, "labels": lists, "id": [0, 1]}), tmp_path / "x.parquet")
    return {"paths": [str(tmp_path / "x.parquet")]}


def test_every_tensor_is_known_before_any_row_is_read(source):
    found = check(Job.from_dict({
        "source": source,
        "prepare": {"net": "ids, n = truncate(tokens.values, tokens.lengths, max_length=512)\nreturn ids, n, id"},
        "batch": {"kind": "rows", "n": 32},
        "net": {"net": "x, mask = pad(ids, n, max_length=512)\nreturn x, mask, id"},
    }))  # fmt: skip
    assert str(found.source["tokens.values"]) == "int32{sum(tokens.lengths):0..3}"
    assert str(found.batch["n"]) == "int64{batch:0..32}"
    assert str(found.net.specs["x"]) == "int32{batch:0..32,512}"
    assert found.net.specs["x"].byte_bound == 32 * 512 * 4
    assert "[prepare]" in str(found)


CUT = "ids, n = truncate(tokens.values, tokens.lengths, max_length=512)\nreturn ids, n, id"
PAD = "x, mask = pad(ids, n)\nreturn x, mask"


@pytest.mark.parametrize(
    ("batch", "prepare", "net", "bounds"),
    [
        ({"n": 32}, CUT, PAD, {"n": 32 * 8, "ids": 12, "x": 32 * 3 * 4, "mask": 32 * 3}),
        ({"n": 32}, CUT.replace("512", "2"), PAD, {"n": 32 * 8, "ids": 12, "x": 32 * 2 * 4, "mask": 32 * 2}),
        ({"n": 32}, None, "y = lengths_sum(tokens.values, tokens.lengths)",
         {"tokens.lengths": 32 * 8, "tokens.values": 12, "y": 32 * 8}),
        ({"kind": "tokens", "max_tokens": 2, "lengths": "tokens"}, None,
         "s = lengths_to_segment_ids(tokens.lengths)", {"tokens.values": 8, "s": 16, "labels.values": 12}),
        ({"kind": "tokens", "max_tokens": 2, "max_rows": 1}, CUT, PAD, {"ids": 8, "n": 8, "x": 8}),
        ({"kind": "tokens", "max_tokens": 1000, "padded": True}, CUT, PAD, {"ids": 12, "n": 16, "x": 24}),
        ({"kind": "tokens", "max_tokens": 5, "padded": True}, CUT, PAD, {"ids": 12, "n": 16, "x": 20}),
        ({"kind": "packed", "capacity": 2, "rows": 3}, CUT, "o = lengths_to_segment_ids(piece_lengths)",
         {"ids": 3 * 2 * 4, "pieces": 3 * 8, "piece_lengths": 6 * 8, "id": 6 * 8, "o": 6 * 2 * 8}),
        ({"kind": "packed", "capacity": 2}, CUT, "o = lengths_to_offsets(pieces)", {"ids": 4 * 2 * 4, "o": 40}),
    ],
)  # fmt: skip
def test_what_batches_and_nets_can_have_in_bytes_at_most(source, batch, prepare, net, bounds):
    found = check(Job.from_dict({
        "source": source, "batch": batch, "net": {"net": net}, **({"prepare": {"net": prepare}} if prepare else {}),
    }))  # fmt: skip
    assert {name: found.net.byte_bounds[name] for name in bounds} == bounds


INDICES = "i = lengths_to_segment_ids(tokens.lengths)\nreturn tokens.values, tokens.lengths, i, id"
PLACES = "b = lengths_argmax(tokens.values, tokens.lengths)\nreturn tokens.values, tokens.lengths, b, id"
BEST = "y = gather(tokens.values, to_rows(b, tokens.lengths))"


def test_indices_of_the_rows_of_a_window_are_none_of_a_batch(source):
    job = {"source": source, "prepare": {"net": INDICES}, "net": {"net": "y = gather(id, i)"}}
    with pytest.raises(LodError, match="points at the rows of a window before batches were made"):
        check(Job.from_dict(job))


def test_positions_of_a_window_are_positions_of_a_batch_unless_it_cuts_rows(source):
    job = {"source": source, "prepare": {"net": PLACES}, "net": {"net": BEST}}
    assert check(Job.from_dict(job)).net.specs["y"].points is None
    budget = {"kind": "tokens", "max_tokens": 2, "lengths": "tokens", "oversize": "split"}
    with pytest.raises(LodError, match="before batches were made"):
        check(Job.from_dict({**job, "batch": budget}))


EQUAL = """
m    = minimum(tokens.lengths, 3)
v, n = truncate(tokens.values, tokens.lengths, max_length=3)
p    = argsort_within(v, m)
return v, n, p, id"""


def test_rows_and_positions_are_those_of_the_lengths_that_are_handed_on(source):
    job = {"source": source, "prepare": {"net": EQUAL}, "net": {"net": "y = gather_within(v, p, n, n)"}}
    found = check(Job.from_dict(job))
    assert [found.batch[name].rows for name in ("v", "p")] == [Described("n")] * 2
    assert found.batch["p"].points == Positions("n")
    wrong = {"net": "y = gather(id, p)"}
    with pytest.raises(LodError, match="positions inside sequences are not indices of rows"):
        check(Job.from_dict({**job, "net": wrong}))


def test_the_bounds_are_printed_for_people(source):
    found = check(Job.from_dict({"source": source, "prepare": {"net": CUT}, "net": {"net": PAD}}))
    assert str(found).endswith("""
[batch]
ids  int32{sum(n):0..3} ≤ 12 B
n  int64{batch:0..256} ≤ 2.0 KiB
id  int64{batch:0..256} ≤ 2.0 KiB

[net]
# ids: int32{sum(n):0..3} ≤ 12 B
# n: int64{batch:0..256} ≤ 2.0 KiB
x, mask = pad(ids, n)    # x int32{batch:0..256,max(n):0..3} ≤ 3.0 KiB, mask bool{batch:0..256,max(n):0..3} ≤ 768 B
return x, mask
# all tensors ≤ 7.8 KiB""")


def test_packed_batches_have_rows_of_the_capacity(source):
    found = check(
        Job.from_dict(
            {"source": {**source, "columns": ["tokens"]}, "batch": {"kind": "packed", "capacity": 8}}
        )
    )
    assert str(found.batch["tokens"]) == "int32{rows:0..1,8}"


SPLIT = "x, k, c = split_sequences(tokens.values, tokens.lengths, chunk=2)\nreturn x, k"
FEW = "x, k = filter_sequences(tokens.values, tokens.lengths > 1, tokens.lengths)\nreturn x, k"
PLANS = [
    {"n": 3},
    {"kind": "tokens", "max_tokens": 6, "lengths": "tokens"},
    {"kind": "tokens", "max_tokens": 9, "padded": True, "lengths": "tokens"},
    {"kind": "packed", "capacity": 4, "lengths": "tokens"},
    {"kind": "packed", "capacity": 3, "strategy": "concat", "lengths": "tokens"},
    {"kind": "tokens", "max_tokens": 2, "oversize": "truncate", "lengths": "tokens"},
    {"kind": "tokens", "max_tokens": 2, "oversize": "split", "lengths": "tokens", "max_rows": 4},
    {"kind": "buckets", "boundaries": [2, 4], "max_tokens": 9, "padded": True, "lengths": "tokens"},
]


@pytest.mark.parametrize("prepare", [None, SPLIT, FEW])
@pytest.mark.parametrize("plan", PLANS)
@given(
    rows=st.lists(st.lists(st.integers(0, 9), max_size=6), min_size=1, max_size=12),
    group=st.integers(1, 5),
    window=st.sampled_from([8, 100, 10_000]),
)
@settings(max_examples=settings.default.max_examples // 5)
def test_batches_stay_within_what_the_footers_say(plan, prepare, rows, group, window):
    lengths = plan.get("lengths") and ("k" if prepare else "tokens")
    with TemporaryDirectory() as folder:
        table = pa.table({"tokens": pa.array(rows, pa.list_(pa.int32()))})
        pq.write_table(table, f"{folder}/x.parquet", row_group_size=group)
        job = Job.from_dict({
            "source": {"paths": [f"{folder}/x.parquet"]},
            "order": {"window": window},
            "batch": {**plan, **({"lengths": lengths} if lengths else {})},
            **({"prepare": {"net": prepare}} if prepare else {}),
        })  # fmt: skip
        found, batches = check(job), list(open_loader(job))
    most = {name: spec.byte_bound for name, spec in found.batch.items()}
    assert None not in most.values()
    for batch in batches:
        assert {name for name, tensor in batch.items() if tensor.nbytes > most[name]} == set()


def test_a_size_that_every_block_adds_to_is_counted_in_every_block(tmp_path):
    pq.write_table(pa.table({"tokens": [[1], [2, 3], []]}), tmp_path / "x.parquet", row_group_size=1)
    job = Job.from_dict({
        "source": {"paths": [str(tmp_path / "x.parquet")]}, "prepare": {"net": "o = lengths_to_offsets(tokens.lengths)\nreturn o"},
        "batch": {"n": 100},
    })  # fmt: skip
    (batch,) = open_loader(job)
    assert len(batch["o"]) == 6
    bounds = SourceBounds.of(open_loader(job))
    rows = Dimension.symbol("rows")
    assert [bounds.over_all_blocks(size) for size in (rows, rows + 1, Dimension(4), rows - rows)] == [
        3,
        6,
        12,
        0,
    ]
    assert bounds.over_all_blocks(Dimension.dynamic()) is None
    assert bounds.over_all_blocks(Dimension.sum_of("tokens.lengths")) == 4


def test_every_tensor_of_the_example_has_a_bound():
    found = str(check(Job.read(Path(__file__).parents[2] / "examples" / "pack_source.toml")))
    assert "≤ ?" not in found
    assert "≤" in found


def test_values_of_one_column_with_lengths_of_another_fail_before_reading(source):
    net = {"net": "y = lengths_sum(tokens.values, labels.lengths)\nreturn y"}
    with pytest.raises(LodError, match=r"tokens.lengths describes, but lengths is labels.lengths"):
        check(Job.from_dict({"source": source, "net": net}))
    net["net"] = "same_lengths(tokens.lengths, labels.lengths)\n" + net["net"]
    check(Job.from_dict({"source": source, "net": net}))


INTEGERS = pa.list_(pa.int32())
JOB = """
[source]
paths = "*.parquet"
[net]
net = "same_lengths(tokens.lengths, labels.lengths)\\nreturn tokens.values, tokens.lengths"
[batch]
n = 4
[output]
path = "out"
"""


@pytest.fixture
def folder(tmp_path):
    """A folder with job.toml, and good.parquet with columns that agree."""
    (tmp_path / "job.toml").write_text(JOB)
    write(tmp_path / "good.parquet", [[1, 2], [], [], [3]], [[5, 6], [], [], [7]])
    return tmp_path


def write(path, tokens, labels, kind=INTEGERS):
    table = pa.table({"tokens": pa.array(tokens, kind), "labels": pa.array(labels, kind)})
    pq.write_table(table, path, row_group_size=2)


def without_data(path):
    """Nothing but the footer of a file is left as it was."""
    content = bytearray(path.read_bytes())
    footer = int.from_bytes(content[-8:-4], "little") + 8
    content[4:-footer] = bytes(len(content) - footer - 4)
    path.write_bytes(content)


def test_a_job_whose_columns_agree_is_checked_without_reading_them(folder):
    without_data(folder / "good.parquet")
    done = seqflow("check", "job.toml", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert seqflow("run", "job.toml", folder=folder).returncode == 1


def test_where_only_the_lengths_of_rows_differ_the_run_names_file_and_row(folder):
    write(folder / "wrong.parquet", [[1], [2], [3, 4], [5]], [[1], [2], [3], [4, 5]])
    assert seqflow("check", "job.toml", folder=folder).returncode == 0
    done = seqflow("run", "job.toml", folder=folder)
    assert done.returncode == 1
    assert "lengths[2] is 2 but other[2] is 1" in done.stderr
    assert "\n  at wrong.parquet, block 1, row 0\n" in done.stderr
    assert not (folder / "out").exists()


def test_files_whose_column_types_disagree_fail_before_reading(folder):
    write(folder / "wide.parquet", [[1]], [[1]], kind=pa.list_(pa.float64()))
    without_data(folder / "wide.parquet")
    done = seqflow("check", "job.toml", folder=folder)
    assert done.returncode == 1
    for part in ("'tokens'", "good.parquet", "wide.parquet", "int32", "double", "schema={"):
        assert part in done.stderr


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ({"path": "out", "columns": ["idd"]}, "the batches have no column 'idd' (did you mean 'id'?)"),
        ({"path": "out.csv"}, "ends in '.csv', expected .parquet or .arrow, or a folder"),
        ({"path": "x.parquet/out"}, "is a file, expected a folder"),
        ({"path": "out.arrow", "compression": "gzip"}, "compression is 'gzip', Arrow files know"),
        ({"path": "out.arrow", "threads": 2}, "threads is 2, but one file is written by one thread"),
        (
            {"path": "out", "sort_by": "-idd"},
            "sort_by has 'idd', which is not a column of the output (did you mean 'id'?)",
        ),
        ({"path": "out", "sort_by": ["id", "tokens"]}, "sort_by has 'tokens', which is list<"),
        ({"path": "out", "partition_by": "tokens"}, "partition_by has 'tokens', which is list<"),
        ({"path": "out.parquet", "partition_by": "id"}, "partition_by makes folders, but the path"),
    ],
)
def test_what_a_run_could_not_write_is_refused(source, tmp_path, output, message):
    job = Job.from_dict({"source": source, "output": output}, tmp_path)
    for use in (check, run):
        with pytest.raises(JobError) as error:
            use(job)
        assert message in str(error.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"bad_files": {"policy": "skip"}, "output": {"path": "out", "rows_per_file": 5}},
            "rows_per_file cuts by rows of the source",
        ),
        ({"bad_files": {"policy": "skip", "max": 0}}, "1 files are damaged, and bad_files allows max=0"),
        (
            {"bad_rows": {"policy": "quarantine", "path": "other.parquet"}},
            "exists and is not a quarantine file of an earlier run",
        ),
        (
            {
                "skip": [[1, 2]],
                "engine": {"workers": 1},
                "batch": {"kind": "tokens", "max_tokens": 9, "lengths": "tokens.lengths"},
            },
            "skip: workers make parts by themselves",
        ),
        ({"net": {"net": "return tokens.values, id"}}, "they are not columns of one table"),
        ({"keep": "idd > 0"}, "nothing assigns 'idd'"),
        (
            {"order": {"shuffle": True, "window": 1}, "output": {"kind": "none"}},
            "block 0 has 40 B, but rows are shuffled in windows of 1 B",
        ),
    ],
)
def test_a_check_and_a_dry_run_refuse_what_a_run_refuses(source, tmp_path, changes, message):
    if "bad_files" in changes:
        (tmp_path / "in").mkdir()
        pq.write_table(pa.table({"id": [1], "tokens": [[1]]}), tmp_path / "in/a.parquet")
        (tmp_path / "in/b.parquet").write_bytes(b"no table")
        source = {"paths": "in"}
    (tmp_path / "other.parquet").write_bytes((tmp_path / "x.parquet").read_bytes())
    job = Job.from_dict({"source": source, "output": {"path": "out"}, **changes}, tmp_path)
    for use in (check, plan, run):
        with pytest.raises(SeqflowError) as error:
            use(job)
        assert message in str(error.value)
    assert not (tmp_path / "out").exists()


def test_a_folder_may_be_called_like_a_file_of_no_format(source, tmp_path):
    job = Job.from_dict({"source": source, "output": {"path": "out.v2/"}}, tmp_path)
    check(job)
    assert run(job).rows == 2
    assert (tmp_path / "out.v2").is_dir()


def test_a_check_writes_nothing(source, tmp_path):
    before = sorted(tmp_path.iterdir())
    check(Job.from_dict({"source": source, "output": {"path": "a/b/out", "columns": ["id"]}}, tmp_path))
    assert sorted(tmp_path.iterdir()) == before


TOKENIZE = "ids, n = tokenize(text.values, text.lengths, tokenizer='{}')\nreturn ids, n"


CONSTANT = TOKENIZE.replace("'{}'", "tok")


def write_tokenizer(path):
    words, lengths = np.frombuffer(b"low lower", np.uint8), np.array([3, 6])
    path.write_bytes(ops.train_tokenizer(words, lengths, vocabulary_size=258).tobytes())


@pytest.fixture
def texts(tmp_path):
    pq.write_table(pa.table({"text": ["low lower", ""]}), tmp_path / "texts.parquet")
    return {"paths": "texts.parquet"}


@pytest.mark.parametrize("section", ["prepare", "net"])
def test_a_tokenizer_that_is_not_there_is_an_error_at_its_place(texts, tmp_path, section):
    job = Job.from_dict({"source": texts, section: {"net": TOKENIZE.format("no.json")}}, tmp_path)
    with pytest.raises(NetError) as error:
        check(job)
    assert f"line 1, column 10: tokenize: tokenizer: there is no file '{tmp_path / 'no.json'}'" in str(
        error.value
    )


@pytest.mark.parametrize("content", [b"{}", b"\xff", b""])
def test_a_tokenizer_that_does_not_parse_is_refused_before_any_row_is_read(texts, tmp_path, content):
    (tmp_path / "tok.json").write_bytes(content)
    for net, constants in ((TOKENIZE.format("tok.json"), {}), (CONSTANT, {"tok": "tok.json"})):
        job = Job.from_dict({"source": texts, "prepare": {"net": net}, "constants": constants}, tmp_path)
        for command in (check, run):
            with pytest.raises(NetError, match=r"column 10: tokenize: tokenizer: .* not a tokenizer file: "):
                command(job)


def test_a_special_token_that_the_tokenizer_has_not_is_refused_too(texts, tmp_path):
    write_tokenizer(tmp_path / "tok.json")
    net = CONSTANT.replace("=tok", "=tok, end='<eos>'")
    job = Job.from_dict({"source": texts, "net": {"net": net}, "constants": {"tok": "tok.json"}}, tmp_path)
    with pytest.raises(
        NetError, match=r"tokenize: end is '<eos>', expected a special token of the tokenizer"
    ):
        check(job)


def test_a_constant_may_be_the_content_of_a_file(texts, tmp_path):
    write_tokenizer(tmp_path / "tok.json")
    tables = {"source": texts, "constants": {"tok": "tok.json"}, "output": {"path": "out.parquet"}}
    job = Job.from_dict({**tables, "prepare": {"net": CONSTANT}}, tmp_path)
    assert str(check(job).prepare.specs["ids"]).startswith("int32{")
    assert run(job).rows == 2
    assert pq.read_table(tmp_path / "out.parquet")["ids"].to_pylist() == [[257, 220, 257, 68, 81], []]


def test_a_path_in_a_net_is_relative_to_the_job(texts, tmp_path):
    write_tokenizer(tmp_path / "tokenizer.json")
    net = {"net": TOKENIZE.format("tokenizer.json")}
    job = Job.from_dict({"source": texts, "prepare": net, "output": {"path": "out.parquet"}}, tmp_path)
    check(job)
    assert run(job).rows == 2


def test_a_name_that_nobody_gives_is_an_error_of_the_check(source, tmp_path):
    (tmp_path / "job.toml").write_text(
        '[source]\npaths = "x.parquet"\n[net]\nnet = """\ny = id * 2\nreturn nope\n"""\n', encoding="utf-8"
    )
    done = seqflow("check", str(tmp_path / "job.toml"))
    assert done.returncode == 2
    assert "column 8: nothing assigns 'nope'" in done.stderr
    assert "  return nope\n" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_tensors_are_shown_before_an_output_of_another_job_is_refused(source, tmp_path):
    output = {"path": str(tmp_path / "out")}
    run(Job.from_dict({"source": source, "output": output}))
    shown = []
    with pytest.raises(JobError, match="is of another job"):
        check(Job.from_dict({"source": source, "batch": {"n": 3}, "output": output}), show=shown.append)
    assert [str(found.batch["id"]) for found in shown] == ["int64{batch:0..3}"]


OF_OTHER_ROWS = {
    "u = unique(x % 2)\nreturn u.unique, x": "new rows",
    "m = boolean_mask(x, x >= 0)\nreturn m.rows, x": "a selection of the rows",
    "y = gather(x, clip(x, 0, 0))\nz = unique(x)\nreturn y, z.counts": "new rows",
    "y = concat([x, x], axis=0)\nreturn y, x": "and then",
    "y = c * 1\nreturn y, x": "a plain size",
    "return c, x": "a plain size",
    "n = lengths_to_shape(x)\nreturn n, x": "",
    "return tokens.values, x": "the rows that tokens.lengths describes",
}
OF_THE_SAME_ROWS = [
    "u = unique(x % 2)\nreturn u.unique, u.counts",
    "u = unique(x % 2)\nreturn u.inverse, x",
    "m = boolean_mask(x, x >= 0)\nn = boolean_mask(x * 2, x >= 0)\nreturn m.rows, n.rows",
    "y = gather(c, clip(x, 0, 1))\nreturn y, x",
    "y = lengths_sum(tokens.values, tokens.lengths)\nreturn y, x, tokens.values, tokens.lengths",
    "return tokens.values",
]


@pytest.fixture
def columns(tmp_path):
    """A job whose batches have two rows, as the constant has: all mix-ups have the right sizes."""
    table = pa.table({"x": range(4), "tokens": [[0], [1], [2], [3]]})
    pq.write_table(table, tmp_path / "x.parquet")
    np.save(tmp_path / "c.npy", np.arange(2))

    def make(section, text):
        sections = {"net": {}, "prepare": {}, section: {"net": text}}
        return Job.from_dict(
            {
                "source": {"paths": "x.parquet"},
                "batch": {"kind": "rows", "n": 2},
                "constants": {"c": "c.npy"} if re.search(r"\bc\b", text) else {},
                "output": {"path": "out"},
                **sections,
            },
            tmp_path,
        )

    return make


@pytest.mark.parametrize("section", ["net", "prepare"])
@pytest.mark.parametrize("text", OF_OTHER_ROWS)
def test_columns_that_hold_other_rows_than_each_other_are_refused(columns, section, text):
    for refuse in (check, run):
        with pytest.raises(
            NetError, match=rf"\[{section}\].*{OF_OTHER_ROWS[text]}.*not columns of one table"
        ):
            refuse(columns(section, text))


@pytest.mark.parametrize("text", OF_THE_SAME_ROWS)
def test_columns_of_the_same_rows_are_one_table(columns, text):
    job = columns("net", text)
    check(job)
    assert run(job).batches == 2


def test_what_is_not_written_needs_no_table(columns):
    job = columns("net", "u = unique(x % 2)\nreturn u.unique, x")
    assert run(replace(job, output=replace(job.output, kind="none"))).batches == 2
