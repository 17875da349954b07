"""How replies are read: real ones against their authors, wrong answers in every form, time per reply.

Run ``python benchmarks/reading.py replies|forms|speed --data DIR`` (the folder with ``replies/`` and ``benchmarks/``).
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "benchmark"))

from reply_forms import ENGLISH_FORMS, LETTER_FORMS, NO_NUMBER, TEXT_FORMS, distractors, fill

from pipeline.benchmark.grading import Grader
from pipeline.benchmark.items import Item


def rows(path: Path) -> list[dict[str, Any]]:
    """The lines of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def choice_items(data: Path) -> Iterator[tuple[str, Item]]:
    """Every item with choices of the benchmarks: name of the file, and the item with its gold letter."""
    for name in ("arc_challenge_test", "mmlu_test_sample1000", "mmlupro_items_sample", "scienceqa_first"):
        for place, row in enumerate(rows(data / f"benchmarks/{name}.jsonl.gz")):
            options = tuple(" ".join(str(text).split()) for text in row["options"])
            gold = row["gold"] if "gold" in row else chr(65 + row["gold_index"])
            if 2 <= len(options) == len(set(options)) <= 10 and all(options) and ord(gold) - 65 < len(options):
                yield name, Item(f"{name}-{place}", row["question"], gold, options)
    for place, row in enumerate(rows(data / "benchmarks/winogrande_xl_dev.jsonl.gz")):
        yield "winogrande", Item(f"wg-{place}", row["question"], "AB"[row["gold_index"]], tuple(row["options"]))
    for place, row in enumerate(rows(data / "benchmarks/truthfulqa.jsonl.gz")):
        texts = [row["best_answer"], *row["incorrect_answers"][:4]]
        order = random.Random(place).sample(range(len(texts)), len(texts))
        options = tuple(" ".join(texts[k].split()) for k in order)
        if len(set(options)) == len(options) >= 2:
            yield "truthfulqa", Item(f"truthfulqa-{place}", row["question"], chr(65 + order.index(0)), options)


def wrong_choices(item: Item) -> Iterator[tuple[str, str]]:
    """(form, reply) of every wrong choice in every form, and with the right one as a distractor after it."""
    assert item.choices is not None
    assert item.gold is not None
    right = item.choices[ord(item.gold) - 65]
    for place, text in enumerate(item.choices):
        letter = chr(65 + place)
        if letter == item.gold:
            continue
        other = (
            next(chr(65 + k) for k in range(len(item.choices)) if chr(65 + k) not in (letter, item.gold))
            if (len(item.choices) > 2)
            else None
        )
        for form in LETTER_FORMS + ENGLISH_FORMS:
            if ("{O}" in form and other is None) or ("{L}" not in form and "{l}" not in form and len(text) == 1):
                continue  # a bare letter is a label
            yield form, f"Steps.\nAnswer: {fill(form, L=letter, T=text, O=other or '')}\nConfidence: 80"
        for form in distractors():
            yield form, fill(form, L=letter, T=text, O=item.gold, U=right)


def wrong_numbers(gold: str) -> Iterator[tuple[str, str]]:
    """(form, reply) of numbers near the gold, and with the gold as a distractor."""
    value = float(gold.replace(",", ""))
    shown = f"{value:g}" if value == int(value) and abs(value) < 1e6 else gold
    near = {f"{value + 1:.10g}", f"{value - 1:.10g}", f"{value * 10:.10g}", f"{value / 10:.10g}", f"{-value:.10g}"} - {
        shown
    }
    for number in sorted(near):
        if float(number) == value:
            continue
        for form in (
            "{n}",
            "**{n}**",
            "${n}$",
            "{n} apples",
            "{n}, not {g}",
            "{n} ({g} would be too much)",
            "\\boxed{{n}}",
        ):
            text = form.replace("{{n}}", "{" + number + "}").replace("{n}", number).replace("{g}", shown)
            yield form, f"Steps with {shown}.\nAnswer: {text}\nConfidence: 80"
        yield "then", f"Answer: {number}\n\nIt is not {shown}."
        yield "next", f"Answer: {number}\n\nQuestion: more?\nAnswer: {shown}"
    for form in (">= {g}", "less than {g}", "{g} or {n}", "{g}; {n}", "{g} million", "{g} dozen", "{g} and a half",
                 "{g}^2",
                 "{g} ± 1", "minus {g}", "{g}e3", "{n} {g}/7", "x = {g}, y = {n}"):  # fmt: skip
        if value not in (0, 1) and value > 0:
            yield form, f"Steps.\nAnswer: {form.format(g=shown, n=f'{value + 1:.10g}')}"
    for form in NO_NUMBER if value > 1 else ():
        yield form, form.format(shown)


def wrong_texts(gold: str, other: str) -> Iterator[tuple[str, str]]:
    """(form, reply) of the answer to another question in every form, and of what holds the gold and does not say it."""
    for form in TEXT_FORMS:
        yield form, f"Steps.\nAnswer: {fill(form, T=other)}\nConfidence: 80"
    for form in ("not {g}", "{g} or {o}", "{o}, not {g}", "{o} (and not {g})"):
        yield form, f"Answer: {form.format(g=gold, o=other)}" if "{" not in gold + other else f"Answer: {other}"
    yield "then", f"Answer: {other}\n\nIt is not {gold}."
    yield "next", f"Answer: {other}\n\nQuestion: more?\nAnswer: {gold}"
    yield "thought", f"<think>Answer: {gold}</think>Answer: {other}"
    yield "taken back", f"Answer: {gold}\nCorrection: {other}"


def forms(data: Path, share: float) -> None:
    """Print what :func:`count_forms` counts."""
    tries, bad = count_forms(data, share)
    for name, count in sorted(tries.items()):
        print(f"{name:40} {count:9,} tries")
    print("wrong:", dict(bad) or "none")


def count_forms(data: Path, share: float) -> tuple[Counter[str], Counter[str]]:
    """Wrong answers in every form: none may be graded right; and the right one in the same forms, which should be.

    Returns:
        Tries by benchmark, and misjudged ones by form; each misjudged one is printed.
    """
    rng = random.Random(7)
    tries: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    grader = Grader("choice")
    for name, item in choice_items(data):
        if rng.random() > share:
            continue
        for form, reply in wrong_choices(item):
            tries[name] += 1
            if grader.grade(reply, item).phi == 1.0:
                bad[form] += 1
                print("graded right:", item.item_id, item.gold, item.choices, repr(reply))
        assert item.choices is not None
        assert item.gold is not None
        right = item.choices[ord(item.gold) - 65]
        for form in LETTER_FORMS:
            tries[f"{name}, right"] += 1
            reply = f"Steps.\nAnswer: {fill(form, L=item.gold, T=right)}"
            if grader.grade(reply, item).phi != 1.0:
                bad[f"{name}, right and not read"] += 1
                print("not read:", item.item_id, item.gold, item.choices, repr(reply))
    for name in ("gsm8k_test", "aime_2024_2025"):
        for row in rows(data / f"benchmarks/{name}.jsonl.gz"):
            if rng.random() <= share:
                item = Item(row["item_id"], row["question"], str(row["gold"]))
                _count(name, Grader("numeric"), item, wrong_numbers(str(row["gold"])), tries, bad)
    for name, grading in (("openqa_sciq_items", "exact"), ("math500", "math")):
        grader, every = Grader(grading), rows(data / f"benchmarks/{name}.jsonl.gz")
        for row, next_row in pairwise(every):
            item = Item(row["item_id"], row["question"], row["gold"])
            if rng.random() > share or grader.grade(f"Answer: {next_row['gold']}", item).phi == 1.0:
                continue
            _count(name, grader, item, wrong_texts(row["gold"], next_row["gold"]), tries, bad)
            for form in TEXT_FORMS:
                tries[f"{name}, right"] += 1
                reply = f"Steps.\nAnswer: {fill(form, T=row['gold'])}"
                if grader.grade(reply, item).phi != 1.0:
                    bad[f"{name}, right and not read: {form}"] += 1
                    print("not read:", row["gold"], repr(reply))
        grader.close()
    return tries, bad


def _count(
    name: str,
    grader: Grader,
    item: Item,
    wrong: Iterator[tuple[str, str]],
    tries: Counter[str],
    bad: Counter[str],
) -> None:
    for form, reply in wrong:
        tries[name] += 1
        if grader.grade(reply, item).phi == 1.0:
            bad[form] += 1
            print("graded right:", item.gold, repr(reply))


def replies(data: Path) -> None:
    """Real replies, per model: unread, and read unlike the authors' script."""
    grader = Grader("choice")
    table: dict[str, Counter[str]] = {}
    for row in rows(data / "replies/mmlupro_replies.jsonl.gz"):
        choices = tuple(" ".join(text.split()) for text in row["choices"])
        letter = grader.answer(row["reply"], Item("i", row["question"], row["gold"], choices))
        counts = table.setdefault(row["model"], Counter())
        counts["replies"] += 1
        counts["unread"] += letter is None
        counts["authors unread"] += row["authors_read"] is None
        counts["we alone read"] += letter is not None and row["authors_read"] is None
        counts["authors alone"] += letter is None and row["authors_read"] is not None
        counts["two letters"] += None not in (letter, row["authors_read"]) and letter != row["authors_read"]
    names = ["replies", "unread", "authors unread", "we alone read", "authors alone", "two letters"]
    print(f"{'model':28}" + "".join(f"{name:>16}" for name in names))
    for model, counts in table.items():
        print(f"{model:28}" + "".join(f"{counts[name]:16}" for name in names))


def speed(data: Path) -> None:
    """CPU time of reading a real reply for its letter."""
    grader, times = Grader("choice"), []
    for row in rows(data / "replies/mmlupro_replies.jsonl.gz"):
        item = Item("i", row["question"], row["gold"], tuple(" ".join(text.split()) for text in row["choices"]))
        started = time.process_time()
        grader.answer(row["reply"], item)
        times.append(time.process_time() - started)
    print(
        f"median {1e3 * statistics.median(times):.3f} ms,"
        f" 99 % under {1e3 * sorted(times)[int(0.99 * len(times))]:.2f} ms"
    )


def hostile(_data: Path) -> None:
    """CPU time of all readers together on each text of 300,000 characters that is made to slow one down."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "collection"))
    from test_hostile_time import read_by_all, slow_texts

    taken = {}
    for name, text in slow_texts(300_000).items():
        started = time.process_time()
        read_by_all(text)
        taken[name] = time.process_time() - started
    for name in sorted(taken, key=lambda each: -taken[each])[:5]:
        print(f"{name:<24} {taken[name]:.2f} s in eleven readers")


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["replies", "forms", "speed", "hostile"])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--share", type=float, default=1.0, help="of the items, for forms")
    options = parser.parse_args()
    if options.what == "forms":
        forms(options.data, options.share)
    else:
        {"replies": replies, "speed": speed, "hostile": hostile}[options.what](options.data)


if __name__ == "__main__":
    main()
