"""The page to label in, served to this machine alone: one token, checked hosts and origins, nothing from elsewhere."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from aiohttp import web

from pipeline.errors import AuxevalError
from pipeline.foreign_json import read_json
from pipeline.labelling.asked import ItemToLabel
from pipeline.labelling.session import Session, StaleError, View

__all__ = ["LabelServer", "bounded"]

HOST = "127.0.0.1"
MOST_BYTES = 64 * 1024
"""Of what a page sends: an answer and a note."""
SHOWN_CHARS = 20_000
"""Of each text, until the rater asks for all of it."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
MARK = "X-Auxeval-Label"
"""A header that a form of another site cannot send."""
_ASSETS = Path(__file__).with_name("assets")
_STYLE = Path(__file__).parent.parent / "report" / "assets" / "report.css"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
log = logging.getLogger(__name__)


class LabelServer:
    """One rater's page.

    Attributes:
        session: what it shows.
        title, question: of the page.
        token: what the address holds.
        ended: set when the rater says that it is done.
    """

    def __init__(self, session: Session, title: str, question: str = "") -> None:
        self.session, self.title, self.question = session, title, question
        self.token = secrets.token_urlsafe(24)
        self.ended = asyncio.Event()
        self._one = asyncio.Lock()

    def app(self) -> web.Application:
        """The application; every answer of it carries the policy."""
        app = web.Application(client_max_size=MOST_BYTES, middlewares=[self._guard])
        app.router.add_get("/", self._page)
        app.router.add_get("/label.js", self._script)
        app.router.add_get("/label.css", self._style)
        app.router.add_get("/view", self._view)
        app.router.add_get("/text", self._text)
        session = self.session
        steps: dict[str, Callable[[Mapping[str, str]], None]] = {
            "say": lambda told: session.say(told["unit"], told["criterion"], told["said"], told.get("note", "")),
            "skip": lambda told: session.skip(told["item"], told.get("reason", ""), told.get("note", "")),
            "undo": lambda _: session.undo(),
            "look": lambda _: session.look(),
            "go-on": lambda _: session.go_on(),
        }
        for name, step in steps.items():
            app.router.add_post(f"/{name}", self._step(step))
        app.router.add_post("/end", self._end)
        return app

    # ---- who may

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            refused = self._refused(request)
            response = web.Response(status=403, text=refused) if refused else await handler(request)
        except web.HTTPException as error:
            response = web.Response(status=error.status, text=error.reason, headers=_location(error))
        response.headers.update(HEADERS)
        return response

    def _refused(self, request: web.Request) -> str:
        """Why a request is refused, "" where it is not: other sites and other people here can reach the port too."""
        port = request.transport.get_extra_info("sockname")[1] if request.transport is not None else 0
        hosts = {f"{name}:{port}" for name in (HOST, "localhost")}
        if request.headers.get("Host", "") not in hosts:
            return "unknown host"
        if request.headers.get("Origin", "") not in {"", *(f"http://{host}" for host in hosts)}:
            return "foreign origin"
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin") and request.method != "GET":
            return "foreign site"
        given = request.query.get("token") if request.path == "/" and "token" in request.query else None
        given = given or request.cookies.get(self._cookie(port), "")
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode()):
            return "This address is not valid any more. Open the one that `auxeval label` printed last."
        if request.method == "POST" and request.headers.get(MARK) != "1":
            return "not from the page"
        return ""

    @staticmethod
    def _cookie(port: int) -> str:
        return f"auxeval-label-{port}"  # cookies are shared by the ports of a host

    # ---- what is served

    async def _page(self, request: web.Request) -> web.StreamResponse:
        if "token" not in request.query:
            return web.FileResponse(_ASSETS / "label.html", headers={"Content-Type": "text/html; charset=utf-8"})
        response = web.Response(status=303, headers={"Location": "/"})  # the token leaves the address and the history
        port = int(request.host.rpartition(":")[2])
        response.set_cookie(self._cookie(port), self.token, httponly=True, samesite="Strict", path="/")
        return response

    async def _script(self, _: web.Request) -> web.StreamResponse:
        text = (_ASSETS / "label.js").read_text(encoding="utf-8")
        return web.Response(text=text, content_type="text/javascript", charset="utf-8")

    async def _style(self, _: web.Request) -> web.StreamResponse:
        text = "".join(file.read_text(encoding="utf-8") for file in (_STYLE, _ASSETS / "label.css"))
        return web.Response(text=text, content_type="text/css", charset="utf-8")

    async def _view(self, _: web.Request) -> web.StreamResponse:
        return await self._run(lambda: None)

    async def _text(self, request: web.Request) -> web.StreamResponse:
        """All of one text of the item that is shown."""
        try:
            place = int(request.query.get("place", ""))
            async with self._one:
                item = (await asyncio.to_thread(self.session.view)).item
            if item is None or item.key != request.query.get("item") or place < 0:
                raise ValueError
            return web.Response(text=item.texts()[place])
        except (ValueError, IndexError):
            raise web.HTTPNotFound from None

    def _step(self, step: Callable[[Mapping[str, str]], None]) -> Handler:
        async def take(request: web.Request) -> web.StreamResponse:
            try:
                told = read_json(await request.text())
                if not isinstance(told, dict) or not all(isinstance(value, str) for value in told.values()):
                    raise ValueError
            except ValueError:
                raise web.HTTPBadRequest from None
            try:
                return await self._run(lambda: step(told))
            except KeyError:
                raise web.HTTPBadRequest from None

        return take

    async def _run(self, step: Callable[[], None]) -> web.StreamResponse:
        """Do one thing at a time, in a thread since a look takes seconds, and answer with what is shown then."""
        status, message = 200, ""
        async with self._one:
            try:
                await asyncio.to_thread(step)
            except StaleError as error:
                status, message = 409, str(error)
            except AuxevalError as error:
                status, message = 422, str(error)
            try:
                view = await asyncio.to_thread(self.session.view)
            except AuxevalError as error:  # the store or the ledger was damaged by another hand
                return web.json_response({"message": str(error)}, status=500)
        return web.json_response({**self._told(view), "message": message}, status=status)

    async def _end(self, _: web.Request) -> web.StreamResponse:
        self.ended.set()
        return web.json_response({"message": ""})

    def _told(self, view: View) -> dict[str, Any]:
        return {
            "title": self.title, "question": self.question, "rater": self.session.rater, "phase": view.phase,
            "done": view.done, "total": view.total, "says": list(view.says), "undo": view.undo, "more": view.more,
            "item": None if view.item is None else _item(view.item, view),
        }  # fmt: skip


def _item(item: ItemToLabel, view: View) -> dict[str, Any]:
    """An item as the page gets it: bounded texts and questions, no id and no model."""
    texts = [bounded(text) for text in item.texts()]
    asked = [
        {
            "unit": one.unit, "criterion": one.criterion, "question": one.question, "kind": one.kind,
            "choices": list(one.choices), "bounds": list(one.bounds),
            "said": _said(view, one.unit, one.criterion),
        }
        for one in item.asked
    ]  # fmt: skip
    return {
        "key": item.key, "texts": texts, "responses": [response.unit for response in item.responses], "asked": asked,
    }  # fmt: skip


def _said(view: View, unit: str, criterion: str) -> str | float | None:
    label = view.said.get((unit, criterion))
    return None if label is None else label.value if label.value is not None else label.skipped


def bounded(text: str) -> dict[str, Any]:
    """The beginning of a text, and how many characters are left."""
    return {"text": text[:SHOWN_CHARS], "left": max(len(text) - SHOWN_CHARS, 0)}


def _location(error: web.HTTPException) -> dict[str, str]:
    return {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}
