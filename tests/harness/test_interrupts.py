"""Signals that end a command, and blocks that they must not cut short."""

import signal
import subprocess
import sys
import threading

import pytest

from zoomgrad.harness.interrupts import uninterrupted

BOTH_AT_ONCE = """
import signal
from zoomgrad.harness.interrupts import raise_on_interrupts

for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, signal.default_int_handler)
raise_on_interrupts()
pair = {signal.SIGINT, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, pair)
for number in pair:
    signal.raise_signal(number)
try:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, pair)
    for _ in range(1000):
        pass
except KeyboardInterrupt:
    print("interrupted once")
"""


def test_two_signals_that_arrive_together_interrupt_once_and_print_nothing():
    ended = subprocess.run([sys.executable, "-c", BOTH_AT_ONCE], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "interrupted once\n", "")


@pytest.fixture
def interruptible():
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_a_signal_waits_until_the_block_has_ended(interruptible):
    done = []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        done.append("the whole block")
    assert done == ["the whole block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_block_in_another_thread_does_not_fail():
    failures = []

    def block():
        try:
            with uninterrupted():
                pass
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=block)
    thread.start()
    thread.join()
    assert not failures
