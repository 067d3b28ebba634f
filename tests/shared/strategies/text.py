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


_NAMES = ("<s>", "</s>", "<|im_start|>", "<|im_end|>")


@cache
def _tokenizer() -> np.ndarray[Any, Any]:
    """A small tokenizer, as `train_tokenizer` gives it."""
    return registry.get("train_tokenizer").call(
        **text_arrays(["a B", "aé aé"]), vocabulary_size=262, special_tokens=_NAMES
    )


@st.composite
def _tokenizable(draw: Any, op: Any = None) -> Call:
    return text_arrays(draw(TEXTS)), {"tokenizer": _tokenizer()}


@st.composite
def _detokenizable(draw: Any, op: Any = None) -> Call:
    inputs, attributes = draw(_tokenizable())
    tokens, lengths = registry.get("tokenize").call(**inputs, **attributes)
    return {"tokens": tokens, "lengths": lengths}, attributes


@st.composite
def _conversations(draw: Any, op: Any = None) -> Call:
    roles = st.sampled_from(["system", "user", "assistant"])
    conversations = draw(st.lists(st.lists(st.tuples(roles, TEXTS.map("".join)), max_size=3), max_size=3))
    turns = [turn for conversation in conversations for turn in conversation]
    role, content = (text_arrays([turn[i] for turn in turns]) for i in (0, 1))
    inputs = {
        "content": content["data"],
        "role": role["data"],
        "content_lengths": content["lengths"],
        "role_lengths": role["lengths"],
        "lengths": np.array([len(conversation) for conversation in conversations], np.int64),
    }
    ends = draw(st.sampled_from([{}, {"begin": "<s>"}, {"end": "</s>"}, {"begin": "<s>", "end": "</s>"}]))
    return inputs, {"tokenizer": _tokenizer(), **ends}


TEXT = {
    "lower": _text,
    "as_text": _text,
    "normalize": _text,
    "normalize_offsets": _text,
    "split_words": _text,
    "train_tokenizer": _trainable,
    "tokenize": _tokenizable,
    "word_offsets": _text,
    "token_offsets": _tokenizable,
    "decode": _detokenizable,
    "tokenize_chat": _conversations,
}
