"""Cases that are made of bytes: what libFuzzer changes is what they draw."""

import random
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2]))

from fuzz import files, kernels_alone, ops, saved, texts
from fuzz.guided import FUZZERS, Drawn
from fuzz.hunting import run_case


def test_numbers_are_made_of_the_bytes():
    drawn = Drawn(bytes([3, 0, 1, 0, 128]))
    assert drawn.choice("abcdefgh") == "d"
    assert drawn.getrandbits(16) == 256
    assert drawn.random() == 0.5


def test_after_the_bytes_numbers_differ_but_are_the_same_each_time():
    numbers = [Drawn(b"\1").sample(range(100), 50) for _ in range(2)]
    assert numbers[0] == numbers[1]
    assert len(set(numbers[0])) == 50


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # NumPy's, of infinite numbers
@pytest.mark.parametrize("fuzzer", [kernels_alone, ops, texts, files, saved])
def test_cases_can_be_made_of_bytes(fuzzer, tmp_path):
    assert fuzzer.__name__.split(".")[1] in FUZZERS
    for seed in range(20):
        content = random.Random(seed).randbytes(400)
        first, again = (run_case(fuzzer.case, Drawn(content), tmp_path / "case") for _ in range(2))
        assert first == again
