"""Text for a byte-level BPE, cut at places that no token crosses, so that each distinct piece is encoded once.

GPT-2's expression divides text before the BPE sees it: into letters, digits and other characters, each with the one
space before them, contractions (`'s`), and white space. In a run of white space followed by other text, the last
character is separate from those before it. A match after such a place does not depend on the text before it, so the
ids of a text are those of its pieces. Text repeats itself: in 8 MB of source code, 4 pieces of 100 are new.

A piece ends only between two ASCII characters, so that no tables of Unicode are needed for classes of characters.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.slices import starts_of


@contextmanager
def tokenizer_errors(what: str) -> Iterator[None]:
    """Turn errors of the package into OpError, including panics of Rust."""
    try:
        yield
    except MemoryError:
        raise
    except BaseException as error:  # pyo3 derives PanicException from BaseException, not from Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise OpError(f"tokenizer: {what}: {error}") from error


MOST_ADDED_TOKENS = 64
"""Limit of added tokens for cutting into pieces: all texts are searched for each of them."""

_WITH_SPECIAL_TOKENS = ("BertProcessing", "RobertaProcessing")
"""Post-processors that only add special tokens around a text."""

_NONE, _SPACE, _OTHER, _LETTER, _DIGIT = range(5)
_CLASS = np.full(256, _NONE, np.uint8)
_CLASS[[9, 10, 11, 12, 13, 32]] = _SPACE
_CLASS[33:127] = _OTHER
_CLASS[[byte for byte in range(128) if chr(byte).isalpha()]] = _LETTER
_CLASS[[byte for byte in range(128) if chr(byte).isdigit()]] = _DIGIT
_LEFT = _CLASS.copy()
"""Classes of characters before a cut; there is no cut after an apostrophe, which may begin a contraction."""
_LEFT[ord("'")] = _NONE


def has_pieces(tokenizer: Any, special_tokens: bool) -> bool:
    """Return whether the ids of a text are those of its pieces, one after another."""
    before = tokenizer.pre_tokenizer
    if before is None or tokenizer.normalizer is not None or tokenizer.truncation is not None:
        return False
    settings = json.loads(before.__getstate__())
    is_gpt2 = (settings.get("type"), settings.get("add_prefix_space"), settings.get("use_regex", True)) == (
        "ByteLevel", False, True,
    )  # fmt: skip
    is_plain_bpe = type(tokenizer.model).__name__ == "BPE" and not tokenizer.model.dropout
    is_changed = not _keeps_ids(tokenizer.post_processor, special_tokens)
    few = len(tokenizer.get_added_tokens_decoder()) <= MOST_ADDED_TOKENS
    return is_gpt2 and is_plain_bpe and not is_changed and few


def _keeps_ids(after: Any, special_tokens: bool) -> bool:
    """Return whether the post-processor leaves the ids of a text as they are. A template may repeat them."""
    if after is None:
        return True
    settings = json.loads(after.__getstate__())
    for step in settings["processors"] if settings.get("type") == "Sequence" else [settings]:
        name = step.get("type")
        if name == "TemplateProcessing":
            parts = [part for part in step["single"] if special_tokens or "SpecialToken" not in part]
            keeps = [part.get("Sequence", {}).get("id") for part in parts] == ["A"]
        else:
            keeps = name == "ByteLevel" or (name in _WITH_SPECIAL_TOKENS and not special_tokens)
        if not keeps:
            return False
    return True


def encode_pieces(tokenizer: Any, strings: Any) -> tuple[Array, Array]:
    """Return the ids of all strings of an Arrow array, and the number of ids of each."""
    import pyarrow as pa

    offsets, data = _buffers(strings)
    limits = np.flatnonzero(_cuts(data, offsets, _with_added_tokens(tokenizer, strings)))
    buffers = [None, pa.py_buffer(limits), pa.py_buffer(data)]
    pieces = pa.Array.from_buffers(pa.large_string(), max(len(limits) - 1, 0), buffers).dictionary_encode()
    texts = pieces.dictionary.to_pylist()
    ids, counts = ids_of(encode_all(tokenizer, texts, special_tokens=False))
    which = pieces.indices.to_numpy()
    sizes = counts[which]
    ends = kernels.lengths_to_offsets(sizes)
    tokens = np.empty(int(ends[-1]), np.int32)
    kernels.move_slices(ids, starts_of(counts)[which], sizes, tokens, ends[:-1])
    return tokens, np.diff(ends[np.searchsorted(limits, offsets)])


def encode_all(tokenizer: Any, texts: list[str], special_tokens: bool) -> list[Any]:
    """Return the encoding of each text; raise OpError if the tokenizer fails."""
    with tokenizer_errors("it cannot encode the text"):
        encodings: list[Any] = tokenizer.encode_batch_fast(texts, add_special_tokens=special_tokens)
    return encodings


def ids_of(encodings: list[Any]) -> tuple[Array, Array]:
    """Return the ids of all encodings, and the number of ids of each; raise OpError for ids above int32."""
    found = [encoding.ids for encoding in encodings]
    counts = np.fromiter(map(len, found), np.int64, len(found))
    try:
        return np.fromiter(chain.from_iterable(found), np.int32, int(counts.sum())), counts
    except OverflowError:
        largest = max(chain.from_iterable(found))
        raise OpError(f"tokenizer: it has the id {largest}, expected less than {2**31}") from None


def _cuts(data: Array, offsets: Array, whole: Array) -> Array:
    """Return whether a piece begins at each byte and after the last one; strings that are `whole` are not cut."""
    right, left = _CLASS[data], _LEFT[data]
    cuts = np.zeros(len(data) + 1, np.bool_)
    if len(data) > 1:
        follows = right[1:] > _SPACE
        cuts[1:-1] = follows & (left[:-1] > _SPACE) & (left[:-1] != right[1:])
        cuts[:-2] |= follows & (right[:-1] == _SPACE)
        cuts[np.maximum(offsets[1:-1] - 1, 0)] = False  # the character after the end is of another string
    for start, stop in zip(offsets[:-1][whole], offsets[1:][whole], strict=True):
        cuts[start:stop] = False
    cuts[offsets] = True
    return cuts


def _with_added_tokens(tokenizer: Any, strings: Any) -> Array:
    """Return whether each string has a token that the tokenizer looks for before it divides the text."""
    import pyarrow.compute as pc

    found = np.zeros(len(strings), np.bool_)
    for token in tokenizer.get_added_tokens_decoder().values():
        found |= pc.match_substring(strings, token.content).to_numpy(zero_copy_only=False)
    return found


def _buffers(strings: Any) -> tuple[Array, Array]:
    """Return offsets from 0, and the bytes of an array of large strings."""
    _, offset_buffer, value_buffer = strings.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[strings.offset : strings.offset + len(strings) + 1]
    if value_buffer is None or offsets[0] == offsets[-1]:
        return offsets - offsets[0], np.empty(0, np.uint8)
    return offsets - offsets[0], np.frombuffer(value_buffer, np.uint8)[offsets[0] : offsets[-1]]
