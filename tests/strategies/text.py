"""Inputs for ops on text."""

from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

from seqflow import registry

Call = tuple[dict[str, Any], dict[str, Any]]
TEXTS = st.lists(st.text("aB é\u0301ß語\U0001f600\u3000\t", max_size=6), max_size=4)


def text_arrays(texts: list[str]) -> dict[str, Any]:
    """Strings as UTF-8 bytes and lengths."""
    pieces = [text.encode() for text in texts]
    return {
        "data": np.frombuffer(b"".join(pieces), np.uint8),
        "lengths": np.array([len(piece) for piece in pieces], np.int64),
    }


@st.composite
def _text(draw: Any, op: Any = None) -> Call:
    return text_arrays(draw(TEXTS)), {}


@st.composite
def _trainable(draw: Any, op: Any = None) -> Call:
    return text_arrays(draw(TEXTS)), {"vocabulary_size": draw(st.integers(256, 260))}


@cache
def _tokenizer() -> np.ndarray[Any, Any]:
    """A small tokenizer, as `train_tokenizer` gives it."""
    return registry.get("train_tokenizer").call(**text_arrays(["a B", "aé aé"]), vocabulary_size=258)


@st.composite
def _tokenizable(draw: Any, op: Any = None) -> Call:
    return text_arrays(draw(TEXTS)), {"tokenizer": _tokenizer()}


@st.composite
def _detokenizable(draw: Any, op: Any = None) -> Call:
    inputs, attributes = draw(_tokenizable())
    tokens, lengths = registry.get("tokenize").call(**inputs, **attributes)
    return {"tokens": tokens, "lengths": lengths}, attributes


TEXT = {
    "lower": _text,
    "normalize": _text,
    "split_words": _text,
    "train_tokenizer": _trainable,
    "tokenize": _tokenizable,
    "decode": _detokenizable,
}
