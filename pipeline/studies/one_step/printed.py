"""`one-step-printed`: rows of the paper's tables whose printed improvement disagrees with the printed estimates."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.studies.registry import Study, StudyOptions
from pipeline.studies.results import Cell, ResultTable, StudyResult

TOLERANCE = 0.015
"""Percentage points; two decimals are printed, so one unit in the last place is forgiven."""


@dataclass(frozen=True, slots=True)
class PrintedRow:
    """One model's line under one auxiliary configuration; all numbers in percent.

    Attributes:
        table: the paper's table number.
        model: as printed.
        config: auxiliary configuration.
        truth: GT, the full-benchmark accuracy.
        before, after: the estimates compared: naive and one-step, or N = 100 and N = 200 in Table 9.
        improvement: printed reduction in absolute error.
    """

    table: int
    model: str
    config: int
    truth: float
    before: float
    after: float
    improvement: float

    @property
    def recomputed(self) -> float:
        """|before − truth| − |after − truth|."""
        return abs(self.before - self.truth) - abs(self.after - self.truth)


def _wide(table: int, rows: tuple[tuple[str, float, float, float, float, float, float], ...]) -> list[PrintedRow]:
    """Rows of Tables 1–3: GT, naive, then one-step and improvement under both configurations."""
    return [
        PrintedRow(table, model, config, truth, naive, after, improvement)
        for model, truth, naive, first, gain1, second, gain2 in rows
        for config, after, improvement in ((1, first, gain1), (2, second, gain2))
    ]


_TABLE_1 = (
    ("Gemini-3-Flash-Preview", 90.40, 92.00, 91.20, 0.80, 89.80, 0.99),
    ("GPT-5.2", 86.36, 84.00, 85.60, 1.60, 85.60, 1.60),
    ("DeepSeek-V3.2(Thinking)", 84.85, 94.00, 88.80, 5.20, 90.80, 3.20),
    ("Grok-4-1-Fast-Reasoning", 83.33, 88.00, 85.80, 2.20, 83.60, 4.40),
    ("Claude-Sonnet-4.5", 82.83, 78.00, 80.60, 2.60, 81.40, 3.40),
    ("Qwen3-Next-80B-A3B-Instruct", 76.26, 82.00, 76.80, 5.20, 78.40, 3.60),
    ("DeepSeek-R1-Distill-Llama-70B", 59.09, 60.00, 59.00, 0.82, 59.00, 0.82),
    ("QwQ-32B-Preview", 56.06, 60.00, 55.40, 3.28, 56.00, 3.88),
    ("Llama-3.3-70B-Instruct", 46.97, 32.00, 37.60, 5.60, 37.20, 5.20),
    ("DeepSeek-R1-Distill-Qwen-32B", 43.43, 40.00, 41.40, 1.40, 43.00, 3.00),
)
_TABLE_2 = (
    ("GPT-5.2", 96.67, 93.33, 96.93, 3.08, 96.43, 3.10),
    ("Gemini-3-Flash-Preview", 96.67, 93.33, 99.93, 0.08, 97.77, 2.24),
    ("DeepSeek-V3.2(Thinking)", 90.00, 86.67, 91.00, 2.33, 90.10, 3.23),
    ("Grok-4-1-Fast-Reasoning", 86.67, 80.00, 87.33, 6.01, 89.01, 4.33),
    ("Claude-Sonnet-4.5", 83.33, 66.67, 70.67, 4.00, 78.67, 12.00),
    ("Qwen3-Next-80B-A3B-Instruct", 73.33, 73.33, 72.27, -1.06, 78.66, -5.33),
    ("DeepSeek-R1-Distill-Llama-70B", 53.33, 46.67, 50.60, 3.93, 54.10, 5.89),
    ("DeepSeek-R1-Distill-Qwen-32B", 53.33, 46.67, 50.27, 3.60, 54.86, 5.13),
    ("QwQ-32B-Preview", 30.00, 33.33, 29.67, 3.00, 29.37, 2.70),
    ("Llama-3.3-70B-Instruct", 6.67, 6.67, 8.33, -1.66, 6.24, -0.43),
)
_TABLE_3 = (
    ("Gemini-3-Flash-Preview", 97.88, 98.00, 97.90, 0.10, 98.30, -0.30),
    ("GPT-5.2", 97.50, 97.00, 97.65, 0.35, 97.00, 0.50),
    ("Claude-Sonnet-4.5", 97.50, 95.00, 96.70, 1.70, 98.15, 1.85),
    ("Llama-3.3-70B-Instruct", 96.44, 94.00, 96.00, 2.00, 95.70, 1.70),
    ("DeepSeek-R1-Distill-Llama-70B", 95.83, 92.00, 95.50, 3.50, 94.50, 2.50),
    ("QwQ-32B-Preview", 95.45, 92.00, 93.85, 3.40, 94.35, 2.35),
    ("Grok-4-1-Fast-Reasoning", 95.07, 90.00, 92.65, 2.65, 91.20, 1.20),
    ("DeepSeek-V3.2(Thinking)", 95.00, 92.00, 94.00, 2.00, 92.90, 0.90),
    ("DeepSeek-R1-Distill-Qwen-32B", 93.71, 93.00, 93.90, 0.51, 93.35, 0.35),
    ("Qwen3-Next-80B-A3B-Instruct", 93.48, 94.00, 93.65, 0.35, 94.30, 0.24),
)
_TABLE_9 = (
    ("Gemini-3-Flash-Preview", 97.88, 97.90, 97.92, -0.02, 98.30, 97.84, 0.38),
    ("GPT-5.2", 97.50, 97.65, 97.60, 0.05, 97.00, 97.31, 0.31),
    ("Claude-Sonnet-4.5", 97.50, 96.70, 97.67, 0.63, 98.15, 97.24, 0.39),
    ("Llama-3.3-70B-Instruct", 96.44, 96.00, 96.60, 0.28, 95.70, 96.67, 0.51),
    ("DeepSeek-R1-Distill-Llama-70B", 95.83, 95.50, 95.88, 0.28, 94.50, 96.50, 0.66),
    ("QwQ-32B-Preview", 95.45, 93.85, 95.05, 1.20, 94.35, 96.14, 0.41),
    ("Grok-4-1-Fast-Reasoning", 95.07, 92.65, 93.95, 1.30, 91.20, 95.12, 3.82),
    ("DeepSeek-V3.2(Thinking)", 95.00, 94.00, 95.05, 0.95, 92.90, 93.59, 0.69),
    ("DeepSeek-R1-Distill-Qwen-32B", 93.71, 93.90, 93.32, -0.20, 93.35, 94.09, 0.00),
    ("Qwen3-Next-80B-A3B-Instruct", 93.48, 93.65, 93.45, 0.14, 94.30, 92.84, 0.18),
)
PRINTED: tuple[PrintedRow, ...] = (
    *_wide(1, _TABLE_1),
    *_wide(2, _TABLE_2),
    *_wide(3, _TABLE_3),
    *(
        PrintedRow(9, model, config, truth, before, after, gain)
        for model, truth, before1, after1, gain1, before2, after2, gain2 in _TABLE_9
        for config, before, after, gain in ((1, before1, after1, gain1), (2, before2, after2, gain2))
    ),
)


def disagreements(rows: tuple[PrintedRow, ...] = PRINTED, tolerance: float = TOLERANCE) -> list[PrintedRow]:
    """Rows whose printed improvement differs from the recomputed one by more than ``tolerance``."""
    return [row for row in rows if abs(row.improvement - row.recomputed) > tolerance]


def _run(options: StudyOptions) -> StudyResult:
    rows: list[tuple[Cell, ...]] = [
        (row.table, row.model, row.config, row.truth, row.before, row.after, row.improvement, row.recomputed)
        for row in disagreements()
    ]
    columns = ("table", "model", "config", "GT %", "before %", "after %", "printed", "recomputed")
    table = ResultTable("Printed improvement against the printed estimates", columns, tuple(rows), digits=2)
    return StudyResult(
        title=study.title,
        tables=(table,),
        notes=(
            f"{len(PRINTED)} improvements of Tables 1, 2, 3 and 9 recomputed as |before − GT| − |after − GT|; before"
            " and after are the naive and one-step estimates (Table 9: N = 100 and N = 200). Listed: off by more than"
            " one unit in the last printed place.",
            "The published estimates lie far closer to the full-benchmark value than an estimator whose variance is"
            " bounded below by item composition can: with 50 of 198 items that part alone has a standard deviation of"
            " about 5 points. They are shown for reference and are no targets.",
        ),
    )


study = Study(
    title="One-step estimator: the paper's printed improvements, recomputed",
    run=_run,
    default_reps=2,
)
