"""Tables as text and JSON, and charts as valid SVG."""

from __future__ import annotations

import json
import math
from xml.dom import minidom

import pytest

from pipeline.report.printers.svg import svg
from pipeline.report.values import Axis, Figure, Series
from pipeline.studies.results import Measured, ResultTable, StudyResult


def test_measured_shows_interval_and_paper() -> None:
    assert Measured(1.23456, 1.2, 1.3, 1.25).to_text(2) == "1.23 [1.20, 1.30] (paper 1.25)"
    assert Measured(math.nan).to_text(2) == "–"
    assert Measured(2.0, digits=0).to_text(3) == "2"
    assert Measured(math.nan, 1.0).to_dict() == {"value": None, "low": 1.0}


def test_text_table_is_aligned() -> None:
    table = ResultTable("Title", ("name", "RE"), (("a", 1.0), ("longer", None), ("c", Measured(10.5))), ("a note",))
    lines = table.to_text().splitlines()
    assert lines[0] == "Title"
    assert lines[2:] == [
        "name        RE",
        "------  ------",
        "a        1.000",
        "longer       –",
        "c       10.500",
        "* a note",
    ]


def test_rows_must_fit_the_columns() -> None:
    with pytest.raises(ValueError, match="2 columns"):
        ResultTable("T", ("a", "b"), ((1,),))


def test_json_is_strict() -> None:
    result = StudyResult("T", (ResultTable("t", ("a", "b"), ((math.inf, Measured(1.0, math.nan, 2.0)),)),))
    document = json.loads(result.to_json(), parse_constant=pytest.fail)
    assert document["tables"][0]["rows"] == [[None, {"value": 1.0, "low": None, "high": 2.0}]]


def test_chart_is_well_formed_and_escaped() -> None:
    band = [0.5, 0.6, 1.0, 2.0], [2.0, 2.0, 3.0, 4.0]
    series = (
        Series("a < b & c", [1, 2, 3, 4], [1.0, math.nan, 2.0, 3.0], *band, markers=False),
        Series("", [1, 4], [2.0, 1.0], dashed=True),
    )
    document = minidom.parseString(svg(Figure("x & y <z>", series, Axis("<x>"), Axis("y", marks=(1.0,)))))
    texts = [node.firstChild.data for node in document.getElementsByTagName("text") if node.firstChild]
    assert "a < b & c" in texts
    assert "<x>" in texts
    assert not document.getElementsByTagName("script")
    curves = [p for p in document.getElementsByTagName("path") if p.getAttribute("fill") == "none"]
    assert curves[0].getAttribute("d").count("M") == 2  # the line breaks at the missing value
    assert len(document.getElementsByTagName("circle")) == 2


def test_higher_values_are_drawn_higher_and_log_axes_space_by_ratio() -> None:
    drawn = svg(Figure("t", (Series("s", [1, 10, 100], [1.0, 2.0, 3.0]),), Axis(log=True)))
    points = [
        (float(c.getAttribute("cx")), float(c.getAttribute("cy")))
        for c in minidom.parseString(drawn).getElementsByTagName("circle")
    ]
    assert points[0][1] > points[1][1] > points[2][1]
    assert points[1][0] - points[0][0] == pytest.approx(points[2][0] - points[1][0], abs=0.2)


def test_charts_that_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="different lengths"):
        Series("a", [1, 2], [1.0])
    with pytest.raises(ValueError, match="above 0"):
        svg(Figure("t", (Series("a", [0, 1], [1.0, 2.0]),), Axis(log=True)))
