"""Reasoning and tool messages: each turn becomes one text, and the model learns what the assistant writes.

python examples/chat_with_tools.py

`tokenize_chat` reads `role` and `content`. Reasoning and calls of tools are columns of their own, so `text_of` writes
them into `content` as the chat template of the model does; here the one of Qwen. Answers of tools are a role. The
names of special tokens stay plain text: where `<think>` is one, its ids differ from those of the template.
"""

import json

import numpy as np
import pyarrow as pa

import seqflow as sf

CHAT = [
    {"role": "user", "content": "What is 17 * 3?"},
    {
        "role": "assistant",
        "reasoning_content": "A product: ask the tool.",
        "tool_calls": [{"name": "multiply", "arguments": {"a": 17, "b": 3}}],
    },
    {"role": "tool", "content": "51"},
    {"role": "assistant", "content": "It is 51."},
]


def text_of(turn):
    """Return the content of a turn, with its reasoning and its calls."""
    thought = turn.get("reasoning_content")
    calls = [f"<tool_call>\n{json.dumps(call)}\n</tool_call>" for call in turn.get("tool_calls") or ()]
    return "".join([f"<think>\n{thought}\n</think>\n" if thought else "", turn.get("content") or "", *calls])


turns = [[{"role": turn["role"], "content": text_of(turn)} for turn in chat] for chat in [CHAT]]
table = pa.table({"messages": turns})
letters = np.frombuffer("".join(turn["content"] for turn in turns[0]).encode(), np.uint8)
markers = ["<|im_start|>", "<|im_end|>"]
tokenizer = sf.ops.train_tokenizer(letters, [len(letters)], vocabulary_size=300, special_tokens=markers)
prepare = """
ids, n, labels = tokenize_chat(
    messages.values.content.values, messages.values.role.values,
    messages.values.content.lengths, messages.values.role.lengths, messages.lengths,
    tokenizer=tokenizer, roles=["user", "assistant", "tool"], trained="assistant")
return ids, n, labels
"""
packed = sf.Packed(512, ("ids", "labels"), fills={"labels": -100}, rows=1)
(batch,) = sf.Loader(table, prepare=prepare, constants={"tokenizer": tokenizer}, batch=packed)
learnt = batch["labels"][batch["labels"] != -100]
text = (
    sf.ops.decode(learnt, [len(learnt)], tokenizer=tokenizer, special_tokens=True).values.tobytes().decode()
)
assert "multiply" in text
assert "It is 51." in text
assert "17 * 3?" not in text
print(text)
