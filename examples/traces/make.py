"""Writes traces.jsonl: 300 invented traces of a support assistant, two versions of it on 150 questions, 60 rated.

Version v2 is as good as v1 but on refunds, where it often names the wrong number of days. Thirty questions drawn at
random were rated by a person, both versions of each.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

TOPICS = {
    "refunds": ("How many days does the refund for order {n} take?", "days", (3, 30)),
    "shipping": ("How many days until parcel {n} arrives?", "days", (1, 21)),
    "warranty": ("How many months of warranty does item {n} have?", "months", (6, 60)),
}
PLAIN = ("According to our records it is {v} {unit}.", "Thank you for waiting. The answer is {v} {unit}.")
WORDY = (
    "I am sorry for the trouble and have looked this up for you. As far as I can see from your file, it is {v} {unit}."
)


def rows(seed: int = 7) -> list[dict[str, object]]:
    """The traces, a row each."""
    rng = np.random.default_rng(seed)
    rated = set(rng.choice(150, 30, replace=False).tolist())
    made: list[dict[str, object]] = []
    for k in range(150):
        topic, (question, unit, (low, high)) = list(TOPICS.items())[k % len(TOPICS)]
        truth = int(rng.integers(low, high + 1))
        for version in ("v1", "v2"):
            able = 0.2 if (version, topic) == ("v2", "refunds") else 0.85
            right = bool(rng.random() < able)
            value = truth if right else truth + int(rng.choice([-2, -1, 1, 2, 5]))
            text = (WORDY if rng.random() < 0.3 else PLAIN[k % 2]).format(v=value, unit=unit)
            text = f"Ticket {int(rng.integers(10_000, 100_000))}. {text}"
            made.append(
                {
                    "trace": f"t{k:03d}",
                    "topic": topic,
                    "version": version,
                    "input": question.format(n=1000 + 7 * k),
                    "retrieved": f"Record {1000 + 7 * k}: {truth} {unit}.",
                    "expected": str(truth),
                    "output": text,
                    "correct": ("yes" if right else "no") if k in rated else None,
                }
            )
    return made


if __name__ == "__main__":
    lines = (json.dumps(row) + "\n" for row in rows())
    Path(__file__).with_name("traces.jsonl").write_text("".join(lines), encoding="utf-8")
