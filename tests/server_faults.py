"""The faults the test server can be told to commit, each as one entry of a table."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from types import MappingProxyType
from typing import Any

from aiohttp import web

JSON = "application/json"


@dataclass(frozen=True)
class Rule:
    """When a fault happens: to requests that match, with a probability, or a number of times.

    Attributes:
        fault: name in ``FAULTS``.
        rate: probability per matching request.
        times: how often at most; None is without bound.
        text: only prompts that contain this.
        model: only this model.
        first_tries_only: never to a request body that was refused before (so that every call ends well).
        options: for the fault.
    """

    fault: str
    rate: float = 1.0
    times: int | None = None
    text: str | None = None
    model: str | None = None
    first_tries_only: bool = False
    options: dict[str, Any] = field(default_factory=dict)


def openai_error(status: int, message: str, code: str | None = None, param: str | None = None, **headers: str) -> Any:
    """An error response as OpenAI shapes it."""
    body = {"error": {"message": message, "type": code or "error", "param": param, "code": code}}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.json_response(body, status=status, headers=named)


Request = web.Request
Body = dict[str, Any]
Handler = Callable[[Request, Body, dict[str, Any]], Awaitable[web.StreamResponse | None]]


async def status(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse:
    """Any status with an OpenAI-shaped body."""
    code = int(options.get("status", 500))
    return openai_error(code, options.get("message", f"status {code}"), options.get("code"), options.get("param"))


async def rate_limit(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse:
    """429 with Retry-After in seconds, as a date, in milliseconds, in reset headers, or not at all."""
    seconds, form = float(options.get("seconds", 1)), options.get("form", "seconds")
    headers = {}
    if form == "seconds":
        headers["retry-after"] = f"{seconds:g}"
    elif form == "date":
        # A date has whole seconds: the first whole second at or after the wait.
        when = datetime.now(UTC) + timedelta(seconds=seconds)
        when += timedelta(microseconds=(-when.microsecond) % 1_000_000)
        headers["retry-after"] = format_datetime(when, usegmt=True)
    elif form == "ms":
        headers["retry-after-ms"] = f"{seconds * 1000:.0f}"
    elif form == "reset":
        headers |= {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": f"{seconds * 1000:.0f}ms"}
    return openai_error(429, "Rate limit reached for requests", "rate_limit_exceeded", **headers)


async def overloaded(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse:
    """529 as Anthropic shapes it."""
    shape = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    return web.json_response(shape, status=529)


async def gateway_html(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse:
    """502 with an HTML page from a proxy."""
    return web.Response(status=502, text="<html><body><h1>502 Bad Gateway</h1></body></html>", content_type="text/html")


async def stall(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse:
    """Accepts and never answers."""
    await asyncio.sleep(float(options.get("seconds", 3600)))
    return web.Response(status=504)


async def drip(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse:
    """Bytes arrive one by one and never end."""
    response = web.StreamResponse(headers={"Content-Type": JSON})
    await response.prepare(request)
    for _ in range(36_000):
        await response.write(b" ")
        await asyncio.sleep(float(options.get("every", 0.05)))
    return response


async def reset(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse:
    """The connection is reset before anything is sent."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def cut(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse:
    """Half a body, then the connection closes."""
    response = web.StreamResponse(headers={"Content-Type": JSON, "Content-Length": "4000"})
    await response.prepare(request)
    await response.write(b'{"id": "x", "choices": [{"index": 0, "message": {"role": "assistant", "content": "half')
    if request.transport is not None:
        request.transport.close()
    return response


async def bad_json(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse:
    """200 with a body that is not JSON."""
    return web.Response(text='{"choices": [{"message": {"content": "oops"', content_type=JSON)


async def html(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse:
    """200 with a page of HTML."""
    return web.Response(text="<!doctype html><html><body>Sign in</body></html>", content_type="text/html")


async def error_in_200(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse:
    """200 whose body is an error object, as routers send it, or with ``plain`` an error that is only text."""
    if options.get("plain"):
        return web.json_response({"error": "Upstream provider failed"})
    return web.json_response({"error": {"message": "Upstream provider failed", "code": options.get("code", 502)}})


async def no_response_format(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse | None:
    """400 on the response formats listed (by default both)."""
    asked = (body.get("response_format") or {}).get("type")
    if asked not in options.get("types", ["json_schema", "json_object"]):
        return None
    return openai_error(
        400, f"Invalid parameter: 'response_format' of type '{asked}' is not supported with this model.",
        "invalid_value", "response_format",
    )  # fmt: skip


async def unsupported(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse | None:
    """400 on a parameter, in OpenAI's words."""
    name = options.get("param", "max_tokens")
    if name not in body:
        return None
    message = f"Unsupported parameter: '{name}' is not supported with this model."
    return openai_error(400, message, "unsupported_parameter", name)


async def context(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse:
    """400: the prompt is too long."""
    message = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
    return openai_error(400, message, "context_length_exceeded", "messages")


async def policy(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse:
    """400: refused by the content policy, in Azure's shape."""
    error = {
        "message": "The response was filtered due to the prompt triggering our content management policy.",
        "type": None, "param": "prompt", "code": "content_filter",
        "innererror": {"code": "ResponsibleAIPolicyViolation"},
    }  # fmt: skip
    return web.json_response({"error": error}, status=400)


async def quota(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse:
    """429 that is no rate limit: the account has no quota left."""
    return openai_error(429, "You exceeded your current quota, please check your plan.", "insufficient_quota")


async def exact_body(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse:
    """Status 200 with exactly this text and content type."""
    data = options["content"].encode("utf-8", "surrogatepass")
    return web.Response(body=data, headers={"Content-Type": options.get("type", "application/json")})


async def redirect(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse:
    """3xx to ``to``, which a client that follows would ask next, key and all."""
    return web.Response(status=int(options.get("status", 307)), headers={"Location": options["to"]})


async def packed(request: Request, body: Body, options: dict[str, Any]) -> web.StreamResponse:
    """Status 200 with exactly these bytes, under a content encoding."""
    headers = {"Content-Type": JSON, "Content-Encoding": options.get("encoding", "gzip")}
    response = web.StreamResponse(headers={k: v for k, v in headers.items() if v})
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):  # a client that has seen enough hangs up
        for start in range(0, len(options["data"]), 2**16):
            await response.write(options["data"][start : start + 2**16])
        await response.write_eof()
    return response


FAULTS: Mapping[str, Handler] = MappingProxyType({
    "body": exact_body,
    "status": status, "rate_limit": rate_limit, "overloaded": overloaded, "gateway_html": gateway_html,
    "stall": stall, "drip": drip, "reset": reset, "cut": cut, "bad_json": bad_json, "html": html,
    "error_in_200": error_in_200, "no_response_format": no_response_format, "unsupported": unsupported,
    "context": context, "redirect": redirect, "packed": packed, "policy": policy, "quota": quota,
})  # fmt: skip
"""Faults that replace the reply; None from one means that the request does not meet it.

Read only: two test files once added their own here, and a third, which walks them all, failed in the whole suite alone.
A test's own handler goes to its own server, ``server.fail(handler)``.
"""


def change_reply(fault: str, reply: dict[str, Any], options: dict[str, Any]) -> bool:
    """Faults that change a reply of status 200 in place; False if ``fault`` is none of them."""
    choice = reply["choices"][0] if reply.get("choices") else {}
    message = choice.get("message", {})
    if fault == "empty_choices":
        reply["choices"] = []
    elif fault == "reasoning_only":
        message |= {"content": None, "reasoning_content": "I was still thinking about"}
        choice["finish_reason"] = options.get("finish", "length")
    elif fault == "refusal":
        message |= {"content": None, "refusal": "I can't help with that."}
    elif fault == "content_filter":
        message["content"] = ""
        choice["finish_reason"] = "content_filter"
    elif fault == "length":
        message["content"] = str(message.get("content", ""))[:20]
        choice["finish_reason"] = "length"
    elif fault == "empty":
        message["content"] = ""
    elif fault == "null_usage":
        reply["usage"] = None
    elif fault == "no_usage":
        reply.pop("usage", None)
    elif fault == "odd_usage":
        reply["usage"] = {"prompt_tokens": "12", "completion_tokens": -3, "total_tokens": None}
    elif fault == "shape":
        message |= options.get("message", {})
        choice |= options.get("choice", {})
        reply |= options.get("reply", {})
    elif fault == "text":
        message["content"] = options["content"]
    else:
        return False
    return True


def rule_from_json(data: dict[str, Any]) -> Rule:
    """A rule sent over the control endpoint."""
    return Rule(**json.loads(json.dumps(data)))
