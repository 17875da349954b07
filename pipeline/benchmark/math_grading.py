"""Mathematical equality by math-verify, in worker processes that no reply can hang or fill."""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections import Counter
from typing import IO

from pipeline.benchmark.math_text import base_of, read_expression, words_of
from pipeline.benchmark.number_terms import says_otherwise, spelled_minus
from pipeline.benchmark.numbers import is_plain_gold, numbers_equal, parse_number
from pipeline.benchmark.plain import plain_text
from pipeline.errors import DataError

MAX_EXPRESSION_CHARS = 2_000
CPU_LIMIT_S = 5.0
"""CPU time of one comparison: unlike wall time, it does not depend on how busy the machine is."""
_STRIKES, _AFTER_STRIKES = 3, 0.2
WALL_LIMIT_S = 60.0
START_LIMIT_S = 120.0
MEMORY_LIMIT_BYTES = 2 * 1024**3
_MOST_VERDICTS = 4096


def require_math_extra() -> None:
    """Refuse before anything is asked if math-verify is not installed.

    Raises:
        DataError: it is not, with the command that installs it.
    """
    if importlib.util.find_spec("math_verify") is None:
        raise DataError("grading math needs the extra math: pip install 'auxeval[math]'")


class _Worker:
    """One worker process and the pipe to it."""

    def __init__(self, cpu_s: float, wall_s: float, memory_bytes: int) -> None:
        self._wall_s = wall_s
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            # -P: without it Python looks in the working directory first, and ran a user's file called pipeline.py.
            [sys.executable, "-P", "-m", "pipeline.benchmark.math_worker", str(cpu_s), str(memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_importable(environment),
            encoding="utf-8",
        )
        if self._read(START_LIMIT_S) is None:
            self.close()
            raise DataError("grading math: the worker process does not start; is math-verify installed whole?")

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def same(self, answer: str, gold: str, cpu_s: float) -> bool | None:
        """The verdict, or None if the comparison passed a limit (the worker is then gone)."""
        try:
            asked = {"answer": answer, "gold": gold, "cpu_s": cpu_s}
            _stream(self._process.stdin).write(json.dumps(asked) + "\n")
            _stream(self._process.stdin).flush()
        except OSError:
            return None
        reply = self._read(self._wall_s)
        return None if reply is None or "same" not in reply else bool(reply["same"])

    def _read(self, limit_s: float) -> dict[str, object] | None:
        timer = threading.Timer(limit_s, self._process.kill)
        timer.daemon = True
        timer.start()
        try:
            line = _stream(self._process.stdout).readline()
        finally:
            timer.cancel()
        with contextlib.suppress(json.JSONDecodeError):
            reply = json.loads(line)
            return reply if isinstance(reply, dict) else None
        return None

    def kill(self) -> None:
        """End the process at once; whoever waits for its verdict gets none."""
        with contextlib.suppress(OSError):
            self._process.kill()

    def close(self) -> None:
        """End the process and wait for it."""
        self.kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.wait()


def _stream(stream: IO[str] | None) -> IO[str]:
    if stream is None:
        raise OSError("pipe is closed")
    return stream


def _importable(environment: dict[str, str]) -> dict[str, str]:
    """The environment in which the child finds this very package, wherever it was imported from."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    paths = [root, environment["PYTHONPATH"]] if environment.get("PYTHONPATH") else [root]
    return {**environment, "PYTHONPATH": os.pathsep.join(paths)}


class MathPool:
    """Up to ``size`` workers, started when first needed; safe to use from several threads.

    Args:
        size: most workers at a time.
        cpu_s: CPU seconds one comparison may take.
        wall_s: wall seconds after which a stuck worker is killed.
        memory_bytes: address space of a worker.
    """

    def __init__(
        self,
        size: int = 2,
        *,
        cpu_s: float = CPU_LIMIT_S,
        wall_s: float = WALL_LIMIT_S,
        memory_bytes: int = MEMORY_LIMIT_BYTES,
    ) -> None:
        self._limits = (cpu_s, wall_s, memory_bytes)
        self._slots: queue.LifoQueue[_Worker | None] = queue.LifoQueue()
        for _ in range(size):
            self._slots.put(None)
        self._size = size
        self._running: set[_Worker] = set()
        self.limited: Counter[str] = Counter()
        """Whose answers passed a limit, and were therefore taken as not equal, how often."""

    def same(self, answer: str, gold: str, who: str = "") -> bool:
        """Whether two expressions are equal; False if the comparison passes a limit.

        A model whose answers have passed the limit three times gets a fifth of it from then on: honest ones take
        milliseconds, and towers of powers once held the graders for seconds each.

        Raises:
            DataError: no worker can be started.
        """
        worker = self._slots.get()
        try:
            if worker is not None and not worker.alive:
                worker.close()
                worker = None
            if worker is None:
                worker = _Worker(*self._limits)
            share = _AFTER_STRIKES if self.limited[who] >= _STRIKES else 1.0
            verdict = self._compare(worker, answer, gold, self._limits[0] * share)
            if verdict is None:
                self.limited[who] += 1
                worker.close()
            return bool(verdict)
        finally:
            self._slots.put(worker)

    def _compare(self, worker: _Worker, answer: str, gold: str, cpu_s: float) -> bool | None:
        self._running.add(worker)
        try:
            return worker.same(answer, gold, cpu_s)
        finally:
            self._running.discard(worker)

    def close(self) -> None:
        """End all workers, a comparison under way among them; the pool can be used again and starts new ones."""
        for running in tuple(self._running):
            running.kill()
        for _ in range(self._size):
            worker = self._slots.get()
            if worker is not None:
                worker.close()
        for _ in range(self._size):
            self._slots.put(None)


_shared: MathPool | None = None
_shared_lock = threading.Lock()


def _pool() -> MathPool:
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = MathPool(size=min(4, os.cpu_count() or 1))
            atexit.register(_shared.close)
        return _shared


def close_math_pool() -> None:
    """End the shared workers, if any were started."""
    with _shared_lock:
        if _shared is not None:
            _shared.close()


def math_equal(answer: str, gold: str, *, who: str = "") -> bool:
    """Whether an answer, of the model ``who``, equals the gold expression.

    Equal text (spaces and wrapping apart), plain words and plain numbers are decided here; everything else by
    math-verify in a worker process. Two different units are not equal; where only one side has a unit, the quantities
    are compared. Numbers are equal exactly, or to 1e-9 of their size where they are not written out. An answer of more
    than 2,000 characters is not equal.

    Raises:
        DataError: math-verify is not installed, or no worker can be started.
    """
    if len(answer) > MAX_EXPRESSION_CHARS:
        return False
    if "not" not in gold:
        answer = _NOT_THIS.sub("", answer)
    answer = spelled_minus(answer)
    (given, given_unit), (wanted, wanted_unit) = read_expression(answer), read_expression(gold)
    if given_unit and wanted_unit and given_unit != wanted_unit:
        return False
    bases = base_of(given), base_of(wanted)
    if all(bases) and bases[0] != bases[1]:
        return False
    words = words_of(answer), words_of(gold)
    if all(words):
        return words[0] == words[1]
    if _is_another(answer, gold):
        return False
    quick = _quick(given, wanted)
    if quick is not None:
        return quick
    return _compared(_bare(given), _bare(wanted), who)


_COMMANDS = re.compile(r"\\[a-zA-Z]{1,30}")
_RELATION = re.compile(r"[<>≤≥]|\\(?:leq?|geq?|lt|gt)(?![a-zA-Z])")
_RANGE = re.compile(r"[(\[,]|\\infty|\\cup|∞|∪")


def _is_another(answer: str, gold: str) -> bool:
    """Whether an answer denies or bounds what it names, where the gold does not: math-verify reads past the words."""
    if says_otherwise(_COMMANDS.sub(" ", answer)) and not says_otherwise(_COMMANDS.sub(" ", gold)):
        return True
    bounded = _RELATION.search(re.sub(r"</?[a-z]{1,8}>", "", answer)) and not (
        _RELATION.search(gold) or _RANGE.search(gold)
    )
    return bool(bounded) or re.search(r"[+*/^-][\s.$]*$", answer) is not None


_NOT_THIS = re.compile(r"[\s,;]{0,3}\(?\s?(?:\band\s)?\b(?:not|rather than|instead of)\s[^\n]{0,200}$")
"""``15 (and not 4)``: math-verify took the last number of it."""


def _quick(answer: str, gold: str) -> bool | None:
    plain_answer, plain_gold = _tight(answer), _tight(gold)
    if plain_answer == plain_gold:
        return True
    if "!" not in answer and is_plain_gold(answer) and is_plain_gold(gold):
        given, wanted = parse_number(answer), parse_number(gold)
        if given is not None and wanted is not None and not (given.percent or wanted.percent):
            return numbers_equal(given, wanted)
    return None


def _bare(text: str) -> str:
    """Without the marks that only say where mathematics begins and ends, and without a closing full stop."""
    bare = re.sub(r"(?<!\\)\\[()\[\]]|(?<!\\)\$", "", text).strip()
    return re.sub(r"(?<!\\right)\.$", "", bare)


def _tight(text: str) -> str:
    return plain_text(text).replace(" ", "").replace("$", "").removesuffix(".")


_verdicts: dict[tuple[str, str], bool] = {}


def _compared(answer: str, gold: str, who: str) -> bool:
    """The verdict of a worker; many replies give one answer, whoever wrote it."""
    if (answer, gold) not in _verdicts:
        require_math_extra()
        verdict = _pool().same(answer, gold, who)
        if len(_verdicts) >= _MOST_VERDICTS:
            _verdicts.clear()
        _verdicts[answer, gold] = verdict
    return _verdicts[answer, gold]
