"""The command line starts quickly because it imports little."""

import inspect
import pkgutil
import subprocess
import sys

import pytest

from zoomgrad.harness.cli import COMMANDS, Commands, commands, load

HEAVY = {"pydantic", "dask", "distributed", "numpy", "pandas", "pyperf", "scipy"}


def imported(*arguments):
    """Return the heavy modules that a command has imported by its end."""
    code = f"""if True:
        import sys
        from zoomgrad.harness.cli import main
        sys.argv = ["zoomgrad", *{arguments!r}]
        try:
            main()
        except SystemExit as end:
            assert not end.code, end
        print(*sorted({HEAVY} & set(sys.modules)), file=sys.stderr)
    """
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout
    return set(result.stderr.split())


@pytest.mark.parametrize("arguments", [["--help"], ["list"]])
def test_commands_that_show_names_import_nothing_heavy(arguments):
    assert imported(*arguments) == set()


@pytest.mark.parametrize("arguments", [["run", "--help"], ["show", "xor", "--engine", "tcc", "--stage", "tape"]])
def test_commands_that_show_no_figures_import_pydantic_at_most(arguments):
    assert imported(*arguments) <= {"pydantic"}


def test_measuring_on_one_machine_imports_no_dask():
    code = "import sys, zoomgrad.harness.cli.measuring, zoomgrad.harness.run.schedule, zoomgrad.harness.fleet.where\n"
    code += "print({'dask', 'distributed'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_line_equals_the_commands_own(name):
    assert Commands().commands[name].short_help == inspect.cleandoc(load(name).help).split("\n\n")[0]


def test_every_command_has_a_help_line():
    assert sorted(COMMANDS) == [module.name for module in pkgutil.iter_modules(commands.__path__)]
