"""Each kind of message of docs/errors.md is what a real call raises, and the page has all classes."""

import pytest
from error_kinds import KINDS, PAGE, classes, page, write_files

CASES = [(error, kind) for error, kinds in KINDS.items() for kind in kinds]


@pytest.mark.parametrize(("error", "kind"), CASES, ids=[f"{e.__name__}: {k.message}" for e, k in CASES])
def test_the_message_is_raised(error, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    with pytest.raises(error) as raised:
        kind.call()
    assert raised.type is error
    assert kind.describes(raised.value), str(raised.value)


def test_each_class_has_kinds():
    assert set(KINDS) == set(classes())
    assert all(KINDS.values())


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python tests/shared/error_kinds.py`"
