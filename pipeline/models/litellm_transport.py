"""LiteLLMTransport: every provider that LiteLLM knows, with its own retries, prices and .env loading off."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pipeline.errors import ConfigError
from pipeline.models.completions import read_completion, read_embeddings, read_service
from pipeline.models.finish import ending_of
from pipeline.models.http.bodies import tolerant_json
from pipeline.models.identity import canonical_json
from pipeline.models.litellm_errors import from_litellm
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import RawEmbeddings, RawReply
from pipeline.models.types import Request

_ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else the import fetches a price list over the network
    "LITELLM_OFFLINE_MODE": "true",
    "LITELLM_MODE": "PRODUCTION",  # else the import loads a .env of the working directory
    "LITELLM_LOG": "ERROR",
    "AIOHTTP_CONNECTOR_LIMIT": "4096",  # 0 would mean 100
    "AIOHTTP_CONNECTOR_LIMIT_PER_HOST": "4096",
}
_LOGGERS = ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy", "openai", "httpx", "httpcore", "aiohttp")
_LITELLM_TIMEOUT_S = 600.0
"""What LiteLLM allows between two bytes unless told otherwise."""

_NO_KEY = "none"
"""What local servers get where no key is named: LiteLLM would otherwise send the key of another provider."""

_FREE = {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
"""Spares LiteLLM its own price look-up, a quarter of a call's CPU; costs are computed from our prices."""


def import_litellm() -> Any:
    """The litellm module, imported with the settings that it only reads then. Takes seconds: use a thread."""
    os.environ.update(_ENVIRONMENT)
    import litellm

    litellm.suppress_debug_info = True
    # Bodies of another shape than the SDK's are read below it; its complaints about them are no news for a terminal.
    warnings.filterwarnings("ignore", message="Pydantic serializer warnings", category=UserWarning)
    litellm.drop_params = False
    litellm.telemetry = False
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    return litellm


class LiteLLMTransport:
    """Calls through ``litellm.acompletion``; imported at the first call, in a thread.

    ``sent`` of a reply is learnt once per entry and set of parameters, through LiteLLM's own pre-call hook.
    """

    def __init__(self) -> None:
        self._litellm: Any = None
        self._importing: asyncio.Task[Any] | None = None
        self._checked: dict[str, str] = {}
        self._sent: dict[tuple[str, str], Mapping[str, Any]] = {}

    async def open(self) -> None:
        """Import LiteLLM."""
        if self._litellm is None:
            self._litellm = await asyncio.to_thread(import_litellm)
        from pipeline.models.http.litellm_client import install_clients

        install_clients()

    async def close(self) -> None:
        """Stop LiteLLM's logging task and close its clients."""
        if self._litellm is None:
            return
        from litellm.litellm_core_utils.logging_worker import GLOBAL_LOGGING_WORKER

        from pipeline.models.http.litellm_client import close_clients

        await GLOBAL_LOGGING_WORKER.stop()
        await close_clients()
        await self._litellm.close_litellm_async_clients()
        clients = getattr(self._litellm, "in_memory_llm_clients_cache", None)
        if clients is not None and hasattr(clients, "cache_dict"):
            clients.cache_dict.clear()  # clients are bound to the loop that ends here
            getattr(clients, "ttl_dict", {}).clear()

    async def send(self, spec: ModelSpec, request: Request, *, timeout_s: float) -> RawReply:
        """One attempt; see :class:`pipeline.models.transport.Transport`."""
        self._check_provider(spec)
        arguments = self._arguments(spec, request.params)
        shape = (spec.name, canonical_json(request.params))
        seen: list[Mapping[str, Any]] = []
        bodies: list[Any] = []

        def listen(details: Mapping[str, Any]) -> None:
            """Told before the call what is sent, and after it what the server sent."""
            if shape not in self._sent:
                seen.append(details.get("additional_args") or {})
            if details.get("log_event_type") == "post_api_call":
                bodies.append(details.get("original_response"))

        arguments["logger_fn"] = listen
        messages = [dict(message) for message in request.messages]
        try:
            response = await self._litellm.acompletion(
                model=spec.model, messages=messages, **{**request.params, **arguments}
            )
        except Exception as error:
            body = _body_of(bodies)
            if body is None or (not body.get("choices") and "error" not in body):
                raise from_litellm(error, spec.secrets) from None
            return read_completion(body, secrets=spec.secrets)  # a whole reply that LiteLLM cannot take
        if shape not in self._sent:
            self._sent[shape] = _difference(request.params, seen)
        return self._read(response, _body_of(bodies), self._sent[shape], spec)

    async def embed(
        self, spec: ModelSpec, texts: Sequence[str], params: Mapping[str, Any], *, timeout_s: float
    ) -> RawEmbeddings:
        """One attempt to embed ``texts``."""
        self._check_provider(spec)
        try:
            response = await self._litellm.aembedding(
                model=spec.model, input=list(texts), **{**params, **self._arguments(spec, params)}
            )
        except Exception as error:
            raise from_litellm(error, spec.secrets) from None
        rows = [row if isinstance(row, Mapping) else row.model_dump() for row in response.data]
        usage = response.usage.model_dump() if response.usage is not None else None
        return read_embeddings({"data": rows, "usage": usage, "model": response.model}, len(texts))

    def _arguments(self, spec: ModelSpec, params: Mapping[str, Any]) -> dict[str, Any]:
        """What every call carries besides its own parameters; the two zeros are LiteLLM's and the SDK's retries."""
        arguments: dict[str, Any] = {"num_retries": 0, "max_retries": 0}
        if spec.attempt_timeout_s > _LITELLM_TIMEOUT_S:
            # Only then: naming a timeout costs a millisecond a call, and the gateway bounds every attempt itself.
            arguments["timeout"] = spec.attempt_timeout_s
        if spec.provider != "sim":
            arguments |= _FREE
        if spec.api_base is not None:
            arguments["api_base"] = spec.api_base
            arguments["api_key"] = spec.api_key or _NO_KEY
        elif spec.api_key:
            arguments["api_key"] = spec.api_key
        headers = {**(params.get("extra_headers") or {}), **spec.headers}
        if headers:
            arguments["extra_headers"] = headers
        return arguments

    def _check_provider(self, spec: ModelSpec) -> None:
        """Before the first call of an entry: does LiteLLM know the provider?

        Raises:
            ConfigError: names the entry and the model string.
        """
        if self._checked.get(spec.name) == spec.model:
            return
        try:
            self._litellm.get_llm_provider(model=spec.model, api_base=spec.api_base)
        except Exception:
            raise ConfigError(
                f"models.{spec.name}: no provider for {spec.model!r}; write it as provider/model, as in openai/gpt-5.2"
            ) from None
        self._checked[spec.name] = spec.model

    def _read(
        self, response: Any, body: Mapping[str, Any] | None, sent: Mapping[str, Any], spec: ModelSpec
    ) -> RawReply:
        """What the server sent where it speaks OpenAI's form; else LiteLLM's translation, with the server's ending.

        LiteLLM cuts thought out of the content, calls unknown endings ``stop`` and makes usage up: the body below it
        is read wherever it is there.
        """
        if body is None or "choices" not in body:
            body = _translated(response, body)
        raw = read_completion(body, secrets=spec.secrets)
        return replace(raw, sent=dict(sent)) if sent else raw


def _body_of(bodies: list[Any]) -> Mapping[str, Any] | None:
    """The server's body as LiteLLM logs it, if it is an object."""
    body = bodies[-1] if bodies else None
    if isinstance(body, str | bytes):
        try:
            body = tolerant_json(body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass"))
        except ValueError:
            return None
    return body if isinstance(body, Mapping) else None


def _translated(response: Any, body: Mapping[str, Any] | None) -> dict[str, Any]:
    """LiteLLM's response object in OpenAI's form; the word for its end is the server's own where it can be seen."""
    choices = []
    for choice in list(response.choices or ())[:1]:
        message = choice.message
        fields = getattr(message, "provider_specific_fields", None) or {}
        content = {
            "content": message.content,
            "reasoning_content": getattr(message, "reasoning_content", None) or fields.get("reasoning_content"),
            "refusal": getattr(message, "refusal", None) or fields.get("refusal"),
        }
        logprobs = getattr(choice, "logprobs", None)
        choices.append(
            {
                "message": content,
                "finish_reason": _ending(body) or choice.finish_reason,
                "logprobs": logprobs if logprobs is None else logprobs.model_dump(),
            }
        )
    tier = getattr(response, "service_tier", None) or read_service(body or {})
    usage = _usage(getattr(response, "usage", None))
    return {"choices": choices, "usage": usage, "model": response.model, "service_tier": tier}


def _ending(body: Mapping[str, Any] | None) -> str | None:
    """The word for the end in the bodies of Anthropic, Gemini and Bedrock."""
    if body is None:
        return None
    candidates = body.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    words = [body.get("stop_reason"), body.get("stopReason")]
    words += [first.get("finishReason")] if isinstance(first, Mapping) else []
    return next((word for word in words if isinstance(word, str) and ending_of(word) != "broken"), None)


def _usage(usage: Any) -> dict[str, Any] | None:
    """The counts as a mapping; None where LiteLLM filled zeros in for a provider that gave none."""
    if usage is None or not (usage.prompt_tokens or usage.completion_tokens):
        return None
    details = {
        name: vars(value)
        for name in ("prompt_tokens_details", "completion_tokens_details")
        if (value := getattr(usage, name, None)) is not None
    }
    # LiteLLM adds reasoning to completion_tokens itself where a provider leaves it out; its total then agrees.
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "cache_read_input_tokens": getattr(usage, "cache_read_input_tokens", None)
        or getattr(usage, "_cache_read_input_tokens", None),
        "cache_creation_input_tokens": getattr(usage, "cache_creation_input_tokens", None)
        or getattr(usage, "_cache_creation_input_tokens", None),
        **details,
    }


def _difference(asked: Mapping[str, Any], seen: list[Any]) -> Mapping[str, Any]:
    """The parameters really sent, if they differ from those asked for; else nothing."""
    bodies = [details.get("complete_input_dict") for details in seen]
    body = next((body for body in bodies if body), None)
    if isinstance(body, str | bytes):
        try:
            body = json.loads(body)
        except ValueError:
            return {}
    if not isinstance(body, Mapping):
        return {}
    sent = {
        name: value
        for name, value in body.items()
        if name not in ("model", "messages", "contents", "system", "prompt", "stream", "extra_headers", "timeout")
        and not (name == "extra_body" and not value)
    }
    asked = {name: value for name, value in asked.items() if name != "extra_headers"}
    try:
        return {} if canonical_json(sent) == canonical_json(asked) else json.loads(canonical_json(sent))
    except (TypeError, ValueError):
        return {}
