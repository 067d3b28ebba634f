"""The parser of all dialects, on a dialect of prefix texts: `a + b` is `(+ a b)`."""

import math

import pytest

from seqflow.errors import SeqflowError, ShapeError
from seqflow.parsing.lexer import Lexicon, Token, marks
from seqflow.parsing.parser import Parser

OR, NOT, COMPARED, SUM, SIGN, POWER = range(6)


PREFIX = {"not": NOT, "-": SIGN}
INFIX = {"or": OR, "<": COMPARED, "is": COMPARED, "+": SUM, "-": SUM, "^": POWER}


class Dialect(Parser[str]):
    what = "dialect"
    error = ShapeError
    lexicon = Lexicon("a name", alone=True, number="[0-9]+", name="[a-z]+", mark=marks("^ + - < ( ) [ ] ,"))
    prefix = PREFIX
    infix = INFIX
    to_the_right = frozenset({POWER})
    alone = frozenset({COMPARED})
    joined = frozenset({OR})
    loose = frozenset({"not"})
    least_in_calls = SUM

    def atom(self, token: Token) -> str:
        if token.kind not in ("name", "number") or token.text in ("not", "or", "is"):
            self.expected(self.begins)
        self.next += 1
        return token.text

    def infixed(self, token: Token, operands: list[str], start: Token) -> str:
        return f"({token.text} {' '.join(operands)})"

    def prefixed(self, token: Token, operand: str) -> str:
        return f"({token.text} {operand})"

    def opens_call(self, token: Token) -> bool:
        return token.text == "f"

    def called(self, token: Token, arguments: list[str]) -> str:
        return f"({' '.join([token.text, *arguments])})"

    def suffixed(self, token: Token, node: str) -> str | None:
        if not self.accept("is"):
            return None
        self.take("none")
        return f"(none? {node})"

    def chained(self, token: Token) -> None:
        self.expected("no other comparison")


class Shallow(Dialect):
    deepest = highest = 3


def read(text: str, dialect: type[Dialect] = Dialect) -> str:
    return dialect(text).whole("an operator or the end")


def refused(text: str, dialect: type[Dialect] = Dialect) -> str:
    with pytest.raises(ShapeError) as caught:
        read(text, dialect)
    return str(caught.value).split("\n")[0].removeprefix("dialect, ")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b - c", "(- (+ a b) c)"),
        ("a ^ b ^ c", "(^ a (^ b c))"),
        ("-a ^ -b", "(- (^ a (- b)))"),
        ("a or b or c < d", "(or a b (< c d))"),
        ("(a or b) or c", "(or (or a b) c)"),
        ("not a < b or c", "(or (not (< a b)) c)"),
        ("a + b is none or c", "(or (none? (+ a b)) c)"),
        ("f(a, f(), (a < b))", "(f a (f) (< a b))"),
        ("((a))", "a"),
    ],
)
def test_operators_bind_as_the_dialect_says(text: str, expected: str) -> None:
    assert read(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a +", "column 4: found the end, expected a value"),
        ("a b", "column 3: found 'b', expected an operator or the end"),
        ("a < b < c", "column 7: found '<', expected no other comparison"),
        ("a is none + b", "column 11: found '+', expected an operator or the end"),
        ("a < not b", "column 5: found 'not', expected a value"),
        ("f(a < b)", "column 5: found '<', expected an operator, ',' or ')'"),
        ("(a, b)", "column 3: found ',', expected an operator or ')'"),
        ("a)", "column 2: found ')', expected an operator or the end"),
        ("(a + f(b c", "column 1: this bracket is never closed, expected ')' before the end"),
        ("a + f(b", "column 5: this bracket is never closed, expected ')' before the end"),
        ("12a", "column 3: found 'a' right after the number 12"),
        ("a $", "column 3: found '$', expected a name"),
        ("a " + "b" * 200, f"column 3: found '{'b' * 20}…{'b' * 20}', expected an operator or the end"),
    ],
)
def test_what_is_wrong_is_pointed_at(text: str, message: str) -> None:
    assert refused(text) == message


def test_nesting_and_chains_have_no_limit_unless_the_dialect_has_one() -> None:
    assert read("(" * 20_000 + "a" + ")" * 20_000) == "a"
    assert read("-" * 500 + "a").count("-") == 500
    assert read(" or ".join("a" * 5_000)) == f"(or {' '.join('a' * 5_000)})"


def test_levels_are_counted_where_the_dialect_has_a_limit() -> None:
    assert read("(-(a)) + b + c + d", Shallow) == "(+ (+ (+ (- a) b) c) d)"
    assert refused("((((a))))", Shallow) == "column 4: nested in more than 3 levels"
    assert refused("a + b + c + d + e", Shallow) == "column 15: nested in more than 3 levels"
    assert refused("a ^ b ^ c ^ d ^ e", Shallow) == "column 15: nested in more than 3 levels"
    assert read(" or ".join("a" * 5_000), Shallow).startswith("(or a a")


def test_items_stand_between_commas() -> None:
    def items(text: str, *, trailing: bool = False) -> list[str]:
        parser = Dialect(text)
        return parser.items(parser.take("["), lambda: parser.value(least=math.inf), trailing=trailing)

    assert items("[a, -b]") == ["a", "(- b)"]
    assert items("[]") == []
    assert items("[a,]", trailing=True) == ["a"]
    for text, message in {
        "[a,]": "column 4: found ']', expected a value",
        "[a b]": "column 4: found 'b', expected ',' or ']'",
        "[a + b]": "column 4: found '+', expected ',' or ']'",
        "[a": "column 1: this bracket is never closed, expected ']' before the end",
    }.items():
        with pytest.raises(ShapeError, match="dialect, column") as caught:
            items(text)
        assert message in str(caught.value)


def test_the_fault_is_data_too() -> None:
    with pytest.raises(SeqflowError) as caught:
        read("a b")
    assert caught.value.fault == (2, "found 'b', expected an operator or the end", "")
