"""What the flows of all items share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pipeline.benchmark.grading import Grader
from pipeline.collection.calls import Caller
from pipeline.collection.examples import Examples
from pipeline.collection.prompts import PromptSet
from pipeline.collection.rows import Row
from pipeline.collection.stages import StagePlan
from pipeline.config import RunConfig


@dataclass(frozen=True, slots=True)
class FlowContext:
    """Configuration, plan, prompts, and the ways out: calls, grades, rows, examples."""

    config: RunConfig
    plan: StagePlan
    prompts: PromptSet
    caller: Caller
    grader: Grader
    sink: Callable[[Row], None]
    examples: Examples
    criteria: tuple[str, ...] = ()
