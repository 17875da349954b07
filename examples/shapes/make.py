"""Writes the made-up files beside it: votes on pairs, promptfoo results, an Inspect folder with two tasks."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path

HERE = Path(__file__).resolve().parent
SKILL = {"large": 0.8, "medium": 0.6, "small": 0.4}


def votes(rng: random.Random) -> None:
    """150 comparisons of three models; a judge voted on all, a person on 60."""
    with (HERE / "votes.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["prompt", "model_a", "model_b", "human", "judge"])
        for number in range(150):
            a, b = rng.sample(sorted(SKILL), 2)
            said = "A" if rng.random() < SKILL[a] / (SKILL[a] + SKILL[b]) else "B"
            judge = said if rng.random() < 0.85 else "AB"[said == "A"]
            human = ("tie" if number % 20 == 0 else said) if number % 5 < 2 else ""
            table.writerow([f"p{number:03}", a, b, human, judge])


def promptfoo(rng: random.Random) -> None:
    """60 tests of two providers."""
    rows = []
    for test in range(60):
        for provider in ("large", "small"):
            right = rng.random() < SKILL[provider]
            row = {"testIdx": test, "provider": {"id": f"made:{provider}", "label": provider}, "success": right,
                   "prompt": {"raw": "Answer {{q}}", "label": "Answer {{q}}"}, "vars": {"q": f"q{test}"},
                   "score": float(right), "failureReason": 0 if right else 1,
                   "response": {"output": "yes" if right else "no"}}  # fmt: skip
            rows.append(row)
    passed = sum(row["success"] for row in rows)
    stats = {"successes": passed, "failures": len(rows) - passed, "errors": 0}
    content = {"evalId": "made", "results": {"version": 3, "results": rows, "stats": stats}}
    (HERE / "promptfoo.json").write_text(json.dumps(content) + "\n")


def inspect(rng: random.Random) -> None:
    """Two tasks with the same sample ids, two models each."""
    for task, shift in (("easy", 0.15), ("hard", -0.15)):
        for model in ("large", "small"):
            values = ["C" if rng.random() < SKILL[model] + shift else "I" for _ in range(40)]
            samples = [
                {"id": i + 1, "epoch": 1, "input": f"{task} question {i + 1}", "target": "x",
                 "output": {"completion": "x"}, "scores": {"match": {"value": value}}}
                for i, value in enumerate(values)
            ]  # fmt: skip
            score = {"name": "match", "scorer": "match",
                     "metrics": {"accuracy": {"name": "accuracy", "value": values.count("C") / 40}}}  # fmt: skip
            spec = {"task": task, "model": f"made/{model}", "created": "2026-01-01T00:00:00+00:00", "task_args": {}}
            log = {"version": 2, "status": "success", "eval": spec, "results": {"scores": [score]}, "samples": samples}
            (HERE / "inspect" / f"{task}_{model}.json").write_text(json.dumps(log) + "\n")


if __name__ == "__main__":
    votes(random.Random(1))
    promptfoo(random.Random(2))
    inspect(random.Random(3))
