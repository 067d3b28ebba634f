"""Totals of a step: what all its batches hold, known to each of them without communication."""

import itertools
import json
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import BatchPlanError, OpTypeError

ROWS = 400
RNG = np.random.default_rng(11)
TOKENS = [RNG.integers(1, 50, n) for n in RNG.integers(1, 60, ROWS)]
LABELS = [np.where(RNG.random(len(tokens)) < RNG.random(), tokens, -100) for tokens in TOKENS]
TABLE = pa.table(
    {
        "id": np.arange(ROWS),
        "tokens": TOKENS,
        "labels": LABELS,
        "weight": RNG.random(ROWS),
    }
)
COLUMNS = ("tokens", "labels")
PLANS = {
    "packed": (sf.Packed, {"capacity": 40, "columns": COLUMNS, "rows": 3}),
    "rows": (sf.Rows, {"n": 7, "lengths": "tokens"}),
    "rows of no lengths": (sf.Rows, {"n": 7}),
    "cut rows": (
        sf.TokenBudget,
        {"max_tokens": 45, "oversize": "split", "columns": COLUMNS, "lengths": "tokens"},
    ),
    "buckets": (sf.Buckets, {"boundaries": 3, "plan": sf.Rows(6, lengths="tokens")}),
}
TOTALS = {"trained": "labels.values != -100", "tokens": "tokens.lengths", "weight": "weight"}
BALANCES = {
    "none": None,
    "a step": sf.Balance(group=4, steps_of=2, linear=3),
    "a pool": sf.Balance(group=4, steps_of=2, pool=3, linear=3),
    "a window": sf.Balance(group=4, steps_of=2, pool=None, linear=3),
}


def loader_of(plan, balance="none", **options):
    kind, arguments = PLANS[plan]
    given = {"totals": TOTALS, "shuffle": sf.Shuffle(1), "threads": 0, "world_size": 1, "rank": 0, **options}
    if BALANCES[balance] is None:
        given = {"steps_of": 8 // given["world_size"], **given}
    source = pa.Table.from_batches(TABLE.to_batches(max_chunksize=23))  # windows of several blocks
    return sf.Loader(source, window="32 kB", batch=kind(**arguments, balance=BALANCES[balance]), **given)


def counted(batch, plan):
    """What a batch holds, counted from its tensors."""
    if plan == "packed":
        real = batch["segment_ids"] > 0
        weight = batch["weight"].sum()
        return {
            "trained": int((batch["labels"][real] != -100).sum()),
            "tokens": int(real.sum()),
            "weight": weight,
        }
    trained = int((batch["labels.values"] != -100).sum())
    return {"trained": trained, "tokens": int(batch["tokens.lengths"].sum()), "weight": batch["weight"].sum()}


def sums(batches, plan):
    return {name: sum(counted(batch, plan)[name] for batch in batches) for name in TOTALS}


EVERY = [
    (plan, balance)
    for plan in PLANS
    for balance in BALANCES
    if plan != "rows of no lengths" or balance == "none"
]


@pytest.mark.slow
@pytest.mark.parametrize(("plan", "balance"), EVERY)
def test_each_batch_knows_what_its_step_holds(plan, balance):
    batches = list(loader_of(plan, balance))
    for start in range(0, len(batches), 8):
        step = batches[start : start + 8]
        for batch in step:
            assert batch.step == start // 8
            for name, total in sums(step, plan).items():
                assert batch[f"step.{name}"] == pytest.approx(total, rel=1e-12)
                assert batch[f"step.{name}"].shape == ()


@pytest.mark.filterwarnings("ignore:Balance. world_size")
@pytest.mark.parametrize("world_size", [2, 4, 8])
@pytest.mark.parametrize("balance", ["none", "a pool"])
def test_all_ranks_know_the_same_and_drop_what_is_not_handed_out(world_size, balance):
    ranks = [
        list(loader_of("packed", balance, rank=rank, world_size=world_size, tail="drop"))
        for rank in range(world_size)
    ]
    batches = sorted((batch for rank in ranks for batch in rank), key=lambda batch: batch.number)
    for start in range(0, len(batches), 8):
        step = batches[start : start + 8]
        assert {batch["step.trained"].item() for batch in step} == {sums(step, "packed")["trained"]}


def test_skipped_batches_are_not_counted():
    batches = list(loader_of("packed", skip=[(8, 11), (30, 41)]))
    assert not {batch.number for batch in batches} & {8, 9, 10, *range(30, 41)}
    for step in {batch.step for batch in batches}:
        of_step = [batch for batch in batches if batch.step == step]
        assert {batch["step.tokens"].item() for batch in of_step} == {sums(of_step, "packed")["tokens"]}


def test_a_list_names_tensors():
    batches = list(loader_of("rows", totals=["tokens.lengths", "id"]))
    assert batches[0]["step.id"] == sum(batch["id"].sum() for batch in batches[:8])
    assert batches[0].totals == {
        "tokens.lengths": sum(batch["tokens.lengths"].sum() for batch in batches[:8]),
        "id": sum(batch["id"].sum() for batch in batches[:8]),
    }


@pytest.mark.slow
def test_gradients_of_any_number_of_ranks_are_those_of_one_batch():
    torch = pytest.importorskip("torch")
    model = torch.nn.Linear(1, 50).double()

    def losses(batch):
        logits = model(batch["tokens"].double()[..., None])
        labels = batch["labels"].long()
        labels = torch.where(batch["segment_ids"] > 0, labels, -100)
        return torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), reduction="none"
        ).sum(), labels

    def gradient(parts):
        model.zero_grad()
        sum(parts).backward(retain_graph=True)
        return model.weight.grad.clone()

    found, averaged = {}, {}
    for world_size in (1, 2, 4, 8):
        exact, plain = [], []
        for rank in range(world_size):
            loader = loader_of("packed", rank=rank, world_size=world_size)
            for batch in list(loader.to("torch"))[: 8 // world_size]:
                loss, labels = losses(batch)
                exact.append(loss / batch["step.trained"] * world_size / world_size)
                plain.append(loss / (labels != -100).sum() / 8)
        found[world_size], averaged[world_size] = gradient(exact), gradient(plain)
    whole = list(loader_of("packed").to("torch"))[:8]
    pairs = [losses(batch) for batch in whole]
    trained = sum((labels != -100).sum() for _, labels in pairs)
    expected = gradient([loss / trained for loss, _ in pairs])
    for world_size in found:
        torch.testing.assert_close(found[world_size], expected, rtol=1e-9, atol=1e-12)
        assert not torch.allclose(averaged[world_size], expected, rtol=1e-3)


def test_a_step_without_any_is_said():
    table = pa.table({"labels": [[-100, -100]] * 8 + [[1, 2]] * 8})
    loader = sf.Loader(
        table, batch=4, totals={"trained": "labels.values != -100"}, steps_of=2, rank=0, world_size=1
    )
    with pytest.warns(UserWarning, match="trained of step 0 is 0"):
        assert [batch["step.trained"].item() for batch in loader] == [0, 0, 16, 16]


def test_elements_of_several_levels_and_of_rows_that_are_not_cut():
    table = pa.table({"words": [[[1, 2], [3]], [], [[4]]] * 4, "tokens": [[1], [2, 3], []] * 4})
    batches = list(
        sf.Loader(
            table, batch=sf.TokenBudget(4, lengths="tokens"), columns=["words", "tokens"], shuffle=True, rank=0,
            world_size=1, totals={"words": "words.values.values > 0", "sum": "words.values.values", "lists": "words.values.lengths"},
        )
    )  # fmt: skip
    for batch in batches:
        assert batch["step.words"] == len(batch["words.values.values"])
        assert batch["step.sum"] == batch["words.values.values"].sum()
        assert batch["step.lists"] == batch["words.values.lengths"].sum()


def test_a_resumed_run_on_other_ranks_begins_with_a_step():
    loader = loader_of("packed", world_size=2)
    batches = iter(loader)
    for _ in range(3):
        next(batches)
    state = loader.state_dict()
    other = loader_of("packed", world_size=4)
    other.load_state_dict(state)
    with pytest.raises(sf.OpError, match="batch 6 is inside a step of 8 batches"):
        next(iter(other))
    same = loader_of("packed", world_size=2)
    same.load_state_dict(state)
    assert next(iter(same))["step.trained"] == loader.batch_at(6)["step.trained"]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"totals": {"x": "nothing + 1"}}, BatchPlanError, "x names 'nothing', which the records have not"),
        (
            {"totals": {"x": "labels.values * weight"}},
            BatchPlanError,
            "labels.values under labels.lengths, weight under",
        ),
        ({"totals": {"x": "3"}}, BatchPlanError, "x has no tensor"),
        ({"totals": 3}, OpTypeError, "totals is 3, expected names and expressions"),
        ({"totals": {}}, OpTypeError, "totals is {}"),
        ({"totals": "id"}, OpTypeError, "totals is 'id'"),
        ({"totals": {"x": 3}}, OpTypeError, "expected names and expressions"),
        ({"totals": ["id"], "streams": 2, "steps_per_epoch": 4}, sf.OpError, "totals with streams = 2"),
        ({"totals": ["id"], "tail": "repeat"}, sf.OpError, "totals with tail='repeat'"),
        ({"totals": ["id"], "steps_of": 0}, sf.OpError, "steps_of is 0"),
        ({"steps_of": 2}, sf.OpError, "steps_of is 2, which totals= or a balance needs"),
        (
            {"totals": ["tokens.values"], "pad": {"tokens": 0}},
            BatchPlanError,
            "a column that the loader pads",
        ),
        (
            {"steps_of": 2, "batch": sf.Rows(3, balance=BALANCES["a step"])},
            sf.OpError,
            "steps_of is given in addition to",
        ),
    ],
)
def test_what_cannot_be_counted_is_an_error_before_reading(options, error, text):
    with pytest.raises(error, match=text):
        next(iter(sf.Loader(TABLE, **options)))


@pytest.mark.slow
@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("world_size", [2, 4])
@pytest.mark.parametrize("first", range(1, 9, 2))
@pytest.mark.filterwarnings("ignore:totals")
def test_batches_of_a_dropped_round_are_in_no_total_wherever_steps_end(plan, world_size, first):
    """Skips move the rounds of ranks against steps, so that a dropped round may begin in the step before the last."""
    skip = [(first, first + 3), (first + 20, first + 22)]
    ranks = [list(loader_of(plan, rank=rank, world_size=world_size, skip=skip)) for rank in range(world_size)]
    by_step = {}
    for batch in itertools.chain(*ranks):
        by_step.setdefault(batch.step, []).append(batch)
    for batches in by_step.values():
        expected = sums(batches, plan)
        for batch, name in itertools.product(batches, TOTALS):
            assert batch[f"step.{name}"] == pytest.approx(expected[name]), (batch.step, name)


def in_blocks(table):
    return pa.Table.from_batches(table.to_batches(max_chunksize=23))


def mix_of(plan, balance="none", rank=0, world_size=1, **options):
    kind, arguments = PLANS[plan]
    given = {
        "shuffle": sf.Shuffle(1),
        "threads": 0,
        "rank": rank,
        "world_size": world_size,
        "window": "16 kB",
    }
    batch = kind(**arguments, balance=BALANCES[balance])
    if plan == "rows of no lengths":  # batches of all sources in quotas
        sources, given["batch"] = {"a": in_blocks(TABLE), "b": in_blocks(TABLE.slice(50, 400))}, batch
    else:
        tables = {"a": TABLE.slice(0, 250), "b": TABLE.slice(250)}
        sources = {name: sf.Loader(in_blocks(of), batch=batch, **given) for name, of in tables.items()}
        given = {}
    steps_of = 8 // world_size if balance == "none" else None
    return sf.Mix(
        sources,
        weights={"a": 2.0, "b": 1.0},
        stop="all",
        totals=TOTALS,
        steps_of=steps_of,
        **given,
        **options,
    )


@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize(("plan", "balance"), EVERY)
@pytest.mark.parametrize("world_size", [1, 2, 4])
@pytest.mark.parametrize("skip", [None, [(3, 14)]])
@pytest.mark.filterwarnings("ignore:totals")
def test_each_batch_of_a_mix_knows_what_its_step_holds(plan, balance, world_size, skip):
    ranks = [list(mix_of(plan, balance, rank, world_size, skip=skip)) for rank in range(world_size)]
    by_step = {}
    for batch in itertools.chain(*ranks):
        by_step.setdefault(batch.step, []).append(batch)
    assert len(by_step) > 2
    for batches in by_step.values():
        expected = sums(batches, plan)
        for name in TOTALS:
            for batch in batches:
                assert batch[f"step.{name}"] == pytest.approx(expected[name]), (batch.step, name)


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("at", [1, 5, 8, 13])
@pytest.mark.parametrize("plan", ["rows", "rows of no lengths", "packed"])
def test_a_mix_that_goes_on_inside_a_step_has_the_same_totals(plan, at):
    def shown(batches):
        return [
            (batch.number, batch.step, *(float(batch[f"step.{name}"]) for name in TOTALS))
            for batch in batches
        ]

    whole, first, resumed = shown(mix_of(plan)), mix_of(plan), mix_of(plan)
    batches = iter(first)
    for _ in range(at):
        next(batches)
    resumed.load_state_dict(json.loads(json.dumps(first.state_dict())))
    assert shown(resumed) == whole[at:]


def test_a_mix_goes_on_with_other_ranks_only_where_a_step_ends():
    first = mix_of("rows")
    batches = iter(first)
    for at in range(1, 9):
        next(batches)
        resumed = mix_of("rows", rank=0, world_size=2)
        resumed.load_state_dict(first.state_dict())
        if at == 8:
            assert next(iter(resumed)).step == 1
            continue
        with pytest.raises(sf.OpError, match=f"batch {at} is inside a step of 8 batches"):
            next(iter(resumed))


def test_totals_of_a_mix_that_cannot_be_counted_are_errors():
    own = {"a": sf.Loader(TABLE, batch=4, totals=["id"]), "b": TABLE}
    with pytest.raises(sf.OpError, match="source 0 has totals of its own\n  give totals= to the Mix"):
        sf.Mix(own, weights={"a": 1, "b": 1}, totals=["id"])
    loaders = [
        sf.Loader(TABLE, batch=sf.Rows(4, lengths="tokens", balance=BALANCES[one]))
        for one in ("none", "a step")
    ]
    with pytest.raises(sf.OpError, match="not the same in the balance of sources 0 and 1"):
        sf.Mix(dict(zip("ab", loaders, strict=True)), weights={"a": 1, "b": 1}, totals=["id"])
    with pytest.raises(BatchPlanError, match="totals: n names 'x'"):
        sf.Mix({"a": TABLE}, weights={"a": 1}, totals={"n": "x"})


def test_rows_and_pieces_without_any_are_counted():
    table = pa.table({"labels": [[-100, -100, -100, 4], [-100], [7, 8], []]})
    totals = {"trained": "labels.values != -100"}
    whole = sf.Loader(table, batch=2, totals=totals, rank=0, world_size=1)
    packed = sf.Loader(table, batch=sf.Packed(3, rows=2), totals=totals, rank=0, world_size=1, steps_of=9)
    for loader, count in ((whole, 2), (packed, 2)):  # the first three of the longest are masked
        for _ in range(2):
            list(loader)
            assert loader.stats().without == {"trained": count}


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32"]
)
@pytest.mark.parametrize(
    ("text", "of"),
    [
        ("n.values", lambda n: n),
        ("n.values * 2", lambda n: 2 * n),
        ("n.values * n.values + 1", lambda n: n * n + 1),
        ("where(n.values > 0, n.values, 0)", lambda n: max(n, 0)),
        ("n.values - 300", lambda n: n - 300),
    ],
)
def test_totals_are_those_of_python_numbers(dtype, text, of):
    """Elements are as large as their dtype lets them be; those of 64 bits as large as their sums let them."""
    most = {"bool": 1, "float16": 60000, "float32": 2**120} | dict.fromkeys(
        ("int32", "int64", "uint32"), 2**30
    )
    most["uint64"] = 2**31 + 2**9
    kind = np.dtype(dtype)
    top = most.get(dtype) or np.iinfo(dtype).max
    lowest = -top if kind.kind in "if" else 0
    values = np.array([top, 1, lowest, top], dtype)
    if kind.kind == "u" and "-" in text:
        values = values.astype("uint32") // 2
    (batch,) = sf.Loader({"n": (values, np.array([3, 1]))}, batch=2, totals={"t": text})
    assert batch["step.t"].item() == pytest.approx(sum(of(n) for n in values.tolist()), rel=1e-12)


def test_a_total_beyond_64_bits_is_an_error():
    source = {"n": np.array([2**40, 1]), "u": np.array([2**63 + 5, 0], np.uint64)}
    assert [batch["step.u"].item() for batch in sf.Loader(source, batch=2, totals=["u"])] == [2**63 + 5]
    with pytest.raises(
        BatchPlanError, match=r"totals: t is about 1.21e\+24 for one element, which int64 cannot hold"
    ):
        list(sf.Loader(source, batch=2, totals={"t": "n * n"}))
    (batch,) = sf.Loader(source, batch=2, totals={"t": "1.0 * n * n"})
    assert batch["step.t"].item() == 2.0**80 + 1


FLOATS = st.sampled_from([1.0, -2.5, 1e17, float("nan"), float("inf"), -float("inf")])


@given(
    rows=st.one_of(
        st.lists(st.lists(FLOATS, max_size=3), min_size=1, max_size=12).map(lambda of: (of, pa.float64())),
        st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=1), min_size=1, max_size=12).map(lambda of: (of, pa.uint64())),
        st.lists(st.lists(st.integers(-(2**61), 2**61), max_size=3), min_size=1, max_size=12).map(lambda of: (of, pa.int64())),
    ),
    window=st.sampled_from([40, 4000]),
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:totals:UserWarning")
def test_the_total_of_a_step_is_the_sum_of_its_own_numbers(rows, window):
    rows, dtype = rows
    table = pa.table({"w": pa.array(rows, pa.list_(dtype))})
    for batch in sf.Loader(table, batch=1, totals={"n": "w.values"}, window=window, threads=0):
        expected = sum(batch["w.values"].tolist())
        assert (
            int(batch["step.n"]) == expected
            if dtype != pa.float64()
            else np.array_equal(batch["step.n"], expected, equal_nan=True)
        )


def test_a_first_element_that_another_one_replaces_is_not_in_a_total():
    table = pa.table({"w": [[float("nan"), 1.0], [1e17, 2.0], [float("inf")]]})
    plan = sf.Packed(2, ("w",), rows=1, first_fills={"w": 0.5})
    found = [float(batch["step.n"]) for batch in sf.Loader(table, batch=plan, totals={"n": "w.values"})]
    assert sorted(found) == [0.5, 1.5, 2.5]


def test_a_sum_of_a_step_beyond_64_bits_is_an_error():
    table = pa.table({"w": pa.array([[2**63, 2**63]], pa.list_(pa.uint64()))})
    with pytest.raises(
        BatchPlanError, match=f"totals: n of step 0 is {2**64}, expected an integer of 64 bits"
    ):
        list(sf.Loader(table, batch=1, totals={"n": "w.values"}))


@pytest.mark.parametrize("steps_of", [1, 2])
def test_ranks_that_step_together_have_the_same_totals_or_an_error_at_open(steps_of):
    rows = {"n": [[1] * n for n in range(1, 25)]}
    for group, world_size in itertools.product(range(1, 5), range(1, 5)):
        plan = sf.Rows(1, balance=sf.Balance(group=group, steps_of=steps_of, linear=1))

        def loader(rank, plan=plan, world_size=world_size):
            return sf.Loader(
                rows, batch=plan, totals={"n": "n.lengths"}, rank=rank, world_size=world_size, threads=0
            )

        if group * steps_of % world_size:
            with pytest.raises(sf.OpError, match=rf"group={group}.* world_size = {world_size}"):
                loader(0)
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ranks = [[(b.step, int(b["step.n"])) for b in loader(rank)] for rank in range(world_size)]
        assert all(one == ranks[0] for one in ranks)
        assert sum(dict(ranks[0]).values()) == sum(range(1, 25))


@pytest.mark.parametrize("world_size", [4, 5])
def test_batches_that_fill_the_last_round_of_a_mix_have_the_totals_of_their_step(world_size):
    table = pa.table({"n": range(10), "weight": [1] * 10})
    steps = [
        [(batch.num_rows, int(batch["step.rows"])) for batch in sf.Mix(
            {"a": table, "b": table}, weights={"a": 1, "b": 1}, batch=3, totals={"rows": "weight"}, tail="pad",
            rank=rank, world_size=world_size,
        )]
        for rank in range(world_size)
    ]  # fmt: skip
    assert any(rows == 0 for batches in steps for rows, _ in batches)
    for of_ranks in zip(*steps, strict=True):
        assert {total for _, total in of_ranks} == {sum(rows for rows, _ in of_ranks)}
