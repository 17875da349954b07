"""Chat completions: the JSON that OpenAI-compatible servers take and give, validated at the boundary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.models.faults import classify
from pipeline.models.redaction import one_line
from pipeline.models.transport import RawEmbeddings, RawReply, TransportError
from pipeline.models.types import Request, Usage

__all__ = ["completion_body", "read_completion", "read_embeddings", "read_usage"]


def completion_body(model: str, request: Request) -> dict[str, Any]:
    """The body of a chat completion: model, messages and every parameter; ``extra_body`` is spread into it."""
    params = dict(request.params)
    extra = params.pop("extra_body", None)
    body: dict[str, Any] = {"model": model, "messages": [dict(message) for message in request.messages], **params}
    if isinstance(extra, Mapping):
        body.update(extra)
    return body


def read_completion(data: Any, *, secrets: tuple[str, ...] = ()) -> RawReply:
    """The reply in a response body with status 200.

    Raises:
        TransportError: an error object inside the 200, no choices, or an envelope of another shape.
    """
    if not isinstance(data, Mapping):
        raise _invalid(f"expected a JSON object, got {type(data).__name__}")
    choices = data.get("choices")
    error = data.get("error")
    if error and not choices:
        code = str(error.get("code")) if isinstance(error, Mapping) else ""
        status = int(code) if code.isdigit() and 400 <= int(code) < 600 else 500
        raise classify(status, data, secrets=secrets)
    if not isinstance(choices, Sequence) or isinstance(choices, str) or not choices:
        raise _invalid("the response holds no choices")
    choice = choices[0]
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(message, Mapping):
        raise _invalid("the first choice holds no message")
    finish = choice.get("finish_reason")
    if finish == "error":  # a provider behind a router failed midway
        raise TransportError("server", "the provider ended the reply with an error", status=200, maybe_billed=True)
    served = data.get("model")
    return RawReply(
        text=_text(message.get("content")),
        finish_reason=finish if isinstance(finish, str) and finish else "unknown",
        usage=read_usage(data.get("usage")),
        reasoning=_text(message.get("reasoning_content") or message.get("reasoning")) or None,
        refusal=_text(message.get("refusal")) or None,
        served_model=served if isinstance(served, str) else None,
    )


def read_usage(usage: Any) -> Usage | None:
    """Tokens with each counted once, or None where the provider gave none.

    Providers differ in what their counts include. OpenAI's prompt tokens include cached ones and its completion tokens
    include reasoning; Anthropic's input tokens leave cached ones out; some (xAI) leave reasoning out of the completion,
    which shows in the total.
    """
    if not isinstance(usage, Mapping):
        return None
    prompt_details = _mapping(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
    completion_details = _mapping(usage.get("completion_tokens_details") or usage.get("output_tokens_details"))
    read = _count(usage.get("cache_read_input_tokens"))
    cached = _count(prompt_details.get("cached_tokens")) or read or _count(usage.get("prompt_cache_hit_tokens"))
    reasoning = _count(completion_details.get("reasoning_tokens")) or _count(usage.get("reasoning_tokens"))
    if "prompt_tokens" in usage or "completion_tokens" in usage:
        prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    elif "input_tokens" in usage or "output_tokens" in usage:
        prompt, completion = _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))
        if not prompt_details:
            prompt += read + _count(usage.get("cache_creation_input_tokens"))
    else:
        return None
    if not prompt and not completion:  # nothing that can be read: unknown, and not free
        return None
    total = _count(usage.get("total_tokens"))
    if reasoning and (reasoning > completion or total == prompt + completion + reasoning):
        completion += reasoning
    return Usage(prompt, completion, min(cached, prompt), min(reasoning, completion))


def read_embeddings(data: Any, expected: int) -> RawEmbeddings:
    """The vectors in a response of ``/embeddings``, in the order of the texts.

    Raises:
        TransportError: not as many vectors as texts, or not numbers.
    """
    rows = data.get("data") if isinstance(data, Mapping) else None
    if not isinstance(rows, Sequence) or len(rows) != expected:
        raise _invalid(f"expected {expected} embeddings")
    vectors: list[tuple[float, ...] | None] = [None] * expected
    for place, row in enumerate(rows):
        try:
            index = row.get("index", place)
            vectors[place if index is None else int(index)] = tuple(float(value) for value in row["embedding"])
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            raise _invalid("an embedding is not a list of numbers") from None
    if any(vector is None or not vector for vector in vectors):
        raise _invalid("an embedding is missing")
    usage = read_usage(data.get("usage")) or Usage()
    return RawEmbeddings(tuple(vector for vector in vectors if vector is not None), usage, data.get("model"))


def _invalid(message: str) -> TransportError:
    return TransportError("invalid_body", one_line(message), status=200, maybe_billed=True)


def _text(content: Any) -> str:
    """The text of a message's content: a string, or the text parts of a list."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "".join(part for part in parts if isinstance(part, str))
    raise _invalid(f"the content is a {type(content).__name__}, not text")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        return 0
    return int(value)
