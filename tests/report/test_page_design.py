"""How the page looks, measured in a browser: no text over text, nothing cut without a sign, readable colours."""

from __future__ import annotations

import html as markup
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pipeline.evaluation.document import EstimateSet
from pipeline.evaluation.interface import estimate
from pipeline.report.printers.html import html
from pipeline.report.table_files import table_page
from pipeline.report.table_items import table_items

Browse = Callable[..., str]
WIDTHS = [400, 768, 1600]


def sixteen(rows: int = 40) -> tuple[pl.DataFrame, EstimateSet]:
    """Sixteen models with names of every length, on shared items with a profile and two judges."""
    rng = np.random.default_rng(3)
    names = [f"maker-{k}/model-with-a-long-name-{k}" if k % 3 else f"m{k}" for k in range(16)]
    difficulty = rng.random(rows)
    frames = []
    for k, name in enumerate(names):
        right = rng.random(rows) < 0.25 + 0.045 * k - 0.2 * difficulty + 0.1
        frames.append(pl.DataFrame({
            "id": [f"q{row:03}" for row in range(rows)], "model": [name] * rows,
            "question": [f"Question {row} " + "about something that takes a while to say " * 3 for row in range(rows)],
            "gold": [float(v) if row % 4 else None for row, v in enumerate(right)],
            "judge": right + 0.5 * rng.standard_normal(rows), "level": [f"level {row % 4}" for row in range(rows)],
            "output": ["<b>bold</b>\nline" for _ in range(rows)],
        }))  # fmt: skip
    frame = pl.concat(frames)
    return frame, estimate(frame, gold="gold", signals=["judge"], id="id", model="model", profile=["level"])


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of sixteen models."""
    frame, estimates = sixteen()
    items = {"items": table_items(frame, gold="gold", item="id", model="model")}
    page = table_page(estimates, title="sixteen.csv", provenance=[("File", "sixteen.csv")], parts=items)
    path = tmp_path_factory.mktemp("many") / "report.html"
    path.write_text("".join(html(page)), encoding="utf-8")
    return path


def measured(browse: Browse, page: Path, folder: Path, width: int, script: str, theme: str = "light") -> Any:
    """What ``script`` gives in a frame of that width; ``d`` is the framed document, ``w`` its window."""
    source = page.read_text(encoding="utf-8").replace('<html lang="en">', f'<html lang="en" data-theme="{theme}">')
    outer = folder / f"outer-{width}-{theme}.html"
    framed = json.dumps(source).replace("<", "\\u003c")
    outer.write_text(
        '<!doctype html><html data-ready="yes"><body>'
        f'<script type="text/plain" id="framed"></script><script>document.getElementById("framed").textContent={framed}'
        "</script></body></html>",
        encoding="utf-8",
    )
    code = (
        "const f=document.createElement('iframe');"
        f"f.style.width='{width}px';f.style.height='900px';document.body.append(f);"
        "f.srcdoc=document.getElementById('framed').textContent;"
        "for(let k=0;k<80&&!(f.contentDocument&&f.contentDocument.documentElement.dataset.ready);k++)await pause(100);"
        "await pause(300);const d=f.contentDocument,w=f.contentWindow;"
        "d.querySelectorAll('main details').forEach(e=>{if(!e.closest('#item-list'))e.open=true});await pause(200);"
        f"document.body.dataset.told=JSON.stringify((()=>{{{script}}})());"
    )
    dom = browse(outer, code)
    told = re.search(r'data-told="([^"]*)"', dom)
    assert told is not None
    return json.loads(markup.unescape(told.group(1)))


OVERLAPS = """
const bad=[];
for(const svg of d.querySelectorAll('svg')){
  const boxes=[...svg.querySelectorAll('text')].map(t=>[t.textContent,t.getBoundingClientRect()]).filter(b=>b[1].width);
  const room=svg.getBoundingClientRect();
  boxes.forEach(([a,p],k)=>{
    if(p.left<room.left-1||p.right>room.right+1||p.top<room.top-2||p.bottom>room.bottom+2)
      bad.push(['cut',svg.getAttribute('aria-label'),a]);
    boxes.slice(k+1).forEach(([b,q])=>{
      const x=Math.min(p.right,q.right)-Math.max(p.left,q.left),y=Math.min(p.bottom,q.bottom)-Math.max(p.top,q.top);
      if(x>1&&y>3)bad.push([svg.getAttribute('aria-label'),a,b]);});
  });
}
return bad.slice(0,10);
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_no_text_of_a_picture_lies_over_another_or_leaves_it(
    many: Path, finished: Path, browse: Browse, tmp_path: Path, width: int
) -> None:
    for page in (many, finished / "report.html"):
        assert measured(browse, page, tmp_path, width, OVERLAPS) == []


CUT = """
const bad=[];
for(const e of d.querySelectorAll('.scroll')){
  if(e.scrollWidth>e.clientWidth+1){
    const s=w.getComputedStyle(e);
    if(!s.backgroundImage.includes('gradient')||!['auto','scroll'].includes(s.overflowX)||e.tabIndex!==0)bad.push(e.getAttribute('aria-label'));
  }
}
const edge=d.documentElement.clientWidth;
for(const e of d.querySelectorAll('h1,h2,h3,p,dd,dt,figcaption,summary,li,button,select,input')){
  const r=e.getBoundingClientRect();
  if(r.width&&r.right>edge+1&&!e.closest('.scroll')&&!e.classList.contains('skip'))
    bad.push(e.tagName+' '+e.textContent.slice(0,40));
}
return [bad.slice(0,10),d.documentElement.scrollWidth<=edge+1];
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_is_cut_without_a_sign(many: Path, finished: Path, browse: Browse, tmp_path: Path, width: int) -> None:
    """What is wider than its region scrolls, can be focused, and has a shade at the edge that hides something."""
    for page in (many, finished / "report.html"):
        assert measured(browse, page, tmp_path, width, CUT) == [[], True]


CONTRAST = """
const parse=c=>c.match(/[\\d.]+/g).map(Number);
const linear=v=>{v/=255;return v<=.04045?v/12.92:((v+.055)/1.055)**2.4};
const light=c=>{const l=c.slice(0,3).map(linear);return .2126*l[0]+.7152*l[1]+.0722*l[2]};
const behind=e=>{
  for(;e;e=e.parentElement){const c=parse(w.getComputedStyle(e).backgroundColor);if(c.length<4||c[3]>0)return c}
  return [255,255,255];
};
const bad=new Set();
const walk=d.createTreeWalker(d.body,NodeFilter.SHOW_TEXT);
while(walk.nextNode()){
  const e=walk.currentNode.parentElement;
  if(!walk.currentNode.textContent.trim()||['SCRIPT','STYLE','NOSCRIPT','TITLE'].includes(e.tagName)||!e.getClientRects().length)continue;
  const s=w.getComputedStyle(e),ink=parse(e.closest('svg')?s.fill:s.color),paper=behind(e);
  const a=light(ink),b=light(paper),ratio=(Math.max(a,b)+.05)/(Math.min(a,b)+.05);
  if(ratio<4.5)bad.add([e.tagName,e.className.baseVal??e.className,ink,paper,ratio.toFixed(2)].join(' '));
}
return [...bad].slice(0,10);
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_stands_out_from_what_is_behind_it(
    many: Path, finished: Path, browse: Browse, tmp_path: Path, theme: str
) -> None:
    """WCAG's 4.5 for every text node, matrix and pictures included."""
    for page in (many, finished / "report.html"):
        assert measured(browse, page, tmp_path, 1200, CONTRAST, theme) == []


def test_one_scale_of_type(many: Path, finished: Path, browse: Browse, tmp_path: Path) -> None:
    sizes = (
        "const s=new Set();for(const e of d.querySelectorAll('body *'))"
        "{if([...e.childNodes].some(n=>n.nodeType===3&&n.textContent.trim())&&e.getClientRects().length&&!e.closest('svg')"
        "&&!['SCRIPT','STYLE'].includes(e.tagName))s.add(Math.round(parseFloat(w.getComputedStyle(e).fontSize)*10)/10)}"
        "return [...s].sort((a,b)=>a-b);"
    )
    for page in (many, finished / "report.html"):
        assert len(measured(browse, page, tmp_path, 1200, sizes)) <= 5


def test_a_board_is_sorted_by_any_column_and_says_so(many: Path, browse: Browse, tmp_path: Path) -> None:
    script = (
        "const t=d.querySelector('.board table'),heads=[...t.tHead.rows[0].cells];"
        "const k=heads.findIndex(h=>h.textContent.startsWith('%'));"
        "const read=()=>[...t.tBodies[0].rows].map(r=>+r.cells[k].dataset.v);"
        "const b=heads[k].querySelector('button');b.click();const up=read();b.click();"
        "return [up,read(),heads[k].getAttribute('aria-sort')];"
    )
    up, down, told = measured(browse, many, tmp_path, 1200, script)
    assert up == sorted(up)
    assert down == up[::-1]
    assert told == "descending"


def test_the_matrix_opens_on_outputs_side_by_side_and_finds_where_targets_differ(many: Path, browse: Browse) -> None:
    frame, _ = sixteen()
    graded = frame.filter(pl.col("gold").is_not_null()).group_by("id").agg(pl.col("gold").n_unique() > 1)
    script = (
        "const s=document.getElementById('state');s.value='differ';s.dispatchEvent(new Event('input'));"
        "await pause(400);"
        "const count=document.getElementById('count').textContent;"
        "const e=document.querySelector('#item-list details');e.open=true;await pause(1500);"
        "document.body.dataset.told=JSON.stringify([count,e.querySelectorAll('.answers > .answer').length,"
        "document.querySelectorAll('#item-heads .cell').length,e.querySelectorAll('b').length,"
        "e.querySelector('pre').textContent])"
    )
    told = re.search(r'data-told="([^"]*)"', browse(many, script))
    assert told is not None
    count, answers, heads, bold, question = json.loads(markup.unescape(told.group(1)))
    assert count == f"{int(graded['gold'].sum())} of 40 items"
    assert (answers, heads, bold) == (16, 16, 1)
    assert question.startswith("Question")
