"""Signals that end a command."""

import subprocess
import sys

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
