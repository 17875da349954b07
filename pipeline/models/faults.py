"""Faults: what a provider's error response means, told by status and body, never by exception class."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any

from pipeline.models.redaction import one_line
from pipeline.models.transport import TransportError
from pipeline.models.types import FailureKind

_OUT_OF_CREDIT_CODES = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "insufficient_credits",
     "insufficient_balance", "payment_required"}
)  # fmt: skip
_OUT_OF_CREDIT = re.compile(
    r"credit balance is too low|insufficient (credits?|balance|funds)|out of credits?|billing hard limit", re.I
)
_CONTEXT = re.compile(
    r"context[ _]?length|context[ _]?window|maximum context|(prompt|input) is too long|too many (input )?tokens"
    r"|reduce the length of|exceeds? the (model'?s? )?(maximum|max) (number of )?(input )?tokens",
    re.I,
)
_POLICY = re.compile(
    r"content[ _]policy|content management policy|content[ _]filter|responsible ?ai|safety (system|policy|filter)"
    r"|flagged|usage polic(y|ies)",
    re.I,
)
_FORMAT = re.compile(r"response_format|json_schema|json_object|structured[ _]outputs?|guided[ _]json|json mode", re.I)
_UNSUPPORTED = re.compile(
    r"(unsupported|unrecognized|unknown|unexpected|invalid|extra|not supported|unsupported_value)\W+"
    r"(request )?(parameter|argument|value|field|keyword|param|option|inputs?)"
    r"|(do|does)( not|n't) support|not supported|not permitted|is deprecated|only the default",
    re.I,
)
_IMPOSSIBLE = re.compile(r"request (is )?too large|too large for (this )?model", re.I)
_REQUESTED = re.compile(r"\blimit\D{0,12}([\d,]+).{0,60}?\brequested\D{0,12}([\d,]+)", re.I | re.S)
_UNKNOWN_MODEL = re.compile(r"invalid model name passed|no such model|model .{0,80}(does not exist|not found)", re.I)
_NO_KEYS = re.compile(
    r"no connected db|no api key passed|authentication error", re.I
)  # LiteLLM's proxy says so with 400
_PARAMS = (
    "max_completion_tokens", "max_tokens", "temperature", "top_p", "top_k", "min_p", "stop", "seed", "logprobs",
    "top_logprobs", "frequency_penalty", "presence_penalty", "repetition_penalty", "reasoning_effort", "thinking",
    "logit_bias", "response_format", "extra_body", "verbosity", "reasoning",
)  # fmt: skip
_QUOTED = re.compile(r"""['"`]([A-Za-z_][A-Za-z0-9_.]*)['"`]|:\s*([a-z_][a-z0-9_]*)\b""")


def classify(
    status: int, body: Any, headers: Mapping[str, str] | None = None, *, secrets: tuple[str, ...] = ()
) -> TransportError:
    """The error of a response that is not a reply.

    Args:
        status: HTTP status, or the code of an error object inside a 200.
        body: parsed JSON, or text where it is none.
        headers: response headers with names in lower case.
        secrets: texts that must not show in the message.
    """
    message, code, param = _parts(body)
    line = one_line(message or f"status {status}", secrets=secrets)
    kind = _kind(status, message, code)
    named: str | None = None
    if kind == "bad_request":
        named = _refused_parameter(message, code, param)
        if named is not None:
            kind = "unsupported_parameter"
    return TransportError(
        kind,
        line,
        status=status,
        retry_after=_hint(headers or {}, body, message) if kind in ("rate_limited", "server") else None,
        code=code,
        param=named,
        overloaded=status == 529 or code == "overloaded_error",
        maybe_billed=False,
    )


def _kind(status: int, message: str, code: str | None) -> FailureKind:
    code_text = code or ""
    if status == 402 or code_text in _OUT_OF_CREDIT_CODES or (status in (400, 403) and _OUT_OF_CREDIT.search(message)):
        return "out_of_credit"
    if status == 429:
        return "bad_request" if _impossible(message) else "rate_limited"
    if status == 413:
        return "bad_request" if "rate_limit" in code_text or _impossible(message) else "context_too_long"
    if status in (400, 500) and _NO_KEYS.search(message):
        return "auth"
    if status in (408, 504, 524):
        return "timeout"
    if status in (400, 500) and "contextwindow" in message.lower():  # LiteLLM's proxy, around what a provider said
        return "context_too_long"
    if status in (409, 425) or status >= 500:
        return "server"
    if status in (401, 403):
        return "content_policy" if status == 403 and _POLICY.search(f"{code_text} {message}") else "auth"
    if status == 404:
        return "not_found"
    if code_text == "context_length_exceeded" or _CONTEXT.search(message):
        return "context_too_long"
    if status == 400 and (code_text == "model_not_found" or _UNKNOWN_MODEL.search(message)):
        return "not_found"
    if _POLICY.search(f"{code_text} {message}"):
        return "content_policy"
    return "bad_request"


def _impossible(message: str) -> bool:
    """Whether a rate limit says that this request alone is above it: no waiting will do."""
    stated = _REQUESTED.search(message)
    if stated is not None:
        limit, requested = (int(text.replace(",", "") or 0) for text in stated.groups())
        return requested > limit
    return bool(_IMPOSSIBLE.search(message))


def _refused_parameter(message: str, code: str | None, param: str | None) -> str | None:
    """Which parameter a 400 is about, where it says that one is not taken."""
    if _FORMAT.search(message) or (param or "").startswith("response_format"):
        return "response_format"
    complains = _UNSUPPORTED.search(message) or (code or "") in (
        "unsupported_parameter", "unsupported_value", "unknown_parameter", "invalid_parameter",
    )  # fmt: skip
    if not complains:
        return None
    if param:
        return param.split(".")[0].split("[")[0]
    for match in _QUOTED.finditer(message):
        name = (match.group(1) or match.group(2)).split(".")[0]
        if name in _PARAMS:
            return name
    return next((name for name in _PARAMS if re.search(rf"\b{name}\b", message)), None)


def _parts(body: Any) -> tuple[str, str | None, str | None]:
    """(message, code, parameter) of an error body in any of the shapes that providers use."""
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, Mapping):
        return ("" if body is None else str(body)), None, None
    error = body.get("error", body)
    if isinstance(error, str):
        return error, None, None
    if not isinstance(error, Mapping):
        return str(body), None, None
    message = error.get("message") or error.get("detail") or error.get("msg") or body.get("message") or ""
    code = error.get("code")
    if not isinstance(code, str) or code.isdigit():
        code = error.get("type") or error.get("status")
    param = error.get("param")
    inner = error.get("innererror")
    if isinstance(inner, Mapping) and isinstance(inner.get("code"), str):
        code = inner["code"]
    return (
        message if isinstance(message, str) else str(message),
        code if isinstance(code, str) else None,
        param if isinstance(param, str) and param else None,
    )


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_SAID = re.compile(
    r"(?:retry|try again|wait)\D{0,24}?"
    r"((?:\d+(?:\.\d+)?\s*(?:ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?)(?![a-z])\s*)+)",
    re.I,
)
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milli|s|m|h)", re.I)


def _hint(headers: Mapping[str, str], body: Any, message: str) -> float | None:
    """Seconds to wait by the headers, else by the body: Google's RetryInfo, or ``retry after 4 seconds``."""
    stated = retry_after_seconds(headers)
    if stated is not None:
        return stated
    error = body.get("error", body) if isinstance(body, Mapping) else None
    details = error.get("details") if isinstance(error, Mapping) else None
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, Mapping) and isinstance(detail.get("retryDelay"), str):
            return _wait(detail["retryDelay"], 0.0)
    match = _SAID.search(message)
    if match is None:
        return None
    units = {"milli": 0.001, **_UNITS}
    return sum(float(amount) * units[unit.lower()] for amount, unit in _AMOUNT.findall(match.group(1)))


def retry_after_seconds(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds a provider asks to wait, or None.

    ``retry-after-ms``, then ``retry-after`` (seconds or a date), then the rate-limit reset headers: of the limits
    that have nothing remaining the last to reset, or of all where none says so. Dates are read against the response's
    own: a server's clock that is an hour ahead once made two seconds of waiting an hour.

    Args:
        headers: names in lower case.
        now: UNIX time; by default the response's own ``Date``, else the present.
    """
    if now is None:
        now = _date(headers.get("date", ""))
    now = time.time() if now is None else now
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    stated = headers.get("retry-after")
    if stated is not None:
        waits = _wait(stated, now)
        if waits is not None:
            return waits
    resets: list[tuple[bool, float]] = []
    for name, value in headers.items():
        if "ratelimit" not in name or "reset" not in name:
            continue
        seconds = _wait(value, now)
        if seconds is not None:
            remaining = headers.get(name.replace("reset", "remaining"), "").strip()
            resets.append((remaining == "0" or remaining.startswith("-"), seconds))
    exhausted = [seconds for none_left, seconds in resets if none_left]
    candidates = exhausted or [seconds for _, seconds in resets]
    return max(candidates) if candidates else None


def _wait(text: str, now: float) -> float | None:
    """Seconds from a number, a duration (``6m0s``), a UNIX time, or a date."""
    text = text.strip()
    number = _number(text)
    if number is not None:
        if number > 1e11:
            number /= 1000
        return max(0.0, number - now if number > 1e9 else number)
    parts = _DURATION.findall(text)
    if parts and "".join(amount + unit for amount, unit in parts) == text:
        return sum(float(amount) * _UNITS[unit] for amount, unit in parts)
    when = _date(text)
    return None if when is None else max(0.0, when - now)


def _date(text: str) -> float | None:
    """The UNIX time of a date as HTTP or ISO 8601 write it."""
    for read in (parsedate_to_datetime, lambda value: datetime.fromisoformat(value.replace("Z", "+00:00"))):
        try:
            return float(read(text).timestamp())
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
    return None


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and 0 <= value < 1e15 else None
