"""Files that nets name, and tensors that hold what is in them."""

import numpy as np
import pytest
from strategies.text import text_arrays

import seqflow as sf
from seqflow import NetError, ops
from seqflow.signature import Described, OwnRows

pytest.importorskip("tokenizers")

TOKENIZER = ops.train_tokenizer(**text_arrays(["low lower"]), vocabulary_size=260, special_tokens="</s>")
TEXT = "ids, n = tokenize(text.values, text.lengths, tokenizer=tok, end='</s>')\nreturn ids, n"
ARRAYS = text_arrays(["low", "lower"])
TENSORS = {"text.values": ARRAYS["data"], "text.lengths": ARRAYS["lengths"]}


def test_a_tensor_may_hold_what_is_in_a_file():
    net = sf.Net(TEXT)
    assert net.inputs == ("text.values", "text.lengths", "tok")
    expected = ops.tokenize(**ARRAYS, tokenizer=TOKENIZER, end="</s>").values.tolist()
    assert sf.run(net, {**TENSORS, "tok": TOKENIZER})["ids"].tolist() == expected
    assert sf.run(net.bind(tok=TOKENIZER), TENSORS)["ids"].tolist() == expected
    assert str(sf.Net(str(net))) == str(net)
    with pytest.raises(NetError, match="column 56: nothing assigns 'tok', and it is not given"):
        sf.run(net, TENSORS)


def test_a_tokenizer_may_be_learned_in_the_same_net():
    net = (
        "tok = train_tokenizer(text.values, text.lengths, vocabulary_size=260, special_tokens='</s>')\n"
        + TEXT
    )
    found = sf.run(net, TENSORS)
    assert found["n"].tolist() == [2, 4]  # low and er were learned


def test_two_calls_with_the_same_tensor_give_the_same_rows():
    call = "tokenize(text.values, text.lengths, tokenizer={}, end='</s>')"
    text = f"a, n = {call.format('tok')}\nb, m = {call}\ntotal = lengths_sum(a, m)\nreturn total"
    specs = {
        "text.lengths": sf.TensorSpec("int64", "{rows}", OwnRows("the record")),
        "text.values": sf.TensorSpec("uint8", "{sum(text.lengths)}", Described("text.lengths")),
        "tok": sf.TensorSpec("uint8", "{?}"),
        "other": sf.TensorSpec("uint8", "{?}"),
    }
    assert not sf.Net(text.format("tok")).infer(specs).guards
    with pytest.raises(sf.LodError, match="a holds the rows that n describes, but lengths is m"):
        sf.Net(text.format("other")).infer(specs)


def test_files_are_checked_before_there_is_data(tmp_path):
    path = tmp_path / "tok.json"
    net = sf.Net(TEXT.replace("=tok", "='tok.json'"), folder=tmp_path)
    assert net.files == (str(path),)
    with pytest.raises(
        NetError, match=r"line 1, column 10: tokenize: tokenizer: there is no file '.*tok.json'"
    ):
        net.check_files()
    path.write_text("{}")
    with pytest.raises(
        NetError, match=r"line 1, column 10: tokenize: tokenizer: .*tok.json is not a tokenizer file"
    ):
        net.check_files()
    path.write_bytes(ops.train_tokenizer(**ARRAYS, vocabulary_size=260, special_tokens="<eos>").tobytes())
    with pytest.raises(NetError, match=r"tokenize: end is '</s>', expected a special token of the tokenizer"):
        net.check_files()
    path.write_bytes(TOKENIZER.tobytes())
    net.check_files()


def test_the_content_of_a_file_is_checked_where_it_is_known():
    net = sf.Net(TEXT)
    net.check_files()  # the tensor comes with the data
    net.check_files({"tok": TOKENIZER})
    with pytest.raises(NetError, match=r"tokenize: tokenizer: its bytes are not a tokenizer file"):
        net.check_files({"tok": np.zeros(3, np.uint8)})
    with pytest.raises(NetError, match=r"tokenize: tokenizer is ndarray, expected a path"):
        net.bind(tok=np.zeros(3)).check_files()
