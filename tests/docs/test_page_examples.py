"""Every example of README and docs does what its page says: run in order, offline, output and all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.page_examples import NOT_RUN, PAGES, ROOT, agrees, blocks_of, commands_outside, refreshed
from tests.docs.page_runner import EmbeddedRun, ExampleError, PageRunner
from tests.docs.pages import run_page

RUN = [
    page
    for page in PAGES
    if any(block.language in ("console", "python", "yaml") for block in blocks_of(page.read_text("utf-8")))
]
MOST_EXCEPTIONS = 8


@pytest.fixture(scope="session")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedRun:
    return EmbeddedRun(tmp_path_factory.mktemp("embedded"))


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", RUN, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_does_what_it_says(page: Path, tmp_path: Path, embedded: EmbeddedRun) -> None:
    wrong = run_page(page.read_text("utf-8"), tmp_path, embedded).wrong
    assert not wrong, "\n\n".join([*wrong, "python docs/refresh_examples.py writes the outputs anew; look at the diff"])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_command_stands_where_nothing_runs_it(page: Path) -> None:
    assert commands_outside(page.read_text("utf-8")) == []


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    reasons = [block.not_run for page in PAGES for block in blocks_of(page.read_text("utf-8")) if block.not_run]
    markers = sum(len(NOT_RUN.findall(page.read_text("utf-8"))) for page in PAGES)
    assert markers == len(reasons), "a marker stands before no block"
    assert len(reasons) <= MOST_EXCEPTIONS, reasons


def test_the_page_on_the_report_names_its_sections(tmp_path: Path, embedded: EmbeddedRun) -> None:
    embedded.lend(tmp_path)
    report = next(tmp_path.glob("runs/*/report.html")).read_text("utf-8")
    headings = re.findall(r"<h2[^>]*>([^<]*)", report)
    page = (ROOT / "docs" / "report.md").read_text("utf-8")
    named = [name.replace("…", "level") for name in re.findall(r"^\| (.+?) \|", page, re.M)[1:] if name != "---"]
    assert [name for name in named if name not in ("head", "Best of N")] == headings


def _page(command: str, *output: str) -> str:
    return "\n".join(["```console", f"$ {command}", *output, "```"])


def test_a_wrong_output_is_caught(tmp_path: Path, embedded: EmbeddedRun) -> None:
    right = "large …naive …62.5   5.45    [51.5, 72.3]       80"
    command = "auxeval estimate examples/own-data/answers.csv --gold gold --model model --id id --methods naive"
    for k, (line, wrong) in enumerate([(right, 0), (right.replace("62.5", "62.6"), 1), ("…62.5…[51.5, ", 0)]):
        folder = tmp_path / str(k)
        folder.mkdir()
        assert len(run_page(_page(command, "…", f" {line}…", "…"), folder, embedded).wrong) == wrong


@pytest.mark.parametrize(
    ("page", "said"),
    [
        (_page("auxeval estimate nowhere.csv --gold gold"), "exit code 2"),
        (_page("auxeval estimate nowhere.csv --gold gold", "…", "$ echo $?", "3"), "-3"),
        (_page("cat nowhere"), "exit code 1"),
        ("```python\nimport math\nassert math.pi == 3\n```", "AssertionError"),
        ("```yaml\nrolls: {}\n```", "rolls"),
    ],
)
def test_a_failing_example_is_caught(page: str, said: str, tmp_path: Path, embedded: EmbeddedRun) -> None:
    wrong = run_page(page, tmp_path, embedded).wrong
    assert len(wrong) == 1
    assert said in wrong[0]


def test_no_example_reaches_the_network(tmp_path: Path, embedded: EmbeddedRun) -> None:
    import socket

    with PageRunner(tmp_path, embedded), pytest.raises(ExampleError, match="wants to reach"):
        socket.create_connection(("example.org", 443))


def test_what_may_differ_is_masked_and_nothing_else() -> None:
    assert agrees(["runs/20260101-quickstart-b6e346/x"], ["runs/20271231-quickstart-b6e346/x"])
    assert not agrees(["runs/20260101-quickstart-b6e346/x"], ["runs/20260101-quickstart-b6e347/x"])
    assert agrees(["gpt answered in 0.1 s"], ["gpt answered in 2.4 s"])
    assert not agrees(["12 calls"], ["13 calls"])
    assert agrees(["a", "…", "c"], ["a", "b", "b", "c"])
    assert agrees(["a", "…", "c"], ["a", "c"])
    assert not agrees(["a", "c"], ["a", "b", "c"])
    assert not agrees(["a", "…"], ["b", "a"])


def test_a_refreshed_output_keeps_what_the_page_leaves_out() -> None:
    printed = ["head", "", "x 1.0", "y 2.0", "z 3.0", "", "run  runs/20271231-quickstart-b6e346"]
    documented = ["head", "…", "y 1.9", "…", "run  runs/20260101-quickstart-b6e346"]
    fresh = refreshed(documented, printed)
    assert fresh == ["head", "…", "y 2.0", "…", "run  runs/20260101-quickstart-b6e346"]
    assert agrees(fresh, printed)
    assert refreshed(["old"], printed) == printed
    assert refreshed([], printed) == []
