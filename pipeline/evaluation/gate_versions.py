"""Reads what a gate compares: the scores of one version, from a run, a table or another tool's logs, item by item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pipeline.errors import DataError, InputError
from pipeline.estimators.floats import FloatArray
from pipeline.evaluation.plans.doors import ledger_at_door
from pipeline.tables.cells import label_column, number_column
from pipeline.tables.imports.imported import ImportedTable
from pipeline.tables.imports.suggested_roles import suggested_roles
from pipeline.tables.schemas import signal_columns
from pipeline.tables.store import read_table
from pipeline.tables.table_source import inspect_source
from pipeline.tables.user_table import nearest_names, read_user_table

_IDS = ("id", "item_id", "question_id")
_GOLDS = ("gold", "score", "correct")
SCORE = "score"
"""The metric of a run: the grade of each answer."""


@dataclass(frozen=True, slots=True)
class GateColumns:
    """Which columns of both sources hold what; None and empty mean: the usual names, or none.

    Attributes:
        id: the item. model: which model a row is of. cluster: what items belong together.
        metrics: scores that are compared.
        signals: label-free numbers, used where some items have no score.
        profiles: the slices.
    """

    id: str | None = None
    model: str | None = None
    cluster: str | None = None
    metrics: tuple[str, ...] = ()
    signals: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Version:
    """The scores of one model on its items.

    Attributes:
        name: the model, or the file where the source names none.
        ids: (M,) items, each once.
        scores: metric → (M, E) scores by epoch, NaN where missing.
        signals: (M, K) means over epochs, NaN where missing; signal_names: (K,).
        slices: column → (M,) labels.
        clusters: (M,) labels, or None.
        questions: (M,) text of the items, or None where the source does not tell.
        looks: labels at the looks at this source that were counted.
    """

    name: str
    ids: NDArray[np.str_]
    scores: dict[str, FloatArray]
    signals: FloatArray
    signal_names: tuple[str, ...] = ()
    slices: dict[str, NDArray[np.str_]] | None = None
    clusters: NDArray[np.str_] | None = None
    questions: NDArray[np.str_] | None = None
    looks: tuple[int, ...] = ()

    def of(self, rows: NDArray[np.intp]) -> Version:
        """The same for some items, in their order."""
        return replace(
            self,
            ids=self.ids[rows],
            scores={name: values[rows] for name, values in self.scores.items()},
            signals=self.signals[rows],
            slices={name: labels[rows] for name, labels in (self.slices or {}).items()},
            clusters=None if self.clusters is None else self.clusters[rows],
            questions=None if self.questions is None else self.questions[rows],
        )


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """A source as one frame: text in item, model, cluster, question and slices, numbers in metrics and signals."""

    frame: pl.DataFrame
    metrics: tuple[str, ...]
    signals: tuple[str, ...]
    profiles: tuple[str, ...]
    models: bool


def read_version(source: str | Path, columns: GateColumns, model: str | None = None) -> Version:
    """One version of a model.

    Args:
        source: a run directory, a table, or a log of Inspect AI or the LM evaluation harness (or a folder of them).
        columns: of a table or log; a run needs none.
        model: which model, where the source holds several.

    Raises:
        InputError: a blind label plan hides its numbers, nothing readable there,
            several models and none chosen, a column that is not there.
    """
    path = Path(source)
    if not path.exists():
        raise InputError(f"{path}: no such run, table or log")
    ledger = ledger_at_door(path)
    rows = _run_rows(path, columns) if (path / "tables").is_dir() else _table_rows(path, columns)
    frame = rows.frame
    if rows.models:
        names = sorted(frame["model"].unique().to_list())
        if model is None and len(names) > 1:
            raise InputError(f"{path} holds {len(names)} models ({', '.join(names[:6])}); choose with --model NAME")
        chosen = names[0] if model is None else model
        if chosen not in names:
            close = nearest_names(chosen, names) or names[:6]
            raise InputError(f"{path} holds no model {chosen!r}; it has {', '.join(close)}")
        frame = frame.filter(pl.col("model") == chosen)
    else:
        chosen = model or path.stem
    looks = () if ledger is None else tuple(look.n for look in ledger.looks)
    return replace(_version(chosen, replace(rows, frame=frame)), looks=looks)


def _version(name: str, rows: _Rows) -> Version:
    frame = rows.frame.with_columns(pl.int_range(pl.len()).over("item").alias("#epoch"))
    ids = sorted(frame["item"].unique().to_list())
    place = frame["item"].replace_strict(ids, list(range(len(ids))), return_dtype=pl.Int64).to_numpy()
    epoch = frame["#epoch"].to_numpy()
    scores = {metric: np.full((len(ids), int(epoch.max()) + 1), np.nan) for metric in rows.metrics}
    for metric, table in scores.items():
        table[place, epoch] = frame[metric].cast(pl.Float64).fill_null(np.nan).to_numpy()
    single = frame.group_by("item").agg(
        *(pl.col(column).fill_nan(None).mean() for column in rows.signals),
        *(pl.col(column).drop_nulls().first() for column in (*rows.profiles, "cluster", "question")),
    ).sort("item")  # fmt: skip
    signals = [single[column].cast(pl.Float64).fill_null(np.nan).to_numpy() for column in rows.signals]

    def labels(column: str) -> NDArray[np.str_]:
        return np.asarray(single[column].fill_null("").to_list(), dtype=np.str_)

    return Version(
        name, np.asarray(ids, dtype=np.str_), scores,
        np.stack(signals, axis=1) if signals else np.empty((len(ids), 0)), rows.signals,
        {column: labels(column) for column in rows.profiles},
        labels("cluster") if single["cluster"].null_count() == 0 else None,
        labels("question") if single["question"].null_count() == 0 else None,
    )  # fmt: skip


# ---- a run


def _run_rows(path: Path, columns: GateColumns) -> _Rows:
    tables = path / "tables"
    items, responses, signals = (read_table(tables, name) for name in ("items", "responses", "signals"))
    if stray := [name for name in columns.metrics if name != SCORE]:
        raise InputError(f"{path} is a run: its metric is {SCORE!r}, not {stray[0]!r}")
    names = signal_columns(signals.columns)
    targets = signals["target"].unique()
    answers = responses.filter((pl.col("stage") == "answer") & pl.col("model").is_in(targets.to_list()))
    frame = answers.select("item_id", "model", "draw", "phi").join(
        signals.select("item_id", pl.col("target").alias("model"), "y", "profile", *names),
        on=["item_id", "model"], how="left",
    )  # fmt: skip
    # A labeled item without a reply counts as the run decided (y); what the run did not label but knows is used too.
    outcome = pl.when(pl.col("draw") == 0).then(pl.coalesce("y", "phi")).otherwise(pl.col("phi"))
    frame = frame.with_columns(outcome.alias(SCORE), pl.col("profile").cast(pl.String))
    frame = frame.join(items.select("item_id", "question"), on="item_id", how="left").sort("item_id", "draw")
    frame = frame.rename({"item_id": "item"}).with_columns(pl.lit(None, dtype=pl.String).alias("cluster"))
    if stray := [name for name in columns.profiles if name != "profile"]:
        raise InputError(f"{path} is a run: its slices are --profile profile, not {stray[0]!r}")
    return _Rows(frame, (SCORE,), names, columns.profiles, models=True)


# ---- tables and logs


def _table_rows(path: Path, columns: GateColumns) -> _Rows:
    log = _log(path)
    if log is not None:
        return _log_rows(path, log, columns)
    have = inspect_source(path).columns
    item = columns.id or _usual(path, have, _IDS, "--id")
    metrics = columns.metrics or (_usual(path, have, _GOLDS, "--gold"),)
    model = columns.model or ("model" if "model" in have else None)
    texts = [item, *([model] if model else []), *([columns.cluster] if columns.cluster else []), *columns.profiles]
    question = ["question"] if "question" in have else []
    table = read_user_table(path, [*texts, *metrics, *columns.signals, *question])
    made = {"item": label_column(table, item)}
    if (made["item"] == "").any():
        raise DataError(f"{path}: id column {item!r} is empty in {int((made['item'] == '').sum())} rows")
    made["model"] = label_column(table, model) if model else np.full(table.frame.height, "")
    optional = (("cluster", [columns.cluster] if columns.cluster else []), ("question", question))
    series = [pl.Series(name, values.tolist(), dtype=pl.String) for name, values in made.items()]
    for name, source in optional:
        values = label_column(table, source[0]).tolist() if source else [None] * table.frame.height
        series.append(pl.Series(name, values, dtype=pl.String))
    series += [pl.Series(name, label_column(table, name).tolist(), dtype=pl.String) for name in columns.profiles]
    series += [pl.Series(name, number_column(table, name, "metric").values) for name in metrics]
    series += [pl.Series(name, number_column(table, name, "signal").values) for name in columns.signals]
    return _Rows(pl.DataFrame(series), metrics, columns.signals, columns.profiles, models=model is not None)


def _usual(path: Path, have: Sequence[str], names: Sequence[str], option: str) -> str:
    usual = next((name for name in names if name in have), None)
    if usual is None:
        raise InputError(f"{path}: no column {' or '.join(names)}; name it with {option} COL")
    return usual


def _log(path: Path) -> ImportedTable | None:
    """The source as another tool's log; None where it is a table."""
    from pipeline.tables.imports.inspect_logs import read_inspect_logs
    from pipeline.tables.imports.lm_eval_samples import read_lm_eval_samples

    if path.name.startswith("samples_") or (path.is_dir() and any(path.rglob("samples_*.jsonl*"))):
        return read_lm_eval_samples(path)
    if path.is_dir() or path.suffix == ".eval" or _is_inspect(path):
        return read_inspect_logs(path)
    return None


def _is_inspect(path: Path) -> bool:
    if path.suffix != ".json":
        return False
    with path.open("rb") as file:
        head = file.read(4096)
    return b'"eval"' in head and b'"version"' in head


def _log_rows(path: Path, log: ImportedTable, columns: GateColumns) -> _Rows:
    suggested = suggested_roles(log)
    if suggested is None:
        raise InputError(f"{path}: the logs hold no scores")
    metrics = columns.metrics or (suggested.gold,)
    for name in (*metrics, *columns.signals, *columns.profiles):
        if name not in log.frame.columns:
            close = nearest_names(name, log.frame.columns)
            raise InputError(
                f"{path} has no column {name!r}" + (f"; did you mean {' or '.join(close)}?" if close else "")
            )
    several = log.frame["task"].n_unique() > 1
    item = pl.concat_str("task", "item_id", separator="/") if several else pl.col("item_id")
    frame = log.frame.with_columns(
        item.cast(pl.String).alias("item"), pl.col("model").fill_null("").cast(pl.String),
        pl.lit(None, dtype=pl.String).alias("cluster"), *(pl.col(name).cast(pl.String) for name in columns.profiles),
    ).sort("item", "model", "epoch")  # fmt: skip
    return _Rows(frame, metrics, columns.signals, columns.profiles, models=True)
