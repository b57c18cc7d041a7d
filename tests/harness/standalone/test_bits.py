"""A standalone build computes the bits of the engine in the harness."""

from __future__ import annotations

from array import array

import pytest

from harness.standalone.make import Form
from tests.harness.standalone.building import bits, build, described, run_alone

CASES = [
    *((engine, "xor") for engine in ("tcc", "gcc-O1", "tcc-published", "clang-O0-static", "tcc-extension")),
    *(("tcc", "digits"), ("tcc", "moons"), ("rerolled-tcc", "moons"), ("rerolled-gcc", "digits")),
    *(("rerolled-clang", "digits"), ("rerolled-clang-sparse", "digits"), ("rerolled-gcc-generic", "xor")),
]
TRAIN = """
found = {{}}
rows = columns({rows})
for batch, steps in {stretches}:
    module.restart()
    losses = array('d')
    done = 0
    for portion in steps:
        updates = range(done // batch, (done + portion) // batch)
        rates = array('d', {rates}[updates.start:updates.stop])
        losses += module.train(rows, rate=rates, batch=batch, steps=portion, first_row=done % {count})
        done += portion
    found[str(batch)] = [bits(losses), bits(module.parameters()), bits(module.gradients())]
row = array('d', {row})
found['predict'] = bits(module.predict(row))
half = array('d', [p / 2 for p in module.parameters()])
module.set_parameters(half)
module.zero_grad()
found['half'] = bits([module.forward(row)])
module.backward()
module.update(0.5, 2)
found['after'] = bits([module.forward(row), *module.parameters()])
module.restart()
module.train(rows, rate=0.0, steps=1)
found['short'] = bits(module.predict(row[:module.FEATURES]))
print(json.dumps(found))
"""
STRETCHES = [[1, [5, 7]], [4, [3, 10]]]


def expected(engine, task):
    """The same from the engine's own trainer."""
    trainer = engine.prepare(task)
    found = {}
    for batch, steps in STRETCHES:
        trainer.restart(batch=batch)
        for portion in steps:
            trainer.train(portion)
        found[str(batch)] = [bits(trainer.losses), bits(trainer.parameters()), bits(trainer.gradients())]
    found["predict"] = bits(trainer.predict(task.row(0)))
    program = trainer._program
    program.reset()
    program.parameters[:] = array("d", [p / 2 for p in program.parameters])
    program.set_input(task.row(0))
    found["half"] = bits([program.forward()])
    program.backward()
    program.update(0.5, 2)
    found["after"] = bits([program.forward(), *program.parameters])
    trainer.restart(batch=1)
    found["short"] = bits(trainer.predict(task.row(0)))
    return found


@pytest.mark.parametrize(("engine", "workload"), CASES, ids=["-".join(case) for case in CASES])
def test_a_module_trains_as_the_engine_does(tmp_path, engine, workload):
    engine, task = build(tmp_path / "built", workload, engine)
    program = TRAIN.format(
        rows=described(tmp_path, task.columns()),
        stretches=STRETCHES,
        rates=[task.rate(update) for update in range(20)],
        count=task.steps_per_epoch,
        row=list(task.row(0)),
    )
    assert run_alone(tmp_path / "built", task.name, program) == expected(engine, task)


FROZEN = [
    *(("tcc", "xor"), ("tcc", "random-dag"), ("rerolled-tcc", "recurrent"), ("rerolled-tcc", "random-dag")),
    *(("rerolled-gcc", "digits"), ("rerolled-clang-sparse", "digits")),
]


@pytest.mark.parametrize(("engine", "workload"), FROZEN, ids=["-".join(case) for case in FROZEN])
def test_a_frozen_module_predicts_as_the_engine_does(tmp_path, engine, workload):
    engine, task = build(tmp_path / "built", workload, engine, Form.module, frozen=True)
    rows = [list(task.row(step)) for step in range(3)]
    program = f"""
rows = [array('d', row) for row in {rows}]
assert not hasattr(module, 'backward') and module.PARAMETERS == 0
print(json.dumps([[bits([module.forward(row)]), bits(module.outputs()), bits(module.predict(row))] for row in rows]))
"""
    trainer = engine.prepare(task)
    wanted = []
    for row in rows:
        outputs = bits(trainer.predict(array("d", row)))
        wanted.append([bits([trainer._program.forward()]), outputs, outputs])
    assert run_alone(tmp_path / "built", task.name.replace("-", "_"), program) == wanted
