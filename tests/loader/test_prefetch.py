"""Working ahead in a thread, bounded in bytes."""

import threading
import time

import pytest

from seqflow.loader.prefetch import Prefetch


def test_items_come_in_order():
    assert list(Prefetch(iter(range(100)), lambda _: 1, 10)) == list(range(100))


def test_no_more_than_the_limit_is_in_flight():
    made = []

    def items():
        for i in range(20):
            made.append(i)
            yield i

    ahead = Prefetch(items(), lambda _: 10, 30)
    for seen, _ in enumerate(ahead):
        time.sleep(0.002)
        assert ahead.bytes_in_flight <= 30
        assert len(made) <= seen + 4  # three in flight, and the one that waits for room


def test_an_item_larger_than_the_limit_is_let_through_alone():
    assert list(Prefetch(iter([1, 2, 3]), lambda _: 1000, 10)) == [1, 2, 3]


def test_an_exception_comes_after_the_items_before_it():
    def items():
        yield 1
        raise OSError("disk")

    ahead = iter(Prefetch(items(), lambda _: 1, 10))
    assert next(ahead) == 1
    with pytest.raises(OSError, match="disk"):
        next(ahead)


def test_leaving_the_loop_ends_the_thread_and_closes_the_source():
    closed = []

    def items():
        try:
            while True:
                yield 1
        finally:
            closed.append(True)

    loop = iter(Prefetch(items(), lambda _: 1, 3))
    next(loop)
    loop.close()
    assert closed == [True]
    assert not [thread for thread in threading.enumerate() if thread.name == "seqflow-prefetch"]
