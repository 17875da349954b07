"""Runs of other tools: identity, reruns, tasks, failures, the tools' own numbers; a small file of ours for each."""

from __future__ import annotations

import json
import shlex
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline.cli import main
from pipeline.errors import DataError
from pipeline.tables.imports.inspect_logs import read_inspect_logs
from pipeline.tables.imports.lm_eval_samples import read_lm_eval_samples
from pipeline.tables.imports.recognised import read_tool_files, tool_of


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(line) + "\n" for line in content))
    else:
        path.write_text(json.dumps(content))
    return path


def inspect_log(task: str, model: str, values: list[Any], **more: Any) -> dict[str, Any]:
    """An Inspect log with one scorer; None is a sample that failed."""
    task_args = more.pop("task_args", {})
    asked = f"{task} {task_args.get('subject')}"
    samples = [
        {
            "id": i,
            "epoch": 1,
            "input": f"{asked} {i}",
            "output": {"completion": "x" * (1 + i % 3)},
        }
        | ({"scores": {}, "error": {"message": "e"}} if value is None else {"scores": {"match": {"value": value}}})
        for i, value in enumerate(values)
    ]
    header = {"task": task, "model": model, "created": more.pop("created", "1"), "task_args": task_args}
    return {"version": 2, "status": "success", "eval": {**header, **more.pop("eval", {})}, "samples": samples, **more}


def means(table: Any, column: str) -> dict[tuple[str, str], float]:
    rows = table.frame.group_by("task", "model").agg(pl.col(column).mean()).rows()
    return {(task, model): value for task, model, value in rows}


def test_runs_of_other_arguments_and_configurations_are_two(tmp_path: Path) -> None:
    write(tmp_path / "a.json", inspect_log("sub", "m", ["C"] * 4, task_args={"subject": "law", "n": 4}))
    write(tmp_path / "b.json", inspect_log("sub", "m", ["I"] * 4, task_args={"subject": "art", "n": 4}))
    write(tmp_path / "c.json", inspect_log("t", "m", ["C"] * 4, eval={"model_generate_config": {"temperature": 0.0}}))
    write(tmp_path / "d.json", inspect_log("t", "m", ["I"] * 4, eval={"model_generate_config": {"temperature": 1.0}}))
    assert means(read_inspect_logs(tmp_path), "score_match") == {
        ("sub[subject=law]", "m"): 1.0, ("sub[subject=art]", "m"): 0.0,
        ("t", "m[temperature=0.0]"): 1.0, ("t", "m[temperature=1.0]"): 0.0,
    }  # fmt: skip


def test_other_arguments_with_the_same_questions_are_one_task(tmp_path: Path) -> None:
    write(tmp_path / "a.json", inspect_log("t", "m", ["C"] * 4, task_args={"hint": True}))
    write(tmp_path / "b.json", inspect_log("t", "n", ["I"] * 4, task_args={"hint": False}))
    assert means(read_inspect_logs(tmp_path), "score_match") == {("t", "m"): 1.0, ("t", "n"): 0.0}
    write(tmp_path / "c.json", inspect_log("t", "m", ["I"] * 4, task_args={"hint": False}))
    assert means(read_inspect_logs(tmp_path), "score_match") == {
        ("t", "m[hint=true]"): 1.0, ("t", "m[hint=false]"): 0.0, ("t", "n"): 0.0,
    }  # fmt: skip


def test_a_rerun_that_lost_scores_only_fills_gaps(tmp_path: Path) -> None:
    write(tmp_path / "a.json", inspect_log("t", "m", ["C", "C", None], created="1"))
    write(tmp_path / "b.json", inspect_log("t", "m", ["I", None, "I"], created="2"))
    table = read_inspect_logs(tmp_path)
    assert table.frame["score_match"].to_list() == [1.0, 1.0, 0.0]
    assert any("b.json: 1 samples of this rerun failed" in note for note in table.notes)
    write(tmp_path / "c.json", inspect_log("t", "m", ["I", "I", "I"], created="3"))
    table = read_inspect_logs(tmp_path)
    assert table.frame["score_match"].to_list() == [0.0, 0.0, 0.0]
    assert "c.json: 3 samples replaced those of a.json, b.json" in table.notes


def test_failed_samples_are_counted_and_left_out_of_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for model, values in {"m": ["C", "I", None] * 6, "n": ["C", "C", "I"] * 6}.items():
        write(tmp_path / "logs" / f"{model}.json", inspect_log("t", model, values))
    write(tmp_path / "logs" / "other.json", inspect_log("u", "m", ["C", "I", "C"] * 6))
    out = tmp_path / "t.csv"
    document = json.loads(run(capsys, "import", tmp_path / "logs", "--out", out, "--json"))
    assert "t, m: 6 samples failed; they are not items to label" in document["notes"]
    assert (document["items"], document["tasks"], len(document["commands"])) == (36, 2, 2)
    estimates = json.loads(run(capsys, *shlex.split(document["next"])[1:], "--json"))
    assert {name: target["naive"]["pool_size"] for name, target in estimates["targets"].items()} == {"m": 12, "n": 18}
    for line in document["commands"]:
        run(capsys, *shlex.split(line)[1:])


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert not caught.value.code, printed.err
    return printed.out


def test_a_header_that_the_samples_contradict_is_an_error(tmp_path: Path) -> None:
    def with_accuracy(value: float) -> dict[str, Any]:
        score = {"name": "match", "scorer": "match", "metrics": {"accuracy": {"name": "accuracy", "value": value}}}
        return inspect_log("t", "m", ["C", "C", "I"], results={"scores": [score]})

    path = write(tmp_path / "a.json", with_accuracy(2 / 3))
    assert read_inspect_logs(path).frame.height == 3
    assert read_inspect_logs(write(path, with_accuracy(0.667))).frame.height == 3
    write(path, with_accuracy(0.5))
    with pytest.raises(DataError, match=r"a.json: the file's own accuracy of match is 0.5, .* 3 scored .* 0.666667"):
        read_inspect_logs(path)


def test_words_as_scores_are_kept(tmp_path: Path) -> None:
    log = inspect_log("t", "m", ["yes", "No", "yes"])
    for sample, word in zip(log["samples"], ("good", "bad", "good"), strict=True):
        sample["scores"]["kind"] = {"value": word}
    table = read_inspect_logs(write(tmp_path / "a.json", log))
    assert table.frame["score_match"].to_list() == [1.0, 0.0, 1.0]
    assert table.frame["score_kind"].to_list() == ["good", "bad", "good"]
    assert any("--map 'score_kind: VALUE=NUMBER" in note for note in table.notes)


def test_an_eval_member_that_unpacks_too_far_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = inspect_log("t", "m", ["C"])
    with zipfile.ZipFile(tmp_path / "a.eval", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({key: log[key] for key in ("eval", "status")}))
        archive.writestr("samples/1.json", json.dumps(log["samples"][0] | {"pad": " " * 9000}))
    monkeypatch.setattr("pipeline.tables.imports.inspect_logs.MAX_MEMBER_BYTES", 5000)
    with pytest.raises(DataError, match=r"samples/1.json is damaged .*unpacks to more than"):
        read_inspect_logs(tmp_path / "a.eval")


def sample(doc: int, **more: Any) -> dict[str, Any]:
    return {"doc_id": doc, "doc": {"question": f"q{doc}"}, "target": "x", "arguments": [["q", {}]], "resps": [["a"]],
            "filtered_resps": ["a"], **more}  # fmt: skip


def test_filters_without_a_name_are_two_columns(tmp_path: Path) -> None:
    lines = [sample(i, exact_match=float(k)) for k in (0, 1) for i in range(4)]
    path = write(tmp_path / "samples_gsm_2024-01-01T00-00-00.0.jsonl", lines)
    table = read_lm_eval_samples(path)
    assert table.scores == ("score_exact_match__filter1", "score_exact_match__filter2")
    assert [table.frame[name].mean() for name in table.scores] == [0.0, 1.0]
    printed = {"exact_match,strict": 0.0, "exact_match_stderr,strict": 0.1, "exact_match,flexible": 1.0}
    write(tmp_path / "results_2024-01-01T00-00-00.0.json", {"results": {"gsm": printed}, "model_name": "o/m"})
    table = read_lm_eval_samples(path)
    assert table.scores == ("score_exact_match__strict", "score_exact_match__flexible")
    printed["exact_match,flexible"] = 0.5
    write(tmp_path / "results_2024-01-01T00-00-00.0.json", {"results": {"gsm": printed}, "model_name": "o/m"})
    with pytest.raises(DataError, match=r"own exact_match \(flexible\) is 0.5, .* give 1"):
        read_lm_eval_samples(path)


def test_arrays_beside_the_output_file(tmp_path: Path) -> None:
    path = tmp_path / "run_my_task.jsonl"
    path.write_text(json.dumps([sample(i, acc=float(i % 2)) for i in range(4)], indent=2))
    content = {"results": {"my_task": {"acc,none": 0.5}}, "config": {"model_args": "pretrained=o/m"}, "configs": {}}
    write(tmp_path / "run.json", content)
    tool, table = read_tool_files([tmp_path])
    assert tool == "lm-eval"
    assert table is not None
    assert means(table, "score_acc") == {("my_task", "pretrained=o/m"): 0.5}


def test_a_perplexity_and_pairs_are_no_scores(tmp_path: Path) -> None:
    lines = [sample(i, acc=1.0, perplexity=-3.0, f1=[1, 0], word_perplexity=[-3.0, 2]) for i in range(3)]
    table = read_lm_eval_samples(write(tmp_path / "samples_t.jsonl", lines))
    assert table.scores == ("score_acc",)
    assert len(table.notes) == 3


PROMPTFOO = {
    "evalId": "e",
    "results": {
        "version": 3,
        "stats": {"successes": 2, "failures": 1, "errors": 1},
        "results": [
            {
                "testIdx": test, "provider": {"id": "echo", "label": label}, "prompt": {"label": "p"},
                "vars": {"w": "a"},
                "success": ok, "score": score, "failureReason": why, "response": {"output": "hello"},
            }
            for test, label, ok, score, why in
            [(0, "m", True, 1.0, 0), (1, "m", False, 0.25, 1), (0, "n", True, 1, 0), (1, "n", False, 0, 2)]
        ],
    },
}  # fmt: skip


def test_promptfoo(tmp_path: Path) -> None:
    path = write(tmp_path / "r.json", PROMPTFOO)
    tool, table = read_tool_files([path])
    assert tool == "promptfoo"
    assert table is not None
    assert means(table, "score_value") == {("promptfoo", "m"): 0.625, ("promptfoo", "n"): 1.0}
    assert "promptfoo, n: 1 samples failed; they are not items to label" in table.notes
    changed = json.loads(json.dumps(PROMPTFOO))
    changed["results"]["stats"]["successes"] = 3
    with pytest.raises(DataError, match="own number of successes is 3, but its 4 results give 2"):
        read_tool_files([write(path, changed)])


def test_promptfoo_table(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text(
        "w,[m] Say {{w}},Status,Score,Named Scores,[n] Say {{w}},Status,Score,Named Scores\n"
        'a,"x, y",PASS,1.00,,z,ERROR,0.00,\nb,x,FAIL,0.50,,z,PASS,1.00,\n'
    )
    _, table = read_tool_files([path])
    assert table is not None
    assert means(table, "score_value") == {("promptfoo", "m"): 0.75, ("promptfoo", "n"): 1.0}
    assert table.frame["reason"].drop_nulls().to_list() == ["failed"]


def test_event_streams(tmp_path: Path) -> None:
    events = [
        {"spec": {"completion_fns": ["gpt"], "eval_name": "e", "run_id": "r"}},
        {"final_report": {"accuracy": 0.5}},
    ]
    for i in range(4):
        for kind, data in (
            ("sampling", {"prompt": [{"role": "user", "content": "q"}], "sampled": ["a"]}),
            ("match", {"correct": i % 2 == 0, "expected": "a", "picked": "a"}),
            ("cond_logp", {"logp": -1.0}),
        ):
            events.append({"run_id": "r", "sample_id": f"e.{i}", "type": kind, "data": data})
    tool, table = read_tool_files([write(tmp_path / "e.jsonl", events)])
    assert tool == "openai-evals"
    assert table is not None
    assert table.frame["score_correct"].to_list() == [1.0, 0.0, 1.0, 0.0]
    assert table.notes == ("e.jsonl: 4 events of type cond_logp are no outcomes",)
    events[1] = {"final_report": {"accuracy": 0.75}}
    with pytest.raises(DataError, match=r"own accuracy is 0\.75"):
        read_tool_files([write(tmp_path / "e.jsonl", events)])


GAMES = [{"score": "A>B"}, {"score": "A>>B"}]
BEST_EFFORT: dict[str, tuple[str, Any, str, list[float | None]]] = {
    "alpaca-eval": (
        "annotations.json",
        [{"instruction": f"i{k}", "output_1": "a", "generator_1": "b", "output_2": "c", "generator_2": "m",
          "preference": p} for k, p in enumerate((1.25, 2.0, None))],
        "score_win", [0.25, 1.0, None],
    ),
    "arena-hard": (
        "m.jsonl",
        [{"question_id": "1", "model": "m", "judge": "j", "games": GAMES},
         {"question_id": "2", "model": "m", "judge": "j", "games": [{"score": "A=B"}, {"score": None}]}],
        "score_win", [0.5, None],
    ),
    "mt-bench": (
        "single.jsonl",
        [{"question_id": 81, "model": "m", "judge": ["gpt-4", "single-v1"], "turn": turn, "score": score}
         for turn, score in ((1, 8), (2, -1))],
        "score_judge", [8.0, None],
    ),
    "deepeval": (
        "run.json",
        {"testCases": [{"name": "c", "input": "q", "actualOutput": "a",
                        "metricsData": [{"name": "Faithfulness", "score": 0.5}]}]},
        "score_Faithfulness", [0.5],
    ),
    "ragas": (
        "r.jsonl",
        [{"user_input": "q", "response": "a", "faithfulness": 0.5}, {"user_input": "q", "response": "a",
                                                                    "faithfulness": None}],
        "score_faithfulness", [0.5, None],
    ),
}  # fmt: skip


@pytest.mark.parametrize("tool", BEST_EFFORT)
def test_a_small_file_of_each_other_tool(tool: str, tmp_path: Path) -> None:
    name, content, column, expected = BEST_EFFORT[tool]
    path = write(tmp_path / name, content)
    assert tool_of(path) == tool
    _, table = read_tool_files([path])
    assert table is not None
    order = {value: index for index, value in enumerate(expected)}
    assert sorted(table.frame[column].to_list(), key=order.__getitem__) == expected
    assert table.frame.filter(pl.col(column).is_null())["reason"].to_list() == ["failed"] * expected.count(None)


def test_the_tool_may_be_the_first_word_unless_a_file_is_called_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "r.json", PROMPTFOO)
    assert json.loads(run(capsys, "import", "promptfoo", "r.json", "--out", "a.csv", "--json"))["rows"] == 4
    write(tmp_path / "promptfoo", PROMPTFOO)
    assert json.loads(run(capsys, "import", "promptfoo", "r.json", "--out", "b.csv", "--json"))["rows"] == 4
    assert json.loads(run(capsys, "import", "promptfoo", "--out", "c.csv", "--json"))["rows"] == 4


def test_no_file_is_lost_by_an_import(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "r.jsonl", [{"a": 1, "b": 2}])
    before = path.read_bytes()
    for arguments, message in (
        ([path, "--out", path], "is the input itself"),
        ([write(tmp_path / "p.json", PROMPTFOO), "--out", path], "columns that the new table has not (a, b)"),
    ):
        with pytest.raises(SystemExit) as caught:
            main(["import", *map(str, arguments)])
        assert caught.value.code == 2
        assert message in capsys.readouterr().err
        assert path.read_bytes() == before


@pytest.mark.shared
def test_the_shared_cases(shared_path: Path) -> None:
    folder = shared_path / "cases" / "imports"
    if not folder.exists():
        pytest.skip("the shared cases are not there")

    def read(name: str) -> Any:
        return read_tool_files([folder / name])[1]

    arguments = means(read("taskargs"), "score_letter")
    assert len(arguments) == 4
    rerun = read("rerun")
    assert rerun.frame["score_letter"].null_count() == 0
    assert any("19 samples of this rerun failed" in note for note in rerun.notes)
    assert read("twotasks").frame.select("task", "model", "item_id").is_unique().all()
    assert read("inspect_v1_score.json").frame["score_match"].drop_nulls().len() == 12
    assert read("samples_myf1.jsonl").scores == ("score_acc",)
    filters = read("samples_gsm_2024-10-10T10-10-10.000000.jsonl")
    assert [filters.frame[name].mean() for name in filters.scores] == pytest.approx([0.0, 0.45])
    assert read("pretrained__org__model_gsm.jsonl").frame["model"].unique().to_list() == ["org/model"]
    assert read("promptfoo.json").frame["score_value"].to_list() == read("promptfoo.csv").frame["score_value"].to_list()
    assert read("oaievals.jsonl").frame["score_correct"].drop_nulls().len() == 30
