"""The worker process that compares mathematical expressions: one JSON pair in per line, one JSON verdict out.

It runs as ``python -m pipeline.benchmark.math_worker`` under limits of memory and of CPU time per comparison: one that
passes the limit kills the process, and whoever started it starts another.
"""

from __future__ import annotations

import contextlib
import json
import re
import signal
import sys
from typing import Any

_RELATION = re.compile(r"[<>≤≥]|\\(?:leq?|geq?|lt|gt|in)\b|[\[(][^()\[\]]*,[^()\[\]]*[\])]")
_RELATIVE = 1e-9


def same_expression(answer: str, gold: str) -> bool:
    """Whether two expressions in LaTeX or plain text are mathematically equal (math-verify); False if unreadable."""
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, StringExtractionConfig, parse, verify

    def read(text: str) -> Any:
        readings = [LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig(), StringExtractionConfig()]
        # Bare LaTeX parses to nothing: both sides stand in a box.
        return parse(rf"\boxed{{{text}}}", readings, parsing_timeout=0)

    try:
        wanted, given = read(gold), read(answer)
        numeric = _same_number(wanted, given)
        if numeric is not None:
            return numeric
        precise = {"float_rounding": 12, "numeric_precision": 30, "timeout_seconds": 0}
        if verify(wanted, given, **precise):
            return True
        # math-verify takes (1, 4) for 1 < x < 4 in one order only.
        return bool(_RELATION.search(gold + answer)) and bool(verify(given, wanted, **precise))
    except (RecursionError, MemoryError):
        raise
    except Exception:  # a parser for hostile text may raise anything; unreadable is not equal
        return False


def _same_number(gold: list[Any], answer: list[Any]) -> bool | None:
    """Whether two numbers are equal, exactly or to 1e-9 of their size; None if one of them is no number.

    math-verify rounds to six places, which makes 0.333333 one third, and takes 1/1990! and 1/1993! both for zero.
    """
    from sympy import Basic, Float

    if not gold or not answer or not all(isinstance(side[0], Basic) for side in (gold, answer)):
        return None
    wanted, given = gold[0], answer[0]
    if not all(getattr(side, "is_number", False) and side.is_finite for side in (wanted, given)):
        return None
    if not any(side.is_number and side.is_real for side in (wanted, given)):
        return None
    if wanted == given:
        return True
    difference, size = abs(wanted - given).evalf(40), abs(wanted).evalf(40)
    if not isinstance(difference, Float) or not isinstance(size, Float):
        return None
    if wanted.is_Rational and given.is_Rational and not (wanted.is_Float or given.is_Float):
        return bool(difference == 0)
    exact = _as_written(wanted), _as_written(given)
    if all(part is not None for part in exact):
        return bool(exact[0] == exact[1])
    return bool(difference <= size * _RELATIVE) if size != 0 else bool(difference == 0)


def _as_written(number: Any) -> Any:
    """A rational number or a decimal exactly as it was written; None for one that is neither."""
    from sympy import Rational

    if number.is_Rational:
        return number
    return Rational(str(number)) if number.is_Float else None


def limit_memory(memory_bytes: int) -> None:
    """Bound this process's address space, where the system can; Ctrl-C is left to whoever started it."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "SIGVTALRM"):
        signal.signal(signal.SIGVTALRM, signal.SIG_DFL)


def main() -> None:
    """Serve comparisons until the input ends."""
    cpu_s, memory_bytes = float(sys.argv[1]), int(sys.argv[2])
    limit_memory(memory_bytes)
    import math_verify  # noqa: F401  (loaded before the first clock starts)

    out = sys.stdout
    sys.stdout = sys.stderr
    same_expression("1", "1")
    out.write('{"ready": true}\n')
    out.flush()
    for line in sys.stdin:
        pair = json.loads(line)
        _clock(min(cpu_s, float(pair["cpu_s"])))
        try:
            verdict: dict[str, Any] = {"same": same_expression(pair["answer"], pair["gold"])}
        except (RecursionError, MemoryError) as error:
            verdict = {"failed": type(error).__name__}
        _clock(0.0)
        out.write(json.dumps(verdict) + "\n")
        out.flush()


def _clock(seconds: float) -> None:
    """CPU time after which the process is killed by a signal that no code can catch late; 0 takes the clock away."""
    if hasattr(signal, "setitimer") and hasattr(signal, "ITIMER_VIRTUAL"):
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)


if __name__ == "__main__":
    main()
