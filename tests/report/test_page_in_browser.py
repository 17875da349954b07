"""The report page in a real browser: items listed, searched and filtered, tables copied, nothing hostile run."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.report.page import write_report

Browse = Callable[..., str]
COUNT = "document.getElementById('count').textContent"


def said(dom: str) -> Any:
    """What a script left in ``document.body.dataset.said`` as JSON."""
    found = re.search(r'data-said="([^"]*)"', dom)
    assert found is not None
    return json.loads(html.unescape(found.group(1)))


def leave(value: str) -> str:
    return f"document.body.dataset.said=JSON.stringify({value});"


def test_items_are_listed_and_an_opened_one_shows_everything(finished: Path, browse: Browse) -> None:
    dom = browse(finished / "report.html", "document.querySelector('#item-list details').open=true; await pause(2000);")
    assert dom.count("<li><details") == 30
    assert "40 of 40 items" in dom
    assert "Show 10 more of 10" in dom
    for shown in ("Judge's scores", "Against anchors", "Verdicts on pairs of chains", "Predictions τ", "Candidates"):
        assert shown in dom
    assert "Gold: " in dom


def test_nothing_hostile_runs_and_all_of_it_is_shown(finished: Path, browse: Browse, hostile: str) -> None:
    script = "document.querySelector('#item-list details').open=true; await pause(2000);" + leave(
        "[document.title, document.querySelectorAll('img').length,document.querySelector('#item-list pre').textContent]"
    )
    title, images, question = said(browse(finished / "report.html", script))
    assert title == "page: auxeval report"
    assert images == 0
    assert "<script>document.title='owned'</script></script><img src=x" in question
    assert "\\u202eevil\\u0000\\u2028" in question
    assert "\u202e" not in question


def test_what_a_call_was_asked_opens_below_its_answer(finished: Path, browse: Browse) -> None:
    """The prompt is filled with the item's own question, hostile text included, and stays text."""
    script = (
        "const come=async(s)=>{for(let k=0;k<80&&!document.querySelector(s);k++)await pause(250);"
        "return document.querySelector(s)};"
        "for(const s of ['#item-list details','details.prompts','details.prompt'])(await come(s)).open=true;"
        "await come('details.prompt pre');"
        + leave(
            "[document.title,document.querySelectorAll('img').length,"
            "document.querySelector('details.prompt').textContent,"
            "document.querySelector('#item-list pre').textContent]"
        )
    )
    title, images, prompt, question = said(browse(finished / "report.html", script))
    assert (title, images) == ("page: auxeval report", 0)
    assert question in prompt
    assert "Answer:" in prompt


def test_search_and_filters_find_what_the_tables_say(finished: Path, browse: Browse) -> None:
    answers = pl.read_parquet(finished / "tables" / "responses.parquet").filter(
        (pl.col("stage") == "answer") & (pl.col("draw") == 0)
    )
    items = pl.read_parquet(finished / "tables" / "items.parquet")
    wrong = answers.filter((pl.col("model") == "weak") & (pl.col("phi") < 0.5))["item_id"].n_unique()
    level = items.filter(pl.col("profile") == 2.0).height
    labeled = items["labeled"].sum()
    first = items["item_id"].sort()[0]
    steps = [
        ("state", "wrong", "target", "1"),
        ("state", "", "target", ""),
        ("state", "labeled", "target", ""),
        ("state", "", "level", "2"),
        ("level", "", "search", first.upper()),
        ("search", "no such words", "state", ""),
    ]
    script = "const told=[];"
    for a, x, b, y in steps:
        for name, value in ((a, x), (b, y)):
            script += f"document.getElementById('{name}').value='{value}';"
        script += (
            f"document.getElementById('{a}').dispatchEvent(new Event('input'));await pause(500);told.push({COUNT});"
        )
    told = said(browse(finished / "report.html", script + leave("told")))
    wanted = [wrong, 40, labeled, level, 1, 0]
    assert told == [f"{count} of 40 items" for count in wanted]


def test_full_text_search_looks_into_replies(finished: Path, browse: Browse) -> None:
    """The hostile marker stands beyond the beginnings that the index holds, in replies."""
    script = (
        "const told=[];document.getElementById('search').value='confidential-λ outcome';"
        f"document.getElementById('search').dispatchEvent(new Event('input'));await pause(500);told.push({COUNT});"
        "document.getElementById('full').checked=true;"
        f"document.getElementById('full').dispatchEvent(new Event('input'));await pause(2500);told.push({COUNT});"
    )
    assert said(browse(finished / "report.html", script + leave("told"))) == [
        "0 of 40 items",
        "40 of 40 items (full texts)",
    ]


def test_every_table_copies_as_csv_with_all_digits(finished: Path, browse: Browse) -> None:
    script = (
        "const copied=[];Object.defineProperty(navigator,'clipboard',{value:{writeText:async(t)=>{copied.push(t)}}});"
        "for(const b of document.querySelectorAll('.csv'))b.click();await pause(500);"
    )
    copied = said(browse(finished / "report.html", script + leave("copied")))
    assert len(copied) == (finished / "report.html").read_text(encoding="utf-8").count('class="csv"') > 10
    tables = [list(csv.reader(io.StringIO(text))) for text in copied]
    for rows in tables:
        assert len({len(row) for row in rows}) == 1
    means = next(rows for rows in tables if rows[0][:2] == ["target", "method"] and "labels" in rows[0])
    assert means[0][4:6] == ["95 % interval low", "95 % interval high"]
    estimates = json.loads((finished / "estimates.json").read_text(encoding="utf-8"))
    (naive,) = [row for row in means if row[:2] == ["weak", "naive"]]
    for cell, name in zip(naive[2:6], ("value", "se", "low", "high"), strict=True):
        assert float(cell) == pytest.approx(100 * estimates["targets"]["weak"]["naive"][name], rel=1e-9)


def test_what_a_spreadsheet_would_run_is_disarmed(finished: Path, browse: Browse) -> None:
    script = (
        "let copied='';Object.defineProperty(navigator,'clipboard',{value:{writeText:async(t)=>{copied=t}}});"
        "const cell=document.querySelector('.table tbody th');cell.textContent='=1+1';"
        "cell.closest('.table').querySelector('.csv').click();await pause(300);"
    )
    assert said(browse(finished / "report.html", script + leave("copied"))).splitlines()[1].startswith("'=1+1,")


def test_colours_switch_and_say_so(finished: Path, browse: Browse) -> None:
    look = "getComputedStyle(document.body).backgroundColor"
    script = (
        f"const button=document.getElementById('theme');const told=[{look}];button.click();"
        f"told.push({look});told.push(button.textContent);"
    )
    before, after, label = said(browse(finished / "report.html", script + leave("told")))
    assert (before, after) == ("rgb(255, 255, 255)", "rgb(16, 19, 24)")
    assert label == "Light"


def _contrast(one: str, other: str) -> float:
    """WCAG's contrast of two ``rgb(r, g, b)``."""

    def luminance(colour: str) -> float:
        linear = []
        for part in re.findall(r"\d+", colour)[:3]:
            share = int(part) / 255
            linear.append(share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4)
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_is_readable_in_both_themes(finished: Path, browse: Browse, theme: str) -> None:
    """Contrast of at least 4.5 for body text, notes, links, warnings, right and wrong."""
    script = (
        f"document.documentElement.dataset.theme='{theme}';const told=[];await pause(200);"
        "const back=getComputedStyle(document.body).backgroundColor;"
        "for(const s of ['p','.note','nav a','dt','.right','.wrong','caption'])"
        "{const e=document.querySelector(s);told.push([s,getComputedStyle(e).color,back]);}"
        "const w=getComputedStyle(document.querySelector('.warnings'));"
        "told.push(['.warnings',w.color,w.backgroundColor]);"
    )
    for name, ink, paper in said(browse(finished / "report.html", script + leave("told"))):
        assert _contrast(ink, paper) >= 4.5, name


@pytest.mark.parametrize("width", [400, 1200])
def test_the_page_never_scrolls_sideways(finished: Path, browse: Browse, width: int, tmp_path: Path) -> None:
    """In a frame of that width; tables and charts scroll inside their own regions."""
    source = (finished / "report.html").read_text(encoding="utf-8")
    script = (
        "const f=document.createElement('iframe');"
        f"f.style.width='{width}px';f.style.height='900px';document.body.append(f);"
        "f.srcdoc=document.getElementById('framed').textContent;await pause(3000);"
        "const r=f.contentDocument.documentElement;"
    )
    outer = tmp_path / "outer.html"
    framed = json.dumps(source).replace("<", "\\u003c")
    outer.write_text(
        '<!doctype html><html data-ready="yes"><body>'
        f'<script type="text/plain" id="framed"></script><script>document.getElementById("framed").textContent={framed}'
        "</script></body></html>",
        encoding="utf-8",
    )
    inside, room = said(browse(outer, script + leave("[r.scrollWidth, r.clientWidth]")))
    assert inside <= room <= width


def test_every_control_is_reached_by_keyboard(finished: Path, browse: Browse) -> None:
    """No positive tabindex, nothing clickable that is no button, link or summary; what scrolls can be focused."""
    script = leave(
        "[[...document.querySelectorAll('[tabindex]')].filter(e=>e.tabIndex>0).length,"
        "[...document.querySelectorAll('[onclick]')].length,"
        "[...document.querySelectorAll('.table > .scroll, figure .scroll')].filter(e=>e.tabIndex!==0).length]"
    )
    assert said(browse(finished / "report.html", script)) == [0, 0, 0]


def test_two_thousand_items_open_and_stay_small(finished: Path, tmp_path: Path, browse: Browse) -> None:
    from benchmarks.report import synthesise

    run = synthesise(finished, tmp_path / "large", 2_000)
    write_report(run)
    page = run / "report.html"
    assert page.stat().st_size < 15 * 2**20
    assert "2000 of 2000 items" in browse(page)
