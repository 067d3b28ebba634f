"""Text to tokens and back by a Hugging Face tokenizer."""

import json
import sys

import numpy as np
import pytest
from hypothesis import given
from per_sequence import assert_same, cut
from strategies.text import TEXTS, text_arrays

import seqflow as sf
from seqflow import ops
from seqflow.errors import OpIndexError, OpTypeError

tokenizers = pytest.importorskip("tokenizers")

LEARNED_FROM = text_arrays(["low lower lowest", "new newer newest", "ébé"])
TOKENIZER = ops.train_tokenizer(**LEARNED_FROM, vocabulary_size=290, special_tokens=["<s>", "</s>"])


def strings(data, lengths):
    return [piece.tobytes().decode() for piece in cut(data, lengths)]


def with_template():
    """The tokenizer as an object, which puts <s> and </s> around each text."""
    tokenizer = tokenizers.Tokenizer.from_str(TOKENIZER.tobytes().decode())
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    return tokenizer


@given(TEXTS)
def test_decode_undoes_tokenize(texts):
    inputs = text_arrays(texts)
    tokens = ops.tokenize(**inputs, tokenizer=TOKENIZER)
    result = ops.decode(*tokens, tokenizer=TOKENIZER)
    assert strings(result.values, result.lengths) == texts
    assert result.lengths.tolist() == inputs["lengths"].tolist()


@given(TEXTS)
def test_each_string_gets_the_ids_it_has_alone(texts):
    plain = tokenizers.Tokenizer.from_str(TOKENIZER.tobytes().decode())
    tokens = ops.tokenize(**text_arrays(texts), tokenizer=TOKENIZER)
    assert tokens.values.dtype == np.int32
    found = [piece.tolist() for piece in cut(tokens.values, tokens.lengths)]
    assert found == [plain.encode(text).ids for text in texts]


def test_learned_pairs_make_text_shorter():
    sizes = ops.tokenize(**LEARNED_FROM, tokenizer=TOKENIZER).lengths
    assert (sizes < LEARNED_FROM["lengths"]).all()


def test_a_tokenizer_is_a_file_an_array_or_an_object(tmp_path):
    path = tmp_path / "tokenizer.json"
    TOKENIZER.tofile(path)
    given_as = [TOKENIZER, path, str(path), tokenizers.Tokenizer.from_file(str(path))]
    first, *others = (ops.tokenize(**LEARNED_FROM, tokenizer=tokenizer) for tokenizer in given_as)
    for other in others:
        assert_same(other.values, first.values)


def test_a_changed_file_is_read_again(tmp_path):
    path = tmp_path / "tokenizer.json"
    TOKENIZER.tofile(path)
    before = ops.tokenize(**LEARNED_FROM, tokenizer=path).lengths.sum()
    ops.train_tokenizer(**LEARNED_FROM, vocabulary_size=256).tofile(path)
    assert (
        ops.tokenize(**LEARNED_FROM, tokenizer=path).lengths.sum() == LEARNED_FROM["lengths"].sum() > before
    )


def test_special_tokens_come_and_go_as_asked():
    tokenizer, inputs = with_template(), text_arrays(["low", ""])
    tokens = ops.tokenize(**inputs, tokenizer=tokenizer)
    assert [piece[[0, -1]].tolist() for piece in cut(tokens.values, tokens.lengths)] == [[0, 1], [0, 1]]
    assert tokens.lengths.tolist()[1] == 2
    assert ops.tokenize(**inputs, tokenizer=tokenizer, special_tokens=False).lengths.tolist()[1] == 0
    assert strings(*ops.decode(*tokens, tokenizer=tokenizer)) == ["low", ""]
    assert strings(*ops.decode(*tokens, tokenizer=tokenizer, special_tokens=True)) == [
        "<s>low</s>",
        "<s></s>",
    ]


def test_the_padding_and_truncation_of_a_file_are_left_out(tmp_path):
    tokenizer = with_template()
    tokenizer.enable_padding(length=50)
    tokenizer.enable_truncation(max_length=1)
    path = tmp_path / "tokenizer.json"
    tokenizer.save(str(path))
    expected = ops.tokenize(**LEARNED_FROM, tokenizer=with_template())
    assert_same(ops.tokenize(**LEARNED_FROM, tokenizer=path).values, expected.values)
    with pytest.raises(sf.OpError, match=r"^tokenize: tokenizer pads its output"):
        ops.tokenize(**LEARNED_FROM, tokenizer=tokenizer)


def test_much_text_is_tokenised_in_portions():
    texts = ["low " * 1_000, "", "new", "lower " * 1_000_000, "x"]
    tokens = ops.tokenize(**text_arrays(texts), tokenizer=TOKENIZER)
    expected = [ops.tokenize(**text_arrays([text]), tokenizer=TOKENIZER).values for text in texts]
    for found, alone in zip(cut(tokens.values, tokens.lengths), expected, strict=True):
        assert_same(found, alone)


@pytest.mark.parametrize(("bad", "place"), [([0, 290], 1), ([-1, 0], 0), ([0, 2**40], 1)])
def test_an_id_that_the_tokenizer_does_not_know_is_an_error(bad, place):
    message = rf"^decode: tokens\[{place}\] = {bad[place]} is not an id of the tokenizer, which has \d+"
    with pytest.raises(OpIndexError, match=message):
        ops.decode(np.array(bad), [2], tokenizer=TOKENIZER)


def test_what_is_no_tokenizer_is_an_error(tmp_path):
    for bad in (None, 3, np.zeros(3)):
        with pytest.raises(
            OpTypeError, match=r"^tokenize: tokenizer is \w+, expected a path, a Tokenizer, or"
        ):
            ops.tokenize(**LEARNED_FROM, tokenizer=bad)
    with pytest.raises(sf.OpError, match=r"^tokenize: tokenizer is '.*none.json': No such file"):
        ops.tokenize(**LEARNED_FROM, tokenizer=tmp_path / "none.json")
    for content in (b"{}", b"\xff", b""):
        (tmp_path / "bad.json").write_bytes(content)
        with pytest.raises(sf.OpError, match=r"^tokenize: tokenizer: .*bad.json is not a tokenizer file"):
            ops.tokenize(**LEARNED_FROM, tokenizer=str(tmp_path / "bad.json"))
        with pytest.raises(sf.OpError, match=r"^decode: tokenizer: its bytes are not a tokenizer file"):
            ops.decode([1], [1], tokenizer=np.frombuffer(content, np.uint8))


def test_text_that_is_not_utf8_is_named_or_replaced():
    data, lengths = np.frombuffer(b"low\xffnew", np.uint8), [3, 4]
    for op, more in (
        (ops.tokenize, {"tokenizer": TOKENIZER}),
        (ops.train_tokenizer, {"vocabulary_size": 256}),
    ):
        with pytest.raises(sf.OpError, match=f"^{op.__name__}: sequence 1 is not UTF-8: byte 0 is 0xff"):
            op(data, lengths, **more)
    tokens = ops.tokenize(data, lengths, tokenizer=TOKENIZER, errors="replace")
    assert strings(*ops.decode(*tokens, tokenizer=TOKENIZER)) == ["low", "\ufffdnew"]


def test_a_vocabulary_has_room_for_bytes_and_special_tokens():
    with pytest.raises(sf.OpError, match=r"^train_tokenizer: vocabulary_size is 256, expected 257 or more"):
        ops.train_tokenizer(**LEARNED_FROM, vocabulary_size=256, special_tokens=["<s>"])
    with pytest.raises(sf.OpError, match=r"^train_tokenizer: special_tokens has an empty text"):
        ops.train_tokenizer(**LEARNED_FROM, vocabulary_size=300, special_tokens=[""])
    for bad in (b"<s>", [1], None):
        with pytest.raises(
            OpTypeError, match=r"^train_tokenizer: special_tokens is .*, expected text or a list of texts"
        ):
            ops.train_tokenizer(**LEARNED_FROM, vocabulary_size=300, special_tokens=bad)


def test_training_is_the_same_every_time():
    again = ops.train_tokenizer(**LEARNED_FROM, vocabulary_size=290, special_tokens=["<s>", "</s>"])
    assert_same(again, TOKENIZER)


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(
        sf.OpError,
        match=r"(?s)^tokenize: the package tokenizers is missing.*pip install '\.\[text\]' in a clone",
    ):
        ops.tokenize(**LEARNED_FROM, tokenizer="tokenizer.json")


def test_special_tokens_are_added_by_name():
    inputs = text_arrays(["low", ""])
    plain = ops.tokenize(**inputs, tokenizer=TOKENIZER)
    tokens = ops.tokenize(**inputs, tokenizer=TOKENIZER, begin="<s>", end="</s>")
    assert tokens.values.tolist() == [0, *plain.values, 1, 0, 1]
    assert tokens.lengths.tolist() == (plain.lengths + 2).tolist()
    assert ops.tokenize(**inputs, tokenizer=TOKENIZER, end="</s>").lengths.tolist()[1] == 1


def test_a_special_token_that_the_tokenizer_has_not_is_an_error_with_the_nearest():
    inputs = text_arrays(["low"])
    with pytest.raises(sf.OpError) as error:
        ops.tokenize(**inputs, tokenizer=TOKENIZER, end="/s>")
    first, second = str(error.value).split("\n")[:2]
    assert first.startswith(
        "tokenize: end is '/s>', expected a special token of the tokenizer (did you mean '</s>'?)"
    )
    assert second == "  it has '<s>', '</s>'"
    with pytest.raises(
        sf.OpError, match="end is 'low', expected a special token"
    ):  # a token, but not a special one
        ops.tokenize(**inputs, tokenizer=TOKENIZER, end="low")


def test_many_portions_are_tokenised_as_one(monkeypatch):
    texts = ["new low", "", "é", "lower " * 9] * 5
    expected = ops.tokenize(**text_arrays(texts), tokenizer=TOKENIZER, end="</s>")
    monkeypatch.setattr("seqflow.ops.shared.tokenizers._BYTES_AT_ONCE", 10)
    found = ops.tokenize(**text_arrays(texts), tokenizer=TOKENIZER, end="</s>")
    assert_same(found.values, expected.values)
    assert_same(found.lengths, expected.lengths)


def test_what_makes_the_package_fail_is_an_error_of_ours(capfd, tmp_path):
    """A template with a special token that it does not know is a panic of Rust, which is no Exception."""
    path = tmp_path / "tokenizer.json"
    described = json.loads(
        tokenizers.Tokenizer(tokenizers.models.WordLevel({"the": 0}, unk_token="?")).to_str()
    )
    path.write_text(json.dumps(described))
    text, lengths = np.frombuffer(b"the cat", np.uint8), np.array([7])
    with pytest.raises(sf.OpError, match=r"^tokenize: tokenizer: it cannot encode the text: .*\[UNK\] token"):
        ops.tokenize(text, lengths, tokenizer=path)
    described["model"]["unk_token"] = "the"
    sequences = [{"Sequence": {"id": part, "type_id": 0}} for part in "AB"]
    described["post_processor"] = {
        "type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[X]", "type_id": 0}}, sequences[0]],
        "pair": sequences, "special_tokens": {},
    }  # fmt: skip
    path.write_text(json.dumps(described))
    with pytest.raises(sf.OpError, match=r"^tokenize: tokenizer: "):
        ops.tokenize(text, lengths, tokenizer=path)


def test_an_id_beyond_int32_is_an_error():
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({"the": 0, "cat": 2**32 - 1}, unk_token="the")
    )
    with pytest.raises(
        sf.OpError, match=r"^tokenize: tokenizer: it has the id 4294967295, expected less than"
    ):
        ops.tokenize(np.frombuffer(b"cat", np.uint8), [3], tokenizer=tokenizer)


LONG_WORDS = {
    "letters": ("a" * 2500, ["a" * 1000, "a" * 1000, "a" * 500]),
    "after others": ("low lower" + "b" * 1200 + " low", ["low lower" + "b" * 995, "b" * 205 + " low"]),
    "digits and signs": ("1" * 1500 + "-" * 1100, ["1" * 1000, "1" * 500 + "-" * 1000, "-" * 100]),
    "blanks": (" " * 2000 + "x", [" " * 1000, " " * 999 + " x"]),
    "of characters of several bytes": ("é" * 1500, ["é" * 1000, "é" * 500]),
    "long text of short words": ("low," * 400, ["low," * 400]),
}


@pytest.mark.parametrize(("text", "cut"), LONG_WORDS.values(), ids=LONG_WORDS)
def test_long_words_are_cut_for_learning(text, cut, caplog):
    def learned(texts):
        data = [one.encode() for one in texts]
        lengths = np.array([len(one) for one in data])
        return ops.train_tokenizer(
            np.frombuffer(b"".join(data), np.uint8), lengths, vocabulary_size=400
        ).tobytes()

    found = learned([text])
    assert ("words are cut after 1,000 characters" in caplog.text) == (len(cut) > 1)
    assert found == learned(cut)


def test_a_row_of_equal_letters_is_learned_in_a_moment():
    """Without cuts this takes minutes: the time of the trainer grows with the square of a word's length."""
    text = np.full(300_000, ord("a"), np.uint8)
    tokenizer = ops.train_tokenizer(text, np.array([len(text)]), vocabulary_size=300)
    tokens = ops.tokenize(text, np.array([len(text)]), tokenizer=tokenizer)
    assert tokens.lengths[0] < 3000
    assert ops.decode(tokens.values, tokens.lengths, tokenizer=tokenizer).values.tolist() == text.tolist()
