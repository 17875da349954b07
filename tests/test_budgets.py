"""The budgets of the house: numbers that only fall, except where a commit names the capability that a rise buys.

``budgets.json`` holds today's numbers. A change that stays below one may lower it at any time; a change that must go
above one raises it in the same commit and says there what is bought. The headroom of ``lines`` keeps work that goes on
in several places at once from meeting in this file.
"""

from __future__ import annotations

import ast
import json
from collections import Counter
from functools import cache
from pathlib import Path

import pipeline.estimators

ROOT = Path(__file__).resolve().parents[1]
BUDGETS = json.loads((Path(__file__).parent / "budgets.json").read_text(encoding="utf-8"))


@cache
def sources() -> dict[Path, str]:
    return {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "pipeline").rglob("*.py"))}


def test_lines_of_the_package() -> None:
    assert sum(text.count("\n") for text in sources().values()) <= BUDGETS["lines"]


def test_files_of_each_folder() -> None:
    count = Counter(path.parent.relative_to(ROOT).as_posix() for path in sources())
    most = BUDGETS["files"]
    over = {name: number for name, number in count.items() if number > most.get(name, most["elsewhere"])}
    assert not over


def test_lines_of_each_file() -> None:
    lines = {path.relative_to(ROOT).as_posix(): text.count("\n") for path, text in sources().items()}
    assert {name: number for name, number in lines.items() if number > BUDGETS["lines_a_file"]} == {}


def test_names_that_the_estimators_export() -> None:
    assert len(pipeline.estimators.__all__) <= BUDGETS["estimator_names"]


def test_arguments_of_each_function() -> None:
    longest = BUDGETS["arguments"]
    over = {}
    for path, text in sources().items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = node.args
                count = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)
                if count > longest.get(node.name, longest["elsewhere"]):
                    over[f"{path.name}:{node.name}"] = count
    assert not over


def imports_of(path: Path, text: str) -> set[str]:
    """The modules of ours that a file imports when it is imported; what only type checkers read is no import."""
    modules: set[str] = set()

    def visit(body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("pipeline"):
                modules.update({node.module, *(f"{node.module}.{alias.name}" for alias in node.names)})
            elif isinstance(node, ast.Import):
                modules.update(alias.name for alias in node.names if alias.name.startswith("pipeline"))
            elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
                visit([*node.body, *node.orelse])
            elif isinstance(node, ast.Try):
                visit(node.body)

    visit(ast.parse(text).body)
    return modules


def circles() -> list[list[str]]:
    """Strongly connected groups of more than one file (Tarjan)."""
    names = {
        path: ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__") for path in sources()
    }
    modules = set(names.values())
    graph = {names[path]: imports_of(path, text) & modules - {names[path]} for path, text in sources().items()}
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def connect(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in order:
                connect(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            group = []
            while not group or group[-1] != node:
                group.append(stack.pop())
            if len(group) > 1:
                groups.append(sorted(group))

    for node in sorted(graph):
        if node not in order:
            connect(node)
    return groups


def test_no_circle_of_files() -> None:
    assert len(circles()) <= BUDGETS["circles"], circles()


WORN = {"found", "known", "shown", "facts", "said"}


def worn_names(tree: ast.AST) -> set[str]:
    """Arguments and variables of functions that say nothing of what they hold."""
    worn = set()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for node in ast.walk(function):
                name = node.arg if isinstance(node, ast.arg) else node.id if isinstance(node, ast.Name) else ""
                stored = isinstance(node, ast.arg) or isinstance(getattr(node, "ctx", None), ast.Store)
                if stored and name in WORN:
                    worn.add(name)
    return worn


def test_names_say_what_they_hold() -> None:
    """One word, one meaning: ``found`` named matches, masks, columns and verdicts, forty files of them."""
    worn = {path.relative_to(ROOT).as_posix(): worn_names(ast.parse(text)) for path, text in sources().items()}
    assert {path: sorted(names) for path, names in worn.items() if names} == {}


def test_the_hunt_for_worn_names_sees_them() -> None:
    assert worn_names(ast.parse("def f(known):\n    found, x = known\n    return [said for said in x]")) == {
        *("known", "found", "said"),
    }
    assert worn_names(ast.parse("class A:\n    known: int\nfound = 1")) == set()


def keys_read(tree: ast.AST) -> list[int]:
    """Lines that read an entry of a mapping called diagnostics."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if (
            isinstance(node, ast.Subscript)
            and isinstance(node.ctx, ast.Load)
            and getattr(node.value, "attr", getattr(node.value, "id", "")) == "diagnostics"
        )
        or (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("get", "items", "pop", "values")
            and getattr(node.func.value, "attr", getattr(node.func.value, "id", "")) == "diagnostics"
        )
    ]


def test_no_code_reads_a_key_of_the_diagnostics() -> None:
    """What is decided or printed is a field: a key renamed in one room once silenced a sentence in another."""
    read = {path.relative_to(ROOT).as_posix(): keys_read(ast.parse(text)) for path, text in sources().items()}
    assert {path: lines for path, lines in read.items() if lines} == {}


def test_the_hunt_for_keys_of_diagnostics_sees_them() -> None:
    text = "x = e.diagnostics['a']\ndiagnostics['b'] = 1\ny = e.diagnostics.get('c')\nz = diagnostics['d']"
    assert keys_read(ast.parse(text)) == [1, 3, 4]


def test_estimators_import_each_other_at_the_top() -> None:
    """An import inside a function hid a circle: profiles imported the adaptive rule, which imports profiles."""
    inside = [
        f"{path.name}:{node.lineno}"
        for path, text in sources().items()
        if "estimators" in path.parts
        for function in ast.walk(ast.parse(text))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pipeline")
    ]
    assert inside == []
