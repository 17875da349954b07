"""Features of (x, w1, w2, v) for Algorithm 1: reduced text embeddings beside lengths, agreement and preference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipeline.errors import InputError
from pipeline.tables.embedding import Embedder

FloatArray = NDArray[np.float64]
CHEAP = (
    "question_chars",
    "question_words",
    "mean_chain_chars",
    "chain_chars_difference",
    "answers_agree",
    "answers_missing",
    "preference",
    "preference_decided",
)
"""Features that need no embedding, in the order of their columns."""


@dataclass(frozen=True, slots=True)
class ItemDraws:
    """One item as the regression sees it.

    Attributes:
        question: x.
        first, second: (M + 1) auxiliary chains w1 and w2 of every draw.
        preference: (M + 1) v in [0, 1]: 1 for w1, ½ for undecided or missing.
        first_answers, second_answers: (M + 1) the chains' final answers, None where there is none.
    """

    question: str
    first: tuple[str, ...]
    second: tuple[str, ...]
    preference: tuple[float, ...]
    first_answers: tuple[str | None, ...]
    second_answers: tuple[str | None, ...]

    def __post_init__(self) -> None:
        parts = (self.first, self.second, self.preference, self.first_answers, self.second_answers)
        if len({len(part) for part in parts}) != 1 or not self.first:
            raise InputError(f"item {self.question[:40]!r}: draws of different lengths {[len(part) for part in parts]}")


@dataclass(frozen=True, slots=True, eq=False)
class DrawFeatures:
    """What ``cross_fit_tau`` takes.

    Attributes:
        values: (N, M + 1, d), every column centred over all rows; cheap columns have sd 1, a block of text
            components has total variance 1.
        names: (d,) what each column is.
        embedder: name of the embedding model.
    """

    values: FloatArray
    names: tuple[str, ...]
    embedder: str


def texts_to_embed(items: Sequence[ItemDraws]) -> tuple[str, ...]:
    """Every distinct text among questions and chains, in order of first appearance."""
    seen = dict.fromkeys(item.question for item in items)
    for item in items:
        seen.update(dict.fromkeys((*item.first, *item.second)))
    return tuple(seen)


def text_components(vectors: FloatArray, count: int) -> FloatArray:
    """The leading principal components of rows (n, d), centred, scaled together to total variance 1: (n, ≤ count).

    Signs are fixed (the largest loading is positive), so equal inputs give equal outputs. Constant rows give no column.
    """
    centred = vectors - vectors.mean(axis=0)
    _, spread, axes = np.linalg.svd(centred, full_matrices=False)
    kept = min(count, int(np.sum(spread > 1e-8 * max(float(np.abs(vectors).max()), 1e-300) * len(vectors) ** 0.5)))
    axes = axes[:kept]
    largest = np.abs(axes).argmax(axis=1)
    axes = axes * np.sign(axes[np.arange(kept), largest])[:, None]
    scores = centred @ axes.T
    total = float(np.sum(scores.var(axis=0)))
    return np.asarray(scores / np.sqrt(total)) if kept else scores


def _cheap(item: ItemDraws) -> FloatArray:
    """(M + 1, 8): the columns of ``CHEAP``, as they are."""
    rows = []
    draws = zip(item.first, item.second, item.preference, item.first_answers, item.second_answers, strict=True)
    for first, second, preference, answer1, answer2 in draws:
        long1, long2 = np.log1p(len(first)), np.log1p(len(second))
        answers = [answer for answer in (answer1, answer2) if answer is not None]
        agree = 0.5 if len(answers) < 2 else float(answers[0].strip() == answers[1].strip())
        rows.append(
            (
                np.log1p(len(item.question)),
                np.log1p(len(item.question.split())),
                0.5 * (long1 + long2),
                long1 - long2,
                agree,
                2.0 - len(answers),
                preference,
                abs(2.0 * preference - 1.0),
            )
        )
    return np.asarray(rows, dtype=np.float64)


def _standardised(columns: FloatArray) -> FloatArray:
    """Mean 0 and sd 1 over all rows; a constant column becomes 0."""
    spread = columns.std(axis=0)
    return np.asarray((columns - columns.mean(axis=0)) / np.where(spread > 1e-12, spread, np.inf))


def draw_features(items: Sequence[ItemDraws], embedder: Embedder, *, components: int = 128) -> DrawFeatures:
    """Features of every item and draw.

    Beside the cheap columns three blocks of principal components of the embeddings e: of e(x), of e(w1) + e(w2), and
    of (2v − 1)(e(w1) − e(w2)), the direction the target prefers. Components and scales come from all rows at once
    without any outcome, so cross-fitting stays valid.

    Args:
        items: N items with the same number of draws.
        embedder: texts to vectors.
        components: at most this many components per block.

    Raises:
        InputError: no item, different numbers of draws, or vectors of a wrong shape.
    """
    draws = {len(item.first) for item in items}
    if len(draws) != 1:
        raise InputError(f"text features need items with equally many draws, got {sorted(draws) or 'no item'}")
    texts = texts_to_embed(items)
    table = np.asarray(embedder.embed(texts), dtype=np.float64)
    if table.ndim != 2 or len(table) != len(texts) or not np.isfinite(table).all():
        raise InputError(f"embedder {embedder.name} returned {table.shape} for {len(texts)} texts, or not all finite")
    row_of = {text: row for row, text in enumerate(texts)}
    count, width = len(items), draws.pop()
    first = table[[row_of[text] for item in items for text in item.first]]
    second = table[[row_of[text] for item in items for text in item.second]]
    side = np.array([2.0 * value - 1.0 for item in items for value in item.preference])[:, None]
    question = text_components(table[[row_of[item.question] for item in items]], components)
    blocks = {
        "question": np.repeat(question, width, axis=0),
        "chains": text_components(first + second, components),
        "preferred": text_components(side * (first - second), components),
    }
    cheap = _standardised(np.concatenate([_cheap(item) for item in items]))
    columns = np.concatenate([cheap, *blocks.values()], axis=1)
    names = (*CHEAP, *(f"{name}_{k}" for name, block in blocks.items() for k in range(block.shape[1])))
    return DrawFeatures(columns.reshape(count, width, -1), names, embedder.name)
