"""A release: its version is one everywhere, and its changes are a screen."""

import json
import re
import tomllib
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow import registry
from seqflow.deprecated_names import old_names
from seqflow.job import Job, run
from seqflow.output.progress_file import parse_progress

ROOT = Path(__file__).parents[2]
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
SECTIONS = re.findall(
    r"^## (\S+)(?: \((\d{4}-\d\d-\d\d)\))?\n(.*?)(?=^## |\Z)", CHANGES, re.MULTILINE | re.DOTALL
)
RELEASES = [section for section in SECTIONS if section[0] != "Unreleased"]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT, TOOLS = SETTINGS["project"], SETTINGS["tool"]


def test_the_version_is_one_everywhere():
    assert PROJECT["version"] == sf.__version__
    release, _, development = sf.__version__.partition(".dev")
    numbers, latest = (tuple(map(int, one.split("."))) for one in (release, RELEASES[0][0]))
    assert numbers > latest if development else numbers == latest
    minor = release.rpartition(".")[0]
    assert f"Version {minor};" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.skipif(not (ROOT / "CITATION.cff").exists(), reason="a source distribution may have none")
def test_a_citation_names_the_latest_release():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    cited = re.search(r"^version: (.*)\ndate-released: (.*)$", text, re.MULTILINE)
    assert cited is not None
    assert cited.groups() == RELEASES[0][:2]


def test_the_changes_of_a_release_are_a_screen():
    assert [version for version, _, _ in RELEASES] == ["0.4.0", "0.3.0", "0.2.0", "0.1.0"]
    assert max(map(len, CHANGES.splitlines())) <= 118
    for version, _, text in SECTIONS:
        assert len(text.strip().splitlines()) < 60, version


def test_no_op_and_no_plan_has_an_old_name():
    """The old names of 0.2 are gone; `renamed=` is for users' own ops."""
    assert {name: old_names(name) for name in (*registry.names(), "Pad", "Packed") if old_names(name)} == {}


def test_the_classifiers_say_what_python_it_is_for_and_that_it_has_types():
    classifiers = PROJECT["classifiers"]
    assert "Typing :: Typed" in classifiers
    assert (ROOT / "seqflow" / "py.typed").exists()
    least = PROJECT["requires-python"].removeprefix(">=")
    versions = [one.rpartition(" ")[2] for one in classifiers if re.search(r"Python :: 3\.\d+", one)]
    assert versions[0] == least


JOB = """
[source]
paths = "d.parquet"
[order]
window = "4 KiB"
[batch]
kind = "packed"
capacity = 32
rows = 1
[output]
path = "out"
part_bytes = "8 KiB"
"""


@pytest.fixture
def job(tmp_path):
    """A job of several parts."""
    rows = {"tokens": [[n] * (n % 7) for n in range(1000)]}
    pq.write_table(pa.table(rows), tmp_path / "d.parquet", row_group_size=100)
    (tmp_path / "job.toml").write_text(JOB)
    return Job.read(tmp_path / "job.toml")


def stopped(job):
    """Run a job, and stop it in the middle."""

    def stop(stats, total):
        if stats.batches == 60:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        run(job, stop)


def test_a_complete_output_of_an_earlier_version_is_complete(job, tmp_path):
    run(job)
    manifest = tmp_path / "out" / "_manifest.json"
    record = json.loads(manifest.read_text())
    assert record["seqflow"] == sf.__version__
    manifest.write_text(json.dumps({**record, "seqflow": "0.1.0"}))
    assert run(job).outcome == "complete"


def test_the_beginning_of_an_output_of_an_earlier_version_goes_on_where_the_form_is_the_same(job, tmp_path):
    stopped(job)
    progress = tmp_path / "out" / ".progress.json"
    record = parse_progress(progress.read_text())
    assert record["seqflow"] == sf.__version__
    progress.write_text(json.dumps({**record, "seqflow": "0.1.0"}) + "\n")
    assert run(job, resume=True).outcome == "resumed"


def test_states_and_indexes_do_not_depend_on_the_version(tmp_path, monkeypatch):
    """What says which loader a state or an index is of has no version: its format says whether it is read."""
    pq.write_table(pa.table({"x": [[1], [2, 3], [4]]}), tmp_path / "x.parquet")
    loader = sf.Loader(tmp_path / "x.parquet", batch=sf.TokenBudget(2), index=tmp_path / "x.index")
    assert len(loader) > 1
    state = json.dumps(loader.state_dict())
    assert sf.__version__ not in state
    assert sf.__version__.encode() not in (tmp_path / "x.index").read_bytes()


def test_each_extra_that_is_named_is_one():
    """pip only warns of an extra that is not there, and installs nothing of it."""
    of_requirements = [each for needed in PROJECT["optional-dependencies"].values() for each in needed]
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")]
    code = [
        *(ROOT / "seqflow").rglob("*.py"),
        *(ROOT / "providers").rglob("*.py"),
        *(ROOT / "ops").rglob("*.py"),
    ]
    texts = [path.read_text(encoding="utf-8") for path in pages + code]
    named = {
        extra
        for text in of_requirements + texts
        for extras in re.findall(r"(?:\bseqflow|pip install (?:-e )?[\"']?\.)\[([\w,-]+)\]", text)
        for extra in extras.split(",")
    }
    assert len(named) > 5
    assert named <= set(PROJECT["optional-dependencies"])


def test_no_page_or_message_installs_by_a_name_that_is_anothers():
    """The name `seqflow` on the package index belongs to another project."""
    texts = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    texts += [
        path for room in ("seqflow", "ops", "providers", "benchmarks") for path in (ROOT / room).rglob("*.py")
    ]
    wrong = re.compile(r"pip install [^`\n]*\bseqflow\[|(?<!Do not `)pip install seqflow\b")
    assert [str(path) for path in texts if wrong.search(path.read_text(encoding="utf-8"))] == []
