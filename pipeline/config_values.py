"""Single values of a configuration: YAML read without surprises, addresses, parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import yaml

from pipeline.credentials import (
    looks_like_a_key,
    named_credential,
    names_a_credential,
    names_a_credential_parameter,
)

_OURS: Mapping[str, str] = {
    "model": "it is the key model of the entry",
    "messages": "the prompts make them",
    "stream": "replies are read whole",
    "n": "every draw is a call of its own",
    "response_format": "the reply's schema is sent as far as the model takes it",
    "api_key": "name the variable that holds it with api_key_env",
    "api_base": "it is a key of the entry",
    "base_url": "it is the key api_base of the entry",
    "headers": "they are extra_headers, or headers_env where a value is secret",
    "timeout": "it is the key attempt_timeout_s of the configuration",
    "num_retries": "retries are ours alone; see max_attempts",
    "max_retries": "retries are ours alone; see max_attempts",
}


_MEND = "name the variable that holds it with api_key_env, or with headers_env: {X-Header: VARIABLE}"
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_OUR_HEADERS = frozenset({"host", "content-length", "content-type", "content-encoding", "accept-encoding", "connection",
                          "transfer-encoding", "expect", "upgrade", "te", "trailer", "cookie"})  # fmt: skip


def check_params(params: Mapping[str, Any]) -> None:
    """Refuse what is not a sampling parameter, and credentials, which the run would keep and the cache would hold.

    Raises:
        ValueError: says which, and where it belongs.
    """
    place = named_credential(params)
    if place is not None:
        raise ValueError(f"{place} holds a credential, which would be kept with the run; {_MEND}")
    reserved = [name for name in params if name in _OURS]
    if reserved:
        raise ValueError(f"params may not contain {', '.join(sorted(reserved))}: {_OURS[sorted(reserved)[0]]}")
    headers = params.get("extra_headers")
    if headers is not None:
        if not isinstance(headers, Mapping) or not all(isinstance(value, str) for value in headers.values()):
            raise ValueError("params.extra_headers must map names of headers to texts")
        for name, value in headers.items():
            check_header(name)
            if not value.isprintable() or not value.isascii():
                raise ValueError(f"params.extra_headers.{name} holds characters that no header can carry")


def check_header(name: str) -> None:
    """Refuse what is no name of a header, or one that the transport itself must write.

    Raises:
        ValueError: says which.
    """
    if not _HEADER.fullmatch(name) or name.lower() in _OUR_HEADERS:
        raise ValueError(f"{name[:40]!r} is not a header that an entry can set")


def check_model(model: str) -> None:
    """Refuse a credential in a model string: it is in the identity of every request and in every table.

    Raises:
        ValueError: it holds one; does not repeat it.
    """
    pairs = re.findall(r"[?&;,]\s*([A-Za-z_-]+)\s*[=:]", model)
    if looks_like_a_key(model) or any(names_a_credential_parameter(name) for name in pairs):
        raise ValueError(f"model holds a credential, which would be kept with the run; {_MEND}")


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
        raise ValueError(f"api_base holds credentials, which would be kept with the run; {_MEND}")
    if parts.fragment:
        raise ValueError("api_base has a part after '#', which is never sent; leave it out (is it a credential?)")
    if looks_like_a_key(url) or _credential_in_path(parts.path):
        raise ValueError(f"api_base holds a credential in its path, which would be kept with the run; {_MEND}")


def _credential_in_path(path: str) -> bool:
    """Whether a path names a credential: ``/token/abc…``, ``/v1;key=abc``, ``/api_key=abc``."""
    steps = [step for step in re.split(r"[/;&,]", unquote(path)) if step]
    for place, step in enumerate(steps):
        name, equals, value = step.partition("=")
        follows = steps[place + 1] if place + 1 < len(steps) else ""
        if names_a_credential_parameter(name) and ((equals and value) or re.search(r"(?=.*\d).{6}|.{16}", follows)):
            return True
    return False


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


_MOST_VALUES = 1_000_000


def read_yaml(text: str) -> Any:
    """The document as plain values.

    Raises:
        yaml.YAMLError: it is not YAML, gives a key twice, is nested too deep, or unfolds to a million values.
    """
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        if _unfolded(node, {}) > _MOST_VALUES:
            raise yaml.constructor.ConstructorError(None, None, "its aliases unfold to more than a million values")
        return loader.construct_document(node)
    except RecursionError:
        raise yaml.constructor.ConstructorError(None, None, "nested too deep") from None
    except ValueError as error:  # a whole number of thousands of digits, a date that is none
        raise yaml.constructor.ConstructorError(None, None, f"a value cannot be read: {str(error)[:80]}") from None
    finally:
        loader.dispose()


def _unfolded(node: yaml.Node, sizes: dict[int, int]) -> int:
    """How many values a node stands for once its aliases are written out: nine lines of nine stand for 9⁹."""
    size = sizes.get(id(node))
    if size is not None:
        return size
    sizes[id(node)] = _MOST_VALUES + 1  # met again within itself: without end
    children: list[yaml.Node] = []
    if isinstance(node, yaml.MappingNode):
        children = [child for pair in node.value for child in pair]
    elif isinstance(node, yaml.SequenceNode):
        children = node.value
    size = 1
    for child in children:
        size = min(size + _unfolded(child, sizes), _MOST_VALUES + 1)
    sizes[id(node)] = size
    return size
