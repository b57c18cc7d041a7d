"""Steps divided among threads: the same bits for any number of threads, and threads that end with each call."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from tests.engines.compiled.compiling import usable
from tests.engines.graphs import classifier
from tests.engines.rerolled.rolling import form, nothing_is_too_small, step_of, tape_of  # noqa: F401  (a fixture)
from zoomgrad.engines.asking import which
from zoomgrad.engines.kernel.c_tree import read
from zoomgrad.engines.rerolled.rearrange import together
from zoomgrad.engines.rerolled.step.check import BrokenStep, check_step
from zoomgrad.engines.rerolled.step.language import Divided, rewrite, walk
from zoomgrad.engines.rerolled.step.variants import variants_of

pytestmark = pytest.mark.host


@pytest.fixture
def step(monkeypatch):
    monkeypatch.setattr(together, "LEAST_WORK", 0)
    graph, kinds = classifier()
    chosen = replace(form(4), threads=2)
    return check_step(step_of(tape_of(graph, kinds, [0, 1, 2]), chosen))


def test_a_batch_of_one_row_is_not_divided(step):
    (single,) = [code for _, batch, code in variants_of(step) if batch == 1]
    assert not any(isinstance(s, Divided) for program in single.programs.values() for s in walk(program))


@pytest.mark.parametrize("by", ["rows", "lanes"])
def test_the_checker_finds_a_division_that_would_race(step, by):
    def divide(statement):
        return (replace(statement, by=by) if isinstance(statement, Divided) else statement,)

    with pytest.raises(BrokenStep):
        check_step(step.with_programs(together=rewrite(step.programs["together"], divide)))


# --- the threads -----------------------------------------------------------------------------------------------------

CALLER = """
#include <unistd.h>

struct training {
    struct crew crew;
    long long numbers[1000], sums[THREADS];
};

static void add(struct training *t, long long count, long long part, long long parts)
{
    t->sums[part] = 0;
    for (long long i = count * part / parts; i < count * (part + 1) / parts; i++)
        t->sums[part] += t->numbers[i];
}

int main(void)
{
    static struct training t;
    for (int i = 0; i < 1000; i++)
        t.numbers[i] = i;
    for (int times = 0; times < 100; times++) {
        divide(&t.crew, add, &t, 1000);
        long long sum = 0;
        for (int n = 0; n < THREADS; n++)
            sum += t.sums[n];
        if (sum != 499500)
            return 3;
        if (times % 16 == 0)
            usleep(200); /* helpers yield */
    }
    end_helpers(&t.crew);
    return 0;
}
"""


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_a_sanitizer_finds_no_race_among_the_threads(tmp_path, threads):
    program = tmp_path / "caller"
    code = f"#define _GNU_SOURCE\n#define THREADS {threads}\n{read('rerolled/emit/threads.h')}{CALLER}"
    program.with_suffix(".c").write_text(code)
    gcc = which("gcc") or pytest.skip("there is no gcc on PATH")
    command = [gcc, "-O1", "-g", "-fsanitize=thread", "-pthread", "-o", str(program), f"{program}.c"]
    if subprocess.run(command, capture_output=True, timeout=60).returncode:
        pytest.skip("this gcc has no thread sanitizer")
    ran = subprocess.run([str(program)], capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stderr) == (0, "")


PROGRAM = """
import os, threading
from zoomgrad import engines
from zoomgrad.engines.rerolled.rearrange import together
from zoomgrad.harness import workloads
together.LEAST_WORK = 0
workload = workloads.load("mlp-64x48x4-b30")

def trained(trainer):
    trainer.restart(batch=30)
    trainer.train(300)
    return bytes(trainer.parameters())

engine = engines.load("rerolled-gcc+threads=3")
engine.check()
wanted = trained(engines.load("rerolled-gcc").prepare(workload))
trainers = [engine.prepare(workload) for _ in range(2)]
found = []
threads = [threading.Thread(target=lambda its=its: found.append(trained(its))) for its in trainers]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert found == [wanted] * 2
child = os.fork()
if not child:
    os._exit(trained(trainers[0]) != wanted)
assert os.waitpid(child, 0)[1] == 0
trainers.pop()  # unloads a kernel
assert trained(trainers[0]) == wanted
print("equal")
"""


def test_programs_side_by_side_and_in_a_forked_child():
    usable("rerolled-gcc+threads=3")
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "equal\n", "")
