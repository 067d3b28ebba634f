"""Cost of imports and of the first call of an op, next to `import pyarrow`, as fresh processes.

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
    first_call = "import seqflow as sf; sf.ops.lengths_sum([1.0], [1])"
    for code, aim in (("import seqflow", 0.3), ("import seqflow.ops", 0.3), (first_call, 1.4)):
        yield Row(
            f"python -c '{code}'",
            lambda code=code: run(code),  # type: ignore[misc]
            {"import numpy, pyarrow": lambda: run("import numpy, pyarrow")},
            {"import numpy, pyarrow": aim},
            floors={"python alone": lambda: run("pass")},
            agree=lambda *_: None,  # nothing comes of it
            why="the first call imports NumPy, the registry, the kernels and one family of ops",
        )


FAMILIES = [imports]

if __name__ == "__main__":
    main(FAMILIES)
