"""The values that are printed and their printers: tables and figures in every medium, hostile text in none of them."""

from __future__ import annotations

import base64
import gzip
import io
import json
import math
import re
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from pipeline.estimators import Estimate
from pipeline.estimators.gaps.ranking import RankSet
from pipeline.evaluation.document import BestOfNEstimate, Decisions, EstimateSet, Gap, PairDecision
from pipeline.evaluation.interface import estimate as estimate_frame
from pipeline.report.document_page import document_tables
from pipeline.report.document_tables import gaps, leaderboard, means
from pipeline.report.item_browser import data_block
from pipeline.report.methods_text import methods_paragraph
from pipeline.report.page_values import Page, Section
from pipeline.report.printers.html import html
from pipeline.report.printers.paper import latex, markdown, text
from pipeline.report.printers.svg import COLOURS, svg
from pipeline.report.printers.terminal import TerminalTable
from pipeline.report.terms import TERMS
from pipeline.report.values import Axis, Column, Drawn, Figure, Number, Series, Span, Table, clean, table

HOSTILE = "</script><b onclick=x>\u202e\x00\u2028\ud835\r\n=cmd()"


def estimate(value: float = 0.5, **given: Any) -> Estimate:
    return Estimate(value, 0.05, value - 0.1, value + 0.1, 0.95, 50, "naive", **given)


def as_html(*parts: Any) -> str:
    return "".join(html(Page("t", "", (), (), (Section("s", "S", "S", parts),))))


def in_terminal(made: Table) -> str:
    stream = io.StringIO()
    Console(file=stream, width=200).print(TerminalTable(made))
    return stream.getvalue()


@pytest.mark.parametrize(
    "hidden", ["\x00", "\x07", "\x7f", "\x9b", "\u200b", "\u200e", "\u202e", "\u2066", "\u2028", "\ufeff"]
)
def test_hidden_characters_are_made_visible(hidden: str) -> None:
    assert clean(f"a{hidden}b") == f"a\\u{ord(hidden):04x}b"


@pytest.mark.parametrize("plain", ["a\nb\tc", "naïve – λτφ", "中文、日本語", "می‌شود", "👩‍💻", "12\u00a0%"])
def test_ordinary_text_of_any_language_stays(plain: str) -> None:
    assert clean(plain) == plain


def test_line_ends_of_windows_and_lone_surrogates() -> None:
    assert clean("a\r\nb\rc\ud835") == "a\nb\\u000dc\\ud835"


def test_data_block_cannot_be_closed_and_comes_back_whole() -> None:
    block = data_block("d", {"a": HOSTILE, "b": [1, None, "中"]})
    head, packed, tail = re.fullmatch(r"(<script [^>]*>)([A-Za-z0-9+/=]+)(</script>)", block).groups()  # type: ignore[union-attr]
    whole = json.loads(gzip.decompress(base64.b64decode(packed)).decode("utf-8"))
    assert whole["b"] == [1, None, "中"]
    assert whole["a"].startswith("</script>")
    assert head.count("<") == tail.count("<") == 1
    assert block == data_block("d", {"a": HOSTILE, "b": [1, None, "中"]})


def test_data_block_refuses_numbers_json_does_not_have() -> None:
    with pytest.raises(ValueError, match="JSON"):
        data_block("d", math.nan)


def _hostile_table() -> Table:
    columns = [Column("<name>"), Column("value", True), Column("interval", True), Column("", axis=Axis(low=0, high=1))]
    rows = [
        [HOSTILE, Number(1 / 3, "0.33"), Span(0.1234567, 0.7654321, "[0.12, 0.77]"), Drawn(0.3, 0.1, 0.7, 1)],
        None,
        ["b", "", "", None],
    ]
    return table(HOSTILE, columns, rows, note=HOSTILE, source=HOSTILE)


def test_html_escapes_everything_and_keeps_all_digits_for_csv() -> None:
    made = as_html(_hostile_table())
    assert "<b onclick" not in made
    assert made.count("</script>") == 1
    assert 'data-v="0.3333333333"' in made
    assert 'data-v="0.1234567" data-w="0.7654321"' in made
    assert made.count(" data-span>") + made.count(" data-span ") == 1
    body = made[made.index('<div class="table') : made.index("</section>")]
    ElementTree.fromstring("<r>" + body.replace(" data-span", ' data-span=""') + "</r>")
    made.encode("utf-8")


@pytest.mark.parametrize("medium", [in_terminal, text, lambda t: markdown([t]), lambda t: latex([t])])
def test_every_medium_of_text_holds_the_same_numbers_and_leaves_drawings_out(medium: Any) -> None:
    """One value, however it is printed; what hostile text holds cannot steer any of them."""
    printed = medium(_hostile_table())
    assert re.findall(r"0\.\d+", printed) == ["0.33", "0.12", "0.77"]
    assert "\u202e" not in printed
    assert "\x00" not in printed


def test_rows_must_fit_the_columns() -> None:
    with pytest.raises(ValueError, match="2 columns"):
        table("t", ["a", "b"], [["x"]])


def test_numbers_that_are_none_have_no_digits_to_copy() -> None:
    assert 'data-v=""' in as_html(table("c", ["a"], [[Number(math.nan, "–")]]))


def test_rows_of_intervals_draw_every_row_and_name_themselves() -> None:
    names = ("target " + HOSTILE, "known", "estimate", "no interval", "nothing")
    nan = math.nan
    series = Series("", [0.6, 0.5, 0.4, 0.4, nan], range(5), [0.5, nan, 0.3, nan, nan], [0.7, nan, 0.6, nan, nan],
                    across=True)  # fmt: skip
    beside = ("", "", "40.0 [30.0, 60.0]", "", "–")
    drawn = svg(Figure("all & sundry", (series,), Axis(percent=True), Axis(names=names, beside=beside)))
    root = ElementTree.fromstring(drawn)
    assert root.get("role") == "img"
    assert root.get("aria-label") == "all & sundry"
    assert drawn.count("<circle") == 4
    assert "40.0 [30.0, 60.0]" in drawn


def test_intervals_stand_where_the_axis_says() -> None:
    series = Series("", [0.25, 0.75], [0.0, 1.0], [0.0, 0.5], [0.5, 1.0], across=True)
    root = ElementTree.fromstring(svg(Figure("t", (series,), Axis(), Axis(names=("a", "b")))))
    lines = [e for e in root if e.tag.endswith("line") and e.get("stroke-width")]
    marks = {
        e.text: float(e.get("x", "nan")) for e in root if e.tag.endswith("text") and e.get("text-anchor") == "middle"
    }
    assert float(lines[0].get("x1", "nan")) == pytest.approx(marks["0"], abs=0.06)
    assert float(lines[1].get("x2", "nan")) == pytest.approx(marks["1"], abs=0.06)


def test_curves_break_where_there_is_no_value() -> None:
    nan = math.nan
    line = Series("c", (1.0, 2.0, 3.0, 4.0), (0.1, nan, 0.3, 0.4), (0.0, nan, 0.2, 0.3), (0.2, nan, 0.4, 0.5))
    drawn = svg(Figure("t", (line, Series("d", (1.0,), (0.2,), dashed=True)), Axis("x"), Axis(percent=True)))
    paths = [e.get("d", "") for e in ElementTree.fromstring(drawn) if e.get("fill") == "none" and "L" in e.get("d", "")]
    assert [path.count("M") for path in paths] == [2]
    assert "nan" not in drawn


def test_a_figure_without_any_number_is_still_a_figure() -> None:
    ElementTree.fromstring(svg(Figure("t", (Series("c", (), ()),), Axis("x"), Axis(percent=True))))
    ElementTree.fromstring(svg(Figure("t", (), Axis(), Axis(names=()))))


@pytest.mark.parametrize("high", [1.0, 1e6, 123456789.0])
@pytest.mark.parametrize("width", [200, 460, 720])
def test_labels_of_an_axis_never_run_into_one_another(high: float, width: int) -> None:
    drawn = svg(Figure("t", (Series("s", [0.0, high], [0.0, 1.0]),), Axis("x"), Axis("y"), width=width))
    ticks = [
        (float(e.get("x", "nan")), 7.5 * len(e.text or ""))
        for e in ElementTree.fromstring(drawn)
        if e.tag.endswith("text") and e.get("text-anchor") == "middle" and e.get("y") == "311.0"
    ]
    assert ticks
    assert all(b[0] - a[0] > (a[1] + b[1]) / 2 for a, b in pairwise(ticks))


def test_levels_of_a_category_are_joined_by_nothing() -> None:
    series = Series("c", (0.0, 1.0), (0.2, 0.8), (0.1, 0.7), (0.3, 0.9), (0.0, 0.6), (0.4, 1.0))
    drawn = svg(Figure("t", (series,), Axis("x", names=("a", "b"))))
    assert "<path" not in drawn
    assert drawn.count('stroke-width="3.2"') == drawn.count('stroke-width="1.2"') == drawn.count("<circle") == 2


def _estimates(names: tuple[str, str] = ("a_b|c", "$x&<i>")) -> EstimateSet:
    a, b = names
    pair = PairDecision(a, b, -0.2, 0.1, -0.4, 0.0, -0.3, -0.1, 0.1, 0.1, 0.95, 50, 0.02, "population", "undecided")
    ranks = (RankSet(b, 0.7, 1, 1, 2, 0.95), RankSet(a, 0.5, 2, 1, 2, 0.95))
    return EstimateSet(
        {a: {"naive": estimate(interval="wilson")}, b: {"naive": estimate(0.7, interval="t")}},
        gaps=(Gap(a, b, "lace_gap", estimate(-0.2)),),
        best_of_n=(BestOfNEstimate(a, 4, 1, estimate(), "gold_gain"),),
        decisions=Decisions("lace_gap", "max-t", 0.95, 0.02, "population", (pair,), ranks),
    )


def test_the_leaderboard_is_by_rank_and_says_the_gap_to_the_best() -> None:
    board = leaderboard(_estimates())
    assert board is not None
    names = [column.name for column in board.columns]
    cells = [dict(zip(names, row, strict=True)) for row in board.body]
    assert [row["target"] for row in cells] == ["$x&<i>", "a_b|c"]
    assert cells[0]["gap"] is None
    gap, joint = cells[1]["gap"], cells[1]["95 % jointly"]
    assert isinstance(gap, Number)
    assert isinstance(joint, Span)
    assert (gap.value, joint.low, joint.high) == (-20.0, -40.0, 0.0)
    assert (cells[0]["verdict"], cells[1]["verdict"]) == ("best as it looks", "no difference shown")


def test_every_number_that_stands_twice_is_one(ranked: EstimateSet) -> None:
    """Leaderboard, methods compared and gaps: the same estimate, the same joint interval, digit for digit."""
    board = leaderboard(ranked)
    assert board is not None
    names = [column.name for column in board.columns]
    rows = {row[0]: dict(zip(names, row, strict=True)) for row in board.body}
    values = {(row[0], row[1]): row for row in means(ranked).body}
    for target, row in rows.items():
        stands = values[target, "LACE mean"]
        assert (row["%"], row["95 % interval"], row["labels"], row["worth"]) == (
            stands[2], stands[4], stands[5], stands[6],
        )  # fmt: skip
    table = gaps(ranked)
    assert table is not None
    joint = {row[0]: row for row in table.body if row[1] == "LACE"}
    best = board.body[0][0]
    for target, row in rows.items():
        if target != best:
            there = f"{target} − {best}" in joint
            gap = joint[f"{target} − {best}" if there else f"{best} − {target}"]
            sign = 1.0 if there else -1.0
            low, high = (gap[4].low, gap[4].high) if there else (-gap[4].high, -gap[4].low)  # type: ignore[union-attr]
            assert row["gap"].value == sign * gap[2].value  # type: ignore[union-attr]
            assert (row["95 % jointly"].low, row["95 % jointly"].high) == (low, high)  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def ranked() -> EstimateSet:
    """Four models on shared items."""
    rng = np.random.default_rng(2)
    right = rng.random((4, 60)) < np.array([[0.3], [0.5], [0.7], [0.9]])
    frame = pl.DataFrame([
        {"id": k, "model": f"m{m}", "gold": float(right[m, k]) if k < 40 else None, "judge": right[m, k] + rng.normal()}
        for m in range(4) for k in range(60)
    ])  # fmt: skip
    return estimate_frame(frame, gold="gold", signals=["judge"], id="id", model="model")


def test_a_target_has_one_colour_in_every_picture() -> None:
    page = as_html(leaderboard(_estimates()))
    first = [COLOURS.index(c) for c in re.findall(r'stroke="(#[0-9a-f]{6})"', page)]
    assert first == [1, 1, 0, 0]  # rank and estimate of the second target, which leads; then of the first


def test_every_word_that_a_column_links_to_is_on_the_page() -> None:
    page = as_html(leaderboard(_estimates()))
    linked = set(re.findall(r'href="#(term-[^"]+)"', page))
    assert linked
    assert all(f'id="{identity}"' in page for identity in linked)
    assert all(len(meaning) > 20 for meaning in TERMS.values())


def test_markdown_tables_hold_every_number_and_no_markup() -> None:
    made = markdown(document_tables(_estimates()))
    assert "## Mean performance" in made
    assert r"| a\_b\|c | naive | 50.0 | 5.00 | \[40.0, 60.0\] | 50 |" in made
    assert r"$x\&\<i\>" in made
    assert r"| \[-40.0, 0.0\] |" in made
    for block in made.split("\n\n"):
        bars = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines() if line.startswith("|")}
        assert len(bars) <= 1


def test_latex_tables_escape_what_latex_would_read() -> None:
    made = latex(document_tables(_estimates()))
    assert made.count(r"\begin{tabular}") == made.count(r"\end{tabular}") == 4
    assert r"a\_b\textbar{}c & naive & 50.0" in made
    assert r"\$x\&\textless{}i\textgreater{}" in made
    for line in made.splitlines():
        if line.endswith(r"\\"):
            assert not re.search(r"(?<!\\)[$#%_^~](?!-\$|\\)", line.replace("$-$", "").replace(r"$\lambda$", ""))


def test_methods_paragraph_says_what_was_done_and_nothing_else() -> None:
    manifest = {
        "benchmark": {"name": "bench", "items": 200, "grading": "numeric"}, "seed": 7, "command": "auxeval run c.yaml",
        "versions": {"auxeval": "9.9"}, "simulated": [],
    }  # fmt: skip
    told = methods_paragraph(_estimates(), manifest, {"design": {"labeled": 50}, "missing_reply": "exclude"})
    assert "50 of them with gold labels, drawn uniformly without replacement (seed 7)" in told
    assert "excluded" in told
    assert "Wilson's score interval" in told
    assert "auxeval 9.9" in told
    assert "auxeval run c.yaml" in told
    assert "one-step" not in told
    assert "SIMULATED" not in told
    gold = methods_paragraph(_estimates(), manifest, {"design": {"labeled": "gold"}})
    assert "came with a gold answer" in gold
    only_best = EstimateSet({"a": {}}, best_of_n=_estimates().best_of_n)
    assert "gold labels" not in methods_paragraph(only_best, manifest, {"best_of_n": {"candidates": 8, "scores": 4}})
