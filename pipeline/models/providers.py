"""Providers: which one a model string names, and whether its key is there, before anything is sent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

from pipeline.credentials import clean_key, shown_variable
from pipeline.errors import ConfigError
from pipeline.models.redaction import remember_secrets
from pipeline.models.spec import ModelSpec

KEY_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "ai21": ("AI21_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "anyscale": ("ANYSCALE_API_KEY",),
    "azure": ("AZURE_API_KEY",),
    "azure_ai": ("AZURE_AI_API_KEY",),
    "cerebras": ("CEREBRAS_API_KEY",),
    "codestral": ("CODESTRAL_API_KEY",),
    "cohere": ("COHERE_API_KEY", "CO_API_KEY"),
    "cohere_chat": ("COHERE_API_KEY", "CO_API_KEY"),
    "databricks": ("DATABRICKS_API_KEY",),
    "deepinfra": ("DEEPINFRA_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "fireworks_ai": ("FIREWORKS_API_KEY", "FIREWORKS_AI_API_KEY", "FIREWORKSAI_API_KEY", "FIREWORKS_AI_TOKEN"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "huggingface": ("HF_TOKEN", "HUGGINGFACE_API_KEY"),
    "mistral": ("MISTRAL_API_KEY",),
    "moonshot": ("MOONSHOT_API_KEY",),
    "nebius": ("NEBIUS_API_KEY",),
    "nvidia_nim": ("NVIDIA_NIM_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY", "OR_API_KEY"),
    "perplexity": ("PERPLEXITYAI_API_KEY", "PERPLEXITY_API_KEY"),
    "replicate": ("REPLICATE_API_KEY", "REPLICATE_API_TOKEN"),
    "sambanova": ("SAMBANOVA_API_KEY",),
    "together_ai": ("TOGETHERAI_API_KEY", "TOGETHER_AI_TOKEN", "TOGETHER_API_KEY"),
    "xai": ("XAI_API_KEY",),
}
"""Provider → the variables any one of which holds its key."""


def environment_base(spec: ModelSpec) -> str | None:
    """The base URL that LiteLLM takes from the environment for an entry without ``api_base``, or None.

    It decides where calls go, so it is part of their identity.
    """
    if spec.transport != "litellm" or spec.api_base is not None:
        return None
    name = spec.provider.upper()
    return os.environ.get(f"{name}_BASE_URL") or os.environ.get(f"{name}_API_BASE") or None


def read_key(place: str, variable: str) -> str | None:
    """The key in a variable, clean; None where the variable is not set or empty.

    Args:
        place: what to call the entry in messages, as ``models.gpt``.
        variable: its name.

    Raises:
        ConfigError: the value cannot go into a header; names the variable, never the value.
    """
    try:
        return clean_key(os.environ.get(variable, ""), variable) or None
    except ValueError as error:
        raise ConfigError(f"{place}: {error}") from None


def with_credentials(spec: ModelSpec, *, needed: bool = True) -> ModelSpec:
    """The entry with its key and secret headers from the environment of this process.

    An entry over LiteLLM that names no variable gets the key that LiteLLM would take, so that it is clean, and known
    where a server echoes it.

    Raises:
        ConfigError: a variable that is needed is not set, or its value cannot go into a header.
    """
    place = f"models.{spec.name}"
    if spec.transport == "simulated" or spec.provider == "sim":
        return spec
    key = spec.api_key
    headers: dict[str, str] = {}
    try:
        for header, variable in (("", spec.api_key_env), *spec.headers_env.items()):
            value = read_key(place, variable) if variable is not None else None
            if value is None and variable is not None and needed:
                raise ConfigError(
                    f"{place}: the environment variable {shown_variable(variable)} is not set; set it, or put it into"
                    " .env"
                )
            if value is not None and header:
                headers[header] = value
            elif not header:
                key = value or key
        if key is None and spec.transport == "litellm" and spec.api_base is None:
            for variable in KEY_VARIABLES.get(spec.provider, ()):
                key = read_key(place, variable)
                if key is not None:
                    spec = replace(spec, api_key_env=variable)  # a worker reads it where it is
                    break
    except ConfigError:
        if needed:
            raise
        return spec
    remember_secrets((*((key,) if key else ()), *headers.values()))
    return replace(spec, api_key=key, headers=headers)


def without_credentials(spec: ModelSpec) -> ModelSpec:
    """The entry as it may leave this process: no key, no secret header, but the names of their variables.

    An entry whose key stands in no variable keeps it: it was given to this process in code, for its own use.
    """
    key = spec.api_key if spec.api_key_env is None else None
    return replace(spec, api_key=key, headers={} if spec.headers_env else spec.headers)


def check_credentials(specs: Mapping[str, ModelSpec]) -> None:
    """Find a missing key before the first call.

    Raises:
        ConfigError: names the model entry and the variable to set, in the environment or in ``.env``.
    """
    for name, spec in specs.items():
        if spec.transport == "simulated" or spec.provider == "sim":
            continue
        if spec.api_key_env and not spec.api_key:
            raise ConfigError(
                f"models.{name}: the key variable {shown_variable(spec.api_key_env)} is not set; set it in the"
                " environment or in .env"
            )
        if spec.transport == "litellm" and not spec.api_key and spec.api_base is None:
            variables = KEY_VARIABLES.get(spec.provider)
            if variables and not any(os.environ.get(variable) for variable in variables):
                raise ConfigError(
                    f"models.{name}: {spec.model} needs a key: set {variables[0]} in the environment or in .env"
                )
