"""Pictures of the documentation: there, small, and their numbers those of the pages that print them."""

from __future__ import annotations

import re

from tests.docs.page_examples import ROOT

PICTURES = ROOT / "docs" / "pictures"


def test_pictures_are_small_and_each_is_used() -> None:
    pages = "".join(path.read_text("utf-8") for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
    for picture in [*PICTURES.glob("*.png"), *PICTURES.glob("*.svg")]:
        assert picture.stat().st_size < 200_000, picture.name
        assert picture.name in pages, picture.name


def test_the_readme_says_what_the_picture_of_many_draws_says() -> None:
    drawn = (PICTURES / "many-seeds.svg").read_text("utf-8")
    rows = {
        name: (float(worth), float(held))
        for name, worth, held in zip(
            re.findall(r'text-anchor="end">(strong|medium|weak)<', drawn),
            re.findall(r">(\d+) \(\d+–\d+\); intervals", drawn),
            re.findall(r"hold ([\d.]+) %<", drawn),
            strict=True,
        )
    }
    page = " ".join((ROOT / "README.md").read_text("utf-8").split())
    both = (rows["weak"][0] + rows["medium"][0]) / 2
    assert f"labels count for about {both:.0f}" in page
    assert f"for about {rows['strong'][0]:.0f};" in page
    held = sorted(value for _, value in rows.values())
    assert f"in {held[0]:.0f} % of the draws, the others' in {held[1]:.0f} and {held[2]:.0f} %" in page


def test_old_addresses_still_lead_somewhere() -> None:
    """Pages that moved left a line that says where to."""
    moved = {"tasks.md": "history/tasks.md"}
    for old, new in moved.items():
        assert f"]({new})" in (ROOT / "docs" / old).read_text("utf-8")
        assert (ROOT / "docs" / new).is_file()


def test_every_key_of_the_configuration_has_its_sentence() -> None:
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text("utf-8")
    keys = re.findall(r"^\| `([^`]+)` \|.*\| ([^|]*) \|$", page, re.M)
    assert len(keys) > 60
    assert [key for key, meaning in keys if len(meaning.split()) < 3] == []
