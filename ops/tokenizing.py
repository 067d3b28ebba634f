"""Text to tokens and back by a Hugging Face tokenizer (the package tokenizers, extra `text`)."""

import os
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError, OpIndexError, OpTypeError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.strings import Errors, join, to_strings
from seqflow.registry import op
from seqflow.signature import File, Positive

_BYTES_AT_ONCE = 1 << 22
"""How much text is in Python strings and encodings at a time."""


@op(
    "uint8 data[sum(lengths)], lengths[B] -> int32 values[sum(lengths')], int64 lengths'[B]",
)
def tokenize(
    data: Array, lengths: Array, *, tokenizer: File, special_tokens: bool = True, errors: Errors = "strict"
) -> tuple[Array, Array]:
    """Convert UTF-8 text to the ids of a Hugging Face tokenizer.

    `tokenizer` is the path of a `tokenizer.json`, what `train_tokenizer` gives, or a `tokenizers.Tokenizer`. Of a
    file the padding and truncation settings are left out (`pad` and `truncate` do that); a Tokenizer object is
    used as it is, and must not pad. `special_tokens` are those its template adds. Bytes that are not UTF-8 are
    an error that names sequence and byte; `errors="replace"` puts U+FFFD in their place. An empty string gives
    no ids but special ones.

    >>> text, lengths = np.frombuffer(b"low lower", np.uint8), np.array([3, 6])
    >>> tokenizer = train_tokenizer(text, lengths, vocabulary_size=258)
    >>> tokenize(text, lengths, tokenizer=tokenizer).lengths
    array([1, 4])
    """
    encoder = _tokenizer(tokenizer)
    if encoder.padding is not None:
        raise OpError("tokenizer pads its output\n  call its no_padding() first; `pad` pads")
    strings = to_strings(data, lengths, errors)
    ids, sizes = [np.empty(0, np.int32)], np.empty(len(lengths), np.int64)
    for start, stop in _portions(strings):
        texts = strings[start:stop].to_pylist()
        encodings = encoder.encode_batch_fast(texts, add_special_tokens=special_tokens)
        sizes[start:stop] = [len(encoding) for encoding in encodings]
        ids.append(np.fromiter(chain.from_iterable(e.ids for e in encodings), np.int32))
    return np.concatenate(ids), sizes


@op(
    "int tokens[sum(lengths)], lengths[B] -> uint8 values[sum(lengths')], int64 lengths'[B]",
)
def decode(
    tokens: Array, lengths: Array, *, tokenizer: File, special_tokens: bool = False
) -> tuple[Array, Array]:
    """Convert the ids of a Hugging Face tokenizer to UTF-8 text, without special tokens unless asked for.

    `tokenizer` is as in `tokenize`. An id it does not know is an error. An empty sequence gives an empty string.

    >>> text, lengths = np.frombuffer(b"low lower", np.uint8), np.array([3, 6])
    >>> tokenizer = train_tokenizer(text, lengths, vocabulary_size=258)
    >>> tokens = tokenize(text, lengths, tokenizer=tokenizer)
    >>> decode(tokens.values, tokens.lengths, tokenizer=tokenizer).values.tobytes()
    b'low lower'
    """
    decoder = _tokenizer(tokenizer)
    _check_ids(tokens, decoder)
    ids, ends = tokens.tolist(), kernels.lengths_to_offsets(lengths).tolist()
    sequences = [ids[start:end] for start, end in pairwise(ends)]
    return join(decoder.decode_batch(sequences, skip_special_tokens=not special_tokens))


@op("uint8 data[sum(lengths)], lengths[B] -> uint8 tokenizer[K]")
def train_tokenizer(
    data: Array,
    lengths: Array,
    *,
    vocabulary_size: Positive,
    min_frequency: Positive = 2,
    special_tokens: Any = (),
    errors: Errors = "strict",
) -> Array:
    """Learn a byte-level BPE tokenizer (Sennrich et al., 2016) of at most `vocabulary_size` ids from UTF-8 text.

    The result is the JSON file that Hugging Face's libraries read, as bytes: `tokenize` and `decode` take it, and
    its `tofile("tokenizer.json")` saves it. Ids begin with `special_tokens`, a list of texts, and the 256 bytes, so
    no text is unknown; the rest are pairs seen `min_frequency` times or more. Empty strings teach nothing.

    >>> train_tokenizer(np.frombuffer(b"low lower", np.uint8), np.array([3, 6]), vocabulary_size=258)[:11].tobytes()
    b'{"version":'
    """
    tokenizers = _package()
    specials = _texts(special_tokens)
    if vocabulary_size < 256 + len(specials):
        raise OpError(
            f"vocabulary_size is {vocabulary_size}, expected {256 + len(specials)} or more:"
            f" 256 bytes and {len(specials)} special tokens"
        )
    strings = to_strings(data, lengths, errors)
    learner = tokenizers.Tokenizer(tokenizers.models.BPE())
    learner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    learner.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=min(vocabulary_size, _most_ids(data, specials)),
        min_frequency=min_frequency,
        special_tokens=specials,
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    portions = (strings[start:stop].to_pylist() for start, stop in _portions(strings))
    learner.train_from_iterator(portions, trainer)
    return np.frombuffer(learner.to_str().encode(), np.uint8)


def _most_ids(data: Array, specials: list[str]) -> int:
    """An upper bound on the ids that can be learnt: each new one joins two symbols of the text.

    The trainer reserves memory for as many ids as it is told.
    """
    bytes_of_text = 3 * len(data)  # U+FFFD, which may replace a byte, has three
    return 256 + len(specials) + bytes_of_text


def _texts(special_tokens: Any) -> list[str]:
    if not isinstance(special_tokens, (list, tuple)) or not all(
        isinstance(token, str) for token in special_tokens
    ):
        raise OpTypeError(f"special_tokens is {special_tokens!r}, expected a list of texts")
    return list(special_tokens)


def _portions(strings: Any) -> Iterator[tuple[int, int]]:
    """Start and stop of portions of an array of strings, each of a bounded number of bytes, or one string."""
    offsets = np.frombuffer(strings.buffers()[1], np.int64) if len(strings) else np.zeros(1, np.int64)
    start, count = 0, len(strings)
    while start < count:
        stop = int(np.searchsorted(offsets, offsets[start] + _BYTES_AT_ONCE, "right")) - 1
        stop = min(max(stop, start + 1), count)
        yield start, stop
        start = stop


def _package() -> Any:
    try:
        import tokenizers
    except ImportError as error:
        raise OpError(
            f"the package tokenizers is missing ({error})\n  pip install 'seqflow[text]'"
        ) from error
    return tokenizers


def _tokenizer(given: Any) -> Any:
    """The Tokenizer that an attribute stands for: itself, a file, or the text of a file."""
    tokenizers = _package()
    if isinstance(given, tokenizers.Tokenizer):
        return given
    if isinstance(given, (str, os.PathLike)):
        return _load_file(Path(given))
    if isinstance(given, np.ndarray) and given.dtype == np.uint8:
        return _load(given.tobytes(), "its bytes are")
    raise OpTypeError(
        f"tokenizer is {type(given).__name__}, expected a path, a Tokenizer, or what train_tokenizer gives"
    )


def _load_file(path: Path) -> Any:
    try:
        return _load(path.read_bytes(), f"{path} is")
    except OSError as error:
        raise OpError(f"tokenizer is {str(path)!r}: {error.strerror}") from error


@lru_cache(maxsize=8)
def _load(text: bytes, origin: str) -> Any:
    try:
        tokenizer = _package().Tokenizer.from_str(text.decode())
    except Exception as error:  # the package raises Exception itself
        raise OpError(f"tokenizer: {origin} not a tokenizer file: {error}") from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _check_ids(tokens: Array, tokenizer: Any) -> None:
    """OpIndexError for the first id that the tokenizer does not know."""
    distinct = np.unique(tokens)
    fits = (distinct >= 0) & (distinct < 2**32)
    known = [ok and tokenizer.id_to_token(int(i)) is not None for i, ok in zip(distinct, fits, strict=True)]
    if not all(known):
        unknown = np.isin(tokens, distinct[~np.array(known)])
        i = int(np.argmax(unknown))
        size = tokenizer.get_vocab_size()
        raise OpIndexError(f"tokens[{i}] = {tokens[i]} is not an id of the tokenizer, which has {size}")
