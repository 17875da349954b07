"""A budget bounds the whole run: what a session's attempts may have cost counts in the sessions after it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import StoppedEarly
from pipeline.models.transport import TransportError
from pipeline.testing import ScriptedCall, run_scripted

CONFIG = {
    "benchmark": {"preset": "embedded", "limit": 6},
    "models": {"gpt": {"model": "openai/gpt", "max_concurrency": 1}},
    "roles": {"targets": ["gpt"]},
    "estimate": ["naive"],
    "design": {"labeled": 6},
    "max_attempts": 1,
    "stage_failure_limit": 1.0,
}


def test_attempts_that_may_have_been_charged_count_in_the_next_session(tmp_path: Path) -> None:
    asked = []

    def lost(call: ScriptedCall) -> str:
        asked.append(call)
        raise TransportError("connection", "the body was cut off", maybe_billed=True)

    def whole(call: ScriptedCall) -> str:
        asked.append(call)
        return "Answer: 1\nConfidence: 50"

    for script, calls, sent in ((lost, 4, 4), (whole, 4, 4), (whole, 7, 7)):
        with pytest.raises(StoppedEarly, match=rf"budget.calls = {calls}: {calls} spent"):
            run_scripted({**CONFIG, "budget": {"calls": calls}}, {"gpt": script}, folder=tmp_path)
        assert len(asked) == sent
    assert run_scripted({**CONFIG, "budget": {"calls": 10}}, {"gpt": whole}, folder=tmp_path).run.state == "done"
    assert len(asked) == 10
