"""The pages of the project, and the code in them.

A block of code is a doctest, or is run by the test that asks for it by its page and its beginning; blocks without a
language show what something prints. `tests/test_blocks.py` finds blocks that nobody runs.
"""

from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))


class Block(NamedTuple):
    """A fenced block: the page from the root, the number of its first line, its language and its text."""

    page: str
    line: int
    language: str
    text: str


def blocks_of(page: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    blocks, opened = [], None
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        if line.startswith("```"):
            if opened is None:
                opened = number
            else:
                text = "".join(f"{one}\n" for one in lines[opened : number - 1])
                blocks.append(Block(page, opened, lines[opened - 1][3:], text))
                opened = None
    assert opened is None, f"{page}: the block of line {opened} is not closed"
    return blocks


def code_of(page: str, beginning: str) -> str:
    """The text of the one block of a page that begins like this."""
    (found,) = [block for block in blocks_of(page) if block.text.startswith(beginning)]
    return found.text


def codes_of(page: str) -> list[str]:
    """The texts of all blocks of Python on a page that are no doctests."""
    return [
        block.text for block in blocks_of(page) if block.language == "python" and ">>> " not in block.text
    ]
