"""How tests are written: no test module imports another, and none reaches for a private name."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FILES = sorted(TESTS.rglob("*.py"))
PRIVATE = re.compile(r"(?:^|\.)(_(?!_)\w*[a-zA-Z]\w*)")
PATCHING = {"setattr", "getattr", "delattr", "hasattr", "patch", "object"}
PUBLIC = {"_asdict", "_exit", "_replace", "_repr_html_"}
"""Names that Python and IPython publish with an underscore."""
ALLOWED = {
    "shared/torch_calls.py": {"_dynamo", "_efficientzerotensor"},
    "identity/test_content.py": {"_LARGE", "_PIECE", "_SETTLED"},
    "job/test_appending.py": {"_LISTED_FILES"},
    "job/test_identity.py": {"_LARGE", "_SETTLED"},
    "loader/test_living_mix.py": {"_run"},
    "ops/test_tokenizing.py": {"_BYTES_AT_ONCE"},
    "serving/test_service.py": {"_batches", "_bytes", "_lanes", "_run"},
}
"""Limits of time and memory, lowered because no test can have files as large or wait as long; and what is read ahead, which
is known inside alone."""


@cache
def parse(file):
    return ast.parse(file.read_text(encoding="utf-8"))


def modules_of(tree):
    """What a file imports, by full name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module or ''}.{alias.name}" for alias in node.names)


def private_names(tree):
    """Private names of others: imported, read as attributes, or patched by their name in a string."""
    for name in modules_of(tree):
        yield from PRIVATE.findall(name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and PRIVATE.match(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                yield node.attr
        elif isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in PATCHING:
            texts = [one.value for one in node.args if isinstance(one, ast.Constant)]
            yield from (name for text in texts if isinstance(text, str) for name in PRIVATE.findall(text))


@pytest.mark.slow
def test_no_test_module_is_imported():
    imported = {(file.name, name) for file in FILES for name in modules_of(parse(file))}
    assert {pair for pair in imported if re.search(r"(^|\.)test_\w+(\.|$)", pair[1])} == set()


@pytest.mark.slow
def test_private_names_are_left_alone():
    found = {str(file.relative_to(TESTS)): set(private_names(parse(file))) - PUBLIC for file in FILES}
    assert {file: names for file, names in found.items() if names} == ALLOWED


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("from seqflow.net import _parse", ["_parse"]),
        ("from seqflow._net import parse as p", ["_net"]),
        ("import seqflow._net", ["_net"]),
        ("loader._parts()", ["_parts"]),
        ("self._parts", []),
        ("Loader.__init__", []),
        ("patch.setattr('seqflow.net._parse', None)", ["_parse"]),
        ("patch.setattr(net, '_parse', None)", ["_parse"]),
        ("a, _ = b", []),
    ],
)
def test_no_way_to_a_private_name_is_overlooked(text, names):
    assert list(private_names(ast.parse(text))) == names


COLLECTING = """
import sys
import pytest
for markers in ("", "not slow", "slow"):
    print("markers", flush=True)
    pytest.main(["--collect-only", "-m", markers, sys.argv[1]])
"""


def collected():
    """The tests of a folder that has many cases and hypothesis tests, as pytest selects them: all, the quick, the slow."""
    command = [sys.executable, "-c", COLLECTING, str(TESTS / "loader" / "order")]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=TESTS.parent)
    _, *runs = done.stdout.split("markers\n")
    return [{line for line in run.splitlines() if "::" in line} for run in runs]


@pytest.mark.slow
def test_each_test_is_quick_or_slow():
    every, quick, slow = collected()
    assert quick | slow == every
    assert not quick & slow
    assert len(slow) > len(quick) // 4
