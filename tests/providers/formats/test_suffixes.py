"""Which files are rows of what kind, and which are not read."""

import pytest

import seqflow as sf
from seqflow.errors import ProviderOptionError

DATA = [
    "f.json5",
    "f.psv",
    "f.zip",
    "f.tfrecord",
    "f.lance",
    "f.mds",
    "f.h5",
    "f.pkl",
    "f.safetensors",
    "f.xlsx",
    "f.txt.gz",
    "f.parquet.gz",
    "f.py.bz2",
    "f.gz",
    "f.foo",
    "f.v1.2",
    "f.",
]
TEXT = [
    "f.txt",
    "f.TXT",
    "f.md",
    "f.rst",
    "f.py",
    "f.c",
    "f.toml",
    "f.yaml",
    "f.ini",
    "f.cfg",
    "f.html",
    "f.css",
    "f.js",
    "f.xml",
    "f.ipynb",
    "f.sql",
]


@pytest.mark.parametrize("name", DATA)
def test_a_file_of_unknown_data_is_an_error_unless_asked_for_as_text(tmp_path, name):
    (tmp_path / name).write_text("a,b\n1,2\n")
    for source in (tmp_path / name, tmp_path, tmp_path / "f*", [tmp_path / name]):
        with pytest.raises(ProviderOptionError, match=r'expected \.parquet.*\n.*kind="text"'):
            sf.open(source)
        assert sf.open(source, kind="text")["bytes"].values.tobytes() == b"a,b\n1,2\n"


@pytest.mark.parametrize("name", TEXT)
def test_prose_and_source_code_are_one_row_a_file(tmp_path, name):
    (tmp_path / name).write_text("a")
    for source in (tmp_path / name, tmp_path, tmp_path / "f*"):
        assert sf.open(source).kind == "text"


def test_a_file_without_a_suffix_is_text_where_it_is_named_itself(tmp_path):
    (tmp_path / "Makefile").write_text("all:")
    assert sf.open(tmp_path / "Makefile").num_rows == 1
    assert sf.open(tmp_path, kind="text").num_rows == 1
    with pytest.raises(ProviderOptionError, match="has no suffix"):
        sf.open(tmp_path)


def test_a_folder_says_how_many_files_it_left_out(tmp_path):
    for name in ("a.py", "b.h5", "c.png", "LICENSE"):
        (tmp_path / name).touch()
    provider = sf.open(tmp_path)
    assert provider.files == (str(tmp_path / "a.py"),)
    assert "3 files of other kinds left out (no suffix, .h5, .png)" in repr(provider)
    assert sf.open(tmp_path, exclude=["*.h5", "*.png", "LICENSE"]).left_out == ""
    assert sf.open([tmp_path / "LICENSE", tmp_path / "*.py"]).num_rows == 2
    with pytest.raises(ProviderOptionError, match=r"b\.h5 has the suffix \.h5: HDF5 can't be read yet"):
        sf.open([tmp_path / "a.py", tmp_path / "b.h5"])


@pytest.mark.parametrize("name", ["a.orc", "a.avro", "a.db", "a.svm"])
def test_a_format_that_another_package_reads_is_an_error_that_names_the_recipe(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(ProviderOptionError, match=r"can't be read yet, but by another package, .*formats.md"):
        sf.open(tmp_path / name)


@pytest.mark.parametrize("name", ["f.json", "f.JSON"])
def test_json_is_left_out_of_folders_unless_it_is_named_or_asked_for(tmp_path, name):
    path = tmp_path / name
    path.write_text('{"a": 1}\n{"a": 2}\n')
    for source in (tmp_path, tmp_path / "f*"):
        with pytest.raises(
            ProviderOptionError, match=r'folders leave out, but kind="json" .*\n.*kind="text"'
        ):
            sf.open(source)
        assert sf.open(source, kind="text").num_rows == 1
        for kind in ("json", "jsonl"):
            assert sf.open(source, kind=kind)["a"].tolist() == [1, 2]
    for source in (path, [path], tmp_path / f"f*{path.suffix}"):
        assert sf.open(source).kind == "jsonl"
        assert sf.open(source)["a"].tolist() == [1, 2]
    (tmp_path / "a.csv").write_text("a\n3\n")
    assert sf.open(tmp_path)["a"].tolist() == [3]
    assert sf.open(tmp_path, kind="json")["a"].tolist() == [1, 2]
