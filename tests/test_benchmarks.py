"""The driver of the benchmarks: sections, medians, scripts that fail; and the sums that the comparisons print."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as driver
from benchmarks.growth_plot import Point, draw, exponent, exponents
from benchmarks.peer_estimators import Method, our_methods
from benchmarks.peer_rates import advantage, rates


def test_the_fastest_script_end_to_end(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Kept above\n", encoding="utf-8")
    assert driver.main(["--quick", "--only", "simulated", "--out", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("# Kept above")
    assert "### Simulated replies" in text
    assert "µs a reply" in text
    assert "* Machine:" in text


def test_a_script_that_fails_is_named_and_the_others_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(script: str, arguments: list[str], timeout: float | None) -> str:
        if script == "broken":
            raise driver.subprocess.CalledProcessError(1, ["python"], "", "Traceback\nValueError: no such thing")
        if script == "slow":
            raise driver.subprocess.TimeoutExpired(["python"], 5)
        return "took 3 s"

    cases = tuple(driver.Case(name, name.title(), "") for name in ("broken", "slow", "sound"))
    monkeypatch.setattr(driver, "CASES", cases)
    monkeypatch.setattr(driver, "run_script", run)
    page = tmp_path / "page.md"
    assert driver.main(["--quick", "--out", str(page)]) == 1
    text = page.read_text(encoding="utf-8")
    assert "**failed**: ValueError: no such thing" in text
    assert "**not finished**" in text
    assert "took 3 s" in text


def test_sections_keep_the_order_of_the_cases_and_what_stands_around_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"above\n\n{driver.BEGIN}\n{driver.END}\n\nbelow\n", encoding="utf-8")
    first, last = driver.CASES[0], driver.CASES[3]
    for case, said in ((last, "one"), (first, "two"), (last, "three")):
        driver.write_section(page, case, f"### {case.title}\n\n{said}")
    text = page.read_text(encoding="utf-8")
    assert text.index(first.title) < text.index(last.title)
    assert "one" not in text.split(last.title)[1].split(driver.END)[0]
    assert text.startswith("above")
    assert text.endswith("below\n")


def test_medians_over_rounds_with_their_spread() -> None:
    found = driver.summarise(["a  1.00 s", "a  4.00 s", "a  2.00 s"])
    assert found.startswith("a  2.00 s")
    assert "± 75%" in found


def test_every_script_exists_and_every_case_can_be_read() -> None:
    folder = Path(driver.__file__).parent
    for case in driver.CASES:
        assert (folder / f"{case.script}.py").exists(), case.script
        for scale in ("quick", "reduced", "full"):
            if (arguments := case.arguments(scale)) is not None:
                assert "{" not in arguments.format(out="O", shared="S")


def test_exponents_of_growth(tmp_path: Path) -> None:
    points = [Point(size, 2e-3 * size**1.5, 0.0, 50.0, 0.0) for size in (10, 100, 1_000)]
    assert exponent(points, "cpu") == pytest.approx(1.5)
    assert exponents(points[:1]) == ""
    draw(tmp_path / "plot.svg", {"a < b": points, "one": points[:1]})
    svg = (tmp_path / "plot.svg").read_text(encoding="utf-8")
    assert "a &lt; b" in svg
    assert "CPU time 1.50" in svg


def test_rates_count_failures_and_compare_on_common_draws() -> None:
    rng = np.random.default_rng(0)

    def sample(number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        gold = rng.normal(size=100)
        return np.where(np.arange(100) < 20, gold, np.nan), gold[:, None], gold, float(gold.mean())

    def raises(y: np.ndarray, signals: np.ndarray, best: np.ndarray) -> tuple[float, float, float]:
        raise ValueError("constant labels")

    def exact(y: np.ndarray, signals: np.ndarray, best: np.ndarray) -> tuple[float, float, float]:
        middle = float(best.mean()) + 1e-3
        return middle, middle - 0.01, middle + 0.01

    found = rates([Method("raises", raises), Method("exact", exact, slow=True), *our_methods()], sample, 6, 2)
    assert found["raises"].failed == 6
    assert found["raises"].efficiency == pytest.approx(1.0)
    assert found["exact"].draws == 2
    assert found["exact"].coverage == 1.0
    assert found["auxeval lace_mean"].efficiency > 1.0
    middle, _ = advantage([found["raises"], found["raises"]], [found["exact"], found["exact"]])
    assert middle > 1.0
