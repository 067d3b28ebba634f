"""Text for training next to its peers: telling duplicates apart, and masking.

    OMP_NUM_THREADS=1 POLARS_MAX_THREADS=1 RAYON_NUM_THREADS=1 python benchmarks/training_text.py [NAME …]

Near duplicates: from token ids to signatures of 128 numbers, shingles of 5 tokens included. rensa makes another
sketch, whose similarities are compared with ours, not its numbers. It has no function for shingles: in one contender
they are Python tuples of bytes, as its users write them, in the other one our hashes.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from comparison import Call, Row, main, optional
from seqflow import ops

polars, rensa, transformers, tokenizers = (
    optional(name) for name in ("polars", "rensa", "transformers", "tokenizers")
)
SHINGLE, SIGNATURE = 5, 128


def near_duplicates() -> Iterator[Row]:
    random = np.random.default_rng(0)
    for count, mean in ((20_000, 50), (2_000, 500)):
        lengths = np.maximum(random.poisson(mean, count), 2 * SHINGLE)
        tokens = random.integers(0, 30_000, int(lengths.sum()))
        # every second text is the one before it with a few tokens changed
        lengths[1::2] = lengths[::2]
        tokens = np.resize(tokens, int(lengths.sum()))
        sources, targets = (
            np.repeat(part, lengths) for part in (np.arange(count) % 2 == 0, np.arange(count) % 2 == 1)
        )
        tokens[targets] = tokens[sources]
        changed = targets & (random.random(len(tokens)) < 0.02)
        tokens[changed] = random.integers(0, 30_000, int(changed.sum()))
        yield Row(
            f"hash_ngrams, minhash {count}×{mean}", lambda t=tokens, n=lengths: signatures(t, n),
            rensa_signatures(tokens, lengths), {"best": 1.0}, agree=as_similar, rounds=7,
            why="rensa puts a hash into a few slots of its sketch; ours is the least of 128 hashes of every shingle",
        )  # fmt: skip
        yield Row(
            f"hash_ngrams, one_permutation_minhash {count}×{mean}",
            lambda t=tokens, n=lengths: ops.one_permutation_minhash(
                *ops.hash_ngrams(t, n, n=SHINGLE), num_perm=SIGNATURE
            ),
            rensa_signatures(tokens, lengths), {"best": 1.0}, agree=as_similar, rounds=7,
        )  # fmt: skip


def signatures(tokens: Any, lengths: Any) -> Any:
    return ops.minhash(*ops.hash_ngrams(tokens, lengths, n=SHINGLE), num_perm=SIGNATURE)


def rensa_signatures(tokens: Any, lengths: Any) -> dict[str, Call]:
    if rensa is None:
        return {}
    ends = np.cumsum(lengths).tolist()
    texts = [tokens[end - size : end] for end, size in zip(ends, lengths.tolist(), strict=True)]

    def of_bytes() -> Any:
        sets = []
        for text in texts:
            data = text.tobytes()
            width = text.itemsize
            sets.append(
                [data[i : i + SHINGLE * width] for i in range(0, len(data) - (SHINGLE - 1) * width, width)]
            )
        return rensa.RMinHash.digest_matrix_from_token_byte_sets(sets, SIGNATURE, 1)

    def of_hashes() -> Any:
        values, counts = ops.hash_ngrams(tokens, lengths, n=SHINGLE)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)
        return rensa.RMinHash.digest_matrix_from_flat_token_hashes(values, offsets, SIGNATURE, 1)

    return {"rensa, shingles in Python": of_bytes, "rensa, our shingles": of_hashes}


def as_similar(ours: Any, theirs: Any) -> None:
    """Similarities of neighbours that both estimate differ by a few standard deviations of 128 samples at most."""
    theirs = np.array(theirs.to_rows())
    mine, other = ((rows[::2] == rows[1::2]).mean(axis=1) for rows in (ours, theirs))
    assert abs(mine.mean() - other.mean()) < 0.02
    assert np.abs(mine - other).max() < 0.45


def exact_duplicates() -> Iterator[Row]:
    random = np.random.default_rng(0)
    count = 4_000_000
    for name, ids in (
        ("4M ids, 1M distinct", random.integers(0, 2**62, 1_000_000)[random.integers(0, 1_000_000, count)]),
        ("4M ids, 50k distinct", random.integers(0, 2**62, 50_000)[random.integers(0, 50_000, count)]),
        ("4M ids, most distinct", random.integers(0, 2**62, count)),
    ):
        peers: dict[str, Call] = {}
        if polars:
            column = polars.DataFrame({"id": ids})
            peers["polars unique"] = lambda c=column: kept_by_polars(c)
        yield Row(f"first_of_equal {name}", lambda ids=ids: ids[firsts(ids)], peers, {"best": 1.5}, rounds=7)
    lengths = random.integers(8, 40, 200_000)
    whole = random.integers(97, 123, int(lengths.sum())).astype(np.uint8)
    picked = random.integers(0, len(lengths), 1_000_000)
    values, counts = ops.gather_sequences(whole, picked, lengths)

    def of_texts() -> Any:
        rows = firsts(ops.hash_text(values, counts))
        return ops.gather_sequences(values, rows, counts)

    peers = {}
    if polars:
        offsets = pa.py_buffer(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64))
        texts = pa.LargeStringArray.from_buffers(len(counts), offsets, pa.py_buffer(values))
        frame = polars.DataFrame({"text": polars.Series(texts)})
        peers["polars unique"] = lambda: kept_by_polars(frame)

    def agree_on_texts(ours: Any, theirs: Any) -> None:
        assert ours[0].tobytes() == "".join(theirs.to_list()).encode()

    yield Row("first_of_equal 1M texts", of_texts, peers, {"best": 1.5}, agree=agree_on_texts, rounds=7)


def firsts(keys: Any) -> Any:
    """Rows that are their own first."""
    first = ops.first_of_equal([keys])
    return np.flatnonzero(first == np.arange(len(first)))


def kept_by_polars(frame: Any) -> Any:
    return frame.unique(keep="first", maintain_order=True).to_series()


def masking() -> Iterator[Row]:
    random = np.random.default_rng(0)
    vocabulary = 30_000
    for count, mean in ((32, 128), (1_000, 200)):
        lengths = random.integers(mean // 2, mean * 3 // 2, count)
        tokens = random.integers(3, vocabulary, int(lengths.sum()))
        peers: dict[str, Call] = {}
        if transformers and tokenizers:
            peers["transformers collator"] = masked_by_transformers(tokens, lengths, vocabulary)
        yield Row(
            f"mask_tokens {count}×{mean}",
            lambda t=tokens, n=lengths: ops.mask_tokens(
                t, n, ratio=0.15, mask=2, vocabulary_size=vocabulary, seed=0, never=[0, 1]
            ),
            peers, {"best": 0.05}, agree=as_masked,
            why="a small batch takes the time of its calls",
        )  # fmt: skip


def masked_by_transformers(tokens: Any, lengths: Any, vocabulary: int) -> Call:
    words = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2} | {f"w{i}": i for i in range(3, vocabulary)}
    model = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="[UNK]"))
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=model, pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]"
    )
    collate = transformers.DataCollatorForLanguageModeling(
        tokenizer, mlm_probability=0.15, return_tensors="np"
    )
    rows = [{"input_ids": part.tolist()} for part in np.split(tokens, np.cumsum(lengths)[:-1])]
    return lambda: collate(rows)


def as_masked(ours: Any, theirs: Any) -> None:
    """Other draws: equal shares of the chosen tokens, and of what becomes of them."""
    labels, values = theirs["labels"], theirs["input_ids"]
    seen = theirs["attention_mask"] == 1
    old, new = labels[labels != -100], values[labels != -100]
    kept = ours.values[ours.chosen]
    count = len(kept)
    shares = [
        (ours.chosen.mean(), len(old) / seen.sum()), ((kept == 2).mean(), (new == 2).mean()),
        ((kept == ours.labels[ours.chosen]).mean(), (new == old).mean()),
    ]  # fmt: skip
    for mine, other in shares:
        assert abs(mine - other) < 3 / count**0.5, shares


FAMILIES = [near_duplicates, exact_duplicates, masking]

if __name__ == "__main__":
    main(FAMILIES)
