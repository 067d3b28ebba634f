"""Options of a format belong to it: elsewhere they are errors that say where to write them."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import JobError, ProviderOptionError
from seqflow.job import Job

CASES: list[tuple[str, Any, dict[str, Any]]] = [
    ("a.csv", sf.Csv, {"delimiter": ";", "header": True, "batch_bytes": 16}),
    ("a.jsonl", sf.JsonLines, {"extra_fields": "ignore"}),
    ("a.parquet", sf.Parquet, {"memory_map": False, "use_threads": True}),
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


@each_format
def test_a_keyword_says_where_to_write_it(name: str, format: Any, options: dict[str, Any]) -> None:
    sf.open(name, format=format(**options))
    for option, value in options.items():
        shown = (
            rf"'{option}' is an option of {format.__name__}\nwrite format=sf.{format.__name__}\({option}=…\)"
        )
        for make in (sf.open, sf.Loader, lambda path, **given: sf.Mix({path: 1.0}, batch=2, **given)):
            with pytest.raises(ProviderOptionError, match=shown):
                make(name, **{option: value})


@each_format
def test_a_key_of_a_job_says_where_to_write_it(
    folder: Path, name: str, format: Any, options: dict[str, Any]
) -> None:
    rest = {"output": {"path": "out"}}
    job = Job.from_dict({"source": {"paths": name, format.kind: options}, **rest}, folder)
    assert job.source.format == format.kind
    for option, value in options.items():
        if option == "batch_bytes":  # a key of functions that make a source, too
            continue
        with pytest.raises(
            JobError, match=rf"unknown key '{option}' in \[source\]; .*\[source.{format.kind}\]"
        ):
            Job.from_dict({"source": {"paths": name, option: value}, **rest}, folder)


def test_an_option_of_another_format_names_its_own() -> None:
    with pytest.raises(
        ProviderOptionError, match=r"'delimiter' is an option of Csv, and .*a.parquet is Parquet"
    ):
        sf.open("a.parquet", delimiter=";")
    with pytest.raises(ProviderOptionError, match="'delimiter' is an option of Csv, and this is Parquet"):
        sf.Parquet(delimiter=";")
    with pytest.raises(ProviderOptionError, match=r"format is Csv, and .*a.parquet is Parquet"):
        sf.open("a.parquet", format=sf.Csv(delimiter=";"))
    with pytest.raises(ProviderOptionError, match=r"'header' is an option of Csv\nwrite"):
        sf.open("a.csv", format=sf.Csv(delimiter=";"), header=False)


def test_a_kind_that_is_not_that_of_the_options_names_both(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"n": 1}\n')
    with pytest.raises(
        ProviderOptionError, match=r"^format=sf.JsonLines\(…\) belongs to kind jsonl, but kind is parquet$"
    ):
        sf.open(tmp_path / "a.jsonl", kind="parquet", format=sf.JsonLines())
    settings = {
        "source": {"paths": "a.jsonl", "jsonl": {}, "kind": "parquet"},
        "batch": {"n": 1},
        "output": {"path": "out"},
    }
    with pytest.raises(JobError, match=r"\[source.jsonl\] belongs to kind jsonl, but kind is parquet$"):
        Job.from_dict(settings, tmp_path)
    for kind in ("json", "jsonl"):
        assert sf.open(tmp_path / "a.jsonl", kind=kind, format=sf.JsonLines()).kind == "jsonl"


@pytest.mark.parametrize(("format", "shown"), [("csv", "'csv'"), (sf.Csv, r"sf\.Csv"), (3, "3")])
def test_a_format_that_is_no_options_says_what_to_write(tmp_path: Path, format: Any, shown: str) -> None:
    (tmp_path / "a.csv").write_text("n\n1\n")
    for door in (sf.open, sf.Loader):
        with pytest.raises(
            ProviderOptionError, match=rf"format is {shown}, expected .* such as sf\.Csv\(\)\nkind="
        ):
            door(tmp_path / "a.csv", format=format)
