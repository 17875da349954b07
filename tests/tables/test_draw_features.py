"""Features of (x, w1, w2, v): shapes, scales, the shipped embedding model, Algorithm 1 on text."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from pipeline.errors import InputError
from pipeline.estimators import cross_fit_tau, one_step_mean
from pipeline.estimators.one_step.feature_regression import PenalizedRegression
from pipeline.tables.draw_features import CHEAP, ItemDraws, draw_features, text_components, texts_to_embed
from pipeline.tables.embedding import FetchedEmbedder, StaticEmbedder, Vectors, text_digest


class Letters:
    """A test double: a text's vector counts its letters a to d."""

    name = "letters"

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.array([[text.count(letter) for letter in "abcd"] for text in texts], dtype=np.float32)


def episode_items(count: int, draws: int, seed: int) -> tuple[list[ItemDraws], np.ndarray]:
    """Items whose chains carry the letter c in proportion to the episode's state, which also decides the outcome."""
    rng = np.random.default_rng(seed)
    state = rng.integers(0, 6, size=(count, draws + 1))
    items = [
        ItemDraws(
            question="a" * int(rng.integers(1, 9)),
            first=tuple("c" * int(s) + "d" for s in row),
            second=tuple("b" * int(rng.integers(0, 4)) for _ in row),
            preference=tuple(float(rng.integers(0, 3)) / 2 for _ in row),
            first_answers=tuple("7" for _ in row),
            second_answers=tuple("7" if rng.random() < 0.5 else None for _ in row),
        )
        for row in state
    ]
    phi = (state[:, 0] + rng.normal(size=count) > 2.5).astype(float)
    return items, phi


def test_columns_are_named_centred_and_scaled() -> None:
    items, _ = episode_items(30, 4, 0)
    features = draw_features(items, Letters(), components=3)
    assert features.values.shape == (30, 5, len(features.names))
    assert features.names[: len(CHEAP)] == CHEAP
    assert features.embedder == "letters"
    flat = features.values.reshape(150, -1)
    assert np.abs(flat.mean(axis=0)).max() < 1e-12
    cheap = flat[:, : len(CHEAP)].std(axis=0)
    assert np.all(np.isclose(cheap, 1.0) | (cheap == 0.0))
    block = [k for k, name in enumerate(features.names) if name.startswith("chains_")]
    assert flat[:, block].var(axis=0).sum() == pytest.approx(1.0)
    again = draw_features(items, Letters(), components=3)
    assert np.array_equal(again.values, features.values)


def test_cheap_features_say_what_they_name() -> None:
    rows = [
        ItemDraws("one two", ("aa", "a"), ("a", "aaa"), (1.0, 0.5), ("3", "3"), ("3 ", None)),
        ItemDraws("one", ("a", "b"), ("a", "b"), (0.0, 0.0), ("1", None), ("2", None)),
    ]
    features = draw_features(rows, Letters())
    column = {name: features.values[..., k].ravel() for k, name in enumerate(features.names)}
    assert np.argsort(column["answers_agree"]).tolist()[0] == 2
    assert np.argmax(column["answers_agree"]) == 0
    assert column["answers_missing"].argmax() == 3
    assert column["chain_chars_difference"].argmax() == 0
    assert column["preference"].argmax() == 0
    assert column["preference_decided"].argmin() == 1


def test_components_are_principal_components_with_fixed_signs() -> None:
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(50, 6)) * np.array([5, 3, 1, 1, 1, 1])
    scores = text_components(rows, 2)
    assert np.var(scores, axis=0).sum() == pytest.approx(1.0)
    assert abs(np.corrcoef(scores[:, 0], rows[:, 0])[0, 1]) > 0.95
    assert np.allclose(text_components(rows[::-1], 2)[::-1], scores)
    assert text_components(np.ones((5, 3)), 2).shape == (5, 0)


def test_algorithm_1_on_text_reduces_the_variance_where_episodes_are_shared() -> None:
    items, phi = episode_items(300, 6, 2)
    values = draw_features(items, Letters()).values
    tau = cross_fit_tau(phi, values, regressor=PenalizedRegression(), rng=np.random.default_rng(0))
    shared = one_step_mean(phi, tau)
    assert shared.diagnostics["variance_reduction_low"] > 0.15
    stranger = phi[np.random.default_rng(1).permutation(300)]
    tau = cross_fit_tau(stranger, values, regressor=PenalizedRegression(), rng=np.random.default_rng(0))
    assert one_step_mean(stranger, tau).diagnostics["variance_reduction"] < 0.05


@pytest.mark.parametrize("count", [8, 15, 40])
def test_the_regression_is_safe_at_small_n(count: int) -> None:
    rng = np.random.default_rng(count)
    x = rng.normal(size=(count, 3, 100)) * 0.1
    phi = np.zeros(count)
    phi[: max(1, count // 8)] = 1.0
    tau = cross_fit_tau(phi, x, regressor=PenalizedRegression(), rng=rng)
    assert np.isfinite(tau).all()
    assert tau.min() >= 0.0
    assert tau.max() <= 1.0
    assert np.isfinite(cross_fit_tau(rng.normal(size=count), x, regressor=PenalizedRegression(), rng=rng)).all()


def test_vectors_fetched_elsewhere() -> None:
    items, _ = episode_items(5, 2, 3)
    texts = texts_to_embed(items)
    assert len(set(texts)) == len(texts)
    fetched = FetchedEmbedder("openai/e", dict(zip(map(text_digest, texts), Letters().embed(texts), strict=True)))
    assert np.allclose(draw_features(items, fetched).values, draw_features(items, Letters()).values)
    with pytest.raises(InputError, match="1 texts have no vector"):
        fetched.embed(["never seen"])
    with pytest.raises(InputError, match="different lengths"):
        FetchedEmbedder("e", {"a": [1.0], "b": [1.0, 2.0]})


def test_uneven_draws_are_refused() -> None:
    items, _ = episode_items(3, 2, 4)
    shorter, _ = episode_items(1, 1, 5)
    with pytest.raises(InputError, match="equally many draws"):
        draw_features([*items, *shorter], Letters())
    with pytest.raises(InputError, match="different lengths"):
        ItemDraws("q", ("a",), ("b", "c"), (1.0,), (None,), (None,))
    with pytest.raises(InputError, match="no item"):
        draw_features([], Letters())


def test_the_shipped_model_knows_related_words() -> None:
    pytest.importorskip("wordllama", reason="the embed extra is not installed")
    model = StaticEmbedder()
    vectors = model.embed(["The farmer sells eggs", "Hens lay and eggs are sold", "Compute the integral of x", ""])
    assert vectors.shape == (4, 256)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors[:3], axis=1) == pytest.approx(np.ones(3), abs=1e-5)
    assert not vectors[3].any()
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.1
    assert np.array_equal(model.embed(["\ud835 lone surrogate"]), model.embed(["? lone surrogate"]))


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.tables.embedding.find_spec", lambda package: None)
    with pytest.raises(InputError, match=r"pip install 'auxeval\[embed\]'"):
        StaticEmbedder()


@pytest.mark.shared
def test_embeddings_of_real_questions_carry_signal(shared_path: Path) -> None:
    """How hard a question is for 16 models is predicted better with its embedding than with lengths alone."""
    pytest.importorskip("wordllama", reason="the embed extra is not installed")
    import polars as pl

    with gzip.open(shared_path / "data/benchmarks/gsm8k_test.jsonl.gz", "rt", encoding="utf-8") as stream:
        questions = {entry["item_id"]: entry["question"] for entry in map(json.loads, stream)}
    table = pl.read_csv(shared_path / "data/tables/gsm8k_outcomes.csv.gz")
    share = table.group_by("item_id").agg(pl.col("y").mean()).sort("item_id")
    texts = [questions[item] for item in share["item_id"]]
    lengths = np.log1p([[len(text), len(text.split())] for text in texts])
    lengths = (lengths - lengths.mean(axis=0)) / lengths.std(axis=0)
    words = text_components(StaticEmbedder().embed(texts).astype(float), 256)
    y = share["y"].to_numpy()

    def error(columns: np.ndarray) -> np.ndarray:
        cube = np.repeat(columns[:, None, :], 2, axis=1)
        tau = cross_fit_tau(y, cube, regressor=PenalizedRegression(), rng=np.random.default_rng(0))
        return np.asarray((y - tau[:, 0]) ** 2)

    saved = error(lengths) - error(np.column_stack([lengths, words]))
    assert saved.mean() > 2 * saved.std(ddof=1) / len(saved) ** 0.5
