"""What SECURITY.md and the page on reliability promise names the tests that keep it, and these are there."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest

from benchmarks.reliability import page
from tests.attacks.conftest import ROOT

_TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")


@pytest.mark.parametrize("document", ["SECURITY.md", "docs/reliability.md"])
def test_every_named_test_is_there(document: str) -> None:
    named = _TEST.findall((ROOT / document).read_text("utf-8"))
    assert named
    for file, function in named:
        assert (ROOT / file).is_file(), file
        assert not function or f"def {function}(" in (ROOT / file).read_text("utf-8"), (file, function)


def test_every_promise_on_security_names_its_tests() -> None:
    promises = re.split(r"\n- ", (ROOT / "SECURITY.md").read_text("utf-8"))[1:]
    assert len(promises) >= 8
    for promise in promises:
        assert _TEST.search(promise) or promise.startswith("`auxeval run CONFIG`"), promise[:60]


def test_every_file_of_attacks_is_named_by_a_page() -> None:
    pages = "".join((ROOT / name).read_text("utf-8") for name in ("SECURITY.md", "docs/reliability.md"))
    for file in (ROOT / "tests" / "attacks").glob("test_*.py"):
        assert f"tests/attacks/{file.name}" in pages, file.name


def test_the_figures_on_reliability_are_those_that_were_saved() -> None:
    studies = ROOT / "docs" / "studies"
    kept, crashed = (json.loads((studies / name).read_text("ascii")) for name in ("reliability.json", "crash.json"))
    assert (ROOT / "docs" / "reliability.md").read_text("utf-8") == page(kept, crashed)
    assert crashed["kills"] >= 200
    wrong = ("stored_replies_asked_again", "duplicate_rows", "tables_that_differ", "answers_billed_beyond_the_budget",
             "ledger_below_the_server", "ledger_above_the_budget")  # fmt: skip
    assert [crashed[name] for name in wrong] == [0] * len(wrong)


def test_what_a_dask_worker_loads_grades_nothing() -> None:
    code = (
        "import sys, pipeline.runs.worker_transport\n"
        "assert not [name for name in sys.modules if name.startswith('pipeline.benchmark')]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_every_locked_package_is_pinned_by_hash_and_none_is_a_compromised_release() -> None:
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    pins = re.findall(r"^([\w.\-\[\],]+)==([\w.+!]+)", lock, flags=re.MULTILINE)
    assert len(pins) > 50
    assert "://" not in re.sub(r"#.*", "", lock)
    for block in re.split(r"\n(?=[\w])", lock)[1:]:
        assert "--hash=sha256:" in block or block.startswith("#"), block[:60]
    excluded = re.search(r'"litellm([^"]+)"', (ROOT / "pyproject.toml").read_text("utf-8"))
    assert excluded is not None
    for version in ("1.82.7", "1.82.8"):
        assert f"!={version}" in excluded[1]
        assert ("litellm", version) not in pins
