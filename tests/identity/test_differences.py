"""Every difference of two identities is named by its path, with both values, and nothing else is."""

import copy
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.deprecated_names import rename
from seqflow.identity.differences import ABSENT, differences


def loader_with(value):
    """A loader whose function reads a value."""

    def prepare(record):
        assert value is not None
        return record

    return sf.Loader(pa.table({"x": [1]}), prepare=prepare)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (np.arange(3), np.arange(4), r"was `int64\[3\]` and is `int64\[4\]` now"),
        (np.arange(3), np.arange(3) + 1, "has other content"),
        (np.arange(3), 5, r"was `int64\[3\]` and is `5` now"),
        (5, np.arange(3), r"was `5` and is `int64\[3\]` now"),
        (5, 6, "was `5` and is `6` now"),
    ],
)
def test_arrays_are_told_by_dtype_and_shape_and_numbers_by_value(before, after, told):
    state = loader_with(before).state_dict()
    with pytest.raises(sf.OpError, match=rf"prepare\.code\.value {told}"):
        loader_with(after).load_state_dict(state)


def texts(then, now):
    return [one.text for one in differences(then, now)]


OWN = "y = x * 1\nz = tokenize(t.values, t.lengths, tokenizer='t.json')\nreturn x, y, z"


@pytest.fixture(scope="module")
def identity(tmp_path_factory):
    """The identity of a loader of two files, as JSON."""
    folder = tmp_path_factory.mktemp("identity")
    for name in ("a", "b"):
        pq.write_table(pa.table({"x": [1, 2], "t": [[1], [2, 3]]}), folder / f"{name}.parquet")
    prepare = "w = x * 2\nv = gather(c, x * 0) + w\nreturn v, w, t.values, t.lengths"
    loader = sf.Loader(
        folder,
        batch=sf.Rows(2, balance=sf.Balance(group=2, linear=9), lengths="t"),
        prepare=prepare,
        net=lambda record: {"y": record["w"] + len(prepare)},
        constants={"c": np.arange(3)},
        keep="w > 1",
        pad={"t": sf.Pad(3)},
        skip=[(1, 2)],
    )
    state = json.loads(json.dumps(loader.state_dict()))
    return {**state["settings"], "data": state["data"]}


def places(value, path=()):
    """Paths of all values that are not objects or lists, by keys and numbers."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [place for key, part in items for place in places(part, (*path, key))]
    return found if isinstance(value, dict | list) else [path]


def changed(identity, path):
    """The identity with another value of the same kind at a path, and both values."""
    found = copy.deepcopy(identity)
    inside = found
    for key in path[:-1]:
        inside = inside[key]
    before = inside[path[-1]]
    if isinstance(before, str):
        is_digest = len(before.rpartition(" ")[2]) in (16, 32)
        after = before[:-1] + ("1" if before[-1] == "0" else "0") if is_digest else before + "_"
    else:
        after = not before if isinstance(before, bool) else 5 if before is None else before + 1
    inside[path[-1]] = after
    return found, before, after


def test_each_single_difference_is_named_with_both_values_and_nothing_else(identity):
    assert texts(identity, identity) == []
    number = 0
    for path in places(identity):
        shown_only = path[0] in ("prepare", "net", "keep") and {"lines", "names"} & {*path}
        found = changed(identity, path)
        told = texts(identity, found[0])
        if shown_only or path[-2:] == ("data", "rows"):
            assert told == ([] if shown_only else [told[0]])
            continue
        of_name = path[:2] == ("data", "files") and path[3] == 0  # the file is another one
        assert len(told) == (2 if of_name else 1), path
        # plans of two names differ as a whole
        keys = [str(key) for key in path if not isinstance(key, int) and key != "name"]
        text = told[0]
        is_digest = isinstance(found[1], str) and len(found[1].rpartition(" ")[2]) in (16, 32)
        if of_name:
            assert told == [
                f"the data have changed: {found[2]} is new",
                f"the data have changed: {found[1]} is gone",
            ]
        elif path[0] == "data":
            both = [str(one).removeprefix("x: ").removeprefix("t: ") for one in found[1:]]  # columns by name
            assert text.startswith("the data have changed: ")
            assert "other content" in text if is_digest else all(one in text for one in both)
        else:
            assert text.startswith(keys[0])
            assert all(key in text for key in keys)
            is_named = all(str(one) in text for one in found[1:])
            assert text.endswith("has other content") if is_digest else is_named
        number += 1
    assert number > 30


def test_each_entry_that_is_new_or_gone_is_named(identity):
    for section, part in identity.items():
        if not isinstance(part, dict):
            continue
        for key in part:
            if key in ("lines", "names", "net", "name"):
                continue  # entries for messages, and those that make it a net or a plan
            less = {**identity, section: {name: one for name, one in part.items() if name != key}}
            for told, way in ((texts(less, identity), "new"), (texts(identity, less), "gone")):
                assert len(told) == 1, (section, key)
                assert f"{key} is {way}" in told[0]


FILES = [["a", 90, 10, "0" * 32], ["b", 50, 4, "1" * 32]]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ([["a", 90, 12, "2" * 32], FILES[1]], ["a had 10 rows, and has 12 now"]),
        ([["a", 99, 12, "2" * 32], FILES[1]], ["a had 90 bytes and 10 rows, and has 99 and 12 now"]),
        ([["a", 90, 10, "2" * 32], FILES[1]], ["a has other content, of the same size"]),
        ([["a", 90, None, "0" * 32], FILES[1]], ["a had 10 rows, and has an unknown number of now"]),
        ([FILES[0]], ["b is gone"]),
        ([*FILES, ["c", 1, 1, "3" * 32]], ["c is new"]),
        (FILES[::-1], ["files was ['a', 'b'] and is ['b', 'a'] now"]),
    ],
)  # fmt: skip
def test_a_file_is_named_with_what_differs_and_sums_over_files_are_not(files, told):
    then = {"data": {"files": FILES, "rows": 14, "blocks": "4" * 32}}
    now = {"data": {"files": files, "rows": 99, "blocks": "5" * 32}}
    assert texts(then, now) == [f"the data have changed: {one}" for one in told]


def test_any_section_is_compared_by_value():
    (found,) = differences({"colour": "red"}, {"colour": "blue"})
    assert (found.section, found.may_change) == ("colour", False)
    assert found.text == "colour was 'red' and is 'blue' now"


def test_a_section_of_one_of_several_sources_is_compared_as_that_of_a_source_and_does_not_change():
    plans = [{"batch of a": sf.Rows(n).to_dict()} for n in (2, 3)]
    assert texts(*plans) == ["batch of a.n was 2 and is 3 now"]
    (skip,) = differences({"skip": None}, {"skip": [[0, 1]]})
    (of_a,) = differences({"skip of a": None}, {"skip of a": [[0, 1]]})
    assert (skip.may_change, of_a.may_change) == (True, False)


def test_plans_of_two_kinds_differ_as_a_whole():
    plans = [{"batch": plan.to_dict()} for plan in (sf.Rows(2), sf.TokenBudget(9))]
    (text,) = texts(*plans)
    assert text.startswith("batch was `Rows(n=2, ")
    assert " and is `TokenBudget(max_tokens=9, " in text


def test_differences_come_in_the_order_of_the_sections_and_none_where_only_names_of_arguments_differ():
    then = {"b": 1, "pad": {"x": "Pad(value=1)"}, "a": 1, "gone": 1}
    now = {"b": 2, "pad": {"x": "Pad(fill=1)"}, "a": 2}
    rename("Pad", {"value": "fill"})
    try:
        assert [one.path for one in differences(then, now)] == [("b",), ("a",), ("gone",)]
    finally:
        rename("Pad", {})


def test_an_entry_that_is_none_is_not_one_that_is_missing():
    (found,) = differences({"a": {"b": None}}, {"a": {}})
    assert (found.path, found.before, found.now) == (("a", "b"), None, ABSENT)


def test_another_format_is_the_only_difference():
    (found,) = differences({"format": 1, "a": 1}, {"format": 2, "a": 2})
    assert found.text == "its record has format 1 of another version of seqflow, expected 2"


@pytest.mark.parametrize(
    "damaged", [3, "x", [], [1], {}, {"net": 1}, {"net": ["a"], "lines": "b"}, {"code": 5}]
)
def test_a_damaged_record_differs(identity, damaged):
    for section in ("prepare", "net", "keep", "batch", "pad", "data"):
        assert texts({**identity, section: damaged}, identity)
