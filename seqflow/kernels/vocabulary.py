"""Hash tables from keys to ids: open addressing with linear probing, in arrays that can be saved and mapped.

A table is slots[S, 2] of (word, id), S a power of two. The word of an integer key is the key itself; the word of a
string is its hash. Id 0 marks a free slot, so ids count from 1. A word is stored in slot `mixed(word) % S`, or in the
next free one.
"""

from collections.abc import Iterator

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts, int64_integers, rows
from seqflow.kernels.checks import check_sum, offsets_of
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.forms import BYTES, COUNTS, INTEGERS
from seqflow.kernels.hashing import mix
from seqflow.kernels.memory import check_memory

__all__ = ["find_strings", "find_words", "hash_slots", "words_of_strings"]


@kernel(data=BYTES, lengths=COUNTS)
def words_of_strings(data: Array, lengths: Array) -> Array:
    """Return the word of each string, its hash: uint8 data[sum(lengths)], lengths[B] -> int64 hashes[B].

    The hash starts as `mixed(length)`; each little-endian group of 8 bytes, the last one filled up with zeros,
    changes it to `mixed(hash ^ group)`.
    """
    data, lengths = _bytes(data, "data"), int64_counts(lengths, "lengths")
    check_sum(lengths, len(data), "data")
    groups = (lengths + 7) // 8
    first = offsets_of(groups)[:-1]
    padded = np.zeros(int(groups.sum()) * 8, np.uint8)
    padded[np.arange(len(data)) + np.repeat(first * 8 - offsets_of(lengths)[:-1], lengths)] = data
    words = padded.view("<u8").astype(np.uint64)
    hashes = mix(lengths.view(np.uint64))
    for position in range(int(groups.max(initial=0))):
        longer = np.flatnonzero(groups > position)
        hashes[longer] = mix(hashes[longer] ^ words[first[longer] + position])
    return hashes.view(np.int64)


@kernel(words=COUNTS)
def hash_slots(words: Array) -> Array:
    """Return the table of words[K], which get the ids 1 to K: int64 slots[S, 2], at most half of them taken."""
    words = int64_counts(words, "words")
    size = 1 << max(2 * len(words) - 1, 0).bit_length()
    check_memory((size, 2), words.dtype)
    slots = np.zeros((size, 2), np.int64)
    # a list: reading single elements of an array from Python is several times slower
    taken = [False] * size
    for i, place in enumerate((mix(words.view(np.uint64)) & np.uint64(size - 1)).tolist()):
        while taken[place]:
            place = (place + 1) % size
        taken[place] = True
        slots[place] = words[i], i + 1
    return slots


@kernel(slots=INTEGERS, words=INTEGERS)
def find_words(slots: Array, words: Array) -> Array:
    """Return the id of each word[N, *i] in a table, 0 if it is missing: int64 ids[N, *i]."""
    slots, words = _slots(slots), int64_integers(words, "words")
    flat = words.ravel()
    ids = np.zeros(len(flat), np.int64)
    for asked, word, found in _probes(slots, flat):
        same = word == flat[asked]
        ids[asked[same]] = found[same]
        asked[same] = -1
    return ids.reshape(words.shape)


@kernel(slots=INTEGERS, offsets=COUNTS, text=BYTES, data=BYTES, lengths=COUNTS)
def find_strings(slots: Array, offsets: Array, text: Array, data: Array, lengths: Array) -> Array:
    """Return the id of each string in a table of hashes, 0 if it is missing: int64 ids[B].

    The string of id i is text[offsets[i - 1] : offsets[i]]. An id without a valid slice matches nothing: a saved
    table may be damaged.
    """
    slots, offsets, text = _slots(slots), int64_counts(offsets, "offsets"), _bytes(text, "text")
    data, lengths = _bytes(data, "data"), int64_counts(lengths, "lengths")
    hashes = words_of_strings(data, lengths)
    starts = offsets_of(lengths)[:-1]
    ids = np.zeros(len(lengths), np.int64)
    for asked, word, found in _probes(slots, hashes):
        match = (word == hashes[asked]) & (found >= 1) & (found < len(offsets))
        for i in np.flatnonzero(match).tolist():
            (start, stop), j = offsets[found[i] - 1 : found[i] + 1].tolist(), asked[i]
            string = data[starts[j] : starts[j] + lengths[j]]
            if 0 <= start <= stop <= len(text) and np.array_equal(text[start:stop], string):
                ids[j], asked[i] = found[i], -1
    return ids


def _probes(slots: Array, words: Array) -> Iterator[tuple[Array, Array, Array]]:
    """Yield, probe by probe, the indices of the words that are not found yet, and word and id of the slots they
    reach.

    The caller replaces the indices of found words by -1.
    """
    mask = len(slots) - 1
    asked = np.arange(len(words))
    places = (mix(words.view(np.uint64)) & np.uint64(mask)).astype(np.int64)
    # at most S probes: a damaged table may have no free slot
    for _ in range(len(slots)):
        met = slots[places]
        taken = met[:, 1] != 0
        asked, places, met = asked[taken], places[taken], met[taken]
        if not len(asked):
            return
        yield asked, met[:, 0], met[:, 1]
        places = ((places + 1) & mask)[asked >= 0]
        asked = asked[asked >= 0]


def _slots(slots: Array) -> Array:
    """Return slots as int64[S, 2]; raise ValueError for any other shape, or when S is not a power of two."""
    slots = int64_integers(slots, "slots")
    size = len(slots)
    if slots.shape != (size, 2) or size == 0 or size & (size - 1):
        raise ValueError(f"slots is {list(slots.shape)}, expected [S, 2], S a power of two")
    return slots


def _bytes(values: Array, argument: str) -> Array:
    """Return bytes in one dimension; raise TypeError for elements of another dtype."""
    array = rows(values, argument)
    if array.dtype != np.uint8 or array.ndim != 1:
        raise TypeError(f"{argument} is {array.dtype}{list(array.shape)}, expected uint8[N]")
    return array
