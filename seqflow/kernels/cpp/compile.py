"""Compile one unit, or copy the object that an earlier build made from the same sources with the same command.

    python compile.py FOLDER VERSIONS compiler arguments …

CMake starts this script in place of the compiler. CMake's own build folder is not kept: pip builds in a new
environment each time, and scikit-build-core then clears the folder with its objects. FOLDER is kept and has one
object for each unit. VERSIONS are the versions of all other dependencies of the object.
"""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(folder: str, versions: str, *command: str) -> int:
    if "-MF" not in command:
        return subprocess.call(command)  # not a unit: CMake tests the compiler
    made, listed = (Path(command[command.index(flag) + 1]) for flag in ("-o", "-MF"))
    kept = Path(folder, *made.parts[-4:])
    record = kept.with_suffix(".json")
    names, key = json.loads(record.read_text()) if record.exists() else ([], None)
    if key is not None and key == key_of(command, versions, names):
        shutil.copyfile(kept, made)
        listed.write_text(
            f"{made}: {' '.join(str(HERE / name).replace(' ', chr(92) + ' ') for name in names)}\n"
        )
        return 0
    if failed := subprocess.call(command):
        return failed
    names = own_sources(listed)
    kept.parent.mkdir(parents=True, exist_ok=True)
    record.unlink(missing_ok=True)  # the record is written last: a partly copied object has none
    shutil.copyfile(made, kept)
    record.write_text(json.dumps([names, key_of(command, versions, names)]))
    return 0


def own_sources(listed: Path) -> list[str]:
    """Return the files of this folder in the compiler's list of the object's sources."""
    text = listed.read_text().replace("\\\n", " ").replace("\\ ", "\0")
    files = (Path(name.replace("\0", " ")).resolve() for name in text.split()[1:])
    return sorted({file.relative_to(HERE).as_posix() for file in files if file.is_relative_to(HERE)})


def key_of(command: tuple[str, ...], versions: str, names: list[str]) -> str:
    """Return a hash of the command, without the folders in it, and of the sources."""
    digest = hashlib.sha256("\0".join([versions, *(part.rpartition("/")[2] for part in command)]).encode())
    for name in names:
        file = HERE / name
        digest.update(f"\0{name}\0".encode() + (file.read_bytes() if file.exists() else b""))
    return digest.hexdigest()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
