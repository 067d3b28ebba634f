"""Servers and trainers that are killed at random moments: each batch is taken exactly once, and is a local loader's."""

import random
import socket
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import pytest
import served_processes as processes
from marks import THOROUGH, slow, thorough

PROGRAM = [sys.executable, "-W", "ignore", str(Path(processes.__file__))]


def free_ports(count):
    """Ports that the system chooses; servers come back at the same ones."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Cluster:
    """Up to three servers, and a trainer, as processes."""

    def __init__(self, folder, case, epochs, tail, seed):
        self.folder, self.case, self.epochs, self.tail = folder, case, epochs, tail
        self.ports, self.rng, self.servers = free_ports(3), random.Random(seed), {}
        self.trainer, self.world_sizes = None, []

    def begin_server(self, port):
        command = [*PROGRAM, "serve", str(self.folder), self.case, str(port)]
        self.servers[port] = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.servers[port].stdout.readline() == b"ready\n"

    def begin_trainer(self):
        urls = "flight://" + ",".join(f"127.0.0.1:{port}" for port in self.ports)
        self.world_sizes.append(self.rng.choice([1, 2, 3, 4]))
        options = [urls, str(self.world_sizes[-1]), str(self.epochs), self.tail]
        self.trainer = subprocess.Popen(
            [*PROGRAM, "train", str(self.folder), self.case, *options], stderr=subprocess.PIPE
        )

    def kill(self):
        """Kill a server, the trainer, or both; one to three servers run afterwards."""
        what = self.rng.choice(["server", "trainer", "both"])
        if what != "trainer":
            self.end_server(self.rng.choice(list(self.servers)))
        if what != "server" and self.trainer.poll() is None:
            self.end_trainer()
            self.begin_trainer()
        count = self.rng.choice([1, 2, 3])
        while len(self.servers) > count:
            self.end_server(self.rng.choice(list(self.servers)))
        for port in self.ports[: count - len(self.servers)] if len(self.servers) < count else ():
            if port not in self.servers:
                self.begin_server(port)

    def end_server(self, port):
        process = self.servers.pop(port)
        process.kill()
        process.wait()
        process.stdout.close()

    def end_trainer(self):
        self.trainer.kill()
        self.trainer.wait()
        self.trainer.stderr.close()

    def run(self, kills):
        done = 0
        try:
            for port in self.ports[:2]:
                self.begin_server(port)
            self.begin_trainer()
            until = time.monotonic() + 600
            while self.trainer.poll() is None and time.monotonic() < until:
                time.sleep(self.rng.uniform(0.1, 0.8))
                if done < kills:
                    self.kill()
                    done += 1
                if not self.servers:
                    self.begin_server(self.ports[0])
            assert self.trainer.poll() == 0, self.trainer.stderr.read().decode()
        finally:
            for port in list(self.servers):
                self.end_server(port)
            self.end_trainer()
        return done


def check(folder, case, *, kills, epochs, tail="drop", seed=0):
    processes.make_files(folder)
    loader = processes.loader_of(folder, case)
    expected = [
        [(epoch, batch.number, processes.digest(batch)) for batch in loader] for epoch in range(epochs)
    ]
    cluster = Cluster(folder, case, epochs, tail, seed)
    done = cluster.run(kills)
    lines = [line.split() for line in (folder / "log.txt").read_text().splitlines()]
    for epoch, whole in enumerate(expected):
        found = [(int(of), int(number), text) for of, number, text in lines if int(of) == epoch]
        if tail == "repeat":  # the last round is filled with the first batches
            assert found[: len(whole)] == whole
            assert set(found[len(whole) :]) <= set(whole[: max(cluster.world_sizes)])
        else:
            assert found == whole[: len(found)]
            assert len(whole) - len(found) < (max(cluster.world_sizes) if tail == "drop" else 1)
    return done


def test_a_few_kills_lose_nothing(tmp_path):
    assert check(tmp_path, "packed", kills=2, epochs=1) > 0


TAILS = ("drop", "pad", "repeat")
SEED = random.randrange(1 << 20) if THOROUGH else 0
"""Another seed kills other processes at other moments: thorough tests draw a new one."""
KILLS = 8 if THOROUGH else 4
SLOW = {("no index", "repeat"), ("mix", "pad")}
"""Each tail with one case, that of `drop` in the test above; the thorough tests have all: 144 kills."""


@pytest.mark.parametrize(
    ("case", "tail"),
    [(slow if both in SLOW else thorough)(both)[0] for both in product(processes.CASES, TAILS)],
)
def test_many_kills_lose_nothing(tmp_path, case, tail):
    print("seed", SEED)  # of a failure
    assert (
        check(tmp_path, case, kills=KILLS, epochs=2 * KILLS, tail=tail, seed=SEED + len(case) + len(tail))
        == KILLS
    )
