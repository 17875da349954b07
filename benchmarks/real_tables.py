"""The real tables of the shared data folder in the form that `auxeval estimate` reads: one row per item and model."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pipeline.tables.column_roles import ColumnRoles, ProfileRole

__all__ = ["RealTable", "real_tables"]


@dataclass(frozen=True, slots=True)
class RealTable:
    """One table and its columns.

    Attributes:
        name: as in the report.
        build: the shared folder → the frame.
        roles: its columns.
        control: whether nothing is expected of its signals.
    """

    name: str
    build: Callable[[Path], pl.DataFrame]
    roles: ColumnRoles
    control: bool = False


def _csv(folder: Path, name: str) -> pl.DataFrame:
    return pl.read_csv(folder / "data" / name, infer_schema_length=None)


def _lines(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(folder / "data" / name, "rt", encoding="utf-8") as text:
        yield from map(json.loads, text)


def _reader(name: str) -> Callable[[Path], pl.DataFrame]:
    return lambda folder: _csv(folder, name)


def _cje(folder: Path) -> pl.DataFrame:
    return pl.DataFrame(list(_lines(folder, "judges/cje_arena_policies.jsonl.gz")), infer_schema_length=None)


def _shuffled_gsm8k(folder: Path) -> pl.DataFrame:
    return _shuffled(_gsm8k(folder), ("s_consensus", "out_chars"))


def _shuffled_civilcomments(folder: Path) -> pl.DataFrame:
    name = "judges/civilcomments_judges.csv.gz"
    return _shuffled(_csv(folder, name), _judge_columns(folder, name))


def _gsm8k(folder: Path) -> pl.DataFrame:
    steps = pl.DataFrame(
        [
            {"item_id": r["item_id"], "n_steps": r["n_steps"], "q_chars": r["q_chars"]}
            for r in _lines(folder, "benchmarks/gsm8k_test.jsonl.gz")
        ]
    )
    return _csv(folder, "tables/gsm8k_outcomes.csv.gz").join(steps, on="item_id")


def _mmlupro_predictions(folder: Path) -> pl.DataFrame:
    """Three strong models, with the agreement of five small ones as signals."""
    wide = _csv(folder, "tables/mmlupro_predictions.csv.gz")
    small = ["gemma-7b", "Llama-2-7b-hf", "Qwen1.5-7B-Chat", "Yi-6B", "Mistral-7B-v0.1"]
    frames = []
    for model in ("gemini-1.5-pro-002", "Meta-Llama-3_1-70B-Instruct", "Phi-3-mini-4k-instruct"):
        own = pl.col(model).fill_null("")
        agree = [(own == pl.col(name).fill_null("?")).cast(pl.Int8).alias(f"agree_{name}") for name in small]
        right = (own == pl.col("gold")).cast(pl.Int8).alias("y")
        frames.append(wide.select("item_id", "category", pl.lit(model).alias("model"), right, *agree))
    return pl.concat(frames)


def _cotuq(folder: Path) -> pl.DataFrame:
    frame = _csv(folder, "tables/cotuq_llama31_8b.csv.gz")
    return frame.with_columns(pl.concat_str("dataset", "strategy", separator=" ").alias("cell"))


def _scienceqa(folder: Path) -> pl.DataFrame:
    return pl.DataFrame(list(_lines(folder, "tables/scienceqa_davinci002.jsonl.gz")))


_WINNER = {"a": 1.0, "b": 0.0, "tie": 0.5}


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _mtbench(folder: Path) -> pl.DataFrame:
    rows = []
    for r in _lines(folder, "judges/mtbench_human.jsonl.gz"):
        single = r["gpt4_single"]
        rows.append(
            {
                "item_id": r["item_id"], "category": r["category"], "question": r["question_id"],
                "y": _WINNER.get(r["human"]),
                "gpt4_pair": _mean([_WINNER[w] for _, _, w in r["gpt4_pair"] or [] if w in _WINNER]),
                "gpt4_single_gap": single[0] - single[1] if single and None not in single else None,
                "qwen3b": _mean([_WINNER[w] for *_, w in r["qwen3b"] or [] if w in _WINNER]),
                "length_gap": r["chars_a"] - r["chars_b"],
            }
        )  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def _llmbar(folder: Path) -> pl.DataFrame:
    """Each judge's share of verdicts for the first answer, over prompts and both orders."""
    rows = []
    for r in _lines(folder, "judges/llmbar.jsonl.gz"):
        judges = sorted({key.split("__")[0] for key in r if "__" in key})
        row: dict[str, Any] = {"item_id": r["item_id"], "subset": r["subset"], "y": float(r["label"] == 1)}
        for judge in judges:
            row[judge] = _mean([float(r[k] == 1) for k in r if k.startswith(f"{judge}__") and r[k] in (1, 2)])
        rows.append({**row, "length_gap": r["chars_1"] - r["chars_2"]})
    return pl.DataFrame(rows, infer_schema_length=None)


def _judgebench(folder: Path) -> pl.DataFrame:
    verdict = {"A>B": 1.0, "B>A": 0.0, "A=B": 0.5}
    rows = []
    for r in _lines(folder, "judges/judgebench.jsonl.gz"):
        row: dict[str, Any] = {"item_id": r["item_id"], "model": r["response_model"], "y": verdict.get(r["label"])}
        for key in r:
            if key.startswith("rm_") and key.endswith("_a"):
                a, b = r[key], r[key[:-2] + "_b"]
                row[f"{key[:-2]}_gap"] = None if a is None or b is None else a - b
        both = [verdict[v] for key, v in r.items() if key.startswith("verdict_") and v in verdict]
        rows.append({**row, "verdict": _mean(both), "length_gap": r["chars_a"] - r["chars_b"]})
    return pl.DataFrame(rows, infer_schema_length=None)


def _pandalm(folder: Path) -> pl.DataFrame:
    share = {1: 1.0, 2: 0.0, 0: 0.5, "tie": 0.5, "1": 1.0, "2": 0.0}
    rows = [
        {
            "item_id": r["item_id"], "y": share.get(r["human"]), "gpt35": share.get(r["judge_gpt35"]),
            "pandalm7b": share.get(r["judge_pandalm7b"]), "length_gap": r["chars_1"] - r["chars_2"],
        }
        for r in _lines(folder, "judges/pandalm_testset.jsonl.gz")
    ]  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def _arena(folder: Path) -> pl.DataFrame:
    """Does the human prefer the first model? By the five most frequent first models."""
    frame = _csv(folder, "judges/arena_votes_llm_judges.csv.gz")
    votes = ["human", "judge_gpt35", "judge_gpt4", "judge_claude3opus"]

    def share(name: str) -> pl.Expr:
        column = pl.col(name)
        return (
            pl.when(column == "model_a")
            .then(1.0)
            .when(column == "model_b")
            .then(0.0)
            .when(column.is_not_null())
            .then(0.5)
        )

    frame = frame.with_columns([share(name).alias(name) for name in votes])
    common = frame["model_a"].value_counts(sort=True)["model_a"].head(5)
    return frame.filter(pl.col("model_a").is_in(common.implode())).rename({"human": "y"})


def _asset(folder: Path) -> pl.DataFrame:
    frame = pl.DataFrame(list(_lines(folder, "judges/asset_ratings.jsonl.gz")), infer_schema_length=None)
    return frame.drop("human_ratings_sorted").with_columns(pl.col("aspect").cast(pl.String))


def _judge_columns(folder: Path, name: str) -> tuple[str, ...]:
    path = folder / "data" / name
    names = _csv(folder, name).columns if ".csv" in path.name else list(next(_lines(folder, name)))
    return tuple(column for column in names if column.startswith("judge_"))


def real_tables(folder: Path) -> tuple[RealTable, ...]:
    """Every table of ``data/tables`` and ``data/judges``, and negative controls.

    Args:
        folder: the shared folder.
    """
    item, model = "item_id", "model"
    small = tuple(f"agree_{n}" for n in ("gemma-7b", "Llama-2-7b-hf", "Qwen1.5-7B-Chat", "Yi-6B", "Mistral-7B-v0.1"))
    uncertainty = ("s_probas_mean", "s_probas_min", "s_token_sar", "s_p_true", "s_p_true_steps")
    judges = tuple(f"judge_{name}" for name in ("gpt35", "gpt4", "claude3opus"))
    return (
        RealTable(
            "gsm8k_outcomes",
            _gsm8k,
            ColumnRoles("y", ("s_consensus", "out_chars", "q_chars"), item, model, profiles=(ProfileRole("n_steps"),)),
        ),
        RealTable(
            "mmlupro_table",
            _reader("tables/mmlupro_table.csv.gz"),
            ColumnRoles(
                "y",
                ("s_consensus_cheap", "s_agree_phi3", "s_panel_top_share", "s_answered", "s_out_chars", "q_chars"),
                item,
                model,
                profiles=(ProfileRole("category"),),
            ),
        ),
        RealTable(
            "mmlupro_predictions",
            _mmlupro_predictions,
            ColumnRoles("y", small, item, model, profiles=(ProfileRole("category"),)),
        ),
        *(
            RealTable(
                f"mcq_confidence_{name}",
                _reader(f"tables/mcq_confidence_{name}.csv.gz"),
                ColumnRoles("y", ("s_msp", "s_maxlogit", "s_msp_prompt2"), item, model),
            )
            for name in ("mmlu", "arc", "hellaswag", "winogrande", "truthfulqa")
        ),
        RealTable(
            "cotuq_llama31_8b",
            _cotuq,
            ColumnRoles(
                "y",
                (*uncertainty, "s_verbal", "s_self_consistency", "resp_chars"),
                model="cell",
                cluster=item,
                profiles=(ProfileRole("n_steps", "continuous"),),
            ),
        ),
        RealTable(
            "openqa_sciq",
            _reader("tables/openqa_sciq.csv.gz"),
            ColumnRoles("y", ("s_seq_prob", "s_answer_prob", "resp_chars", "q_chars"), item, model),
        ),
        RealTable(
            "openqa_sciq, judge",
            _reader("tables/openqa_sciq.csv.gz"),
            ColumnRoles("y", ("s_judge_answer", "s_seq_prob", "s_answer_prob", "resp_chars"), item, model),
        ),
        RealTable(
            "mtbench_human",
            _mtbench,
            ColumnRoles(
                "y", ("gpt4_pair", "gpt4_single_gap", "qwen3b", "length_gap"), item, profiles=(ProfileRole("category"),)
            ),
        ),
        RealTable(
            "llmbar",
            _llmbar,
            ColumnRoles(
                "y",
                ("GPT-4", "ChatGPT", "ChatGPT-0301", "LLaMA2", "PaLM2", "Falcon", "length_gap"),
                item,
                profiles=(ProfileRole("subset"),),
            ),
        ),
        RealTable("judgebench", _judgebench, ColumnRoles("y", ("verdict", "length_gap"), item, model)),
        RealTable("pandalm_testset", _pandalm, ColumnRoles("y", ("gpt35", "pandalm7b", "length_gap"), item)),
        RealTable("arena_votes", _arena, ColumnRoles("y", judges, item, "model_a")),
        RealTable(
            "asset_ratings",
            _asset,
            ColumnRoles("y", _judge_columns(folder, "judges/asset_ratings.jsonl.gz"), item, "aspect"),
        ),
        RealTable(
            "civilcomments",
            _reader("judges/civilcomments_judges.csv.gz"),
            ColumnRoles("y", _judge_columns(folder, "judges/civilcomments_judges.csv.gz"), item),
        ),
        RealTable(
            "cje_arena_policies",
            _cje,
            ColumnRoles("oracle_label", ("judge_score", "resp_chars", "prompt_chars"), item, "policy"),
        ),
        RealTable(
            "alpacaeval_prefs",
            _reader("judges/alpacaeval_prefs.csv.gz"),
            ColumnRoles(
                "pref_gpt4turbo_weighted",
                (
                    "chars_model",
                    "chars_base",
                    "instr_chars",
                    "pref_gpt4_v1_vs_davinci003",
                    "pref_gpt4turbo_cot",
                    "pref_gpt4turbo_fn",
                ),
                item,
                model,
            ),
        ),
        RealTable(
            "scienceqa_davinci002",
            _scienceqa,
            ColumnRoles("y", ("grade", "n_options", "has_image"), item, profiles=(ProfileRole("subject"),)),
            control=True,
        ),
        RealTable(
            "cotuq, verbal confidence alone",
            _cotuq,
            ColumnRoles("y", ("s_verbal", "s_verbal_steps"), model="cell", cluster=item),
            control=True,
        ),
        RealTable(
            "judgebench, lengths alone", _judgebench, ColumnRoles("y", ("length_gap",), item, model), control=True
        ),
        RealTable(
            "arena_votes, gpt-3.5 alone", _arena, ColumnRoles("y", ("judge_gpt35",), item, "model_a"), control=True
        ),
        RealTable(
            "gsm8k_outcomes, shuffled",
            _shuffled_gsm8k,
            ColumnRoles("y", ("s_consensus", "out_chars"), item, model),
            control=True,
        ),
        RealTable(
            "civilcomments, shuffled",
            _shuffled_civilcomments,
            ColumnRoles("y", _judge_columns(folder, "judges/civilcomments_judges.csv.gz"), item),
            control=True,
        ),
    )


def _shuffled(frame: pl.DataFrame, names: tuple[str, ...]) -> pl.DataFrame:
    """Signals torn from their items: each column in an order of its own."""
    return frame.with_columns([pl.col(name).shuffle(seed=k) for k, name in enumerate(names)])
