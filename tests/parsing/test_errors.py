"""How the place of an error in a text is shown."""

import pytest

from seqflow.errors import NetError
from seqflow.parsing.errors import fail


def shown(text: str, position: int, advice: str = "", *, in_lines: bool = False) -> list[str]:
    with pytest.raises(NetError) as caught:
        fail(text, position, "it is wrong", advice, what="net", kind=NetError, in_lines=in_lines)
    return str(caught.value).split("\n")


def test_the_place_is_under_a_caret() -> None:
    assert shown("a b", 2) == ["net, column 3: it is wrong", "  a b", "    ^"]


def test_the_end_is_a_place() -> None:
    assert shown("", 0) == ["net, column 1: it is wrong", "  ", "  ^"]


def test_lines_are_numbered_where_there_are_several_or_the_dialect_wants_it() -> None:
    assert shown("a\n\tb c", 5) == ["net, line 2, column 4: it is wrong", "  \tb c", "  \t  ^"]
    assert shown("a b", 2, in_lines=True)[0] == "net, line 1, column 3: it is wrong"


def test_a_line_is_shown_whole_unless_it_is_long() -> None:
    assert shown("x" * 72, 0)[1] == "  " + "x" * 72


def test_of_a_long_line_what_surrounds_the_place_is_shown() -> None:
    _, excerpt, caret = shown("x" * 100 + "y" + "z" * 100, 100)
    assert excerpt == f"  …{'x' * 36}y{'z' * 35}…"
    assert excerpt[caret.index("^")] == "y"


def test_advice_stands_last() -> None:
    assert shown("a b", 2, "do this")[-1] == "  do this"
