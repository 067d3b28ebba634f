"""Options of a format as keywords of `open` and keys of jobs, as they once were: a warning, and all else the same."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow

import seqflow as sf
from seqflow.errors import ProviderOptionError
from seqflow.job import Job, run
from seqflow.job.earlier_run import describe
from seqflow.job.opening import open_batches

CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("a.csv", sf.Csv, {"delimiter": ";", "header": True, "batch_bytes": 16}),
    ("a.jsonl", sf.JsonLines, {"schema": {"n": "int32"}, "extra_fields": "ignore"}),
    ("a.parquet", sf.Parquet, {"memory_map": False, "untrusted": True}),
    ("a.txt", sf.Text, {"encoding": "latin-1", "errors": "strict", "batch_bytes": 100}),
]
each_format = pytest.mark.parametrize(("name", "format", "options"), CASES, ids=[name for name, *_ in CASES])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("n;m\n1;2\n3;4\n5;6\n")
    Path("a.jsonl").write_text('{"n": 1, "m": 2}\n{"n": 3}\n')
    pq.write_table(pa.table({"n": [1, 2, 3]}), "a.parquet")
    Path("a.txt").write_bytes(b"na\xefve")
    return tmp_path


@contextmanager
def warned(format: Any, names: Any) -> Iterator[None]:
    """One warning at least, each of which names the new spelling, at the line that gave the old one."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield
    assert found
    for one in found:
        assert issubclass(one.category, DeprecationWarning)
        assert one.filename == __file__
        assert f"write format=sf.{format.__name__}(" in str(one.message)
        assert f"[source.{format.kind}]" in str(one.message)
        # schema= is an option of all sources
        assert all(f"{name}=…" in str(one.message) for name in names if name != "schema")


@each_format
def test_keywords_are_options_of_the_format(name: str, format: Any, options: dict[str, Any]) -> None:
    new = sf.open(name, format=format(**options))
    with warned(format, options):
        old = sf.open(name, **options)
    assert old.schema == new.schema
    assert [old.read(block) for block in old.blocks()] == [new.read(block) for block in new.blocks()]


@each_format
def test_a_state_is_the_same(name: str, format: Any, options: dict[str, Any]) -> None:
    new = sf.Loader(name, format=format(**options), batch=2)
    with warned(format, options):
        old = sf.Loader(name, batch=2, **options)
    assert old.state_dict() == new.state_dict()
    assert old.pipeline.identity.data == new.pipeline.identity.data


@each_format
def test_a_job_is_the_same(folder: Path, name: str, format: Any, options: dict[str, Any]) -> None:
    rest = {"output": {"path": "out"}}
    new = Job.from_dict({"source": {"paths": name, format.kind: options}, **rest}, folder)
    old = Job.from_dict({"source": {"paths": name, **options}, **rest}, folder)
    with warned(format, options):
        loader = open_batches(old)
    described = describe(old, loader)
    assert described == describe(new, open_batches(new))
    assert described["source.kind"] is None
    report = run(new)
    with warned(format, options):
        assert run(old).files == report.files  # complete: nothing is written again


def test_a_mix_takes_them_too() -> None:
    with warned(sf.Csv, ["delimiter"]):
        old = sf.Mix({"a.csv": 1.0}, batch=2, delimiter=";")
    assert old.state_dict() == sf.Mix({"a.csv": 1.0}, batch=2, format=sf.Csv(delimiter=";")).state_dict()


def test_an_option_of_another_format_names_its_own() -> None:
    with pytest.raises(
        ProviderOptionError, match=r"'delimiter' is an option of Csv, and .*a.parquet is Parquet"
    ):
        sf.open("a.parquet", delimiter=";")
    with pytest.raises(ProviderOptionError, match="'delimiter' is an option of Csv, and this is Parquet"):
        sf.Parquet(delimiter=";")
    with pytest.raises(ProviderOptionError, match=r"format is Csv, and .*a.parquet is Parquet"):
        sf.open("a.parquet", format=sf.Csv(delimiter=";"))
    with pytest.raises(ProviderOptionError, match="'header' is given next to format"):
        sf.open("a.csv", format=sf.Csv(delimiter=";"), header=False)


@pytest.mark.parametrize(("format", "shown"), [("csv", "'csv'"), (sf.Csv, r"sf\.Csv"), (3, "3")])
def test_a_format_that_is_no_options_says_what_to_write(tmp_path: Path, format: Any, shown: str) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n")
    for door in (sf.open, sf.Loader):
        with pytest.raises(
            ProviderOptionError, match=rf"format is {shown}, expected .* such as sf\.Csv\(\)\nkind="
        ):
            door(tmp_path / "a.csv", format=format)


def test_the_command_shows_old_keys_of_a_job(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n;m\n1;2\n")
    (tmp_path / "job.toml").write_text('[source]\npaths = "a.csv"\ndelimiter = ";"\n[output]\npath = "out"\n')
    for command in (["check"], ["run", "--quiet"]):
        done = seqflow(*command, "job.toml", folder=tmp_path)
        assert done.returncode == 0
        assert done.stderr.startswith("seqflow: 'delimiter': write format=sf.Csv(delimiter=…), in a job")
    (tmp_path / "job.toml").write_text(
        '[source]\npaths = "a.csv"\n[source.csv]\ndelimiter = ";"\n[output]\npath = "o"\n'
    )
    assert seqflow("check", "job.toml", folder=tmp_path).stderr == ""
