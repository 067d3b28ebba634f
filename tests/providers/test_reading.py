"""Recorded reads: the rows of each kind of source, their numbers, errors and identities are what they were."""

import json
from pathlib import Path

import pytest
from reading_cases import READ, cases, checksums, name_of, record

RECORDED = json.loads(READ.read_text(encoding="utf-8"))
QUICK = ("text in folders", "reader", "own")
LIKE_OTHERS = ("coded arrow", "jsonl.gz", "long parquet")
IN_FOLDERS = ("parquet", "text")
"""Kinds which are read in folders, too, as the others are."""


def marked(kind, in_folders):
    name = name_of(kind, in_folders)
    marks = [] if name in QUICK else [pytest.mark.slow]
    if kind in LIKE_OTHERS or (in_folders and kind not in IN_FOLDERS):
        marks.append(pytest.mark.thorough)
    return pytest.param(kind, in_folders, name, id=name, marks=marks)


@pytest.mark.parametrize(("kind", "in_folders", "name"), [marked(*case) for case in cases()])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_source_is_read_as_it_was(kind: str, in_folders: bool, name: str, tmp_path: Path) -> None:
    found, recorded = record(kind, in_folders, tmp_path), RECORDED[name]
    if found["read"] is None:
        pytest.skip("its package is not installed")
    for part, sums in checksums(found).items():
        assert sums.keys() == recorded[part].keys()
        differing = {case: found[part][case] for case in sums if sums[case] != recorded[part][case]}
        assert differing == {}, (
            f"{part}: `reading_cases.py --show` prints them as they were in another version"
        )
