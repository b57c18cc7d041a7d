"""glibc keeps freed memory only inside the outermost block."""

from __future__ import annotations

import threading

import pytest

from engines.rerolled import heap
from engines.rerolled.heap import HEAP


class Libc:
    def __init__(self):
        self.calls = []

    def mallopt(self, option, value):
        self.calls.append((option, value))
        return 1


@pytest.fixture
def libc(monkeypatch):
    found = Libc()
    monkeypatch.setattr(heap, "_glibc", lambda: found)
    return found


KEEP, AFTERWARDS = list(heap._KEEP.items()), list(heap._AFTERWARDS.items())


def test_threads_share_one_outermost_block(libc):
    inside, go_on = threading.Barrier(3), threading.Event()

    def work():
        with HEAP.kept():
            inside.wait(30)
            go_on.wait(30)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.wait(30)
    assert libc.calls == KEEP
    go_on.set()
    for thread in threads:
        thread.join()
    assert libc.calls == KEEP + AFTERWARDS
