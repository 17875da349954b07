"""The worker process that compares mathematical expressions: one JSON pair in per line, one JSON verdict out.

It runs as ``python -m pipeline.benchmark.math_worker`` under limits of memory and of CPU time per comparison: one that
passes the limit kills the process, and whoever started it starts another.
"""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from typing import Any

__all__ = ["limit_memory", "main", "same_expression"]


def same_expression(answer: str, gold: str) -> bool:
    """Whether two expressions in LaTeX or plain text are mathematically equal (math-verify); False if unreadable."""
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, StringExtractionConfig, parse, verify

    def read(text: str) -> Any:
        readings = [LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig(), StringExtractionConfig()]
        # Bare LaTeX parses to nothing: both sides stand in a box.
        return parse(rf"\boxed{{{text}}}", readings, parsing_timeout=0)

    try:
        return bool(verify(read(gold), read(answer), timeout_seconds=0))
    except (RecursionError, MemoryError):
        raise
    except Exception:  # a parser for hostile text may raise anything; unreadable is not equal
        return False


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
        _clock(cpu_s)
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
