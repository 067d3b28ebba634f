"""What carrying LoD costs: each op called with arrays and with a Sequence, in microseconds a call.

python benchmarks/auto.py
"""

from time import thread_time

import numpy as np

from seqflow import Sequence, auto, ops

WORDS = Sequence(np.ones((7, 4), np.float32), [[2, 3], [2, 1, 1, 1, 2]])
IDS = Sequence(np.arange(7) % 3, WORDS.lod)
LENGTHS, VALUES = WORDS.lengths, WORDS.values
TABLE, SMALL = np.ones((3, 4), np.float32), np.ones((4, 4), np.float32)
OTHER = Sequence(VALUES, [[2, 3], [2, 1, 1, 1, 2]])
PLAIN = np.ones(7, np.float32)

CALLS = {
    "lengths_sum": (lambda: ops.lengths_sum(VALUES, LENGTHS), lambda: auto.lengths_sum(WORDS)),
    "fc": (lambda: ops.fc(VALUES, SMALL), lambda: auto.fc(WORDS, SMALL)),
    "mul": (lambda: ops.mul(VALUES, 2.0), lambda: auto.mul(WORDS, 2.0)),
    "words * 2.0": (lambda: ops.mul(VALUES, 2.0), lambda: WORDS * 2.0),
    "np.sqrt(words)": (lambda: ops.sqrt(VALUES), lambda: np.sqrt(WORDS)),
    "add, lengths built apart": (lambda: ops.add(VALUES, VALUES), lambda: auto.add(WORDS, OTHER)),
    "gather": (lambda: ops.gather(TABLE, IDS.values), lambda: auto.gather(TABLE, IDS)),
    "sparse_lengths_sum": (
        lambda: ops.sparse_lengths_sum(TABLE, IDS.values, LENGTHS),
        lambda: auto.sparse_lengths_sum(TABLE, IDS),
    ),
    "truncate": (
        lambda: ops.truncate(VALUES, LENGTHS, max_length=1),
        lambda: auto.truncate(WORDS, max_length=1),
    ),
    "pad": (lambda: ops.pad(VALUES, LENGTHS), lambda: auto.pad(WORDS)),
    "concat axis 1": (
        lambda: ops.concat([VALUES, VALUES], axis=1),
        lambda: auto.concat([WORDS, WORDS], axis=1),
    ),
    "concat_sequences": (
        lambda: ops.concat_sequences([VALUES, VALUES], [LENGTHS, LENGTHS]),
        lambda: auto.concat_sequences([WORDS, WORDS]),
    ),
    "reshape": (lambda: ops.reshape(VALUES, [-1, 2, 2]), lambda: auto.reshape(WORDS, [-1, 2, 2])),
    "cast": (lambda: ops.cast(VALUES, dtype="float64"), lambda: auto.cast(WORDS, dtype="float64")),
    "split_sequences": (
        lambda: ops.split_sequences(VALUES, LENGTHS, chunk=1),
        lambda: auto.split_sequences(WORDS, chunk=1),
    ),
}


def best(call, repeats=5, count=2_000):
    """Microseconds of processor time for one call, the best of some rounds."""
    call()
    times = []
    for _ in range(repeats):
        start = thread_time()
        for _ in range(count):
            call()
        times.append((thread_time() - start) / count)
    return min(times) * 1e6


def main() -> None:
    print(f"{'':26}{'explicit':>10}{'auto':>10}{'more':>10}")
    for name, (explicit, carried) in CALLS.items():
        before, after = best(explicit), best(carried)
        print(f"{name:26}{before:10.1f}{after:10.1f}{after - before:10.1f}")


if __name__ == "__main__":
    main()
