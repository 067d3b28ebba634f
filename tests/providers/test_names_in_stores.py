"""Names of files: each system finds what a disk finds, by name, by folder and by glob."""

import bz2
import fnmatch
import gzip
import io
import os

import fsspec
import obstore
import pyarrow as pa
import pyarrow.fs as pf
import pyarrow.parquet as pq
import pytest
from marks import thorough
from obstore.store import LocalStore, MemoryStore

import seqflow as sf
from seqflow.errors import MissingSourceError
from seqflow.providers import paths

NAMES = [
    "a[1].parquet", "a1.parquet", "b*.parquet", "b x.parquet", "c?.parquet", "c1.parquet", "d{1}.parquet",
    "{stdlib}.parquet", "e=1.parquet", "e?=2.parquet", "f%41.parquet", "fA.parquet", "~g.parquet", "é.parquet",
    "g#h.parquet", "-z.parquet", "k=v?/h.parquet", "k=[v]/h.parquet", "x*y/h.parquet", "xzy/h.parquet",
    "w=1/a?b=c.parquet",
]  # fmt: skip
FOLDERS = ["k=v?", "k=[v]", "x*y", "w=1"]
GLOBS = [
    "a[0-9].parquet", "c?.par*", "b*", "?1.parquet", "k=*/h.parquet", "*/h.parquet", "x?y/*.parquet",
    "**/h.parquet", "e*=*.parquet", "f%*.parquet", "{*.parquet", "*{*}*", "e?=?.parquet", "w=?/a?b=?.parquet",
]  # fmt: skip


def parquet(value):
    file = io.BytesIO()
    pq.write_table(pa.table({"x": [value]}), file)
    return file.getvalue()


def on_disk(folder, files):
    for name, content in files.items():
        (folder / "d" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "d" / name).write_bytes(content)
    return str(folder / "d")


def of_obstore(folder, files):
    store = MemoryStore()
    for name, content in files.items():
        obstore.put(store, f"d/{name}", content)
    return "d", {"filesystem": store}


def of_fsspec(folder, files):
    store = fsspec.filesystem("memory", skip_instance_cache=True)
    for name, content in files.items():
        store.pipe(f"{folder}/d/{name}", content)
    return f"{folder}/d", {"filesystem": store}


def of_folder(make, *, is_inside=True):
    def put(folder, files):
        place = on_disk(folder, files)
        return "d" if is_inside else place, {"filesystem": make(str(folder))}

    return put


SYSTEMS = {
    "disk": lambda folder, files: (on_disk(folder, files), {}),
    "obstore": of_obstore,
    "fsspec": of_fsspec,
    "pyarrow": of_folder(lambda folder: pf.SubTreeFileSystem(folder, pf.LocalFileSystem())),
    "pyarrow local": of_folder(lambda _: pf.LocalFileSystem(), is_inside=False),
    "fsspec dir": of_folder(
        lambda folder: fsspec.filesystem("dir", path=folder, fs=fsspec.filesystem("file"))
    ),
    "LocalStore": of_folder(LocalStore),
}
systems = pytest.mark.parametrize("put", SYSTEMS.values(), ids=SYSTEMS)


def rows(source, **options):
    batches = sf.Loader(source, batch=1 << 20, valid=True, threads=0, **options)
    return sorted(value for batch in batches for value in batch["x"].tolist())


def matching(glob):
    """Numbers of the names that a glob matches, by Python's fnmatch for each part."""
    parts = glob.removeprefix("**/").split("/")
    found = []
    for number, name in enumerate(NAMES):
        names = name.split("/")[-1:] if glob.startswith("**/") else name.split("/")
        if len(names) == len(parts) and all(map(fnmatch.fnmatchcase, names, parts)):
            found.append(number)
    return found


@systems
def test_a_name_may_have_characters_of_globs(tmp_path, put):
    top, options = put(tmp_path, {name: parquet(number) for number, name in enumerate(NAMES)})
    for number, name in enumerate(NAMES):
        assert (name, rows(f"{top}/{name}", **options)) == (name, [number])
    for folder in FOLDERS:
        inside = [number for number, name in enumerate(NAMES) if name.startswith(f"{folder}/")]
        assert (folder, rows(f"{top}/{folder}", **options)) == (folder, inside)
        assert (folder, rows(f"{top}/{folder}/", **options)) == (folder, inside)
    for glob in GLOBS:
        assert (glob, rows(f"{top}/{glob}", **options)) == (glob, matching(glob))
    assert rows(top, **options) == [*range(len(NAMES))]
    assert rows([f"{top}/{name}" for name in NAMES], **options) == [*range(len(NAMES))]


@pytest.mark.slow
@pytest.mark.parametrize("store", ["own", *thorough("localbucket"), "moto"], indirect=True)
def test_names_of_a_bucket_may_have_characters_of_globs(store, tmp_path):
    for number, name in enumerate(NAMES):
        store.put_raw(f"d/{name}", parquet(number))
    for number, name in enumerate(NAMES):
        assert (name, rows(f"{store.uri}/d/{name}", storage_options=store.options)) == (name, [number])
    for glob in GLOBS:
        assert (glob, rows(f"{store.uri}/d/{glob}", storage_options=store.options)) == (glob, matching(glob))
    source = sf.open(f"{store.uri}/d/w=1/a?b=c.parquet", storage_options=store.options)
    assert source.finds(f"{store.uri}/d/w=1/a?b=c.parquet")
    assert list(source.files) == [f"{store.uri}/d/w=1/a?b=c.parquet"]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".jsonl.gz", ".csv.bz2"])
def test_the_suffix_of_a_key_is_after_a_question_mark(suffix):
    content = b"x\n7\n" if "csv" in suffix else b'{"x": 7}\n'
    content = (
        gzip.compress(content) if "gz" in suffix else bz2.compress(content) if "bz2" in suffix else content
    )
    top, options = of_obstore(None, {f"why?{suffix}": content})
    assert rows(f"{top}/why?{suffix}", **options) == [7]


SHOWN = {
    "a.parquet": True,
    "_a.parquet": False,
    "_temporary/0/task/part-1.parquet": False,
    "sub/_temporary/part-1.parquet": False,
    "_k=1/a.parquet": True,
    "_/a.parquet": False,
    "sub/_x/deep/a.parquet": False,
    "sub_x/a_b.parquet": True,
    ".hidden/a.parquet": False,
    "sub/.a.parquet": False,
}


@systems
def test_what_writers_of_tables_keep_aside_is_left_out_unless_it_is_named(tmp_path, put):
    numbers = {name: number for number, name in enumerate(SHOWN)}
    top, options = put(tmp_path, {name: parquet(number) for name, number in numbers.items()})
    shown = [numbers[name] for name, is_shown in SHOWN.items() if is_shown]
    for place in ("", "/**", "/**/*.parquet", "/**/*"):
        assert (place, rows(top + place, **options)) == (place, shown)
    assert rows(f"{top}/*/*", **options) == [numbers["_k=1/a.parquet"], numbers["sub_x/a_b.parquet"]]
    for name, number in numbers.items():
        assert rows(f"{top}/{name}", **options) == [number]
    for glob, name in {
        "_*.parquet": "_a.parquet",
        "_temporary/**/*.parquet": "_temporary/0/task/part-1.parquet",
        "**/_x/deep/*": "sub/_x/deep/a.parquet",
        "sub/_t*/*": "sub/_temporary/part-1.parquet",
        "[_]/*.parquet": None,
    }.items():
        if name is None:
            with pytest.raises(MissingSourceError):
                rows(f"{top}/{glob}", **options)
        else:
            assert (glob, rows(f"{top}/{glob}", **options)) == (glob, [numbers[name]])
    assert rows(f"{top}/_temporary", **options) == [numbers["_temporary/0/task/part-1.parquet"]]
    source = sf.open(top, **options)
    folder = os.path.dirname(next(iter(source.files)))
    assert {name: source.finds(f"{folder}/{name}") for name in SHOWN} == SHOWN


@systems
def test_text_may_begin_with_an_underscore(tmp_path, put):
    names = ["pkg/__init__.py", "_posts/a.md", "_private.py", "_temporary/0/a.txt"]
    top, options = put(tmp_path, dict.fromkeys(names, b"text"))
    for place in (top, f"{top}/**"):
        found = [path.partition("/d/")[2] for path in sf.open(place, **options).files]
        assert found == ["_posts/a.md", "_private.py", "pkg/__init__.py"]


def test_an_object_of_no_bytes_may_stand_for_a_folder(store):
    if store.server != "moto":
        pytest.skip("it refuses such keys")
    for key in ("d/", "d/x.txt/", "d/alone.txt/", "d/k=1/", "d/k=1/y.txt/"):
        store.put_raw(key, b"")
    texts = {"d/x.txt/p.txt": b"p", "d/k=1/y.txt/q.txt": b"q", "d/empty.txt": b"", "d/z.txt": b"z"}
    for key, content in texts.items():
        store.put(key, content)

    def found(place):
        source = sf.open(f"{store.uri}/{place}", storage_options=store.options)
        return sorted(path.removeprefix(f"{store.uri}/") for path in source.files)

    for place in ("d", "d/", "d/**", "d/**/*.txt"):
        assert (place, found(place)) == (place, sorted(texts))
    assert found("d/x.txt") == found("d/x.txt/") == ["d/x.txt/p.txt"]
    assert found("d/*.txt") == ["d/empty.txt", "d/x.txt/p.txt", "d/z.txt"]
    assert found("d/empty.txt") == ["d/empty.txt"]
    with pytest.raises(MissingSourceError):
        found("d/alone.txt")


def test_a_place_of_this_python_is_a_whole_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("{stdlib}.txt", "a{stdlib}", "{stdlib}b.txt"):
        (tmp_path / name).write_text("")
        assert paths.find_files(name).paths == [name]
        assert paths.find_files(tmp_path / name).paths == [str(tmp_path / name)]
