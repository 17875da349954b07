"""Lines of worked arithmetic: reading them, and carrying a slip through to the end."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction

_ANNOTATION = re.compile(r"<<[^<>]*>>")
_NUMBER = r"\d[\d,]*(?:\.\d+)?"
_EQUATION = re.compile(rf"({_NUMBER}%?(?:\s*[-+*/×÷]\s*\$?{_NUMBER}%?)+)(\s*=\s*\$?)({_NUMBER})")
_TOKEN = re.compile(rf"{_NUMBER}%?|[-+*/×÷]")
_NUMBERS = re.compile(_NUMBER)


def as_number(text: str) -> Fraction | None:
    """The number a text stands for, or None: "1,200", "$3.50", "-4", "3/4"."""
    bare = text.strip().rstrip(".").replace(",", "").replace("$", "").replace("−", "-")
    try:
        return Fraction(bare)
    except (ValueError, ZeroDivisionError):
        return None


def written(value: Fraction) -> str:
    """A number as people write it: whole, or with at most two decimals."""
    if value.denominator == 1:
        return str(value.numerator)
    return f"{float(value):.2f}".rstrip("0").rstrip(".")


def evaluate(expression: str) -> Fraction | None:
    """The value of a chain of + − × ÷ without parentheses, or None where it has none."""
    tokens = _TOKEN.findall(expression)
    terms: list[Fraction] = []
    sign, pending = 1, ""
    for token in tokens:
        if token in "-+*/×÷":
            pending = token
            continue
        number = as_number(token.rstrip("%"))
        if number is None:
            return None
        value = number / 100 if token.endswith("%") else number
        if pending in ("*", "×"):
            terms[-1] *= value
        elif pending in ("/", "÷"):
            if value == 0:
                return None
            terms[-1] /= value
        else:
            sign = -1 if pending == "-" else 1
            terms.append(sign * value)
    return sum(terms, Fraction(0)) if terms else None


def last_number(line: str) -> Fraction | None:
    """The last number of a line, or None."""
    numbers = _NUMBERS.findall(_ANNOTATION.sub("", line))
    return as_number(numbers[-1]) if numbers else None


def carry_slip(steps: Sequence[str], place: int, wrong: Fraction) -> tuple[tuple[str, ...], Fraction | None]:
    """The steps with the result of one replaced by a wrong number, and everything after it worked out from there.

    Args:
        steps: worked lines; those of the form "… a + b = c …" are understood, others only have numbers replaced.
        place: index of the line with the slip.
        wrong: what it says instead of its result.

    Returns:
        The lines, and the number the last equation now ends in (None if no line is an equation).
    """
    changed: dict[str, str] = {}
    lines: list[str] = []
    final: Fraction | None = None
    for index, step in enumerate(steps):
        line = _ANNOTATION.sub("", step)
        match = _EQUATION.search(line)
        if match is None:
            lines.append(_replaced(line, changed))
            continue
        expression = _replaced(match[1], changed)
        value = wrong if index == place else evaluate(expression)
        result = written(value) if value is not None and (changed or index == place) else match[3].replace(",", "")
        if result != match[3].replace(",", ""):
            changed[match[3].replace(",", "")] = result
        head, tail = _replaced(line[: match.start()], changed), line[match.end() :]
        lines.append(f"{head}{expression}{match[2]}{result}{_replaced(tail, changed)}")
        final = as_number(result)
    return tuple(lines), final


def _replaced(text: str, changed: Mapping[str, str]) -> str:
    if not changed:
        return text
    return _NUMBERS.sub(lambda match: changed.get(match[0].replace(",", ""), match[0]), text)
