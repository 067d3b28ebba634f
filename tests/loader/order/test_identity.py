"""A state is of all that decides the batches, and names what is another one."""

import json
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf

TABLE = pa.table({"x": np.arange(60), "t": [[i] * (i % 5) for i in range(60)]})


@pytest.fixture
def path(tmp_path):
    pq.write_table(TABLE, tmp_path / "in.parquet", row_group_size=10)
    return tmp_path / "in.parquet"


def state_of(loader, batches=1):
    found = iter(loader)
    for _ in range(batches):
        next(found)
    return json.loads(json.dumps(loader.state_dict()))


def times(factor):
    return lambda record: {"y": record["x"] * factor}


OTHERS = {
    "net": (
        {"net": "y = x * 1\nreturn y"},
        {"net": "y = x * 7\nreturn y"},
        r"net\.net\.y \(line 1\) was `y = x \* 1` and is `y = x \* 7` now",
    ),
    "statement that is new": (
        {"net": "y = x * 1\nreturn y"},
        {"net": "y = x * 1\nz = x + 1\nreturn y, z"},
        r"net\.net\.z \(line 2\) is new: `z = x \+ 1`\n  also net\.net\.return \(line 3\) was `return y` and",
    ),
    "prepare": (
        {"prepare": "y = x * 1\nreturn y"},
        {"prepare": "# more\ny = x * 7\nreturn y"},
        r"prepare\.net\.y \(line 2\) was `y = x \* 1` and is `y = x \* 7` now",
    ),
    "constant": (
        {"net": "y = gather(c, x)", "constants": {"c": np.zeros(60)}},
        {"net": "y = gather(c, x)", "constants": {"c": np.ones(60)}},
        r"net\.constants\.c has other content",
    ),
    "shape of a constant": (
        {"net": "y = gather(c, x)", "constants": {"c": np.zeros(60)}},
        {"net": "y = gather(c, x)", "constants": {"c": np.zeros(61)}},
        r"net\.constants\.c was `float64\[60\]` and is `float64\[61\]` now",
    ),
    "function": ({"net": times(1)}, {"net": times(7)}, r"net\.code\.factor was `1` and is `7` now"),
    "code": (
        {"prepare": lambda record: {"y": record["x"]}},
        {"prepare": lambda record: {"y": -record["x"]}},
        r"prepare\.code\.function has other content",
    ),
    "version": (
        {"net": times(1), "version": "first"},
        {"net": times(1), "version": "second"},
        r"net\.version was `first` and is `second` now",
    ),
    "kind of net": (
        {"net": "y = x * 1\nreturn y"},
        {"net": times(1)},
        r"net \(.*\) was `y = x \* 1; return y` and is `a Python function` now",
    ),
    "no net": ({}, {"net": times(1)}, r"net \(.*\) was None and is `a Python function` now"),
    "order of the columns": (
        {"rename": {"x": "y"}},
        {"rename": {"x": "z"}},
        r"the data have changed: columns\.z is new: 'int64'\n  also the data have changed: columns\.y is gone",
    ),
}


@pytest.mark.parametrize(("first", "second", "message"), OTHERS.values(), ids=OTHERS)
def test_a_state_of_another_loader_is_refused_with_the_difference(path, first, second, message):
    state = state_of(sf.Loader(path, batch=4, **first))
    sf.Loader(path, batch=4, **first).load_state_dict(state)
    with pytest.raises(sf.OpError, match=f"load_state_dict: {message}"):
        sf.Loader(path, batch=4, **second).load_state_dict(state)


def test_columns_that_change_their_names_are_other_data():
    table = pa.table({"a": [1, 2], "b": [3, 4]})
    state = sf.Loader(table, rename={"a": "b", "b": "a"}).state_dict()
    with pytest.raises(sf.OpError, match="the data have changed"):
        sf.Loader(table).load_state_dict(state)


@pytest.mark.parametrize(
    "formats",
    [
        (sf.Text(encoding="latin-1"), sf.Text(encoding="cp1252")),
        (sf.Text(batch_bytes=10), sf.Text(batch_bytes=2)),
    ],
)
@pytest.mark.parametrize("opened", [False, True])
def test_options_of_the_source_are_part_of_a_state(tmp_path, formats, opened):
    for name in "abcdef":
        (tmp_path / f"{name}.txt").write_text(name * 3)

    def loader(format):
        return sf.Loader(sf.open(tmp_path, format=format)) if opened else sf.Loader(tmp_path, format=format)

    state = loader(formats[0]).state_dict()
    loader(formats[0]).load_state_dict(state)
    with pytest.raises(sf.OpError, match="the data have changed"):
        loader(formats[1]).load_state_dict(state)


@pytest.mark.parametrize("row", [0, 30, 59])
def test_rows_in_memory_are_looked_at(row):
    state = sf.Loader(TABLE).state_dict()
    sf.Loader(pa.table(TABLE.to_pydict())).load_state_dict(state)
    x = np.arange(60)
    x[row] = -1
    with pytest.raises(sf.OpError, match="the data have changed: the sample of rows has other content"):
        sf.Loader(TABLE.set_column(0, "x", pa.array(x))).load_state_dict(state)


def test_a_change_of_the_same_size_is_noticed_whatever_the_times(path):
    state = sf.Loader(path).state_dict()
    content = path.read_bytes()
    path.write_bytes(content)
    sf.Loader(path).load_state_dict(state)
    path.write_bytes(content[:10] + bytes([content[10] ^ 1]) + content[11:])
    with pytest.raises(sf.OpError, match=r"in\.parquet has other content, of the same size"):
        sf.Loader(path).load_state_dict(state)


def test_what_is_not_covered_is_in_the_state_unless_a_version_covers_it(path):
    lock = threading.Lock()

    def prepare(record):
        with lock:
            return {"y": record["x"]}

    state = sf.Loader(path, prepare=prepare).state_dict()
    assert state["settings"]["prepare"]["not covered"] == ["lock: _thread.lock"]
    versioned = sf.Loader(path, prepare=prepare, version=3).state_dict()["settings"]["prepare"]
    assert versioned["version"] == "3"
    assert "not covered" not in versioned
    with pytest.raises(sf.OpError, match=r"version is 1\.5, expected text or an integer"):
        sf.Loader(path, prepare=prepare, version=1.5)


def test_what_a_function_collects_while_it_runs_makes_no_other_loader(path):
    def collecting():
        seen = []

        def net(record):
            seen.append(int(record["x"][0]))
            return record

        return net

    state = state_of(sf.Loader(path, net=collecting(), batch=4), batches=3)
    sf.Loader(path, net=collecting(), batch=4).load_state_dict(state)


def test_an_index_of_another_prepare_is_stale(path, tmp_path):
    def loader(factor):
        cut = "k = truncate(t.values, t.lengths, max_length=3)\nw = k.values + gather(c, k.values * 0)\nreturn w, k.lengths"
        constants = {"c": np.array([factor])}
        return sf.Loader(
            path, prepare=cut, constants=constants, batch=sf.TokenBudget(9), index=tmp_path / "i.arrow"
        )

    len(loader(1))
    len(loader(1))
    with pytest.raises(sf.OpError, match=r"is stale: prepare\.constants\.c has other content"):
        len(loader(7))


def test_another_net_is_accepted_where_it_is_asked_for(path):
    first, second = (sf.Loader(path, batch=4, net=f"y = x * {k}\nreturn y") for k in (1, 7))
    state = state_of(first, batches=3)
    with pytest.raises(
        sf.OpError, match=r'load_state_dict\(state, changes="accept"\) goes on with what is new'
    ):
        second.load_state_dict(state)
    second.load_state_dict(state, changes="accept")
    assert [value for batch in second for value in batch["y"]] == [7 * x for x in range(12, 60)]
    with pytest.raises(sf.OpError, match="changes is 'yes', expected 'refuse' or 'accept'"):
        second.load_state_dict(state, changes="yes")


def split(chunk):
    return f"p = split_sequences(t.values, t.lengths, chunk={chunk})\nreturn p.values, p.lengths"


def test_another_prepare_is_accepted_where_a_window_ends_and_nowhere_else(path):
    def loader(chunk):
        return sf.Loader(path, columns=["t"], prepare=split(chunk), batch=4, window=250)

    expected = [value for row in TABLE["t"].to_pylist() for value in row]
    first, refused, seen, went_on = loader(3), 0, [], 0
    for batch in first:
        seen += batch["p.values"].tolist()
        state, other = first.state_dict(), loader(2)
        if first.at_window_end:
            other.load_state_dict(state, changes="accept")
            assert seen + [value for one in other for value in one["p.values"]] == expected
            went_on += 1
        else:
            with pytest.raises(sf.OpError, match="not at the end of a window"):
                other.load_state_dict(state, changes="accept")
            refused += 1
    assert refused
    assert went_on > 1


def test_settings_and_data_are_never_accepted(path, tmp_path):
    state = state_of(sf.Loader(path, batch=4, net="y = x * 1"))
    for options, message in [
        ({"batch": 5}, r"batch\.n was 4 and is 5 now"),
        ({"batch": 4, "shuffle": True}, "shuffle was"),
    ]:
        with pytest.raises(sf.OpError, match=f"load_state_dict: {message}"):
            sf.Loader(path, net="y = x * 7", **options).load_state_dict(state, changes="accept")
    with pytest.raises(sf.OpError, match="the data have changed"):
        sf.Loader(TABLE, batch=4, net="y = x * 7").load_state_dict(state, changes="accept")


def test_a_mix_accepts_what_a_loader_accepts(path):
    def mix(net=1, prepare=1):
        options = {"prepare": f"y = x * {prepare}\nreturn y", "net": f"z = y * {net}\nreturn z"}
        return sf.Mix({str(path): 1.0}, batch=4, **options)

    state = state_of(mix())
    with pytest.raises(
        sf.OpError, match=r"source 0: net\.net\.z \(line 1\) was `z = y \* 1` and is `z = y \* 7` now"
    ):
        mix(net=7).load_state_dict(state)
    mix(net=7).load_state_dict(state, changes="accept")
    mix(prepare=7).load_state_dict(state, changes="accept")  # batches are counted by rows
    cut = {"columns": ["t"], "batch": 4, "window": 250}
    state = state_of(sf.Mix({str(path): 1.0}, prepare=split(3), **cut))
    with pytest.raises(sf.OpError, match="source 0: prepare has changed since the state was saved"):
        sf.Mix({str(path): 1.0}, prepare=split(2), **cut).load_state_dict(state, changes="accept")


@pytest.mark.parametrize("count", [1, 60])
def test_long_texts_are_cut_around_the_difference(path, count):
    lines = "".join(f"a{i} = x + {i}\n" for i in range(count))
    wide = ", ".join(f"a{i}" for i in range(count))
    first, second = (
        sf.Loader(path, batch=4, net=f"{lines}y = x * {k}\nreturn {wide}, y") for k in (777, 888)
    )
    with pytest.raises(sf.OpError, match=r"was `y = x \* 777` and is `y = x \* 888` now"):
        second.load_state_dict(first.state_dict())
    first, second = (sf.Loader(path, batch=4, net=f"{lines}return {wide}{end}") for end in ("", ", x"))
    with pytest.raises(sf.OpError, match=r"\(line \d+\) was .*` and is .*, x` now"):
        second.load_state_dict(first.state_dict())


def test_what_a_state_says_of_reading_is_how_the_source_was_asked_to_be_read(tmp_path):
    """Nothing that providers keep for themselves: states would be refused by the next version."""
    pq.write_table(pa.table({"x": [1, 2], "a": [[1], [2, 3]]}), tmp_path / "in.parquet")
    assert sf.Loader(str(tmp_path / "in.parquet"), batch=1).state_dict()["data"]["read with"] == {}
