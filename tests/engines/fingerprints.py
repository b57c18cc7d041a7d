"""Hashes of generated source texts and of trained parameters, which must be the same on every interpreter.

A compiler sees only text. If another interpreter generates the same text as the host, it gets the same object, so the
host's tests of that object hold there too. What Python itself computes is compared as numbers: the losses and
parameters after some steps. `python -m tests.engines.fingerprints FILE` writes the host's fingerprints, and
`--of WORKLOAD…` prints the hashes of the texts for these workloads.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from dataclasses import replace
from pathlib import Path

from tests.engines.compiled.compiling import COMPILED, reference, tape_of, tape_of_workload
from tests.engines.graphs import BINARY, NAMED, REFERENCE, UNARY, bits, classifier, of_instructions
from zoomgrad import engines
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.compiled.emit import emit, text
from zoomgrad.engines.compiled.lower import lower
from zoomgrad.engines.kernel.extension import LIMITED_API
from zoomgrad.engines.rerolled.fitted import fitted
from zoomgrad.engines.rerolled.step.step import Step
from zoomgrad.engines.rerolled.step.variants import variants_of
from zoomgrad.harness import workloads

TRACED = ("xor", "tour", "digits", "recurrent", "attention")
BETWEEN_OTHERS = {"rerolled-gcc", "rerolled-clang"}
"""They have more forms of loops than those of TCC, and fewer than those of `rerolled-clang-sparse`."""
BY_HAND = ("xor", "digits")
RANDOM_GRAPHS = 20

STEPS = {"xor": 400, "tour": 100, "mlp-5x4x3": 100}
"""Workload -> steps that are fast on every engine."""
MORE_STEPS = {"digits": 5, "attention": 3, "random-dag": 5}
"""The same for larger workloads, which the tests run on compiled engines only."""


# --- texts -------------------------------------------------------------------------------------------------------


def texts():
    """Return {engine: {graph: hash}} for one engine per generated text; the others differ only in compiler flags."""
    found = texts_over([*tapes_of_programs(), *tapes_of_workloads(TRACED)])
    networks = {name: workloads.load(name).network for name in BY_HAND}
    for name in ("handwritten", "handwritten-sparse"):
        engine = engines.load(name)
        found[name] = {each: digest(engine.source(network, 8)) for each, network in networks.items()}
    return found


def texts_over(tapes):
    """Return {engine: {graph: hash}} over these tapes, for the engines that generate code from a tape."""
    found, lowered = {}, {}
    for engine in generators():
        if engine.name in BETWEEN_OTHERS:
            continue
        options = engine.options
        form = options.code, fitted(options) if options.code == "loops" else None
        if form not in lowered:  # most engines share their lowering
            lowered[form] = [lower(tape, options) for _, tape in tapes]
        found[engine.name] = {name: digest(source_of(code, options)) for (name, _), code in zip(tapes, lowered[form])}
    return found


def source_of(code, options):
    """Return all that an engine generates, as text. Of machine code these are its bytes: a listing takes longer."""
    if options.target == "machine" and isinstance(code, Step):
        return "".join(emit(variant.code, options).assembler.code.hex() for variant in variants_of(code))
    # An extension module names the Python API it is built for, which differs between interpreters.
    return text(code, options).replace(LIMITED_API, "")


def generators():
    """Yield one engine for each form of generated text."""
    seen = set()
    for name in COMPILED:
        engine = engines.load(name)
        form = replace(engine.options, level=None)
        try:
            engine.check()
        except Unavailable:
            continue
        if form not in seen:
            seen.add(form)
            yield engine


def tapes_of_programs():
    """Yield (name, tape) for the test programs, random graphs and a network."""
    cases = [(graph, ["input", "parameter"] * len(graph.numbers)) for graph in (*NAMED, *random_graphs())]
    for number, (graph, kinds) in enumerate([*cases, classifier()]):
        yield f"{number}: {graph.name[:24]}", tape_of(graph, kinds)


def tapes_of_workloads(names):
    """Yield (name, tape) for one step of each workload."""
    for name in names:
        yield name, tape_of_workload(workloads.load(name))


def random_graphs():
    """Return random graphs that the reference can compute; every interpreter gets the same ones."""
    rng, ops, found = random.Random(1337), (*UNARY, *BINARY, "pow", "const"), []
    while len(found) < RANDOM_GRAPHS:
        numbers = [rng.uniform(-2.0, 2.0) for _ in range(rng.randrange(1, 6))]
        size = rng.randrange(1, 40)
        program = [(ops[rng.randrange(len(ops))], rng.randrange(1000), rng.randrange(1000)) for _ in range(size)]
        graph = of_instructions(numbers, program)
        if reference(graph, graph.numbers):
            found.append(graph)
    return found


# --- numbers -----------------------------------------------------------------------------------------------------


def training(engine, name, steps):
    """Return the hash of the losses and parameters after some steps of a workload."""
    trainer = engine.prepare(workloads.load(name))
    trainer.train(steps)
    return digest(bits([*trainer.losses, *trainer.parameters()]))


def digest(found):
    """Return the first 64 bits of the SHA-256 hash, in hexadecimal."""
    return hashlib.sha256(found.encode() if isinstance(found, str) else found).hexdigest()[:16]


def fingerprints():
    """Return all fingerprints; the reference engine computes the trained numbers."""
    engine = engines.load(REFERENCE)
    trainings = {name: training(engine, name, steps) for name, steps in {**STEPS, **MORE_STEPS}.items()}
    return {"texts": texts(), "trainings": trainings}


if __name__ == "__main__":
    if sys.argv[1] == "--of":
        print(json.dumps(texts_over(list(tapes_of_workloads(sys.argv[2:])))))
    else:
        Path(sys.argv[1]).write_text(json.dumps(fingerprints(), indent=1))
