"""A pool whose every item is labeled: the run says that LACE's intervals have no width."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from pipeline.runs.quality import quality_warnings
from pipeline.runs.setup import default_config
from pipeline.tables.schemas import TABLES


@pytest.mark.parametrize(
    ("labeled", "estimate", "said"),
    [([True, True], ("lace",), True), ([True, False], ("lace",), False), ([True, True], ("naive",), False)],
)
def test_the_warning(labeled: list[bool], estimate: tuple[str, ...], said: bool) -> None:
    tables: Any = SimpleNamespace(
        **{name: pl.DataFrame(schema=dict(schema.columns)) for name, schema in TABLES.items() if name != "items"},
        items=pl.DataFrame({"item_id": ["a", "b"], "labeled": labeled}),
    )
    config = default_config().model_copy(update={"estimate": estimate})
    codes = {warning.code for warning in quality_warnings(config, tables)}
    assert ("all_labeled" in codes) == said
