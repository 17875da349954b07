"""Chat completions: the JSON that OpenAI-compatible servers take and give, validated at the boundary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.foreign_json import read_json
from pipeline.models.faults import classify
from pipeline.models.finish import ending_of
from pipeline.models.http.bodies import tolerant_json
from pipeline.models.redaction import one_line
from pipeline.models.transport import NO_FINISH_REASON, RawEmbeddings, RawReply, TransportError
from pipeline.models.types import Request, Token, Usage

__all__ = ["completion_body", "parse_body", "read_completion", "read_embeddings", "read_service", "read_usage"]

_EVENT_HEAD = 200
_MOST_OTHERS = 20
_COUNTS = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")


def completion_body(model: str, request: Request) -> dict[str, Any]:
    """The body of a chat completion: model, messages and parameters; ``extra_body`` is spread into it."""
    params = {name: value for name, value in request.params.items() if name != "extra_headers"}
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
    if message is None and isinstance(choice, Mapping) and isinstance(choice.get("text"), str):
        message = {"content": choice["text"]}  # a legacy completion
    if not isinstance(message, Mapping):
        raise _invalid("the first choice holds no message")
    finish = choice.get("finish_reason")
    _check_ending(finish)
    served = data.get("model")
    text, thought = _parts(message.get("content"))
    reasoning = [_text(message.get("reasoning_content")) or _text(message.get("reasoning")), thought]
    return RawReply(
        text=text,
        finish_reason=finish if isinstance(finish, str) and finish else NO_FINISH_REASON,
        usage=read_usage(data.get("usage")),
        reasoning="\n".join(part for part in reasoning if part) or None,
        refusal=_text(message.get("refusal")) or None,
        served_model=served if isinstance(served, str) else None,
        service_tier=read_service(data),
        tokens=_tokens(choice.get("logprobs")) if isinstance(choice, Mapping) else (),
    )


def read_service(data: Mapping[str, Any]) -> str | None:
    """The service tier that a reply says it was served by; Anthropic says so within usage."""
    tier = data.get("service_tier") or _mapping(data.get("usage")).get("service_tier")
    return tier if isinstance(tier, str) else None


def _tokens(logprobs: Any) -> tuple[Token, ...]:
    """The tokens of a choice with their log-probabilities; none at all where one of them cannot be read.

    They say how sure the model was and never decide whether a reply is one.
    """
    content = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    if not isinstance(content, list):
        return ()
    tokens = [_token(entry) for entry in content]
    return () if None in tokens else tuple(token for token in tokens if token is not None)


def _token(entry: Any) -> Token | None:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("token"), str):
        return None
    weight = _log_probability(entry.get("logprob"))
    if weight is None:
        return None
    top = entry.get("top_logprobs")
    others = [
        (other["token"], log)
        for other in (top if isinstance(top, list) else ())[:_MOST_OTHERS]
        if isinstance(other, Mapping)
        and isinstance(other.get("token"), str)
        and (log := _log_probability(other.get("logprob"))) is not None
    ]
    return Token(entry["token"], weight, tuple(others))


def _log_probability(value: Any) -> float | None:
    """A log-probability as a provider writes it; OpenAI writes -9999 for what it rounds to nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -1e5 < value <= 1e-6:
        return None
    return min(round(float(value), 6), 0.0)  # what servers compute in single precision has no more digits


def _check_ending(finish: Any) -> None:
    """Refuse what the server itself does not call a reply; a provider behind a router that failed midway, say."""
    word = finish if isinstance(finish, str) and finish else None
    if ending_of(word) == "broken":
        raise TransportError(
            "server", f"the reply ended with {one_line(str(word))!r}, not whole", status=200, maybe_billed=True
        )


def parse_body(raw: bytes, *, secrets: tuple[str, ...] = ()) -> Any:
    """The JSON of a response body, whatever its content type says; an event stream nobody asked for is put together.

    Raises:
        TransportError: it is neither.
    """
    try:
        return tolerant_json(raw)
    except ValueError:
        pass
    if raw[:_EVENT_HEAD].lstrip().startswith((b"data:", b":", b"event:", b"id:")):
        streamed = _from_events(raw.decode("utf-8", "replace"))
        if streamed is not None:
            return streamed
    start = one_line(raw[:80].decode("utf-8", "replace"), secrets=secrets)
    raise TransportError("invalid_body", f"the body is not JSON: {start!r}", status=200, maybe_billed=True)


def _from_events(text: str) -> dict[str, Any] | None:
    """One completion from the chunks of an event stream that was sent to its end; comment lines are no events."""
    content: dict[str, list[str]] = {"content": [], "reasoning_content": [], "reasoning": [], "refusal": []}
    finish, whole, merged, chunks = None, False, {}, 0
    tokens: list[Any] = []
    for line in text.splitlines():
        if not line.startswith("data:"):
            continue
        data = line[5:].strip()
        if data == "[DONE]":
            whole = True
            break
        try:
            chunk = read_json(data)
        except ValueError:
            return None
        if not isinstance(chunk, Mapping):
            return None
        chunks += 1
        merged.update({name: value for name, value in chunk.items() if value is not None and name != "choices"})
        choice = next(iter(chunk.get("choices") or ()), None)
        if not isinstance(choice, Mapping):
            continue
        finish = choice.get("finish_reason") or finish
        weighed = _mapping(choice.get("logprobs")).get("content")
        tokens += weighed if isinstance(weighed, list) else []
        delta = _mapping(choice.get("delta") or choice.get("message"))
        for name, parts in content.items():
            if isinstance(delta.get(name), str):
                parts.append(delta[name])
    if not chunks or not (whole or finish or "error" in merged):
        return None
    if "error" in merged:
        return merged
    message = {name: "".join(parts) or None for name, parts in content.items()}
    choice = {"message": message, "finish_reason": finish, "logprobs": {"content": tokens}}
    return {**merged, "choices": [choice]}


def read_usage(usage: Any) -> Usage | None:
    """Tokens with each counted once, or None where the provider gave none.

    Providers differ in what their counts include. OpenAI's prompt tokens include cached ones and its completion tokens
    include reasoning; Anthropic's input tokens leave cached ones out; some (xAI) leave reasoning out of the completion,
    which shows in the total. What the total holds beyond its parts was generated, whatever the provider calls it.
    """
    if not isinstance(usage, Mapping):
        return None
    prompt_details = _mapping(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
    completion_details = _mapping(usage.get("completion_tokens_details") or usage.get("output_tokens_details"))
    read = _count(usage.get("cache_read_input_tokens"))
    written = _count(usage.get("cache_creation_input_tokens")) or _count(prompt_details.get("cache_creation_tokens"))
    cached = _count(prompt_details.get("cached_tokens")) or read or _count(usage.get("prompt_cache_hit_tokens"))
    reasoning = _count(completion_details.get("reasoning_tokens")) or _count(usage.get("reasoning_tokens"))
    if "prompt_tokens" in usage or "completion_tokens" in usage:
        prompt, completion = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    elif "input_tokens" in usage or "output_tokens" in usage:
        prompt, completion = _count(usage.get("input_tokens")), _count(usage.get("output_tokens"))
        if not prompt_details:
            prompt += read + written
    else:
        return None
    if not (prompt or completion) or any(_senseless(usage.get(name)) for name in _COUNTS):
        return None  # unknown, and not free
    total = _count(usage.get("total_tokens"))
    if total > prompt + completion:
        completion = total - prompt
    elif reasoning > completion:
        completion += reasoning
    cached = min(cached, prompt)
    return Usage(prompt, completion, cached, min(reasoning, completion), min(written, prompt - cached))


def _senseless(value: Any) -> bool:
    """Whether a count is there and is none."""
    return value is not None and _count(value) == 0 and str(value).strip() not in ("0", "0.0")


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
    """The text of a field: a string, or the text parts of a list."""
    return _parts(content)[0]


def _parts(content: Any) -> tuple[str, str]:
    """Text and thought of a message's content: a string, or a list of parts of either kind.

    Raises:
        TransportError: the content is something else, or holds an image, which is no answer to any of our questions.
    """
    if content is None:
        return "", ""
    if isinstance(content, str):
        return content, ""
    if isinstance(content, Mapping) or not isinstance(content, Sequence):
        raise _invalid(f"the content is a {type(content).__name__}, not text")
    text, thought = [], []
    for part in content:
        if isinstance(part, str):
            text.append(part)
        if not isinstance(part, Mapping):
            continue
        kind = str(part.get("type") or "text")
        if "image" in kind or "audio" in kind:
            raise _invalid(f"the content holds a part of type {one_line(kind)!r}, not only text")
        if kind in ("thinking", "reasoning", "redacted_thinking", "thought") or part.get("thought") is True:
            thought.append(_thought(part))
        elif isinstance(part.get("text"), str):
            text.append(part["text"])
    return "".join(text), "".join(thought)


def _thought(part: Mapping[str, Any]) -> str:
    for name in ("thinking", "reasoning", "text", "summary"):
        if part.get(name):
            return _text(part[name]) if not isinstance(part[name], Mapping) else ""
    return ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _count(value: Any) -> int:
    if isinstance(value, str) and len(value) < 20 and value.strip().isascii() and value.strip().isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e12:
        return 0
    return int(value)
