"""Help: one screen of what one wants first, examples that run, colours where they are wanted, completion."""

import re
import shlex

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import in_terminal, seqflow

from seqflow.cli import app

COMMANDS = [
    "inspect", "report", "init", "check", "run", "serve", "bench", "index", "trace", "find", "ledger", "train-tokenizer",
    "build-vocabulary", "ops", "info",
]  # fmt: skip
JOB = """
[source]
paths = "ROWS"
columns = ["tokens"]
[batch]
kind = "packed"
capacity = 4
rows = 1
[output]
path = "out"
"""


@pytest.fixture
def folder(tmp_path):
    """A folder in which all examples can be typed."""
    folder = tmp_path
    for name in ("docs", "examples", "poems", "rows"):
        (folder / name).mkdir()
    for name in ("a", "b"):
        rows = {
            "tokens": [[1, 2, 3, 4, 5], [1], [7, 8, 9]],
            "text": ["one", "two", "three"],
            "tags": [["x"], [], ["y"]],
        }
        pq.write_table(pa.table(rows), folder / "rows" / f"{name}.parquet")
    pq.write_table(pa.table({"file": ["rows/a.parquet"], "row": [1]}), folder / "rows.parquet")
    (folder / "docs" / "one.md").write_text("a text")
    (folder / "poems" / "one.poem").write_text("a poem")
    (folder / "job.toml").write_text(JOB.replace("ROWS", "rows"))
    (folder / "examples" / "pack_source.toml").write_text(JOB.replace("ROWS", "../rows"))
    return folder


def examples(command):
    """The lines after the heading that are no purposes."""
    return re.findall(
        r"^  (seqflow .*)", seqflow(command, "--help").stdout.partition("Examples:\n")[2], re.MULTILINE
    )


def test_alone_it_shows_what_one_wants_first_on_one_screen():
    done = seqflow()
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout == seqflow("--help").stdout
    lines = done.stdout.splitlines()
    assert len(lines) < 27
    assert max(map(len, lines)) <= 80
    first, commands = done.stdout.split("Commands:\n")
    for example in (
        "seqflow inspect",
        "seqflow init",
        "seqflow run",
        "seqflow check",
        "seqflow ops --search",
    ):
        assert example in first
    assert re.findall(r"^  (\S+)", commands, re.MULTILINE) == COMMANDS


def test_each_command_says_what_it_does_in_one_sentence():
    for command in app.registered_commands:
        first = command.callback.__doc__.splitlines()[0]
        assert first.endswith(".")
        assert len(first) <= 60


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_is_a_screen(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    lines = seqflow(command, "--help").stdout.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 105


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [one for one in COMMANDS if one != "serve"]
)  # it serves until it is stopped
def test_the_examples_of_a_command_run_one_after_another(folder, command):
    assert len(examples(command)) > 1
    if command == "init":
        (folder / "job.toml").unlink()
    if command == "trace":
        assert seqflow("run", "job.toml", folder=folder).returncode == 0
    assert any(
        file in examples(command)[0] for file in ("docs/*.md", "examples/pack_source.toml", "ops", "info")
    )
    for example in examples(command):
        _, *arguments = shlex.split(example)
        assert arguments[0] == command
        done = seqflow(*arguments, folder=folder)
        assert done.returncode == 0, (example, done.stderr)


@pytest.mark.parametrize("arguments", [(), ("--help",), ("run", "--help")])
def test_headings_are_bold_on_a_terminal(arguments):
    assert "\x1b[1mUsage:\x1b[0m" in in_terminal(*arguments)[1]


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize(
    "variable", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}]
)
@pytest.mark.parametrize(
    "arguments", [(), ("run", "--help"), ("run", "nowhere.toml"), ("ops", "pad"), ("bogus",)]
)
def test_no_escape_codes_are_written_where_they_are_not_wanted(variable, arguments):
    text = in_terminal(*arguments, **variable)[1]
    assert text
    assert "\x1b" not in text


def test_no_escape_codes_are_written_where_nobody_watches():
    assert "\x1b" not in seqflow().stdout
    assert "\x1b[1mUsage:" in seqflow(FORCE_COLOR="1").stdout


def complete(shell, line):
    """What a shell is told that may come next, by the protocol of its completion script."""
    words = line.split(" ")
    variables = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_ARGS": line}
    done = seqflow(_SEQFLOW_COMPLETE=f"complete_{shell}", _TYPER_COMPLETE_FISH_ACTION="get-args", **variables)
    return re.findall(r"[\w.]+=?", done.stdout)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("seqflow tra", "trace"),
        ("seqflow run x --engine r", "ray"),
    ],
)
def test_a_shell_completes_commands_and_choices(shell, line, found):
    assert found in complete(shell, line)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(shell):
    script = seqflow(_SEQFLOW_COMPLETE=f"source_{shell}").stdout
    assert f"complete_{shell}" in script


def test_completion_is_installed_for_the_shell_that_asks(tmp_path):
    done = seqflow(
        "--install-completion", "bash", HOME=str(tmp_path), _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1"
    )
    assert done.returncode == 0, done.stderr
    installed = [path.read_text() for path in tmp_path.rglob("*") if path.is_file()]
    assert any("complete_bash" in text for text in installed)
