"""Writes v1.jsonl, v2.jsonl, v3.jsonl: invented traces of a support assistant, three versions on 600 questions.

Every answer was checked against the record (``correct``). Version v2 is as good as v1 but on refunds; v3 mends that.
Answers of two versions agree on most questions, as those of real ones do.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

TOPICS = ("refunds", "shipping", "warranty", "accounts", "billing")
ABLE = {"v1": 0.85, "v2": 0.85, "v3": 0.87}


def rows(version: str, seed: int = 11) -> list[dict[str, object]]:
    """The traces of one version, a row each."""
    shared = np.random.default_rng(seed).random(600)
    own = np.random.default_rng([seed, int(version[1:])])
    made: list[dict[str, object]] = []
    for k in range(600):
        topic = TOPICS[k % len(TOPICS)]
        able = 0.72 if (version, topic) == ("v2", "refunds") else ABLE[version]
        luck = float(own.random()) if own.random() < 0.12 else float(shared[k])
        days = int(3 + 27 * shared[k])
        right = luck < able
        made.append(
            {
                "trace": f"t{k:03d}",
                "topic": topic,
                "question": f"How many days does case {1000 + 7 * k} take?",
                "output": f"It takes {days if right else days + 2} days.",
                "expected": str(days),
                "correct": int(right),
            }
        )
    return made


if __name__ == "__main__":
    for version in ABLE:
        lines = (json.dumps(row) + "\n" for row in rows(version))
        Path(__file__).with_name(f"{version}.jsonl").write_text("".join(lines), encoding="utf-8")
