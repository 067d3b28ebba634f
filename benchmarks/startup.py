"""What importing costs, beside `import pyarrow`, as fresh processes.

python benchmarks/startup.py [--rounds 15]
"""

import os
import subprocess
import sys
from collections.abc import Iterator

from comparison import Row, main


def run(code: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def imports() -> Iterator[Row]:
    yield Row(
        "python -c 'import seqflow'",
        lambda: run("import seqflow"),
        {"import numpy, pyarrow": lambda: run("import numpy, pyarrow")},
        {"import numpy, pyarrow": 1.2},
        floors={"python alone": lambda: run("pass")},
        agree=lambda *_: None,  # nothing comes of it
        why="it imports both, and itself",
    )


FAMILIES = [imports]

if __name__ == "__main__":
    main(FAMILIES)
