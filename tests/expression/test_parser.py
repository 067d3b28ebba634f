import pytest
from marks import thorough

from seqflow.errors import ExpressionError
from seqflow.expression.parser import Call, Literal, Operand, parse, postorder


def prefix(text):
    return str(parse(text).tree)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b * c", "add(@0,mul(@1,@2))"),
        ("(a + b) * c", "mul(add(@0,@1),@2)"),
        ("a - b - c", "sub(sub(@0,@1),@2)"),
        ("a / b * c", "mul(div(@0,@1),@2)"),
        ("a // b % c", "remainder(floor_divide(@0,@1),@2)"),
        ("a ** b ** c", "pow(@0,pow(@1,@2))"),
        ("-a ** b", "neg(pow(@0,@1))"),
        ("a ** -b", "pow(@0,neg(@1))"),
        ("a ** -b ** c", "pow(@0,neg(pow(@1,@2)))"),
        ("a ** -b * c", "mul(pow(@0,neg(@1)),@2)"),
        ("-a * b", "mul(neg(@0),@1)"),
        ("- - a", "neg(neg(@0))"),
        ("+a", "@0"),
        ("~a & b", "bitwise_and(bitwise_not(@0),@1)"),
        ("a | b ^ c & d", "bitwise_or(@0,bitwise_xor(@1,bitwise_and(@2,@3)))"),
        ("a << b + c", "lshift(@0,add(@1,@2))"),
        ("a & b >> c", "bitwise_and(@0,rshift(@1,@2))"),
        ("a | b == c", "equal(bitwise_or(@0,@1),@2)"),
        ("(a < b) & (b <= c)", "bitwise_and(less(@0,@1),less_equal(@1,@2))"),
        ("a > b", "greater(@0,@1)"),
        ("a >= b", "greater_equal(@0,@1)"),
        ("a != b", "not_equal(@0,@1)"),
        ("-2", "-2"),
        ("--2", "2"),
        ("-2 ** 2", "neg(pow(2,2))"),
        ("(-2) ** 2", "pow(-2,2)"),
        ("-inf", "-inf"),
        ("-True", "neg(True)"),
        ("where(a > 0, a, nan)", "where(greater(@0,0),@0,nan)"),
        ("(((a)))", "@0"),
        ("sqrt((2*x + y)/12)", "sqrt(div(add(mul(2,@0),@1),12))"),
        ("sqrt (\n x )", "sqrt(@0)"),
        ("torch.float(x)", "float32(@0)"),
        ("and(@0,xor(@1,or(@2,@3)))", "bitwise_and(@0,bitwise_xor(@1,bitwise_or(@2,@3)))"),
        ("@00", "@0"),
        ("1e-3 + 1. + .5 + 007", "add(add(add(0.001,1.0),0.5),7)"),
    ],
)
def test_operators_bind_as_in_python(text, expected):
    assert prefix(text) == expected


def test_pnnx_text_with_its_alpha_is_read():
    assert prefix("sqrt(div(add(mul(@0,2),@1,1),12))") == "sqrt(div(add(mul(@0,2),@1),12))"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add(@0,@1,2)", "add(@0,mul(@1,2))"),
        ("sub(@0,@1,-0.5)", "sub(@0,mul(@1,-0.5))"),
        ("rsub(@0,@1,2)", "rsub(mul(@0,2),@1)"),
        ("add(@0,@1,1.0)", "add(@0,mul(@1,1.0))"),
    ],
)
def test_alpha_multiplies_what_is_added_or_taken_away(text, expected):
    assert prefix(text) == expected


@pytest.mark.parametrize(
    "text", ["a**-b**c", "sub(@0,@1,3)", "-(-2)**2", "where(a<b, inf, -a) // ~c", "1e300*x"]
)
def test_canonical_text_reads_back_to_itself(text):
    assert prefix(prefix(text)) == prefix(text)


def test_inputs_are_names_by_first_appearance():
    assert parse("y + x * doc.values - y").inputs == ("y", "x", "doc.values")


def test_operands_are_inputs_by_number():
    assert parse("@2 - @0").inputs == ("@0", "@1", "@2")


def test_a_function_is_one_only_before_a_bracket():
    assert parse("abs + sqrt(abs)").inputs == ("abs",)


def test_the_tree_is_made_of_operands_literals_and_calls():
    tree = parse("x / 2").tree
    assert isinstance(tree, Call)
    assert [type(node) for node in postorder(tree)] == [Operand, Literal, Call]
    assert (tree.function.name, tree.token.text, tree.token.start) == ("div", "/", 2)
    assert repr(tree) == "<call div(@0,2)>"


DEEP = 5_000


@pytest.mark.parametrize(
    "text",
    [
        "(" * DEEP + "x" + ")" * DEEP,
        "sqrt(" * DEEP + "x" + ")" * DEEP,
        "-" * DEEP + "x",
        "x**" * DEEP + "x",
        "add(x," * DEEP + "x" + ")" * DEEP,
    ],
    ids=["brackets", "calls", "signs", "powers", "arguments"],
)
def test_nesting_has_no_limit(text):
    assert parse(str(parse(text).tree)).inputs == ("@0",)


@pytest.mark.parametrize("size", [100_000, *thorough(1_000_000)])
@pytest.mark.parametrize(
    "text",
    [
        lambda size: "x + 0.500000 * " * (size // 15) + "x",
        lambda size: "(" * (size // 2 - 1) + "x" + ")" * (size // 2 - 1),
        lambda size: " " * (size - 1) + "x",
    ],
    ids=["sums", "brackets", "blanks"],
)
def test_a_million_characters_are_read(text, size):
    assert parse(text(size)).inputs == ("x",)


@pytest.mark.parametrize("size", [100_000, *thorough(1_000_000)])
@pytest.mark.parametrize(
    "text",
    [
        lambda size: "(" * size,
        lambda size: "1" * size,
        lambda size: "@" + "9" * (size - 1),
        lambda size: "x" * (size - 1) + "$",
        lambda size: "x y" + " " * (size - 3),
    ],
    ids=["brackets", "digits", "operand", "name", "blanks"],
)
def test_a_million_bad_characters_are_refused_with_a_short_message(text, size):
    with pytest.raises(ExpressionError) as error:
        parse(text(size))
    assert len(str(error.value)) < 500


ERRORS = [
    ("", 1, "found the end, expected a number, a name, a function or '('"),
    ("  \n ", 2, "found the end, expected a number, a name, a function or '('"),
    ("(a+b", 1, "this bracket is never closed, expected ')' before the end"),
    ("sqrt(a", 1, "this bracket is never closed, expected ')' before the end"),
    ("a+b)", 4, "found ')', expected an operator or the end"),
    ("()", 2, "found ')', expected a number, a name, a function or '('"),
    ("a+", 3, "found the end, expected a number, a name, a function or '('"),
    ("a+*b", 3, "found '*', expected a number, a name, a function or '('"),
    ("a b", 3, "found 'b', expected an operator or the end"),
    ("(a b)", 4, "found 'b', expected an operator or ')'"),
    ("sqrt(a b)", 8, "found 'b', expected an operator, ',' or ')'"),
    ("a.0", 2, "found '.0', expected an operator or the end"),
    ("a 2", 3, "found '2', expected an operator or the end"),
    ("2(x)", 2, "found '(', expected an operator or the end"),
    ("a, b", 2, "found ',', expected an operator or the end"),
    ("(a, b)", 3, "found ',', expected an operator or ')'"),
    ("sqr(x)", 1, "no function is named 'sqr' (did you mean 'sqrt'?)"),
    ("a.b(x)", 1, "no function is named 'a.b'"),
    ("x.__class__()", 1, "no function is named 'x.__class__'"),
    ("size(@0)", 1, "no function is named 'size'"),
    ("sqrt()", 1, "sqrt(x) takes 1 argument, found 0"),
    ("sqrt(a, b)", 1, "sqrt(x) takes 1 argument, found 2"),
    ("1 + mul(a)", 5, "mul(x, y) takes 2 arguments, found 1"),
    ("add(a, b, 1, 2)", 1, "add(x, y, alpha=1) takes 2 arguments, found 4"),
    ("add(a, b, c)", 11, "add(x, y, alpha=1): alpha is 'c', expected a literal number"),
    ("add(a, b, True)", 11, "add(x, y, alpha=1): alpha is 'True', expected a literal number"),
    ("add(@0,,1)", 8, "found ',', expected a number, a name, a function or '('"),
    ("add(@0,,mul(@1,2))", 8, "found ',', expected a number, a name, a function or '('"),
    ("add(@0,@1,)", 11, "found ')', expected a number, a name, a function or '('"),
    ("a < b < c", 7, "found '<' after another comparison, expected an operator that is none"),
    ("a == b != c", 8, "found '!=' after another comparison, expected an operator that is none"),
    ("a < b & c < d", 11, "found '<' after another comparison, expected an operator that is none"),
    ("@99999999999999999999", 1, "the operand's number is too large, expected @0 to @65535"),
    ("@0 + x", 6, "found 'x' after '@0', expected operands by name or by number, not both"),
    ("x + @0", 5, "found '@0' after 'x', expected operands by name or by number, not both"),
    ("@ 1 2", 1, "found '@', expected a number, a name or an operator"),
    ("@1 2", 4, "found '2', expected an operator or the end"),
    ("lambda x: x", 9, "found ':', expected a number, a name or an operator"),
    ("lambda + 1", 1, "found 'lambda', expected an operand"),
    ("and a", 1, "found 'and', expected an operand"),
    ("a or", 5, "found the end, expected a number, a name, a function or '('"),
    ("a not b", 3, "found 'not', expected an operator or the end"),
    ("a < not b", 5, "found 'not', expected an operand"),
    ("a if b else c", 3, "found 'if', expected an operator or the end"),
    ("a + None", 5, "found 'None', expected an operand"),
    ("18446744073709551616", 1, "the integer is larger than 2**64 - 1"),
    ("1e999", 1, "the number is larger than any float64"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "column", "message"), ERRORS, ids=[text for text, _, _ in ERRORS])
def test_malformed_text_is_pointed_at(text, column, message):
    with pytest.raises(ExpressionError) as error:
        parse(text)
    lines = str(error.value).split("\n")
    assert lines[0].startswith("expression, ")
    assert f"column {column}: {message}" in lines[0]
    assert lines[2] == " " * (column + 1) + "^"


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("a < b < c", "a < b and b < c"),
        ("and b", "x > 1 and y < 2"),
        ("a not b", "not x > 1"),
        ("a = b", "=="),
        ("a[0]", "no indexing"),
        ("@ 1", "right after the @"),
        ("1 if a else 2", "where(condition, x, y)"),
        ("lambda: 0", "not Python"),
    ],
)
def test_what_python_writes_differently_is_explained(text, advice):
    with pytest.raises(ExpressionError) as error:
        parse(text)
    assert advice in str(error.value).split("\n")[-1]


def test_a_long_line_is_cut_around_the_caret():
    with pytest.raises(ExpressionError) as error:
        parse("alpha + " * 100 + "beta gamma" + " + delta" * 100)
    _, excerpt, caret = str(error.value).split("\n")
    assert excerpt.startswith("  …")
    assert excerpt.endswith("…")
    assert excerpt[caret.index("^") :].startswith("gamma")


def test_only_the_line_at_fault_is_shown():
    with pytest.raises(ExpressionError) as error:
        parse("a +\n\tb c\n+ d")
    assert str(error.value).split("\n") == [
        "expression, line 2, column 4: found 'c', expected an operator or the end", "  \tb c", "  \t  ^"
    ]  # fmt: skip


@pytest.mark.parametrize("text", [None, 3, b"x", ["x"]])
def test_an_expression_is_text(text):
    with pytest.raises(ExpressionError, match="expected text"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a > 1 and b == 2", "logical_and(greater(@0,1),equal(@1,2))"),
        ("not a > 1 or b and c", "logical_or(logical_not(greater(@0,1)),logical_and(@1,@2))"),
        ("where(a and not b, 1, 0)", "where(logical_and(@0,logical_not(@1)),1,0)"),
        ("not (a) and (b)", "logical_and(logical_not(@0),@1)"),
    ],
)
def test_conditions_are_joined_by_words(text, tree):
    assert str(parse(text).tree) == tree
