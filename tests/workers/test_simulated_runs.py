"""The scheduling of `in_order` on simulated workers: thousands of them, which die and dawdle."""

import pytest

from benchmarks.simulate import Model, simulate


def test_without_faults_a_run_takes_little_more_than_its_work() -> None:
    found = simulate(Model(parts=3000, workers=100, part_seconds=10.0, driver_seconds=0.0))
    assert 300 <= found.seconds < 1.1 * 300
    assert found.busy > 0.9
    assert (found.deaths, found.twice) == (0, 0)


def test_deaths_cost_about_what_their_parts_had_taken() -> None:
    calm = simulate(Model(parts=3000, workers=100, part_seconds=10.0))
    deadly = simulate(Model(parts=3000, workers=100, part_seconds=10.0, deaths_per_hour=10.0))
    assert deadly.deaths > 20
    assert deadly.seconds < 1.15 * calm.seconds


def test_stragglers_are_begun_twice_and_the_rest_goes_on() -> None:
    slow = simulate(Model(parts=3000, workers=100, part_seconds=10.0, stragglers=0.01, slow=30.0))
    assert slow.twice > 15
    assert slow.seconds < 2 * 300


def test_where_parts_are_tiny_the_driver_is_the_limit() -> None:
    found = simulate(Model(parts=5000, workers=100, part_seconds=0.01, driver_seconds=0.001))
    assert found.seconds == pytest.approx(5.0, rel=0.3)
    assert found.driver > 0.8
