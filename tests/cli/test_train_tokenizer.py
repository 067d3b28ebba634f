"""`seqflow train-tokenizer`."""

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow

from seqflow import ops

pytest.importorskip("tokenizers")

TEXTS = ["low lower lowest", "new newer", "ébé", "", "low low"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the same texts in files and in a Parquet file with row groups of two rows."""
    (tmp_path / "texts").mkdir()
    for i, text in enumerate(TEXTS):
        (tmp_path / "texts" / f"{i}.txt").write_text(text, encoding="utf-8")
    turns = [[{"role": "user", "content": text}] for text in TEXTS]
    table = pa.table({"text": TEXTS, "id": range(len(TEXTS)), "chat": turns})
    pq.write_table(table, tmp_path / "texts.parquet", row_group_size=2)
    return tmp_path


def train(folder: Path, *arguments: object) -> tuple[int, str]:
    """The exit code and what was said, of a command that writes tok.json."""
    done = seqflow("train-tokenizer", *arguments, "--output", "tok.json", "--overwrite", folder=folder)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout + done.stderr


def test_files_and_columns_give_the_tokenizer_of_their_text(folder: Path) -> None:
    data = "".join(TEXTS).encode()
    lengths = np.array([len(text.encode()) for text in TEXTS])
    names = ["<s>", "</s>"]
    expected = ops.train_tokenizer(
        np.frombuffer(data, np.uint8), lengths, vocabulary_size=265, special_tokens=names
    ).tobytes()
    options = ("--vocab-size", 265, "--special", "<s>", "--special", "</s>")
    for source in (["texts"], ["texts.parquet", "--column", "text"],
                   ["texts.parquet", "--column", "chat.values.content"]):  # fmt: skip
        assert train(folder, *source, *options, "--quiet") == (0, "")
        assert (folder / "tok.json").read_bytes() == expected
    assert {path.name for path in folder.iterdir()} == {"texts", "texts.parquet", "tok.json"}


def test_it_reports_what_it_read(folder: Path) -> None:
    code, said = train(folder, "texts", "--vocab-size", 260)
    assert code == 0
    assert dict(line.split(maxsplit=1) for line in said.splitlines()).keys() == {
        "texts", "bytes", "vocabulary", "seconds", "output",
    }  # fmt: skip
    report = json.loads(train(folder, "texts", "--vocab-size", 260, "--json")[1])
    assert (report["texts"], report["bytes"], report["vocabulary"]) == (5, 37, 260)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["texts"], 2, "--vocab-size"),
        (["texts", "--vocab-size", "255"], 2, "256"),
        (["texts", "--vocab-size", "256", "--special", "<s>"], 2,
         "--vocab-size is 256, expected 257 or more: 256 bytes and 1 special tokens"),
        (["texts", "--vocab-size", "300", "--special", ""], 2, "--special is empty, expected the name of a token"),
        (["text", "--vocab-size", "300"], 2, "text does not exist (did you mean 'texts'?)"),
        (["texts.parquet", "--vocab-size", "300"], 2,
         "--column: there is not just one column of text\n  there are text, chat.values.role, chat.values.content"),
        (["texts.parquet", "--vocab-size", "300", "--column", "tex"], 2,
         "--column: 'tex' is not a column of text (did you mean 'text'?)"),
        (["texts.parquet", "--vocab-size", "300", "--column", "id"], 2, "--column: 'id' is not a column of text"),
        (["texts", "--vocab-size", "300", "--output", "no/tok.json"], 2,
         "--output: 'no/tok.json' lies in no folder that exists, expected the name of a file"),
        (["texts", "--vocab-size", "300", "--output", "texts"], 2, "--output: 'texts' is a folder"),
        (["texts", "--vocab-size", "300", "--output", "texts/0.txt"], 2,
         "--output: 'texts/0.txt' is or holds 'texts/0.txt', a file that is read"),
        (["bad.txt", "--vocab-size", "300"], 1, "bad.txt: not utf-8 at byte 3 (0xff)"),
        (["bad.parquet", "--vocab-size", "300"], 1,
         "bad.parquet, block 0: text 1 of x is not UTF-8: byte 0 is 0xff"),
        (["cut.parquet", "--vocab-size", "300", "--column", "text"], 1, "cut.parquet"),
    ],
)  # fmt: skip
def test_mistakes_are_told_and_leave_nothing(
    folder: Path, arguments: list[str], code: int, message: str
) -> None:
    (folder / "bad.txt").write_bytes(b"low\xff")
    pq.write_table(pa.table({"x": [b"low", b"\xff"]}), folder / "bad.parquet")
    (folder / "cut.parquet").write_bytes((folder / "texts.parquet").read_bytes()[:-9])
    before = sorted(folder.rglob("*"))
    output = [] if "--output" in arguments else ["--output", "tok.json"]
    done = seqflow("train-tokenizer", *arguments, *output, folder=folder)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted(folder.rglob("*")) == before


def test_bytes_that_are_not_utf8_may_be_replaced(folder: Path) -> None:
    (folder / "texts" / "bad.txt").write_bytes(b"low\xff")
    assert train(folder, "texts", "--vocab-size", 300, "--errors", "replace", "--quiet") == (0, "")


def test_columns_that_are_not_read_may_be_of_any_type(tmp_path: Path) -> None:
    table = {"text": ["ab ab ab", "cd"], "d": pa.array([Decimal("1.5")] * 2), "e": pa.nulls(2)}
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    learn = ("train-tokenizer", "t.parquet", "--vocab-size", "260", "--output", "t.json", "--overwrite")
    for column in ((), ("--column", "text")):
        assert seqflow(*learn, *column, folder=tmp_path).returncode == 0
    assert "there are text" in seqflow(*learn, "--column", "d", folder=tmp_path).stderr
    assert seqflow("build-vocabulary", "t.parquet", "text", "v.arrow", folder=tmp_path).returncode == 0


@pytest.mark.slow
def test_a_row_of_equal_letters_is_learned_and_the_cut_is_said(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["a" * 3_000_000]}), tmp_path / "x.parquet")
    code, said = train(tmp_path, "x.parquet", "--vocab-size", 300)
    assert code == 0
    assert f"seqflow: words are cut after 1,000 characters; one begins with '{'a' * 20}'\n" in said


@pytest.mark.slow
def test_without_a_terminal_progress_is_a_line_of_a_log(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    letters = rng.integers(ord("a"), ord("z") + 1, 100_000).astype(np.uint8).tobytes().decode()
    (tmp_path / "x.txt").write_text(letters)
    program = (
        "import sys, seqflow.cli.progress_line as lines, seqflow.cli\n"
        "lines.SECONDS_BETWEEN_LINES = 0.02\n"
        "sys.argv = ['seqflow', 'train-tokenizer', 'x.txt', '--vocab-size', '2000', '--output', 'y.json', *sys.argv[1:]]\n"
        "seqflow.cli.main()\n"
    )
    for quiet in ((), ("--quiet", "--overwrite")):
        done = subprocess.run(
            [sys.executable, "-c", program, *quiet], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert ("seqflow: all texts are read, learning pairs  0:0" in done.stderr) == (not quiet)
