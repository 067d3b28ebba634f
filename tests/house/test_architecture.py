"""The house is built as docs/architecture.md draws it: imports run one way, from floor to floor."""

import ast
import re
from collections import defaultdict
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
FOLDERS = {"seqflow": ROOT / "seqflow", "seqflow.ops": ROOT / "ops", "seqflow.providers": ROOT / "providers"}


class Room(NamedTuple):
    """A row of the table: the files and folders of a room, its floor, and the rooms it imports."""

    places: tuple[str, ...]
    floor: int
    imports: set[str]


def read_table():
    rooms = {}
    for line in re.findall(r"^\| \d.*", PAGE.partition("has floors of its own")[0], re.MULTILINE):
        _, floor, places, _, imports, _ = line.split("|")
        name, *others = re.findall(r"`(.+?)`", places)
        rooms[name] = Room((name, *others), int(floor), set(re.findall(r"`(.+?)`", imports)))
    return rooms


ROOMS = read_table()
ROOM_OF_PLACE = {place: name for name, room in ROOMS.items() for place in room.places}


def find_modules():
    """The files of the package by module name; links to the folders at the top are not followed."""
    modules = {}
    for package, folder in FOLDERS.items():
        for file in folder.rglob("*.py"):
            inside = file.relative_to(folder)
            if package == "seqflow" and inside.parts[0] in ("ops", "providers"):
                continue
            parts = [package, *inside.with_suffix("").parts]
            modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return modules


MODULES = find_modules()


def room_of(module):
    """The room of a module: that of its folder, or of its file where it lies in none; a folder may lie in another."""
    inside = module.split(".")[1:] or ["__init__"]
    face = f"{'/'.join(inside)}/__init__.py"
    if face in ROOM_OF_PLACE:
        return ROOM_OF_PLACE[face]
    for end in range(len(inside), 0, -1):
        for place in ("/".join(inside[:end]) + ".py", "/".join(inside[:end]) + "/"):
            if place in ROOM_OF_PLACE:
                return ROOM_OF_PLACE[place]
    raise AssertionError(f"docs/architecture.md has no room for {module}")


def statements_of(node):
    """All statements below a node; `ast.walk` takes seconds for the expressions of all files."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, name, ()):
            yield inner
            yield from statements_of(inner)


def imported_by(text, module):
    """The modules of ours that a file imports: at its top, inside functions, for types only, or by name."""
    tree = ast.parse(text)
    is_package = MODULES.get(module, Path()).name == "__init__.py"
    for node in ast.walk(tree) if "import_module" in text else statements_of(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            outer = module.split(".")[: None if is_package else -1]
            outer = outer[: len(outer) - node.level + 1] if node.level else []
            base = ".".join([*outer, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                yield inner if inner in MODULES else base
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
            yield from re.findall(r"^f?'(seqflow\.[a-z_.]*\w)", ast.unparse(node.args[0]))


@cache
def find_imports():
    """For each module, the other modules of ours that it imports."""
    imports = defaultdict(set)
    for module, file in MODULES.items():
        for name in imported_by(file.read_text(), module):
            if name.split(".")[0] == "seqflow" and name != module and "_native" not in name:
                imports[module].add(name)
    return imports


def imports_of_room(name):
    inside = [names for module, names in find_imports().items() if room_of(module) == name]
    return {room_of(imported) for names in inside for imported in names} - {name}


def test_each_file_and_folder_is_in_the_table():
    folders = {f"{path.name}/" for path in (ROOT / "seqflow").iterdir() if any(path.glob("*.py"))}
    outermost = {place for place in ROOM_OF_PLACE if "/" not in place.rstrip("/")}
    assert outermost == folders | {path.name for path in (ROOT / "seqflow").glob("*.py")}
    assert all((ROOT / "seqflow" / place).exists() for place in ROOM_OF_PLACE)


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_imports_lower_floors_only(name):
    room = ROOMS[name]
    assert {other for other in room.imports if ROOMS[other].floor >= room.floor} == set()
    assert room.floor > 1 or not imports_of_room(name)


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_imports_what_the_table_says(name):
    ground = {room for room in ROOMS if ROOMS[room].floor == 1}
    assert imports_of_room(name) - ground == ROOMS[name].imports


def test_floors_inside_the_loader_import_lower_ones_only():
    rows = re.findall(r"^\| (\d) \| ([^|]*) \|", PAGE.partition("| in `loader/` |")[2], re.MULTILINE)
    floors = {
        place.strip("`/").removesuffix(".py"): int(floor) for floor, names in rows for place in names.split()
    }
    inside = {
        module: module.split(".")[2:] or ["__init__"]
        for module in MODULES
        if module.startswith("seqflow.loader")
    }
    assert {parts[0] for parts in inside.values()} == set(floors)
    upward = [
        (module, name)
        for module, parts in inside.items()
        for name in find_imports()[module] & inside.keys()
        if floors[inside[name][0]] > floors[parts[0]]
    ]
    assert upward == []


def test_rooms_with_files_that_know_each_other_are_named():
    """A circle of files lies inside one room, and the page says which room and why."""
    known = set(re.findall(r"^\* `(.+?)`: ", PAGE.partition("## Circles")[2], re.MULTILINE))
    found = set()
    for room in ROOMS:
        inside = {module: names for module, names in find_imports().items() if room_of(module) == room}
        try:
            TopologicalSorter(inside).prepare()
        except CycleError:
            found.add(room)
    assert found == known


@pytest.mark.parametrize(
    ("text", "imported"),
    [
        ("from seqflow.net import Net", "seqflow.net"),
        ("from seqflow import net", "seqflow.net"),
        ("def f():\n    import seqflow.net", "seqflow.net"),
        ("if TYPE_CHECKING:\n    from seqflow.net.net import Net", "seqflow.net.net"),
        ("from . import net", "seqflow.net"),
        ("from .net import Net", "seqflow.net"),
        ("importlib.import_module('seqflow.net')", "seqflow.net"),
        ("import_module(f'seqflow.ops.{family}')", "seqflow.ops"),
    ],
)
def test_no_way_to_import_is_overlooked(text, imported):
    assert list(imported_by(text, "seqflow.lod")) == [imported]


def errands():
    """The files that the page names for each question or task."""
    rows = re.findall(
        r"^\| (.+?) \| (`.+) \|$", PAGE.partition("## Errands")[2].partition("\n## ")[0], re.MULTILINE
    )
    return {question: re.findall(r"`(.+?)`", files) for question, files in rows}


def test_an_errand_takes_one_to_three_files_that_exist():
    assert len(errands()) >= 15
    for question, files in errands().items():
        assert 1 <= len(files) <= 3, question
        assert [file for file in files if not (ROOT / file).is_file()] == [], question
