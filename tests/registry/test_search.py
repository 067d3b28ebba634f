"""Ops are found by what other libraries call them."""

import json

import numpy as np
import pytest
from command import seqflow

from seqflow import registry
from seqflow.expression.functions import table
from seqflow.registry.peers import PEERS
from seqflow.registry.search import names_elsewhere, nearest, search

OPS = [registry.get(name) for name in registry.names()]


def found(query):
    return [hit.name for hit in search(query, OPS)]


def test_each_op_is_found_by_each_of_its_names():
    missed = [
        (op.name, name)
        for op in OPS
        for name in (op.name, *names_elsewhere(op))
        if op.name not in found(name)[:5]
    ]
    assert missed == []


def test_each_op_has_a_name_elsewhere_or_is_called_as_in_numpy():
    also = {"erf", "rsub"}
    assert [op.name for op in OPS if not (op.name in PEERS or hasattr(np, op.name) or op.name in also)] == []


def test_functions_of_expressions_are_found_by_all_their_names():
    missed = [(row.name, alias) for row in table for alias in row.aliases if row.name not in found(alias)[:5]]
    assert missed == []


def test_each_of_the_names_that_an_op_has_in_caffe2_is_one():
    assert names_elsewhere(registry.get("fc"))[:2] == ("Caffe2 FC", "Caffe2 FCTransposed")
    assert found("FCTransposed")[0] == "fc"


def test_the_table_has_ops_that_there_are_and_no_name_twice_for_one():
    assert PEERS.keys() <= set(registry.names())
    assert [name for name, peers in PEERS.items() if len(set(peers)) < len(peers)] == []


@pytest.mark.parametrize(
    ("query", "op"),
    [
        ("ragged softmax", "softmax_within"), ("groupby top k", "topk_within"), ("top-k per user", "topk_within"),
        ("batch gather", "gather_within"), ("torch.segment_reduce", "lengths_sum"), ("LengthsSum", "lengths_sum"),
        ("embedding bag", "sparse_lengths_sum"), ("pad_sequence", "pad"), ("sequence packing", "pack_rows"),
        ("fluid.layers.sequence_expand", "expand"), ("RaggedTensor.to_tensor", "pad"), ("pad", "pad"),
        ("torch.nn.functional.pad", "pad"), ("np.arccos", "acos"), ("torch.sigmoid", "sigmoid"),
        ("tf.nn.relu", "relu"), ("KeyedJaggedTensor split", "keyed_split"), ("row_splits", "lengths_to_offsets"),
    ],
)  # fmt: skip
def test_words_of_those_who_ask_lead_to_the_op(query, op):
    assert found(query)[0] == op


def test_nothing_is_found_for_words_that_no_op_has():
    assert found("xyzzy") == []
    assert found("") == []
    assert found("§ !") == []


def test_what_is_spelled_wrong_has_near_names():
    assert "sigmoid" in nearest("sigmiod", OPS)
    assert "sparse_lengths_sum" in nearest("SparseLengthSumm", OPS)
    assert nearest("xyzzyxyzzy", OPS) == []


def test_the_command_shows_the_best_and_what_they_are_known_as():
    done = seqflow("ops", "--search", "ragged softmax")
    assert done.stdout.splitlines()[1].split()[0] == "softmax_within"
    hits = json.loads(seqflow("ops", "--search", "ragged softmax", "--json").stdout)["ops"]
    assert hits[0] == {"name": "softmax_within", "known as": "ragged softmax"}


def test_a_search_without_hits_is_an_error():
    done = seqflow("ops", "--search", "xyzzy")
    assert done.returncode == 1
    assert "no op is found for 'xyzzy'" in done.stderr
    assert "nearest: sigmoid" in seqflow("ops", "--search", "sigmiod").stderr
