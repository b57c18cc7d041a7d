"""The command line starts quickly because it imports little."""

import inspect
import pkgutil
import subprocess
import sys

import pytest

from harness.cli import COMMANDS, ELSEWHERE, commands, load

HEAVY = {"dask", "distributed", "matplotlib", "numpy", "pandas", "pyperf", "ruptures", "scipy"}

REPORTERS = {"check", "compare", "export", "history", "report"}
"""Commands that show measurements, for which they import the whole report."""


def imported(*arguments):
    """Return the heavy modules that a command has imported by its end."""
    code = f"""if True:
        import sys
        from harness.cli import main
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


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS if name not in REPORTERS)], ids=" ".join)
def test_help_imports_nothing_heavy(command):
    assert imported(*command, "--help") == set()


@pytest.mark.parametrize(
    "arguments", [["list"], ["show", "xor"], ["show", "xor", "--engine", "tcc", "--stage", "tape"]]
)
def test_commands_that_show_no_figures_import_nothing_heavy(arguments):
    assert imported(*arguments) == set()


def test_doctor_imports_no_more_than_the_engines_that_it_checks():
    assert imported("doctor") <= {"numpy"}


def test_help_imports_neither_rich_nor_pydantic():
    code = "import sys, harness.cli; print({'rich', 'pydantic', 'harness.cli.app'} & set(sys.modules) or 'none')"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "none\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_line_equals_the_commands_own(name):
    assert COMMANDS[name] == inspect.cleandoc(load(name).help).split("\n\n")[0]


def test_every_command_has_a_help_line():
    assert sorted(set(COMMANDS) - set(ELSEWHERE)) == [module.name for module in pkgutil.iter_modules(commands.__path__)]
