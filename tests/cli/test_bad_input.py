"""What people get wrong, and what the command tells them: one clean message and the right exit code."""

import ctypes
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow

BAD_DATA, BAD_USAGE = 1, 2


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    table = pa.table(
        {
            "tokens": pa.array([[1, 2, 3], [], [4]], pa.list_(pa.int32())),
            "weights": pa.array([[0.5, 0.5, 0.5], [], [1.0]], pa.list_(pa.float32())),
            "ids": pa.array([[0, 1], [9], []], pa.list_(pa.int64())),
            "sizes": pa.array([3, -1, 2], pa.int64()),
            "text": ["a", "b", "c"],
        }
    )
    pq.write_table(table, tmp_path / "docs.parquet")
    pq.write_table(
        pa.table({"x": pa.array([[1, 2], [None]], pa.list_(pa.int32()))}), tmp_path / "holes.parquet"
    )
    whole = (tmp_path / "docs.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    damaged = bytearray(whole)
    damaged[4:200] = bytes(196)
    (tmp_path / "damaged.parquet").write_bytes(damaged)
    (tmp_path / "latin.txt").write_bytes("naïve".encode("latin-1"))
    (tmp_path / "text.txt").write_text("plain")
    np.save(tmp_path / "table.npy", np.zeros((5, 2)))
    return tmp_path


SOURCE = '[source]\npaths = "docs.parquet"\n'
OUTPUT = '[output]\npath = "out"\n'

CASES = {
    "a missing path": (
        '[source]\npaths = "dosc.parquet"\n' + OUTPUT, BAD_USAGE,
        "dosc.parquet does not exist (did you mean 'docs.parquet'?)",
    ),
    "a glob that matches nothing": (
        '[source]\npaths = "*.arrow"\n' + OUTPUT, BAD_USAGE, "no files in '*.arrow'",
    ),
    "an unknown column": (
        SOURCE + 'columns = ["token"]\n' + OUTPUT, BAD_USAGE, "(did you mean 'tokens'?)",
    ),
    "an unknown column to write": (
        SOURCE + OUTPUT + 'columns = ["token"]\n', BAD_USAGE,
        "output: the batches have no column 'token' (did you mean 'tokens'?)",
    ),
    "a misspelt key": (
        SOURCE + "[batch]\nnn = 3\n", BAD_USAGE, "job.toml, line 4: unknown key 'nn' in [batch] with kind = \"rows\"",
    ),
    "TOML that is none": (SOURCE + "[batch\n", BAD_USAGE, "job.toml: not TOML: "),
    "nowhere to write": (SOURCE, BAD_USAGE, "output: there is no path to write to"),
    "an unknown op": (
        SOURCE + '[net]\nnet = "x = lengths_sun(tokens.values, tokens.lengths)"\n' + OUTPUT, BAD_USAGE,
        "no op is named 'lengths_sun' (did you mean 'lengths_sum'?)",
    ),
    "an unknown tensor in a net": (
        SOURCE + '[net]\nnet = "x = lengths_sum(token.values, tokens.lengths)"\n' + OUTPUT, BAD_USAGE,
        "nothing assigns 'token.values'",
    ),
    "lengths that do not add up": (
        SOURCE + '[net]\nnet = "x = lengths_sum(tokens.values, ids.lengths)\\nreturn x"\n' + OUTPUT, BAD_DATA,
        "lengths_sum: data holds the rows that tokens.lengths describes, but lengths is ids.lengths",
    ),
    "lengths that were said to be the same": (
        SOURCE + '[net]\nnet = "same_lengths(tokens.lengths, ids.lengths)\\nx = lengths_sum(tokens.values, ids.lengths)\\nreturn x"\n'
        + OUTPUT, BAD_DATA,
        "same_lengths: ",
    ),
    "negative lengths": (
        SOURCE + '[net]\nnet = "x = expand(sizes, sizes)\\nreturn x"\n' + OUTPUT, BAD_DATA,
        "expand: lengths[1] = -1 is negative",
    ),
    "an index out of range": (
        SOURCE + '[constants]\ntable = "table.npy"\n'
        '[net]\nnet = "x = sparse_lengths_sum(table, ids.values, ids.lengths)\\nreturn x"\n' + OUTPUT, BAD_DATA,
        "sparse_lengths_sum: indices[2] = 9 is outside [0, 5)",
    ),
    "values of a type the op does not take": (
        SOURCE + '[constants]\ntable = "table.npy"\n'
        '[net]\nnet = "x = gather(table, weights.values)\\nreturn x"\n' + OUTPUT, BAD_DATA, "gather: ",
    ),
    "a null value": ('[source]\npaths = "holes.parquet"\n' + OUTPUT, BAD_DATA, "row 1, column 'x"),
    "a truncated Parquet file": ('[source]\npaths = "cut.parquet"\n' + OUTPUT, BAD_DATA, "cut.parquet"),
    "a damaged Parquet file": ('[source]\npaths = "damaged.parquet"\n' + OUTPUT, BAD_DATA, "damaged.parquet"),
    "a file that is not UTF-8 text": (
        '[source]\npaths = "*.txt"\n[source.text]\nencoding = "utf-8"\n' + OUTPUT, BAD_DATA, "latin.txt: not utf-8 at byte 2",
    ),
    "a folder of other files to write to": (
        SOURCE + '[output]\npath = "."\n', BAD_USAGE, "is or holds",
    ),
    "lengths that are not there": (
        SOURCE + '[batch]\nn = 2\nlengths = "token.lengths"\n' + OUTPUT, BAD_USAGE,
        "lengths = 'token.lengths' are not the lengths of a list column of numbers",
    ),
    "a budget of no column in particular": (
        SOURCE + '[batch]\nkind = "tokens"\nmax_tokens = 3\n' + OUTPUT, BAD_USAGE,
        "TokenBudget: there is not just one list column of numbers; name its lengths with lengths=",
    ),
    "an option of another kind of source": (
        SOURCE + '[source.text]\nencoding = "utf-8"\n' + OUTPUT, BAD_USAGE, "format is Text, and",
    ),
    "an encoding that is not there": (
        '[source]\npaths = "text.txt"\n[source.text]\nencoding = "utf-9"\n' + OUTPUT, BAD_USAGE, "encoding='utf-9': unknown",
    ),
    "files of two kinds": (
        '[source]\npaths = ["text.txt", "docs.parquet"]\n' + OUTPUT, BAD_USAGE, "read one kind at a time",
    ),
    "a module that is not there": ('imports = ["my_ops"]\n' + SOURCE + OUTPUT, BAD_USAGE, "no module 'my_ops'"),
}  # fmt: skip


@pytest.mark.parametrize(("job", "code", "message"), CASES.values(), ids=CASES.keys())
def test_bad_input_ends_in_one_clean_message_and_leaves_nothing(
    folder: Path, job: str, code: int, message: str
) -> None:
    (folder / "job.toml").write_text(job)
    done = seqflow("run", "job.toml", folder=folder)
    assert message in done.stderr
    assert done.returncode == code
    assert done.stderr.startswith("seqflow: ")
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert not (folder / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "Missing argument 'JOB'"),
        (["run", "nowhere.toml"], "there is no job file 'nowhere.toml'"),
        (["run", "job.toml", "--set", "batch.nn=3"], "--set batch.nn: unknown key 'nn'"),
        (["run", "job.toml", "--set", "batch"], "--set batch: expected KEY=VALUE"),
        (["run", "job.toml", "--sett", "x=1"], "No such option"),
        (["run", "job.toml", "--input", "nowhere"], "nowhere does not exist"),
        (["inspect", "docs.parquet", "--kind", "parket"], "kind is 'parket' (did you mean 'parquet'?)"),
        (
            ["check", "job.toml", "--set", "batch.n=2", "--set", "batch.lengths=x"],
            "lengths = 'x' are not the lengths",
        ),
        (["inspect", "nowhere.parquet"], "nowhere.parquet does not exist"),
        (["ops", "padd"], "no op is named 'padd' (did you mean 'pad'?)"),
        (["rum"], "No such command 'rum'"),
    ],
)
def test_bad_usage_ends_with_2(folder: Path, arguments: list[str], message: str) -> None:
    (folder / "job.toml").write_text(SOURCE + OUTPUT)
    done = seqflow(*arguments, folder=folder)
    assert message in done.stderr
    assert done.returncode == BAD_USAGE
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_full_disk_ends_with_1_and_leaves_nothing(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 2**62, 2_000_000)
    pq.write_table(pa.table({"x": noise}), tmp_path / "a.parquet", use_dictionary=False)
    (tmp_path / "job.toml").write_text('[source]\npaths = "a.parquet"\n' + OUTPUT)

    def small_files_only() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))

    done = subprocess.run(
        [sys.executable, "-m", "seqflow", "run", "job.toml"], cwd=tmp_path, capture_output=True, text=True,
        preexec_fn=small_files_only, check=False,
    )  # fmt: skip
    assert done.returncode == BAD_DATA
    assert done.stderr.startswith("seqflow: cannot write 'out/part-00000.parquet': ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


def run_as_anyone(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the job without the right of root to read and write what it likes."""
    libc = ctypes.CDLL(None)

    def drop_rights() -> None:
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            libc.prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP

    return subprocess.run(
        [sys.executable, "-m", "seqflow", "run", "job.toml"], cwd=folder, capture_output=True, text=True,
        preexec_fn=drop_rights, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_a_folder_that_may_not_be_written_ends_with_2(folder: Path) -> None:
    (folder / "job.toml").write_text(SOURCE + '[output]\npath = "closed/out"\n')
    (folder / "closed").mkdir(mode=0o500)
    done = run_as_anyone(folder)
    assert done.returncode == BAD_USAGE
    assert done.stderr.endswith("closed' cannot be written to: permission denied\n")


@pytest.mark.slow
@pytest.mark.parametrize("paths", ["days", "days/**/*.parquet", "days/*/*.parquet"])
def test_a_folder_that_may_not_be_listed_is_not_left_out_unseen(tmp_path: Path, paths: str) -> None:
    for day in ("day=1", "day=2"):
        (tmp_path / "days" / day).mkdir(parents=True)
        pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "days" / day / "a.parquet")
    (tmp_path / "job.toml").write_text(f'[source]\npaths = "{paths}"\n' + OUTPUT)
    (tmp_path / "days" / "day=2").chmod(0)
    done = run_as_anyone(tmp_path)
    (tmp_path / "days" / "day=2").chmod(0o700)
    assert done.returncode == BAD_DATA
    assert done.stderr.startswith("seqflow: the folder days/day=2 cannot be listed: permission denied\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_file_that_may_not_be_read_is_not_called_damaged(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "a.parquet")
    (tmp_path / "a.parquet").chmod(0)
    (tmp_path / "job.toml").write_text('[source]\npaths = "a.parquet"\n' + OUTPUT)
    done = run_as_anyone(tmp_path)
    assert (done.returncode, done.stderr) == (
        BAD_DATA,
        "seqflow: a.parquet cannot be read: permission denied\n",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve"], ["bench"], ["ledger"], ["trace", "--batch", "0"], ["find", "--file", "cut.parquet", "--row", "0"],
        ["index", "--output", "lengths.arrow"], ["run"], ["check"],
    ],
    ids=lambda arguments: arguments[0],
)  # fmt: skip
def test_advice_for_a_job_is_a_setting_of_it(folder: Path, arguments: list[str]) -> None:
    content = (folder / "docs.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(content[: len(content) // 2])
    (folder / "job.toml").write_text('[source]\npaths = "cut.parquet"\n[batch]\nn = 4\n' + OUTPUT)
    name, *options = arguments
    done = seqflow(name, "job.toml", *options, folder=folder)
    assert '[bad_files] policy = "skip" leaves out damaged files' in done.stderr
    assert "--bad-files" not in done.stderr
