"""Scripted models and recorded replies for tests: no network, no keys, the same gateway as a real run.

A script says what a model entry answers. It may be

* a string: the answer to everything,
* a mapping: the first key that is the kind of reply asked for (``answer``, ``chain``, ``preference``, ``score``,
  ``probability``) or that occurs in the prompt gives the answer; ``"*"`` matches everything,
* a list: one answer per attempt, in the order in which the attempts arrive,
* a function of the :class:`ScriptedCall`, plain or ``async``.

An answer is the text of the reply, a :class:`~pipeline.models.transport.RawReply` (to set finish reason or tokens), or
an exception to raise (a :class:`~pipeline.models.transport.TransportError` is a failure as a provider causes it, and is
retried if it may be).

Example:
    A run of real model strings in which nothing leaves the process::

        from pipeline.testing import rate_limited, run_scripted

        def test_my_judge_prompt(tmp_path):
            result = run_scripted(
                "my-config.yaml",
                {
                    "gpt": lambda call: f"I think so.\\nAnswer: {7 + call.draw}\\nConfidence: 60",
                    "judge": {"score": '{"score": 0.5, "reason": "-"}', "*": '{"verdict": "A", "reason": "-"}'},
                    "anchor": [rate_limited(after_s=0.1), *["Answer: 7"] * 100],
                },
                folder=tmp_path,
            )
            assert result.calls["gpt"][0].texts["QUESTION"] == "What is 3 + 4?"
            assert 0 <= result.estimates["gpt"]["lace"].value <= 1

    The gateway alone::

        async with scripted_gateway({"gpt": "Answer: 4"}, folder=tmp_path) as gateway:
            outcome = await gateway.ask("gpt", [user("What is 2 + 2?")], label=a_label())

    A cassette (``auxeval export RUN CASSETTE``), with ``pytest_plugins = ["pipeline.testing"]`` in ``conftest.py``.
    The fixture answers from the recording and fails on any call that is not in it::

        def test_recorded_run(cassette):
            result = cassette.replay("tests/cassettes/demo.cassette")
            assert result.estimates["gpt"]["naive"].n == 50

        async def test_my_own_questions(cassette):
            async with cassette.gateway("tests/cassettes/demo.cassette") as gateway:
                outcome = await gateway.ask("gpt", [user("What is 2 + 2?")], label=a_label())
"""

from __future__ import annotations

import contextlib

from pipeline.testing.memory import MemoryCache
from pipeline.testing.recorded import CassettePlayer, RecordedGateway
from pipeline.testing.scripted_runs import ScriptedRun, run_scripted, scripted_gateway
from pipeline.testing.scripts import (
    Answer,
    Script,
    ScriptedCall,
    ScriptedTransport,
    ScriptError,
    a_label,
    rate_limited,
    server_error,
    user,
)

with contextlib.suppress(ImportError):  # without pytest everything but the fixture is there
    from pipeline.testing.fixtures import cassette as cassette

__all__ = [
    "Answer",
    "CassettePlayer",
    "MemoryCache",
    "RecordedGateway",
    "Script",
    "ScriptError",
    "ScriptedCall",
    "ScriptedRun",
    "ScriptedTransport",
    "a_label",
    "rate_limited",
    "run_scripted",
    "scripted_gateway",
    "server_error",
    "user",
]
