"""Identity of settings and data in states and lengths indexes; the files that were added to the data."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import Any

import numpy as np

from seqflow.errors import OpError
from seqflow.files.interface import Files
from seqflow.files.uris import absolute, is_uri, without_query
from seqflow.identity.content import digest_of_text
from seqflow.identity.differences import Difference, differences, listed
from seqflow.identity.modules import module_texts
from seqflow.identity.samples import digest_of_samples, sampled_digest
from seqflow.identity.transforms import transform_identity
from seqflow.json_schema import matches_schema
from seqflow.loader.order.recipe import Listing, Recipe
from seqflow.net import Net
from seqflow.providers import Provider
from seqflow.providers.block_columns import UNKNOWN_SIZE, BlockColumns
from seqflow.providers.own_kinds import module_of
from seqflow.providers.provider import Block
from seqflow.record.selection import Selection

_FILE = (str, object, object, object)
"""Entry of a file of the data: its path, size, rows and digest."""
FORMAT = 2
"""Format of a state, and version of the meaning of seeds, plans and digests: it rises when one of them changes."""
_LISTED_FILES = 1000
"""Largest number of files that a state lists by name."""
_NOT_READ = ("memory_map", "use_threads", "origin", "started", "read_once", "num_leaves", "folders")
"""Fields of sources that do not decide which data is read."""
_LATER = {"decimal": ".", "newlines": False, "layout": ""}
"""Options that older states do not have, and their values there."""
_SAMPLED_BLOCKS, _SAMPLED_BYTES = 8, 1 << 16
"""Blocks of a source in memory that are sampled, and the largest size in bytes of a sampled row."""


@dataclass(eq=False)
class LoaderIdentity:
    """The facts that decide the batches of a loader, as states and lengths indexes record them; each is
    computed once.
    """

    recipe: Recipe
    listing: Listing
    version: str | None
    """Version of Python functions, if you give one."""
    transforms: dict[str, Any] = field(default_factory=dict, init=False)

    def __getstate__(self) -> dict[str, Any]:
        """Drop what depends on the data: another process looks at the data itself."""
        return {name: value for name, value in vars(self).items() if name not in ("files", "data")}

    def transform(self, option: str) -> Any:
        """Return the identity of `prepare` or `net` as JSON; it is computed when it is first needed."""
        if option not in self.transforms:
            self.transforms[option] = transform_identity(getattr(self.recipe, option), self.version)
        return self.transforms[option]

    def look_at_functions(self) -> None:
        """Note the code of Python functions before they run, because running may change the objects they refer to."""
        for option in ("prepare", "net"):
            if not isinstance(getattr(self.recipe, option), Net):
                self.transform(option)

    def settings(self, world_size: int) -> dict[str, Any]:
        """Settings in a state, by name; `prepare` and `net` by their identities."""
        recipe, steps = self.recipe, self.recipe.steps_per_epoch
        return {
            "columns": _columns(recipe),
            **_where(recipe.source),
            "prepare": self.transform("prepare"),
            "net": self.transform("net"),
            "batch": recipe.batch.to_dict(),
            "pad": {name: repr(how) for name, how in recipe.pad.items()},
            "shuffle": None if recipe.shuffle is None else recipe.shuffle.seed,
            "window": recipe.window,
            "streams": recipe.streams,
            "batches": None if steps is None else steps * world_size,
            "fill": repr(recipe.fill),
            "valid": _valid(recipe),
            "bad_rows": recipe.bad_rows,
            **_bad_files(recipe.source),
            **self._conditions("keep", "require"),
            **_grouped(recipe),
            **({"share": [[*one.columns, one.key] for one in recipe.shares]} if recipe.shares else {}),
            **({} if recipe.member is None else {"member": recipe.member}),
        }

    def _conditions(self, *options: str) -> dict[str, Any]:
        """Return the identities of conditions by option; nothing without any."""
        return {name: found for name in options if (found := self._of_conditions(name))}

    def _of_conditions(self, option: str) -> list[Any]:
        if option not in self.transforms:
            self.transforms[option] = [
                # without constants as older versions wrote it
                one.text
                if option == "require" and not one.net.constants
                else transform_identity(one.net, self.version)
                for one in getattr(self.recipe, option)
            ]
        found: list[Any] = self.transforms[option]
        return found

    def index_key(self, lengths: str | None) -> dict[str, Any]:
        """Return the identity of the lengths in an index: the data, and everything before the planning of batches.

        `lengths` are the planned ones. Without `prepare` and omitted rows it has only their column.
        """
        recipe, columns, data = self.recipe, _columns(self.recipe), self.data
        as_read = recipe.prepare is None and not recipe.omits_rows and lengths is not None
        sliced = bool(self.listing.slices().is_slice.any())
        if as_read:
            assert lengths is not None
            used = (lengths, *(f"{name}." for name in (recipe.grouped or ())[:1]))
            names = [text.partition(": ")[0] for text in data["columns"]]
            planned = [
                text
                for text, name in zip(data["columns"], names, strict=True)
                if any(one.startswith(f"{name}.") for one in used)
            ]
            columns, data = None, {**data, "columns": planned}
        return {
            "format": FORMAT,
            "columns": columns,
            **_where(recipe.source),
            **_bad_files(recipe.source),
            "prepare": self.transform("prepare"),
            "lengths": lengths,
            "cut together": list(recipe.batch.columns or ()),
            "fill": repr(recipe.fill),
            "valid": _valid(recipe),
            "bad_rows": "left out" if recipe.keeps_going else "raise",
            "window": recipe.window if sliced and not as_read else None,
            "data": dict(data),
            **self._conditions("keep", *(["require"] if recipe.keeps_going else [])),
            **_grouped(recipe),
        }

    @cached_property
    def files(self) -> list[list[Any]]:
        """For each file its relative path, its bytes and rows as first listed, and a digest of samples."""
        source, sizes = self.recipe.source, self.listing.file_sizes
        rows = _rows_of_files(_unfiltered(source, self.listing.slices().blocks))
        return [
            [path, sizes.get(name), rows.get(name), _digest_of(source.store, name)]
            for path, name in zip(_relative(source.files), source.files, strict=True)
        ]

    @cached_property
    def data(self) -> dict[str, Any]:
        """Identity of the data in a state: files, by their fingerprints, rows and columns, as first listed.

        For data in memory it is the digest of some rows. A filter is a setting, and does not change the
        identity of the data.
        """
        source, files = self.recipe.source, self.files
        columns = _unfiltered(source, self.listing.slices().blocks)
        rows = _rows_of_files(columns)
        total = None if None in rows.values() else sum(rows.values())  # type: ignore[arg-type]
        found: dict[str, Any] = {
            "kind": source.kind,
            "rows": total,
            "columns": [f"{field.name}: {field.type}" for field in source.schema],
            "read with": dict(_options(source.source)),
            "blocks": digest_of_text(repr(_sizes(columns))),
            **_opened_by(source),
            **_damaged(source),
        }
        if not files and (content := source.content) is not None:
            return found | {"content": content}
        if not files:
            return found | {"content": _content(replace(source, where=None), columns)}
        if len(files) <= _LISTED_FILES:
            return found | {"files": files}
        return found | {"files": len(files), "digest": digest_of_text(repr(files))}


def _grouped(recipe: Recipe) -> dict[str, str]:
    """Return the column whose values make groups of rows; nothing if there is none, as in older states."""
    return {} if recipe.grouped is None else {"by": ".".join(recipe.grouped)}


def check_same(what: str, then: Mapping[str, Any], now: Mapping[str, Any], advice: str = "") -> None:
    """Raise OpError, its message beginning with `what`, when settings, nets or files of the data differ."""
    found = [one.text for one in differences(then, now)]
    if found:
        raise OpError(f"{what}{listed(found)}{advice}")


def _opened_by(source: Provider) -> dict[str, Any]:
    """Return the user's own kind by which a source was opened: its name, options and code."""
    if source.opened_by is None:
        return {}
    kind, options = source.opened_by
    module = module_of(kind)
    # what our own kinds mean does not change with their code: FORMAT rises when it does
    code = {} if module.partition(".")[0] == "seqflow" else {"code of its kind": module_texts([module])}
    return {"opened by": kind, "options": options, **code}


def _unfiltered(source: Provider, blocks: BlockColumns) -> BlockColumns:
    """Return the blocks of the source without its filter."""
    return blocks.with_others(
        {number: source.unfiltered(block)[1] for number, block in blocks.others.items()}
    )


def _rows_of_files(blocks: BlockColumns) -> dict[str, int | None]:
    """Return the rows of each file; None if they are not known before reading."""
    is_known = blocks.rows != UNKNOWN_SIZE
    files = len(blocks.origins)
    unknown = np.bincount(blocks.file[~is_known], minlength=files)
    sums = np.zeros(files, np.int64)
    np.add.at(sums, blocks.file[is_known], blocks.rows[is_known])
    found = zip(blocks.origins, sums.tolist(), unknown.tolist(), strict=True)
    return {path: None if lacks else rows for path, rows, lacks in found}


def _sizes(blocks: BlockColumns) -> list[tuple[str, int | None]]:
    """Return the rows of each block, or its bytes if rows are not known."""
    return [
        ("rows", rows) if rows != UNKNOWN_SIZE else ("bytes", None if nbytes == UNKNOWN_SIZE else nbytes)
        for rows, nbytes in zip(blocks.rows.tolist(), blocks.nbytes.tolist(), strict=True)
    ]


def _content(source: Provider, blocks: Sequence[Block]) -> str:
    """Return the digest of the first, the middle and the last row of some blocks."""
    step = max(1, len(blocks) // _SAMPLED_BLOCKS)
    texts = [text for block in {*blocks[::step], *blocks[-1:]} for text in _rows(source, block)]
    return digest_of_text("\n".join(sorted(texts)))


def _rows(source: Provider, block: Block) -> Iterator[str]:
    table = source.read(block, bad_rows=[])
    for row in sorted({0, table.num_rows // 2, table.num_rows - 1}) if table.num_rows else ():
        one = table.slice(row, 1)
        size = one.nbytes
        try:
            shown = f"{size} bytes" if size > _SAMPLED_BYTES else repr(one.to_pylist())
        except (ValueError, ArithmeticError):  # text that is none, a time beyond Python's
            shown = f"{size} bytes"
        yield f"{block.index} {row}: {shown}"


def _options(source: Any) -> Iterator[tuple[str, Any]]:
    """Yield the options that a source was opened with: its plain fields, and those of its parts."""
    if not is_dataclass(source):
        return
    for one in fields(source):
        value = getattr(source, one.name)
        if one.name in _NOT_READ or (one.name in _LATER and _LATER[one.name] == value):
            continue
        if value is None or isinstance(value, bool | int | str):
            yield one.name, value
        elif isinstance(value, Selection):
            yield from _renamed(value)
        elif isinstance(value, Mapping):  # files by path, each with its columns
            yield from _options(next(iter(value.values()), None))
        else:
            yield from _options(value)


def _renamed(selection: Selection) -> Iterator[tuple[str, Any]]:
    pairs = zip(selection.source.names, selection.renamed.names, strict=True)
    renamed = [[old, new] for old, new in pairs if old != new]
    if renamed:
        yield "renamed", renamed


def _relative(paths: Sequence[str]) -> list[str]:
    """Return paths relative to the folder of all of them; of a URI without its query, which may be a signature."""
    parts = [without_query(absolute(path)).split("/") for path in paths]
    levels = zip(*(one[:-1] for one in parts), strict=False)
    depth = len([*takewhile(lambda names: len(set(names)) == 1, levels)])
    return ["/".join(one[depth:]) for one in parts]


def _digest_of(store: Files, path: str) -> str | None:
    """Return the digest of samples of a file; for an object of a store, which is not read for it, of its version."""
    if not is_uri(path):
        return sampled_digest(path)
    if (entry := store.entry(path)) is None:
        return None
    # the versions of a store in memory are numbers, which another one has, too
    if not entry.version or path.startswith("memory:"):
        return digest_of_samples(lambda count, start: store.read(path, start, start + count), entry.size)
    return digest_of_text(f"{entry.size} {entry.version}")


def _columns(recipe: Recipe) -> list[str] | None:
    return None if recipe.columns is None else list(recipe.columns)


def _where(source: Provider) -> dict[str, str]:
    return {"where": source.condition} if source.condition else {}


def _bad_files(source: Provider) -> dict[str, str]:
    return {"bad_files": "left out"} if source.bad_files.leaves_out else {}


def _damaged(source: Provider) -> dict[str, list[str]]:
    """Return the files that were omitted as damaged: one that is mended later is a change."""
    paths = [one.path for one in source.damaged]
    return {"damaged files": _relative([*paths, *source.files])[: len(paths)]} if paths else {}


def _valid(recipe: Recipe) -> bool | list[str]:
    return recipe.valid if isinstance(recipe.valid, bool) else sorted(recipe.valid)


_OF_FILES = ("rows", "blocks", "files", "damaged files")
"""Entries of a state about all files together: they differ if files were added, of which some may be damaged."""


def added_files(before: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[list[str], str]:
    """Return the new files of some data, if nothing else has changed, and the folder that older paths are now in.

    The folder of all files changes if one was added above it.
    """
    files, of_now = before.get("files"), now.get("files")
    same = all(before.get(name) == now.get(name) for name in {*before, *now} - {*_OF_FILES})
    if not same or not matches_schema(files, [_FILE]) or not matches_schema(of_now, [_FILE]):
        return [], ""
    assert isinstance(files, Sequence)
    assert isinstance(of_now, Sequence)
    present = {path: rest for path, *rest in of_now}
    for folder in _folders([path for path, *_ in files], list(present)):
        old = [[folder + path, *rest] for path, *rest in files]
        known = {path for path, *_ in old}
        if [one for one in map(list, of_now) if one[0] in known] == old:
            return [path for path in present if path not in known], folder
    return [], ""


def lost_file(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Return, as text, the first older file of some data that is missing or has changed; None if all are as they
    were, or not listed. New files do not matter, nor the folder that all are in.
    """
    if not matches_schema(before.get("files"), [_FILE]):
        return None
    files, present = before["files"], {path: rest for path, *rest in now["files"]}
    folders = _folders([path for path, *_ in files], list(present)) or [""]
    folder = max(folders, key=lambda folder: sum(folder + path in present for path, *_ in files))
    for path, *rest in files:
        if folder + path not in present:
            return f"{path} is missing"
        if present[folder + path] != rest:
            text = Difference(("data", "files", path), rest, present[folder + path]).text
            return f"{path} has changed since its rows were written: {text}"
    return None


def changed_columns(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[Difference]:
    """Return the columns, each the end of a path, that differ between some data and the data of now."""
    found = differences({"data": before}, {"data": now})
    return [one for one in found if one.path[1:2] == ("columns",) and len(one.path) == 3]


def _folders(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """Yield the folders in which all older files may be now."""
    if not before:
        return [""]
    first = before[0]
    return sorted(
        {path.removesuffix(first) for path in now if path == first or path.endswith("/" + first)}, key=len
    )
