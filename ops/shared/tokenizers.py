"""Hugging Face tokenizers (the package tokenizers): loaded, learned, and run on many texts at once."""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from seqflow.errors import OpError, OpTypeError, nearest
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.distinct_pieces import encode_all, encode_pieces, has_pieces, ids_of, tokenizer_errors

_BYTES_AT_ONCE = 1 << 23
"""Number of bytes of text that are Python strings and encodings at a time."""


LONGEST_WORD = 1000
"""Number of characters after which the texts of a trainer are cut inside a word: its time grows with their square."""
_MAY_BE_LONG = re.compile(rf"\S{{{LONGEST_WORD}}}|\s{{{LONGEST_WORD}}}")
_log = logging.getLogger("seqflow")


def tokenizer_of(given: Any, *, literal: bool = False) -> Any:
    """Return the Tokenizer for an attribute: a Tokenizer, a file, or the content of a file.

    A `literal` Tokenizer treats the name of a special token in a text as plain text.
    """
    tokenizers = _package()
    if isinstance(given, tokenizers.Tokenizer):
        return _load(given.to_str().encode(), "it is", True) if literal else given
    if isinstance(given, (str, os.PathLike)):
        return _load_file(Path(given), literal)
    if isinstance(given, np.ndarray) and given.dtype == np.uint8:
        return _load(given.tobytes(), "its bytes are", literal)
    raise OpTypeError(
        f"tokenizer is {type(given).__name__}, expected a path, a Tokenizer, or what train_tokenizer gives"
    )


def encoder_of(given: Any, *, literal: bool = False) -> Any:
    """Return the Tokenizer for encoding; raise OpError for a Tokenizer that pads."""
    encoder = tokenizer_of(given, literal=literal)
    if encoder.padding is not None:
        raise OpError("tokenizer pads its output", advice="call its no_padding() first; `pad` pads")
    return encoder


def special_id(tokenizer: Any, attribute: str, name: str | None) -> int | None:
    """Return the id of the special token that an attribute names; raise OpError if the tokenizer does not have it."""
    if name is None:
        return None
    known = special_tokens(tokenizer)
    if name not in known:
        listed = ", ".join(map(repr, known)) or "none"
        raise OpError(
            f"{attribute} is {name!r}, expected a special token of the tokenizer{nearest(name, known)}",
            advice=f"it has {listed}",
        )
    return known[name]


def special_tokens(tokenizer: Any) -> dict[str, int]:
    """Return the ids of the tokens that were added to the vocabulary by name."""
    return {token.content: number for number, token in tokenizer.get_added_tokens_decoder().items()}


def check_special_tokens(attributes: Mapping[str, Any]) -> None:
    """Raise OpError unless the tokenizer of these attributes exists and has the special tokens that they name."""
    tokenizer = tokenizer_of(attributes["tokenizer"])
    for name in ("begin", "end"):
        special_id(tokenizer, name, attributes.get(name))


def encode(tokenizer: Any, strings: Any, special_tokens: bool) -> tuple[Array, Array]:
    """Return the ids of all strings of an Arrow array, and the number of ids of each."""
    in_pieces = has_pieces(tokenizer, special_tokens)
    ids, sizes = [np.empty(0, np.int32)], [np.empty(0, np.int64)]
    for start, stop in portions(strings):
        portion = strings[start:stop]
        found, counts = (
            encode_pieces(tokenizer, portion)
            if in_pieces
            else ids_of(encode_all(tokenizer, portion.to_pylist(), special_tokens))
        )
        ids.append(found)
        sizes.append(counts)
    return np.concatenate(ids), np.concatenate(sizes)


def offsets_of(tokenizer: Any, texts: list[str], special_tokens: bool) -> list[list[tuple[int, int]]]:
    """Return where each token of each text starts and ends, in characters of the text."""
    with tokenizer_errors("it cannot encode the text"):
        encodings = tokenizer.encode_batch(texts, add_special_tokens=special_tokens)
    return [encoding.offsets for encoding in encodings]


def decode_all(tokenizer: Any, sequences: list[list[int]], special_tokens: bool) -> list[str]:
    """Return the text of each sequence of ids."""
    with tokenizer_errors("it cannot decode the ids"):
        texts: list[str] = tokenizer.decode_batch(sequences, skip_special_tokens=not special_tokens)
    return texts


def learn(
    portions: Iterable[Sequence[str]], vocabulary_size: int, min_frequency: int, specials: Sequence[str]
) -> bytes:
    """Return the file of a byte-level BPE tokenizer (Sennrich et al., 2016) learned from portions of texts.

    The trainer reserves memory for `vocabulary_size` ids, even if the texts give fewer. Words of more than
    LONGEST_WORD characters are cut, with a warning.
    """
    if "" in specials:
        raise OpError("special_tokens has an empty text, expected names of tokens")
    least = 256 + len(specials)
    if vocabulary_size < least:
        raise OpError(
            f"vocabulary_size is {vocabulary_size}, expected {least} or more:"
            f" 256 bytes and {len(specials)} special tokens"
        )
    tokenizers = _package()
    learner = tokenizers.Tokenizer(tokenizers.models.BPE())
    learner.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    learner.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocabulary_size,
        min_frequency=min_frequency,
        special_tokens=list(specials),
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    learner.train_from_iterator(_without_long_words(portions, learner.pre_tokenizer), trainer)
    text: str = learner.to_str()
    return text.encode()


def _without_long_words(portions: Iterable[Sequence[str]], words: Any) -> Iterator[list[str]]:
    """Yield portions of texts in which long words are cut: the rest of such a word begins a text of its own."""
    is_said = False
    for portion in portions:
        pieces: list[str] = []
        for text in portion:
            cuts = [0]
            if _MAY_BE_LONG.search(text):
                for _, (start, stop) in words.pre_tokenize_str(text):
                    cuts += range(start + LONGEST_WORD, stop, LONGEST_WORD)
            if len(cuts) > 1 and not is_said:
                is_said, begin = True, cuts[1] - LONGEST_WORD
                shown = text[begin : begin + 20]
                _log.warning(
                    "words are cut after %s characters; one begins with %r", f"{LONGEST_WORD:,}", shown
                )
            pieces += [text[start:stop] for start, stop in pairwise([*cuts, len(text)])]
        yield pieces


def portions(strings: Any) -> Iterator[tuple[int, int]]:
    """Yield start and stop of portions of an array of large strings, each of bounded size or with one string."""
    first = strings.offset
    offsets = np.zeros(1, np.int64)
    if len(strings):
        offsets = np.frombuffer(strings.buffers()[1], np.int64)[first : first + len(strings) + 1]
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
            f"the package tokenizers is missing ({error})",
            advice="pip install '.[text]' in a clone of seqflow",
        ) from error
    return tokenizers


def _load_file(path: Path, literal: bool) -> Any:
    try:
        return _load(path.read_bytes(), f"{path} is", literal)
    except OSError as error:
        raise OpError(
            f"tokenizer is {str(path)!r}: {error.strerror}",
            advice="expected the path of a tokenizer.json, as save_pretrained and `seqflow train-tokenizer` write it",
        ) from error


@lru_cache(maxsize=8)
def _load(text: bytes, origin: str, literal: bool) -> Any:
    package = _package()
    with tokenizer_errors(f"{origin} not a tokenizer file"):
        tokenizer = package.Tokenizer.from_str(text.decode())
    tokenizer.no_padding()  # a file's settings are of the model it was saved with; `pad` and `truncate` do this here
    tokenizer.no_truncation()
    tokenizer.encode_special_tokens = literal
    return tokenizer
