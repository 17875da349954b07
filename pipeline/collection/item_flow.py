"""Everything asked about one item: each stage starts as soon as its inputs exist."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any

from pipeline.benchmark.items import Item
from pipeline.collection.calls import JudgedReply
from pipeline.collection.comparisons import chains_phrase, direct_pair, verdict_of, wins
from pipeline.collection.context import FlowContext
from pipeline.collection.examples import Example
from pipeline.collection.judgements import UNIT
from pipeline.collection.prompts import Prompt
from pipeline.collection.replies import parse_preference, parse_probability, parse_score
from pipeline.collection.responses import Answer, Chains, Responses
from pipeline.collection.rows import Order, PreferenceRow, ProbabilityRow, ScoreRow, TauRow, Verdict
from pipeline.collection.settling import settle, settled
from pipeline.collection.stages import CORRECT
from pipeline.collection.token_probabilities import expected_number, probability_true
from pipeline.models.types import CallLabel, Message

EPISODE_DRAWS = 20_000
"""Request draws of the fresh answers of episodes: apart from those of answers, so that each is a reply of its own."""
CANDIDATE_DRAWS = 10_000


def candidate_draw(candidate: int) -> int:
    """Request draw of a candidate: apart from those of answers."""
    return CANDIDATE_DRAWS + candidate


def score_draw(candidate: int, draw: int) -> int:
    """Request draw of a candidate's score: different for every (candidate, draw), whatever C and K are.

    Two candidates with the same text would otherwise share their scores.
    """
    return (candidate + draw) * (candidate + draw + 1) // 2 + draw


class ItemFlow:
    """One item's way through the stages."""

    def __init__(self, item: Item, context: FlowContext) -> None:
        self._item = item
        self._c = context
        self._plan = context.plan
        self._responses = Responses(item, context)
        self._base: Mapping[str, Any] = {"question": item.question, "choices": item.choices}

    async def run(self) -> None:
        """Ask everything, sink every row; returns when all has landed, then raises what went wrong first."""
        chains = [asyncio.ensure_future(self._responses.chains(j)) for j in range(self._plan.draws)]
        anchors = {name: asyncio.ensure_future(self._responses.anchor(name)) for name in self._plan.asked_anchors}
        answers = {target: self._answers(target) for target in self._plan.targets if self._plan.answers}
        firsts = {target: tasks[0] for target, tasks in answers.items()}
        lenders = {model for _, model in self._plan.anchors}
        opponents = {**anchors, **{name: task for name, task in firsts.items() if name in lenders}}
        work: list[Coroutine[Any, Any, None]] = []
        for target in self._plan.targets:
            if target in firsts:
                work += self._judgements(target, firsts[target], opponents)
                work += [self._one_step(target, firsts[target], chains)] if chains else []
                work += [self._p_true(target, firsts[target])] if target in self._plan.p_true else []
            work += [self._candidate(target, index) for index in range(self._plan.candidates)]
        if firsts:
            work += self._direct_comparisons(firsts)
        started: list[asyncio.Task[Any]] = [
            *chains,
            *anchors.values(),
            *(t for tasks in answers.values() for t in tasks),
        ]
        try:
            await settled([*started, *(asyncio.ensure_future(part) for part in work)])
        finally:
            self._c.examples.close(self._item.item_id)

    def _answers(self, target: str) -> list[asyncio.Task[Answer]]:
        answer = self._responses.answer
        return [asyncio.ensure_future(answer(target, "answer", draw, draw)) for draw in range(self._plan.answers)]

    def _label(self, stage: str, role: str, **more: Any) -> CallLabel:
        return CallLabel(stage=stage, item=self._item.item_id, role=role, **more)

    # The one-step estimator

    async def _one_step(self, target: str, answer: asyncio.Task[Answer], chains: list[asyncio.Task[Chains]]) -> None:
        await settle(self._draw(target, j, answer, task) for j, task in enumerate(chains))

    async def _draw(self, target: str, draw: int, answer: asyncio.Task[Answer], chains: asyncio.Task[Chains]) -> None:
        offers = draw == 0 and self._c.examples.wants(self._item.item_id)
        try:
            verdict, by_order = await self._verdicts(target, draw, answer, chains)
            if offers:
                self._c.examples.offer(self._item.item_id, target, self._example((await answer).phi, verdict, by_order))
        finally:
            if offers:  # whatever happened: other items wait for it
                self._c.examples.offer(self._item.item_id, target, None)
        if self._plan.tau:
            await self._tau(target, draw, verdict, by_order)

    async def _verdicts(
        self, target: str, draw: int, answer: asyncio.Task[Answer], chains: asyncio.Task[Chains]
    ) -> tuple[Chains, dict[Order, Verdict | None]]:
        """The target's verdicts on the chains of a draw, in an episode within the conversation that has its answer."""
        before: tuple[Message, ...] | None = ()
        if self._plan.episode and draw == 0:
            before = (await answer).conversation
        elif self._plan.episode:
            before = (await self._responses.answer(target, "episode", draw, EPISODE_DRAWS + draw)).conversation
        chain_answers = await chains
        orders: tuple[Order, ...] = (self._episode_order(target, draw),) if self._plan.episode else ("ab", "ba")
        verdicts = await settle(self._preference(target, draw, order, chain_answers, before) for order in orders)
        return chain_answers, dict(zip(orders, verdicts, strict=True))

    def _episode_order(self, target: str, draw: int) -> Order:
        """One order per episode, random per draw from the seed alone."""
        material = f"{self._c.config.seed}\x1f{self._item.item_id}\x1f{target}\x1f{draw}"
        return "ab" if hashlib.sha256(material.encode("utf-8", "surrogatepass")).digest()[0] % 2 == 0 else "ba"

    async def _preference(
        self, target: str, draw: int, order: Order, chains: Chains, before: tuple[Message, ...] | None
    ) -> Verdict | None:
        label = self._label("preference", "target", target=target, draw=draw, order=order)
        reply = await self._compare("preference", target, label, draw, chains.first, chains.second, before)
        verdict = verdict_of(reply)
        self._c.sink(
            PreferenceRow(
                self._item.item_id, target, target, "chains", draw, order, verdict, reply.reason,
                wins(verdict, order), reply.key,
            )
        )  # fmt: skip
        return verdict

    async def _tau(self, target: str, draw: int, chains: Chains, by_order: Mapping[Order, Verdict | None]) -> None:
        model = self._c.config.roles.regressor or ""
        preference = chains_phrase(by_order)
        examples = await self._c.examples.of_others(self._item.item_id, target) if self._plan.examples else ()
        if (
            preference is None
            or chains.first is None
            or chains.second is None
            or (self._plan.examples and not examples)
        ):
            reply = JudgedReply(None, "missing_input", False, None)
        else:
            variables = {
                **self._base,
                "chain_a": chains.first,
                "chain_b": chains.second,
                "preference": preference,
                "examples": [example.variables() for example in examples] or None,
                "rubric": self._c.config.design.tau.rubric,
            }
            label = self._label("tau", "regressor", target=target, draw=draw)
            reply = await self._c.caller.judged(
                self._c.prompts["tau"][0], variables, parse_probability, model, label, draw=draw
            )
        tau = None if reply.value is None else float(reply.value.probability)
        self._c.sink(TauRow(self._item.item_id, target, self._plan.variant, draw, tau, reply.reason, reply.key))

    def _example(self, phi: float | None, chains: Chains, by_order: Mapping[Order, Verdict | None]) -> Example | None:
        preference = chains_phrase(by_order)
        if phi is None or preference is None or chains.first is None or chains.second is None:
            return None
        return Example(self._item.question, self._item.choices, chains.first, chains.second, preference, phi >= 0.5)

    async def _p_true(self, target: str, answer: asyncio.Task[Answer]) -> None:
        """Whether a target holds its own answer for right, by the weights of one token."""
        text, value = (await answer).judged_text, None
        if text is not None:
            label = self._label("p_true", "target", target=target)
            prompt, variables = self._c.prompts["p_true"][0], {**self._base, "response": text}
            value = probability_true((await self._c.caller.letter(prompt, variables, target, label)).tokens)
        self._c.sink(ProbabilityRow(self._item.item_id, target, "p_true", "answer", value))

    # The judge

    def _judgements(
        self, target: str, answer: asyncio.Task[Answer], opponents: Mapping[str, asyncio.Task[Answer]]
    ) -> list[Coroutine[Any, Any, None]]:
        pointwise = [
            self._pointwise(judge, target, index, answer)
            for judge in self._plan.judges
            for index in range(self._plan.pointwise)
        ]
        pairs = [
            self._pairwise(judge, target, name, order, answer, opponents[model])
            for judge in self._plan.judges
            for name, model in self._plan.opponents(target)
            for order in ("ab", "ba")
        ]
        criteria = [
            self._criterion(judge, target, k, answer)
            for judge in self._plan.judges
            for k in range(len(self._plan.criteria))
        ]
        return [*pointwise, *criteria, *pairs]

    def _direct_comparisons(self, answers: Mapping[str, asyncio.Task[Answer]]) -> list[Coroutine[Any, Any, None]]:
        return [
            self._direct(judge, first, second, order, answers[first], answers[second])
            for judge in self._plan.judges
            for first, second in self._plan.direct
            for order in ("ab", "ba")
        ]

    def _given_context(self, target: str) -> str | None:
        given = self._item.given.get(target)
        return given.context if given is not None else None

    async def _criterion(self, judge: str, target: str, index: int, answer: asyncio.Task[Answer]) -> None:
        text = (await answer).judged_text
        criterion = self._plan.criteria[index]
        label = self._label("criterion", "judge", target=target, part=criterion.name)
        variables = {
            "context": self._given_context(target),
            "reference": self._item.reference,
            "criterion": criterion.question,
            "worst": _plainly(criterion.worst),
            "best": _plainly(criterion.best),
        }
        scale = (criterion.worst, criterion.best)
        reply = await self._score(judge, self._c.prompts["criterion"][0], text, label, 0, variables, scale)
        self._sink_score(judge, target, criterion.name, None, 0, reply)
        if index == 0:
            self._sink_expected(judge, target, criterion.name, reply, scale)

    async def _direct(
        self,
        judge: str,
        first: str,
        second: str,
        order: Order,
        ours: asyncio.Task[Answer],
        theirs: asyncio.Task[Answer],
    ) -> None:
        label = self._label("direct", "judge", target=first, order=order, part=second)
        contexts = [self._given_context(first), self._given_context(second)]
        variables = {
            **dict(zip(("context_a", "context_b"), contexts if order == "ab" else contexts[::-1], strict=True)),
            "reference": self._item.reference,
            "criterion": self._plan.criteria[0].question if self._plan.criteria else CORRECT,
        }
        texts = (await ours).judged_text, (await theirs).judged_text
        reply = await self._compare("direct", judge, label, 0, *texts, (), variables)
        self._sink_verdict(judge, first, direct_pair(second), order, reply)

    async def _pointwise(self, judge: str, target: str, index: int, answer: asyncio.Task[Answer]) -> None:
        text = (await answer).judged_text
        name = f"pointwise_{index + 1}"
        label = self._label("pointwise", "judge", target=target, part=name)
        reply = await self._score(judge, self._c.prompts["pointwise"][index], text, label, 0)
        self._sink_score(judge, target, name, None, 0, reply)
        self._sink_expected(judge, target, name, reply, UNIT)

    async def _pairwise(
        self,
        judge: str,
        target: str,
        name: str,
        order: Order,
        answer: asyncio.Task[Answer],
        anchor: asyncio.Task[Answer],
    ) -> None:
        ours, theirs = (await answer).judged_text, (await anchor).judged_text
        label = self._label("pairwise", "judge", target=target, order=order, part=name)
        reply = await self._compare("pairwise", judge, label, 0, ours, theirs, ())
        self._sink_verdict(judge, target, name, order, reply)

    def _sink_verdict(self, judge: str, target: str, pair: str, order: Order, reply: JudgedReply) -> None:
        verdict = verdict_of(reply)
        self._c.sink(
            PreferenceRow(
                self._item.item_id, target, judge, pair, 0, order, verdict, reply.reason,
                wins(verdict, order), reply.key,
            )
        )  # fmt: skip

    async def _candidate(self, target: str, index: int) -> None:
        text = (await self._responses.answer(target, "candidates", index, candidate_draw(index))).judged_text
        await settle(self._candidate_score(target, index, draw, text) for draw in range(self._plan.scores))

    async def _candidate_score(self, target: str, index: int, draw: int, text: str | None) -> None:
        label = self._label("candidate_scores", "judge", target=target, draw=draw, part=f"candidate-{index}")
        prompt, judge = self._c.prompts["candidate_scores"][0], self._c.config.roles.judge[0]
        reply = await self._score(judge, prompt, text, label, score_draw(index, draw))
        self._sink_score(judge, target, "candidate", index, draw, reply)

    async def _score(
        self,
        judge: str,
        prompt: Prompt,
        text: str | None,
        label: CallLabel,
        draw: int,
        more: Mapping[str, Any] | None = None,
        scale: tuple[float, float] = (0.0, 1.0),
    ) -> JudgedReply:
        if text is None:
            return JudgedReply(None, "missing_input", False, None)
        variables = {**self._base, "response": text, **(more or {})}
        return await self._c.caller.judged(
            prompt, variables, partial(parse_score, scale=scale), judge, label, draw=draw, scale=scale
        )

    def _sink_score(
        self, judge: str, target: str, prompt: str, candidate: int | None, draw: int, reply: JudgedReply
    ) -> None:
        score = None if reply.value is None else float(reply.value.score)
        self._c.sink(
            ScoreRow(
                self._item.item_id, target, judge, prompt, candidate, draw, score, reply.reason, reply.repaired,
                reply.key,
            )
        )  # fmt: skip

    def _sink_expected(
        self, judge: str, target: str, prompt: str, reply: JudgedReply, scale: tuple[float, float]
    ) -> None:
        """What the judge's score is on average over the scores that it weighed."""
        if judge in self._plan.expected:
            value = expected_number(reply.tokens, reply.text, "score", scale)
            self._c.sink(ProbabilityRow(self._item.item_id, target, "judge_expected", f"{judge}/{prompt}", value))

    async def _compare(
        self,
        stage: str,
        rater: str,
        label: CallLabel,
        draw: int,
        first: str | None,
        second: str | None,
        before: tuple[Message, ...] | None,
        more: Mapping[str, Any] | None = None,
    ) -> JudgedReply:
        if first is None or second is None or before is None:
            return JudgedReply(None, "missing_input", False, None)
        answers = (first, second) if label.order == "ab" else (second, first)
        names = ("chain_a", "chain_b") if stage == "preference" else ("response_a", "response_b")
        variables = {**self._base, **dict(zip(names, answers, strict=True)), **(more or {})}
        prompt = self._c.prompts[stage][0]
        return await self._c.caller.judged(prompt, variables, parse_preference, rater, label, draw=draw, before=before)


def _plainly(number: float) -> str:
    """As a person writes it: 1, not 1.0."""
    return f"{number:g}"
