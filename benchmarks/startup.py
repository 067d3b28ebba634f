"""What importing and calling cost: `import seqflow` beside `import pyarrow`, and one small call.

    python benchmarks/startup.py [--times 15]

Imports run as fresh processes in turn; the least of each counts.
"""

import argparse
import subprocess
import sys
import time
import timeit


def seconds(code: str) -> float:
    """A fresh process that runs `code`, its own start-up taken away by the caller."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=15)
    times = parser.parse_args().times
    codes = ["pass", "import pyarrow", "import seqflow"]
    runs = [[seconds(code) for code in codes] for _ in range(times)]
    bare, pyarrow, ours = (min(run[i] for run in runs) for i in range(3))
    print(f"import pyarrow  {1e3 * (pyarrow - bare):6.1f} ms")
    print(f"import seqflow  {1e3 * (ours - bare):6.1f} ms   ratio {(ours - bare) / (pyarrow - bare):.2f}")

    import numpy as np

    from seqflow import ops

    data = np.random.default_rng(0).random((32 * 20, 64), dtype=np.float32)
    lengths = np.full(32, 20)
    call = min(timeit.repeat(lambda: ops.lengths_sum(data, lengths), number=10_000, repeat=times)) / 10_000
    print(f"lengths_sum of 32 segments x 20 rows x 64: {1e6 * call:.2f} us a call")


if __name__ == "__main__":
    main()
