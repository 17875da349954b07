"""Calls, tokens, cost and failures by stage; null values by kind, target and reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from pipeline.report.page_values import Part, parts_of
from pipeline.report.run_folder import RunFolder
from pipeline.report.values import Cell, Number, Table, quantity, table


def calls(run: RunFolder) -> tuple[Part, ...]:
    """The parts."""
    return parts_of(_stages(run), _nulls(run), _models(run))


def _stages(run: RunFolder) -> Table | None:
    rows: list[list[Cell]] = []
    for stage, counted in ((run.manifest.get("calls") or {}).get("stages") or {}).items():
        outcomes = ", ".join(f"{count} {name}" for name, count in counted["outcomes"].items() if name != "ok")
        repairs = sum(count for (of, _), count in run.call_log.repairs.items() if of == stage)
        rows.append(
            [
                stage,
                counted["calls"],
                counted["answered"],
                counted["cached"],
                counted["failed"],
                counted["attempts"],
                repairs if run.call_log.read else "–",
                counted["prompt_tokens"],
                counted["completion_tokens"],
                _money(counted),
                outcomes or "–",
            ]
        )
    if not rows:
        return None
    columns = ["stage", "calls", "asked", "cached", "failed", "attempts", "repairs", "prompt tokens", "reply tokens"]
    note = (
        "asked: answered for this run and paid for; cached: answered earlier, by this or another run. Repairs are among"
        " the calls. Cost is this run's."
    )
    return table(
        "Calls by stage",
        [*columns, "cost, USD", "other than ok"],
        rows,
        numeric=range(1, 10),
        note=note,
        source="manifest.json, calls; calls.jsonl has every call",
    )


def _money(counted: Mapping[str, Any]) -> Cell:
    priced, unknown = float(counted["cost_usd"]), counted["cost_unknown"]
    return Number(priced, f"{priced:.4f} + {unknown} calls of unknown price" if unknown else f"{priced:.4f}")


def _kinds(run: RunFolder) -> Iterator[tuple[str, str, pl.DataFrame, str]]:
    """(kind, column of the target, frame, value column)."""
    answers = run.responses.filter(pl.col("stage") == "answer")
    yield (
        "outcome φ of answers to labeled items",
        "model",
        answers.join(run.items.filter("labeled").select("item_id"), on="item_id", how="semi"),
        "phi",
    )
    yield "stated confidence", "model", answers, "confidence"
    del answers
    run.forget()  # one table at a time: all of them were 400 MB of a run of 20,000 items
    chains = pl.col("pair") == "chains"
    yield "verdicts on chains", "target", run.preferences.filter(chains), "verdict"
    yield "verdicts against anchors", "target", run.preferences.filter(~chains), "verdict"
    run.forget()
    candidate = pl.col("candidate").is_not_null()
    yield "judge scores", "target", run.scores.filter(~candidate), "score"
    yield "scores of candidates", "target", run.scores.filter(candidate), "score"
    run.forget()
    yield "predictions τ", "target", run.taus, "tau"


def _nulls(run: RunFolder) -> Table | None:
    rows: list[list[Cell]] = []
    for kind, by, frame, column in _kinds(run):
        for target in run.targets:
            mine = frame.filter((pl.col(by) == target) & (pl.col(f"{column}_reason").fill_null("") != "not_asked"))
            if not mine.height:
                continue
            missing = mine.filter(pl.col(column).is_null())[f"{column}_reason"].fill_null("no reason")
            counted = missing.value_counts().sort("count", f"{column}_reason", descending=[True, False]).rows()
            reasons = ", ".join(f"{count} {reason}" for reason, count in counted)
            rows.append(
                [
                    kind,
                    target,
                    mine.height,
                    len(missing),
                    quantity(len(missing) / mine.height, percent=True),
                    reasons or "–",
                ]
            )
    if not rows:
        return None
    note = (
        "A null is never a zero, a tie or a dropped row: it stays null with its reason, and estimates say what they do."
    )
    return table(
        "Null values by target and reason",
        ["value", "target", "asked", "null", "null, %", "why"],
        rows,
        numeric=(2, 3, 4),
        note=note,
        source="tables/*.parquet, the columns ending in _reason",
    )


def _part(role: str, part: str, name: str) -> str:
    return f"{part} anchor" if role == "anchors" and part != name else role.rstrip("s")


def _models(run: RunFolder) -> Table | None:
    """Who played which role."""
    roles: dict[str, list[str]] = {}
    for role, named in (run.config.get("roles") or {}).items():
        players = named.items() if isinstance(named, dict) else [("", named)]
        for part, player in players:
            for name in player if isinstance(player, list) else [player]:
                if isinstance(name, str):
                    roles.setdefault(name, []).append(_part(role, part, name))
    models, negotiated = run.manifest.get("models") or {}, run.manifest.get("negotiated") or {}
    answered = run.manifest.get("served") or {}
    rows: list[list[Cell]] = [
        [
            name,
            models.get(name, name),
            ", ".join(played),
            "simulated" if name in run.simulated else "real",
            str((negotiated.get(name) or {}).get("response_format") or "–"),
            ", ".join(f"{served} ({count})" for served, count in (answered.get(name) or {}).items()) or "–",
        ]
        for name, played in roles.items()
    ]
    columns = ["name", "model", "role", "replies are", "structured output", "replies name"]
    guesses = {name: (price or {}).get("guess") for name, price in (run.manifest.get("prices") or {}).items()}
    note = "; ".join(f"the price of {name} is a guess: {why}" for name, why in guesses.items() if why)
    source = "config.yaml, manifest.json"
    return table("Models", columns, rows, note=note, source=source) if rows else None
