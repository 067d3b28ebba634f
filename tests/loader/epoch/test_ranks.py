"""Ranks: from arguments, from the environment, or an error that names what is missing."""

import pyarrow as pa
import pytest

import seqflow as sf

NAMES = (
    "RANK",
    "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
    "NNODES",
    "NODE_RANK",
    "GROUP_RANK",
    "SLURM_NNODES",
)


def ranks(monkeypatch, environment, **options):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    loader = sf.Loader(pa.table({"x": [1]}), **options)
    return loader.rank, loader.world_size


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, (0, 1)),
        ({"RANK": "2", "WORLD_SIZE": "4"}, (2, 4)),
        (
            {"RANK": "2", "WORLD_SIZE": "4", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "1"},
            (2, 4),
        ),
        ({"WORLD_SIZE": "1"}, (0, 1)),
        ({"LOCAL_RANK": "-1"}, (0, 1)),
        ({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}, (1, 2)),
        ({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "NNODES": "1", "NODE_RANK": "0"}, (1, 2)),
        ({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "WORLD_SIZE": "2"}, (1, 2)),
        ({"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "RANK": "1"}, (1, 2)),
    ],
)
def test_the_environment_of_a_launcher_says_the_rank(monkeypatch, environment, expected):
    assert ranks(monkeypatch, environment) == expected


@pytest.mark.parametrize(
    "environment",
    [
        {"WORLD_SIZE": "2"},
        {"RANK": "0"},
        {"RANK": "1"},
        {"LOCAL_RANK": "0"},
        {"LOCAL_WORLD_SIZE": "2"},
        {"WORLD_SIZE": "2", "LOCAL_RANK": "0"},
        {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "WORLD_SIZE": "4"},
        {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "RANK": "3"},
        {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "NNODES": "2"},
        {"LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "1"},
    ],
)
def test_half_an_environment_is_an_error_that_names_both(monkeypatch, environment):
    with pytest.raises(sf.SeqflowError, match="expected both RANK and WORLD_SIZE, or neither"):
        ranks(monkeypatch, environment)


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"RANK": "one", "WORLD_SIZE": "2"}, "the environment variable RANK is 'one', expected an integer"),
        (
            {"RANK": "0", "WORLD_SIZE": "2.0"},
            "the environment variable WORLD_SIZE is '2.0', expected an integer",
        ),
        ({"RANK": "0", "WORLD_SIZE": ""}, "the environment variable WORLD_SIZE is '', expected an integer"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, r"rank is 2.* world_size = 2 \(by RANK, WORLD_SIZE"),
        ({"RANK": "0", "WORLD_SIZE": "0"}, r"world_size is 0, expected 1 or more \(by RANK, WORLD_SIZE"),
        ({"LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "2"}, r"rank is 3.* \(by LOCAL_RANK, LOCAL_WORLD_SIZE"),
    ],
)
def test_values_that_are_no_ranks_are_errors(monkeypatch, environment, message):
    with pytest.raises(sf.SeqflowError, match=message):
        ranks(monkeypatch, environment)


@pytest.mark.parametrize(
    "environment", [{}, {"WORLD_SIZE": "8"}, {"RANK": "x"}, {"RANK": "3", "WORLD_SIZE": "8"}]
)
def test_arguments_win(monkeypatch, environment):
    assert ranks(monkeypatch, environment, rank=1, world_size=2) == (1, 2)


def test_one_argument_goes_with_its_variable(monkeypatch):
    both = {"RANK": "3", "WORLD_SIZE": "8"}
    assert ranks(monkeypatch, both, rank=1) == (1, 8)
    assert ranks(monkeypatch, both, world_size=4) == (3, 4)
    assert ranks(monkeypatch, {}, world_size=1) == (0, 1)


@pytest.mark.parametrize("options", [{"rank": 0}, {"rank": 1}, {"world_size": 2}])
def test_one_argument_alone_is_an_error(monkeypatch, options):
    with pytest.raises(sf.SeqflowError, match="give rank= and world_size="):
        ranks(monkeypatch, {}, **options)


@pytest.mark.parametrize("value", [1.5, "1", True])
def test_ranks_are_integers(monkeypatch, value):
    with pytest.raises(TypeError, match="expected an integer"):
        ranks(monkeypatch, {}, rank=value, world_size=4)


def test_ranks_may_be_given_as_one_object(monkeypatch):
    assert ranks(monkeypatch, {"RANK": "3", "WORLD_SIZE": "8"}, ranks=sf.Ranks(1, 4, tail="pad")) == (1, 4)
    assert ranks(monkeypatch, {"RANK": "3", "WORLD_SIZE": "8"}, ranks=sf.Ranks(tail="pad")) == (3, 8)


def test_ranks_have_defaults_of_the_environment(monkeypatch):
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    assert sf.Ranks() == sf.Ranks(0, 1, "drop")
    monkeypatch.setenv("RANK", "2")
    with pytest.raises(sf.SeqflowError, match="expected both RANK and WORLD_SIZE, or neither"):
        sf.Ranks()
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert repr(sf.Ranks(tail="repeat")) == "Ranks(rank=2, world_size=4, tail='repeat')"


@pytest.mark.parametrize("option", [{"rank": 0}, {"world_size": 2}, {"tail": "drop"}])
def test_ranks_are_given_once(monkeypatch, option):
    with pytest.raises(TypeError, match=f"{next(iter(option))} is given in addition to ranks"):
        ranks(monkeypatch, {}, ranks=sf.Ranks(0, 2), **option)


def test_ranks_are_ranks(monkeypatch):
    with pytest.raises(TypeError, match=r"ranks is \(0, 2\), expected Ranks\(rank, world_size, tail\)"):
        ranks(monkeypatch, {}, ranks=(0, 2))
    with pytest.raises(sf.SeqflowError, match="Ranks: tail is 'padd'"):
        sf.Ranks(0, 2, tail="padd")
    with pytest.raises(
        sf.SeqflowError, match="Ranks: rank is 2, expected 0 or more and less than world_size = 2"
    ):
        sf.Ranks(2, 2)


def test_ranks_count_rounds():
    assert [sf.Ranks(0, 4, tail).rounds(10) for tail in ("drop", "pad", "repeat")] == [2, 3, 3]


def test_a_rank_gets_the_same_batches_however_it_is_given(monkeypatch):
    table = pa.table({"x": range(10)})
    one = sf.Loader(table, batch=2, rank=1, world_size=2, tail="pad")
    other = sf.Loader(table, batch=2, ranks=sf.Ranks(1, 2, "pad"))
    assert (
        [batch["x"].tolist() for batch in one]
        == [batch["x"].tolist() for batch in other]
        == [[2, 3], [6, 7], []]
    )
    assert one.state_dict() == other.state_dict()
