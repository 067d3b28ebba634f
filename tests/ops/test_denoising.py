"""Masked tokens, corrupted spans, middles to fill in."""

import numpy as np
import pytest

from seqflow import ops
from seqflow.errors import OpError

A = np.array


TOKENS = A([3, 2, 20, 4, 3, 2, 8, 13, 2, 3, 2, 23, 7, 19, 22, 3, 2, 7, 2])
NOISE = A([False] * 8 + [True] + [False] * 5 + [True] * 5)
MASKED = {"mask": 9, "vocabulary_size": 1000, "seed": 5}


def test_special_tokens_are_never_chosen_nor_put_in():
    tokens = np.random.default_rng(0).integers(0, 10, 5000)
    options = {"mask": 9, "vocabulary_size": 10, "seed": 5, "never": [0, 1], "random": 0.5, "keep": 0.0}
    values, labels, chosen = ops.mask_tokens(tokens, [5000], ratio=1.0, **options)
    assert not chosen[tokens < 2].any()
    assert chosen[tokens >= 2].all()
    assert (values[tokens >= 2] >= 2).all()
    assert (labels[chosen] == tokens[chosen]).all()
    assert (labels[~chosen] == -100).all()


def test_shares_are_as_asked():
    tokens = np.random.default_rng(0).integers(10, 1000, 100_000)
    values, _, chosen = ops.mask_tokens(tokens, [100_000], ratio=0.15, **MASKED)
    assert chosen.mean() == pytest.approx(0.15, abs=0.01)
    assert (values[chosen] == 9).mean() == pytest.approx(0.8, abs=0.02)
    assert (values[chosen] == tokens[chosen]).mean() == pytest.approx(0.1, abs=0.02)
    assert (values[~chosen] == tokens[~chosen]).all()


def test_ratio_0_changes_nothing():
    values, _, chosen = ops.mask_tokens(TOKENS, [19], ratio=0.0, **MASKED)
    assert values.tolist() == TOKENS.tolist()
    assert not chosen.any()


def test_whole_words_are_chosen_whole_and_at_least_one():
    words, counts = A([2, 1, 2, 3]), A([3, 1])
    found = ops.mask_tokens(np.arange(8) + 20, [5, 3], words, counts, ratio=0.4, **MASKED)
    by_word = np.split(found.chosen, np.cumsum(words)[:-1])
    assert all(len(set(one.tolist())) == 1 for one in by_word)
    assert [one[0] for one in by_word].count(True) == 3


def test_a_word_with_a_special_token_is_not_chosen():
    found = ops.mask_tokens(A([1, 2, 3, 4]), [4], A([2, 2]), A([2]), ratio=1.0, never=[2], **MASKED)
    assert found.chosen.tolist() == [False, False, True, True]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"random": 0.9, "keep": 0.2}, "random . keep is 1.1"),
        ({"ratio": 1.5}, "ratio is 1.5, expected 0 to 1"),
        ({"mask": 30, "vocabulary_size": 30}, "mask.* is outside"),
        ({"never": [1000]}, "never.* is outside"),
        ({"vocabulary_size": 20}, r"tokens.2. = 20 is outside"),
    ],
)
def test_what_does_not_fit_is_an_error(wrong, message):
    with pytest.raises(OpError, match=f"mask_tokens: {message}"):
        ops.mask_tokens(TOKENS, [19], **{"ratio": 0.5, **MASKED, **wrong})


def test_words_that_are_not_the_tokens_are_an_error():
    with pytest.raises(OpError, match="the words of sequence 0 have 2 tokens"):
        ops.mask_tokens(
            A([1, 2, 3]), [3], A([2, 1]), A([1, 1])[:1].repeat(1), ratio=0.5, **MASKED
        ) if False else (ops.mask_tokens(A([1, 2, 3]), [3, 0], A([2, 1]), A([1, 1]), ratio=0.5, **MASKED))


def test_span_corruption_is_that_of_t5():
    found = ops.span_corrupt(TOKENS, NOISE, [19], first=25)
    assert found.values.tolist() == [3, 2, 20, 4, 3, 2, 8, 13, 25, 3, 2, 23, 7, 19, 24]
    assert found.targets.tolist() == [25, 2, 24, 22, 3, 2, 7, 2]


def test_each_row_counts_its_sentinels_from_the_first():
    noise = A([False, True, False, False, False, True, False])
    found = ops.span_corrupt(np.arange(1, 8), noise, [3, 0, 2, 2], first=99)
    assert found.values.tolist() == [1, 99, 3, 4, 5, 99, 7]
    assert found.lengths.tolist() == [3, 0, 2, 2]
    assert found.targets.tolist() == [99, 2, 99, 6]
    assert found.target_lengths.tolist() == [2, 0, 0, 2]


def test_more_runs_than_sentinels_are_an_error():
    with pytest.raises(OpError, match="sequence 0 has more than 1 runs of noise"):
        ops.span_corrupt(A([1, 2, 3]), A([True, False, True]), [3], first=0)


def test_lengths_of_corrupted_spans_are_those_of_t5():
    noise = ops.noise_spans([70], density=0.2, mean_span=2.0, seed=1)
    found = ops.span_corrupt(np.arange(70), noise, [70], first=99)
    assert found.lengths + 1 == 64
    assert found.target_lengths + 1 == 22


def test_noise_has_its_share():
    lengths = np.arange(40)
    noise = ops.noise_spans(lengths, density=0.3, mean_span=2.0, seed=7)
    pieces = np.split(noise, np.cumsum(lengths)[:-1])
    assert [one.sum() for one in pieces[2:]] == [max(1, round(n * 0.3)) for n in range(2, 40)]


@pytest.mark.parametrize(
    ("spm_rate", "expected"), [(0.0, [91, 1, 2, 93, 5, 6, 92, 3, 4]), (1.0, [91, 93, 5, 6, 92, 1, 2, 3, 4])]
)
def test_a_middle_is_moved_at_given_cuts(spm_rate, expected):
    options = {"prefix": 91, "suffix": 93, "middle": 92, "seed": 0}
    found = ops.fill_in_middle(np.arange(1, 7), [6], A([[2, 4]]), spm_rate=spm_rate, **options)
    assert found.values.tolist() == expected


def test_cuts_of_text_are_between_characters():
    text = (
        np.frombuffer("日本語" * 40, np.uint8) if False else np.frombuffer(("日本語" * 40).encode(), np.uint8)
    )
    for seed in range(20):
        options = {"prefix": 1, "suffix": 2, "middle": 3, "seed": seed, "characters": True}
        found = ops.fill_in_middle(text, [len(text)], **options)
        assert len(found.values.tobytes().decode()) == 123


def test_a_rate_outside_0_to_1_is_an_error():
    with pytest.raises(OpError, match=r"fill_in_middle: rate is 2\.0"):
        ops.fill_in_middle(A([1]), [1], prefix=1, suffix=2, middle=3, seed=0, rate=2.0)


def test_each_place_of_one_run_of_noise_is_drawn():
    masks = {
        ops.noise_spans(np.array([6]), density=0.3, mean_span=2.0, seed=seed).tobytes() for seed in range(200)
    }
    expected = {bytes([first <= i < first + 2 for i in range(6)]) for first in range(5)}
    assert masks == expected


@pytest.mark.parametrize("density", [0.0, 0.15, 0.5, 0.9, 1.0])
def test_runs_of_noise_are_as_many_as_the_page_says_and_never_touch(density):
    lengths = np.arange(30)
    found = ops.noise_spans(lengths, density=density, mean_span=3.0, seed=1)
    for n, mask in zip(lengths.tolist(), np.split(found, np.cumsum(lengths)[:-1]), strict=True):
        noisy = min(max(round(n * density), 1), n - 1) if n > 1 else 0
        runs = min(max(round(noisy / 3), 1), noisy, n - noisy)
        assert mask.sum() == noisy
        assert np.count_nonzero(np.diff(mask.astype(int), prepend=0) == 1) == runs


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7])
def test_infilling_of_pieces_that_begin_inside_a_character_keeps_their_bytes_and_whole_characters(size):
    whole = "日本語テキスト😀é".encode()
    pieces = [whole[i : i + size] for i in range(0, len(whole), size)]
    lengths = np.array([len(piece) for piece in pieces])
    for seed in range(20):
        values, longer = ops.fill_in_middle(
            np.frombuffer(whole, np.uint8).astype(np.int64), lengths, prefix=1001, suffix=1002, middle=1003, seed=seed,
            characters=True,
        )  # fmt: skip
        assert longer.tolist() == (lengths + 3).tolist()
        for piece, own in zip(pieces, np.split(values, np.cumsum(longer)[:-1]), strict=True):
            assert sorted(own[own < 1000].tolist()) == sorted(piece)
            assert sorted(own[own > 1000].tolist()) == [1001, 1002, 1003]
            # without the tokens, each character that begins in the piece is still in one part
            parts = [
                bytes(part)
                for part in np.split(own, np.flatnonzero(own > 1000))
                for part in [part[part < 1000].tolist()]
            ]
            assert sorted("".join(part.decode(errors="ignore") for part in parts)) == sorted(
                piece.decode(errors="ignore")
            )
