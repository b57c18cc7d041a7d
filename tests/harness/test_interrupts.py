"""Signals that end a command."""

import subprocess
import sys

import pytest

RAISING = """
import signal, subprocess, sys, psutil
from zoomgrad.harness.containment import run
from zoomgrad.harness.interrupts import raise_on_interrupts
from zoomgrad.results.record import Settings

pair = (signal.SIGINT, signal.SIGTERM)
for number in pair: signal.signal(number, signal.default_int_handler)
raise_on_interrupts()
"""

AT_ONCE = """
signal.pthread_sigmask(signal.SIG_BLOCK, pair)
for number in pair: signal.raise_signal(number)
try:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, pair)
    for _ in range(1000): pass
except KeyboardInterrupt:
    print("interrupted once")
"""

WHILE_A_WORKER_STARTS = """
def start(*arguments):
    execute(*arguments)
    for number in pair: signal.raise_signal(number)

execute, subprocess.Popen._execute_child = subprocess.Popen._execute_child, start
try:
    run([sys.executable, "-c", "import time; time.sleep(600)"], {}, ".", Settings())
except KeyboardInterrupt:
    if not psutil.Process().children():
        print("interrupted once")
"""


@pytest.mark.parametrize("text", [AT_ONCE, WHILE_A_WORKER_STARTS], ids=["at-once", "while-a-worker-starts"])
def test_two_signals_interrupt_once_print_nothing_and_leave_no_process(text):
    ended = subprocess.run([sys.executable, "-c", RAISING + text], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "interrupted once\n", "")
