"""The fuzzers find what is wrong, and nothing in ops that are right."""

import faulthandler
import sys
import time
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2]))

from fuzz import children, kernels_alone, ops, races
from seqflow import registry

WRITTEN_TO = [
    "lengths_to_weights", "normalize_within", "rank_within", "pack_sequence", "unsorted_segment_sum",
    "unsorted_segment_mean", "sorted_segment_sum", "filter_sequences",
]  # fmt: skip
"""Ops that read an array twice in NumPy."""


@pytest.fixture(autouse=True)
def findings(monkeypatch, tmp_path):
    monkeypatch.setattr(children, "FINDINGS", tmp_path)
    return tmp_path


def crash(name, log):
    log.step("the last words")
    import ctypes

    faulthandler.disable()  # which pytest has enabled: it would write among the lines of the tests
    ctypes.string_at(0)


def test_a_crash_is_counted_and_its_call_is_kept(findings):
    counts = children.run_children(["crash"], crash, 0)
    assert counts["crashes"] == 1
    [kept] = findings.iterdir()
    assert b"the last words" in kept.read_bytes()


def hang(name, log):
    log.step("forever")
    while True:
        pass


def test_a_hang_is_counted_and_ended(monkeypatch):
    monkeypatch.setattr(children, "SECONDS_PER_STEP", 0.2)
    counts = children.run_children(["hang"], hang, 0)
    assert (counts["hangs"], counts["crashes"]) == (1, 0)


def test_what_waits_hangs_and_what_shares_a_busy_processor_does_not(monkeypatch):
    monkeypatch.setattr(children, "seconds_of", lambda process: 5.0)
    long_ago = time.monotonic() - 500
    assert children.hangs(1, long_ago, 5.0)
    assert not children.hangs(1, long_ago, 3.0)
    assert children.hangs(1, long_ago - 1000, 3.0)


def test_answers_that_differ_are_seen():
    assert not ops.agree([np.array([1.0])], [np.array([2.0])])
    assert not ops.agree([np.array([1])], [np.array([1], np.int32)])
    assert not ops.agree(ValueError("a"), ValueError("b"))
    assert ops.agree([np.array([np.nan])], [np.array([np.nan])])


def test_means_of_integers_that_cancel_are_as_exact_as_the_largest():
    numbers = np.array([-1, 2**63 - 1, -(2**63), 2])
    assert not ops.judge(registry.get("lengths_mean"), {"data": numbers, "lengths": np.array([4])}, {})


@pytest.mark.slow
def test_mutated_calls_give_one_answer_or_our_error():
    counts = ops.run(0, 2, ["lengths_sum", "pad", "tile", "unsorted_segment_sum"])
    assert counts["calls"] > 0
    assert not counts["crashes"] + counts["hangs"] + counts["foreign exceptions"] + counts["disagreements"]


@pytest.mark.slow
def test_writing_threads_crash_nothing():
    counts = races.run(0, 4, WRITTEN_TO)
    assert counts["calls"] > 0
    assert not counts["crashes"] + counts["hangs"] + counts["foreign exceptions"]


@pytest.mark.slow
def test_hostile_calls_of_kernels_do_not_crash():
    """Kernels called past the checks of ops; which of two wrong arguments they name first may differ."""
    counts = kernels_alone.run(0, 1)
    assert counts["calls"] > 0
    assert not counts["crashes"] + counts["foreign exceptions"]
