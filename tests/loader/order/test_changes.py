"""What has changed since a state was taken is told from the files of both."""

import pytest

from seqflow.loader.order.identity import added_files


def found(before, now):
    return added_files({"files": before, "schema": 1}, {"files": now, "schema": 1})


def file(path, rows=10):
    return [path, rows, 1, "id"]


def test_new_files_are_told_wherever_they_are_among_the_old():
    old = [file("b"), file("d")]
    assert found(old, [file("a"), *old[:1], file("c"), old[1]]) == (["a", "c"], "")


def test_a_folder_above_is_told_where_a_file_was_added_outside_the_old_one():
    now = [file("new/a"), file("old/a"), file("old/b")]
    assert found([file("a"), file("b")], now) == (["new/a"], "old/")


def test_nothing_is_told_where_files_are_gone_or_others():
    old = [file("a"), file("b")]
    assert found(old, [file("a"), file("c")]) == ([], "")
    assert found(old, [file("a"), file("b", 11), file("c")]) == ([], "")


@pytest.mark.slow
def test_the_new_among_very_many_files_are_told_at_once():
    """Each may be in a folder of its own, with the name of all others: a comparison of all pairs would not end."""
    old = [file(f"d{i:06}/part-0.parquet") for i in range(100_000)]
    new = [file(f"e{i:06}/part-0.parquet") for i in range(100_000)]
    assert len(found(old, [*old, *new])[0]) == len(new)
