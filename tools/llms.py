"""Pages for language models: `docs/llms.txt` lists them, and `python tools/llms.py FILE` writes all of them.

The form is that of llmstxt.org: a title, a summary as a quote, then links with the first sentence of each page.
"""

import re
import sys
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
INDEX = DOCS / "llms.txt"
_LINK = re.compile(r"\]\(([\w./-]+\.md)\)")


def index() -> str:
    """Return the text of `llms.txt`."""
    first, summary = _title_and_lead((DOCS / "README.md").read_text("utf-8"))
    lines = [f"# {first}", "", f"> {summary}", "", "## Pages", "", *map(_line, _pages()), "", "## Ops", ""]
    return "\n".join([*lines, *map(_line, _families())]) + "\n"


def full() -> str:
    """Return the text of `llms-full.txt`: all pages, each below its path."""
    texts = [
        f"<!-- {_path(page)} -->\n\n{page.read_text('utf-8').strip()}\n" for page in (*_pages(), *_families())
    ]
    return "\n".join(texts)


def _pages() -> list[Path]:
    """Return the pages, in the order of their links in the README of the docs."""
    linked = dict.fromkeys(_LINK.findall((DOCS / "README.md").read_text("utf-8")))
    return [path for name in linked if (path := DOCS / name).parent == DOCS]


def _families() -> list[Path]:
    return sorted((DOCS / "ops").glob("*.md"))


def _line(page: Path) -> str:
    title, lead = _title_and_lead(page.read_text("utf-8"))
    return f"- [{title}]({_path(page)}): {lead}"


def _path(page: Path) -> str:
    return page.relative_to(DOCS).as_posix()


def _title_and_lead(text: str) -> tuple[str, str]:
    """Return the heading of a page, and its first sentence as plain text."""
    title, _, rest = text.partition("\n")
    paragraphs = (
        part for part in rest.strip().split("\n\n") if part and not part.startswith(tuple("<!|`#*-"))
    )
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(next(paragraphs, "").split()))
    return title.lstrip("# "), re.split(r"(?<=\.)\s", plain)[0]


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(full(), encoding="utf-8")
