"""The parts of the page: tables, charts, figures as PDF, paper tables, methods text, the item browser's data."""

from __future__ import annotations

import base64
import gzip
import json
import math
import re
import zlib
from typing import Any
from xml.etree import ElementTree

import pytest

from pipeline.estimators import Estimate
from pipeline.evaluation.document import BestOfNEstimate, Decisions, EstimateSet, Gap, PairDecision
from pipeline.report.charts import Curve, Interval, curve_chart, forest_plot
from pipeline.report.figures_pdf import svg_to_pdf
from pipeline.report.markup import Number, Span, clean, data_block, table, text
from pipeline.report.methods_text import methods_paragraph
from pipeline.report.paper_tables import tables_latex, tables_markdown

HOSTILE = "</script><b onclick=x>\u202e\x00\u2028\ud835\r\n=cmd()"


def estimate(value: float = 0.5, **given: Any) -> Estimate:
    return Estimate(value, 0.05, value - 0.1, value + 0.1, 0.95, 50, "naive", **given)


@pytest.mark.parametrize(
    "hidden", ["\x00", "\x07", "\x7f", "\x9b", "\u200b", "\u200e", "\u202e", "\u2066", "\u2028", "\ufeff"]
)
def test_hidden_characters_are_shown(hidden: str) -> None:
    assert clean(f"a{hidden}b") == f"a\\u{ord(hidden):04x}b"


@pytest.mark.parametrize("plain", ["a\nb\tc", "naïve – λτφ", "中文、日本語", "می‌شود", "👩‍💻", "12\u00a0%"])
def test_ordinary_text_of_any_language_stays(plain: str) -> None:
    assert clean(plain) == plain


def test_line_ends_of_windows_and_lone_surrogates() -> None:
    assert clean("a\r\nb\rc\ud835") == "a\nb\\u000dc\\ud835"
    text(HOSTILE).encode("utf-8")


def test_data_block_cannot_be_closed_and_comes_back_whole() -> None:
    block = data_block("d", {"a": HOSTILE, "b": [1, None, "中"]})
    head, packed, tail = re.fullmatch(r"(<script [^>]*>)([A-Za-z0-9+/=]+)(</script>)", block).groups()  # type: ignore[union-attr]
    found = json.loads(gzip.decompress(base64.b64decode(packed)).decode("utf-8"))
    assert found["b"] == [1, None, "中"]
    assert found["a"].startswith("</script>")
    assert head.count("<") == tail.count("<") == 1
    assert block == data_block("d", {"a": HOSTILE, "b": [1, None, "中"]})


def test_data_block_refuses_numbers_json_does_not_have() -> None:
    with pytest.raises(ValueError, match="JSON"):
        data_block("d", math.nan)


def test_table_escapes_everything_and_keeps_all_digits_for_csv() -> None:
    made = table(
        ["<name>", "value", "interval"],
        [[HOSTILE, Number(1 / 3, "0.33"), Span(0.1234567, 0.7654321, "[0.12, 0.77]")], ["b", "", ""]],
        caption=HOSTILE,
        numeric=(1, 2),
        note=HOSTILE,
        source=HOSTILE,
    )
    assert "<b onclick" not in made
    assert "</script>" not in made
    assert 'data-v="0.3333333333"' in made
    assert 'data-v="0.1234567" data-w="0.7654321"' in made
    assert made.count("data-span") == 1
    ElementTree.fromstring(made.replace(" data-span", ' data-span=""'))


def test_numbers_that_are_none_have_no_digits_to_copy() -> None:
    assert 'data-v=""' in table(["a"], [[Number(math.nan, "–")]], caption="c")


def test_forest_plot_draws_every_row_and_names_itself() -> None:
    rows = [
        Interval("target " + HOSTILE, None),
        Interval("known", 0.5),
        Interval("estimate", 0.4, 0.3, 0.6),
        Interval("no interval", 0.4, math.nan, math.nan),
        Interval("nothing", math.nan, math.nan, math.nan),
    ]
    svg = forest_plot(rows, title="all & sundry", percent=True)
    root = ElementTree.fromstring(svg)
    assert root.get("role") == "img"
    assert root.get("aria-label") == "all & sundry"
    assert svg.count("<circle") == 2
    assert "40.0 [30.0, 60.0]" in svg


def test_intervals_stand_where_the_axis_says() -> None:
    svg = forest_plot([Interval("a", 0.25, 0.0, 0.5), Interval("b", 0.75, 0.5, 1.0)], title="t", percent=False)
    root = ElementTree.fromstring(svg)
    lines = [e for e in root if e.tag.endswith("line") and e.get("stroke-width")]
    marks = {
        e.text: float(e.get("x", "nan")) for e in root if e.tag.endswith("text") and e.get("text-anchor") == "middle"
    }
    assert float(lines[0].get("x1", "nan")) == pytest.approx(marks["0"], abs=0.06)
    assert float(lines[1].get("x2", "nan")) == pytest.approx(marks["1"], abs=0.06)


def test_curves_break_where_there_is_no_value() -> None:
    nan = math.nan
    line = Curve("c", (1.0, 2.0, 3.0, 4.0), (0.1, nan, 0.3, 0.4), (0.0, nan, 0.2, 0.3), (0.2, nan, 0.4, 0.5))
    svg = curve_chart([line, Curve("d", (1.0,), (0.2,), dashed=True)], title="t", x_label="x", percent=True)
    (path,) = [e.get("d", "") for e in ElementTree.fromstring(svg) if e.get("fill") == "none" and "L" in e.get("d", "")]
    assert path.count("M") == 2
    assert "nan" not in svg


def test_a_chart_without_any_number_is_still_a_chart() -> None:
    ElementTree.fromstring(curve_chart([Curve("c", (), ())], title="t", x_label="x", percent=True))
    ElementTree.fromstring(forest_plot([], title="t", percent=True))


def _drawn(pdf: bytes) -> str:
    packed = re.search(rb"stream\n(.*)\nendstream", pdf, re.S)
    assert packed is not None
    return zlib.decompress(packed.group(1)).decode("latin-1")


def test_pdf_is_well_formed_and_holds_the_figure() -> None:
    svg = forest_plot([Interval("a (b) \\ λ − 中", 0.4, 0.3, 0.6)], title="t", percent=True)
    pdf = svg_to_pdf(svg)
    assert pdf.startswith(b"%PDF-1.4")
    assert pdf == svg_to_pdf(svg)
    start = int(re.findall(rb"startxref\n(\d+)", pdf)[0])
    assert pdf[start : start + 4] == b"xref"
    offsets = [int(found) for found in re.findall(rb"(\d{10}) 00000 n", pdf)]
    assert [pdf[at : at + 7] for at in offsets] == [b"%d 0 obj" % k for k in range(1, 7)]
    drawn = _drawn(pdf)
    assert r"(a \(b\) \\ lambda - ?) Tj" in drawn
    assert "(40.0 [30.0, 60.0]) Tj" in drawn
    assert drawn.count(" c\n") == 4  # the point, as four arcs
    assert drawn.count("BT") == drawn.count("ET")


def test_pdf_keeps_to_the_page() -> None:
    svg = curve_chart(
        [Curve("c", (0.0, 1.0), (0.0, 1.0), (-0.1, 0.9), (0.1, 1.1))], title="t", x_label="x", percent=False
    )
    pdf = svg_to_pdf(svg)
    box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert box is not None
    assert [float(side) for side in box.groups()] == [540.0, 255.0]
    points = [(float(x), float(y)) for x, y in re.findall(r"([\d.-]+) ([\d.-]+) [ml]\b", _drawn(pdf))]
    assert points
    assert all(0 <= x <= 720 and 0 <= y <= 340 for x, y in points)


def _estimates() -> EstimateSet:
    return EstimateSet(
        {"a_b|c": {"naive": estimate(interval="wilson")}, "$x&<i>": {"naive": estimate(0.7, interval="t")}},
        gaps=(Gap("a_b|c", "$x&<i>", "lace_gap", estimate(-0.2)),),
        best_of_n=(BestOfNEstimate("a_b|c", 4, 1, estimate(), "gold_gain"),),
        decisions=Decisions(
            "lace_gap", "max-t", 0.95, 0.02, "population",
            (PairDecision("a_b|c", "$x&<i>", -0.2, 0.1, -0.4, 0.0, -0.3, -0.1, 0.1, 0.1, 0.95, 50, 0.02, "population",
                          "undecided"),),
        ),
    )  # fmt: skip


def test_markdown_tables_hold_every_number_and_no_markup() -> None:
    made = tables_markdown(_estimates())
    assert "## Mean performance" in made
    assert r"| a\_b\|c | naive | 0.5000 | 0.0500 | 0.4000 | 0.6000 | 50 |" in made
    assert r"$x\&\<i\>" in made
    assert "| -0.4000 | 0.0000 |" in made
    for block in made.split("\n\n"):
        bars = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines() if line.startswith("|")}
        assert len(bars) <= 1


def test_latex_tables_escape_what_latex_would_read() -> None:
    made = tables_latex(_estimates())
    assert made.count(r"\begin{tabular}") == made.count(r"\end{tabular}") == 3
    assert r"a\_b|c & naive & 0.5000" in made
    assert r"\$x\&\textless{}i\textgreater{}" in made
    for line in made.splitlines():
        if line.endswith(r"\\"):
            assert not re.search(r"(?<!\\)[$#%_^~](?!-\$|\\)", line.replace("$-$", "").replace(r"$\lambda$", ""))


def test_methods_paragraph_says_what_was_done_and_nothing_else() -> None:
    manifest = {
        "benchmark": {"name": "bench", "items": 200, "grading": "numeric"}, "seed": 7, "command": "auxeval run c.yaml",
        "versions": {"auxeval": "9.9"}, "simulated": [],
    }  # fmt: skip
    said = methods_paragraph(_estimates(), manifest, {"design": {"labeled": 50}, "missing_reply": "exclude"})
    assert "50 of them with gold labels, drawn uniformly without replacement (seed 7)" in said
    assert "excluded" in said
    assert "Wilson's score interval" in said
    assert "auxeval 9.9" in said
    assert "auxeval run c.yaml" in said
    assert "one-step" not in said
    assert "SIMULATED" not in said
    gold = methods_paragraph(_estimates(), manifest, {"design": {"labeled": "gold"}})
    assert "came with a gold answer" in gold
    only_best = EstimateSet({"a": {}}, best_of_n=_estimates().best_of_n)
    assert "gold labels" not in methods_paragraph(only_best, manifest, {"best_of_n": {"candidates": 8, "scores": 4}})


def test_levels_of_a_category_are_joined_by_nothing() -> None:
    curve = Curve("c", (0.0, 1.0), (0.2, 0.8), (0.1, 0.7), (0.3, 0.9), (0.0, 0.6), (0.4, 1.0))
    svg = curve_chart([curve], title="t", x_label="x", percent=False, ticks=[(0.0, "a"), (1.0, "b")])
    assert "<path" not in svg
    assert svg.count('stroke-width="3"') == svg.count('stroke-width="1"') == svg.count("<circle") == 2
