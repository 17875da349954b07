"""What judges call a verdict, a score and a probability, in the languages that they reply in."""

from __future__ import annotations

VERDICT_WORDS = (
    r"verdicts?|winner|choice|pick|preference|preferred(?: response)?"
    r"|judge?ment|decision|better response|urteil|gewinner"
    r"|entscheidung"
    r"|veredicto|ganador|vainqueur|gagnant|verdetto"
    r"|vincitore|veredito|vencedor|вердикт|победитель|решение"
    r"|判定|最终判断|判断|结论|裁决|判决|胜者|获胜者|胜出者|結論|勝者|판정|결론|승자|평결|kết luận"
    r"|phán quyết|karar|hüküm|kazanan|putusan|keputusan"
    r"|pemenang|الحكم|القرار|الفائز|निर्णय|फैसला|विजेता|রায়|বিজয়ী|সিদ্ধান্ত"
)
NUMBER_WORDS = {
    "score": r"scores?|bewertung|punktzahl|puntuación|puntaje"
    r"|calificación|note|punteggio|voto|pontuação|nota|оценка|балл"
    r"|分数|得分|评分|分數|スコア|得点|点数|評価|점수|평점|điểm(?: số)?|puan|skor"
    r"|nilai|الدرجة|النتيجة|التقييم|स्कोर|अंक|স্কোর|নম্বর",
    "probability": r"probabilit(?:y|ies)|likelihood"
    r"|wahrscheinlichkeit|probabilidad|probabilité|probabilità|probabilidade"
    r"|вероятность|概率|可能性|機率|確率|확률|xác suất|olasılık"
    r"|probabilitas|peluang|الاحتمال|احتمال|संभावना|সম্ভাবনা",
}
TIE_WORDS = frozenset(
    {"tie", "tied", "draw", "equal", "equals", "neither", "both",
     "same", "even", "a tie", "it's a tie", "equally good",
     "both equal", "no difference", "no preference", "a draw",
     "they are equal", "both are equal", "unentschieden",
     "gleich", "gleichstand", "empate", "égalité", "pareggio",
     "ничья", "平局", "平手", "相同", "引き分け", "同点", "무승부",
     "동점", "hòa", "berabere", "eşit", "seri", "imbang",
     "تعادل", "बराबर", "बराबरी", "ড্র", "সমান"}
)  # fmt: skip
"""Labels that prefer neither text, in lower case."""
