"""`seqflow ops`."""

import json

from command import seqflow

from seqflow import registry


def test_ops_lists_every_op_with_its_first_line() -> None:
    lines = seqflow("ops").stdout.splitlines()
    assert [line.split()[0] for line in lines] == registry.names()
    listed = json.loads(seqflow("ops", "--json").stdout)["ops"]
    assert listed == {name: registry.get(name).doc.split("\n")[0] for name in registry.names()}


def test_ops_shows_one_op_with_signature_attributes_example_and_origin() -> None:
    shown = seqflow("ops", "pad").stdout
    for part in (
        registry.get("pad").signature.in_lines(),
        "max_length",
        "'right' or 'left'",
        ">>> ",
        registry.get("pad").doc.partition(">>>")[0].strip(),
        "LodError      lengths that are negative, or do not add up to the rows of data",
        "PackSegments",
    ):
        assert part in shown
    described = json.loads(seqflow("ops", "pad", "--json").stdout)
    assert described["attributes"]["fill"] == {
        "takes": "a number or a text",
        "required": False,
        "default": 0,
    }
    assert described["caffe2"] == "PackSegments"
    assert "An empty sequence is a row of padding." in " ".join(described["doc"].split())
    assert described["errors"][0]["kind"] == "LodError"
