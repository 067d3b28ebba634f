"""Compiles one unit, or copies the object that an earlier build made of the same sources with the same command.

    python compile.py FOLDER VERSIONS compiler arguments …

CMake starts it in front of the compiler. CMake's own build folder does not last: pip builds in a new environment each
time, and scikit-build-core then clears the folder, objects included. FOLDER, which is left alone, has one object for
each unit. VERSIONS are those of what the object depends on besides this folder and the command.
"""

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

SOURCES = sorted(file for file in Path(__file__).parent.iterdir() if file.suffix in (".h", ".cpp"))


def main(folder: str, versions: str, *command: str) -> int:
    if "-c" not in command or "-o" not in command:
        return subprocess.call(command)  # not a unit: the compiler is tried, or linked with
    made = Path(command[command.index("-o") + 1])
    kept = Path(folder, *made.parts[-3:])
    key, kept_key = key_of(command, versions), kept.with_suffix(".key")
    if kept.exists() and kept_key.exists() and kept_key.read_text() == key:
        shutil.copyfile(kept, made)
        write_dependencies(command, made)
        return 0
    failed = subprocess.call(command)
    if not failed:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept_key.unlink(missing_ok=True)  # an object that is copied in part has no key
        shutil.copyfile(made, kept)
        kept_key.write_text(key)
    return failed


def key_of(command: tuple[str, ...], versions: str) -> str:
    """A hash of the command, without the folders in it, and of the sources."""
    names = [versions, *(part.rpartition("/")[2] for part in command)]
    digest = hashlib.sha256("\0".join(names).encode())
    for file in SOURCES:
        digest.update(f"\0{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def write_dependencies(command: tuple[str, ...], made: Path) -> None:
    """Say, as the compiler would, what the object is made of: all sources, which is more than there need be."""
    if "-MF" in command:
        names = " ".join(str(file).replace(" ", "\\ ") for file in SOURCES)
        Path(command[command.index("-MF") + 1]).write_text(f"{made}: {names}\n")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
