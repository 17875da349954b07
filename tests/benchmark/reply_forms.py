"""Forms of replies, put together by hand's rules: an answer in every wrapping, after every cue, before every tail."""

from __future__ import annotations

from collections.abc import Iterator

CUES = {
    "en": ["Answer: {}", "Final answer: {}", "The answer is {}.", "The correct answer is {}",
        "So the final answer is: {}",
           "**Answer:** {}", "**Final Answer:** {}", "### Answer: {}", "## Answer\n\n{}",
           "**Final Answer**\n\n{}",
           "Answer = {}", "ANSWER: {}", "My answer: {}", "Answer (letter): {}",
           "> Answer: {}", "- **Answer**: {}",
           "<answer>{}</answer>", "\\boxed{{{}}}", "The answer to the question is {}.",
           "Therefore, the answer is {}."],
    "zh": ["答案：{}", "答案是{}。", "最终答案：{}", "正确答案是 {}", "因此，答案为{}。", "答案: {}"],
    "es": ["Respuesta: {}", "La respuesta es {}.", "Respuesta final: {}", "La respuesta correcta es {}"],
    "hi": ["उत्तर: {}", "सही उत्तर: {}", "अंतिम उत्तर: {}", "उत्तर है {}"],
    "ar": ["الإجابة: {}", "الجواب: {}", "الإجابة الصحيحة هي {}", "الإجابة النهائية: {}"],
    "fr": ["Réponse : {}", "Réponse\u00a0: {}", "La réponse est {}.", "Réponse finale\u202f: {}",
        "La bonne réponse est {}"],
    "bn": ["উত্তর: {}", "সঠিক উত্তর হল {}", "চূড়ান্ত উত্তর: {}"],
    "pt": ["Resposta: {}", "A resposta é {}.", "Resposta final: {}", "A resposta correta é {}"],
    "ru": ["Ответ: {}", "Правильный ответ: {}", "Ответ — {}", "Окончательный ответ: {}"],
    "ja": ["答え：{}", "答えは{}です。", "最終的な答え：{}", "回答: {}", "正解は{}"],
    "de": ["Antwort: {}", "Die Antwort ist {}.", "Die richtige Antwort lautet {}",
    "Endgültige Antwort: {}"],
    "ko": ["정답: {}", "정답은 {}입니다.", "최종 답: {}", "답: {}"],
    "vi": ["Đáp án: {}", "Đáp án là {}", "Câu trả lời: {}", "Đáp án đúng là {}"],
    "tr": ["Cevap: {}", "Doğru cevap: {}", "Doğru yanıt: {}", "Nihai cevap: {}"],
    "it": ["Risposta: {}", "La risposta è {}.", "Risposta finale: {}", "La risposta corretta è {}"],
    "id": ["Jawaban: {}", "Jawabannya adalah {}", "Jawaban akhir: {}", "Jawaban yang benar adalah {}"],
}  # fmt: skip
"""Announcements of an answer by language."""

LETTER_FORMS = ["{L}", "({L})", "**{L}**", "{L}.", "{L})", "`{L}`", "${L}$",
                "\\text{{{L}}}", "[{L}]", "«{L}»", "【{L}】",
                "{L} ({T})", "{L}) {T}", "{L}. {T}", "({L}) {T}", "{L}: {T}", "{L} - {T}",
                "{L} — {T}", "**{L}. {T}**",
                "{l}) {T}", "({l})"]  # fmt: skip
"""A choice by its letter {L} ({l} in lower case) and its text {T}."""
ENGLISH_FORMS = ["option {L}", "only {L}", "{L} only", "probably {L}", "{L}, I think",
                "I think {L}", "{L} is correct",
                 "not {O}, but {L}", "{O} is wrong, so {L}", "{L}, because {O} is wrong",
                 "{L} (not {O})", "{L}?",
                     "{L}!",
                 "excluding {O} leaves {L}", "{T}", "{T}, option {L}", "**{T}**", "\"{T}\"", "{L} / {T}",
                     "{L} → {T}"]  # fmt: skip
"""A choice among English words; {O} is another letter."""
CONFLICTS = ["{L} or {O}", "{L} and {O}", "{L}, {O}", "{L}/{O}", "both {L} and {O}", "({L}) and ({O})",
    "either {L} or {O}",
             "{L} or maybe {O}", "{L}; {O}", "{L}. {U}", "{L} ({U})", "not {L}",
             "neither {L} nor {O}"]  # fmt: skip
"""What commits to two choices, or to none; {U} is the text of {O}."""

NUMBER_FORMS = [
    "{}",
    "**{}**",
    "${}$",
    "\\({}\\)",
    "{} apples",
    "<b>{}</b>",
    "x = {}",
    "`{}`",
    "{}.",
    "about {}",
    "$$ {} $$",
]
NO_NUMBER = [
    "Die Antwort ist nicht {}.", "La respuesta no es {}.", "La réponse n'est pas {}.", "A resposta não é {}.",
    "La risposta non è {}.", "Ответ не {}.", "答案不是{}。", "答えは{}ではない。",
    "정답은 {}가 아닙니다.", "Jawabannya bukan {}.",
    "Cevap {} değil.", "Đáp án không phải là {}.", "الإجابة ليست {}.", "उत्तर {} नहीं है।",
    "উত্তর {} নয়।", "The answer isn't {}.",
    "Antwort: mindestens {}", "Respuesta: al menos {}", "Réponse : au moins {}", "Resposta: pelo menos {}",
    "Risposta: almeno {}", "Ответ: не менее {}", "答案：至少{}", "答え：{}以上",
    "정답: {} 이상", "Jawaban: lebih dari {}",
    "Cevap: en az {}", "Đáp án: ít nhất {}", "الإجابة: أكثر من {}", "उत्तर: कम से कम {}",
    "উত্তর: কমপক্ষে {}", "Answer: {} or more",
    "Respuesta: menos {}", "Réponse : moins {}", "Risposta: meno {}", "Ответ: минус {}",
    "答案：负{}", "答え：マイナス{}",
    "정답: 마이너스 {}", "Cevap: eksi {}", "Đáp án: âm {}", "الإجابة: سالب {}", "उत्तर: ऋण {}", "উত্তর: ঋণাত্মক {}",
    "Answer: half of {}", "Answer: twice {}", "Answer: √{}", "Answer: x = {} or x = 1",
    "Answer: {}+", "Answer: log {}",
]  # fmt: skip
"""What denies a number, bounds it, or makes another of it."""
TEXT_FORMS = ["{T}", "**{T}**", '"{T}"', "`{T}`", "{T}.", "{T} (90% confident)", "\\boxed{{T}}"]
"""An answer in words or mathematics, alone and dressed."""
TAILS = ["", "\nConfidence: 80", " (Confidence: 80)", "\n**Confidence:** 80%",
                " | Confidence: 80", "<|im_end|>",
    "</s>",
         "\n\nQuestion: And what is the next one?\nAnswer: 999",
         "<|endoftext|>Human: more", "\n\nUser: next\nAnswer: Z"]  # fmt: skip
"""What follows an answer and is no part of it."""
HEADS = ["", "Let me think.\nFirst, 12 apples are there.\n", "<think>\nAnswer: 77\nmaybe \\boxed{{Z}}\n</think>\n\n",
         "The options are many.\n\n"]  # fmt: skip


def replies(forms: list[str], languages: list[str] | None = None) -> Iterator[tuple[str, str]]:
    """(form, reply with the form's placeholders still in it), every cue with every form; heads and tails take turns."""
    turn = 0
    for language in languages or list(CUES):
        for cue in CUES[language]:
            for form in forms:
                head, tail = HEADS[turn % len(HEADS)], TAILS[turn % len(TAILS)]
                turn += 1
                if "boxed" in cue and tail.startswith(" "):
                    tail = "\n" + tail
                yield form, head.replace("{{", "{").replace("}}", "}") + cue.format(form) + tail


def distractors() -> list[str]:
    """Replies that commit to {L} ({T}) and name {O} ({U}) as what it is not, or in what follows the reply."""
    return [
        "Answer: {L}\n\nNote that {O} is wrong.",
        "Answer: {L}\n\n{U} is tempting.",
        "Answer: {L}. {T}\n({O}. {U} is a distractor.)",
        "{O} may look right.\nAnswer: {L}",
        "<think>Answer: {O}</think>\nAnswer: {L}",
        "Answer: {L}\n\nQuestion: next?\nAnswer: {O}",
        "Answer: {L}<|im_end|>\nAnswer: {O}",
        "Answer: {O}\nNo, that is wrong.\nAnswer: {L}",
        "Answer: {L} or {O}",
        "Answer: {O} and {L}",
        "Answer: not {O}",
        "Answer: {O}. {T}",
    ]


def fill(form: str, **parts: str) -> str:
    """A form with its placeholders filled; {l} is {L} in lower case."""
    parts.setdefault("l", parts.get("L", "").lower())
    for name, text in parts.items():
        form = form.replace("{" + name + "}", text)
    return form
