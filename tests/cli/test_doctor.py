"""`auxeval doctor`: one cheap call to every model, of the kind that a run would make."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fault_server import FaultServer

from pipeline.cli import main

CONFIG = """\
schema: 1
name: d
benchmark: {{preset: embedded, limit: 12}}
models:
  a: {{model: openai/a, api_base: "{url}", transport: direct, api_key_env: TEST_KEY}}
  w: {{model: sim/aux-a}}
  vectors: {{model: openai/v, api_base: "{url}", transport: direct, api_key_env: TEST_KEY}}
roles: {{targets: [a], auxiliary: [w]}}
design: {{labeled: 6, algorithm: features, embedding: {embedding}}}
estimate: [naive, one_step]
"""


@pytest.mark.parametrize(("embedding", "embedded"), [("vectors", 1), ("a", 0)])
def test_a_model_that_only_embeds_is_asked_to_embed(
    embedding: str, embedded: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TEST_KEY", "k")
    with FaultServer(keep_bodies=True) as server:
        Path("c.yaml").write_text(CONFIG.format(url=server.url, embedding=embedding))
        with pytest.raises(SystemExit) as caught:
            main(["doctor", "c.yaml", "--json"])
        requests, chats = server.seen.requests, sum("messages" in body for body in server.bodies)
    document = json.loads(capsys.readouterr().out)
    assert not caught.value.code, document
    assert (requests, chats) == (1 + embedded, 1)
    details = {check["check"]: check["detail"] for check in document["checks"]}
    assert "answered in" in details["model a"]
    assert ("embedded in" in details.get("model vectors", "")) == bool(embedded)
