"""Conversion of text to tokens and back by a Hugging Face tokenizer (the package tokenizers, extra `text`)."""

from itertools import pairwise
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import OpIndexError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.slices import surround
from seqflow.ops.shared.strings import Errors, join, to_strings
from seqflow.ops.shared.tokenizers import (
    check_special_tokens,
    decode_all,
    encode,
    encoder_of,
    learn,
    portions,
    special_id,
    tokenizer_of,
)
from seqflow.registry import op
from seqflow.signature import File, Positive, Texts


@op(
    "uint8 data[sum(lengths)], lengths[B] -> int32 values[sum(lengths')], int64 lengths'[B]",
    files=check_special_tokens,
)
def tokenize(
    data: Array,
    lengths: Array,
    *,
    tokenizer: File,
    begin: str | None = None,
    end: str | None = None,
    special_tokens: bool = True,
    errors: Errors = "strict",
) -> tuple[Array, Array]:
    """Convert UTF-8 text to the ids of a Hugging Face tokenizer.

    `tokenizer` is the path of a `tokenizer.json`, the result of `train_tokenizer`, or a `tokenizers.Tokenizer`; in a
    net also the name of a tensor with the bytes of such a file. A file's settings for padding and truncation are
    ignored (`pad` and `truncate` do that). A Tokenizer object is used as it is, and must not pad. `begin` and `end`
    name special tokens to add to each sequence, for instance `end="</s>"`, also to empty ones. With `special_tokens`
    the tokenizer's own template adds its tokens. Bytes that are not UTF-8 are an error that names sequence and byte;
    `errors="replace"` puts U+FFFD in their place. An empty string gives only special ids.

    >>> text, lengths = np.frombuffer(b"low lower", np.uint8), np.array([3, 6])
    >>> tokenizer = train_tokenizer(text, lengths, vocabulary_size=259, special_tokens="</s>")
    >>> tokenize(text, lengths, tokenizer=tokenizer, end="</s>").lengths
    array([2, 5])
    """
    encoder = encoder_of(tokenizer)
    ends = [special_id(encoder, name, token) for name, token in (("begin", begin), ("end", end))]
    tokens, sizes = encode(encoder, to_strings(data, lengths, errors), special_tokens)
    return surround(tokens, sizes, *ends)


@op(
    "int tokens[sum(lengths)], lengths[B] -> uint8 values[sum(lengths')], int64 lengths'[B]",
    files=check_special_tokens,
)
def decode(
    tokens: Array, lengths: Array, *, tokenizer: File, special_tokens: bool = False
) -> tuple[Array, Array]:
    """Convert the ids of a Hugging Face tokenizer to UTF-8 text, by default without special tokens.

    `tokenizer` is as in `tokenize`. An id that it does not have is an error. An empty sequence gives an empty string.

    >>> text, lengths = np.frombuffer(b"low lower", np.uint8), np.array([3, 6])
    >>> tokenizer = train_tokenizer(text, lengths, vocabulary_size=258)
    >>> tokens = tokenize(text, lengths, tokenizer=tokenizer)
    >>> decode(tokens.values, tokens.lengths, tokenizer=tokenizer).values.tobytes()
    b'low lower'
    """
    decoder = tokenizer_of(tokenizer)
    _check_ids(tokens, decoder)
    ids, ends = tokens.tolist(), kernels.lengths_to_offsets(lengths).tolist()
    sequences = [ids[start:end] for start, end in pairwise(ends)]
    return join(decode_all(decoder, sequences, special_tokens))


@op("uint8 data[sum(lengths)], lengths[B] -> uint8 tokenizer[K]")
def train_tokenizer(
    data: Array,
    lengths: Array,
    *,
    vocabulary_size: Positive,
    min_frequency: Positive = 2,
    special_tokens: Texts = (),
    errors: Errors = "strict",
) -> Array:
    """Learn a byte-level BPE tokenizer (Sennrich et al., 2016) of at most `vocabulary_size` ids from UTF-8 text.

    The result is the JSON file of Hugging Face's libraries, as bytes: `tokenize` and `decode` take it, and its method
    `tofile("tokenizer.json")` saves it. Ids start with `special_tokens` and the 256 bytes, so no text is unknown; the
    others are pairs that occur at least `min_frequency` times. Empty strings change nothing, and words are cut after
    1,000 characters. `seqflow train-tokenizer` learns from files of any size.

    >>> train_tokenizer(np.frombuffer(b"low lower", np.uint8), np.array([3, 6]), vocabulary_size=258)[:11].tobytes()
    b'{"version":'
    """
    strings = to_strings(data, lengths, errors)
    texts = (strings[start:stop].to_pylist() for start, stop in portions(strings))
    # the trainer reserves memory for all ids: there are no more than symbols to join, and a byte that is not UTF-8
    # becomes the three bytes of U+FFFD
    most = 256 + len(special_tokens) + 3 * len(data)
    return np.frombuffer(learn(texts, min(vocabulary_size, most), min_frequency, special_tokens), np.uint8)


def _check_ids(tokens: Array, tokenizer: Any) -> None:
    """Raise OpIndexError for the first id that the tokenizer does not have."""
    distinct = np.unique(tokens)
    fits = (distinct >= 0) & (distinct < 2**32)
    known = [ok and tokenizer.id_to_token(int(i)) is not None for i, ok in zip(distinct, fits, strict=True)]
    if not all(known):
        unknown = np.isin(tokens, distinct[~np.array(known)])
        i = int(np.argmax(unknown))
        size = tokenizer.get_vocab_size()
        raise OpIndexError(f"tokens[{i}] = {tokens[i]} is not an id of the tokenizer, which has {size}")
