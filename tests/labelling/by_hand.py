"""Tables to label in, raters who go by the text, and a client that is the page."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from aiohttp.test_utils import TestClient, TestServer

from pipeline.cli import main
from pipeline.labelling.opening import Wanted, open_to_label
from pipeline.labelling.server import MARK, LabelServer
from pipeline.labelling.session import Session
from pipeline.tables.column_roles import ColumnRoles

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\u202eevil"
ROLES = ColumnRoles("gold", signals=("judge",), id="id", model="model")


def truth(item: int, model: str) -> int:
    """Whether an answer of the table is right."""
    return int((item * 7919 + (3 if model == "new" else 0)) % 10 < (8 if model == "new" else 5))


def write_table(path: Path, items: int = 120, answer: Callable[[int, str], str] | None = None) -> Path:
    """Two models and a judge, nothing labelled; an answer says in its text whether it is right."""
    rng = np.random.default_rng(4)
    lines = []
    for k in range(items):
        for model in ("new", "old"):
            right = truth(k, model)
            text = answer(k, model) if answer else f"answer {k} {'good' if right else 'bad'} {len(model + str(right))}"
            lines.append({"id": f"q{k:03d}", "model": model, "question": f"Question {k}? {HOSTILE}", "answer": text,
                          "judge": right + rng.normal(0, 0.6), "gold": None})  # fmt: skip
    if path.suffix == ".parquet":
        pl.DataFrame(lines).write_parquet(path)
    else:
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def auxeval(*words: str) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    return int(ended.value.code or 0)


def session_of(source: Path, rater: str = "ann", wanted: Wanted | None = None) -> Session:
    """A rater at a desk."""
    opened = open_to_label(str(source), "runs", wanted or Wanted(roles=ROLES))
    return Session(opened.source, rater, opened.desk, opened.plan)


def right_by_text(text: str) -> str:
    """What a rater says of an answer of the table."""
    return "yes" if "good" in text else "no"


def label_all(session: Session, most: int = 10_000) -> int:
    """Answer until something else is asked for; how many answers."""
    for said in range(most):
        view = session.view()
        if view.item is None:
            return said
        asked = next(one for one in view.item.asked if (one.unit, one.criterion) not in view.said)
        text = next((response.text for response in view.item.responses if response.unit == asked.unit), "")
        session.say(asked.unit, asked.criterion, right_by_text(text))
    return most


class Page:
    """What the page's script does, without a browser."""

    def __init__(self, client: TestClient[Any, Any], server: LabelServer) -> None:
        self.client, self.server = client, server

    async def post(self, path: str, told: Any = None, **headers: str) -> tuple[int, Any]:
        """One step, and its answer."""
        answer = await self.client.post(path, json=told or {}, headers={MARK: "1", **headers})
        text = await answer.text()
        return answer.status, json.loads(text) if answer.content_type == "application/json" else text

    async def view(self) -> Any:
        """What is shown."""
        return await (await self.client.get("/view")).json()

    async def say(self, view: Any) -> tuple[int, Any]:
        """Answer the first open question by the text of its response."""
        asked = next(one for one in view["item"]["asked"] if one["said"] is None)
        text = view["item"]["texts"][3 + 2 * view["item"]["responses"].index(asked["unit"])]["text"]
        told = {"unit": asked["unit"], "criterion": asked["criterion"], "said": right_by_text(text)}
        return await self.post("/say", told)


@asynccontextmanager
async def opened_page(session: Session) -> AsyncIterator[Page]:
    """The page of a session, its token given."""
    server = LabelServer(session, "answers")
    async with TestClient(TestServer(server.app(), host="127.0.0.1")) as client:
        answer = await client.get("/", params={"token": server.token})
        assert answer.status == 200
        yield Page(client, server)


def started(table: Path, *more: str) -> tuple[subprocess.Popen[str], str]:
    """``auxeval label`` on a table in a process of its own, and the address of its page."""
    command = [sys.executable, "-m", "pipeline", "label", str(table), "--no-browser", "--as", "ann", "--gold", "gold",
               "--signals", "judge", "--id", "id", "--model", "model", *more]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    match = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", process.stderr.readline())
    assert match is not None
    return process, match[0]
