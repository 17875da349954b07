"""Families of worded problems as data: ``families.yaml`` says what is drawn, asked and worked out; this writes it."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import yaml

from pipeline.benchmark.embedded.puzzles import backwards, remainders
from pipeline.benchmark.embedded.worded import Draw, Family, Problem, step

_BY_CODE: Mapping[str, Family] = {"remainders": remainders, "backwards": backwards}
_PLACE = re.compile(r"\{([^{}]+)\}")
_NOTES = (50, 100, 200)


@dataclass(frozen=True, slots=True)
class Template:
    """One family: called with draws, it writes a problem.

    Attributes:
        name: the family.
        draw: assignments, in order: draws, and what follows from them.
        questions: one of them is asked.
        values: names of the numbers of the statement.
        steps: ``label: expression``; the value of the last is the answer.
    """

    name: str
    draw: tuple[ast.Assign, ...]
    questions: Sequence[str]
    values: Sequence[str]
    steps: Sequence[str]

    def __call__(self, draw: Draw) -> Problem:
        calls: dict[str, Callable[..., Any]] = {
            "integer": draw.integer, "name": draw.name, "things": draw.things, "food": draw.food,
            "pick": lambda *options: draw.pick(options), "gcd": math.gcd, "lcm": math.lcm, "capital": str.capitalize,
            "note_above": lambda cost: next(note for note in _NOTES if note > cost),
        }  # fmt: skip
        names: dict[str, Any] = {}
        for line in self.draw:
            value, target = _value(line.value, names, calls), line.targets[0]
            single = isinstance(target, ast.Name)
            names.update(zip(ast.unparse(target).strip("()").split(", "), (value,) if single else value, strict=True))

        def filled(text: str) -> str:
            return _PLACE.sub(lambda place: str(_value(_parsed(place[1]), names, calls)), text)

        question = filled(draw.pick(self.questions) if len(self.questions) > 1 else self.questions[0])
        worked = [filled(line).partition(": ")[::2] for line in self.steps]
        results = [(label, sum_, _value(_parsed(sum_), {}, {})) for label, sum_ in worked]
        values = {name: names[name] for name in self.values}
        return Problem(self.name, values, question, str(results[-1][2]), tuple(step(*line) for line in results))


def levels() -> dict[int, tuple[Family, ...]]:
    """The families of each level, in the order in which they take turns."""
    text = files(__package__).joinpath("families.yaml").read_text(encoding="utf-8")
    return {
        level: tuple(_BY_CODE[name] if entry is None else _template(name, entry) for name, entry in families.items())
        for level, families in yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)).items()
    }


def _template(name: str, entry: Mapping[str, Any]) -> Template:
    draw = tuple(line for line in ast.parse(entry["draw"]).body if isinstance(line, ast.Assign))
    return Template(name, draw, entry["questions"], entry["values"], entry["steps"])


@lru_cache(maxsize=4096)
def _parsed(expression: str) -> ast.expr:
    return ast.parse(expression, mode="eval").body


def _exactly(total: int, parts: int) -> int:
    share, rest = divmod(total, parts)
    if rest:
        raise ValueError(f"{total} / {parts} is no whole number")
    return share


_OPERATIONS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: _exactly,
    ast.FloorDiv: operator.floordiv,
}  # fmt: skip


def _value(node: ast.expr, names: Mapping[str, Any], calls: Mapping[str, Callable[..., Any]]) -> Any:
    """Arithmetic, names and the calls that are listed: the data can say nothing else, and is never run as code."""
    match node:
        case ast.Constant():
            return node.value
        case ast.Name() if node.id in names:
            return names[node.id]
        case ast.Tuple():
            return tuple(_value(part, names, calls) for part in node.elts)
        case ast.BinOp() if type(node.op) in _OPERATIONS:
            return _OPERATIONS[type(node.op)](_value(node.left, names, calls), _value(node.right, names, calls))
        case ast.Call(func=ast.Name(id=name)) if name in calls:
            return calls[name](*(_value(part, names, calls) for part in node.args))
    raise ValueError(f"no arithmetic: {ast.unparse(node)}")
