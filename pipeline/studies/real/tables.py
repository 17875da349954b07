"""Real tables with full gold, cut into cells (one target on one axis), ready for any study of labeled splits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.errors import DataError
from pipeline.estimators.floats import FloatArray
from pipeline.estimators.signals import fill_missing_signals, standardize_signals
from pipeline.evaluation.table_pool import read_pool
from pipeline.studies.registry import TableColumns
from pipeline.tables.column_roles import ColumnRoles, ProfileRole

Kind: TypeAlias = Literal["continuous", "ordinal", "categorical"]

JITTER = 0.4


@dataclass(frozen=True, slots=True, eq=False)
class RealCell:
    """One target on one profile axis, with gold on every item.

    Attributes:
        name: table, axis and target.
        target: the model (or data set) whose outcomes these are.
        z: (M,) profile: numbers (ordered levels already jittered), or text.
        kind: of the axis.
        levels: (M,) the levels of an ordered axis before the jitter, else None.
        y: (M,) gold.
        signals: (M, K) filled and standardised over the pool.
        families: family name to signal columns.
        primary: column of the signal that single-signal methods use.
        raw_judge: (M,) the primary signal as given.
    """

    name: str
    target: str
    z: NDArray[Any]
    kind: Kind
    levels: FloatArray | None
    y: FloatArray
    signals: FloatArray
    families: Mapping[str, tuple[int, ...]]
    primary: int
    raw_judge: FloatArray

    @property
    def axis(self) -> str:
        """Table and axis, without the target."""
        return self.name.removesuffix(f"/{self.target}")


@dataclass(frozen=True, slots=True)
class _Adapter:
    """How one known table becomes cells."""

    signals: Mapping[str, str]  # signal column to family; the first is the primary one
    axes: Mapping[str, Kind]
    target: str = "model"
    prepare: Callable[[pl.DataFrame, Path], pl.DataFrame] = field(default=lambda frame, _path: frame)


def is_known(path: Path) -> bool:
    """Whether ``load_cells`` recognises the file by its name."""
    return path.is_file() and any(path.name.startswith(prefix) for prefix in _ADAPTERS)


def load_cells(path: Path, columns: TableColumns) -> list[RealCell]:
    """The cells of a known table, or of any table whose columns are named.

    Args:
        path: a table file; known ones are recognised by their name.
        columns: roles of the columns; with a gold column the table is read as the user's own.

    Raises:
        DataError: a table that is neither known nor described, columns that are missing, gold that is not full.
    """
    if columns.gold is not None:
        return _user_cells(path, columns)
    stem = path.name.split(".")[0]
    adapter = next((adapter_of for prefix, adapter_of in _ADAPTERS.items() if stem.startswith(prefix)), None)
    if adapter is None:
        raise DataError(f"{path}: not a table this study knows; name its columns with --gold, --signals and --profile")
    frame = adapter.prepare(_read(path), path)
    needed = {"y", adapter.target, *adapter.signals, *adapter.axes}
    missing = sorted(needed - set(frame.columns))
    if missing:
        raise DataError(f"{path}: columns {', '.join(missing)} are missing")
    cells = []
    for axis, kind in adapter.axes.items():
        for (target,), rows in frame.sort(adapter.target, maintain_order=True).group_by(
            adapter.target, maintain_order=True
        ):
            cells.append(_cell(stem, axis, kind, str(target), rows, adapter.signals))
    return cells


def spread_targets(cells: Sequence[RealCell], count: int) -> list[RealCell]:
    """At most ``count`` ≥ 2 targets of one axis, evenly spread over the ranks of their mean outcome, ends included."""
    ranked = sorted(cells, key=lambda cell: float(cell.y.mean()))
    if len(ranked) <= count:
        return ranked
    return [ranked[round(index * (len(ranked) - 1) / (count - 1))] for index in range(count)]


def _read(path: Path) -> pl.DataFrame:
    try:
        if ".jsonl" in path.suffixes:
            return pl.read_ndjson(path, infer_schema_length=None)
        return pl.read_csv(path, infer_schema_length=None)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise DataError(f"{path}: cannot be read as a table: {error}") from error


def _cell(table: str, axis: str, kind: Kind, target: str, rows: pl.DataFrame, families: Mapping[str, str]) -> RealCell:
    names = [name for name in families if rows[name].null_count() < len(rows)]
    raw = np.column_stack([rows[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in names])
    values = rows[axis].to_numpy() if kind != "categorical" else rows[axis].cast(pl.String).to_numpy().astype(str)
    grouped = {name: families[name] for name in names}
    return build_cell(f"{table}/{axis}", target, values, kind, rows["y"].cast(pl.Float64).to_numpy(), raw, grouped)


def build_cell(
    name: str,
    target: str,
    values: NDArray[Any],
    kind: Kind,
    y: FloatArray,
    raw: FloatArray,
    families: Mapping[str, str],
) -> RealCell:
    """A cell from raw columns: signals filled and standardised, ordered axes jittered, alike for every target."""
    filled, indicated = fill_missing_signals(raw)
    names = list(families)
    owners = [*names, *(names[column] for column in indicated)]
    grouped: dict[str, tuple[int, ...]] = {}
    for column, owner in enumerate(owners):
        family = families[owner]
        grouped[family] = (*grouped.get(family, ()), column)
    levels = values.astype(np.float64) if kind == "ordinal" else None
    z: NDArray[Any] = values.astype(np.float64) if kind != "categorical" else values
    if kind == "ordinal":
        seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
        z = z + np.random.default_rng(seed).uniform(-JITTER, JITTER, size=len(z))
    judge = filled[:, 0]
    return RealCell(f"{name}/{target}", target, z, kind, levels, y, standardize_signals(filled), grouped, 0, judge)


def _user_cells(path: Path, columns: TableColumns) -> list[RealCell]:
    if columns.gold is None or not columns.signals or columns.profile is None:
        raise DataError("a table of your own needs --gold, --signals and --profile")
    column, _, kind = columns.profile.partition(":")
    if kind not in ("", "continuous", "ordinal", "categorical"):
        raise DataError(f"--profile type must be continuous, ordinal or categorical, got {kind!r}")
    role = ProfileRole(column, kind or None)  # type: ignore[arg-type]
    roles = ColumnRoles(columns.gold, columns.signals, columns.item, columns.model, profiles=(role,))
    cells = []
    for target in read_pool(path, roles).targets:
        if not target.labeled.all():
            raise DataError(
                f"{path}: {int((~target.labeled).sum())} rows of {target.name} have no gold; this study draws its own "
                "labeled sets and needs the outcome on every row"
            )
        axis = target.profiles[0]
        if axis.kind == "tags" or axis.kind == "semantic":
            raise DataError(f"{path}: --profile {column}: this study profiles levels or numbers, not overlapping tags")
        families = {name: name for name in target.signal_names}
        cells.append(
            build_cell(f"{path.name}/{column}", target.name, axis.values, axis.kind, target.y, target.signals, families)
        )
    return cells


def _joined(file: str, columns: Sequence[str]) -> Callable[[pl.DataFrame, Path], pl.DataFrame]:
    def prepare(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
        folder = path.parent.parent / "benchmarks"
        files = sorted(folder.glob(f"{file}.*"))
        if not files:
            raise DataError(f"{path}: needs {file} in {folder} for the profile axis")
        items = pl.read_ndjson(files[0]) if ".jsonl" in files[0].name else pl.read_csv(files[0])
        return frame.join(items.select("item_id", *columns), on="item_id", how="left")

    return prepare


GSM8K_ANCHORS = ("gpt3-175b-verifier", "abel-7b", "gpt-3.5-turbo", "tora-7b")


def _gsm8k(frame: pl.DataFrame, path: Path) -> pl.DataFrame:
    """Adds agreement with three fixed anchor models (another one where a model would be its own anchor)."""
    frame = _joined("gsm8k_test", ("n_steps", "q_chars"))(frame, path)
    wide = {
        anchor: frame.filter(pl.col("model") == anchor).select("item_id", pl.col("pred").alias(f"pred_{anchor}"))
        for anchor in GSM8K_ANCHORS
    }
    for answers in wide.values():
        frame = frame.join(answers, on="item_id", how="left")
    agree = [(pl.col("pred") == pl.col(f"pred_{anchor}")).cast(pl.Float64) for anchor in GSM8K_ANCHORS]
    spare = agree[-1]
    return frame.with_columns(
        pl.when(pl.col("model") == anchor).then(spare).otherwise(same).fill_null(0.0).alias(f"s_agree_{index}")
        for index, (anchor, same) in enumerate(zip(GSM8K_ANCHORS[:3], agree[:3], strict=True), start=1)
    )


def _confidence(frame: pl.DataFrame, _path: Path) -> pl.DataFrame:
    """Adds a label-free axis: the mean rank of the other models' confidence on the item."""
    ranked = frame.with_columns((pl.col("s_msp").rank() / pl.len()).over("model").alias("rank"))
    total = ranked.with_columns(
        pl.col("rank").sum().over("item_id").alias("sum"), pl.len().over("item_id").alias("count")
    )
    return total.with_columns(((pl.col("sum") - pl.col("rank")) / (pl.col("count") - 1)).alias("others_confidence"))


def _first_runs(frame: pl.DataFrame, _path: Path) -> pl.DataFrame:
    """The first of the five sampled answers; one target per data set and prompting strategy."""
    return frame.filter(pl.col("run") == 0).with_columns((pl.col("dataset") + " " + pl.col("strategy")).alias("target"))


def _arena(frame: pl.DataFrame, _path: Path) -> pl.DataFrame:
    """Verdicts as the share of a win for model a; a tie is a half."""
    share = {"model_a": 1.0, "tie": 0.5, "model_b": 0.0}
    verdicts = ("judge_gpt4", "judge_claude3opus", "judge_gpt35")
    return frame.with_columns(
        pl.col("human").replace_strict(share, default=0.5, return_dtype=pl.Float64).alias("y"),
        *(pl.col(name).replace_strict(share, default=0.5, return_dtype=pl.Float64) for name in verdicts),
        pl.lit("battles").alias("target"),
    )


def _ratings(frame: pl.DataFrame, _path: Path) -> pl.DataFrame:
    """Human and judge ratings of 0 to 100 as shares (local PPI wants its score on the outcome's scale)."""
    judges = [name for name in frame.columns if name.startswith("judge_")]
    return frame.with_columns(pl.col("y", *judges) / 100.0, pl.lit("ratings").alias("target"))


def _toxicity(frame: pl.DataFrame, _path: Path) -> pl.DataFrame:
    """Judge scores cut to their scale of 0 to 9 (one reply holds a stray 110), as shares of it."""
    judges = [name for name in frame.columns if name.startswith("judge_")]
    return frame.with_columns(pl.col(judges).clip(0, 9) / 9.0, pl.lit("toxic").alias("target"))


_ASSET_JUDGES = (
    "Qwen3-8B", "Qwen3-4B", "Qwen3-1.7B", "Qwen3-0.6B", "Llama-3.1-8B-Instruct", "Llama-3.2-3B", "Llama-3.2-1B",
    "Mistral-7B-Instruct-v0.3", "Phi-4-mini-instruct", "gemma-3-4b-it", "gemma-3-1b-it",
)  # fmt: skip
_TOXICITY_JUDGES = (
    "Qwen2.5-14B-Instruct", "Qwen2.5-7B-Instruct", "Qwen3-8B", "Meta-Llama-3-8B-Instruct", "Llama-3.1-8B-Instruct",
    "Mistral-7B-Instruct-v0.3", "gemma-2-9b-it", "Phi-4-mini-instruct", "Yi-1.5-9B-Chat",
)  # fmt: skip


def _by_maker(judges: Sequence[str]) -> dict[str, str]:
    """Judge columns, each in the family of its maker."""
    return {f"judge_{name}": name.replace("Meta-", "").split("-")[0].rstrip("0123456789.") for name in judges}


_ADAPTERS: Mapping[str, _Adapter] = {
    "gsm8k_outcomes": _Adapter(
        {
            "s_consensus": "consensus",
            "s_agree_1": "anchors",
            "s_agree_2": "anchors",
            "s_agree_3": "anchors",
            "out_chars": "length",
        },
        {"n_steps": "ordinal"},
        prepare=_gsm8k,
    ),
    "mmlupro_table": _Adapter(
        {
            "s_consensus_cheap": "consensus",
            "s_consensus_all": "consensus",
            "s_agree_phi3": "anchor",
            "s_panel_top_share": "difficulty",
            "s_answered": "form",
            "s_out_chars": "form",
        },
        {"q_chars": "continuous", "category": "categorical"},
    ),
    "mcq_confidence": _Adapter(
        {"s_msp": "softmax", "s_maxlogit": "logit", "s_msp_prompt2": "second prompt"},
        {"others_confidence": "continuous"},
        prepare=_confidence,
    ),
    "openqa_sciq": _Adapter(
        {
            "s_judge_answer": "judge",
            "s_seq_prob": "probability",
            "s_answer_prob": "probability",
            "resp_chars": "length",
        },
        {"q_chars": "continuous"},
    ),
    "cotuq": _Adapter(
        {
            "s_self_consistency": "self-consistency",
            "s_probas_mean": "probability",
            "s_probas_min": "probability",
            "s_token_sar": "probability",
            "s_p_true": "P(true)",
            "s_p_true_steps": "P(true)",
            "s_verbal": "verbal",
            "s_verbal_steps": "verbal",
            "resp_chars": "length",
        },
        {"q_chars": "continuous"},
        target="target",
        prepare=_first_runs,
    ),
    "arena_votes": _Adapter(
        {"judge_gpt4": "GPT-4", "judge_claude3opus": "Claude 3 Opus", "judge_gpt35": "GPT-3.5"},
        {"model_a": "categorical"},
        target="target",
        prepare=_arena,
    ),
    "asset_ratings": _Adapter(
        _by_maker(_ASSET_JUDGES), {"orig_chars": "continuous"}, target="target", prepare=_ratings
    ),
    "civilcomments": _Adapter(
        _by_maker(_TOXICITY_JUDGES), {"text_chars": "continuous"}, target="target", prepare=_toxicity
    ),
}
