"""Kinds of files by their suffixes, and the choice of the files to read."""

import os
from collections.abc import Container, Iterable, Sequence
from typing import NamedTuple

from seqflow.errors import ProviderError, ProviderOptionError
from seqflow.files.uris import without_query
from seqflow.providers.tables.table_formats import check_table_formats

_SUFFIXES_OF = {
    "parquet": ".parquet .pq",
    "arrow": ".arrow .arrows .ipc .feather",
    "jsonl": ".jsonl .ndjson",
    "csv": ".csv .tsv .tab",
    "numpy": ".npy .npz",
    "megatron": ".idx",
    "tar": ".tar",
}
SUFFIXES = {suffix: kind for kind, suffixes in _SUFFIXES_OF.items() for suffix in suffixes.split()}
"""Suffixes of files with many rows each."""
JSON = "json"
"""Name of kind "jsonl" that also takes the files called `.json` of a folder."""
OF_LINES = ("jsonl", "csv")
"""Kinds of files that are read by lines, which may be compressed."""
_TEXT = """
    txt text md markdown mdx rst adoc asciidoc org tex ltx bib cls sty textile wiki pod man me log
    html htm xhtml xml xsl xslt xsd dtd svg css scss sass less vue svelte astro
    toml yaml yml ini cfg conf config properties env lock editorconfig plist tf tfvars hcl nix service
    py pyi pyx pxd pxi pyw ipynb r rmd jl m c h cc cpp cxx c++ hh hpp hxx h++ inl ipp tpp cu cuh cl metal mm
    cs fs fsi fsx vb java kt kts scala sc groovy gradle clj cljs cljc edn js mjs cjs jsx ts mts cts tsx coffee
    go rs swift dart zig nim v vh sv svh vhd vhdl d pas pp ada adb ads f f77 f90 f95 f03 f08 for ftn
    lua pl pm t raku rb erb rake gemspec php phtml sh bash zsh fish csh ksh ps1 psm1 bat cmd awk sed tcl
    hs lhs elm erl hrl ex exs ml mli re rei lisp lsp el scm ss rkt sml lean agda idr thy
    sql psql graphql gql proto thrift fbs capnp avsc asm s ll mlir wat glsl vert frag hlsl wgsl
    cmake mk mak make ninja bzl bazel star am ac m4 in diff patch po pot srt vtt ebnf bnf g4 y yy l ll sol move vy
    dockerfile vim gd nf wdl smk qml pro ino gitignore
"""
TEXT_SUFFIXES = frozenset(f".{suffix}" for suffix in _TEXT.split())
"""Suffixes of prose, source code, markup and settings: one row a file."""
COMPRESSIONS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
"""Suffixes of compressed files of lines, with the name of the compression."""
_LATER = {
    "JSON": ".json .json5 .geojson",
    "lines with bars": ".psv",
    "archives but plain .tar": ".tgz .tbz2 .zip .7z .rar",
    "compressed files but those of lines": ".gz .bz2 .zst .xz .lz4 .snappy .br .z .lzma",
    "TFRecord": ".tfrecord .tfrecords .tfrec",
    "Lance": ".lance",
    "Vortex": ".vortex",
    "MDS": ".mds",
    "HDF5": ".h5 .hdf5 .hdf .nc",
    "tensors": ".pt .pth .ckpt .safetensors .pkl .pickle .bin .mat .msgpack .rds .dta .sav",
    "spreadsheets": ".xls .xlsx .xlsm .ods",
    "databases": ".sqlite .sqlite3 .db .duckdb .mdb .accdb",
    "ORC": ".orc",
    "Avro": ".avro",
    "libsvm": ".libsvm .svmlight .svm",
}
_SHOWN = 3


class Chosen(NamedTuple):
    """The kind of a source, its files of that kind, and a message that counts those left out."""

    kind: str
    paths: list[str]
    left_out: str


def choose(paths: Sequence[str], named: Iterable[str], source: str) -> Chosen:
    """Return the files of known suffixes, all of one kind; all files that were `named` themselves must be among them.

    A file without a suffix is text if it was named itself, and `.json` is JSON lines. Raise ProviderOptionError for a
    mixture of kinds, for an unknown suffix of a file that was named, and if no file is left.
    """
    own = set(named)
    known = set(paths)
    kinds: dict[str, list[str]] = {}
    others = []
    for path in paths:
        kind = kind_of(path)
        if kind is None and path in own:
            kind = "jsonl" if is_json(path) else None if _suffix(path) else "text"
        if _is_indexed(path, known):
            continue
        if kind is None and path in own:
            raise ProviderOptionError(_unknown(path))
        others.append(path) if kind is None else kinds.setdefault(kind, []).append(path)
    if len(kinds) > 1:
        (one, (here, *_)), (other, (there, *_)), *_ = kinds.items()
        raise ProviderOptionError(
            f"{here} is {one} and {there} is {other}\n"
            "read one kind at a time: with a glob such as '*.parquet', with exclude=, or with kind="
        )
    if not kinds:
        check_table_formats(others)
        raise ProviderOptionError(f"{source}: no file is of a known kind\n{_unknown(others[0])}")
    ((kind, chosen),) = kinds.items()
    return Chosen(kind, chosen, _left_out(others))


def choose_kind(paths: Sequence[str], kind: str, named: Iterable[str]) -> Chosen:
    """Return the files whose suffix is of this kind, and the `named` ones; all files if no suffix is of this kind.

    Kind "json" is that of JSON lines, and of files called `.json`.
    """
    own, known, of_json = set(named), set(paths), kind == JSON
    kind = "jsonl" if of_json else kind
    of_kind = {path for path in paths if kind_of(path) == kind or (of_json and is_json(path))}
    if not of_kind:
        return Chosen(kind, list(paths), "")
    chosen = [path for path in paths if path in own or path in of_kind]
    others = known.difference(chosen)
    return Chosen(
        kind, chosen, _left_out([one for one in paths if one in others and not _is_indexed(one, known)])
    )


def _is_indexed(path: str, known: Container[str]) -> bool:
    """Return whether this is the data file of a Megatron index among the files."""
    return path[-4:].lower() == ".bin" and f"{path[:-4]}.idx" in known


def kind_of(path: str) -> str | None:
    """Return the kind of a file by its suffix, or by the one before a compression's: `a.csv.gz` is csv."""
    suffix = _suffix(path)
    if suffix in COMPRESSIONS:
        before = _suffix(path[: -len(suffix)])
        kind = SUFFIXES.get(before)
        return kind if kind in OF_LINES else None
    return SUFFIXES.get(suffix) or ("text" if suffix in TEXT_SUFFIXES else None)


def is_json(path: str) -> bool:
    """Return whether this is a file called `.json`, which folders leave out: most often it is about other files."""
    suffix = _suffix(path)
    return (_suffix(path[: -len(suffix)]) if suffix in COMPRESSIONS else suffix) == ".json"


def _suffix(path: str) -> str:
    return os.path.splitext(without_query(path))[1].lower()


def _unknown(path: str) -> str:
    """Return a message: why a file cannot be read, and which suffixes can."""
    suffix = _suffix(path)
    what = suffix
    if suffix in COMPRESSIONS and (before := _suffix(path[: -len(suffix)])):
        what = before + suffix
        suffix = before if before not in TEXT_SUFFIXES and before not in SUFFIXES else suffix
    form = next((name for name, suffixes in _LATER.items() if suffix in suffixes.split()), None)
    if what == "":
        found = "has no suffix, so its kind is not known"
    elif form is None:
        found = f"has the suffix {what}, which is not known"
    else:
        found = f"has the suffix {what}: {form} can't be read yet"
    if form in ("TFRecord", "MDS"):
        found += ", but by a source of your own, as in docs/extending.md"
    if form in ("ORC", "Avro", "databases", "libsvm"):
        found += ", but by another package, as in docs/formats.md"
    if suffix == ".bin":
        found += ", but Megatron's .idx next to it can"
    if suffix == ".json":
        found = (
            f"has the suffix {what}, which folders leave out, but kind=\"json\" or a glob '*.json' reads it"
        )
    known = ", ".join(SUFFIXES)
    return (
        f"{path} {found}, expected {known}, or that of a text such as .txt, .md or .py\n"
        'kind="text" reads any file as one row, its bytes; other data may be passed as an Arrow table or stream'
    )


def _left_out(paths: Sequence[str]) -> str:
    """Return a message that counts the files left out, with their suffixes."""
    if not paths:
        return ""
    suffixes = list(dict.fromkeys(_suffix(path) or "no suffix" for path in paths))
    shown = ", ".join(suffixes[:_SHOWN]) + (", …" if len(suffixes) > _SHOWN else "")
    return f"{len(paths):,} file{'s' * (len(paths) != 1)} of other kinds left out ({shown})"


def check_utf8(paths: Sequence[str], kind: str) -> None:
    """Raise ProviderError for a name that is not UTF-8, which pyarrow can't open; in text files it is a bad row."""
    for path in paths:
        try:
            path.encode()
        except UnicodeEncodeError:
            raise ProviderError(
                f"{path}: the name of a {kind} file is not UTF-8\nrename it, or leave it out with exclude="
            ) from None
