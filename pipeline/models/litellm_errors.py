"""LiteLLM's exceptions as TransportErrors: told apart by status and body, for its classes do not tell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.models.faults import classify
from pipeline.models.redaction import one_line
from pipeline.models.transport import TransportError

_PREFIX = re.compile(r"^(?:litellm\.)?(?:\w+(?:Error|Exception)|Timeout)\s*(?::|-)\s*")
_SOURCE = re.compile(r"^\w+Exception\s*-\s*")
_NOT_SENT = ("ConnectError", "ClientConnectorError", "ConnectTimeout", "gaierror", "ConnectionRefusedError")
_BAD_BODY = ("JSONDecodeError", "APIResponseValidationError", "Expecting ", "Empty or invalid response", "delimiter")
_ERROR_IN_200 = "Error in response object"  # LiteLLM's 422 for a 200 whose error is no object


def from_litellm(error: Exception, secrets: tuple[str, ...] = ()) -> TransportError:
    """What a LiteLLM exception means.

    A response that LiteLLM made up has no headers: connection resets, cut bodies, refused ports and bad JSON all come
    as its InternalServerError with status 500, and are told apart by their causes. An exception without a status is
    a defect, not an answer of a provider: it is final, so that nothing unknown is ever retried.
    """
    ours = next((cause for cause in _causes(error) if isinstance(cause, TransportError)), None)
    if ours is not None:  # what our client beneath LiteLLM met, with its cause
        ours.message = one_line(ours.message, secrets=secrets)
        return ours
    status = getattr(error, "status_code", None)
    message = _message(error)
    response = getattr(error, "response", None)
    headers = {str(k).lower(): str(v) for k, v in dict(getattr(response, "headers", None) or {}).items()}
    headers |= {str(k).lower(): str(v) for k, v in dict(getattr(error, "litellm_response_headers", None) or {}).items()}
    if not isinstance(status, int):
        return TransportError("bad_request", one_line(f"{type(error).__name__}: {message}", secrets=secrets))
    if status == 422 and _ERROR_IN_200 in message:
        return TransportError("server", one_line(message, secrets=secrets), status=200, maybe_billed=False)
    if not headers and status in (408, 500, 503):
        made_up = _made_up(error, status, message, secrets)
        if made_up is not None:
            return made_up
    return classify(status, _body(error, response, message), headers, secrets=secrets)


def _made_up(error: Exception, status: int, message: str, secrets: tuple[str, ...]) -> TransportError | None:
    """The error behind a status that no server sent."""
    names = [type(cause).__name__ for cause in _causes(error)]
    line = one_line(message, secrets=secrets)
    whole = f"{message} {' '.join(names)} {' '.join(str(cause) for cause in _causes(error))}"
    if status == 408 or "APITimeoutError" in names:
        return TransportError("timeout", line, maybe_billed=True)
    if "UnicodeEncodeError" in names or "surrogates not allowed" in whole:
        return TransportError("bad_request", line)
    if any(sign in whole for sign in _BAD_BODY):
        return TransportError("invalid_body", line, status=200, maybe_billed=True)
    if "APIConnectionError" in names or "Connection error" in message:
        return TransportError("connection", line, maybe_billed=not any(sign in whole for sign in _NOT_SENT))
    return None


def _body(error: Exception, response: Any, message: str) -> Any:
    """The provider's body as far as LiteLLM kept it, with its message."""
    body = getattr(error, "body", None)
    if not isinstance(body, Mapping) and response is not None:
        try:
            body = response.json()
        except Exception:  # whatever a half-made response object raises, the message is enough
            body = None
    inner = body.get("error", body) if isinstance(body, Mapping) else None
    if isinstance(inner, Mapping) and any(inner.get(name) for name in ("message", "detail", "msg")):
        return {"error": dict(inner)}
    code = getattr(error, "code", None)
    return {"error": {"message": message, "code": code, "param": getattr(error, "param", None)}}


def _message(error: Exception) -> str:
    """The message without the class names that LiteLLM puts before it."""
    message = str(getattr(error, "message", None) or error)
    for pattern in (_PREFIX, _PREFIX, _PREFIX, _SOURCE):
        message = pattern.sub("", message)
    return message.splitlines()[0] if message else type(error).__name__


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, its causes and contexts."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__
