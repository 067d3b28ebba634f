"""Terms: what is made alike is one, and what is taken to be equal makes equal things."""

from hypothesis import given
from hypothesis import strategies as st

from seqflow.shape.terms import Terms, row_difference


def test_what_is_made_alike_is_one_term():
    terms = Terms()
    one, other = (terms.make("call", ("truncate", "lengths"), terms.value("n")) for _ in range(2))
    assert one is other
    assert terms.described(one) is terms.described(other)
    assert terms.described(one) is not terms.described(terms.value("n"))


def test_equal_values_make_equal_rows_whenever_they_become_equal():
    terms = Terms()
    a, b = terms.value("a"), terms.value("b")
    before = terms.described(terms.make("call", "f", a)), terms.described(terms.make("call", "f", b))
    assert not terms.equal(*before)
    terms.unite(a, b)
    assert terms.equal(*before)
    assert terms.make("call", "g", a) is terms.make("call", "g", b)


def test_equalities_can_be_taken_back():
    terms = Terms()
    a, b = terms.value("a"), terms.value("b")
    rows = terms.described(a), terms.described(b)
    position = terms.position
    terms.unite(a, b)
    terms.undo(position)
    assert not terms.equal(*rows)
    assert terms.described(b) is rows[1]


def test_what_is_known_stands_for_what_is_not():
    terms = Terms()
    unknown, known = terms.make("variable", "x"), terms.described(terms.value("n"))
    terms.unite(unknown, known)
    assert terms.find(unknown) is known


def test_the_mask_of_a_padded_tensor_takes_what_was_padded():
    terms = Terms()
    n = terms.value("n")
    flat = terms.make("flat", (None, None), terms.make("rows", "the record"), terms.steps(n))
    mask = terms.make("flat mask", None, terms.make("mask", "right", n))
    other = terms.make("flat mask", None, terms.make("mask", "right", terms.value("m")))
    assert terms.equal(terms.select(flat, mask), terms.described(n))
    assert not terms.equal(terms.select(flat, other), terms.described(n))


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=12))
def test_equality_is_closed_under_what_is_made(pairs):
    """After any equalities f(a) = f(b) exactly where a = b, as a plain partition says."""
    terms = Terms()
    values = [terms.value(f"x{i}") for i in range(8)]
    made = [terms.make("call", "g", terms.make("call", "f", value)) for value in values]
    group = list(range(8))
    for i, j in pairs:
        terms.unite(values[i], values[j])
        group = [group[i] if one == group[j] else one for one in group]
    for i in range(8):
        for j in range(8):
            assert terms.equal(values[i], values[j]) == (group[i] == group[j])
            assert terms.equal(made[i], made[j]) == (group[i] == group[j])


def test_words_follow_the_case():
    terms = Terms()
    column, other = (terms.described(terms.value(name)) for name in ("doc.lengths", "tag.lengths"))
    inner, record = terms.described(terms.value("doc.values.lengths")), terms.make("rows", "the record")
    selected = terms.select(column, terms.value("mask"))
    padded = terms.steps(terms.value("doc.lengths"))
    said = {
        "values of one column, lengths of another": (column, other),
        "another level of the same column": (column, inner),
        "a row for each sequence": (column, record),
        "a selection of rows": (column, selected),
        "steps of a padded axis": (column, padded),
        "padded for other lengths": (padded, terms.steps(terms.value("tag.lengths"))),
        "new rows": (record, terms.make("new", ("sort_rows", "P", ()))),
        "different places": (record, terms.make("rows", "another file")),
    }
    for text, (one, two) in said.items():
        assert text in row_difference(one, two)[0]
    assert row_difference(column, other)[1].endswith("same_lengths(doc.lengths, tag.lengths)")


def test_a_term_reads_as_the_call_that_made_it():
    terms = Terms()
    kept = terms.make("call", ("truncate", "lengths", ("data", "lengths"), (("max_length", 2),)),
                      terms.value("x"), terms.value("n"))  # fmt: skip
    kept.tensor = "%1"
    assert str(terms.described(kept)) == "the rows that truncate(x, n, max_length=2).lengths describes"
