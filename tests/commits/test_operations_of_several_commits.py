"""An operation of several commits cannot claim that nothing happened once the first one is durable: ``complete_operation`` sees to that."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import headwater

COMMITS = {"commit_change", "commit_series"}
ALLOWED = {
    "catalogs/catalog_gc.py:release_name": "it makes one commit or the other",
    "catalogs/catalog_gc.py:finish_deletions": "each deletion stands for itself, and the next collection goes on with the rest",
    "catalogs/catalog_lifecycle.py:complete_catalog": "it is a step that complete_operation repeats",
    "catalogs/catalog_lifecycle.py:_ensure_role": "it is a part of that step",
    "catalogs/known_metadata.py:write_notes": "each block of notes stands for itself, and the next import goes on with the rest",
    "jobs/task_runs.py:run_collection": "it makes one commit or the other",
    "lake_files/place_markers.py:advance": "what was announced is found by the next run of the task, which goes on from there",
    "lake_files/report_run.py:_publish": "a report that is being published says so, and the next run of the task publishes another one",
    "realms/realm_bootstrap.py:_fill": "it is a step that complete_operation repeats",
    "realms/realm_registry.py:move_realm": "the first commit only takes back what a wrong clock wrote; the move is the second",
    "tasks/task_index_repair.py:mend_entries": "each task stands for itself, and the next repair goes on with the rest",
}
"""Functions that make several commits without ``complete_operation``, each with the reason why their errors are right."""
SOURCES = sorted(Path(headwater.__file__).parent.rglob("*.py"))


def functions(tree: ast.Module) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def calls(node: ast.AST) -> Iterator[ast.Call]:
    """The calls of a function that run when it does and when it has not failed before: not those within ``complete_operation``."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ExceptHandler):
            continue
        if isinstance(child, ast.Call):
            if name_of(child) == "complete_operation":
                continue
            yield child
        yield from calls(child)


def steps(node: ast.AST) -> Iterator[str]:
    """The functions that are given to ``complete_operation`` as they are."""
    for child in ast.walk(node):
        if isinstance(child, ast.Call) and name_of(child) == "complete_operation":
            yield from (argument.id for argument in child.args if isinstance(argument, ast.Name))


def name_of(call: ast.Call) -> str:
    """The function of this module, or the method of its class, that is called; empty for another object's."""
    if isinstance(call.func, ast.Name):
        return call.func.id
    is_own = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name) and call.func.value.id == "self"
    return call.func.attr if is_own and isinstance(call.func, ast.Attribute) else ""


def several_commits(source: str) -> dict[str, list[int]]:
    """The functions of a module that commit at more than one place, with the lines. A helper of the module that commits is such a place."""
    if not any(name in source for name in COMMITS):
        return {}
    made = functions(ast.parse(source))
    called = {name: [(name_of(call), call.lineno) for call in calls(node)] for name, node in made.items()}
    committing = set(COMMITS)
    while True:
        more = {name for name, own in called.items() if any(each in committing for each, _ in own)} - committing
        if not more:
            break
        committing |= more
    repeated = {name for node in made.values() for name in steps(node)}
    places = {name: [line for each, line in own if each in committing] for name, own in called.items() if name not in repeated}
    return {name: lines for name, lines in places.items() if len(lines) > 1}


def test_no_operation_makes_several_commits_on_its_own() -> None:
    root = SOURCES[0].parent
    found = {
        f"{path.relative_to(root)}:{name}": lines
        for path in SOURCES
        if "commit" in (text := path.read_text())
        for name, lines in several_commits(text).items()
    }

    assert {place: lines for place, lines in found.items() if place not in ALLOWED} == {}
    assert set(ALLOWED) <= set(found), "what is not there any more needs no reason"


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        ("    commit_change()\n    commit_change()", True),
        ("    self._save()\n    commit_change()", True),
        ("    commit_change()\n    complete_operation(rows, lambda: commit_change(), done='')", False),
        ("    try:\n        commit_change()\n    except NotFoundError:\n        commit_change()", False),
        ("    other.save()\n    commit_change()", False),
    ],
)
def test_rule_finds_what_it_is_for(body: str, is_found: bool) -> None:
    source = f"def _save(self):\n    commit_change()\n\ndef drop(self):\n{body}\n"

    assert ("drop" in several_commits(source)) is is_found
