"""What the parsers of all small languages make of recorded texts, and of these texts with one place damaged.

`python tests/shared/recorded_texts.py` records it again, in `parsing/recorded.json`: do so only after a change that is meant to
change trees or places of errors, and read the difference.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import seqflow as sf
from seqflow.errors import SeqflowError
from seqflow.expression.filter_parser import parse_filter
from seqflow.expression.parser import Node, parse, postorder, word
from seqflow.net.parser import parse as parse_net
from seqflow.providers.type_texts import parse_type
from seqflow.signature.parser import parse as parse_signature
from seqflow.signature.parser import parse_value

FILE = Path(__file__).parents[1] / "parsing" / "recorded.json"
PARSERS: dict[str, Callable[[str], object]] = {
    "dimension": sf.Dimension.parse,
    "expression": parse,
    "filter": parse_filter,
    "net": parse_net,
    "shape": sf.PartialShape.parse,
    "signature": parse_signature,
    "type": lambda text: parse_type(text, "c"),
    "value": parse_value,
}
_PIECE = re.compile(r"\w+|\s+|.", re.DOTALL)
_OTHERS = ("(", ")", "[", "]", "{", ",", "=", "|", "**", "not", "2x", "'a'", "->", "@", "\n", "f(")
"""What a piece of a text is replaced by."""


def described(tree: Any) -> object:
    """The tree as plain data, with the places of its tokens."""
    if isinstance(tree, Node):
        return [(word(node), node.token.start) for node in postorder(tree)]
    if hasattr(tree, "kind") and hasattr(tree, "start"):
        return tree.text, tree.start
    if isinstance(tree, tuple | list):
        return [described(one) for one in tree]
    if isinstance(tree, set | frozenset):
        return sorted(map(repr, tree))
    if isinstance(tree, sf.Expression):
        return tree.inputs, described(tree.tree)
    if dataclasses.is_dataclass(tree) and not isinstance(tree, sf.Dimension | sf.PartialShape):
        fields = [one.name for one in dataclasses.fields(tree) if one.name not in ("text", "tokens")]
        return type(tree).__name__, [(name, described(getattr(tree, name))) for name in fields]
    return repr(tree)


def outcome(kind: str, text: str) -> str:
    """A digest of the tree; of an error its kind, line and column."""
    try:
        tree = PARSERS[kind](text)
    except SeqflowError as error:
        place = re.search(r"(?:line (\d+), )?column (\d+)", str(error).partition("\n")[0])
        return f"{type(error).__name__} {place[1] or 1}:{place[2]}" if place else type(error).__name__
    return hashlib.sha256(repr(described(tree)).encode()).hexdigest()[:8]


def damaged(text: str) -> Iterator[str]:
    """The text with one piece deleted, doubled, replaced, and one more."""
    pieces = _PIECE.findall(text)
    for how in range(4 * bool(pieces)):
        number = crc32(f"{how} {text}".encode())
        place, other = number % len(pieces), _OTHERS[number // 256 % len(_OTHERS)]
        piece = pieces[place]
        changed = ("", piece * 2, other, piece + other)[how]
        yield "".join([*pieces[:place], changed, *pieces[place + 1 :]])


def texts() -> dict[str, dict[str, list[str]]]:
    """The outcomes of each text of each language: of itself, and of the damaged ones."""
    found: dict[str, dict[str, list[str]]] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def recorded(kind: str, text: str) -> list[str]:
    return [outcome(kind, one) for one in (text, *damaged(text))]


if __name__ == "__main__":
    again = {kind: {text: recorded(kind, text) for text in given} for kind, given in texts().items()}
    lines = [
        f"{json.dumps(kind)}: {{\n"
        + ",\n".join(
            f"{json.dumps(text, ensure_ascii=False)}: {json.dumps(one)}" for text, one in given.items()
        )
        + "\n}"
        for kind, given in again.items()
    ]
    FILE.write_text("{" + ",\n".join(lines) + "}\n", encoding="utf-8")
