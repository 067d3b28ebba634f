"""Bad rows are counted by column and reason; reasons that differ in values alone are one."""

import json

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf

COLUMN = "y = gather(c, at)"


@pytest.fixture
def lines(tmp_path):
    rows = [{"id": n, "at": n % 9, "t": "a" * (n % 4)} for n in range(60)]
    texts = [json.dumps(row) for row in rows]
    texts[5] = '{"id": "x5", "at": 1, "t": "a"}'
    texts[31] = '{"id": "y31", "at": 1, "t": "a"}'
    texts[40] = '{"id": 40, "at": null, "t": "a"}'
    (tmp_path / "a.jsonl").write_text("\n".join(texts) + "\n")
    return tmp_path / "a.jsonl"


def loader_of(lines, **options):
    schema = {"id": "int64", "at": "int64", "t": "string"}
    return sf.Loader(
        lines, format=sf.JsonLines(schema=schema, batch_bytes=500), bad_rows="skip", batch=7, threads=0, rank=0,
        world_size=1, window=600, constants={"c": np.zeros(8)}, require="t.lengths > 0", **options,
    )  # fmt: skip


@pytest.mark.parametrize("option", ["prepare", "net"])
def test_each_bad_row_is_counted_with_its_reason(lines, option):
    loader = loader_of(lines, **{option: f"{COLUMN}\nreturn id, t.values, t.lengths, y"})
    list(loader)
    stats = loader.stats()
    assert stats.reasons.total() == stats.bad_rows == 60 - stats.rows
    refused = [reason for reason in stats.reasons if reason.startswith(COLUMN)]
    (line,) = [reason for reason in stats.reasons if reason.startswith("id: ")]
    assert stats.reasons[line] == 2
    assert not any(value in line for value in ("x5", "y31", "5", "31", str(lines)))
    assert stats.reasons["at: null value in at"] == 1
    assert refused == [
        f"{COLUMN}: gather: indices[…] = … is outside […, …) (data[R, *d], index(R) indices[N, *i])"
    ]
    # n % 9 == 8, except rows that require refuses first, if it does
    numbers = [n for n in range(60) if n % 9 == 8 and (option == "prepare" or n % 4)]
    assert stats.reasons[refused[0]] == len(numbers)
    assert f"bad rows, {refused[0]}" in repr(stats)


def test_a_mix_adds_up_the_reasons_of_its_sources(lines):
    table = pa.table({"id": [1, None, 3]})
    mix = sf.Mix(
        {"a": table, "b": table}, weights={"a": 1, "b": 1}, batch=2, bad_rows="skip", rank=0, world_size=1
    )
    list(mix)
    assert mix.stats().reasons == {"id: null value in id": mix.stats().bad_rows}


def test_texts_that_are_none_are_one_reason(tmp_path):
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.txt").write_bytes(b"a" * number + b"\xff")
    loader = sf.Loader(
        tmp_path / "in",
        format=sf.Text(encoding="utf-8"),
        bad_rows=sf.BadRows("quarantine", tmp_path / "rows.parquet"),
    )
    assert list(loader) == []
    assert loader.stats().reasons == {"text: not utf-8 at byte … (…): invalid start byte": 3}


@pytest.mark.parametrize(
    ("plan", "reason"),
    [
        (sf.TokenBudget(3, lengths="t", oversize="bad_rows"), "t: expected at most max_tokens = 3"),
        (
            sf.Packed(3, columns=("t", "u"), oversize="bad_rows"),
            "u: not as many elements as 't': they are cut together",
        ),
    ],
)
def test_rows_that_a_plan_refuses_have_one_reason(plan, reason):
    lists = [[1] * n for n in (1, 5, 2, 7)]
    table = pa.table({"t": lists, "u": [one * (2 if len(one) == 2 else 1) for one in lists]})
    loader = sf.Loader(table, batch=plan, bad_rows="skip", rank=0, world_size=1)
    list(loader)
    assert reason in loader.stats().reasons
    assert loader.stats().reasons.total() == loader.stats().bad_rows
