"""Imports, on logs that the tools themselves wrote (fixtures/README.md)."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path

import polars as pl
import pytest

from pipeline.errors import DataError
from pipeline.tables.imports.imported import write_table
from pipeline.tables.imports.inspect_logs import read_inspect_logs
from pipeline.tables.imports.lm_eval_samples import read_lm_eval_samples
from pipeline.tables.imports.plain_tables import read_plain_table
from pipeline.tables.table_source import decompress_zstd

FIXTURES = Path(__file__).parent / "fixtures"


def test_inspect_logs_of_both_kinds_make_one_table() -> None:
    table = read_inspect_logs(FIXTURES / "inspect")
    assert table.scores == (
        "score_match", "score_includes", "score_brevity", "score_rubric_has_capital", "score_rubric_polite",
    )  # fmt: skip
    assert table.frame["model"].value_counts().sort("model").rows() == [("mockllm/alpha", 12), ("mockllm/beta", 6)]
    assert set(table.frame["item_id"]) == {"chile", "france", "ghana", "japan", "kenya", "peru"}
    row = table.frame.filter((pl.col("item_id") == "kenya") & (pl.col("model") == "mockllm/beta")).row(0, named=True)
    assert row["question"] == "What is the capital of Kenya?"
    assert (row["target"], row["answer"]) == ("Nairobi", "The capital is Nairobi")
    assert (row["score_match"], row["score_rubric_has_capital"], row["score_rubric_polite"]) == (1.0, 1.0, 0.5)
    assert (row["meta_continent"], row["meta_level"], row["answer_chars"]) == ("africa", 2.0, 22.0)


def test_inspect_scores_equal_the_means_that_inspect_printed() -> None:
    """Means over the items' epoch means, as in the log's own results."""
    log = json.loads((FIXTURES / "inspect" / "capitals_beta.json").read_text())
    printed = {score["name"]: next(iter(score["metrics"].values()))["value"] for score in log["results"]["scores"]}
    frame = read_inspect_logs(FIXTURES / "inspect" / "capitals_beta.json").frame
    for name, column in {
        "match": "score_match",
        "brevity": "score_brevity",
        "has_capital": "score_rubric_has_capital",
    }.items():
        assert frame[column].mean() == pytest.approx(printed[name], abs=1e-12)


def test_epochs_are_rows_of_one_cluster_and_a_failed_sample_keeps_its_row() -> None:
    frame = read_inspect_logs(FIXTURES / "inspect" / "capitals_alpha.eval").frame
    ghana = frame.filter(pl.col("item_id") == "ghana").sort("epoch")
    assert ghana["epoch"].to_list() == [1, 2]
    assert ghana["cluster"].unique().to_list() == ["capitals/ghana"]
    assert ghana["reason"].to_list() == [None, "failed"]
    assert ghana["score_match"].to_list() == [0.0, None]


def test_an_eval_file_with_the_older_compression(tmp_path: Path) -> None:
    """Logs before the change to Zstandard used deflate."""
    source = zipfile.ZipFile(FIXTURES / "inspect" / "capitals_alpha.eval")
    with zipfile.ZipFile(tmp_path / "old.eval", "w", zipfile.ZIP_DEFLATED) as old, source:
        raw = (FIXTURES / "inspect" / "capitals_alpha.eval").read_bytes()
        for info in source.infolist():
            start = info.header_offset + 30
            start += int.from_bytes(raw[start - 4 : start - 2], "little") + int.from_bytes(
                raw[start - 2 : start], "little"
            )
            old.writestr(info.filename, decompress_zstd(raw[start : start + info.compress_size]))
    new = read_inspect_logs(FIXTURES / "inspect" / "capitals_alpha.eval").frame
    assert read_inspect_logs(tmp_path / "old.eval").frame.equals(new)


def test_a_log_that_was_cut_short_gives_its_finished_samples(tmp_path: Path) -> None:
    """Without header.json, as an evaluation that was killed leaves it; the journal says what it was."""
    whole = FIXTURES / "inspect" / "capitals_alpha.eval"
    with zipfile.ZipFile(tmp_path / "cut.eval", "w", zipfile.ZIP_DEFLATED) as cut, zipfile.ZipFile(whole) as source:
        raw = whole.read_bytes()
        for info in source.infolist():
            if info.filename == "_journal/start.json" or info.filename.startswith("samples/f"):
                start = info.header_offset + 30
                start += int.from_bytes(raw[start - 4 : start - 2], "little")
                start += int.from_bytes(raw[info.header_offset + 28 : info.header_offset + 30], "little")
                cut.writestr(info.filename, decompress_zstd(raw[start : start + info.compress_size]))
    frame = read_inspect_logs(tmp_path / "cut.eval").frame
    assert frame.select("item_id", "epoch").rows() == [("france", 1), ("france", 2)]


def test_the_later_log_of_the_same_samples_counts(tmp_path: Path) -> None:
    log = json.loads((FIXTURES / "inspect" / "capitals_beta.json").read_text())
    (tmp_path / "a.json").write_text(json.dumps(log))
    del log["results"]
    log["eval"]["created"] = "2099-01-01T00:00:00+00:00"
    for sample in log["samples"]:
        sample["scores"]["match"]["value"] = "P"
    (tmp_path / "0.json").write_text(json.dumps(log))
    table = read_inspect_logs(tmp_path)
    assert table.frame["score_match"].to_list() == [0.5] * 6
    assert "0.json: 6 samples replaced those of a.json" in table.notes


def test_inspect_inputs_as_messages_attachments_lists_and_unscored(tmp_path: Path) -> None:
    log = {
        "eval": {"task": "t", "model": "m", "created": "1"},
        "status": "cancelled",
        "samples": [
            {
                "id": 7, "epoch": 1, "target": ["x", "y"], "attachments": {"abc": "a long answer"},
                "input": [
                    {"role": "system", "content": "s"},
                    {"role": "user", "content": [{"type": "text", "text": "q?"}]},
                ],
                "output": {"choices": [{"message": {"content": "attachment://abc"}}]},
                "scores": {"list": {"value": [1, 0]}, "grade": {"value": "B"}, "nan": {"value": float("nan")}},
            }
        ],
    }  # fmt: skip
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    table = read_inspect_logs(path)
    row = table.frame.row(0, named=True)
    assert (row["item_id"], row["question"], row["target"], row["answer"]) == ("7", "q?", "x | y", "a long answer")
    assert (row["score_grade"], row["score_nan"]) == ("B", None)
    assert table.scores == ()
    assert [note.split(": ")[1][:20] for note in table.notes] == [
        "the evaluation's sta",
        "scorer list gives li",
        "VALUE=NUMBER, …' mak",
    ]


def test_lm_eval_samples_with_every_filter_and_metric() -> None:
    table = read_lm_eval_samples(FIXTURES / "lm_eval")
    assert set(table.scores) == {
        "score_exact_match__strict-match", "score_exact_match__flexible-extract", "score_acc", "score_acc_norm",
    }  # fmt: skip
    assert set(table.frame["model"]) == {"made/alpha", "made/beta"}
    assert table.frame.filter(pl.col("task") == "capitals_mc").height == 14
    for model in ("alpha", "beta"):
        results = json.loads(next((FIXTURES / "lm_eval" / f"made__{model}").glob("results*.json")).read_text())[
            "results"
        ]
        frame = table.frame.filter(pl.col("model") == f"made/{model}")
        assert frame["score_acc"].mean() == pytest.approx(results["capitals_mc"]["acc,none"], abs=1e-12)
        strict = results["capitals_gen"]["exact_match,strict-match"]
        assert frame["score_exact_match__strict-match"].mean() == pytest.approx(strict, abs=1e-12)


def test_the_choice_of_a_multiple_choice_sample_is_the_likeliest() -> None:
    """acc is 1 exactly where the answer read from the likelihoods is the right choice."""
    frame = read_lm_eval_samples(FIXTURES / "lm_eval").frame.filter(pl.col("task") == "capitals_mc")
    items = {row["id"]: row for row in map(json.loads, (FIXTURES / "make" / "items.jsonl").read_text().splitlines())}
    for row in frame.iter_rows(named=True):
        item = items[row["item_id"]]
        assert (row["answer"] == item["choices"][item["label"]]) == (row["score_acc"] == 1.0)
        assert 1 / 3 <= row["choice_probability"] <= 1.0
        assert row["choice_margin"] >= 0.0


def test_item_ids_of_two_tools_and_two_models_join() -> None:
    inspect = read_inspect_logs(FIXTURES / "inspect").frame.filter(pl.col("epoch") == 1)
    harness = read_lm_eval_samples(FIXTURES / "lm_eval").frame.filter(pl.col("task") == "capitals_mc")
    joined = inspect.select("item_id", "model", "score_match").join(
        harness.select("item_id", pl.col("model").alias("other"), "score_acc"), on="item_id"
    )
    assert joined.height == 6 * 2 * 2


def test_lm_eval_file_of_the_older_form(tmp_path: Path) -> None:
    """Before 0.4.4: arguments as lists, no filter, no list of metrics; the model only in the folder's name."""
    folder = tmp_path / "org__model"
    folder.mkdir()
    line = {
        "doc_id": 3, "doc": {"query": "q"}, "target": "1", "arguments": [["q", " no"], ["q", " yes"]],
        "resps": [[[-2.0, False]], [[-1.0, True]]], "filtered_resps": [[-2.0, False], [-1.0, True]],
        "doc_hash": "x", "acc": 1.0, "brier": [0.1, 0.2], "pair": ["a", "b"],
    }  # fmt: skip
    (folder / "samples_task.jsonl").write_text(json.dumps(line) + "\n")
    table = read_lm_eval_samples(tmp_path)
    row = table.frame.row(0, named=True)
    assert (row["task"], row["model"], row["item_id"], row["question"]) == ("task", "org/model", "3", "q")
    assert (row["answer"], row["score_acc"]) == ("yes", 1.0)
    assert "score_brier" not in row
    assert "brier has no single number" in table.notes[0]
    assert "pair has no single number" in table.notes[1]


def test_lm_eval_id_field(tmp_path: Path) -> None:
    file = next((FIXTURES / "lm_eval" / "made__alpha").glob("samples_capitals_mc*"))
    shutil.copy(file, tmp_path / file.name)
    assert "What is the capital of Peru?" in set(read_lm_eval_samples(tmp_path, id_field="question").frame["item_id"])
    with pytest.raises(DataError, match="no field 'nothing'"):
        read_lm_eval_samples(tmp_path, id_field="nothing")


@pytest.mark.parametrize("reader", [read_inspect_logs, read_lm_eval_samples])
def test_nothing_there_is_one_line(reader, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataError, match="holds no"):
        reader(tmp_path)
    with pytest.raises(DataError, match="no such file or folder"):
        reader(tmp_path / "absent")


def test_damaged_logs_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "cut.eval").write_bytes((FIXTURES / "inspect" / "capitals_alpha.eval").read_bytes()[:3000])
    with pytest.raises(DataError, match="no readable Inspect AI log"):
        read_inspect_logs(tmp_path / "cut.eval")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(DataError, match="no 'eval' section"):
        read_inspect_logs(tmp_path / "other.json")
    (tmp_path / "samples_x.jsonl").write_text('{"a": 1}\n')
    with pytest.raises(DataError, match="line 1 is no lm-evaluation-harness sample"):
        read_lm_eval_samples(tmp_path / "samples_x.jsonl")


def test_plain_table_with_renaming(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("Item No;right?;Score\n007;yes;0,5\n8;no;\n")
    table = read_plain_table(path, rename={"Item No": "item_id", "right?": "gold"})
    assert table.frame.columns == ["item_id", "gold", "Score"]
    assert table.frame["gold"].to_list() == [1.0, 0.0]
    assert table.frame["Score"].to_list() == [0.5, None]
    with pytest.raises(DataError, match="--rename names 'x'"):
        read_plain_table(path, rename={"x": "y"})


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_the_table_is_written_as_its_suffix_says(tmp_path: Path, suffix: str) -> None:
    frame = read_inspect_logs(FIXTURES / "inspect").frame
    write_table(frame, tmp_path / "new" / f"t.{suffix}")
    readers = {"parquet": pl.read_parquet, "csv": pl.read_csv, "jsonl": pl.read_ndjson}
    again = readers[suffix](tmp_path / "new" / f"t.{suffix}")
    assert again["score_match"].to_list() == frame["score_match"].to_list()
    with pytest.raises(DataError, match=r"give --out such a name"):
        write_table(frame, tmp_path / "t.xlsx")
