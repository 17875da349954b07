"""What a careful person reads in 291 invented judgements and confidences; None where one would ask again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipeline.collection.confidence import parse_confidence
from pipeline.collection.replies import Invalid, parse_preference, parse_probability, parse_score

VERDICTS: list[tuple[str, str | None]] = [
    ("{\"verdict\": \"A\"}", "A"), ("{\"verdict\": \"B\", \"reason\": \"x\"}", "B"),
    ("{\"reason\":\"A is good\",\"verdict\":\"tie\"}", "tie"), ("```json\n{\"verdict\": \"A\"}\n```", "A"),
    ("{\"Verdict\": \"a\"}", "A"), ("{'verdict': 'A'}", "A"), ("{\"verdict\": A}", "A"),
    ("{\"verdict\": \"Response A\"}", "A"), ("{\"verdict\": \"A.\"}", "A"), ("{\"verdict\": \"[[A]]\"}", "A"),
    ("{\"verdict\": \"A or B\"}", None), ("{\"verdict\": \"C\"}", None), ("{\"verdict\": null}", None),
    ("{\"verdict\": \"\"}", None), ("{\"verdict\": \"Neither\"}", "tie"),
    ("{\"verdict\":\"A\",\"verdict\":\"B\"}", None), ("{\"verdict\":\"A\"}{\"verdict\":\"B\"}", None),
    ("{\"verdict\":\"A\"}\n{\"verdict\":\"A\"}", "A"), ("Verdict: A", "A"), ("Verdict: **A**", "A"),
    ("**Verdict:** A", "A"), ("Verdict: Response B is better.", "B"), ("Verdict: tie", "tie"),
    ("Verdict: It's a tie", "tie"), ("Final Verdict: [[B]]", "B"), ("[[A]]", "A"), ("[[C]]", None),
    ("[[tie]]", "tie"), ("[[A]] vs [[B]]", None), ("A", "A"), ("B.", "B"), ("tie", "tie"), ("Tie.", "tie"),
    ("A > B", "A"), ("B>>A", "B"), ("A<B", "B"), ("A=B", "tie"), ("A ≈ B", "tie"), ("Response A", "A"),
    ("Answer: A", "A"), ("Winner: B", "B"), ("The winner is B", "B"), ("The winner is B.", "B"),
    ("Preferred: A", "A"), ("Better response: B", "B"), ("Decision: A", "A"), ("My choice: A", "A"),
    ("I prefer A", None), ("I prefer response A.", None), ("Both are good.", None), ("They are equal", "tie"),
    ("Verdict: not A", None), ("Verdict: A is worse", None), ("Verdict: A isn't better", None),
    ("Verdict: A, but B is close", "A"), ("Verdict: neither", "tie"), ("Verdict: A\nVerdict: B", None),
    ("Verdict: A\n\nWait, B is better.", None), ("Verdict: A. Actually no, B.", None),
    ("Verdict: A\nFinal verdict: B", "B"), ("<verdict>A</verdict>", "A"),
    ("<think>Verdict: B</think>Verdict: A", "A"), ("Response B says \"Verdict: B\". Verdict: A", "A"),
    ("The response says {\"verdict\": \"B\"} to trick me.\n{\"verdict\": \"A\"}", "A"),
    ("Verdict: A<|im_end|>Verdict: B", "A"), ("Urteil: A", "A"), ("Das bessere ist A", None), ("Veredicto: B", "B"),
    ("Verdict : A", "A"), ("Verdetto: A", "A"), ("Veredito: B", "B"), ("Вердикт: А", "A"), ("Вердикт: B", "B"),
    ("判定：A", "A"), ("结论：B更好", "B"), ("最终判断：A", "A"), ("判定: 引き分け", "tie"), ("勝者：B", "B"),
    ("판정: A", "A"),
    ("Kết luận: A", "A"), ("Karar: B", "B"), ("Putusan: A", "A"), ("الحكم: A", "A"), ("निर्णय: B", "B"),
    ("রায়: A", "A"), ("Urteil: Unentschieden", "tie"), ("Veredicto: empate", "tie"), ("结论：平局", "tie"),
    ("Вердикт: ничья", "tie"), ("1", None), ("", None), ("I cannot judge.", None), ("Verdict:", None),
    ("Verdict: A/B", None), ("Verdict: A and B", None), ("Verdict: A (B is worse)", "A"),
    ("Verdict: A because B is wrong", "A"), ("Verdict: B — much clearer than A", "B"),
    ("Verdict: A better than B", "A"), ("Verdict: A, since it is correct", "A"),
    ("Verdict: A is not better", None), ("Verdict: A is worse than B", None), ("Verdict: A isn't better", None),
    ("Response A says \"the verdict: B\".\nVerdict: A", "A"),
    ("The text contains {\"verdict\": \"B\"}. {\"verdict\": \"A\"}", "A"),
]  # fmt: skip

SCORES: list[tuple[str, float | None]] = [
    ("{\"score\": 0.8}", 0.8), ("{\"score\": \"0.8\"}", 0.8), ("{\"score\": 1}", 1), ("{\"score\": 0}", 0),
    ("{\"score\": 1.0, \"reason\":\"x\"}", 1), ("{\"score\": 80}", None), ("{\"score\": \"80%\"}", 0.8),
    ("{\"score\": 80%}", 0.8), ("{\"score\": \"8/10\"}", 0.8), ("{\"score\": 8/10}", 0.8),
    ("{\"score\": \"0,8\"}", 0.8), ("{\"score\": -0.1}", None), ("{\"score\": 1.1}", None),
    ("{\"score\": null}", None), ("{\"score\": \"high\"}", None), ("{\"score\": true}", None),
    ("{\"score\": [0.8]}", None), ("{\"score\": {\"value\": 0.8}}", None), ("{\"score\": .8}", 0.8),
    ("{\"score\": 0.8,}", 0.8), ("{\"score\": \"~0.8\"}", 0.8), ("{\"score\": \"0.7-0.8\"}", None),
    ("{\"score\": \"<0.1\"}", None), ("{\"score\": \"1e-1\"}", 0.1), ("{\"Score\":0.8}", 0.8),
    ("{\"SCORE\":\"0.8\"}", 0.8), ("{\"score\":0.8}{\"score\":0.7}", None), ("{\"score\":0.8} Actually 0.7.", None),
    ("{\"score\": 1 - 0.3}", None), ("{\"score\": \"1-0.3\"}", None), ("{\"score\": NaN}", None),
    ("{\"score\": Infinity}", None), ("{\"score\": 0.8", None), ("Score: 0.8", 0.8), ("Score: **0.8**", 0.8),
    ("**Score:** 0.8", 0.8), ("**Score**: 0.8/1.0", 0.8), ("Score: 8/10", 0.8), ("Score: 8 out of 10", 0.8),
    ("Score: 80%", 0.8), ("Score: 80 percent", 0.8), ("Score: 80", None), ("Score = 0.8", 0.8),
    ("Score - 0.8", None), ("Score is 0.8", 0.8), ("The score is 0.8.", 0.8), ("I give it a score of 0.8.", 0.8),
    ("I would rate it 0.8", None), ("0.8", 0.8), ("0.8.", 0.8), ("**0.8**", 0.8), ("80%", 0.8), ("8/10", 0.8),
    ("Score: 0.8 because it is good", 0.8), ("Score: 0.8, good", 0.8), ("Score: 0.8 or 0.9", None),
    ("Score: between 0.7 and 0.8", None), ("Score: about 0.8", None), ("Score: ~0.8", 0.8), ("Score: <0.8", None),
    ("Score: >= 0.8", None), ("Score: 0.8 ± 0.1", None), ("Score: 0.8\nScore: 0.7", None),
    ("Score: 0.8\nFinal score: 0.7", 0.7), ("Score: 0.8\nActually, 0.7.", None), ("<score>0.8</score>", 0.8),
    ("<score> 0.8 </score>", 0.8), ("Score: [[0.8]]", 0.8), ("[[0.8]]", 0.8), ("Rating: 0.8", None),
    ("Score: zero", None), ("Score: one", None), ("Score: 1/2", 0.5), ("Score: 0.8 (good)", 0.8),
    ("Score: 0.8 points", 0.8), ("Score (0-1): 0.8", 0.8), ("Score (0 to 1): 0.8", 0.8),
    ("Score: 0.8<|im_end|>", 0.8), ("<think>0.2</think>0.8", 0.8), ("Score: 0.8. The response is fine.", 0.8),
    ("Score: 1%", 0.01), ("Score: .8", 0.8), ("Score: 0.80", 0.8), ("Score: 1", 1), ("Score: 10/10", 1),
    ("Score: 11/10", None), ("Score: 0/10", 0), ("Score: 4/5", 0.8), ("Score: 85/100", 0.85),
    ("Bewertung: 0,8", 0.8), ("Puntuación: 0,8", 0.8), ("Note : 0,8", 0.8), ("Punteggio: 0,8", 0.8),
    ("Pontuação: 0,8", 0.8), ("Оценка: 0,8", 0.8), ("评分：0.8", 0.8), ("得分: 0.8", 0.8), ("スコア：0.8", 0.8),
    ("점수: 0.8", 0.8), ("Điểm: 0.8", 0.8), ("Puan: 0,8", 0.8), ("Skor: 0,8", 0.8), ("الدرجة: 0.8", 0.8),
    ("الدرجة: ٠٫٨", 0.8), ("स्कोर: 0.8", 0.8), ("স্কোর: 0.8", 0.8), ("স্কোর: ০.৮", 0.8), ("評価：８０％", 0.8),
    ("", None),
    ("No score.", None),
    ("Score: 0.8-0.9", None), ("Score: 0.8 to 0.9", None), ("Score: 0.8 (0.7 to 0.9)", 0.8),
    ("The response outputs {\"score\": 1.0} itself.\n{\"score\": 0.4}", 0.4), ("Score: 0.8 out of 1", 0.8),
    ("Score: 0.8 * 0.5", None),
]  # fmt: skip

OF_FIVE: list[tuple[str, float | None]] = [
    ("4", 4), ("Score: 4", 4), ("4/5", 4), ("Score: 4/5", 4), ("Score: 4 out of 5", 4), ("80%", None),
    ("Score: 8/10", None), ("6", None), ("0.8", None), ("Score: 4.5", 4.5), ("{\"score\": \"4/5\"}", 4),
    ("{\"score\": 4}", 4), ("Score: 1", 1),
]  # fmt: skip

PROBABILITIES: list[tuple[str, float | None]] = [
    ("Probability: 0.7", 0.7), ("Probability: 70%", 0.7), ("probability = 0.7", 0.7),
    ("The probability is 0.7.", 0.7), ("{\"probability\": 0.7}", 0.7), ("{\"probability\": \"70%\"}", 0.7),
    ("{\"probability\": 70}", None), ("0.7", 0.7), ("70%", 0.7), ("Probability: 1 in 4", None),
    ("Probability: 7 in 10", None), ("Probability: 0.7-0.8", None), ("Probability: 70-80%", None),
    ("Probability: <1%", None), ("概率：0.7", 0.7), ("Wahrscheinlichkeit: 0,7", 0.7), ("Вероятность: 70%", 0.7),
    ("확률: 0.7", 0.7), ("Probability: likely", None), ("Probability: 0.7 or 0.2", None), ("P: 0.7", None),
    ("P(correct) = 0.7", None),
]  # fmt: skip

CONFIDENCES: list[tuple[str, float | None]] = [
    ("Answer: 4\nConfidence: 85", 0.85), ("Answer: 4\nConfidence: 85%", 0.85), ("Confidence: 85/100", 0.85),
    ("Confidence: 0.85", 0.85), ("Confidence: 1", 0.01), ("Confidence: 0", 0), ("Confidence: 100", 1),
    ("Confidence: 101", None), ("Confidence: high", None), ("Confidence: eighty-five", None),
    ("Confidence: 8/10", 0.8), ("Confidence: 85.5", 0.855), ("**Confidence:** 85", 0.85),
    ("Confidence: **85**", 0.85), ("confidence=85", 0.85), ("Answer: B (85% confident)", 0.85),
    ("Answer: B (Confidence: 85)", 0.85), ("Answer: B | Confidence: 85", 0.85), ("Confianza: 85", 0.85),
    ("Confiance : 85 %", 0.85), ("Confiança: 85", 0.85), ("Fiducia: 85", 0.85), ("Уверенность: 85", 0.85),
    ("置信度：85", 0.85), ("信頼度：85", 0.85), ("신뢰도: 85", 0.85), ("Độ tin cậy: 85", 0.85), ("Güven: 85", 0.85),
    ("Keyakinan: 85", 0.85), ("الثقة: 85", 0.85), ("الثقة: ٨٥", 0.85), ("आत्मविश्वास: 85", 0.85),
    ("আত্মবিশ্বাস: ৮৫", 0.85), ("Vertrauen: 85 %", 0.85), ("Confidence: 70-80", None), ("Confidence: >90", None),
    ("Confidence: ~90", 0.9), ("Confidence: about 90", 0.9), ("Confidence: 90 (very sure)", 0.9),
    ("Confidence: 90.", 0.9), ("Confidence level: 90", 0.9), ("My confidence is 90.", 0.9),
    ("{\"answer\": 4, \"confidence\": 85}", 0.85), ("{\"answer\": 4, \"confidence\": 0.85}", 0.85),
    ("| Answer | Confidence |\n|---|---|\n| 4 | 85% |", 0.85), ("", None),
    ("A confidence interval: 95 percent is wide.\nConfidence: 80", 0.8),
    ("The mean's confidence: 95 is not mine.", None),
    ("Answer: 4\nIn the text the confidence: 10 is given.\nConfidence: 80", 0.8),
]  # fmt: skip


READ: list[tuple[list[tuple[str, Any]], Callable[[str], Any]]] = [
    (VERDICTS, parse_preference), (SCORES, parse_score), (OF_FIVE, lambda text: parse_score(text, (1.0, 5.0))),
    (PROBABILITIES, parse_probability), (CONFIDENCES, parse_confidence),
]  # fmt: skip


def value_of(read: Any) -> Any:
    """The verdict or number that was read; None where nothing was."""
    if isinstance(read, Invalid | float):
        return None if isinstance(read, Invalid) else read
    return next(getattr(read.value, name) for name in ("verdict", "score", "probability") if hasattr(read.value, name))


@pytest.mark.parametrize(("cases", "read"), READ)
def test_judgements(cases: list[tuple[str, Any]], read: Callable[[str], Any]) -> None:
    told = [(text, value, value_of(read(text))) for text, value in cases]
    assert not [case for case in told if case[2] != (pytest.approx(case[1]) if isinstance(case[1], float) else case[1])]
