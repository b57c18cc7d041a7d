"""Signals that end a command."""

import subprocess
import sys
from textwrap import indent

import pytest

BEFORE = """
import signal, subprocess, sys, psutil
from zoomgrad.harness.containment import run
from zoomgrad.harness.interrupts import raise_on_interrupts
from zoomgrad.results.record import Settings
pair = (signal.SIGINT, signal.SIGTERM)
for number in pair: signal.signal(number, signal.default_int_handler)
raise_on_interrupts()
try:
"""
AFTER = """
except KeyboardInterrupt:
    print("interrupted once,", len(psutil.Process().children()), "left")
"""
TEXTS = {
    "at once": """
signal.pthread_sigmask(signal.SIG_BLOCK, pair)
for number in pair: signal.raise_signal(number)
signal.pthread_sigmask(signal.SIG_UNBLOCK, pair)
""",
    "while a worker starts": """
def start(*arguments):
    execute(*arguments)
    for number in pair: signal.raise_signal(number)
execute, subprocess.Popen._execute_child = subprocess.Popen._execute_child, start
run([sys.executable, "-c", "import time; time.sleep(600)"], {}, ".", Settings())
""",
    "in a destructor": """
class Dropped:
    def __del__(self): list(map(signal.raise_signal, pair))
Dropped()
signal.pause()
""",
}


@pytest.mark.parametrize("when", TEXTS)
def test_two_signals_interrupt_once_print_nothing_and_leave_no_process(when):
    code = BEFORE + indent(TEXTS[when], "    ") + AFTER
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "interrupted once, 0 left\n", "")
