"""Each block of code in README.md and in docs/ is run by a test, or shows what something prints."""

import ast
import builtins
import doctest
import re
import shlex
import tomllib
from functools import cache

import pytest
import typer
from pages import DOCS, ROOT, blocks_of

from seqflow.cli import app
from seqflow.job import Job

PAGES = ["README.md", *(path.relative_to(ROOT).as_posix() for path in DOCS)]
BLOCKS = [block for page in PAGES for block in blocks_of(page)]
TOML = [block for block in BLOCKS if block.language == "toml"]
COMMANDS = [
    (block, line)
    for block in BLOCKS
    if block.language == "sh"
    for joined in block.text.replace("\\\n", " ").splitlines()
    for line in joined.split(" && ")
]
COMMAND = typer.main.get_command(app)
SUBCOMMANDS = COMMAND.commands
KNOWN = {"torchrun", "pytest", "pip"}
"""Commands of others. Where pages start them, tests do, too: `.ci/run` installs and tests as README says."""


def name_of(value):
    return f"{value.page}:{value.line}" if hasattr(value, "page") else str(value)[:40]


@cache
def blocks_that_tests_ask_for():
    """Pages and beginnings, as the calls of `code_of` and `codes_of` in the tests have them."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    return {
        tuple(argument.value for argument in node.args)
        for text in texts
        if "code_of(" in text or "codes_of(" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("code_of", "codes_of")
        and all(isinstance(argument, ast.Constant) for argument in node.args)
    }


def is_run(block):
    """Whether it is a doctest, is held by a test below, or is asked for by a test."""
    if (
        block.language in ("", "text", "toml", "sh") or block.page == "README.md"
    ):  # tests/pages/test_readme.py
        return True
    is_doctest = ">>> " in block.text and block.page.startswith("docs/")
    return is_doctest or any(
        block.page == page and block.text.startswith(tuple(beginning) or "")
        for page, *beginning in blocks_that_tests_ask_for()
    )


def test_each_block_is_run_or_shows_what_is_printed():
    assert [f"{block.page}:{block.line}" for block in BLOCKS if not is_run(block)] == []


def names_of(block):
    """The names that a block of Python binds anywhere, and those that it reads."""
    code = doctest.script_from_examples(block.text) if ">>> " in block.text else block.text
    bound, read = set(), set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Name():
                (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
            case ast.alias():
                bound.add((node.asname or node.name).partition(".")[0])
            case ast.FunctionDef() | ast.ClassDef():
                bound.add(node.name)
            case ast.arg():
                bound.add(node.arg)
    return bound, read


def unknown_names(page):
    """The names that blocks of Python on a page read before the page has bound them."""
    known = {*dir(builtins), "__file__"}
    for block in blocks_of(page):
        if block.language == "python":
            bound, read = names_of(block)
            known |= bound
            if ">>> " not in block.text:  # a doctest is run as it stands
                yield from (f"{page}:{block.line}: {name}" for name in sorted(read - known))


def test_each_name_of_a_block_is_defined_on_its_page():
    """A test that runs a block may give it names; a reader has the page only."""
    assert [name for page in PAGES for name in unknown_names(page)] == []


def test_no_block_without_a_language_is_code():
    """Doctests and output are told apart by their language, so no code hides among what is printed."""
    hidden = [block for block in BLOCKS if block.language in ("", "text") and is_code(block.text)]
    assert [f"{block.page}:{block.line}" for block in hidden] == []


def is_code(text):
    return text.startswith(("import ", "from ", "sf.", "ops.", ">>> ", "seqflow ", "pip ", "[source]"))


@pytest.mark.parametrize("block", TOML, ids=name_of)
def test_each_block_of_toml_is_of_a_job(block, tmp_path):
    tables = tomllib.loads(block.text)
    for one in blocks_of(block.page):
        if (name := one.text.partition("\n")[0].removeprefix("# ")).endswith(".py"):
            (tmp_path / name).write_text(one.text)
    for name in re.findall(r'"(\w+_source):', block.text):
        (tmp_path / f"{name}.py").write_text((ROOT / "examples" / f"{name}.py").read_text())
    for name in re.findall(r'"(\w+\.arrow)"', block.text):
        (tmp_path / name).touch()  # a vocabulary
    Job.from_dict(tables, tmp_path)


@pytest.mark.parametrize(("block", "line"), COMMANDS, ids=name_of)
def test_each_command_exists_and_takes_its_arguments(block, line):
    words = shlex.split(line, comments=True)
    match words:
        case ["seqflow", option] if option.startswith("--"):
            assert option in {name for parameter in COMMAND.params for name in parameter.opts}
        case ["seqflow", name, *arguments]:
            SUBCOMMANDS[name].make_context(name, arguments)
        case ["python", "-c", code]:
            compile(code, name_of(block), "exec")
        case ["python", script, *_]:
            assert (ROOT / script).exists()
        case [name, *_]:
            assert name in KNOWN


def test_the_commands_that_seqflow_lacks_are_refused():
    assert "runs" not in SUBCOMMANDS
    with pytest.raises(Exception, match="No such option: --resum"):
        SUBCOMMANDS["run"].make_context("run", ["job.toml", "--resum"])
