"""`auxeval estimate`: one command on a user's table; every bad input is one line and exit 2."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pipeline
from pipeline.cli import main
from pipeline.estimators import lace_mean, naive_mean

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def _run(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return int(caught.value.code or 0), out, err

    return _run


def strict(text: str) -> Any:
    def refuse(token: str) -> None:
        raise AssertionError(f"{token} in JSON")

    return json.loads(text, parse_constant=refuse)


def columns(seed: int = 0, size: int = 400, labels: int = 80) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    skill = rng.standard_normal(size)
    truth = (rng.random(size) < 1 / (1 + np.exp(-1.5 * skill - 0.5))).astype(float)
    gold = [f"{value:.0f}" if row < labels else "" for row, value in enumerate(truth)]
    return {
        "id": [f"q{row}" for row in range(size)],
        "gold": gold,
        "full": truth,
        "judge": skill + 0.3 * rng.standard_normal(size),
        "length": rng.integers(10, 300, size),
        "level": rng.integers(1, 5, size),
        "topic": rng.choice(["bio", "law", "math"], size),
        "weight": rng.uniform(0.5, 2.0, size),
        "passage": np.arange(size) // 4,
    }


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    pl.DataFrame(columns()).write_csv(path)
    return path


def test_the_numbers_are_those_of_the_estimators(run: Run, table: Path) -> None:
    code, out, _ = run("estimate", table, "--gold", "gold", "--signals", "judge,length", "--json")
    assert code == 0
    document = strict(out)
    always = {"schema", "headline", "targets", "gaps", "best_of_n", "warnings", "left_out"}
    assert set(document) == always | {"judges"}
    assert document["schema"] == 2
    data = columns()
    y = np.array([float(cell) if cell else np.nan for cell in data["gold"]])
    signals = np.column_stack([data["judge"], data["length"]])
    naive, lace = document["targets"]["all"]["naive"], document["targets"]["all"]["lace"]
    assert naive["value"] == pytest.approx(naive_mean(y[:80]).value, abs=1e-12)
    expected = lace_mean(y, signals, adapt="curved", learner="logistic", target="population")
    assert (lace["value"], lace["low"], lace["high"]) == pytest.approx(
        (expected.value, expected.low, expected.high), abs=1e-12
    )
    assert (naive["worth"], naive["target"], lace["target"]) == (80, "population", "population")
    assert lace["worth"] == pytest.approx(80 * (naive_mean(y[:80]).se / lace["se"]) ** 2)
    assert lace["worth_low"] < lace["worth"] < lace["worth_high"]
    pool = strict(run("estimate", table, "--gold", "gold", "--signals", "judge", "--target", "pool", "--json")[1])
    assert pool["targets"]["all"]["naive"]["se"] == pytest.approx(naive["se"] * np.sqrt(1 - 80 / 400), rel=0.03)
    assert "of these very items" in run("estimate", table, "--gold", "gold", "--target", "pool")[1]


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet", "csv.gz"])
def test_every_format_gives_the_same_document(run: Run, tmp_path: Path, table: Path, suffix: str) -> None:
    arguments = ("--gold", "gold", "--signals", "judge,length", "--profile", "level", "--json")
    expected = run("estimate", table, *arguments)[1]
    frame = pl.read_csv(table)
    path = tmp_path / f"again.{suffix}"
    if suffix == "parquet":
        frame.write_parquet(path)
    elif suffix == "jsonl":
        frame.write_ndjson(path)
    else:
        frame.write_csv(path, compression="gzip" if suffix == "csv.gz" else "uncompressed")
    assert run("estimate", path, *arguments)[1] == expected


def test_the_printed_table_says_what_a_person_wants(run: Run, table: Path) -> None:
    code, out, _ = run("estimate", table, "--gold", "gold", "--signals", "judge,length", "--profile", "topic")
    assert code == 0
    for text in (
        "LACE mean",
        "95 % interval",
        "labels",
        "worth",
        "the signals help: 80 labels are worth",
        "along topic",
    ):
        assert text in out
    assert max(len(line) for line in out.splitlines()) <= 80


def test_out_writes_json_csv_and_a_self_contained_page(run: Run, table: Path, tmp_path: Path) -> None:
    arguments = ("--gold", "gold", "--signals", "judge", "--profile", "level", "--out", tmp_path / "o")
    code, out, _ = run("estimate", table, *arguments, "--json")
    assert code == 0
    assert (tmp_path / "o" / "estimates.json").read_text() == out
    rows = list(csv.DictReader((tmp_path / "o" / "estimates.csv").open()))
    profiles = ("lace_profile", "lace_profile_band", "naive_profile")
    assert [row["method"] for row in rows] == ["naive", "lace", *(name for name in profiles for _ in range(4))]
    assert float(rows[1]["value"]) == strict(out)["targets"]["all"]["lace"]["value"]
    page = (tmp_path / "o" / "report.html").read_text()
    assert "<svg" in page
    assert "http" not in page.replace("http-equiv", "")


def test_profile_kinds_declared_and_detected(run: Run, table: Path) -> None:
    names = ("level", "topic", "length", "level:categorical", "length:ordinal")
    profiles = [argument for name in names for argument in ("--profile", name)][:6]
    document = strict(run("estimate", table, "--gold", "gold", "--signals", "judge", *profiles, "--json")[1])
    methods = document["targets"]["all"]
    assert methods["lace_profile:level"]["at"] == [1.0, 2.0, 3.0, 4.0]
    assert methods["lace_profile:topic"]["at"] == ["bio", "law", "math"]
    assert len(methods["lace_profile:length"]["at"]) == 20
    assert methods["lace_profile:length"]["diagnostics"]["kind"] == "continuous"
    declared = strict(
        run("estimate", table, "--gold", "gold", "--signals", "judge", "--profile", "level:categorical", "--json")[1]
    )
    assert declared["targets"]["all"]["lace_profile"]["at"] == ["1", "2", "3", "4"]
    assert run("estimate", table, "--gold", "gold", "--signals", "judge", "--profile", "level:catagorical")[0] == 2


def test_several_models_make_targets_and_paired_gaps(run: Run, tmp_path: Path) -> None:
    frames = [pl.DataFrame(columns(seed)).with_columns(pl.lit(name).alias("model")) for seed, name in enumerate("ab")]
    path = tmp_path / "long.csv"
    pl.concat(frames).sample(fraction=1.0, shuffle=True, seed=1).write_csv(path)
    arguments = ("--gold", "gold", "--signals", "judge", "--model", "model", "--id", "id", "--profile", "topic")
    document = strict(run("estimate", path, *arguments, "--json")[1])
    assert set(document["targets"]) == {"a", "b"}
    gap = document["gaps"][0]
    assert gap["method"] == "lace_gap"
    first, second = (columns(seed) for seed in (0, 1))
    labels = [float(a) - float(b) for a, b in zip(first["gold"][:80], second["gold"][:80], strict=True)]
    sign = 1.0 if gap["a"] == "a" else -1.0
    assert gap["estimate"]["diagnostics"]["naive"] == pytest.approx(sign * np.mean(labels))
    assert [entry["method"] for entry in document["gaps"]] == ["lace_gap", "lace_gap_profile"]
    without = strict(run("estimate", path, "--gold", "gold", "--signals", "judge", "--model", "model", "--json")[1])
    assert without["gaps"] == []
    assert "no_ids" in [warning["code"] for warning in without["warnings"]]


def test_clusters_widen_the_interval_of_repeated_rows(run: Run, tmp_path: Path) -> None:
    """Four copies of every item are no four items."""
    data = pl.DataFrame(columns())
    path = tmp_path / "repeats.csv"
    pl.concat([data] * 4).write_csv(path)
    arguments = ("--gold", "gold", "--signals", "judge", "--json")
    rows = strict(run("estimate", path, *arguments)[1])["targets"]["all"]["naive"]
    items = strict(run("estimate", path, *arguments, "--cluster", "id")[1])["targets"]["all"]["naive"]
    assert items["se"] == pytest.approx(2 * rows["se"], rel=0.02)
    by_id = strict(run("estimate", path, *arguments, "--id", "id")[1])
    assert by_id["targets"]["all"]["naive"]["se"] == pytest.approx(items["se"], rel=1e-12)
    assert by_id["targets"]["all"]["naive"]["n"] == 80
    assert by_id["warnings"][0]["code"] == "repeated_ids"


def test_deployment_weights_as_a_column_and_as_a_distribution(run: Run, table: Path) -> None:
    base = ("estimate", table, "--gold", "gold", "--signals", "judge", "--json")
    column = strict(run(*base, "--weights", "weight")[1])["targets"]["all"]["lace_deployment"]
    shares = strict(run(*base, "--profile", "level", "--weights", "1=0.7,4=0.3")[1])["targets"]["all"]
    by_level = strict(run(*base, "--profile", "level:categorical")[1])["targets"]["all"]["lace_profile"]
    mixed = 0.7 * by_level["value"][0] + 0.3 * by_level["value"][3]
    # Two rules that choose their coefficients differently; both aim at the same mixture, with SE about 0.08.
    assert shares["lace_deployment"]["value"] == pytest.approx(mixed, abs=0.08)
    assert column["value"] != shares["lace_deployment"]["value"]
    code, _, err = run(*base, "--profile", "topic", "--weights", "maths=1")
    assert (code, "did you mean math" in err) == (2, True)


def test_an_expensive_rater_on_some_rows_is_a_third_layer(run: Run, tmp_path: Path) -> None:
    data = columns()
    strong = data["full"] + 0.3 * np.random.default_rng(1).standard_normal(400)
    path = tmp_path / "rated.csv"
    pl.DataFrame({**data, "strong": [f"{x:.3f}" if row < 250 else "" for row, x in enumerate(strong)]}).write_csv(path)
    base = ("estimate", path, "--gold", "gold", "--signals", "judge", "--profile", "level:categorical", "--json")
    with_rater = strict(run(*base, "--rated", "strong")[1])["targets"]["all"]
    assert with_rater["lace_cascade"]["se"] < 0.9 * with_rater["lace"]["se"]
    assert with_rater["lace_cascade"]["worth"] > with_rater["lace"]["worth"]
    assert abs(with_rater["lace_cascade"]["value"] - data["full"].mean()) < 3 * with_rater["lace_cascade"]["se"]
    assert len(with_rater["lace_cascade_profile"]["value"]) == 4
    assert "lace_cascade" not in strict(run(*base)[1])["targets"]["all"]
    python = pipeline.estimate(path, gold="gold", signals="judge", rated="strong")
    assert python["all"]["lace_cascade"].to_dict() == with_rater["lace_cascade"]
    code, _, err = run(*base, "--rated", "judge")
    assert (code, "also gold or a signal" in err) == (2, True)
    left_out = strict(run(*base, "--rated", "strong", "--cluster", "passage")[1])["left_out"]
    assert any(entry["method"] == "lace_cascade" and "independent" in entry["reason"] for entry in left_out)


def test_labeled_column_hides_gold_even_from_complaints(run: Run, tmp_path: Path) -> None:
    data = columns()
    data["gold"] = data["gold"][:80] + ["secret"] * 320
    data["use"] = ["yes"] * 50 + ["no"] * 350
    path = tmp_path / "t.csv"
    pl.DataFrame(data).write_csv(path)
    document = strict(run("estimate", path, "--gold", "gold", "--signals", "judge", "--labeled", "use", "--json")[1])
    assert document["targets"]["all"]["lace"]["n"] == 50


def test_inclusion_probabilities_undo_a_biased_draw(run: Run, tmp_path: Path) -> None:
    """Rows with high outcomes were labelled four times as often: the plain mean is off, the weighted one is not."""
    rng = np.random.default_rng(3)
    size = 4000
    group = rng.random(size) < 0.5
    truth = rng.normal(np.where(group, 1.0, 0.0), 0.3)
    chance = np.where(group, 0.2, 0.05)
    labeled = rng.random(size) < chance
    path = tmp_path / "t.csv"
    pl.DataFrame({"y": np.where(labeled, truth, np.nan), "p": chance, "s": truth + rng.normal(0, 1, size)}).fill_nan(
        None
    ).write_csv(path)
    document = strict(run("estimate", path, "--gold", "y", "--signals", "s", "--inclusion", "p", "--json")[1])
    for method in ("naive", "lace"):
        estimate = document["targets"]["all"][method]
        assert abs(estimate["value"] - truth.mean()) < 4 * estimate["se"]
    plain = strict(run("estimate", path, "--gold", "y", "--signals", "s", "--json")[1])
    assert abs(plain["targets"]["all"]["naive"]["value"] - truth.mean()) > 0.2
    assert "labels_not_random" in [warning["code"] for warning in plain["warnings"]]


def test_one_step_from_tau_columns(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    data: dict[str, Any] = {"y": rng.normal(size=60)}
    data |= {"t0": data["y"] + rng.normal(size=60), "t1": rng.normal(size=60), "t2": rng.normal(size=60)}
    path = tmp_path / "t.csv"
    pl.DataFrame(data).write_csv(path)
    document = strict(run("estimate", path, "--gold", "y", "--tau", "t0,t1,t2", "--methods", "one_step", "--json")[1])
    assert document["targets"]["all"]["one_step"]["diagnostics"]["variance_reduction"] > 0.1
    assert run("estimate", path, "--gold", "y", "--tau", "t0")[0] == 2


def test_rehearsal_shows_error_and_coverage(run: Run, table: Path) -> None:
    arguments = ("estimate", table, "--gold", "full", "--signals", "judge", "--rehearse", 60)
    document = strict(run(*arguments, "--json")[1])
    rows = {(row["labels"], row["method"]): row for row in document["rehearsal"]}
    assert set(rows) == {(n, m) for n in (20, 50, 100, 200) for m in ("naive", "lace")}
    # 240 rehearsals of a .95 interval: 3.3 Monte Carlo sd are .046.
    assert np.mean([row["coverage"] for row in document["rehearsal"]]) > 0.90
    assert rows[100, "lace"]["rmse"] < rows[100, "naive"]["rmse"]
    assert rows[200, "naive"]["rmse"] < rows[20, "naive"]["rmse"]
    assert run(*arguments, "--json")[1] == run(*arguments, "--json")[1]
    assert "Rehearsal" in run(*arguments)[1]
    code, out, err = run(
        "estimate", table, "--gold", "gold", "--signals", "judge", "--rehearse", 60, "--seed", 1, "--json"
    )
    assert (code, out != "", err) == (0, True, "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--gold", "golld", "--signals", "judge"), "did you mean 'gold'"),
        (("--gold", "gold", "--signals", "judge,lenght"), "did you mean 'length'"),
        (("--signals", "judge"), "--gold COL is needed"),
        (("--gold", "gold", "--methods", "lace"), "--methods lace needs signals: give --signals COL,…"),
        (("--gold", "gold", "--signals", "judge", "--margin", "-1"), "--margin must be positive"),
        (("--gold", "gold", "--signals", "gold"), "is among the signals"),
        (("--gold", "gold", "--signals", "topic"), "signal 'topic' holds text: "),
        (("--gold", "topic", "--signals", "judge"), "not the answer itself"),
        (("--gold", "gold", "--signals", "judge", "--methods", "lase"), "did you mean lace"),
        (("--gold", "gold", "--signals", "judge", "--level", "95"), "--level must lie between 0 and 1"),
        (("--gold", "gold", "--signals", "judge", "--profile", "topic:ordinal"), "holds text"),
        (("--gold", "gold", "--signals", "judge", "--profile", "id"), "400 different values"),
        (("--gold", "gold", "--signals", "judge", "--weights", "topic"), "holds text"),
        (("--gold", "gold", "--signals", "judge", "--inclusion", "length"), "must hold probabilities"),
        (("--gold", "gold", "--signals", "judge", "--rehearse", "1"), "at least 2 repetitions"),
        (("--gold", "length", "--signals", "judge", "--gold-range", "0,1"), "values outside"),
    ],
)
def test_what_a_user_gets_wrong_is_one_line(run: Run, table: Path, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = run("estimate", table, *arguments, "--json")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert message in err


def test_stray_gold_values_are_named_with_their_rows(run: Run, tmp_path: Path) -> None:
    data = columns()
    data["gold"][16] = "7"
    path = tmp_path / "t.csv"
    pl.DataFrame(data).write_csv(path)
    code, _, err = run("estimate", path, "--gold", "gold", "--signals", "judge")
    assert (code, "'7' in row 17 (line 18)" in err) == (2, True)
    assert run("estimate", path, "--gold", "gold", "--signals", "judge", "--gold-range", "0,7")[0] == 0


def test_useless_and_leaking_signals_are_pointed_out(run: Run, tmp_path: Path) -> None:
    data = columns()
    data |= {"flat": [3] * 400, "twin": -2.0 * data["judge"] + 1}
    data["copy"] = [cell or "0" for cell in data["gold"]]
    data["only"] = data["gold"]
    data["lucky"] = data["full"]
    path = tmp_path / "t.csv"
    pl.DataFrame(data).write_csv(path)
    arguments = ("--gold", "gold", "--signals", "judge,flat,twin,copy,only,lucky", "--json")
    document = strict(run("estimate", path, *arguments)[1])
    messages = {warning["message"].split("'")[1]: warning for warning in document["warnings"]}
    assert {name: entry["code"] for name, entry in messages.items()} == {
        "flat": "constant_signal", "twin": "duplicated_signal", "copy": "leaking_signal", "only": "leaking_signal",
        "lucky": "leaking_signal",
    }  # fmt: skip
    assert "left out" in messages["copy"]["message"]
    assert "left out" not in messages["lucky"]["message"].split(";")[0]
    clean = strict(run("estimate", path, "--gold", "gold", "--signals", "judge,lucky", "--json")[1])
    assert clean["targets"]["all"]["lace"]["value"] == document["targets"]["all"]["lace"]["value"]


@pytest.mark.parametrize(
    ("labels", "code", "message"), [(0, 2, "no row has a gold label"), (1, 2, "1 gold label;"), (2, 0, "")]
)
def test_hardly_any_labels(run: Run, tmp_path: Path, labels: int, code: int, message: str) -> None:
    path = tmp_path / "t.csv"
    pl.DataFrame(columns(labels=labels)).write_csv(path)
    found, _, err = run("estimate", path, "--gold", "gold", "--signals", "judge,length")
    assert found == code
    assert message in err


def test_one_row_and_all_labeled(run: Run, tmp_path: Path, table: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("gold,judge\n1,0.5\n")
    assert run("estimate", path, "--gold", "gold", "--signals", "judge")[0] == 2
    document = strict(run("estimate", table, "--gold", "full", "--signals", "judge", "--json")[1])
    assert document["targets"]["all"]["lace"]["value"] == pytest.approx(np.mean(columns()["full"]), abs=1e-12)
    spread = np.std(columns()["full"], ddof=1) / np.sqrt(400)
    for method in ("naive", "lace"):  # the same target on the same labels: the same standard error
        assert document["targets"]["all"][method]["se"] == pytest.approx(spread)
    these = strict(run("estimate", table, "--gold", "full", "--signals", "judge", "--target", "pool", "--json")[1])
    assert these["targets"]["all"]["lace"]["se"] == 0.0
    assert these["warnings"][0]["code"] == "all_labeled"


def test_gold_that_is_almost_always_zero_is_pointed_out(run: Run, tmp_path: Path) -> None:
    """A spread that rests on one label of fifty makes the plain mean's interval too short as well."""
    data = columns(labels=50)
    for rare, codes in ((True, {"skewed_gold"}), (False, set())):
        values = np.random.default_rng(1).normal(size=50) if not rare else np.where(np.arange(50) == 7, 0.9, 0.01)
        data["gold"] = [repr(float(value)) for value in values] + [""] * 350
        path = tmp_path / "t.csv"
        pl.DataFrame(data).write_csv(path)
        document = strict(run("estimate", path, "--gold", "gold", "--signals", "judge", "--json")[1])
        assert {warning["code"] for warning in document["warnings"]} == codes


def test_missing_signals_are_filled_and_counted(run: Run, tmp_path: Path) -> None:
    data = columns()
    data["judge"] = [None if row % 10 == 0 else value for row, value in enumerate(data["judge"].tolist())]
    path = tmp_path / "t.csv"
    pl.DataFrame(data).write_csv(path)
    document = strict(run("estimate", path, "--gold", "gold", "--signals", "judge", "--json")[1])
    assert "missing in 10.0% of the rows" in document["warnings"][0]["message"]
    assert document["targets"]["all"]["lace"]["diagnostics"]["n_pool"] == 400


@pytest.mark.slow
def test_a_thousand_rows_load_neither_sklearn_nor_litellm(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    pl.DataFrame(columns(size=1000)).write_csv(path)
    program = (
        "import sys\nfrom pipeline.cli import main\n"
        f"try: main(['estimate', {str(path)!r}, '--gold', 'gold', '--signals', 'judge,length', '--profile', 'level'])\n"
        "except SystemExit as stop: assert not stop.code\n"
        "heavy = [m for m in ('sklearn', 'scipy.stats', 'litellm', 'matplotlib', 'pydantic') if m in sys.modules]\n"
        "print('heavy', heavy)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "heavy []"
