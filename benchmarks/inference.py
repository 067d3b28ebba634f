"""What inference costs: one op on static shapes, and nets of 200 and 5,000 statements read, ordered and inferred.

    python benchmarks/inference.py [--times 15]

No data is read; the least of several runs counts. The aim: 50 us an op, 50 ms for 200 statements, and as much for
each of 5,000 statements as for each of 200.
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
    specs = {"x0": TensorSpec("float32", "{T,64}"), "n0": LENGTHS, "ids": TensorSpec("int64", "{5}")}
    short, long = program(ROUNDS), program(25 * ROUNDS)
    net = sf.Net(short)
    calls = {
        "lengths_sum of static shapes": lambda: lengths_sum.infer(pair),
        "reshape of a static shape": lambda: reshape.infer(one, values=to),
    }
    for name, call in calls.items():
        print(f"{name:<44} {1e6 * cost(call, 20 * times, 10):8.1f} us")
    whole = cost(lambda: sf.Net(short).infer(specs), times, 1)
    print(f"{f'net of {len(net.steps)} statements, read and inferred':<44} {1e3 * whole:8.1f} ms")
    print(f"{'  inferred only':<44} {1e3 * cost(lambda: net.infer(specs), times, 1):8.1f} ms")
    longer = cost(lambda: sf.Net(long).infer(specs), max(times // 5, 1), 1)
    print(f"{f'net of {25 * len(net.steps)} statements, read and inferred':<44} {1e3 * longer:8.1f} ms")
    print(f"{'  its cost a statement : that of 200':<44} {longer / (25 * whole):8.2f}")


def program(rounds: int) -> str:
    """A net of five statements for each round, each round on the results of the one before."""
    return "".join(STEPS.format(i=i + 1, j=i) for i in range(rounds))


if __name__ == "__main__":
    main()
