"""Folders have few modules, so that a reader can guess what each one holds; tests/structure.py counts correctly."""

from pathlib import Path

from tests.structure import MOST_MODULES, folders, imports, longest_chain

ROOT = Path(__file__).parent.parent


def test_no_folder_has_too_many_modules():
    crowded = {str(folder): len(modules) for folder, modules in folders(ROOT).items() if len(modules) > MOST_MODULES}
    assert not crowded, "split the folder: keep modules that answer one question together"


def test_a_chain_follows_the_longest_branch_and_counts_a_cycle_once():
    graph = {"a": ["b", "c"], "b": [], "c": ["d"], "d": ["a"]}
    assert longest_chain(graph, "a") == ["a", "c", "d"]


def test_imports_of_a_module_are_found_by_name():
    graph = imports(ROOT, "reports")
    assert "reports.charts.drawing.labels" in graph["reports.charts.steps.warm_up"]
    assert not any("results" in name for names in graph.values() for name in names)
