"""`zoomgrad build`: scripts, which may be hostile, and the folder that it fills."""

from __future__ import annotations

import json
import subprocess
import sys
from array import array

import pytest

from engines.api import CyclicGraph
from engines.standalone.graph import Unfit, checked, module_name
from harness.cli.preparing import with_project
from harness.standalone import graphs
from harness.standalone.folder import MARKER, check_folder, fill
from harness.standalone.make import Form, make
from harness.worker.programs.record import NoGraph, record
from tests.harness.standalone.building import bits, run_alone, usable

SCRIPT = """\
from micrograd.engine import Value
from micrograd.nn import MLP

model = MLP(2, [4, 1])
inputs = [[Value(0.5), Value(-1.0)], Value(1.0)]
outputs = model(inputs[0])
loss = (outputs - inputs[1]) ** 2 + 3 * sum(p * p for p in model.parameters())
for step in range(3):
    model.zero_grad()
    loss.backward()
    for p in model.parameters():
        p.data -= 0.01 * p.grad
"""


def graph_of(folder, text, engine="rerolled-tcc", *, frozen=False):
    script = folder / "my-model.py"
    script.write_text(text)
    return checked(graphs.of_script(usable(engine), script, with_project()), frozen=frozen)


def test_a_script_becomes_a_module(tmp_path):
    """Its parameters are those that the script left after its own training."""
    engine = usable("rerolled-tcc")
    graph = graph_of(tmp_path, SCRIPT)
    assert (graph.name, graph.tape.inputs, graph.features, len(graph.parameters)) == ("my_model", 3, 2, 17)
    make(engine, graph, tmp_path / "built", Form.module, frozen=False)
    program = (
        "print(json.dumps([bits(module.parameters()), bits(module.train(array('d', [.5, -1., 1.]), 0.01, steps=3))]))"
    )
    # The same graph through the engine's own program.
    names = {}
    package = {"Value": engine.Value, "MLP": engine.nn.MLP}
    text = "\n".join(line for line in SCRIPT.splitlines() if not line.startswith("from"))
    exec(text, {**package, "names": names}, names)
    compiled = engine.compile(
        names["loss"], inputs=[*names["inputs"][0], names["inputs"][1]], parameters=names["model"].parameters()
    )
    compiled.parameters[:] = array("d", graph.parameters)
    compiled.set_input([0.5, -1.0, 1.0])
    losses = [*compiled.train(array("d", [0.5, -1.0, 1.0]), rate=0.01, steps=3)]
    assert run_alone(tmp_path / "built", "my_model", program) == [bits(graph.parameters), bits(losses)]


@pytest.mark.parametrize("engine", ["tcc", "rerolled-tcc"])
def test_a_script_without_parameters_can_be_frozen(tmp_path, engine):
    text = "from micrograd.engine import Value\ninputs = [Value(2.0), Value(3.0)]\nparameters = []\n"
    text += "loss = inputs[0] * 7.5 + sum(x * c for c in (1.5, 2.5, 3.5, 4.5) for x in inputs)\n"
    with pytest.raises(Unfit, match="no parameters to train\n  Name some, or build it with --frozen"):
        graph_of(tmp_path, text, engine)
    make(usable(engine), graph_of(tmp_path, text, engine, frozen=True), tmp_path / "b", Form.module, frozen=True)
    assert run_alone(tmp_path / "b", "my_model", "print(module.forward(array('d', [2.0, 3.0])))") == 75.0


BEGIN = "from micrograd.engine import Value\na, b = Value(1.0), Value(2.0)\n"
UNFIT = {
    "": "it leaves no `loss`",
    "loss = 3.0": "its `loss` is of type float",
    "loss = a * b": "it leaves no `inputs`",
    "loss = a * b; inputs = [a]": "it leaves neither `parameters` nor a `model`",
    "loss = a * b; inputs = [a]; model = 7": "it leaves neither",
    "loss = a * b; inputs = [1.0]; parameters = [b]": "its `inputs` hold a float",
    "loss = a * b; inputs = x = []; x.append(x); parameters = [b]": "its `inputs` hold a list",
    "loss = a * b; inputs = [loss]; parameters = [b]": "inputs[0] is the result of '*'",
    "loss = a * b; inputs = [a]; parameters = [a]": "parameters[0] is already inputs[0]",
    "loss = a * b; inputs = [a]; parameters = []; b.data = float('inf')": "a leaf is inf",
    "loss = a * b; a._prev = (loss,); inputs = []; parameters = [b]": "cycle in the graph",
}
LEFT = {
    "": "it leaves no `loss`\n",
    "loss = a * b; inputs = []; parameters = [b]": "the graph has no inputs",
    "loss = a * b; inputs = [a]; parameters = [b]; b.data = float('inf')": "parameter 0 is inf",
    "c = Value(3.0); loss = a * b; inputs = [c]; parameters = [b]": "no input is in the graph",
    "c = Value(3.0); loss = a * b; inputs = [a]; parameters = [c]": "no parameter is in the graph",
    "loss = a * b; inputs = [a]; parameters = [b]; b.data = 1j": "the data of parameter 0 is of type complex",
    "import os; os._exit(3)": "it ended with exit code 3 and left no graph",
    "import os, sys; os.mkfifo(sys.orig_argv[-1]); os._exit(0)": "left no graph",
    "import os, sys; os.symlink('/etc/passwd', sys.orig_argv[-1]); os._exit(0)": "left no graph",
    "import os, sys; open(sys.orig_argv[-1], 'w').write('{\"wrong\": 5}'); os._exit(0)": "its reply is broken",
}
LEAF = '{"ops": ["input"], "left": [-1], "right": [-1], "numbers": [[0, 0]], "loss": 0, "outputs": [], "inputs": 1, '
FORGED = {
    '"parameters": []}': "the graph has no parameters",
    '"parameters": [NaN]}': "parameter 0 is nan",
    '"parameters": [1e999]}': "parameter 0 is inf",
    '"parameters": [1.0], "ops": ["input", "system"]}': "rows are missing",
    '"parameters": [1.0], "ops": ["system"]}': "there is no op 'system'",
    '"parameters": [1.0], "left": [-2]}': "left.0",
    '"parameters": [1.0], "left": [0]}': "row %0",
    '"parameters": [1.0], "loss": 1}': "the loss is %1, but the tape ends after 1 rows",
    '"parameters": [1.0], "loss": 99999999999}': "loss: ",
    '"parameters": [1.0], "outputs": [7]}': "outputs[0] is %7",
    '"parameters": [1.0], "numbers": [[0, 5]]}': "there are only 1",
    '"parameters": [1.0], "numbers": [[0, 0.5]]}': "a leaf has two rows, or none",
    '"parameters": [1.0], "numbers": [[1, 0]]}': "rows are missing",
    '"parameters": [1.0], "numbers": []}': "a leaf has two rows, or none",
    '"parameters": [1.0], "inputs": -1}': "inputs: ",
    '"parameters": [1.0], "more": 1}': "more: ",
}


@pytest.mark.parametrize(("text", "message"), UNFIT.items())
def test_names_that_make_no_graph_are_told(text, message):
    engine, names = usable("tcc"), {}
    with pytest.raises((ValueError, CyclicGraph, NoGraph)) as wrong:
        exec(BEGIN.partition("\n")[2] + text, {"Value": engine.Value}, names)
        record(engine, names)
    problem, remedy = str(wrong.value).split("\n")
    assert message in problem
    assert remedy.startswith("  ")


@pytest.mark.parametrize(("text", "message"), LEFT.items())
def test_a_script_that_leaves_no_graph_is_told(tmp_path, text, message):
    with pytest.raises(Unfit) as unfit:
        graph_of(tmp_path, BEGIN + text)
    assert str(unfit.value).startswith("script my-model.py: ")
    assert message in str(unfit.value)


@pytest.mark.parametrize(("text", "message"), FORGED.items())
def test_a_forged_graph_is_refused(text, message):
    """Of JSON's equal keys, the last one counts; here the reply is read without its script."""
    content = json.dumps({**json.loads(LEAF + text)}).encode()
    with pytest.raises(Unfit) as unfit:
        checked(graphs.Graph("m", "script m.py", *graphs._checked("script m.py", content)), frozen=False)
    assert message in str(unfit.value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        *(("xor", "xor"), ("mlp-2x3x1", "mlp_2x3x1"), ("random", "model_random"), ("7", "model_7")),
        *(("for", "model_for"), ("main", "model_main"), ("INPUTS", "model_INPUTS")),
    ],
)
def test_a_name_is_an_identifier_that_hides_no_module(text, name):
    assert module_name(text) == name
    assert module_name("ä" * 500).isascii()


# --- the folder --------------------------------------------------------------------------------------------------


def test_a_folder_is_filled_again_and_old_files_go(tmp_path):
    folder = tmp_path / "new" / "folder"
    fill(folder, {"a.c": b"1", "README.md": b"2"})
    fill(folder, {"b.c": b"3", "README.md": b"4"})
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.name != MARKER} == {
        "b.c": b"3",
        "README.md": b"4",
    }


def test_drafts_of_a_killed_build_are_removed(tmp_path):
    fill(tmp_path, {"a.c": b"1"})
    (tmp_path / ".0123456789abcdef.draft").write_bytes(b"half")
    fill(tmp_path, {"a.c": b"2"})
    assert {path.name for path in tmp_path.iterdir()} == {"a.c", MARKER}


def other_file(folder):
    (folder / "thesis.tex").write_text("mine")


def changed_file(folder):
    (folder / "a.c").write_text("mine")


def link(folder):
    (folder / "a.c").unlink()
    (folder / "a.c").symlink_to("/etc/passwd")


def forged_marker(folder):
    (folder / MARKER).write_text(f"zoomgrad build folder, version 1\n{'0' * 64} a.c\n{'0' * 64} ../a.c\n")


def other_marker(folder):
    (folder / "a.c").unlink()
    (folder / MARKER).write_text("mine\n")


def no_marker(folder):
    (folder / MARKER).unlink()


@pytest.mark.parametrize("spoil", [other_file, changed_file, link, forged_marker, other_marker, no_marker])
def test_what_no_build_wrote_is_never_replaced(tmp_path, spoil):
    folder = tmp_path / "folder"
    fill(folder, {"a.c": b"1"})
    spoil(folder)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(Unfit, match="Choose another folder"):
        fill(folder, {"a.c": b"2", "b.c": b"3"})
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "nowhere").symlink_to(tmp_path / "absent")
    for name in ("file", "nowhere"):
        with pytest.raises(Unfit, match="not a folder"):
            check_folder(tmp_path / name)


def test_the_command(tmp_path):
    (tmp_path / "fit.py").write_text(SCRIPT)
    usable("tcc")
    command = [sys.executable, "-m", "harness", "build", "fit.py", "--engine", "tcc", "--into", "built", "--form", "c"]
    done = subprocess.run(command, cwd=tmp_path, env=with_project(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in (tmp_path / "built").iterdir()) == [MARKER, "README.md", "fit.c", "fit.h"]
    assert done.stdout.splitlines()[-1] == "Compile it: built/README.md has the command."
