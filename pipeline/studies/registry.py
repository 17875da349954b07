"""Which studies exist, by name; each is imported only when it is asked for."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from typing import Literal

from pipeline.errors import InputError
from pipeline.studies.results import StudyResult

Progress = Callable[[str, int, int], None]
"""Called with (what is being counted, done, total)."""


def silent(label: str, done: int, total: int) -> None:
    """The progress of someone who wants none."""


@dataclass(frozen=True, slots=True)
class TableColumns:
    """Which columns of a user's own table play which part; all optional.

    Attributes:
        gold: the outcome, known on every row.
        signals: cheap signals.
        profile: column, or ``column:continuous|ordinal|categorical``.
        model: column that splits the table into one cell per value.
        item: column that names the item.
    """

    gold: str | None = None
    signals: tuple[str, ...] = ()
    profile: str | None = None
    model: str | None = None
    item: str | None = None


@dataclass(frozen=True, slots=True)
class StudyOptions:
    """How a study is run.

    Attributes:
        reps: replicates; None means the study's own default.
        jobs: worker processes on this machine.
        dask: address of a Dask scheduler to use instead.
        reading: where the paper's text and printed numbers disagree, which one to follow.
        table: the real table, for studies that need one.
        more: further tables or runs, for studies that take several.
        out: where the result will be written; checkpoints are kept beside it until then.
        seed: root of all randomness.
        progress: called with (label, done, total).
        columns: which columns of the user's own table to use.
    """

    reps: int | None = None
    jobs: int = 1
    dask: str | None = None
    reading: Literal["text", "printed"] = "text"
    table: Path | None = None
    more: tuple[Path, ...] = ()
    out: Path | None = None
    seed: int = 0
    progress: Progress = silent
    columns: TableColumns = field(default_factory=TableColumns)

    def checkpoint(self, stage: str) -> Path | None:
        """The file that keeps finished replicates of ``stage``; None without ``out``."""
        if self.out is None:
            return None
        return self.out.with_name(f"{self.out.name}.{stage}.partial.jsonl")


@dataclass(frozen=True, slots=True)
class Study:
    """A named study.

    Attributes:
        title: one line that heads the result.
        run: does it.
        default_reps: replicates when none are asked for.
        needs_table: whether it must be given a table.
        name: as typed after ``auxeval study``; the registry gives it.
    """

    title: str
    run: Callable[[StudyOptions], StudyResult]
    default_reps: int
    needs_table: bool = False
    name: str = ""


_STUDIES: Mapping[str, tuple[str, str]] = {
    # name: (module:attribute that holds the Study, one line for `auxeval study --list`)
    "one-step-signal": (
        "pipeline.studies.one_step.ranking:signal_study",
        "Figures 2 and 3: ranking accuracy and variance reduction as the models' own variance grows.",
    ),
    "one-step-noise": (
        "pipeline.studies.one_step.ranking:noise_study",
        "Figures 4 and 5: the same as the noise of the auxiliary responses grows.",
    ),
    "one-step-coupling": (
        "pipeline.studies.one_step.coupling:study",
        "Variance reduction when draws are fresh episodes and when they all share the scored answer's ε.",
    ),
    "one-step-small-n": (
        "pipeline.studies.one_step.small_n:study",
        "Coverage and MSE ratios at N = 15 to 200 for good, biased, anti-calibrated and independent τ.",
    ),
    "one-step-printed": (
        "pipeline.studies.one_step.printed:study",
        "Rows of Tables 1, 2, 3 and 9 whose printed improvement disagrees with their own estimates.",
    ),
    "lace-a": (
        "pipeline.studies.lace.a:study",
        "Table 33 and Figure 4: predicted against simulated gain, pools up to 320,000.",
    ),
    "lace-adaptive": (
        "pipeline.studies.lace.adaptive:study",
        "The adaptive rule against the paper's, every comparator and installed peers; TABLE adds real tables.",
    ),
    "lace-b": ("pipeline.studies.lace.discrete:study_b", "Table 31: setting B over random designs, ten methods."),
    "lace-c": ("pipeline.studies.lace.discrete:study_c", "Table 32: setting C over random designs, ten methods."),
    "lace-coverage": (
        "pipeline.studies.coverage.lace:study",
        "Coverage at n = 50, 100, 200 on settings B, C and the repeated-pool design, both targets, both rules.",
    ),
    "rank-coverage": (
        "pipeline.studies.coverage.ranks:study",
        "Rank sets, joint gaps and equivalence of 3, 6 and 12 models at n = 50, 100, 200, for pool and population.",
    ),
    "curved": (
        "pipeline.studies.real.signal_studies:curved_study",
        "The curved rule against the averaged one: squared error, coverage, width on designs and (TABLE) real tables.",
    ),
    "free-signals": (
        "pipeline.studies.real.signal_studies:free_study",
        "Means and gaps with the agreement of answers as signals, on real tables of answers, against peers.",
    ),
    "lace-real": (
        "pipeline.studies.lace.real:study",
        "The protocol of section 5.3 on real tables or finished runs, with all ablations.",
    ),
    "evaluation-matrix": (
        "pipeline.studies.coverage.matrix:study",
        "Bias and coverage of every handled cell at n = 30, 100, 400: means, gaps, levels, comparators, draws.",
    ),
    "looks-paths": (
        "pipeline.studies.looks.paths:paths_study",
        "Means at ten looks on real TABLES: share of paths whose intervals all hold, plain and by each spending.",
    ),
    "looks-gaps": (
        "pipeline.studies.looks.paths:gaps_study",
        "The same for gaps of neighbouring models.",
    ),
    "gate-power": (
        "pipeline.studies.looks.gate_power:study",
        "How often the gate blocks a five-point drop, ships an equal candidate, errs on A/A; TABLES add real scores.",
    ),
    "lace-repeated-pool": (
        "pipeline.studies.lace.repeated_pool:study",
        "Table 34: every method over 24 synthetic settings and three budgets, under both readings.",
    ),
    "best-of-n-table1": (
        "pipeline.studies.best_of_n.cost:study",
        "Table 1: RMSE of cyclic splitting, fixed split and reuse, and their cost at equal budget.",
    ),
    "best-of-n-table2": (
        "pipeline.studies.best_of_n.grid:study",
        "Table 2, digit for digit, and the 27-cell grid it is taken from.",
    ),
    "best-of-n-table3": (
        "pipeline.studies.best_of_n.dependence:study",
        "Table 3: bias under equicorrelated scores, split into evaluation and selector law.",
    ),
    "best-of-n-controls": (
        "pipeline.studies.best_of_n.controls:study",
        "Section 6.1: unbiasedness on Gaussian and Bernoulli pools, with negative controls.",
    ),
    "best-of-n-figure2": (
        "pipeline.studies.best_of_n.risk_curves:study",
        "Figure 2: Holdout, the least unbiased risk and the biased maximum for two Gaussian candidates.",
    ),
    "best-of-n-real": (
        "pipeline.studies.best_of_n.real:study",
        "Real judges: value, optimism and gold of best-of-N, on a folder of score files.",
    ),
}


def study_summaries() -> dict[str, str]:
    """Every study's name and summary, in the order of the registry; imports none of them."""
    return {name: summary for name, (_, summary) in _STUDIES.items()}


def load_study(name: str) -> Study:
    """The study of that name; InputError names the closest ones if there is none."""
    if name not in _STUDIES:
        close = difflib.get_close_matches(name, _STUDIES, n=3, cutoff=0.4) or list(_STUDIES)
        raise InputError(f"there is no study {name!r}; did you mean {', '.join(close)}? (auxeval study --list)")
    module, _, attribute = _STUDIES[name][0].partition(":")
    study = getattr(import_module(module), attribute)
    if not isinstance(study, Study):
        raise TypeError(f"{_STUDIES[name][0]} is not a Study")
    return replace(study, name=name)
