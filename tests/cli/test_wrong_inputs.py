"""A newcomer's mistakes: exit 2, nothing on stdout, one line that says how to mend it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.cli import main


def call(capsys: pytest.CaptureFixture[str], line: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(line.split())
    out, err = capsys.readouterr()
    return int(caught.value.code or 0), out, err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rn", "did you mean 'run'"),
        ("run folder", "is a folder; a configuration is a YAML file"),
        ("run empty.yaml", "but it is empty; see examples/quickstart.yaml"),
        ("run t.csv", "but it holds plain text"),
        ("run --runs-dir t.csv", "is a file; runs are kept in a folder"),
        ("runs list --runs-dir t.csv", "is a file; runs are kept in a folder"),
        ("resume frist", "did you mean 'first'"),
        ("replay t.csv", "is no cassette of auxeval"),
        ("cache import t.csv", "is no cassette of auxeval"),
        ("cache verify --cache-dir folder", "no cache here"),
        ("cache prune --before 2026-13-01", "write YYYY-MM-DD"),
        ("plan absent.yaml", "absent.yaml: no such file"),
        ("plan absent.csv", "absent.csv: no such file"),
        ("plan first --half-width -1", "--half-width must be positive"),
        ("labels import t.csv absent.csv", "auxeval labels export t.csv absent.csv writes one"),
        ("schema runs", "did you mean 'runs list'"),
    ],
)
def test_one_line_says_how_to_mend_it(
    line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "runs" / "first").mkdir(parents=True)
    (tmp_path / "runs" / "first" / "config.yaml").write_text("schema: 1\n")
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "t.csv").write_text("gold,judge\n1,0.5\n")
    code, out, err = call(capsys, line)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert message in err
    assert not list((tmp_path / "folder").iterdir())


@pytest.mark.parametrize("line", ["", "cache", "runs"])
def test_a_group_alone_shows_its_help(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(line.split())
    said = capsys.readouterr()
    assert "Commands:\n" in said.out + said.err
