"""States, indexes and outputs of earlier releases are read, from files that their own code has written."""

import json
import shutil
from pathlib import Path

import pytest

import seqflow as sf
from seqflow.job import Job, run

RELEASES = {
    name: Path(__file__).parent / f"written_by_{name.replace('.', '_')}" for name in ("0.2.0", "0.3.0")
}
OPTIONS = {"shuffle": sf.Shuffle(3), "window": "4 KiB"}
PLANS = {
    "rows": 8,
    "budget": sf.TokenBudget(64),
    "packed": sf.Packed(32),
    "buckets": sf.Buckets([2, 4, 8], sf.Rows(8)),
}


@pytest.fixture(params=RELEASES)
def written(request):
    """The folder of what a release has written."""
    return RELEASES[request.param]


@pytest.fixture
def data(written, tmp_path):
    return shutil.copy(written / "d.parquet", tmp_path)


@pytest.mark.parametrize("name", [*PLANS, "mix"])
def test_a_state_goes_on_with_the_same_batches(name, written, data):
    found = json.loads((written / "states.json").read_text())[name]
    if name == "mix":
        weights = {"a": 0.7, "b": 0.3}
        loader = sf.Mix({"a": data, "b": data}, weights=weights, seed=1, batch=8, **OPTIONS)
    else:
        loader = sf.Loader(data, batch=PLANS[name], **OPTIONS)
    if name == "mix":  # its sources have orders of their own now
        with pytest.raises(sf.OpError, match="the record of a mix has order 1, expected 2"):
            loader.load_state_dict(found["state"])
        return
    loader.load_state_dict(found["state"])
    rest = [batch["tokens" if "tokens" in batch else "tokens.values"].tolist() for batch in loader]
    assert rest[:3] == found["next"]
    assert len(rest) == found["left"]


def test_a_lengths_index_is_used_as_it_is(written, data, tmp_path):
    index = Path(shutil.copy(written / "d.index", tmp_path))
    loader = sf.Loader(data, batch=sf.TokenBudget(64), window="4 KiB", index=index)
    assert len(loader) == sum(1 for _ in loader) == 50
    assert index.read_bytes() == (written / "d.index").read_bytes()


@pytest.fixture(params=["complete", "begun"])
def job(request, written, data, tmp_path):
    shutil.copy(written / "job.toml", tmp_path)
    shutil.copytree(written / request.param / "out", tmp_path / "out")
    return Job.read(tmp_path / "job.toml")


def test_an_output_is_complete_or_is_completed(job, written, tmp_path):
    begun = (tmp_path / "out" / ".progress.json").exists()
    assert run(job, resume=begun).outcome == ("resumed" if begun else "complete")
    for path in (written / "complete" / "out").glob("part-*"):
        assert (tmp_path / "out" / path.name).read_bytes() == path.read_bytes()


@pytest.mark.parametrize("release", RELEASES)
def test_they_were_written_by_that_release(release):
    manifest = RELEASES[release] / "complete" / "out" / "_manifest.json"
    assert json.loads(manifest.read_text())["seqflow"] == release
