"""What error responses mean, and how long a provider asks to wait."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from pipeline.models.faults import classify, retry_after_seconds
from pipeline.models.redaction import one_line


def openai(message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": code, "param": param, "code": code}}


CASES = [
    (401, openai("Incorrect API key provided"), "auth"),
    (403, openai("Country not supported"), "auth"),
    (404, openai("The model `x` does not exist", "model_not_found"), "not_found"),
    (402, openai("Insufficient Balance"), "out_of_credit"),
    (429, openai("You exceeded your current quota", "insufficient_quota"), "out_of_credit"),
    (400, {"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}},
     "out_of_credit"),
    (429, openai("Rate limit reached", "rate_limit_exceeded"), "rate_limited"),
    (429, [{"error": {"code": 429, "message": "You exceeded your current quota, please check your plan and billing "
     "details.", "status": "RESOURCE_EXHAUSTED"}}], "rate_limited"),
    (408, None, "timeout"),
    (504, "<html>", "timeout"),
    (409, openai("conflict"), "server"),
    (425, None, "server"),
    (500, "oops", "server"),
    (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "server"),
    (400, openai("This model's maximum context length is 8192 tokens", "context_length_exceeded"), "context_too_long"),
    (400, {"error": {"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens > 200000"}},
     "context_too_long"),
    (413, "too large", "context_too_long"),
    (400, openai("triggering our content management policy", "content_filter"), "content_policy"),
    (400, {"error": {"code": "x", "message": "filtered", "innererror": {"code": "ResponsibleAIPolicyViolation"}}},
     "content_policy"),
    (400, openai("messages: at least one message is required"), "bad_request"),
    (422, {"detail": "value is not a valid integer"}, "bad_request"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "kind"), CASES)
def test_kinds(status: int, body: Any, kind: str) -> None:
    assert classify(status, body).kind == kind


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (openai("Unsupported parameter: 'max_tokens' is not supported with this model.", "unsupported_parameter",
                "max_tokens"), "max_tokens"),
        (openai("Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is"
                " supported.", "unsupported_value", "temperature"), "temperature"),
        (openai("Unrecognized request argument supplied: top_k"), "top_k"),
        (openai("litellm.UnsupportedParamsError: openai does not support parameters: ['top_p'], for model=o3"),
         "top_p"),
        (openai("O-series models don't support temperature=0.2. Only temperature=1 is supported."), "temperature"),
        (openai("Invalid parameter: 'response_format' of type 'json_schema' is not supported", "x",
                "response_format"), "response_format"),
        (openai("Invalid schema for response_format 'score'"), "response_format"),
        (openai("guided_json is not available on this server"), "response_format"),
        (openai("json_object is not supported"), "response_format"),
    ],
)  # fmt: skip
def test_the_refused_parameter_is_named(body: Any, param: str) -> None:
    error = classify(400, body)
    assert (error.kind, error.param) == ("unsupported_parameter", param)


NOW = datetime(2026, 5, 1, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": format_datetime(NOW + timedelta(seconds=9), usegmt=True)}, 9.0),
        ({"retry-after": format_datetime(NOW - timedelta(seconds=9), usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "6m0s"}, 360.0),
        ({"x-ratelimit-reset-requests": "20ms", "x-ratelimit-remaining-requests": "0",
          "x-ratelimit-reset-tokens": "6m0s", "x-ratelimit-remaining-tokens": "9000"}, 0.02),
        ({"anthropic-ratelimit-requests-reset": "2026-05-01T12:00:30Z"}, 30.0),
        ({"x-ratelimit-reset": str(NOW.timestamp() + 4)}, 4.0),
        ({"x-ratelimit-reset": str(int(NOW.timestamp() * 1000) + 4000)}, 4.0),
    ],
)  # fmt: skip
def test_how_long_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    found = retry_after_seconds(headers, now=NOW.timestamp())
    assert found == (None if seconds is None else pytest.approx(seconds, abs=0.01))


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcdefgh12345678.",
        "Authorization: Bearer abcdefgh12345678",
        "cannot reach https://user:abcdefgh12345678@host/v1",
        "my own abcdefgh12345678 key",
    ],
)
def test_messages_hold_no_credentials(text: str) -> None:
    assert "abcdefgh12345678" not in one_line(text, secrets=["abcdefgh12345678"])


def test_messages_are_one_short_line() -> None:
    line = one_line("a\n b\t" + "c " * 5000)
    assert "\n" not in line
    assert len(line) <= 400
