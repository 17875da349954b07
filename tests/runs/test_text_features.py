"""Algorithm 1 in whole runs: with vectors by a model behind the gateway, cached and replayed like every other call."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import pipeline
from pipeline.errors import ConfigError, InputError, StoppedEarly
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import RawEmbeddings, RawReply, TransportError
from pipeline.models.types import Request, Usage


class Embeddings:
    """An embedding endpoint: counts letters; fails for good on texts that hold ``refused``."""

    def __init__(self, refused: str | None = None) -> None:
        self.refused = refused
        self.asked: list[str] = []

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def send(self, spec: ModelSpec, request: Request, *, timeout_s: float) -> RawReply:
        raise TransportError("bad_request", "this model does not chat")

    async def embed(
        self, spec: ModelSpec, texts: Sequence[str], params: Mapping[str, Any], *, timeout_s: float
    ) -> RawEmbeddings:
        assert dict(params) == {"dimensions": 5}
        self.asked += texts
        if self.refused is not None and any(self.refused in text for text in texts):
            raise TransportError("bad_request", "refused by the provider", status=400)
        vectors = tuple(tuple(float(text.count(letter)) for letter in "eats1") for text in texts)
        return RawEmbeddings(vectors, Usage(prompt=7, completion=0))


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "unused")


def configuration(**design: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "name": "text",
        "benchmark": {"preset": "embedded", "limit": 14},
        "models": {
            "vectors": {
                "model": "openai/vectors",
                "params": {"dimensions": 5, "temperature": 0.5},
                "price": {"input_per_million": 1000.0, "output_per_million": 0.0},
            }
        },
        "roles": {"targets": ["sim/strong", "sim/weak"], "auxiliary": ["sim/aux-a", "sim/aux-b"]},
        "design": {"labeled": 8, "draws": 2, "algorithm": "features", **design},
        "estimate": ["naive", "one_step"],
    }


def run(folder: Path, transport: Embeddings, **design: Any) -> pipeline.RunResult:
    return pipeline.run(
        configuration(**design),
        run_id="text",
        runs_dir=folder / "runs",
        cache_dir=folder / "cache",
        transports={"litellm": transport},
        yes=True,
        quiet=True,
    )


def test_vectors_are_asked_once_cached_counted_and_replayed(tmp_path: Path) -> None:
    endpoint = Embeddings()
    first = run(tmp_path, endpoint, embedding="vectors")
    assert first.state == "done"
    assert len(endpoint.asked) == len(set(endpoint.asked)) > 14
    estimate = first.estimates["sim/strong"]["one_step"]
    assert estimate.diagnostics["draws"] == 2
    assert "one_step_pool" in first.estimates["sim/weak"]
    calls = [json.loads(line) for line in (first.path / "calls.jsonl").read_text().splitlines()]
    embedded = [call for call in calls if call["stage"] == "embedding"]
    assert len(embedded) == len(endpoint.asked)
    assert embedded[0]["tokens"]["prompt"] == 7
    assert embedded[0]["cost_usd"] == pytest.approx(0.007)

    again = pipeline.replay(first.path, runs_dir=tmp_path / "runs", cache_dir=tmp_path / "cache")
    assert again.manifest["identical"]
    assert (again.path / "estimates.json").read_bytes() == (first.path / "estimates.json").read_bytes()

    silent = Embeddings()
    other = pipeline.run(
        configuration(embedding="vectors"),
        run_id="second",
        runs_dir=tmp_path / "runs",
        cache_dir=tmp_path / "cache",
        transports={"litellm": silent},
        yes=True,
        quiet=True,
    )
    assert silent.asked == []
    assert other.estimates["sim/strong"]["one_step"] == estimate


def test_a_text_that_cannot_be_embedded_stops_the_run_so_that_it_can_be_resumed(tmp_path: Path) -> None:
    with pytest.raises(StoppedEarly, match="could not be embedded by vectors: refused"):
        run(tmp_path, Embeddings(refused="a"), embedding="vectors")
    later = Embeddings()
    resumed = pipeline.resume(
        tmp_path / "runs" / "text", cache_dir=tmp_path / "cache", transports={"litellm": later}, quiet=True
    )
    assert resumed.state == "done"
    assert later.asked


def test_the_plan_counts_embedding_calls() -> None:
    from pipeline.collection.stages import calls_per_item
    from pipeline.config import parse_config

    calls = {entry.stage: entry.calls for entry in calls_per_item(parse_config(configuration(embedding="vectors")))}
    assert calls["embedding"] == 1 + 2 * 3
    assert "tau" not in calls
    assert "embedding" not in {entry.stage for entry in calls_per_item(parse_config(configuration()))}


def test_a_transport_without_embeddings_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no embeddings"):
        pipeline.run(
            {**configuration(embedding="sim/medium"), "models": {}},
            runs_dir=tmp_path / "runs",
            cache_dir=tmp_path / "cache",
            yes=True,
            quiet=True,
        )


def test_an_unknown_embedding_model_is_named() -> None:
    with pytest.raises(ConfigError, match=r"'vector' in design\.embedding.*did you mean 'vectors'"):
        pipeline.run(configuration(embedding="vector"))


def test_the_missing_extra_is_found_before_anything_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.tables.embedding.find_spec", lambda package: None)
    with pytest.raises(InputError, match=r"auxeval\[embed\]"):
        pipeline.run(
            {**configuration(), "models": {}}, run_id="r", runs_dir=tmp_path / "runs", cache_dir=tmp_path, yes=True
        )
    assert not (tmp_path / "runs" / "r" / "calls.jsonl").exists()


def test_the_shipped_model_serves_a_run_without_network(tmp_path: Path) -> None:
    pytest.importorskip("wordllama", reason="the embed extra is not installed")
    result = run(tmp_path, Embeddings(), coupling="episode")
    assert result.estimates["sim/strong"]["one_step"].diagnostics["draws"] == 2
