"""`hash` and `%` in filters: the values of the ops of the same names, for every type of column and source."""

import json
import multiprocessing
import pickle
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import FilterError, ProviderError

HASHES = {
    0: 6017775124710473527, 1: 6467540162864785327, -7: 4828107016678445192, 2**63 - 1: 2412831302839828043,
    -(2**63): 3009226710796046534, "": 6017775124710473527, "a\x00": 978105507120005763,
    "abcdefghi": 4236535691337403425, "é": 4794659337341285467, bytes(range(16)): 3699239227930923774,
}  # fmt: skip
INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
TEXTS = [
    pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(), pa.binary_view(),
    pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.large_string()),
]  # fmt: skip


def kept(values, where):
    """Numbers of the rows that a filter on a column `x` keeps."""
    table = pa.table({"at": np.arange(len(values)), "x": values})
    return [at for batch in sf.Loader(table, where=where, columns=["at"]) for at in batch["at"].tolist()]


@pytest.mark.parametrize("value", HASHES)
def test_hashes_are_those_of_the_definition(value):
    values = pa.array([value, None, value])
    assert kept(values, f"hash(x) == {HASHES[value]}") == [0, 2]
    assert kept(values, f"hash(x, seed=0) != {HASHES[value]}") == []
    assert kept(values, "hash(x) == None") == [1]
    assert kept(values, f"hash(x, seed=1) == {HASHES[value]}") == kept(values, "hash(x, 1) < 0") == []


def test_uint64_is_hashed_as_the_int64_of_the_same_bits():
    assert kept(pa.array([2**64 - 1, 3], pa.uint64()), "hash(x) == 2598789274482403935") == [0]


@pytest.mark.parametrize("kind", INTEGERS, ids=str)
def test_integers_of_any_type_have_the_hash_of_the_op(kind):
    values = pa.array([0, 1, None, 5, 127, *range(100)], kind)
    found = kept(values, "hash(x, seed=4) % 3 == 1")
    ids = np.array([-1 if one is None else one for one in values.to_pylist()])
    expected = (sf.ops.hash(ids, seed=4) % 3 == 1) & (ids >= 0)
    assert found == np.flatnonzero(expected).tolist()


@pytest.mark.parametrize("kind", TEXTS, ids=str)
def test_texts_of_any_form_have_the_hash_of_the_op(kind):
    texts = [None if n % 5 == 0 else f"{n}é" * (n % 4) for n in range(200)]
    values = pa.array(texts, pa.string()).cast(getattr(kind, "value_type", kind))
    values = values.dictionary_encode().cast(kind) if pa.types.is_dictionary(kind) else values
    content = [(one or "").encode() for one in texts]
    hashes = sf.ops.hash_text(np.frombuffer(b"".join(content), np.uint8), list(map(len, content)))
    expected = [at for at, one in enumerate(texts) if one is not None and hashes[at] % 3 == 1]
    assert kept(values, "hash(x) % 3 == 1") == expected
    assert kept(values[7:90], "hash(x) % 3 == 1") == [at - 7 for at in expected if 7 <= at < 90]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([b"ab", None, b"cd"], pa.binary(2)),
        pa.array([3, 4, 3]).dictionary_encode(),
        pa.array([{"a": 1}, {"a": 2}, None]),
        pa.array([[1], [], None]),
    ],
    ids=["fixed size", "coded integers", "field", "lengths"],
)
def test_other_forms_are_hashed_by_their_values(values):
    name, plain = "x", values.to_pylist()
    if pa.types.is_struct(values.type):
        name, plain = "x.a", [1, 2, None]
    if pa.types.is_list(values.type):
        name, plain = "lengths(x)", [1, 0, None]
    for seed in range(6):
        where = f"hash({name}, seed={seed}) % 2 == 0"
        assert kept(values, where) == kept(pa.array(plain), where.replace(name, "x"))


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1.0]), pa.array([1.0], pa.float16()), pa.array([True]), pa.array([Decimal("1.5")]),
        pa.array([1], pa.date32()), pa.array([1], pa.timestamp("us")), pa.array([1], pa.time64("us")),
        pa.array([1], pa.duration("s")), pa.array([[1]]), pa.array([{"a": 1}]), pa.nulls(1),
    ],
    ids=lambda values: str(values.type),
)  # fmt: skip
def test_other_types_are_refused_by_name(values):
    with pytest.raises(FilterError, match=r"x is .*, expected integers or texts to hash"):
        sf.open(pa.table({"x": values}), where="hash(x) % 10 == 0")


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("hash(x)", "'hash' is int64, expected a condition"),
        ("hash() == x", r"hash takes one column, and seed=, found 0 arguments"),
        ("hash(x, 1, 2) == 0", "found 3 arguments"),
        ("hash(x, seed=-1) == 0", "found '-', expected an integer"),
        ("hash(x, seed=1.5) == 0", r"the seed of a hash is not an integer from 0 to 2\*\*64 - 1"),
        ("hash(x, 'a') == 0", "the seed of a hash is not an integer"),
        ("hash(x, x) == 0", "the seed of a hash is not an integer"),
        (f"hash(x, seed={2**64}) == 0", "the seed of a hash is not an integer"),
        ("seed = 3", "equality is =="),
        ("x == 1 and seed = 3", "equality is =="),
        ("x % 1.5 == 0", "% takes integers, found a float"),
        ("x % 'a' == 0", "'a'.* is string, expected numbers"),
        ("md5(x) == 1", "a filter has no 'md5', expected lengths, hash, "),
    ],
)
def test_malformed_calls_are_refused_with_their_place(where, text):
    with pytest.raises(FilterError, match=text):
        sf.open(pa.table({"x": [1, 2]}), where=where)


@given(
    st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=9),
    st.integers(-(2**63), 2**63 - 1).filter(bool),
)
def test_a_remainder_has_the_sign_of_the_divisor_as_in_python(numbers, divisor):
    rest = next((one for one in numbers if one is not None), 0) % divisor
    expected = [at for at, one in enumerate(numbers) if one is not None and one % divisor == rest]
    assert kept(pa.array(numbers, pa.int64()), f"x % {divisor} == {rest}") == expected


def test_remainders_of_two_columns_and_by_zero():
    table = pa.table({"x": [7, -7, None, 5], "y": [4, 4, 0, None], "at": range(4)})
    found = [at for b in sf.Loader(table, where="x % y >= 0", columns=["at"]) for at in b["at"].tolist()]
    assert found == [0, 1]
    assert kept(pa.array([7, 8]), "10 % x == 3") == [0]
    with pytest.raises(ProviderError, match=r"where: .* can't be evaluated: an integer is divided by zero"):
        kept(pa.array([7, 0]), "10 % x == 3")


LISTS = [
    pa.list_(pa.int64()), pa.large_list(pa.int8()), pa.list_view(pa.int64()), pa.large_list_view(pa.int64()),
    pa.map_(pa.int64(), pa.int64()), pa.list_(pa.int64(), 3),
]  # fmt: skip


@pytest.mark.parametrize("kind", [*LISTS, *TEXTS], ids=str)
@pytest.mark.parametrize("source", ["memory", "parquet"])
def test_remainders_of_lengths_of_every_type(tmp_path, kind, source):
    counts = [3, None, 3, 3] if pa.types.is_fixed_size_list(kind) else [0, 3, None, 2, 7]
    one = (1, 1) if pa.types.is_map(kind) else "a" if kind in TEXTS else 1
    values = [None if n is None else "a" * n if one == "a" else [one] * n for n in counts]
    divisors = range(2, 2 + len(values))
    plain = pa.array(values, kind.value_type if pa.types.is_dictionary(kind) else kind)
    column = plain.dictionary_encode() if pa.types.is_dictionary(kind) else plain
    table = pa.table({"id": np.arange(len(values)), "x": column, "y": divisors})
    if source == "parquet":
        try:
            pq.write_table(table, tmp_path / "a.parquet")
        except pa.ArrowNotImplementedError as error:  # older Arrow writes no list views
            pytest.skip(str(error))
        table = tmp_path / "a.parquet"
    for where, holds in [
        ("lengths(x) % 2 == 1", lambda n, d: n % 2 == 1),
        ("x.lengths % y == 1", lambda n, d: n % d == 1),
        ("y % (x.lengths + 1) == 0", lambda n, d: d % (n + 1) == 0),
        ("-7 % (lengths(x) % 4 + 1) == 1", lambda n, d: -7 % (n % 4 + 1) == 1),
        ("hash(lengths(x)) % 1 == 0", lambda n, d: True),
    ]:
        expected = [
            at
            for at, (n, d) in enumerate(zip(counts, divisors, strict=True))
            if n is not None and holds(n, d)
        ]
        assert sf.open(table, columns=["id"], where=where)["id"].tolist() == expected, where


def test_remainders_of_integers_in_a_dictionary():
    values = pa.array([7, None, 8, 7]).dictionary_encode()
    assert kept(values, "x % 4 == 3") == [0, 3]


@pytest.fixture
def path(tmp_path):
    table = pa.table({"id": np.arange(500), "name": [f"user_{n}" for n in range(500)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=50)
    return tmp_path / "a.parquet"


def ids_in(loader):
    return [int(one) for batch in loader for one in batch["id"]]


def test_ranges_of_values_exclude_no_block(path):
    expected = np.flatnonzero(sf.ops.hash(np.arange(500)) % 10 == 0).tolist()
    assert ids_in(sf.Loader(path, where="hash(id) % 10 == 0 and id < 100")) == [
        n for n in expected if n < 100
    ]
    assert len(sf.Loader(path, where="hash(id) % 10 == 0", batch=1)) == len(expected)


def test_the_filter_is_part_of_the_state_and_two_spellings_are_equal(path):
    loader = sf.Loader(path, where="hash(name) % 2 == 0", batch=7)
    next(iter(loader))
    state = json.loads(json.dumps(loader.state_dict()))
    sf.Loader(path, where="(hash(name, seed=0)%2) == 0", batch=7).load_state_dict(state)
    with pytest.raises(
        sf.OpError, match=r"where was .*hash_string\(name, 0\).* and is .*hash_string\(name, 1\)"
    ):
        sf.Loader(path, where="hash(name, seed=1) % 2 == 0", batch=7).load_state_dict(state)
    assert "hash_string(name, 0), 2) == 0" in repr(sf.open(path, where="hash(name) % 2 == 0"))


@pytest.mark.slow
def test_another_process_keeps_the_same_rows(path):
    loader = sf.Loader(path, where="hash(name) % 3 == 0", threads=0)
    content = pickle.dumps(loader)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(_ids_of, (content,)) == ids_in(loader)


def _ids_of(content):
    return ids_in(pickle.loads(content))
