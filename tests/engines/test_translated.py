"""The engines `cython` and `mypyc`: what they compile, and what happens around the tools.

If the tools are installed, the conformance tests run both engines.
"""

import pytest

from zoomgrad import engines
from zoomgrad.engines import nn
from zoomgrad.engines.api import Unavailable
from zoomgrad.engines.interpreted.trainer import RebuildingTrainer
from zoomgrad.engines.kernel.building import BuildFailed
from zoomgrad.engines.kernel.extension import check_python
from zoomgrad.engines.kernel.toolchains import usable
from zoomgrad.engines.translated import build
from zoomgrad.engines.translated.build import Translated, Translator, source
from zoomgrad.harness import workloads


def trained(trainer):
    trainer.train(6)
    return trainer.losses, trainer.gradients(), trainer.parameters()


def test_the_prepared_text_gives_the_reference_bits():
    names = {"__name__": "prepared"}
    exec(compile(source(), "prepared.py", "exec"), names)
    workload = workloads.load("tour")
    assert trained(RebuildingTrainer(nn.bind(names["Value"]), workload)) == trained(
        engines.load("tuple").prepare(workload)
    )


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
def stub(monkeypatch, tmp_path):
    """A tool that writes a small module, and the list of its calls."""
    try:
        check_python("slots")
        next(usable(build.COMPILERS))
    except Unavailable as missing:
        pytest.skip(missing.reason)
    monkeypatch.setenv("ZOOMGRAD_CACHE", str(tmp_path))
    calls = []

    def translate(folder, module):
        calls.append((folder / f"{module}.py").read_text())
        return Translated(MODULE)

    monkeypatch.setattr(Translator, "version", lambda self: "stub 1")
    return Translator("stub", (), translate), calls


@pytest.mark.host
def test_a_class_is_built_once_and_then_kept(stub):
    tool, calls = stub
    assert [build.value(tool), build.value(tool)] == [7, 7]
    assert calls == [source()]


@pytest.mark.host
@pytest.mark.parametrize("made", [BuildFailed("stub failed", "no", "Mend it."), Translated("not C")])
def test_a_build_that_fails_makes_the_engine_unavailable(stub, made):
    def translate(folder, module):
        if isinstance(made, BuildFailed):
            raise made
        return made

    with pytest.raises(Unavailable, match="Value could not be built"):
        build.value(stub[0]._replace(translate=translate))
