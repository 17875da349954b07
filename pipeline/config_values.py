"""Single values of a configuration: YAML read without surprises, addresses, parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import yaml

from pipeline.credentials import names_a_credential

__all__ = ["check_address", "check_params", "read_yaml"]

_OURS: Mapping[str, str] = {
    "model": "it is the key model of the entry",
    "messages": "the prompts make them",
    "stream": "replies are read whole",
    "n": "every draw is a call of its own",
    "response_format": "the reply's schema is sent as far as the model takes it",
    "api_key": "name the variable that holds it with api_key_env",
    "api_base": "it is a key of the entry",
    "base_url": "it is the key api_base of the entry",
    "timeout": "it is the key attempt_timeout_s of the configuration",
    "num_retries": "retries are ours alone; see max_attempts",
    "max_retries": "retries are ours alone; see max_attempts",
}


def check_params(params: Iterable[str]) -> None:
    """Refuse what is not a sampling parameter.

    Raises:
        ValueError: says which, and where it belongs.
    """
    reserved = [name for name in params if name in _OURS]
    if reserved:
        raise ValueError(f"params may not contain {', '.join(sorted(reserved))}: {_OURS[sorted(reserved)[0]]}")


def check_address(url: str) -> None:
    """Refuse a base URL that no call could reach, or one with credentials: the configuration is kept with the run.

    Raises:
        ValueError: says what is wrong with it.
    """
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError as error:
        raise ValueError(f"api_base is not a URL: {error}") from None
    if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
        raise ValueError(f"api_base must start with http:// or https:// and name a host, got {url[:60]!r}")
    query = parse_qsl(parts.query, keep_blank_values=True)
    if parts.username or parts.password or any(names_a_credential(name) for name, _ in query):
        raise ValueError("api_base holds credentials, which would be kept with the run; use api_key_env")


class _Loader(yaml.SafeLoader):
    """YAML as people mean it: a key given twice is an error, and 1e-3 is a number (YAML 1.1 makes it text)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is not None and key != "<<" and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {str(key)[:40]!r} stands there twice", key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


def read_yaml(text: str) -> Any:
    """The document as plain values.

    Raises:
        yaml.YAMLError: it is not YAML, or gives a key twice.
    """
    return yaml.load(text, Loader=_Loader)
