"""Shrunk groups beside the unshrunk ones, and where the variance of repeated answers comes from."""

from typing import Any

import numpy as np

from pipeline.estimators import repeated_decoding_mean
from pipeline.evaluation.document import EstimateSet
from pipeline.evaluation.evaluate import evaluate
from pipeline.evaluation.methods import SHRUNK
from pipeline.evaluation.options import Options
from pipeline.evaluation.pool import Axis, Pool, TargetPool
from pipeline.report.printers.html import html
from pipeline.report.profile_tables import profiles
from pipeline.report.run_sections.repeats import repeats
from pipeline.report.table_files import table_page
from pipeline.report.values import Number, Table


def _pool(groups: int, kind: Any = "categorical") -> Pool:
    rng = np.random.default_rng(0)
    z: Any = np.array([f"g{k % groups}" for k in range(400)]) if kind == "categorical" else rng.random(400)
    y = np.where(np.arange(400) < 60, (rng.random(400) < 0.6).astype(float), np.nan)
    axis = Axis("kind", kind, z)
    return Pool((TargetPool("m", y, np.isfinite(y), rng.standard_normal((400, 2)), ("s", "t"), (axis,)),))


def _both(groups: int) -> tuple[Any, Any]:
    """The unshrunk and the shrunk profile."""
    methods = evaluate(_pool(groups), Options(("lace_profile",), shrink=True))["m"]
    return methods["lace_profile"], methods.get(SHRUNK)


def _set(**methods: Any) -> EstimateSet:
    return EstimateSet({"m<b>": methods})


def test_groups_are_shrunk_where_there_are_enough_of_them() -> None:
    few = evaluate(_pool(3), Options(("lace_profile",), shrink=True))
    assert [entry.method for entry in few.left_out] == [SHRUNK]
    continuous = evaluate(_pool(0, "continuous"), Options(("lace_profile",), shrink=True))
    assert [entry.method for entry in continuous.left_out] == [SHRUNK]
    plain, shrunk = _both(8)
    assert shrunk is not None
    assert np.ptp(shrunk.value) < np.ptp(plain.value)
    assert SHRUNK not in evaluate(_pool(8), Options(("lace_profile",)))["m"]


def test_the_report_shows_the_shrunk_interval_beside_the_unshrunk_one() -> None:
    plain, shrunk = _both(8)
    (table,) = profiles(_set(lace_profile=plain, **{SHRUNK: shrunk}))
    assert "shrunk, interval" in [column.name for column in table.columns]
    assert "no replacement" in table.note
    assert f"lace_profile, {SHRUNK}" in table.source
    (table,) = profiles(_set(lace_profile=plain))
    assert not any("shrunk" in column.name for column in table.columns)


def test_components_say_what_more_answers_or_items_would_buy() -> None:
    rng = np.random.default_rng(1)
    chance = rng.random((50, 1))
    estimate = repeated_decoding_mean((rng.random((50, 4)) < chance).astype(float))
    parts = estimate.components
    assert parts is not None
    (table,) = repeats(_set(repeated_decoding=estimate))
    assert isinstance(table, Table)
    expected = 100.0 * parts.standard_error(items=50, repeats=8)
    assert expected in [cell.value for cell in table.body[0] if isinstance(cell, Number)]
    page = "".join(html(table_page(_set(repeated_decoding=estimate), title="t")))
    assert f'data-v="{expected:.10g}"' in page
    assert "m&lt;b&gt;" in page
    assert repeats(_set(repeated_decoding=repeated_decoding_mean(np.ones((5, 1))))) == ()
