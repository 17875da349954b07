"""The page's server: what it serves, whom it refuses, and what it has kept when it is killed."""

from __future__ import annotations

import json
import os
import re
import signal
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from labelling.by_hand import HOSTILE, opened_page, right_by_text, session_of, started, write_table

from pipeline.cli.documents import document_schema
from pipeline.labelling.server import MARK, MOST_BYTES, SHOWN_CHARS, LabelServer
from pipeline.tables.label_store import LabelStore


async def test_thirty_answers_are_each_on_disk_when_the_next_item_comes(table: Path) -> None:
    async with opened_page(session_of(table)) as page:
        view = await page.view()
        for k in range(30):
            status, view = await page.say(view)
            assert status == 200
            assert len(LabelStore(page.server.session.source.store.path).read().words) == k + 1


async def test_the_page_is_blind_and_its_texts_are_data(table: Path) -> None:
    async with opened_page(session_of(table)) as page:
        answer = await page.client.get("/view")
        text = await answer.text()
        assert answer.content_type == "application/json"
        item = json.loads(text)["item"]
        assert HOSTILE in item["texts"][0]["text"]
        assert not re.search(r'"(new|old|judge|q\d\d\d)"', text)
        for path in ("/", "/label.js", "/label.css", "/view", "/nowhere"):
            served = await page.client.get(path)
            policy = served.headers["Content-Security-Policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert served.headers["X-Content-Type-Options"] == "nosniff"
        html = await (await page.client.get("/")).text()
        assert not re.search(r"<script>|\son\w+=|style=|https?://", html)


async def test_what_is_long_is_bounded_until_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session = session_of(
        write_table(tmp_path / "t.parquet", 30, lambda k, model: f"good {k} {model} " + "é" * 1_000_000)
    )
    async with opened_page(session) as page:
        answer = await page.client.get("/view")
        assert len(await answer.read()) < 20 * SHOWN_CHARS  # of 2,000,000 characters
        item = (await page.view())["item"]
        assert item["texts"][3]["left"] > 900_000
        whole = await page.client.get("/text", params={"item": item["key"], "place": "3"})
        assert len(await whole.text()) == SHOWN_CHARS + item["texts"][3]["left"]
        for params in (
            {"item": item["key"], "place": "99"},
            {"item": "x", "place": "3"},
            {"place": "-1"},
            {"place": "é"},
        ):
            assert (await page.client.get("/text", params=params)).status == 404


async def test_two_tabs_lose_and_double_nothing(table: Path) -> None:
    async with opened_page(session_of(table)) as page:
        left = right = await page.view()
        _, left = await page.say(left)
        while left["item"]["key"] == right["item"]["key"]:
            _, left = await page.say(left)
        status, fresh = await page.say(right)  # the other tab still shows the item before
        assert status == 409
        assert "answered already" in fresh["message"]
        assert fresh["item"] == left["item"]
        store = page.server.session.source.store
        assert len(store.path.read_bytes().splitlines()) == len(store.read().words)


ATTACKS: list[tuple[str, str, dict[str, str], int]] = [
    ("GET", "/view", {"Host": "evil.example"}, 403),
    ("GET", "/", {"Host": "evil.example:80"}, 403),
    ("POST", "/undo", {"Origin": "https://evil.example", MARK: "1"}, 403),
    ("POST", "/undo", {"Origin": "null", MARK: "1"}, 403),
    ("POST", "/undo", {"Sec-Fetch-Site": "cross-site", MARK: "1"}, 403),
    ("POST", "/undo", {}, 403),
    ("POST", "/view", {MARK: "1"}, 405),
    ("GET", "/say", {}, 405),
    ("GET", "/../../etc/passwd", {}, 404),
    ("GET", "/%2e%2e/%2e%2e/etc/passwd", {}, 404),
    ("GET", "/label.js/../by_hand.py", {}, 404),
    ("GET", "/label_desk.json", {}, 404),
]


@pytest.mark.parametrize(("method", "path", "headers", "status"), ATTACKS)
async def test_attacks_are_refused(table: Path, method: str, path: str, headers: dict[str, str], status: int) -> None:
    async with opened_page(session_of(table)) as page:
        view = await page.view()
        await page.say(view)
        before = page.server.session.source.store.path.read_bytes()
        answer = await page.client.request(method, path, headers=headers, data="{}" if method == "POST" else None)
        assert answer.status == status
        assert "Content-Security-Policy" in answer.headers
        assert page.server.session.source.store.path.read_bytes() == before


@pytest.mark.parametrize(
    "body", ["", "[]", "nonsense", '{"unit": 1}', '{"unit": "x"}', '{"said": {"a": []}}', "[" * 10_000]
)
async def test_bodies_that_are_no_step_are_refused(table: Path, body: str) -> None:
    async with opened_page(session_of(table)) as page:
        answer = await page.client.post("/say", data=body, headers={MARK: "1"})
        assert answer.status == 400
        huge = await page.client.post("/say", data="x" * (2 * MOST_BYTES), headers={MARK: "1"})
        assert huge.status == 413
        assert not page.server.session.source.store.path.exists()


@pytest.mark.parametrize("token", ["", "wrong", "é" * 40])
async def test_nothing_is_served_without_the_token(table: Path, token: str) -> None:
    server = LabelServer(session_of(table), "t")
    app: web.Application = server.app()
    async with TestClient[Any, Any](TestServer(app, host="127.0.0.1")) as client:
        for path in ("/", "/view", "/label.js", "/text"):
            assert (await client.get(path, params={"token": token})).status == 403
            assert (await client.get(path, params={"token": server.token} if path != "/" else {})).status == 403
        answer = await client.get("/", params={"token": server.token}, allow_redirects=False)
        assert answer.status == 303
        assert answer.headers["Location"] == "/"
        cookie = answer.headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Strict" in cookie


def _browser(address: str) -> Any:
    opener = urllib.request.build_opener(
        urllib.request.HTTPCookieProcessor(CookieJar()), urllib.request.ProxyHandler({})
    )
    opener.open(address).read()
    root = address.split("/?")[0]

    def ask(path: str, told: Any = None) -> Any:
        data = None if told is None else json.dumps(told).encode()
        headers = {} if told is None else {MARK: "1", "Content-Type": "application/json"}
        return json.loads(opener.open(urllib.request.Request(root + path, data, headers)).read())

    return ask


def _say(ask: Any, view: Any) -> Any:
    asked = next(one for one in view["item"]["asked"] if one["said"] is None)
    text = view["item"]["texts"][3 + 2 * view["item"]["responses"].index(asked["unit"])]["text"]
    return ask("/say", {"unit": asked["unit"], "criterion": asked["criterion"], "said": right_by_text(text)})


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_killed_server_has_kept_all_it_acknowledged_and_ctrl_c_says_what_is_next(table: Path) -> None:
    kept = 0
    for _ in range(2):
        process, address = started(table)
        ask = _browser(address)
        view = ask("/view")
        for _ in range(5):
            view = _say(ask, view)
            kept += 1
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        store = LabelStore(table.with_name("answers.jsonl.labels.jsonl"))
        assert len(store.read().words) == kept
    process, address = started(table)
    ask = _browser(address)
    assert ask("/view")["done"] == kept // 2
    assert ask("/view")["undo"]
    assert _say(ask, ask("/undo", {}))["done"] == kept // 2
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()
    assert process.returncode == 0
    assert f"{kept} answers of ann are in" in out
    assert out.splitlines()[-1].startswith("next: auxeval labels import")


def test_ending_from_the_page_prints_one_document(table: Path) -> None:
    process, address = started(table, "--json")
    ask = _browser(address)
    _say(ask, ask("/view"))
    ask("/end", {})
    out, _ = process.communicate()
    document = json.loads(out)
    jsonschema.validate(document, document_schema("label"))
    assert document["answers"] == 1
    assert document["next"].startswith("auxeval labels import")
