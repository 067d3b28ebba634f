"""Row spaces: what a signature claims about axis 0."""

from seqflow.signature import Described, OwnRows, bind_rows, parse

RECORD = OwnRows("the record")


def test_a_plain_name_keeps_the_rows_and_a_sum_names_its_lengths():
    signature = parse("data[sum(lengths), *d], lengths[B] -> rows[sum(kept), *d], int64 kept[B]")
    spaces = {"x": Described("n"), "n": RECORD}
    rows, kept = bind_rows(signature, {"data": "x", "lengths": "n"}, ["y", "m"], spaces, "truncate")
    assert rows == Described("m")
    assert kept is RECORD


def test_the_same_sum_keeps_its_lengths():
    signature = parse("x[sum(lengths)], lengths[B] -> y[sum(lengths)]")
    assert bind_rows(signature, {"x": "a", "lengths": "n"}, ["b"], {}, "softmax") == [Described("n")]


def test_a_name_no_input_binds_is_a_row_space_of_its_own():
    signature = parse("x[N] -> unique[U], int64 inverse[N], int64 counts[U]")
    unique, inverse, counts = bind_rows(signature, {"x": "a"}, ["u", "i", "c"], {"a": RECORD}, "unique")
    assert inverse is RECORD
    assert unique == counts
    assert unique != RECORD


def test_moved_rows_are_other_rows():
    (moved,) = bind_rows(parse("data[N] -> sorted[P=N]"), {"data": "a"}, ["b"], {"a": RECORD}, "sort_rows")
    assert moved != RECORD


def test_unknown_rows_stay_unknown():
    assert bind_rows(parse("x[N] -> y[N]"), {"x": "a"}, ["b"], {}, "cast") == [None]
