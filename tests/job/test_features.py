"""Section [features] of jobs: settings of columns become statements of the `prepare` net."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import JobError, OpTypeError
from seqflow.job import Job, run
from seqflow.job.checking import check
from seqflow.job.opening import open_batches

ROWS: dict[str, Any] = {
    "user": [5, 6, 7],
    "items": [[1, 2], [], [3]],
    "site": ["a", "b", "c"],
    "tags": [["x", "y"], ["x"], []],
    "score": [1.0, 2.0, 3.0],
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    table = pa.table({**ROWS, "cat": pa.array(["u", "v", "u"]).dictionary_encode()})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=2)
    sf.Vocabulary.build(["a", "b", "a", "a", "b", "z"]).save(tmp_path / "site.arrow")
    sf.Vocabulary.build([2, 3, 3]).save(tmp_path / "items.arrow")
    return tmp_path


def job_of(folder: Path, features: dict[str, Any], **sections: Any) -> Job:
    tables = {"source": {"paths": "rows.parquet"}, "features": features, **sections}
    return Job.from_dict(tables, folder)


def ids_of(folder: Path, name: str, **feature: Any) -> list[Any]:
    (batch,) = open_batches(job_of(folder, {name: feature}))
    table = sf.to_arrow(batch)
    assert name not in table.schema.names
    found: list[Any] = table[f"{name}_ids"].to_pylist()
    return found


def text_bytes(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    return np.frombuffer("".join(texts).encode(), np.uint8), np.array([len(text) for text in texts])


def test_numbers_lists_and_texts_are_hashed_with_the_seed_of_their_column(data):
    assert (
        ids_of(data, "user", hash=100, seed=3)
        == sf.ops.hash_indices([5, 6, 7], num_buckets=100, seed=3).tolist()
    )
    one, two, three = sf.ops.hash_indices([1, 2, 3], num_buckets=50).tolist()
    assert ids_of(data, "items", hash=50) == [[one, two], [], [three]]
    hashed = sf.ops.hash_strings(*text_bytes(ROWS["site"]), num_buckets=100, seed=1)
    assert ids_of(data, "site", hash=100, seed=1) == hashed.tolist()
    x, y = sf.ops.hash_strings(*text_bytes(["x", "y"]), num_buckets=100).tolist()
    assert ids_of(data, "tags", hash=100) == [[x, y], [x], []]


def test_a_vocabulary_gives_its_ids_and_0_to_unknown_and_rare_keys(data):
    assert ids_of(data, "site", vocabulary="site.arrow") == [1, 2, 0]
    assert ids_of(data, "site", vocabulary="site.arrow", min_count=3) == [1, 0, 0]
    assert ids_of(data, "items", vocabulary="items.arrow") == [[0, 2], [], [1]]


def test_unknown_keys_are_hashed_into_buckets_after_the_vocabulary(data):
    b, c = sf.ops.hash_strings(*text_bytes(["b", "c"]), num_buckets=7, seed=2).tolist()
    assert ids_of(data, "site", vocabulary="site.arrow", oov=7, seed=2) == [1, 2, 4 + c]
    assert ids_of(data, "site", vocabulary="site.arrow", min_count=3, oov=7, seed=2) == [1, 2 + b, 2 + c]


def test_statements_come_after_those_of_prepare_and_keep_its_other_outputs(data):
    job = job_of(
        data,
        {"few": {"hash": 10}},
        prepare={"net": "few.values, few.lengths = truncate(items.values, items.lengths, max_length=1)\n"
                        "return few.values, few.lengths, user"},
    )  # fmt: skip
    assert str(open_batches(job).prepare) == (
        "few.values, few.lengths = truncate(items.values, items.lengths, max_length=1)\n"
        "few_ids = hash_indices(few.values, num_buckets=10, seed=0)\n"
        "return few.lengths, user, few_ids"
    )
    assert check(job).batch["few_ids"].dtype == "int64"


def test_the_job_is_checked_written_and_resumed_as_any_other(data):
    def job(seed: int) -> Job:
        features = {"site": {"vocabulary": "site.arrow", "oov": 4, "seed": seed}, "items": {"hash": 10}}
        return job_of(data, features, output={"path": str(data / "out")})

    run(job(0))
    assert {"site_ids", "items_ids"} < {*pq.read_table(data / "out").schema.names}
    with pytest.raises(JobError, match="prepare"):
        run(job(1), resume=True)


@pytest.mark.slow
def test_workers_write_the_same_rows(data):
    features = {"site": {"vocabulary": "site.arrow", "oov": 4}, "tags": {"hash": 10}}
    tables = []
    for workers in (None, 2):
        path = str(data / f"out{workers}.parquet")
        run(job_of(data, features, output={"path": path}, engine={"workers": workers} if workers else {}))
        tables.append(pq.read_table(path))
    assert tables[0] == tables[1]


@pytest.mark.parametrize(
    ("settings", "line", "message"),
    [
        ("site = {}", 4, "has neither of hash and vocabulary, expected one of them"),
        ('site = {hash = 5, vocabulary = "site.arrow"}', 4, "has both of hash and vocabulary"),
        ("user = {hash = 9}\nsite = {hash = 0}", 5, "hash is 0, expected an integer, 1 to"),
        ("site = {hash = 5, seed = -1}", 4, "seed is -1, expected an integer, 0 to"),
        ("site = {hash = 5.5}", 4, "hash is 5.5, expected an integer"),
        ("site = {hash = 5, oov = 2}", 4, "oov needs a vocabulary"),
        ("site = {hash = 5, min_count = 2}", 4, "min_count needs a vocabulary"),
        ('site = {vocabulary = "site.arrow", seed = 2}', 4, "seed needs hash, or a vocabulary with oov"),
        ('site = {vocabulary = "site.arrow", min_count = 0}', 4, "min_count is 0, expected an integer, 1 or more"),
        ('site = {vocabulary = "gone.arrow"}', 4, "there is no file"),
        ("site = {buckets = 5}", 4, "unknown key 'buckets'"),
        ("[features.site]\n\nhash = 0", 6, "hash is 0, expected an integer, 1 to"),
        ("site = 5", 4, "expected a section [features.site]"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_named_with_its_line(data, settings, line, message):
    path = data / "job.toml"
    path.write_text(f'[source]\npaths = "rows.parquet"\n[features]\n{settings}\n')
    with pytest.raises(JobError) as raised:
        Job.read(path)
    assert str(raised.value).startswith(f"{path}, line {line}: ")
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"sit": {"hash": 5}}, "features.sit: there is no column 'sit' (did you mean 'site'?)"),
        ({"score": {"hash": 5}}, "features.score: score is float64, expected integers or texts"),
        ({"cat": {"hash": 5}}, "features.cat: cat has codes of a dictionary"),
    ],
)
def test_a_column_without_integers_or_texts_is_refused_before_rows_are_read(data, features, message):
    with pytest.raises(JobError) as raised:
        open_batches(job_of(data, features))
    assert str(raised.value).startswith(message)


def test_a_dictionary_is_hashed_by_its_values_if_it_is_declared_as_text(data):
    job = job_of(data, {"cat": {"hash": 100}}, source={"paths": "rows.parquet", "schema": {"cat": "string"}})
    u, v = sf.ops.hash_strings(*text_bytes(["u", "v"]), num_buckets=100).tolist()
    assert [one for batch in open_batches(job) for one in batch["cat_ids"].tolist()] == [u, v, u]


def test_a_column_that_has_the_name_of_the_ids_is_refused(data):
    job = job_of(
        data, {"user": {"hash": 5}}, source={"paths": "rows.parquet", "rename": {"score": "user_ids"}}
    )
    with pytest.raises(JobError, match="'user_ids' is a column already"):
        open_batches(job)


def test_min_count_needs_a_file_with_counts(data):
    sf.Vocabulary(["a", "b"]).save(data / "uncounted.arrow")
    with pytest.raises(JobError, match=r"features.site.vocabulary: min_count is 2, but .* has no counts"):
        open_batches(job_of(data, {"site": {"vocabulary": "uncounted.arrow", "min_count": 2}}))


def test_a_vocabulary_of_texts_for_a_column_of_integers_is_refused(data):
    with pytest.raises(OpTypeError, match="vocabulary has strings as keys, expected integers"):
        list(open_batches(job_of(data, {"items": {"vocabulary": "site.arrow"}})))


def test_sources_of_a_mix_have_the_same_features(data):
    mix = {"sources": [{"name": "one", "paths": "rows.parquet", "weight": 1.0}]}
    job = Job.from_dict({"mix": mix, "features": {"user": {"hash": 10}}, "batch": 3}, data)
    ids = [one for batch in open_batches(job) for one in batch["user_ids"].tolist()]
    assert ids == sf.ops.hash_indices([5, 6, 7], num_buckets=10).tolist()
