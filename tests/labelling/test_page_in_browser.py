"""The page in a real browser: thirty labels by keyboard, kill and reload, two tabs, narrow and dark, nothing run."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from labelling.by_hand import started
from labelling.chromium import Tab, chromium

from pipeline.tables.label_store import LabelStore

WHAT = "view.item&&view.item.key+' '+view.item.asked.map((one)=>one.said).join()"


def _store(table: Path) -> LabelStore:
    return LabelStore(table.with_name(table.name + ".labels.jsonl"))


async def _answer(tab: Tab) -> None:
    """Say by key what the text of the response in question says."""
    text = await tab.run("view.item.texts[3+2*view.item.responses.indexOf(view.item.asked[now].unit)].text")
    await tab.press("y" if "good" in text else "n")


async def test_thirty_labels_by_keyboard_kill_reload_undo_and_look(planned: Path, tmp_path: Path) -> None:
    process, address = started(planned)
    async with chromium(tmp_path) as browser:
        tab = await browser.tab()
        await tab.go(address)
        assert "token" not in await tab.run("location.href")
        for k in range(30):
            await _answer(tab)
            assert len(_store(planned).read().words) == k + 1
        before = await tab.run(WHAT)
        await tab.tell("Page.reload")
        await tab.until(
            "performance.getEntriesByType('navigation')[0].type==='reload'&&typeof view!=='undefined'&&view!==null"
        )
        assert await tab.run(WHAT) == before, "a reload changes nothing"
        process.send_signal(signal.SIGKILL)
        process.communicate()
        await tab.press("y")
        await tab.until("document.getElementById('message').innerText.includes('does not answer')")
        assert len(_store(planned).read().words) == 30
        process, address = started(planned)
        await tab.go(address)
        assert await tab.run(WHAT) == before, "nor does a killed server"
        for left in range(29, 26, -1):
            await tab.press("u")
            assert len(_store(planned).read().words) == left
        while await tab.run("view.phase") == "label":
            await _answer(tab)
        assert await tab.run("view.phase") == "look"
        await tab.press("Enter")
        await tab.until("view.phase==='looked'||view.phase==='end'")
        assert "look 1" in await tab.run("document.getElementById('said').innerText") or "decided" in await tab.run(
            "document.getElementById('said').innerText"
        )
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()
    assert "next: auxeval" in out


async def test_two_tabs_skip_note_and_nothing_hostile(table: Path, tmp_path: Path) -> None:
    process, address = started(table)
    async with chromium(tmp_path) as browser:
        left, right = await browser.tab(), await browser.tab()
        await left.go(address)
        await right.go(address.split("?")[0])  # the cookie of the first
        first = await left.run("view.item.key")
        while await left.run("view.item.key") == first:
            await _answer(left)
        kept = len(_store(table).read().words)
        await right.press("y")
        assert "answered already" in await right.run("document.getElementById('message').innerText")
        assert await right.run(WHAT) == await left.run(WHAT)
        assert len(_store(table).read().words) == kept
        await left.press("m")
        await left.type("see the mail")
        await left.press("Enter")
        await left.press("s")
        await left.type("broken <b>item</b>")
        await left.press("Enter")
        skipped = [word for word in _store(table).read().words.values() if word.skipped]
        assert {(word.skipped, word.note) for word in skipped} == {("broken <b>item</b>", "see the mail")}
        assert await left.run("document.title") == "Label: answers.jsonl"
        assert await left.run("document.querySelectorAll('main img, main script, main b').length") == 0
        assert "<script>" in await left.run("document.querySelector('#item pre').textContent")
        assert "\\u202e" in await left.run("document.querySelector('#item pre').textContent")
        fetched = await left.run("performance.getEntriesByType('resource').map((entry)=>new URL(entry.name).origin)")
        assert set(fetched) <= {address.split("/?")[0], "null"}
    process.terminate()
    process.communicate()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [400, 1200])
async def test_it_fits_and_is_named_for_who_cannot_see_it(table: Path, tmp_path: Path, width: int, dark: bool) -> None:
    process, address = started(table)
    async with chromium(tmp_path) as browser:
        tab = await browser.tab()
        await tab.look(width, 800, dark=dark)
        await tab.go(address)
        assert await tab.run("document.documentElement.scrollWidth") <= width
        colours = json.loads(
            await tab.run(
                "JSON.stringify([getComputedStyle(document.body).backgroundColor,getComputedStyle(document.body).color])"
            )
        )
        light = [sum(map(int, colour[4:-1].split(","))) > 382 for colour in colours]
        assert light == [not dark, dark]
        tree = (await tab.tell("Accessibility.getFullAXTree"))["nodes"]
        named = {
            (node["role"]["value"], node.get("name", {}).get("value", "")) for node in tree if not node.get("ignored")
        }
        roles = {role for role, _ in named}
        assert {"main", "banner", "heading", "progressbar", "button", "navigation", "region"} <= roles
        assert all(name for role, name in named if role in ("button", "progressbar", "textbox", "navigation", "region"))
        await tab.press("s")
        assert await tab.run("document.activeElement.id") == "line"
        await tab.press("Escape")
        assert await tab.run("document.activeElement.id") == "questions"
        assert await tab.run("document.getElementById('keys').getBoundingClientRect().bottom<=innerHeight+1")
    process.terminate()
    process.communicate()
