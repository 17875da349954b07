"""A server that points elsewhere never gets a key carried there, over any transport, for any family of providers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_server import FaultServer

from pipeline.models import RunStopped
from tests.attacks.desk import KEY, ask

FAMILIES = [
    ("direct", "openai/tester", ""),
    ("litellm", "openai/tester", ""),
    ("litellm", "anthropic/claude-x", ""),
    ("litellm", "gemini/gemini-x", ""),
    ("litellm", "mistral/mistral-x", ""),
    ("litellm", "openrouter/some/model", ""),
    ("litellm", "azure/deployed", ""),
    ("litellm", "cohere_chat/command-x", ""),
]


@pytest.fixture
def servers() -> Iterator[tuple[FaultServer, FaultServer]]:
    """The one that redirects, and the one where the key would land."""
    with FaultServer() as asked, FaultServer(keep_bodies=True) as thief:
        yield asked, thief


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize(("transport", "model", "path"), FAMILIES[:3])
async def test_no_status_of_a_redirect_is_followed(
    servers: tuple[FaultServer, FaultServer], tmp_path: Path, transport: str, model: str, path: str, status: int
) -> None:
    await _refused(servers, tmp_path, transport, model, status)


@pytest.mark.parametrize(("transport", "model", "path"), FAMILIES[3:])
async def test_no_family_of_providers_follows(
    servers: tuple[FaultServer, FaultServer], tmp_path: Path, transport: str, model: str, path: str
) -> None:
    await _refused(servers, tmp_path, transport, model, 307)


async def _refused(
    servers: tuple[FaultServer, FaultServer], folder: Path, transport: str, model: str, status: int
) -> None:
    asked, thief = servers
    asked.fail("redirect", to=f"{thief.url}/chat/completions?key={KEY}", status=status)
    with pytest.raises(RunStopped) as stopped:
        await ask(asked.url, transport, folder, model=model)
    said = str(stopped.value)
    assert f"127.0.0.1:{thief.port}" in said
    assert "redirects" in said
    assert KEY not in said
    assert asked.seen.requests == 1
    assert thief.seen.requests == 0
    assert thief.headers == []
