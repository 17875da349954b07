"""The table that a run is estimated from, and that anyone can estimate from again: signals.parquet with its roles."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from pipeline.collection.stages import rated_criteria
from pipeline.config import RunConfig
from pipeline.estimators.floats import FloatArray
from pipeline.evaluation.options import Options
from pipeline.evaluation.pool import Pool
from pipeline.evaluation.signal_families import FAMILIES, family_of
from pipeline.evaluation.table_pool import table_pool
from pipeline.runs.frames import RunTables
from pipeline.runs.voices import run_free_columns
from pipeline.tables.column_roles import ColumnRoles, ProfileRole
from pipeline.tables.schemas import signal_columns
from pipeline.tables.signal_checks import Notice
from pipeline.tables.signals import counted_phi
from pipeline.tables.user_table import UserTable, frame_table

TAU_MISSING_SHARE = 0.01
"""Share of missing τ predictions from which the reader is told (each is filled so that it corrects nothing)."""
LEAST_SHRUNK = 4
"""Levels from which a run shows them shrunk to their mean too, unasked."""
_NO_ESTIMATES_OF_TABLES = "best_of_n"


@dataclass(frozen=True, slots=True, eq=False)
class Exported:
    """One row per item and target, with everything that estimates need.

    Attributes:
        frame: the signals table, then τ, several answers, chances and known outcomes where there are any.
        roles: of its columns.
        options: how the run evaluates it.
        notices: what was filled.
    """

    frame: pl.DataFrame
    roles: ColumnRoles
    options: Options
    notices: tuple[Notice, ...] = ()

    def metadata(self) -> dict[str, str]:
        """What the Parquet file says of itself, so that ``auxeval estimate`` on it equals the run."""
        roles = self.roles.to_dict()
        families = roles.pop("families", {})
        return {
            "auxeval.schema": "2",
            "auxeval.roles": json.dumps(roles, sort_keys=True),
            "auxeval.families": json.dumps(families, sort_keys=True),
            "auxeval.options": json.dumps(self.options.to_dict(), sort_keys=True),
        }

    def pool(self) -> Pool:
        """The pool of the table, as ``auxeval estimate`` reads it."""
        pool = table_pool(self.table(), self.roles)
        return replace(pool, notices=(*self.notices, *pool.notices))

    def table(self) -> UserTable:
        """The table as a reader of users' tables takes it."""
        return frame_table(self.frame.select(self.roles.columns()), "signals.parquet")


def run_pool(config: RunConfig, tables: RunTables) -> Pool:
    """The pool of a run."""
    return exported(config, tables).pool()


def exported(config: RunConfig, tables: RunTables) -> Exported:
    """Join what the tables of a run hold to its signals table.

    Raises:
        InputError: text features are asked for and cannot be made.
    """
    frame = tables.signals.filter(pl.col("target").is_in(config.roles.targets))
    frame = frame.drop([name for name in frame.columns if name.startswith(("tau_", "answer_"))], strict=False)
    frame = frame.drop(["inclusion", "outcome"], strict=False).sort("item_id", "target")
    notices: list[Notice] = []
    frame, families = _with_signals(config, tables, frame, notices)
    frame, taus = _with_taus(config, tables, frame, notices)
    frame, repeats = _with_repeats(config, tables, frame)
    frame, truth = _with_truth(config, tables, frame)
    frame = frame.drop(["label_round", "label_stratum"], strict=False)
    if tables.rounds:
        drawn = [tables.rounds[item] for item in frame["item_id"].to_list()]
        labeled = frame["labeled"].to_numpy()
        stage = np.where(labeled, np.array([entry[0] for entry in drawn]), 0)
        frame = frame.with_columns(
            pl.Series("label_round", stage), pl.Series("label_stratum", [entry[1] for entry in drawn])
        )
    if tables.inclusion:
        chances = pl.col("item_id").replace_strict(dict(tables.inclusion), return_dtype=pl.Float64)
        frame = frame.with_columns(chances.alias("inclusion"))
    clustered = "cluster" in tables.items.columns and tables.items["cluster"].is_not_null().all()
    if clustered:
        frame = frame.drop("cluster", strict=False).join(
            tables.items.select("item_id", "cluster"), on="item_id", how="left"
        )
    profiles: tuple[ProfileRole, ...] = ()
    if frame["profile"].drop_nulls().n_unique() > 1:
        profiles = (ProfileRole("profile", tables.profile_kind),)
    roles = ColumnRoles(
        "y", tuple(name for columns in families.values() for name in columns), id="item_id", model="target",
        profiles=profiles, labeled="labeled",
        cluster="cluster" if clustered else None,
        inclusion="inclusion" if tables.inclusion and not tables.rounds else None,
        stage="label_round" if tables.rounds else None, stratum="label_stratum" if tables.rounds else None,
        taus=taus, repeats=repeats, truth=truth,
        targets=config.roles.targets, sampling=None if config.design.labeled == "gold" else "uniform",
        families=families,
    )  # fmt: skip
    smooth = config.benchmark.profile is not None and config.benchmark.profile.smooth
    options = Options(
        tuple(name for name in config.estimate if name != _NO_ESTIMATES_OF_TABLES), seed=config.seed,
        target=config.target, margin=config.margin, smooth=smooth,
        shrink=frame["profile"].dtype == pl.String and frame["profile"].n_unique() >= LEAST_SHRUNK,
    )  # fmt: skip
    return Exported(frame, roles, options, tuple(notices))


def by_criterion(config: RunConfig, tables: RunTables, table: Exported) -> dict[str, Exported]:
    """The table once more for every further thing that people rated: other labels, the same signals."""
    if tables.ratings is None:
        return {}
    made = {}
    for criterion in [part.name for part in rated_criteria(config)][1:]:
        rated = tables.ratings.filter(pl.col("criterion") == criterion).select("item_id", "target", y="rating")
        frame = table.frame.drop("y").join(rated, on=["item_id", "target"], how="left", maintain_order="left")
        if rated.height:
            made[criterion] = replace(table, frame=frame.with_columns(pl.col("y").is_not_null().alias("labeled")))
    return made


def _with_signals(
    config: RunConfig, tables: RunTables, frame: pl.DataFrame, notices: list[Notice]
) -> tuple[pl.DataFrame, dict[str, tuple[str, ...]]]:
    """The frame with the columns that cost no call, and every signal by its family; both made anew from the tables."""
    words = [word for word in FAMILIES if config.wants(word)]
    own_names = config.benchmark.fields.signals
    free, frame = run_free_columns(config, tables, frame, words, notices)
    names = [name for name in signal_columns(frame.columns) if frame[name].is_not_null().any()]
    asked = [name for name in names if name not in {n for columns in free.values() for n in columns}]
    families = {word: tuple(name for name in asked if family_of(name, own_names) == word) for word in words}
    return frame, {word: columns for word, columns in {**families, **free}.items() if columns}


def _columns(frame: pl.DataFrame, prefix: str, rows: Mapping[str, FloatArray]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The frame with (M, R) numbers per target in columns of their own, items in sorted order."""
    width = max((len(matrix.T) for matrix in rows.values()), default=0)
    names = tuple(f"{prefix}_{k}" for k in range(width))
    if not names:
        return frame, ()
    targets, place = frame["target"].to_list(), dict.fromkeys(rows, 0)
    values = np.full((frame.height, width), np.nan)
    for row, target in enumerate(targets):
        if target in rows:
            matrix = rows[target]
            values[row, : matrix.shape[1]] = matrix[place[target]]
            place[target] += 1
    added = [pl.Series(name, values[:, k]).fill_nan(None) for k, name in enumerate(names)]
    return frame.with_columns(added), names


def _with_taus(
    config: RunConfig, tables: RunTables, frame: pl.DataFrame, notices: list[Notice]
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Predictions by a regressor model, or by Algorithm 1 from the texts of the run."""
    if "one_step" not in config.estimate:
        return frame, ()
    if config.design.algorithm == "features":
        from pipeline.runs.text_taus import text_taus

        return _columns(frame, "tau", text_taus(config, tables, frame))
    items = frame["item_id"].unique().sort().to_list()
    taus = {}
    for name in config.roles.targets:
        taus[name], missing = tau_matrix(tables.taus, name, items)
        share = missing / taus[name].size
        if share >= TAU_MISSING_SHARE:
            text = (
                f"{name}: {missing} of {taus[name].size} predictions ({share:.1%}) are missing; each was filled by"
                " the item's mean over its other draws, so that the item is not corrected by it"
            )
            notices.append(Notice("tau_missing", text))
    return _columns(frame, "tau", taus)


def tau_matrix(taus: pl.DataFrame, target: str, item_ids: Sequence[str]) -> tuple[FloatArray, int]:
    """The predicted probabilities of one target, (M, draws + 1), and how many were missing and filled.

    A missing draw j ≥ 1 becomes the mean of the item's other draws ≥ 1; a missing draw 0 becomes the item's mean
    over draws ≥ 1, so that the item's correction D_i is 0. An item without any draw gets 0.5 throughout: its D_i is 0.
    """
    frame = taus.filter(pl.col("target") == target)
    draws = max(frame["draw"].to_list(), default=0) + 1
    matrix = np.full((len(item_ids), draws), np.nan)
    row_of = {item: row for row, item in enumerate(item_ids)}
    for item, draw, tau in frame.select("item_id", "draw", "tau").iter_rows():
        if tau is not None and item in row_of:
            matrix[row_of[item], draw] = tau
    missing = np.isnan(matrix)
    later = matrix[:, 1:]
    count = (~np.isnan(later)).sum(axis=1)
    mean = np.where(
        count > 0, np.nansum(later, axis=1) / np.maximum(count, 1), np.where(missing[:, 0], 0.5, matrix[:, 0])
    )
    return np.where(missing, mean[:, None], matrix), int(missing.sum())


def _answers(tables: RunTables, target: str) -> pl.DataFrame:
    return tables.responses.filter((pl.col("model") == target) & (pl.col("stage") == "answer"))


def _with_repeats(config: RunConfig, tables: RunTables, frame: pl.DataFrame) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """φ of every answer to the labeled items; a missing reply counts as ``missing_reply`` says."""
    if "repeated_decoding" not in config.estimate:
        return frame, ()
    repeats = {}
    for target in config.roles.targets:
        own = frame.filter(pl.col("target") == target)
        rows = {item: row for row, item in enumerate(own["item_id"].to_list())}
        answers = _answers(tables, target).with_columns(counted_phi(config.missing_reply).alias("phi"))
        matrix = np.full((own.height, max(answers["draw"].to_list(), default=0) + 1), np.nan)
        for item, draw, phi in answers.select("item_id", "draw", "phi").iter_rows():
            if phi is not None and item in rows:
                matrix[rows[item], draw] = phi
        matrix[~own["labeled"].to_numpy()] = np.nan
        repeats[target] = matrix
    return _columns(frame, "answer", repeats)


def _with_truth(config: RunConfig, tables: RunTables, frame: pl.DataFrame) -> tuple[pl.DataFrame, str | None]:
    """The outcome of every item where every gold answer is known."""
    if tables.items["gold"].is_null().any():
        return frame, None
    answers = tables.responses.filter((pl.col("stage") == "answer") & (pl.col("draw") == 0))
    outcome = counted_phi(config.missing_reply).alias("outcome")
    truths = answers.select("item_id", pl.col("model").alias("target"), outcome)
    joined = frame.join(truths, on=["item_id", "target"], how="left", maintain_order="left")
    return joined, "outcome" if joined["outcome"].is_not_null().any() else None
