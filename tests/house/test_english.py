"""Plain English: how docstrings begin, and words and turns that a newcomer has to read twice.

The rules are those of the section "Write" in CONTRIBUTING.md. A room is a folder of code, the files that lie in none,
or a page.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path

import pytest
from pages import DOCS, ROOT

BEGINNINGS = re.compile(
    r"(What|Whatever|Who|Whoever|Whose|Those|One that|That of|How many|How much|How often|How long)\b"
    r"|Whether .*\bor nobody\b",
    re.DOTALL,
)
"""Beginnings of docstrings that name nothing: write a verb, a noun phrase, or "Number of"."""

BE = r"(?:is|are|was|were|be)"
TURNS = {
    "after, before (for order)": r"\bbehind\b",
    "next to, and": r"\bbeside\b",
    "again": r"(?<!--|.`)\banew\b",
    "no one, or the passive": r"\bnobody\b",
    "most expensive": r"\bdearest\b",
    "expand_trailing": r"\bhollow\b",
    "differ, have changed": rf"\b{BE} (?:others|another one)\b",
    "omit": r"\b(?:leave|leaves|leaving|left) (?:\S+ ){0,3}away\b",
    "no inversion (nor)": rf"\bnor (?:{BE}|does|do|has|have|can|did|will|may)\b",
    "no inversion (so)": rf"\bso (?:{BE}|does|do|has|have|can|did|will) (?!not\b|that\b)",
    "except": r"\bbut for\b",
    "a noun, for what … comes to": r"\bwhat (?:[\w`]+ ){0,6}comes? (?:to|of|out)\b",
    "a noun, for what there is": r"\bwhat there is\b",
    "is not a": rf"(?<!there )(?<!is there )\b{BE} no (?!longer\b|more\b|less\b|fewer\b|one\b|such\b|larger\b|smaller\b)",
    "available": r"\b(?:can|to|cannot) be had\b",
    "if you, the caller": r"\bwho(?:so)?ever\b",
}
"""What to write, and the words for which it is written."""
PATTERNS = {instead: re.compile(pattern, re.IGNORECASE) for instead, pattern in TURNS.items()}


@cache
def rooms() -> dict[str, list[Path]]:
    """The files of each room, by the room's path from the root."""
    found: dict[str, list[Path]] = {}
    for top in ("seqflow", "ops", "providers", "tools"):
        for file in sorted((ROOT / top).rglob("*.py")):
            parts = file.relative_to(ROOT).parts
            room = "/".join(parts[:2]) if top == "seqflow" and len(parts) > 2 else top
            if parts[:2] not in (("seqflow", "ops"), ("seqflow", "providers")):
                found.setdefault(room, []).append(file)
    pages = [page for page in DOCS if "ops" not in page.relative_to(ROOT).parts]
    return found | {str(page.relative_to(ROOT)): [page] for page in [ROOT / "README.md", *pages]}


@lru_cache(maxsize=1)
def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """All nodes, which are walked several times."""
    return list(ast.walk(tree))


def bodies_of(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """The statements of the module, of each class and of each function."""
    for node in nodes_of(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.body


def docstrings_of(tree: ast.AST) -> Iterator[ast.Constant]:
    """Docstrings: of the module, its classes and functions, and of attributes, after their assignment."""
    for body in bodies_of(tree):
        for before, statement in zip([None, *body], body, strict=False):
            match statement:
                case ast.Expr(value=ast.Constant(value=str()) as text):
                    if before is None or isinstance(before, ast.Assign | ast.AnnAssign):
                        yield text


def strings_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of each string, an f-string in one piece with `…` for its values."""
    inside = set()
    for node in nodes_of(tree):
        if isinstance(node, ast.JoinedStr):
            inside |= {id(part) for part in node.values}
            yield (
                node.lineno,
                "".join(str(p.value) if isinstance(p, ast.Constant) else "…" for p in node.values),
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.lineno, node.value


def comments_of(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each run of comments on their own lines, and of each one after code."""
    run: list[str] = []
    start = last = 0
    if "#" not in source:
        return
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if run and token.start[0] != last + 1:
                yield start, " ".join(run)
                run = []
            start, last = start if run else token.start[0], token.start[0]
            run.append(token.string.lstrip("# "))
    if run:
        yield start, " ".join(run)


def paragraphs_of(page: str) -> Iterator[tuple[int, str]]:
    """Line and text of each paragraph of a page, blocks of code and code within a line left out."""
    kept, fenced = [], False
    for line in page.splitlines():
        fenced ^= line.startswith("```")
        kept.append("" if fenced or line.startswith("```") else re.sub(r"`[^`]*`", "`…`", line))
    run: list[str] = []
    for number, line in enumerate([*kept, ""], 1):
        if line.strip():
            run.append(line.strip())
        elif run:
            yield number - len(run), " ".join(run)
            run = []


def violations_of(file: Path) -> list[str]:
    """Place, text and advice for each sentence of a file that does not keep the rules."""
    source, found = file.read_text(encoding="utf-8"), []
    if file.suffix == ".md":
        texts = list(paragraphs_of(source))
    else:
        tree = ast.parse(source)
        texts = [*strings_of(tree), *comments_of(source)]
        for doc in docstrings_of(tree):
            if BEGINNINGS.match(str(doc.value).strip()):
                found.append(f"{doc.lineno}: begins with {str(doc.value).strip()[:60]!r}")
    for line, text in texts:
        words = " ".join(text.split())
        for instead, pattern in PATTERNS.items():
            found += [
                f"{line}: …{words[max(0, hit.start() - 40) : hit.end() + 30]}… write: {instead}"
                for hit in pattern.finditer(words)
            ]
    return [f"{file.relative_to(ROOT)}:{one}" for one in found]


@pytest.mark.parametrize("room", rooms())
def test_a_room_is_written_in_plain_english(room):
    found = [one for file in rooms()[room] for one in violations_of(file)]
    assert not found, "\n".join(["", *found])


@pytest.mark.parametrize(
    "text",
    [
        "the rows behind it",
        "input that nobody trusts",
        "'x' is no list",
        "the data are others",
        "leave `shift` away",
        "what it all comes to",
        "nor does it",
        "and so is the mean",
        "all but for one",
    ],
)
def test_turns_that_are_found(text):
    assert any(pattern.search(text) for pattern in PATTERNS.values())


@pytest.mark.parametrize(
    "text",
    [
        "there is no file",
        "it is no longer there",
        "besides floor 1",
        "so are not counted",
        "leave it as it is",
    ],
)
def test_turns_that_are_allowed(text):
    assert not any(pattern.search(text) for pattern in PATTERNS.values())
