"""The engines `cython` and `mypyc`: what they compile, and what happens around the tools.

If the tools are installed, the conformance tests run both engines.
"""

import pytest

from zoomgrad import engines
from zoomgrad.engines import nn
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.interpreted.trainer import ScalarTrainer
from zoomgrad.engines.kernel.extension import check_python
from zoomgrad.engines.kernel.toolchains import usable
from zoomgrad.engines.translated import build
from zoomgrad.engines.translated.build import Translator, source
from zoomgrad.harness import workloads


def trained(trainer):
    trainer.train(6)
    return trainer.losses, trainer.gradients(), trainer.parameters()


def test_the_prepared_text_gives_the_reference_bits():
    names = {"__name__": "prepared"}
    exec(compile(source(), "prepared.py", "exec"), names)
    workload = workloads.load("tour")
    assert trained(ScalarTrainer(nn.bind(names["Value"]), workload)) == trained(engines.load("tuple").prepare(workload))


MODULE = """
#include <Python.h>
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "zoomgrad_translated_stub", NULL, -1, NULL};
PyMODINIT_FUNC PyInit_zoomgrad_translated_stub(void)
{
    PyObject *made = PyModule_Create(&module);
    if (made)
        PyModule_AddObject(made, "Value", PyLong_FromLong(7));
    return made;
}
"""


@pytest.fixture
def tool(monkeypatch, tmp_path):
    """Return a tool that runs some Python in place of Cython or mypyc, with the module's file as `sys.argv[1]`."""
    try:
        check_python("slots")
        next(usable(build.COMPILERS))
    except Unavailable as missing:
        pytest.skip(missing.reason)
    monkeypatch.setenv("ZOOMGRAD_CACHE", str(tmp_path))
    monkeypatch.setattr(build.importlib.metadata, "version", lambda package: "stub 1")
    return lambda text: Translator("stub", ("stub",), ("-c", f"import pathlib, sys\n{text}"))


@pytest.mark.host
def test_a_class_is_built_once_and_then_kept(tool, tmp_path):
    calls = tmp_path / "calls"
    stub = tool(
        f"pathlib.Path({build.C_FILE!r}).write_text({MODULE!r})\n"
        f"open({str(calls)!r}, 'a').write(pathlib.Path(sys.argv[1]).read_text())"
    )
    assert [build.value(stub), build.value(stub)] == [7, 7]
    assert calls.read_text() == source()


@pytest.mark.host
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sys.exit('no')", "stub ended with exit code 1: no"),
        (f"pathlib.Path({build.C_FILE!r}).write_text('not C')", "not C"),
        ("", "wrote no __native.c"),
    ],
)
def test_a_build_that_fails_makes_the_engine_unavailable(tool, text, reason):
    with pytest.raises(Unavailable, match=f"(?s)Value could not be built: .*{reason}"):
        build.value(tool(text))
