"""Makes the example tables, all numbers drawn from a seed: python examples/own-data/make.py"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
TOPICS = ("billing", "delivery", "returns")
QUALITY = {"billing": 0.6, "delivery": 0.1, "returns": -0.5}
MODELS = {"large": 0.5, "small": -0.2}
ITEMS, LABELED = 300, 80


def answers(rng: np.random.Generator) -> None:
    """Two models on 300 made-up support questions; 80 of the questions were graded by a person.

    What a person would say of every answer is in truth.csv, which in life does not exist.
    """
    topic = rng.choice(TOPICS, ITEMS)
    level = rng.integers(1, 5, ITEMS)
    hard = rng.normal(0.0, 1.0, ITEMS)
    graded = set(rng.choice(ITEMS, LABELED, replace=False).tolist())
    with (HERE / "answers.csv").open("w", newline="") as file, (HERE / "truth.csv").open("w", newline="") as known:
        table, truth = csv.writer(file, lineterminator="\n"), csv.writer(known, lineterminator="\n")
        truth.writerow(["id", "gold"])
        table.writerow(["id", "model", "topic", "level", "question", "gold", "judge", "confidence", "length"])
        for k in range(ITEMS):
            for model, strength in MODELS.items():
                skill = strength + QUALITY[topic[k]] - 0.3 * (level[k] - 2.5) - hard[k] + rng.normal(0.0, 0.5)
                right = int(skill + rng.logistic(0.0, 0.4) > 0.0)
                judge = 1.0 / (1.0 + np.exp(-1.5 * skill - 0.8 * (right - 0.5) + rng.normal(0.0, 0.5)))
                confidence = np.clip(0.8 + 0.05 * skill + rng.normal(0.0, 0.1), 0.0, 1.0)
                length = int(rng.gamma(4.0, 30.0))
                question = f"{topic[k].capitalize()} question {k + 1}"
                gold = right if k in graded else ""
                row = [f"q{k + 1:03d}", model, topic[k], level[k], question, gold]
                table.writerow([*row, f"{judge:.3f}", f"{confidence:.2f}", length])
                truth.writerow([f"q{k + 1:03d} [{model}]", right])


def scores(rng: np.random.Generator) -> None:
    """25 prompts with 6 candidate answers each, every candidate scored 4 times from 1 to 10."""
    with (HERE / "scores.csv").open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["prompt", "candidate", "draw", "score"])
        for prompt in range(25):
            for candidate in range(6):
                quality = rng.normal(6.0, 1.2)
                for draw in range(4):
                    score = int(np.clip(round(quality + rng.normal(0.0, 1.0)), 1, 10))
                    table.writerow([f"p{prompt + 1}", f"c{candidate + 1}", draw + 1, score])


if __name__ == "__main__":
    generator = np.random.default_rng(20)
    answers(generator)
    scores(generator)
