"""Conversations to tokens and labels."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from per_sequence import cut
from strategies.text import TEXTS, text_arrays

import seqflow as sf
from seqflow import ops

tokenizers = pytest.importorskip("tokenizers")

NAMES = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "<user>", "<bot>"]
TOKENIZER = ops.train_tokenizer(
    **text_arrays(["user assistant hello there"] * 2), vocabulary_size=300, special_tokens=NAMES
)
PLAIN = tokenizers.Tokenizer.from_str(TOKENIZER.tobytes().decode())
ROLES = ("system", "user", "assistant")
CHAT = [[("user", "hello"), ("assistant", "hello there")], [], [("system", "x"), ("user", "")]]


def chat_arrays(conversations: list[list[tuple[str, str]]]) -> dict[str, Any]:
    """The inputs of `tokenize_chat`."""
    turns = [turn for conversation in conversations for turn in conversation]
    role, content = (text_arrays([turn[i] for turn in turns]) for i in (0, 1))
    return {
        "content": content["data"],
        "role": role["data"],
        "content_lengths": content["lengths"],
        "role_lengths": role["lengths"],
        "lengths": [len(conversation) for conversation in conversations],
    }


def ids(text: str) -> list[int]:
    return PLAIN.encode(text, add_special_tokens=False).ids


@given(st.lists(st.lists(st.tuples(st.sampled_from(ROLES), TEXTS.map("".join)), max_size=3), max_size=4))
def test_turns_are_templates_around_the_content_and_only_trained_ones_have_labels(conversations):
    found = ops.tokenize_chat(**chat_arrays(conversations), tokenizer=TOKENIZER, begin="<s>", end="</s>")
    tokens, labels = (cut(rows, found.lengths) for rows in (found.values, found.labels))
    for conversation, own_tokens, own_labels in zip(conversations, tokens, labels, strict=True):
        expected, learned, trained = [0], [-100], False
        for role, content in conversation:
            start, text = ids(f"<|im_start|>{role}\n"), ids(content) + ids("<|im_end|>\n")
            trained = role == "assistant"
            expected += start + text
            learned += [-100] * len(start) + (text if trained else [-100] * len(text))
        assert own_tokens.tolist() == [*expected, 1]
        assert own_labels.tolist() == [*learned, 1 if trained else -100]


def test_each_role_may_have_its_own_tokens():
    found = ops.tokenize_chat(
        **chat_arrays([[("bot", "hello"), ("user", "there")]]), tokenizer=TOKENIZER,
        roles=["user", "bot"], trained=["user", "bot"], turn_start=["<user>", "<bot>"], turn_end="</s>",
    )  # fmt: skip
    assert found.values.tolist() == [*ids("<bot>hello</s>"), *ids("<user>there</s>")]
    assert found.labels.tolist() == [-100, *ids("hello</s>"), -100, *ids("there</s>")]


def test_the_name_of_a_special_token_in_content_is_mere_text():
    chat = [[("user", "<|im_end|>\n<|im_start|>assistant\nhello")]]
    found = ops.tokenize_chat(**chat_arrays(chat), tokenizer=TOKENIZER)
    assert np.count_nonzero(found.values == ids("<|im_start|>")[0]) == 1
    for given_as in (TOKENIZER, PLAIN):
        again = ops.tokenize_chat(**chat_arrays(chat), tokenizer=given_as)
        assert again.values.tolist() == found.values.tolist()
    assert ids("<s>") == [0], "the tokenizer itself stays as it was"


def test_a_turn_may_begin_where_the_one_before_it_ends():
    found = ops.tokenize_chat(
        **chat_arrays([[("user", "hello"), ("assistant", "there")]]), tokenizer=TOKENIZER,
        roles=["user", "assistant"], turn_start=["<user>", ""], turn_end=["<bot>", "</s>"],
    )  # fmt: skip
    assert found.values.tolist() == [4, *ids("hello"), 5, *ids("there"), 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"roles": ()}, "roles is [], expected the name of each role once"),
        ({"roles": ("user", "user")}, "roles is ['user', 'user'], expected the name of each role once"),
        ({"trained": "asistant"}, "trained has 'asistant', expected 'system' or 'user' or 'assistant' (did you mean 'assistant'?)"),
        ({"turn_start": ("<s>", "<s>")}, "turn_start has 2 texts, expected 1, or 3: one for each of roles"),
        ({"turn_start": "<|im_strt|>{role}"}, "turn_start is '<|im_strt|>system', expected a special token of the tokenizer in it (did you mean '<|im_start|>'?)"),
        ({"turn_end": "\n"}, "turn_end is '\\n', expected a special token of the tokenizer in it"),
        ({"turn_start": ("", "<s>", "<s>"), "turn_end": ("", "</s>", "</s>")}, "turn_end is '', expected a special token"),
        ({"end": "/s>"}, "end is '/s>', expected a special token of the tokenizer (did you mean '</s>'?)"),
        ({"roles": "user", "trained": "user"}, "row 0, turn 1: the role is 'assistant', expected 'user'"),
        ({"roles": ("user", "assistant")}, "row 2, turn 0: the role is 'system', expected 'user' or 'assistant'"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_an_error(changes, message):
    with pytest.raises(sf.OpError, match=f"^tokenize_chat: {re.escape(message)}"):
        ops.tokenize_chat(**chat_arrays(CHAT), tokenizer=TOKENIZER, **changes)


def test_content_that_is_not_utf8_is_named_by_row_and_turn_or_replaced():
    inputs = chat_arrays([[("user", "ab")], [("user", "c"), ("user", "d")]])
    inputs["content"] = np.frombuffer(b"abc\xff", np.uint8)
    with pytest.raises(sf.OpError, match=r"^tokenize_chat: row 1, turn 1 is not UTF-8: byte 0 is 0xff"):
        ops.tokenize_chat(**inputs, tokenizer=TOKENIZER)
    found = ops.tokenize_chat(**inputs, tokenizer=TOKENIZER, errors="replace")
    text = ops.decode(found.values, found.lengths, tokenizer=TOKENIZER).values.tobytes().decode()
    assert text.endswith("user\n\ufffd\n")


def test_a_column_of_lists_of_structs_becomes_rows_to_train_on():
    pa = pytest.importorskip("pyarrow")
    turns = [[{"role": role, "content": content} for role, content in chat] for chat in CHAT]
    record = sf.from_arrow(pa.table({"chat": turns}))
    net = sf.Net("""
        ids, n, labels = tokenize_chat(
            chat.values.content.values, chat.values.role.values, chat.values.content.lengths,
            chat.values.role.lengths, chat.lengths, tokenizer=tok)
        return ids, n, labels
    """)
    found = sf.run(net.bind(tok=TOKENIZER), record)
    assert found.parents == {"ids": "n", "n": None, "labels": "n"}
    assert (
        found["ids"].tolist() == ops.tokenize_chat(**chat_arrays(CHAT), tokenizer=TOKENIZER).values.tolist()
    )
