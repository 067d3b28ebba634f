"""What inference costs: one op on static shapes, and a net of 200 statements read, ordered and inferred.

    python benchmarks/inference.py [--times 15]

No data is read; the least of several runs counts. The aim: 50 us an op, 50 ms for the net.
"""

import argparse
import time
import timeit
from collections.abc import Callable

import numpy as np

import seqflow as sf
from seqflow import TensorSpec, registry

DATA, LENGTHS = TensorSpec("float32", "{640,64}"), TensorSpec("int64", "{32}")
ROUNDS = 40
STEPS = """\
x{i}, n{i} = truncate(x{j}, n{j}, max_length=9)
s{i} = lengths_sum(x{i}, n{i})
g{i} = gather(s{i}, ids)
p{i}, m{i} = pad(x{i}, n{i}, max_length=9)
r{i} = reshape(p{i}, [-1, 576])
"""


def cost(call: Callable[[], object], times: int, number: int) -> float:
    """Seconds of processor time of one call, so that other work on the machine does not count."""
    return min(timeit.repeat(call, timer=time.process_time, number=number, repeat=times)) / number


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=15)
    times = parser.parse_args().times
    lengths_sum, reshape = registry.get("lengths_sum"), registry.get("reshape")
    pair, to = {"data": DATA, "lengths": LENGTHS}, {"shape": np.array([640, -1])}
    one = {"x": DATA, "shape": TensorSpec("int64", "{2}")}
    text = "".join(STEPS.format(i=i + 1, j=i) for i in range(ROUNDS))
    specs = {"x0": TensorSpec("float32", "{T,64}"), "n0": LENGTHS, "ids": TensorSpec("int64", "{5}")}
    net = sf.Net(text)
    calls = {
        "lengths_sum of static shapes": lambda: lengths_sum.infer(pair),
        "reshape of a static shape": lambda: reshape.infer(one, values=to),
    }
    for name, call in calls.items():
        print(f"{name:<44} {1e6 * cost(call, 20 * times, 10):8.1f} us")
    print(f"{f'net of {len(net.steps)} statements, read and inferred':<44} "
          f"{1e3 * cost(lambda: sf.Net(text).infer(specs), times, 1):8.1f} ms")  # fmt: skip
    print(f"{'  inferred only':<44} {1e3 * cost(lambda: net.infer(specs), times, 1):8.1f} ms")


if __name__ == "__main__":
    main()
