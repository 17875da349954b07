"""Tables for a terminal: no line passes the width, no number is broken, hostile text cannot act."""

from __future__ import annotations

import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from pipeline.report.printers.terminal import TerminalTable, column_widths
from pipeline.report.values import Table, plain, table


def lines(table: Table, width: int = 80) -> list[str]:
    stream = io.StringIO()
    Console(file=stream, width=width).print(TerminalTable(table))
    return stream.getvalue().splitlines()


NAMES = [
    "m",
    "provider/an-enormously-long-model-name-without-any-blank-2026-11-30-preview",
    "深度求索语言模型对话增强版二〇二六年十一月",
    "نموذج لغوي كبير للمحادثة العربية الفصحى",
    "מודל שפה",
]


def estimates(number: str = "88.0") -> Table:
    columns = ["target", "method", "%", "95 % interval", "labels"]
    rows = [[name, "one-step, pool", number, f"[{number}, {number}]", "50"] for name in NAMES]
    return table("means of a run", columns, rows, numeric=(2, 3, 4))


@pytest.mark.parametrize("number", ["88.0", "1234567890.1234", "-1.23456e+308", "9" * 70])
@pytest.mark.parametrize("width", [30, 80, 200])
def test_no_line_is_wider_than_the_terminal(number: str, width: int) -> None:
    assert max(map(cell_len, lines(estimates(number), width))) <= width


def test_numbers_are_never_broken() -> None:
    for number in ("88.0", "1234567890.1234"):
        text = "\n".join(lines(estimates(number)))
        assert text.count(f"[{number}, {number}]") == len(NAMES)


@pytest.mark.parametrize("width", [30, 80, 200])
def test_no_line_ends_in_blanks(width: int) -> None:
    assert all(line == line.rstrip() for line in lines(estimates(), width))


def test_a_table_too_wide_repeats_its_leading_columns() -> None:
    row = ["gpt", "naive", *(f"{k}.123456" for k in range(20))]
    wide = table("", ["target", "method", *(f"n{k}" for k in range(20))], [row], numeric=range(2, 22))
    split = [line.split() for line in lines(wide) if "gpt" in line]
    assert len(split) > 1
    assert all(line[:2] == ["gpt", "naive"] for line in split)
    assert [cell for line in split for cell in line[2:]] == [f"{k}.123456" for k in range(20)]


def test_a_terminal_narrower_than_two_columns_gets_one_cell_a_line() -> None:
    narrow = table("t", ["target", "value"], [["gpt", "123456789.123456789"]], numeric=(1,))
    assert "value: 123456789.123456789" in lines(narrow, 26)


def test_text_cannot_steer_the_terminal_or_pass_for_markup() -> None:
    text = "\n".join(lines(table("[bold]t", ["n[red]ame"], [["a\x1b[31mb\u202ec\nd[/red]"]])))
    assert "a\\u001b[31mb\\u202ec d[/red]" in text
    assert "[bold]t" in text
    assert "n[red]ame" in text


def test_plain_leaves_scripts_alone() -> None:
    for name in NAMES:
        assert plain(name) == name
    assert plain("a\r\nb\tc") == "a  b c"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=1, max_size=8), st.integers(0, 200))
def test_widths_fit_and_stay_between_their_bounds(pairs: list[tuple[int, int]], room: int) -> None:
    least, natural = [min(pair) for pair in pairs], [max(pair) for pair in pairs]
    widths = column_widths(natural, least, room)
    if widths is None:
        assert sum(least) > room
        return
    assert sum(widths) <= max(room, 0)
    assert all(low <= width <= high for low, width, high in zip(least, widths, natural, strict=True))
    if sum(natural) <= room:
        assert widths == natural
