"""Every public estimator names its source, and its example runs and prints what it says."""

from __future__ import annotations

import doctest
import inspect
import re

import numpy as np
import pytest

import pipeline.estimators as estimators

FUNCTIONS = [name for name in dir(estimators) if inspect.isfunction(getattr(estimators, name))]
SOURCE = re.compile(r'^ {4}\S.*?, "[^"]+"[^"]* \((?:19|20)\d\d\).*\.$')


def references(function: object) -> list[str]:
    """The entries under References, one line each."""
    section = (inspect.getdoc(function) or "").partition("\nReferences:\n")[2].partition("\n\n")[0]
    return re.sub(r"\n {8}", " ", section).splitlines()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_it_names_authors_title_and_year(name: str) -> None:
    entries = references(getattr(estimators, name))
    assert entries
    assert [entry for entry in entries if not SOURCE.match(entry)] == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_its_example_runs(name: str) -> None:
    names = {public: getattr(estimators, public) for public in dir(estimators)}
    [test] = doctest.DocTestFinder(recurse=False).find(getattr(estimators, name), name, globs={"np": np, **names})
    assert test.examples
    failures: list[str] = []
    doctest.DocTestRunner().run(test, out=failures.append)
    assert not failures, "".join(failures)


def test_a_reference_without_a_year_is_seen() -> None:
    assert not SOURCE.match('    Shah and Li, "Holdout Best-of-N", arXiv 2610.08719, section 3.')
    assert SOURCE.match('    Shah and Li, "Holdout Best-of-N" (2026), arXiv 2610.08719, section 3.')
