"""The cost of timing for verdicts: an epoch of batches of 1 ms, in turns with the tree before.

    python benchmarks/verdict_cost.py --before OTHER/bin/python [--rounds 9]

OTHER is an environment in which the tree before is installed. Each epoch has 2,000 batches, and the consumer
computes for 1 ms with each. What is compared is the processor time of its thread.
"""

import argparse
import statistics
import subprocess
import sys

EPOCH = """
import time, numpy as np, pyarrow as pa, seqflow as sf
table = pa.table({"x": np.arange(400_000)})
def epoch():
    found = sf.Loader(table, batch=200, batch_bytes=1 << 18, window=1 << 18, threads=THREADS)
    started = time.thread_time()
    for batch in found:
        end = time.thread_time() + 0.001
        while time.thread_time() < end:
            pass
    return time.thread_time() - started
epoch()
print(min(epoch() for _ in range(3)))
"""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--before", required=True)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    for threads in (0, 1):
        times: dict[str, list[float]] = {"before": [], "now": []}
        for _ in range(options.rounds):
            for name, python in (("before", options.before), ("now", sys.executable)):
                text = EPOCH.replace("THREADS", str(threads))
                done = subprocess.run([python, "-c", text], check=True, capture_output=True, text=True)
                times[name].append(float(done.stdout))
        before, now = (min(found) for found in times.values())
        medians = [statistics.median(found) for found in times.values()]
        print(
            f"threads {threads}: least {before:.4f} s before, {now:.4f} s now ({now / before - 1:+.2%}); "
            f"median {medians[0]:.4f}, {medians[1]:.4f} ({medians[1] / medians[0] - 1:+.2%})"
        )


if __name__ == "__main__":
    main()
