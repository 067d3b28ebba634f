"""Texts that are tokenised piece by piece get the ids they have whole."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from per_sequence import cut
from strategies.text import text_arrays

from seqflow import ops

tokenizers = pytest.importorskip("tokenizers")

ODD = " \t\n\r\x0b\x0c\x1c\x1f\x00\x7f\u0085\u00a0\u2003\u3000'sStTlLdD_.<|>12²Ⅷéẞ\u0301語😀"
"""White space of all kinds, what is nearly that, contractions, and letters and digits beyond ASCII."""
LEARNED = ops.train_tokenizer(
    **text_arrays(["it's 12 small\n\n    tests; the cats' <|x|> don't", "it's  the end"] * 2),
    vocabulary_size=330,
    special_tokens=["<|x|>", "< >"],
)


def loaded():
    return tokenizers.Tokenizer.from_str(LEARNED.tobytes().decode())


def check(tokenizer, texts, **options):
    tokens = ops.tokenize(**text_arrays(texts), tokenizer=tokenizer)
    found = [piece.tolist() for piece in cut(tokens.values, tokens.lengths)]
    assert found == [tokenizer.encode(text, **options).ids for text in texts]


@given(st.lists(st.text(ODD, max_size=12) | st.text(max_size=8), max_size=4))
@settings(max_examples=settings.default.max_examples * 4)
@example(["x  \u00a0y", "x  ", "y", " \n y", "don't  's 'll1 x's_", "''s ('t)'s1"])
@example(["a  <|x|> b", "a < > b", "<|x|", "|>", "", " "])
def test_the_ids_of_a_text_are_those_of_its_pieces(texts):
    check(loaded(), texts)


def changed(change):
    tokenizer = loaded()
    change(tokenizer)
    return tokenizer


def lower(tokenizer):
    tokenizer.normalizer = tokenizers.normalizers.Lowercase()


def prefix(tokenizer):
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)


def no_expression(tokenizer):
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def words(tokenizer):
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [tokenizers.pre_tokenizers.Digits(), tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )


def nothing_before(tokenizer):
    tokenizer.model = tokenizers.models.WordLevel({"it's": 0, "[?]": 1}, unk_token="[?]")
    tokenizer.pre_tokenizer = None


def template(tokenizer):
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<|x|> $A", special_tokens=[("<|x|>", 0)]
    )


def cut_short(tokenizer):
    tokenizer.enable_truncation(3)


def stripping(tokenizer):
    tokenizer.add_special_tokens([tokenizers.AddedToken("the", lstrip=True, rstrip=True)])


def many_added(tokenizer):
    tokenizer.add_tokens([f"s{i}" for i in range(100)])


@pytest.mark.parametrize(
    "change",
    [lower, prefix, no_expression, words, nothing_before, template, cut_short, stripping, many_added],
)
def test_other_tokenizers_get_their_texts_whole(change):
    check(changed(change), ["it's  the END\n\n of s1 1s the \u00a0cats'", "", " it's", "the  <|x|>  the "])


def test_dropout_draws_anew_for_every_text():
    tokenizer = loaded()
    tokenizer.model.dropout = 0.5
    tokens = ops.tokenize(**text_arrays(["tests"] * 100), tokenizer=tokenizer)
    assert len({tuple(piece) for piece in cut(tokens.values, tokens.lengths)}) > 1


def templates():
    processors = tokenizers.processors
    specials = [("<|x|>", 0), ("< >", 1)]
    for single in ("$A $A", "$A:1", "$A", "<|x|> $A <|x|>", "<|x|> $A $A", "<|x|>"):
        yield processors.TemplateProcessing(single=single, pair="$A $B", special_tokens=specials[:1])
    yield processors.BertProcessing(*specials)
    yield processors.RobertaProcessing(*specials)
    yield processors.Sequence([processors.ByteLevel(), next(templates())])
    yield processors.Sequence([])


@pytest.mark.parametrize("special_tokens", [True, False])
@pytest.mark.parametrize("processor", list(templates()), ids=str)
def test_what_comes_after_the_model_is_done_to_the_whole_text(processor, special_tokens):
    tokenizer, texts = loaded(), ["it's the end ", "", "a b"]
    tokenizer.post_processor = processor
    tokens = ops.tokenize(**text_arrays(texts), tokenizer=tokenizer, special_tokens=special_tokens)
    found = [piece.tolist() for piece in cut(tokens.values, tokens.lengths)]
    assert found == [tokenizer.encode(text, add_special_tokens=special_tokens).ids for text in texts]
