"""A fault kind whose batches fail in different ways, all of which the campaign must survive and count."""

import os
import subprocess
import sys
import time

NAME = "broken"
FAULTS = "none"
UNIT = "a batch"
BATCHES = 5
SECONDS = 4.0


def lacks():
    return ""


def run(batch, tally):
    tally.tries += 1
    if batch.index == 1:
        os.abort()
    if batch.index == 2:
        # The victim runs in its own session, and must still not outlive the batch.
        victim = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
        (batch.folder.parent.parent / "victim").write_text(str(victim.pid))
        time.sleep(600)
    if batch.index == 3:
        raise ValueError("the batch's own mistake")
    if batch.index == 4:
        tally.count("torn", "half a record")
