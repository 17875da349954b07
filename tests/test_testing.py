"""Scripted models: every kind of script, through the real gateway."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from pipeline.errors import ReplayMissError
from pipeline.models.simulated import SimulatedTransport, World
from pipeline.models.spec import ModelSpec
from pipeline.models.transport import RawReply, TransportError
from pipeline.models.types import Answered, Failed, ReplySchema, Usage
from pipeline.runs.cassettes import export_run
from pipeline.runs.directory import find_run
from pipeline.testing import (
    Answer,
    CassettePlayer,
    Script,
    ScriptedCall,
    ScriptedRun,
    ScriptedTransport,
    ScriptError,
    a_label,
    rate_limited,
    run_scripted,
    scripted_gateway,
    server_error,
    user,
)

pytest_plugins = ["pipeline.testing"]
SCORE = ReplySchema("score", {"type": "object"})


async def test_a_string_answers_everything_and_is_cached(tmp_path: Path) -> None:
    async with scripted_gateway({"m": "Answer: 4"}, folder=tmp_path) as gateway:
        first = await gateway.ask("m", [user("2 + 2?")], label=a_label())
        again = await gateway.ask("m", [user("2 + 2?")], label=a_label())
    assert isinstance(first, Answered)
    assert isinstance(again, Answered)
    assert (first.reply.text, first.cached, again.cached) == ("Answer: 4", False, True)
    assert first.reply.usage == Usage(prompt=2, completion=3)


async def test_a_mapping_answers_by_kind_then_by_words(tmp_path: Path) -> None:
    script = {"score": '{"score": 1}', "capital": "Answer: Lima", "*": "Answer: ?"}
    async with scripted_gateway({"m": script}, folder=tmp_path) as gateway:
        texts = []
        for prompt, schema in (("Rate it.", SCORE), ("The capital of Peru?", None), ("Other", None)):
            outcome = await gateway.ask("m", [user(prompt)], label=a_label(), schema=schema)
            assert isinstance(outcome, Answered)
            texts.append(outcome.reply.text)
    assert texts == ['{"score": 1}', "Answer: Lima", "Answer: ?"]


async def test_a_list_answers_in_order_with_failures_between(tmp_path: Path) -> None:
    script: list[Answer] = [server_error(503), "one", rate_limited(after_s=0.01), "two"]
    async with scripted_gateway({"m": script}, folder=tmp_path) as gateway:
        one = await gateway.ask("m", [user("a")], label=a_label())
        two = await gateway.ask("m", [user("b")], label=a_label())
        with pytest.raises(ScriptError, match="4 answers and was asked for one more"):
            await gateway.ask("m", [user("c")], label=a_label())
    assert isinstance(one, Answered)
    assert isinstance(two, Answered)
    assert (one.reply.text, two.reply.text) == ("one", "two")


async def test_a_function_sees_the_call_and_may_wait(tmp_path: Path) -> None:
    seen: list[ScriptedCall] = []

    async def script(call: ScriptedCall) -> RawReply:
        seen.append(call)
        return RawReply("cut", "length", Usage(1, 2))

    prompt = "Mark this.\n<<<RESPONSE 0123456789ab>>>\nAnswer: 5\n<<<END RESPONSE 0123456789ab>>>"
    async with scripted_gateway({"m": script}, folder=tmp_path) as gateway:
        outcome = await gateway.ask(
            "m", [user(prompt)], label=a_label(), draw=3, params={"temperature": 0.5}, schema=SCORE
        )
    assert isinstance(outcome, Answered)
    assert outcome.reply.outcome == "truncated"
    (call,) = seen
    assert (call.entry, call.draw, call.attempt, call.kind) == ("m", 3, 0, "score")
    assert call.texts == {"RESPONSE": "Answer: 5"}
    assert call.params["temperature"] == 0.5
    assert call.prompt == prompt


async def test_attempts_of_one_request_are_counted(tmp_path: Path) -> None:
    def script(call: ScriptedCall) -> str | Exception:
        return server_error() if call.attempt < 2 else f"after {call.attempt}"

    async with scripted_gateway({"m": script}, folder=tmp_path) as gateway:
        outcome = await gateway.ask("m", [user("a")], label=a_label())
    assert isinstance(outcome, Answered)
    assert outcome.reply.text == "after 2"


async def test_terminal_failures_are_outcomes(tmp_path: Path) -> None:
    script = [TransportError("context_too_long", "too long", status=400)]
    async with scripted_gateway({"m": script}, folder=tmp_path) as gateway:
        outcome = await gateway.ask("m", [user("a")], label=a_label())
    assert isinstance(outcome, Failed)
    assert outcome.kind == "context_too_long"


async def test_what_no_script_answers_fails_the_test(tmp_path: Path) -> None:
    async with scripted_gateway({"m": {"verse": "x"}}, folder=tmp_path) as gateway:
        with pytest.raises(ScriptError, match="no answer to a chain prompt: 'prose'"):
            await gateway.ask("m", [user("prose")], label=a_label())
    transport = ScriptedTransport({"other": "x"})
    spec = ModelSpec("m", "openai/m")
    async with scripted_gateway({"m": "x"}, folder=tmp_path, specs={"m": spec}) as gateway:
        outcome = await gateway.ask("m", [user("a")], label=a_label())
    assert isinstance(outcome, Answered)
    with pytest.raises(ScriptError, match="no script for model 'm'"):
        await transport.send(spec, outcome.request, timeout_s=1)


async def test_entries_without_a_script_go_elsewhere(tmp_path: Path) -> None:
    world = World.from_items([])
    transport = ScriptedTransport({"m": "x"}, otherwise=SimulatedTransport(world))
    async with scripted_gateway({"m": "x"}, folder=tmp_path) as gateway:
        outcome = await gateway.ask("m", [user("a")], label=a_label())
    assert isinstance(outcome, Answered)
    with pytest.raises(TransportError, match="knows only the questions"):
        await transport.send(ModelSpec("s", "sim/weak", transport="simulated"), outcome.request, timeout_s=1)


SCRIPTED = {
    "name": "scripted",
    "benchmark": {"preset": "embedded", "limit": 8},
    "models": {
        "gpt": {"model": "openai/gpt-5.2", "api_key_env": "NOT_SET_ANYWHERE"},
        "judge": {"model": "anthropic/claude"},
        **{name: {"model": f"sim/anchor-{name}"} for name in ("weak", "medium", "strong")},
    },
    "roles": {
        "targets": ["gpt"],
        "judge": "judge",
        "anchors": {"weak": "weak", "medium": "medium", "strong": "strong"},
    },
    "design": {"labeled": 6},
    "estimate": ["naive", "lace"],
}
SCRIPTS: dict[str, Script] = {
    "gpt": lambda call: f"As far as I see, 7.\nAnswer: {7 + call.draw}\nConfidence: 60",
    "judge": {"score": '{"reason": "-", "score": 0.25}', "preference": '{"reason": "-", "verdict": "B"}'},
}


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> ScriptedRun:
    return run_scripted(SCRIPTED, SCRIPTS, folder=tmp_path_factory.mktemp("scripted"))


def test_a_whole_run_of_scripted_and_simulated_models(scripted: ScriptedRun) -> None:
    assert scripted.run.state == "done"
    assert len(scripted.calls["gpt"]) == 8
    assert {call.kind for call in scripted.calls["judge"]} == {"score", "preference"}
    assert len(scripted.calls["judge"]) == 8 * (3 + 6)
    answers = scripted.tables.responses.filter(scripted.tables.responses["model"] == "gpt")
    assert set(answers["answer"]) == {"7"}
    assert set(answers["confidence"]) == {0.6}
    anchors = scripted.tables.responses.filter(scripted.tables.responses["stage"] == "anchor")
    assert len(set(anchors["answer"])) > 3
    assert set(scripted.tables.signals["pair_weak"]) == {0.5}
    assert scripted.estimates["gpt"]["naive"].n == 6


def test_scripts_must_fit_the_roles(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match="script for 'gtp', which plays no role"):
        run_scripted(SCRIPTED, {**SCRIPTS, "gtp": "x"}, folder=tmp_path)
    with pytest.raises(ScriptError, match=r"no script for 'judge' \(anthropic/claude\)"):
        run_scripted(SCRIPTED, {"gpt": "x"}, folder=tmp_path)


@pytest.fixture(scope="module")
def recording(scripted: ScriptedRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("cassettes") / "demo.cassette"
    export_run(find_run(scripted.path, Path("runs")), file, cache_dir=scripted.path.parent.parent / "cache")
    return file


def test_a_cassette_replays_to_the_same_estimates(
    cassette: CassettePlayer, recording: Path, scripted: ScriptedRun
) -> None:
    result = cassette.replay(recording)
    assert (result.path / "estimates.json").read_bytes() == (scripted.path / "estimates.json").read_bytes()
    for table in ("responses", "scores", "signals"):
        name = f"tables/{table}.parquet"
        assert (result.path / name).read_bytes() == (scripted.path / name).read_bytes()


async def test_a_recorded_gateway_answers_what_was_recorded_and_fails_on_the_rest(
    cassette: CassettePlayer, recording: Path, scripted: ScriptedRun
) -> None:
    call = scripted.calls["gpt"][0]
    async with cassette.gateway(recording) as gateway:
        outcome = await gateway.ask("gpt", call.messages, label=a_label())
        assert isinstance(outcome, Answered)
        assert outcome.reply.text.endswith("Answer: 7\nConfidence: 60")
        assert outcome.cached
        with pytest.raises(ReplayMissError, match="not recorded: stage answer, item item, model gpt, draw 1"):
            await gateway.ask("gpt", call.messages, label=a_label(), draw=1)
        with pytest.raises(ReplayMissError, match="What is new"):
            await gateway.ask("gpt", [user("What is new?")], label=a_label())


def test_a_cassette_with_a_reply_cut_out_fails_by_name(
    cassette: CassettePlayer, recording: Path, tmp_path: Path
) -> None:
    lines = gzip.decompress(recording.read_bytes()).splitlines(keepends=True)
    shorter = tmp_path / "shorter.cassette"
    shorter.write_bytes(gzip.compress(b"".join(lines[:-1])))
    with pytest.raises(ReplayMissError, match="model"):
        cassette.replay(shorter)
