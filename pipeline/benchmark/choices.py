"""Which choice a committed answer names: by its letter, by its text, or by both where they agree."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache

from pipeline.benchmark.plain import bare_text, plain_text, strip_markup

CONFLICT = "conflict"
"""Two different choices are named, or a letter and the text of another choice."""

_MAX_CHARS = 4_000
_EDGE = r"A-Za-z0-9_À-ɏ"
_SCRIPTS = {
    **dict(zip("АВСЕН", "ABCEH", strict=True)), "Ј": "J", "І": "I", "Б": "B", "Г": "D", "Д": "E",
    **dict(zip("ΑΒΓΔΕ", "ABCDE", strict=True)), "Η": "H", "Ι": "I",
    **dict(zip("أابجده", "AABCDE", strict=True)), "هـ": "E", "ﺏ": "B", "أ": "A", "إ": "A", "و": "F", "ز": "G",
    **dict(zip("אבגדה", "ABCDE", strict=True)),
    **dict(zip("कखगघङ", "ABCDE", strict=True)), "अ": "A", "ब": "B", "स": "C", "द": "D", "ए": "A", "बी": "B",
        "सी": "C", "डी": "D",
    **dict(zip("কখগঘঙ", "ABCDE", strict=True)), "এ": "A", "বি": "B", "সি": "C", "ডি": "D",
    **dict(zip("가나다라마", "ABCDE", strict=True)),
    **dict(zip("アイウエオ", "ABCDE", strict=True)),
    **dict(zip("甲乙丙丁戊", "ABCDE", strict=True)),
    **dict(zip("กขคงจ", "ABCDE", strict=True)),
}  # fmt: skip
_ENCLOSED = {
    **{chr(0x24B6 + k): chr(65 + k) for k in range(10)}, **{chr(0x24D0 + k): chr(65 + k) for k in range(10)},
    **{chr(0x1F130 + k): chr(65 + k) for k in range(10)}, **{chr(0x1F150 + k): chr(65 + k) for k in range(10)},
    **{chr(0x1F170 + k): chr(65 + k) for k in range(10)}, **{chr(0x249C + k): chr(65 + k) for k in range(10)},
    **{chr(0xFF21 + k): chr(65 + k) for k in range(10)}, **{chr(0xFF41 + k): chr(97 + k) for k in range(10)},
    **{chr(0x1D400 + k): chr(65 + k) for k in range(10)},
}  # fmt: skip
_ENCLOSED_TABLE = str.maketrans(_ENCLOSED)
_OPEN, _CLOSE = r"(\[{<«‹【〔〈《「『“\"'‘（［", r")\]}>»›】〕〉》」』”\"'’）］"
_LETTER = "[A-J]"
_ONE = rf"(?<![{_EDGE}°'’.\-])(?:[{_OPEN}]\s{{0,2}})?{_LETTER}(?:\s{{0,2}}[{_CLOSE}])?(?![{_EDGE}°'’])"
_JOIN = (
    r"\s{0,3}(?:,\s{0,2}(?:and|or|nor|und|oder|et|ou|y|o|e)\b|,|、|;|/|&|\+|and\b|or(?: (?:maybe|perhaps|possibly"
    r"|probably|even))?\b|nor\b|und\b|oder\b|et\b|ou\b|y\b"
    r"|(?:o|e|noch|atau|veya|hoặc|или|и|أو)\b|(?:या|বা)(?=\s)|,?\s?(?:ni|ни)\b|또는|または|もしくは|也不是|和|与|或|や|と)\s{0,3}"
)
_LIST = rf"{_ONE}(?:(?!\s{{0,3}};){_JOIN}{_ONE}){{0,9}}"
_JOINED = re.compile(rf"{_ONE}(?:(?:{_JOIN}|\s{{1,2}}){_ONE}){{1,9}}")
_EXCEPT = re.compile(
    r"\b(?:all|everything|each|every|any|anything|none)\b[^.;\n]{0,20}?\b(?:but|except(?: for)?|besides"
    r"|other than)\s{1,3}\(?"
    rf"({_LETTER})\)?(?![{_EDGE}])(?:\s{{1,3}}(?:are|is|can be|were)\s{{1,3}}\w{{1,14}}(?:\s{{1,3}}out)?)?",
    re.IGNORECASE,
)
_REJECTED = re.compile(
    rf"(?:(?:\b(?:not|neither|nor|never|cannot be|exclud\w{{1,4}}|except|ruling out|rule[sd]? out|eliminat\w{{1,4}}"
    rf"|reject\w{{0,4}}"
    rf"|discard\w{{0,4}}|rather than|instead of|other than|unlike|without|pas|nicht|no es|não(?: é)?|non è|non|bukan"
    rf"|değil|not the|sondern nicht|weder|ni|ни|既不是)"
    rf"|n't|n’t|(?<![^\W\d_])не|(?<!是)不是|排除|не)\s{{0,3}}(?:(?:the|be|just|only|really|option|options|choice|choices"
    rf"|letter|letters|answer|say|think|it|is|it's|option)\s{{1,3}}){{0,4}}{_LIST}"
    rf"|(?:{_ONE}\s{{0,3}}(?:is|was|looks|seems|can be|must be|would be|ist|est|es)"
    rf"|{_LIST}\s{{0,3}}(?:are|were|look|seem|can be"
    rf"|must be|would be|being|sind|sont|son))\s{{1,3}}"
    rf"(?:(?:also|both|all|clearly|obviously|definitely|simply|just|not|therefore|thus|then|each)\s{{1,3}}){{0,3}}"
    rf"(?:wrong|incorrect|false|not|excluded|eliminated|ruled out|out|impossible|too|implausible|invalid|rejected"
    rf"|worse|irrelevant|(?:a |the )?(?:distractors?|traps?|tempting|trick|wrong (?:one|answer|choice|option)s?)"
    rf"|falsch|fausse?s?|incorrect[ao]s?|fals[ao]s?)\b"
    rf"|(?:{_ONE}\s{{0,3}}(?:isn't|isn’t|doesn't|can't be|cannot)|{_LIST}\s{{0,3}}(?:aren't|aren’t|don't|cannot))\b"
    rf"|{_LIST}\s{{0,3}}(?:是错的|是错误的|错误|不对|不正确|是不正确的|は間違い|は誤り)"
    rf"|(?:could|might|may|can)\s{{1,3}}(?:be|seem|look like)\s{{1,3}}{_LIST}(?=\s{{0,2}},?\s{{1,3}}(?:but|however))"
    rf"|{_LIST}(?:\s{{0,3}}değil))",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:not|neither|nor|isn't|isn’t|n't|none of (?!the above|these)|cannot|nicht|pas)\b|n't|n’t", re.I
)
_PLAIN_LETTERS = re.compile(rf"(?<![{_EDGE}°'’./\-])([B-HJ])(?![{_EDGE}°]|['’](?:s|m|d|ll|ve|re)\b|-[A-Za-z0-9])")
_MARKED = re.compile(
    rf"[{_OPEN}]\s{{0,2}}({_LETTER})\s{{0,2}}[{_CLOSE}]"
    rf"|(?<![{_EDGE}°'’./\-])({_LETTER})(?=\s{{0,2}}(?:[).:\]、。，；！？;!?|—–→/>]|,(?!\s?{_LETTER}\b)|-\s|(?:only|or|and"
    rf"|und|oder|et|ou|because|since)\b|\(|$))"
)
_NAMED = re.compile(
    rf"(?:\b(?:options?|choices?|letters?|answers?|answer is|is|be|it's|only|just|probably|likely|definitely"
    rf"|certainly|so|leaves|but|choose|pick|select|for|with|also|either|say|and|or|maybe|perhaps|opción|opzione"
    rf"|opção|réponse|antwort|option|pilihan|est|es|é|è|ist|adalah|là|la|die|le|el)|选|選|是|は|은|는|选项|선택지|विकल्प"
    rf"|الخيار)\s{{0,3}}"
    rf"({_LETTER})(?=$|[\s\W])(?!\s{{1,2}}[a-z]{{2,}}(?<!because)(?<!since)(?<!and)(?<!or)(?<!not)(?<!but)(?<!only)(?<!is)(?<!as)(?<!with)(?<!für)(?<!oder)(?<!und)(?<!ou)(?<!et))"
)
_IS_RIGHT = re.compile(
    rf"(?<![{_EDGE}'’])({_LETTER})\s{{1,3}}(?:is|would be|must be|seems|looks|ist|est|es|é|è)\s{{1,3}}(?:the\s|la\s"
    rf"|die\s)?(?:most\s|only\s)?"
    r"(?:right|correct|best|answer|true|likely|accurate|appropriate|richtig\w{0,2}|correct[ao]?|juste|bonne|vrai"
    r"|choice|option|one|my)\b"
)
_LOWER_START = re.compile(rf"^[{_OPEN}]?\s?([a-j])\s?[{_CLOSE}.:)]+(?=\s|$)|^[{_OPEN}]([a-j])[{_CLOSE}]")
_LOWER_MARKED = re.compile(r"\(([a-j])\)|\b(?:option|choice|letter|answer)\s{1,2}\(?([a-j])\b(?!\s[a-z])", re.I)
_FILLER = re.compile(
    r"^(?:(?:it['’]s|that['’]s|i['’]d|it|that|this|is|i|think|believe|guess|say|would|so|thus|therefore|hence|probably|likely|most"
    r"|definitely|certainly|clearly|only|just|the|a|an|option|choice|letter|answer|final|correct|right|best|one|my"
    r"|maybe|perhaps|must|be|number|go|with|for|pick|choose|select|well|ok|okay|ist|est|es|é|è|la|le|el|die"
    r"|der|das|là|adalah|est:|:|：|=|->|→)[\s,:：]{0,3})+",
    re.IGNORECASE,
)
_SEPARATORS = re.compile(rf"^[\s{_CLOSE}.:：,，、;—–→|/=\-*_]*[\s{_OPEN}*_]*")
_EQUATED = re.compile(r"^[\s$*]{0,4}[a-zA-Z]\s?=\s?")
_TAIL = re.compile(rf"[\s{_CLOSE}.。．,，;；!！?？*_]*$")
_PRONOUN = re.compile(
    r"\bI(?=\s(?:think|believe|guess|reckon|would|am|have|choose|pick|select|say|go|was|will|don|do|can|could|feel"
    r"|suppose|'|’)|['’](?:m|d|ll|ve))"
)


def choice_letter(answer: str, choices: Sequence[str] | None) -> str | None:
    """The letter of the choice that a committed answer names; None if it names none, or two.

    Args:
        answer: what stands at a commitment.
        choices: texts of the choices; None for letters A to J without texts.
    """
    letter = choice_of(answer, choices)
    return None if letter == CONFLICT else letter


def letter_with_text(answer: str, choices: Sequence[str] | None) -> str | None:
    """The letter of an answer that is a letter and the text of its own choice, whatever follows."""
    if choices is None or len(answer) > _MAX_CHARS:
        return None
    led = _led_by_letter(_prepared(answer), len(choices), _Texts.of(tuple(choices)))
    return None if led == CONFLICT else led


def choice_of(answer: str, choices: Sequence[str] | None) -> str | None:
    """As :func:`choice_letter`, but ``CONFLICT`` where the answer contradicts itself; None where it names nothing."""
    if len(answer) > _MAX_CHARS:
        return None
    count = len(choices) if choices is not None else 10
    texts = _Texts.of(tuple(choices)) if choices is not None else None
    text = _prepared(answer)
    bare = _bare_letter(answer.strip()) or _bare_letter(text)
    if bare is not None:
        if ord(bare) - 65 < count:
            return bare
        return texts.index(answer) if texts is not None else None
    if texts is not None:
        whole = texts.index(answer)
        if whole is not None:
            return whole
        led = _led_by_letter(text, count, texts)
        if led is not None:
            return led
    return _committed_letter(text, count, texts)


def _prepared(answer: str) -> str:
    text = (
        unicodedata.normalize("NFC", html.unescape(answer)) if "&" in answer else unicodedata.normalize("NFC", answer)
    )
    text = text.translate(_ENCLOSED_TABLE)
    return " ".join(strip_markup(text).split())


@lru_cache(maxsize=4096)
def _bare_letter(text: str) -> str | None:
    """The letter of an answer that is nothing else, in any script that labels choices so."""
    if len(text) > 24:
        return None
    core = text.strip(f" \t.:。．,，、;；!！?？*_~|/\\-—–{_raw(_OPEN)}{_raw(_CLOSE)}")
    core = re.sub(r"(?:['’]?[dt][ıiuü]r|です|だ|입니다|이다|है|吧|项|項|选项|番|번)$", "", core).strip()
    core = re.sub(
        r"^(?:the |la |die |le |el |option |choice |letter |选项?|選項?|选择)\s?", "", core, flags=re.I
    ).strip(f" {_raw(_OPEN)}{_raw(_CLOSE)}:：")
    if len(core) == 1 and core.upper() in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" and core.isascii():
        return core.upper()
    return _SCRIPTS.get(core) or _SCRIPTS.get(core.upper())


def _raw(characters: str) -> str:
    return characters.replace("\\", "")


class _Texts:
    """The texts of the choices in the forms that an answer is compared with: exact, without case, normalised."""

    def __init__(self, choices: tuple[str, ...]) -> None:
        self.exact = [" ".join(unicodedata.normalize("NFC", choice).split()) for choice in choices]
        self.forms: list[list[str]] = [
            self.exact,
            [text.casefold() for text in self.exact],
            [_key(text) for text in choices],
        ]
        self.forms.append([_tight_key(text) for text in choices])

    @staticmethod
    @lru_cache(maxsize=256)
    def of(choices: tuple[str, ...]) -> _Texts:
        return _Texts(choices)

    def index(self, answer: str) -> str | None:
        """The letter of the only choice that an answer is the text of."""
        for candidate in dict.fromkeys((answer, bare_text(answer), strip_markup(answer), _EQUATED.sub("", answer))):
            exact = " ".join(unicodedata.normalize("NFC", candidate).split())
            if not exact:
                continue
            ended = _TAIL.sub("", exact)
            for form, values in zip(_FORMS, self.forms, strict=True):
                for text in dict.fromkeys((exact, ended)):
                    key = form(text)
                    named = [place for place, value in enumerate(values) if value == key and key]
                    if len(named) == 1:
                        return chr(65 + named[0])
                    if len(named) > 1:
                        return None
        return None

    def leading(self, rest: str) -> list[int]:
        """The choices whose texts a string begins with, the longest only."""
        for values, key in ((self.exact, rest), (self.forms[1], rest.casefold())):
            named = [
                (len(value), place)
                for place, value in enumerate(values)
                if value and key.startswith(value) and not key[len(value) : len(value) + 1].isalnum()
            ]
            if named:
                longest = max(length for length, _ in named)
                return [place for length, place in named if length == longest]
        return []


@lru_cache(maxsize=8192)
def _key(text: str) -> str:
    text = re.sub(r"^(?:the|an?)\s(?=[^\W\d_]{2})", "", plain_text(strip_markup(text)).casefold().strip(" \"'“”‘’«»"))
    return _TAIL.sub("", " ".join(text.replace("$", "").split()))


def _tight_key(text: str) -> str:
    return re.sub(r"[\s_*{}$\\`\"'“”()]+", "", _key(text))


_FORMS: tuple[Callable[[str], str], ...] = (str, str.casefold, _key, _tight_key)


def _led_by_letter(text: str, count: int, texts: _Texts) -> str | None:
    """A letter before the text of its choice, which needs no other test; before that of another: a conflict."""
    filled = _FILLER.sub("", text, count=1)
    for start in dict.fromkeys((text, filled)):
        match = re.match(rf"[{_OPEN}*_]{{0,3}}\s?([A-Ja-j])(?=[\s{_CLOSE}.:：,，、;—–→|/=*_\-]|[{_OPEN}])", start)
        if match is None or ord(match[1].upper()) - 65 >= count:
            continue
        letter = match[1].upper()
        after = start[match.end() :]
        if _once(after).strip(" *_") == texts.exact[ord(letter) - 65]:
            return letter
        own = _tight_key(texts.exact[ord(letter) - 65])
        for rest in _rests(after):
            whole, named = texts.index(rest), texts.leading(rest)
            loosely = ord(letter) - 65 in named or (own and _tight_key(rest) == own)
            if whole == letter or (whole is None and loosely):
                return letter
            if whole is not None or named:
                break
        else:
            continue
        marked = match[1].isupper() and (letter not in "AI" or after[:1] in ").:]、")
        return CONFLICT if marked else None
    return None


def _once(after: str) -> str:
    """What follows a letter and one mark: a sign before it is the text's own."""
    return re.sub(r"^[\s*_]{0,4}[.:)\]]{1,2}[\s*_]{1,4}", "", after)


def _rests(after: str) -> list[str]:
    """What follows a letter, with a sign before it that may be the text's own, and without."""
    signed = after.lstrip(f' .:：)]}}"*_{_raw(_CLOSE)}')
    opened = re.sub(rf"^[\s{_OPEN}]+", "", after)
    dashed = re.sub(r"^[\s.:)\]*_]{0,4}[–—-]\s{1,3}", "", after)
    once = _once(after)
    order = (
        (dashed, once, signed, opened)
        if re.match(r"[\s.:)\]*_]{0,4}[–—-]\s", after)
        else (once, signed, opened, dashed)
    )
    return [rest for rest in dict.fromkeys((*order, _SEPARATORS.sub("", after))) if rest]


def _committed_letter(text: str, count: int, texts: _Texts | None) -> str | None:
    text = _PRONOUN.sub("_", text)
    masked = _EXCEPT.sub(r" (\1) ", _masked(text, texts))
    for letter, position in _foreign(masked):
        masked = masked[:position] + letter + masked[position + 1 :]
    kept = _REJECTED.sub(" , ", masked)
    rejected_any = kept != masked
    letters = {letter for match in _MARKED.finditer(kept) for letter in match.groups() if letter}
    letters |= {match[1] for match in _PLAIN_LETTERS.finditer(kept)}
    letters |= {match[1] for match in _NAMED.finditer(kept)}
    letters |= {match[1] for match in _IS_RIGHT.finditer(kept)}
    letters |= {letter for match in _JOINED.finditer(kept) for letter in re.findall(_LETTER, match[0])}
    if not letters:
        lower = _LOWER_START.match(kept) or _LOWER_MARKED.search(kept)
        if lower is not None:
            letters = {next(group for group in lower.groups() if group).upper()}
    if len(letters) > 1:
        first = _explained(kept)
        return first if first is not None and ord(first) - 65 < count else CONFLICT
    if not letters:
        named = _by_text(text, texts)
        if named is not None:
            return named
        return CONFLICT if rejected_any and not named else None
    letter = letters.pop()
    if ord(letter) - 65 >= count:
        return CONFLICT
    if texts is not None and _contradicted(text, letter, texts):
        return CONFLICT
    return letter


def _explained(text: str) -> str | None:
    """The letter that comes first where the others stand in its explanation: ``B, because unlike (A) …``."""
    head = re.split(
        r"\b(?:because|since|as opposed to|whereas|while|although|even though|over|weil|parce que|porque|потому)\b"
        r"|\((?!\s?(?:or|maybe|perhaps)\b)(?=[^()]{0,80}\s(?:is|are|was|would|seems|looks|comes|could)\b)",
        text,
        maxsplit=1,
        flags=re.I,
    )
    if len(head) < 2 or not head[0].strip():
        return None
    letters = {letter for match in _MARKED.finditer(head[0]) for letter in match.groups() if letter}
    letters |= {match[1] for match in _PLAIN_LETTERS.finditer(head[0])} | {
        match[1] for match in _NAMED.finditer(head[0])
    }
    return letters.pop() if len(letters) == 1 else None


def _foreign(text: str) -> list[tuple[str, int]]:
    """Letters of other scripts that stand marked as labels: in brackets, or at the end."""
    letters = []
    for match in re.finditer(
        rf"(?<=[{_OPEN}])([^\W\d_a-zA-Z])(?=[{_CLOSE}])|(?<!\w)([^\W\d_a-zA-Z])(?=[).。：:]|\s?$)", text
    ):
        letter = _SCRIPTS.get(match[0])
        if letter is not None:
            letters.append((letter, match.start()))
    return letters


def _masked(text: str, texts: _Texts | None) -> str:
    """The answer with the texts of choices, whose letters label nothing, blotted out."""
    if texts is None:
        return text
    for value in sorted(texts.exact, key=len, reverse=True):
        if len(value) > 1 and re.search(r"(?<![A-Za-z])[A-Ja-j](?![A-Za-z])", value):
            text = re.sub(re.escape(value), " ~ ", text, flags=re.IGNORECASE)
    return text


def _by_text(text: str, texts: _Texts | None) -> str | None:
    """The choice whose text an answer holds beside words that say nothing of their own."""
    if texts is None or _NEGATED.search(text):
        return None
    rest = _FILLER.sub("", text, count=1)
    whole = texts.index(rest)
    if whole is not None:
        return whole
    named = texts.leading(rest)
    if len(named) != 1:
        return None
    after = rest[len(texts.exact[named[0]]) :]
    clean = re.match(r"\s*(?:$|[,;.(—–]|because\b|since\b|is the (?:right|correct|best)|is (?:right|correct))", after)
    others = any(
        place != named[0] and len(value) > 2 and re.search(rf"(?<!\w){re.escape(value)}(?!\w)", after, re.IGNORECASE)
        for place, value in enumerate(texts.exact)
    )
    return chr(65 + named[0]) if clean and not others else None


def _contradicted(text: str, letter: str, texts: _Texts) -> bool:
    """Whether the words right beside the letter are the text of another choice."""
    sides = re.split(rf"(?<![{_EDGE}]){letter}(?![{_EDGE}])", text, maxsplit=1)
    if len(sides) < 2:
        return False
    before = re.sub(
        r"[\s,;:(\[—–-]*(?:\b(?:option|choice|letter|answer|so|i\.e\.|which is|that is)\b[\s,:(\[]*)*$",
        "",
        _FILLER.sub("", sides[0], count=1),
    )
    named = [texts.index(before), texts.index(_SEPARATORS.sub("", sides[1]))]
    return any(other is not None and other != letter for other in named) and letter not in named
