"""Paths, globs, folders and lists of them."""

import os
import socket
import subprocess
import sys
import sysconfig
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import MissingSourceError, ProviderError, ProviderOptionError
from seqflow.providers import paths
from seqflow.providers.formats.suffixes import choose_kind, kind_of

FILES = [
    "a.py",
    "b.txt",
    "pkg/__init__.py",
    "pkg/c.py",
    "pkg/test/d.py",
    "pkg/test/data/e.py",
    "pkg/__pycache__/c.pyc",
    ".hidden/f.py",
    "pkg/.g.py",
    "_SUCCESS",
]


@pytest.fixture
def tree(tmp_path):
    for name in FILES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def find_files(source, exclude=()):
    return paths.find_files(source, exclude).paths


def found(tree, source, **options):
    return [os.path.relpath(path, tree) for path in find_files(source, **options)]


ALL = ["a.py", "b.txt", "pkg/__init__.py", "pkg/c.py", "pkg/test/d.py", "pkg/test/data/e.py"]


def test_a_folder_is_all_files_but_hidden_ones_and_caches(tree):
    assert found(tree, tree) == ALL
    assert found(tree, str(tree) + "/") == ALL


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.py", ["a.py"]),
        ("*/*.py", ["pkg/__init__.py", "pkg/c.py"]),
        ("**/*.py", ["a.py", "pkg/__init__.py", "pkg/c.py", "pkg/test/d.py", "pkg/test/data/e.py"]),
        ("pkg/**", ["pkg/__init__.py", "pkg/c.py", "pkg/test/d.py", "pkg/test/data/e.py"]),
        ("[ab].*", ["a.py", "b.txt"]),
        ("?.txt", ["b.txt"]),
    ],
)
def test_globs_find_files(tree, pattern, names):
    assert found(tree, tree / pattern) == names


@pytest.mark.parametrize("pattern", ["*.parquet", "**/*.parquet", "[dx]*"])
def test_a_folder_that_is_named_as_a_file_gives_its_files_to_a_glob_that_matches_it(tmp_path, pattern):
    """As Spark writes them."""
    for name in ("days.parquet/part-0.parquet", "days.parquet/more/part-1.parquet", "x.parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": [1]}), tmp_path / name)
    for name in ("days.parquet/_SUCCESS", "days.parquet/.part-0.parquet.crc"):
        (tmp_path / name).write_text("")
    expected = ["days.parquet/more/part-1.parquet", "days.parquet/part-0.parquet", "x.parquet"]
    assert found(tmp_path, tmp_path / pattern) == expected
    assert sf.open(tmp_path / pattern).num_rows == 3
    stored = sf.open(pattern, filesystem=pa.fs.SubTreeFileSystem(str(tmp_path), pa.fs.LocalFileSystem()))
    assert stored.num_rows == 3
    with pytest.raises(MissingSourceError):
        find_files(tmp_path / "mor*")


def test_a_list_keeps_its_order_and_each_file_comes_once(tree):
    source = [tree / "pkg" / "c.py", str(tree / "*.py"), str(tree / "pkg" / ".." / "a.py"), tree / "a.py"]
    assert found(tree, source) == ["pkg/c.py", "a.py"]
    assert found(tree, [tree / "b.txt", tree / "a.py"]) == ["b.txt", "a.py"]
    assert list(sf.open([tree / "b.txt", tree / "a.py"], kind="text").files) == [
        f"{tree}/b.txt",
        f"{tree}/a.py",
    ]


def test_the_files_of_each_glob_in_a_list_are_sorted(tree):
    source = [tree / "pkg" / "*.py", tree / "?.*"]
    assert found(tree, source) == ["pkg/__init__.py", "pkg/c.py", "a.py", "b.txt"]


def test_the_same_file_under_a_relative_path_comes_once(tree, monkeypatch):
    monkeypatch.chdir(tree)
    assert find_files(["a.py", str(tree / "a.py"), "./a.py"]) == ["a.py"]


def test_a_file_with_glob_characters_in_its_name_is_a_file(tree):
    (tree / "[1].txt").write_text("")
    assert found(tree, tree / "[1].txt") == ["[1].txt"]


@pytest.mark.parametrize(
    ("exclude", "gone"),
    [
        ("*.txt", ["b.txt"]),
        (["test"], ["pkg/test/d.py", "pkg/test/data/e.py"]),
        (["test/data"], ["pkg/test/data/e.py"]),
        (["test/*.py"], ["pkg/test/d.py"]),
        (["test/**"], ["pkg/test/d.py", "pkg/test/data/e.py"]),
        (["**/test/**/*.py"], ["pkg/test/d.py", "pkg/test/data/e.py"]),
        (["**/test/**"], ["pkg/test/d.py", "pkg/test/data/e.py"]),
        (["test/*"], ["pkg/test/d.py", "pkg/test/data/e.py"]),
        (["test/*/*"], ["pkg/test/data/e.py"]),
        (["test/*/**"], ["pkg/test/data/e.py"]),
        (["[!a].py"], ["pkg/c.py", "pkg/test/d.py", "pkg/test/data/e.py"]),
        (["es", "py", "."], []),
    ],
)
def test_excluded_names_folders_and_paths_are_left_out(tree, exclude, gone):
    assert found(tree, tree, exclude=exclude) == [name for name in ALL if name not in gone]


@pytest.mark.parametrize("exclude", ["test", "test/**", "**/test/*", "pkg/test/**/*"])
@pytest.mark.parametrize("pattern", ["", "**/*.py"])
def test_a_folder_that_is_left_out_may_be_reached_by_a_link(tree, pattern, exclude):
    (tree / "link").symlink_to("pkg/test", target_is_directory=True)
    linked = ["link/d.py", "link/data/e.py"] if pattern else []  # a folder's own links are not followed
    expected = [name for name in ALL if "/test/" not in name and (name.endswith(".py") or not pattern)]
    assert found(tree, tree / pattern, exclude=exclude) == sorted([*expected, *linked])


def test_an_excluded_path_may_be_absolute(tree):
    assert found(tree, tree, exclude=[f"{tree}/pkg"]) == ["a.py", "b.txt"]
    assert found(tree, tree, exclude=["/pkg"]) == ALL


def test_the_places_of_this_python_stand_in_braces():
    stdlib = sysconfig.get_path("stdlib")
    assert find_files("{stdlib}/json/__init__.py") == [f"{stdlib}/json/__init__.py"]
    assert find_files("{stdlib}/json", exclude="{stdlib}/json/[!t]*") == [f"{stdlib}/json/tool.py"]
    with pytest.raises(MissingSourceError, match=r"\{stdlb\} is none of stdlib"):
        find_files("{stdlb}/x")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a.pi", r"did you mean 'a\.py'"),
        ("*.parquet", "no files in"),
        ("nowhere/x.py", "nowhere does not exist either"),
        ("pkgg/*.py", r"no files in .*pkgg/\*.py'; \S*/pkgg does not exist \(did you mean 'pkg'"),
        ("pkgg/", r"did you mean 'pkg'"),
        ("pkgg/sub/x.py", r"pkgg/sub does not exist either, and \S*pkgg does not .* \(did you mean 'pkg'"),
    ],
)
def test_what_is_missing_is_an_error(tree, source, message):
    with pytest.raises(MissingSourceError, match=message):
        sf.open(tree / source)
    with pytest.raises(FileNotFoundError):
        sf.open(tree / source)


def test_nothing_left_after_excluding_is_an_error(tree):
    with pytest.raises(MissingSourceError, match="outside"):
        find_files(tree / "*.py", exclude=["*.py"])


@pytest.mark.parametrize("source", [5, [5, "a"], None])
def test_what_is_no_path_is_an_error(source):
    with pytest.raises(ProviderError, match="expected a path"):
        find_files(source)


def test_a_list_of_paths_holds_paths_only(tree):
    with pytest.raises(ProviderError, match="expected a path in the list of sources, not int"):
        sf.open([tree / "a.py", 5])


def test_suffixes_tell_the_kind():
    assert {kind_of(name) for name in ("a.parquet", "b.PQ")} == {"parquet"}
    assert {kind_of(name) for name in ("a.arrow", "b.feather", "c.IPC")} == {"arrow"}
    assert {kind_of(name) for name in ("a.py", "b.MD", "c.toml")} == {"text"}
    assert {kind_of(name) for name in ("a.jsonl", "a.jsonl.gz")} == {"jsonl"}
    assert {kind_of(name) for name in ("a.json", "b", "c.txt.gz", "d.parquet.gz")} == {None}


def test_mixed_kinds_are_an_error_naming_a_file_of_each(tree):
    (tree / "x.parquet").write_text("")
    with pytest.raises(ProviderError, match=r"a\.py is text and .*x\.parquet is parquet"):
        sf.open(tree)


def test_a_kind_chooses_among_the_files_of_a_folder(tree):
    (tree / "x.parquet").write_text("")
    provider = paths.find_files(tree)
    assert choose_kind(*provider[:1], "parquet", ()).paths == [str(tree / "x.parquet")]


def test_a_kind_overrides_the_suffix(tree):
    (tree / "x.parquet").write_text("text")
    provider = sf.open(tree / "x.parquet", kind="text")
    assert provider["bytes"].values.tobytes() == b"text"
    with pytest.raises(ProviderError, match=r"kind is 'parket' \(did you mean 'parquet'"):
        sf.open(tree, kind="parket")


def test_the_folder_of_the_repository_is_not_importable_under_its_own_name():
    top = Path(__file__).parents[2]
    result = subprocess.run(
        [sys.executable, "-c", "import providers"], cwd=top, capture_output=True, text=True, check=False
    )
    assert "ImportError: import seqflow.providers" in result.stderr


@pytest.mark.slow
def test_opening_imports_no_more_of_arrow_than_it_needs():
    code = (
        "import sys, seqflow, seqflow.providers; "
        "print([m for m in ('parquet', 'dataset', 'compute') if f'pyarrow.{m}' in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_a_tilde_stands_for_the_folder_of_the_user(tree, monkeypatch):
    monkeypatch.setenv("HOME", str(tree))
    assert find_files("~/b.txt") == [str(tree / "b.txt")]
    assert find_files("~/*.txt") == [str(tree / "b.txt")]
    assert find_files("~/pkg", exclude="~/pkg/test") == find_files(tree / "pkg", exclude="pkg/test")
    assert sf.open("~/b.txt").num_rows == 1
    monkeypatch.chdir(tree)
    (tree / "~").write_text("a file of that name")
    assert find_files("./~") == ["~"]


def test_two_stars_enter_each_folder_once_whatever_links_lead_to_it(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "x.txt").touch()
    for folder in (tmp_path / "a", tmp_path / "a" / "b"):
        for name in ("up", "again", "more"):  # a walk that follows them all never ends
            (folder / name).symlink_to(tmp_path, target_is_directory=True)
    assert find_files(tmp_path / "**" / "*.txt") == [str(tmp_path / "a" / "b" / "x.txt")]
    assert find_files(tmp_path / "**" / "b" / "**") == [str(tmp_path / "a" / "b" / "x.txt")]


def test_two_stars_follow_links_to_folders_elsewhere(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.txt").touch()
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "link").symlink_to("../data", target_is_directory=True)
    assert find_files(tmp_path / "tree" / "**" / "*.txt") == [str(tmp_path / "tree" / "link" / "x.txt")]


@pytest.fixture
def special(tmp_path):
    """A folder with a file, a named pipe and a socket."""
    (tmp_path / "a.txt").write_text("a")
    os.mkfifo(tmp_path / "b.txt")
    with socket.socket(socket.AF_UNIX) as server:
        before = os.getcwd()
        os.chdir(tmp_path)  # a socket's path must be short
        server.bind("c.txt")
        os.chdir(before)
        yield tmp_path


@pytest.mark.parametrize("pattern", ["", "*.txt", "**", "**/*.txt"])
def test_only_regular_files_are_found(special, pattern):
    assert find_files(special / pattern) == [str(special / "a.txt")]


@pytest.mark.parametrize("name", ["b.txt", "c.txt", "/dev/null"])
def test_a_pipe_a_socket_or_a_device_is_refused(special, name):
    with pytest.raises(ProviderError, match="is a pipe, socket or device, expected a regular file"):
        find_files(special / name)


def test_a_path_with_a_nul_and_an_exclude_that_is_no_pattern_are_errors_of_ours(tmp_path):
    (tmp_path / "a.txt").touch()
    with pytest.raises(MissingSourceError, match="NUL"):
        find_files("a\0b")
    with pytest.raises(ProviderOptionError, match=r"exclude: '\[z-a\]' is not a pattern"):
        find_files(tmp_path, exclude=["[z-a]"])


@pytest.mark.parametrize(
    "exclude", ["x" + "*" * 500 + "y", "*x" * 30 + "y", "**x" * 30 + "y", "**/*x" * 10 + "y"]
)
def test_an_exclude_of_many_stars_is_read_at_once(tmp_path, exclude):
    (tmp_path / ("x" * 200)).touch()
    assert find_files(tmp_path, exclude=[exclude]) == [str(tmp_path / ("x" * 200))]


def test_names_that_are_not_utf_8_can_be_excluded(tmp_path):
    for name in (b"a\xff.txt", b"b.txt"):
        (tmp_path / os.fsdecode(name)).touch()
    assert find_files(tmp_path, exclude=["a?.txt"]) == [str(tmp_path / "b.txt")]
    assert find_files(tmp_path, exclude=[os.fsdecode(b"a\xff.txt")]) == [str(tmp_path / "b.txt")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exclude": 3}, "exclude is 3, expected a pattern or a list of patterns"),
        ({"exclude": [b"x"]}, r"exclude is \[b'x'\], expected a pattern or a list of patterns"),
        ({"kind": ["parquet"]}, r"kind is \['parquet'\], but must be one of arrow"),
        ({"columns": 3}, "columns must be a list of names, not int"),
        ({"columns": [3]}, "columns must be a list of names, not of int"),
    ],
)
def test_options_of_other_types_are_errors_that_name_them(tmp_path, options, message):
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    with pytest.raises(ProviderOptionError, match=message):
        sf.open(tmp_path / "a.parquet", **options)


def test_patterns_to_exclude_may_come_from_a_generator(tree):
    assert "b.txt" not in found(tree, tree, exclude=(text for text in ["*.txt"]))


@pytest.fixture
def rows(tmp_path):
    """A folder with a Parquet file of two rows."""
    (tmp_path / "data").mkdir()
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "data" / "a[1] %41#.parquet")
    return tmp_path / "data"


@pytest.mark.parametrize("place", ["a[1] %41#.parquet", "", "*.parquet"])
def test_a_uri_of_a_file_is_its_path(rows, place):
    uri = rows.as_uri() + "/*.parquet" if "*" in place else (rows / place).as_uri()
    for one in (uri, uri.replace("file://", "file://localhost"), uri.replace("file://", "file:")):
        assert sf.open(one)["x"].tolist() == [1, 2]


@pytest.mark.parametrize("uri", ["ftp://a.org/a.parquet", "file://host/x", "hdfs://a/*.parquet"])
def test_a_uri_of_another_scheme_is_an_error_that_says_so(uri):
    with pytest.raises(ProviderOptionError, match=r"is a URI of \w+, which can't be read, expected a path"):
        sf.open(uri)
    with pytest.raises(ProviderOptionError, match="is a URI"):
        sf.open([uri])


@pytest.mark.parametrize(
    ("source", "inside", "outside"),
    [
        ("", ["x.txt", "sub/x.parquet"], [".x.txt", "x.json", "x", ".h/x.txt", "../x.txt", "cache/x.txt"]),
        ("*.txt", ["x.txt"], ["x.parquet", "sub/x.txt", ".x.txt"]),
        ("**/*.txt", ["x.txt", "sub/deep/x.txt"], ["x.parquet", ".sub/x.txt", "../x.txt"]),
        ("**", ["x.txt", "sub/x.txt"], ["../x.txt"]),
        ("s*/[xy].txt", ["sub/x.txt"], ["sub/z.txt", "x.txt"]),
        (
            "*.txt",
            ["f.txt/x.txt", "f.txt/deep/x.txt"],
            ["f/x.txt", "f.txt/.x.txt", "f.txt/_SUCCESS", "f.json/x.txt"],
        ),
        ("a.txt", [], ["x.txt"]),
    ],
)
def test_a_source_knows_what_it_would_find(tmp_path, source, inside, outside):
    top = tmp_path / "top"
    for name in ("a.txt", "sub/x.txt", "s/deep/x.txt"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).touch()
    (tmp_path / "link").symlink_to(top)
    for way in ("top", "link"):
        provider = sf.open(tmp_path / way / source, exclude="cache")
        for other in ("top", "link"):
            assert [name for name in inside if not provider.finds(tmp_path / other / name)] == []
            assert [name for name in outside if provider.finds(tmp_path / other / name)] == []


def test_files_that_are_read_twice_are_told(tmp_path, caplog):
    (tmp_path / "a.txt").write_text("a")
    assert sf.open(tmp_path).num_rows == 1
    assert not caplog.records
    (tmp_path / "b.txt").symlink_to("a.txt")
    assert sf.open(tmp_path).num_rows == 2
    assert "a.txt and " in caplog.text
    assert "b.txt are one file, whose rows come twice" in caplog.text
    os.link(tmp_path / "a.txt", tmp_path / "c.txt")
    caplog.clear()
    sf.open(tmp_path, exclude="b.txt")
    assert "c.txt are one file" in caplog.text
