"""What a person should know of the items before money is spent on them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.benchmark.items import Benchmark, Item

_SHOWN = 3
_SAMPLE = 400
_SCRIPTS = (
    ("HIRAGANA", "Japanese"), ("KATAKANA", "Japanese"), ("HANGUL", "Korean"), ("CJK", "Chinese"),
    ("CYRILLIC", "Russian"),
    ("ARABIC", "Arabic"), ("DEVANAGARI", "Hindi"), ("BENGALI", "Bengali"), ("GREEK", "Greek"), ("HEBREW", "Hebrew"),
    ("THAI", "Thai"), ("TAMIL", "Tamil"), ("TELUGU", "Telugu"),
)  # fmt: skip
_STOPWORDS = {
    "English": "the of and to is in what how many which does a are for",
    "Spanish": "el los las cuántos qué de que para una por cuál del es",
    "French": "le les des combien quel quelle est une pour dans du sont",
    "German": "der die das und wie viele welche ist ein eine nicht von zu",
    "Portuguese": "o os as quantos qual que uma para com não do da são",
    "Italian": "il gli quanti quale che una per con non della di sono",
    "Indonesian": "yang dan di berapa adalah dari untuk dengan apa ini",
    "Vietnamese": "của là bao nhiêu có và một cho các những được",
    "Turkish": "ve bir kaç ne bu için hangi ile kadar olan",
    "Dutch": "de het een en hoeveel van is welke niet op zijn",
}


@dataclass(frozen=True, slots=True)
class DataFinding:
    """One thing about the items.

    Attributes:
        code: stable name of the kind.
        message: one sentence.
        warns: whether it puts numbers at risk; else it is only said.
    """

    code: str
    message: str
    warns: bool = True


def question_key(question: str) -> str:
    """A question as it is compared with others: case, spaces and compatibility forms do not tell two apart."""
    return " ".join(unicodedata.normalize("NFKC", question).casefold().split())


def check_data(benchmark: Benchmark) -> tuple[DataFinding, ...]:
    """Duplicate questions, golds that contradict each other or read oddly, letters among choices, constant columns."""
    return tuple(_findings(benchmark))


def duplicate_findings(items: Sequence[Item]) -> tuple[DataFinding, ...]:
    """Questions that stand in several rows, and golds of them that contradict each other."""
    return tuple(_duplicates(items))


def _findings(benchmark: Benchmark) -> Iterator[DataFinding]:
    items = benchmark.items
    yield from _duplicates(items)
    yield from _odd_golds(items, benchmark.grading)
    letters = [item.item_id for item in items if any(re.fullmatch(r"[A-Ja-j]", text) for text in item.choices or ())]
    if letters:
        yield DataFinding(
            "letter_choices",
            f"{len(letters)} items ({_named(letters)}) have single letters among their choices: a bare letter in a"
            " reply is taken for the label of a choice, not for its text",
        )
    yield from _constant(benchmark)
    if benchmark.skipped:
        reasons = ", ".join(f"{count} {reason}" for reason, count in benchmark.skipped.items())
        yield DataFinding("left_out", f"{sum(benchmark.skipped.values())} rows were left out: {reasons}", warns=False)
    yield DataFinding("language", f"the questions are in {language_of(items)}", warns=False)


def _duplicates(items: Sequence[Item]) -> Iterator[DataFinding]:
    groups: dict[tuple[str, tuple[str, ...]], list[Item]] = defaultdict(list)
    for item in items:
        groups[question_key(item.question), tuple(sorted(map(question_key, item.choices or ())))].append(item)
    repeated = [group for group in groups.values() if len(group) > 1]
    if not repeated:
        return
    count = sum(map(len, repeated))
    examples = "; ".join(_named([item.item_id for item in group]) for group in repeated[:_SHOWN])
    yield DataFinding(
        "duplicate_questions",
        f"{len(items)} items hold {len(groups)} different questions: {count} items share a question with another"
        f" ({examples}); they form clusters and are no independent evidence",
    )
    contradictory = [group for group in repeated if len({_gold_text(item) for item in group if item.gold}) > 1]
    if contradictory:
        examples = "; ".join(
            ", ".join(f"{item.item_id}: {str(_gold_text(item))[:30]!r}" for item in group[:_SHOWN])
            for group in contradictory[:_SHOWN]
        )
        yield DataFinding(
            "contradictory_golds",
            f"{len(contradictory)} questions have different gold answers in different rows ({examples})",
        )


def _gold_text(item: Item) -> str | None:
    """The gold answer, of a choice its text: the order of choices may differ between copies."""
    place = ord(item.gold) - ord("A") if item.gold and len(item.gold) == 1 else -1
    return item.choices[place] if item.choices and 0 <= place < len(item.choices) else item.gold


def _odd_golds(items: Sequence[Item], grading: str) -> Iterator[DataFinding]:
    odd = [item for item in items if item.gold is not None and _is_odd(item.gold, grading)]
    if odd:
        examples = ", ".join(f"{item.item_id}: {str(item.gold)[:30]!r}" for item in odd[:_SHOWN])
        what = {
            "numeric": "are read as a number with something beside it (a unit, a sign of currency or percent)",
            "exact": "hold quotes, markup or final punctuation, which an answer must then hold too",
        }[grading]
        yield DataFinding("odd_golds", f"{len(odd)} gold answers {what}: {examples}")


def _is_odd(gold: str, grading: str) -> bool:
    if grading == "numeric":
        return re.fullmatch(r"[-+]?(?:\d+|\d{1,3}(?:,\d{3})+)?(?:\.\d+)?(?:/\d+)?", gold.strip()) is None
    if grading == "exact":
        return len(gold) > 1 and re.search(r"^[\"'“«*_`<]|[\"'”»*_`>.!?。]$", gold.strip()) is not None
    return False


def _constant(benchmark: Benchmark) -> Iterator[DataFinding]:
    items = benchmark.items
    if len(items) < 3:
        return
    golds = {item.gold for item in items if item.gold is not None}
    if len(golds) == 1 and sum(item.gold is not None for item in items) > 2:
        yield DataFinding("constant_gold", f"every gold answer is {next(iter(golds))!r}")
    for name, values in _columns(benchmark):
        kept = {value for value in values if not (value is None or value == "" or value != value)}
        if not kept:
            yield DataFinding("empty_column", f"{name} is empty in every row")
        elif len(kept) == 1 and len(values) > 2:
            yield DataFinding("constant_column", f"{name} is the same in every row")


def _columns(benchmark: Benchmark) -> Iterator[tuple[str, list[Any]]]:
    """What a benchmark says of its items beyond question and gold, each with its values."""
    items = benchmark.items
    if benchmark.profile_name is not None:
        yield f"the profile axis {benchmark.profile_name!r}", [item.profile for item in items]
    for name in dict.fromkeys(name for item in items for name in item.signals):
        yield f"the signal {name!r}", [item.signals.get(name) for item in items]
    for model in benchmark.responders:
        given = [item.given[model] for item in items if model in item.given]
        yield f"the response of {model!r}", [response.text for response in given]
        for name in dict.fromkeys(name for response in given for name in response.signals):
            yield f"the signal {name!r} of {model!r}", [response.signals.get(name) for response in given]
        for name in benchmark.criteria:
            yield f"the rating {name!r} of {model!r}", [response.ratings.get(name) for response in given]


def _named(ids: Sequence[str]) -> str:
    first = ", ".join(ids[:_SHOWN])
    return f"{first} and {len(ids) - _SHOWN} more" if len(ids) > _SHOWN else first


def language_of(items: Sequence[Item]) -> str:
    """The language of most questions, told by script and, for Latin letters, by the commonest small words."""
    text = " ".join(item.question[:_SAMPLE] for item in items[:_SAMPLE])
    scripts: Counter[str] = Counter()
    for char in text[:40_000]:
        if not char.isascii() and char.isalpha():
            name = unicodedata.name(char, "")
            scripts.update(language for script, language in _SCRIPTS if name.startswith(script))
        elif char.isascii() and char.isalpha():
            scripts["Latin"] += 1
    if not scripts:
        return "no language that can be told"
    first, _ = scripts.most_common(1)[0]
    if first == "Chinese" and scripts["Japanese"] > 0.1 * scripts["Chinese"]:
        return "Japanese"
    if first != "Latin":
        return first
    words = Counter(re.findall(r"[^\W\d_]+", text.casefold()))
    scores = {name: sum(words[word] for word in common.split()) for name, common in _STOPWORDS.items()}
    best = max(scores, key=lambda name: scores[name])
    return best if scores[best] else "a language in Latin letters"
