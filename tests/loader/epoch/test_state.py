"""States that an earlier version has saved, as they lie in files: they are loaded, and would be written alike today."""

import json
from dataclasses import replace

import pyarrow as pa
import pytest

import seqflow as sf

OF_A_LOADER = (
    '{"format": 2, "epoch": 0, "batch": 7, "ranks": 1, "windows": {"0": {"window": 0, "first_batch": 0, '
    '"batches": 13}}, "by_rows": false, "settings": {"columns": null, "prepare": {"net": ["return id, '
    'tokens.values, tokens.lengths"], "constants": {}, "files": [], "ops": {}, "lines": [1], "names": '
    '{"constants": {}, "files": []}}, "net": null, "batch": "TokenBudget(max_tokens=12, padded=False, '
    "max_rows=None, drop_last=False, lengths=None, multiple_of=1, min_length=None, max_length=None, "
    'oversize=\'bad_rows\', columns=None)", "pad": {"tokens": "Pad(fill=0, dtype=None, side=\'right\', '
    'multiple_of=1, max_length=None, truncate=False, mask=True)"}, "shuffle": 3, "window": 1200, '
    '"streams": 1, "batches": null, "fill": "None", "valid": false, "bad_rows": "raise"}, "data": '
    '{"kind": "memory", "rows": 60, "columns": ["id: int64", "tokens: list<item: int32>"], "read with": '
    '{}, "blocks": "78defd50d150f26023b8ec6d4d4eaf93", "content": "2ef8553db4b4fce803488223ded11b31"}}'
)
OF_A_MIX = (
    '{"format": 2, "epoch": 0, "batch": 5, "ranks": 1, "ended": false, "members": [{"passes": [], '
    '"windows": {"0": [0, 0, 13]}}, {"passes": [], "windows": {"0": [0, 0, 13]}}], "settings": '
    '{"weights": [2.0, 1.0], "seed": 5, "stop": "first", "column": "source", "rows": null, "order": 2}, "sources": '
    '[{"settings": {"columns": null, "prepare": null, "net": null, "batch": "TokenBudget(max_tokens=12, '
    "padded=False, max_rows=None, drop_last=False, lengths=None, multiple_of=1, min_length=None, "
    'max_length=None, oversize=\'bad_rows\', columns=None)", "pad": {}, "shuffle": 3, "window": 1200, '
    '"streams": 1, "batches": null, "fill": "None", "valid": false, "bad_rows": "raise", "member": 0}, "data": '
    '{"kind": "memory", "rows": 60, "columns": ["id: int64", "tokens: list<item: int32>"], "read with": '
    '{}, "blocks": "78defd50d150f26023b8ec6d4d4eaf93", "content": "2ef8553db4b4fce803488223ded11b31"}}, '
    '{"settings": {"columns": null, "prepare": null, "net": null, "batch": "TokenBudget(max_tokens=12, '
    "padded=False, max_rows=None, drop_last=False, lengths=None, multiple_of=1, min_length=None, "
    'max_length=None, oversize=\'bad_rows\', columns=None)", "pad": {}, "shuffle": 3, "window": 1200, '
    '"streams": 1, "batches": null, "fill": "None", "valid": false, "bad_rows": "raise", "member": 1}, "data": '
    '{"kind": "memory", "rows": 60, "columns": ["id: int64", "tokens: list<item: int32>"], "read with": '
    '{}, "blocks": "78defd50d150f26023b8ec6d4d4eaf93", "content": "fdfe7f0c7cec85acadad3774c1defdac"}}]}'
)
COMES_NEXT = {
    "loader": [[26, 4, 56, 2], [14, 29], [7, 19, 6]],
    "mix": [[19, 6, 28], [106, 125, 118, 127], [4, 47, 21]],
}


def loader(first, **options):
    rows = range(first, first + 60)
    lists = pa.array([[n] * (n % 5 + 1) for n in rows], pa.list_(pa.int32()))
    table = pa.table({"id": rows, "tokens": lists})
    shuffle = sf.Shuffle(3)
    return sf.Loader(
        table, batch_bytes=400, batch=sf.TokenBudget(12), shuffle=shuffle, window=1200, **options
    )


def made(kind):
    if kind == "loader":
        net = "return id, tokens.values, tokens.lengths"
        return loader(0, prepare=net, pad={"tokens": sf.Pad(0)}), OF_A_LOADER
    return sf.Mix({loader(0): 2.0, loader(100): 1.0}, seed=5), OF_A_MIX


@pytest.mark.parametrize("kind", ["loader", "mix"])
def test_a_state_of_an_earlier_version_is_loaded(kind):
    batches, saved = made(kind)
    batches.load_state_dict(json.loads(saved))
    assert [batch["id"].tolist() for batch in batches.take(3)] == COMES_NEXT[kind]


@pytest.mark.parametrize("kind", ["loader", "mix"])
def test_a_state_is_written_as_it_was(kind):
    """But for entries that are new, and the plan, which was the text of its dict; weights are in the history."""
    batches, saved = made(kind)
    iterator = iter(batches)
    for _ in range(json.loads(saved)["batch"]):
        next(iterator)
    state, plan = batches.state_dict(), sf.TokenBudget(12)
    for source in state.get("sources", ()):
        assert source.pop("by_rows") is False
    if kind == "mix":
        saved = saved.replace('"weights": [2.0, 1.0], ', "")
        assert [[weight for _, weight in one["weights"]] for one in state.pop("history")] == [[2.0, 1.0]]
    expected = saved.replace(f'"{plan!r}"', json.dumps(plan.to_dict()))
    assert json.dumps(state) == expected


def test_taking_batches_and_abandoned_iterations_move_no_place():
    batches, saved = made("mix")
    batches.load_state_dict(json.loads(saved))
    before = batches.state_dict()
    assert len(batches.take(2)) == 2
    assert (batches.state_dict(), batches.is_resuming) == (before, True)
    iterator = iter(batches)
    next(iterator)
    iterator.close()
    assert (batches.epoch, batches.place.batch) == (0, 6)


def test_an_epoch_that_is_set_while_it_is_iterated_stays_set():
    batches, _ = made("loader")
    for number, _batch in enumerate(batches):
        if number == 2:
            batches.set_epoch(5)
    assert batches.epoch == 5


@pytest.mark.parametrize("skip", [[], [(6, 60)]])
@pytest.mark.parametrize("tail", ["pad", "repeat"])
@pytest.mark.parametrize("workers", [1, 3])
def test_a_state_after_the_last_round_counts_batches_with_rows_and_ends(skip, tail, workers):
    def loader(worker):
        found = sf.Loader({"id": list(range(40))}, batch=4, rank=0, world_size=4, tail=tail, skip=skip)
        found.assignment = replace(found.assignment, worker=worker, workers=workers)
        return found

    for worker in range(workers):
        one, state = loader(worker), None
        for _ in one:
            state = one.state_dict()
        if state is not None:
            assert state["batch"] <= 10
            again = loader(worker)
            again.load_state_dict(state)
            assert list(again) == []
