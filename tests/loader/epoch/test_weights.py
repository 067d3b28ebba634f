"""Weights that change with the number of the batch, and the source of each batch that they decide."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import OpTypeError
from seqflow.loader.epoch.weights import assigned, check_together, shares_of

LENGTH = 400
WEIGHTS = st.sampled_from([0.0, 0.0, 0.01, 0.1, 0.5, 1.0, 3.0])


def test_steps_hold_until_the_next_point():
    schedule = sf.Schedule({10: 0.2, 0: 0.8})
    assert [schedule.at(number) for number in (0, 9, 10, 10**6)] == [0.8, 0.8, 0.2, 0.2]


def test_ramps_are_straight_lines_and_stay_at_their_last_point():
    schedule = sf.Schedule({0: 1.0, 10: 0.0, 30: 0.5}, linear=True)
    assert [schedule.at(number) for number in (0, 5, 10, 20, 30, 99)] == [1.0, 0.5, 0.0, 0.25, 0.5, 0.5]


def test_a_schedule_is_its_points_in_rising_order():
    assert sf.Schedule({5: 1, 0: 2}) == sf.Schedule({0: 2.0, np.int64(5): np.float32(1)})
    assert sf.Schedule({0: 1}) != sf.Schedule({0: 1}, linear=True)
    assert repr(sf.Schedule({5: 1, 0: 2}, linear=True)) == "Schedule({0: 2.0, 5: 1.0}, linear=True)"
    assert hash(sf.Schedule({5: 1, 0: 2})) == hash(sf.Schedule({0: 2, 5: 1}))


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ({0: 0.8, 10: -0.2}, r"the weight from batch 10 on is -0\.2, expected a number, 0 or more"),
        ({0: float("nan")}, "the weight from batch 0 on is nan, expected a number"),
        ({0: float("inf")}, "the weight from batch 0 on is inf, expected a number"),
        ({0: "1"}, "the weight from batch 0 on is '1', expected a number"),
        ({0: True}, "the weight from batch 0 on is True, expected a number"),
        ({0: 1, 0.5: 1}, r"0\.5 is not the number of a batch, expected integers"),
        ({"0": 1}, "'0' is not the number of a batch, expected integers"),
        ({False: 1}, "False is not the number of a batch, expected integers"),
        ({0: 1, -1: 1}, "-1 is not the number of a batch, expected integers"),
        ({0: 1, 2**31: 1}, "2147483648 is not the number of a batch, expected integers from 0 to 2147483647"),
        ({5: 1}, "the first batch with a weight is 5, expected 0"),
        ({0: 0, 5: 0}, "all weights are 0, expected one above 0"),
    ],
)
def test_schedules_that_make_no_sense_are_refused(points, message):
    with pytest.raises(sf.OpError, match=message):
        sf.Schedule(points)


@pytest.mark.parametrize("points", [{}, 0.5, [(0, 1)]])
def test_points_are_a_dict(points):
    with pytest.raises(OpTypeError, match="expected a dict of weights by the number of the batch"):
        sf.Schedule(points)


def test_linear_is_a_bool():
    with pytest.raises(OpTypeError, match="linear is 'yes', expected True or False"):
        sf.Schedule({0: 1}, linear="yes")


@pytest.mark.parametrize(
    ("schedules", "number"),
    [
        ([sf.Schedule({0: 1, 10: 0}), sf.Schedule({0: 0, 11: 1})], 10),
        ([sf.Schedule({0: 0, 7: 1}), sf.Schedule({0: 0, 7: 1}, linear=True)], 0),
        ([sf.Schedule({0: 1, 10: 0, 20: 1}, linear=True)], 10),
    ],
)
def test_some_source_has_a_weight_at_every_batch(schedules, number):
    with pytest.raises(sf.OpError, match=f"all sources have a weight of 0 for batch {number},"):
        check_together(schedules)


@st.composite
def weights(draw):
    """Weights of one to six sources, of which some source has one above 0 at every batch."""
    points = st.dictionaries(st.integers(1, LENGTH - 1), WEIGHTS, max_size=5)
    made = []
    for _ in range(draw(st.integers(0, 5))):
        of_source = {0: draw(WEIGHTS), **draw(points)}
        linear = draw(st.booleans())
        if any(of_source.values()):
            made.append(sf.Schedule(of_source, linear=linear))
    return [*made, draw(st.sampled_from([0.001, 0.3, 1.0, sf.Schedule({0: 0.2, LENGTH // 2: 1})]))]


@given(weights(), st.integers(0, 1000))
def test_each_source_stays_within_one_batch_of_its_share(drawn, seed):
    order = np.random.default_rng(seed).permutation(len(drawn))
    members = assigned(shares_of(drawn), 2 * LENGTH, order)
    each = [[one.at(n) if isinstance(one, sf.Schedule) else one for one in drawn] for n in range(2 * LENGTH)]
    shares = np.cumsum([np.array(row) / sum(row) for row in each], axis=0)
    counts = np.cumsum(members[:, None] == np.arange(len(drawn)), axis=0)
    assert np.abs(counts - shares).max() < 1


@given(weights(), st.integers(0, 2 * LENGTH))
def test_the_source_of_a_batch_does_not_depend_on_how_many_are_asked_for(drawn, count):
    order = np.arange(len(drawn))
    shares = shares_of(drawn)
    assert assigned(shares, count, order).tolist() == assigned(shares, 2 * LENGTH, order)[:count].tolist()


@given(weights())
def test_no_batch_comes_from_a_source_that_never_had_a_weight(drawn):
    late = [sf.Schedule({0: 0, 2 * LENGTH: 1}), *drawn]
    assert 0 not in assigned(shares_of(late), 2 * LENGTH, np.arange(len(late)))
