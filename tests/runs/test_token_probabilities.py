"""Token probabilities over real HTTP: asked where wanted, stored, replayed, the same over both transports."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from fault_server import FaultServer
from server_replies import reply_text

import pipeline
from tests.runs.test_run_over_http import _digests, _run

WEIGHED = ("logprob_mean", "logprob_min", "p_true", "judge_expected")


def _config(url: str, transport: str, *, signals: list[str] | None = None) -> dict[str, Any]:
    def entry(name: str, **params: Any) -> dict[str, Any]:
        return {"model": f"openai/{name}", "api_base": url, "transport": transport, "params": params}

    config = {
        "benchmark": {"preset": "embedded", "limit": 16},
        "models": {
            "able": entry("able", logprobs=True, top_logprobs=5),
            "other": entry("other", logprobs=True),
            "judge": entry("judge", logprobs=True, top_logprobs=5),
        },
        "roles": {"targets": ["able", "other"], "judge": "judge"},
        "design": {"labeled": 10, "form_limit": 1},
    }
    return {**config, "signals": signals} if signals else config


def _steady(body: dict[str, Any], digest: str) -> tuple[str, str]:
    """A reply that follows from the prompt alone, whatever carries it and in whichever order."""
    return reply_text(body, random.Random(0), 0.0), "stop"


def _signals(result: pipeline.RunResult) -> pl.DataFrame:
    frame = pl.read_parquet(result.path / "tables" / "signals.parquet")
    return frame.select("item_id", "target", *[name for name in WEIGHED if name in frame.columns])


def test_both_transports_bring_the_same_columns_and_a_replay_the_same_bytes(tmp_path: Path) -> None:
    frames = {}
    for transport in ("direct", "litellm"):
        with FaultServer(replies=_steady) as server:
            result = _run(tmp_path / transport, _config(server.url, transport))
        frames[transport] = _signals(result)
        replayed = pipeline.replay(result.path, cache_dir=tmp_path / transport / "cache")
        assert _digests(replayed.path) == _digests(result.path)
    direct, litellm = frames["direct"], frames["litellm"]
    assert set(WEIGHED) <= set(direct.columns)
    for name in WEIGHED:
        assert direct[name].null_count() == 0, name
        assert direct[name].n_unique() > 1, name
    assert direct.sort("item_id", "target").equals(litellm.sort("item_id", "target"))
    assert direct.filter(pl.col("logprob_mean") > 0).height == 0
    assert direct.filter(pl.col("logprob_min") > pl.col("logprob_mean") + 1e-12).height == 0
    assert direct.filter(~pl.col("p_true").is_between(0, 1)).height == 0
    assert direct.filter(~pl.col("judge_expected").is_between(0, 1)).height == 0


def test_a_run_equals_its_own_table(tmp_path: Path, server: FaultServer) -> None:
    result = _run(tmp_path, _config(server.url, "direct"))
    table = pipeline.estimate(result.path / "tables" / "signals.parquet")
    for name in ("able", "other"):
        assert table[name]["lace"].value == pytest.approx(result.estimates[name]["lace"].value, abs=1e-12)


@pytest.mark.parametrize("transport", ["direct", "litellm"])
@pytest.mark.parametrize("refused", ["logprobs", "top_logprobs"])
def test_a_model_that_refuses_them_is_asked_without_and_it_is_said(
    tmp_path: Path, server: FaultServer, transport: str, refused: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.fail("unsupported", param=refused)
    result = _run(tmp_path, _config(server.url, transport))
    assert result.state == "done"
    assert result.manifest["calls"]["failed"] == 0
    dropped = result.manifest["negotiated"]["able"]["dropped"]
    assert dropped == (["logprobs", "top_logprobs"] if refused == "logprobs" else ["top_logprobs"])
    assert any("able" in record.message and "dropped" in record.message for record in caplog.records)


def test_a_family_that_is_left_out_is_not_asked_for(tmp_path: Path, server: FaultServer) -> None:
    server.keep_bodies = True
    result = _run(tmp_path, _config(server.url, "direct", signals=["judge", "vote"]))
    frame = pl.read_parquet(result.path / "tables" / "signals.parquet")
    assert "p_true" not in frame.columns
    assert "logprob_mean" not in frame.columns
    assert not any("one letter" in str(body["messages"]) for body in server.bodies)


def test_a_key_that_a_server_echoes_is_not_spelled_out_by_its_tokens(
    tmp_path: Path, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-echoed-0123456789abcdef"
    monkeypatch.setenv("ECHO_KEY", secret)
    server.fail("text", content=f"Your key is {secret}. Answer: 4")
    config = _config(server.url, "direct")
    for entry in config["models"].values():
        entry["api_key_env"] = "ECHO_KEY"
    result = _run(tmp_path, config)
    stored = b"".join(file.read_bytes() for file in (tmp_path / "cache").rglob("*") if file.is_file())
    assert secret.encode() not in stored
    frame = pl.read_parquet(result.path / "tables" / "probabilities.parquet")
    assert frame["value"].drop_nulls().is_empty()
