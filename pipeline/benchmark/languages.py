"""The words that announce an answer or a confidence, in the languages that models reply in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Language:
    """What one language calls things; every text is a part of a regular expression without repetition.

    Attributes:
        code: ISO 639.
        answer: words for an answer.
        confidence: words for a stated confidence.
        question: words that open a new question.
        verbs: words between the word for an answer and the answer.
        qualifiers: words beside the word for an answer (final, correct).
        choose: words that name a choice by choosing it.
        so: words that open a conclusion.
        comma: whether decimals are written with a comma.
    """

    code: str
    answer: str
    confidence: str
    question: str = ""
    verbs: str = ""
    qualifiers: str = ""
    choose: str = ""
    so: str = ""
    comma: bool = False


LANGUAGES = (
    Language(
        "en",
        "answers?",
        "confidence",
        "question|problem|exercise|human|user|instruction|q",
        "is|are|was|would be|will be|must be|should be|has to be|can only be|looks? like"
        "|seems? to be|appears? to be|comes? to|comes? out to|equals|becomes|reads",
        "final|correct|right|best|my|the|so|thus|therefore|hence|most likely|choice|option|letter|number|value|only"
        "|overall|short|and|then|that|probably|likely",
        "option|choice|letter|choose|pick|select|go with|go for|going with|going for|opt for|vote for|settle on"
        "|i['’](?:ll|d) say|i (?:would|will) say",
        "so|thus|therefore|hence|in conclusion|consequently|finally|overall|in total|altogether|this means|result",
    ),
    Language(
        "zh", "答案|答|回答", "置信度|置信水平|信心|自信度|把握|可信度", "问题|問題|题目|用户|问",
        "应该是|應該是|就是|应为|應為|应当是|是|为|為|选|選", "最终|最終|正确|正確|最佳|的|我的|因此|所以|故",
        "故选|故選|应选|應選|选择|選擇|选项|選項|选|選", "所以|因此|故|综上|總之|总之|因而",
    ),
    Language(
        "es", "respuestas?", "(?:nivel de )?confianza|certeza|seguridad", "pregunta|problema|usuario",
        "es|son|sería|seria|debe ser", "final|correcta|la|mi|definitiva|mejor|por tanto|entonces|más probable",
        "opción|elijo|escojo|elegimos|elegiría",
        "por lo tanto|por tanto|entonces|así que|en conclusión|luego", comma=True,
    ),
    Language(
        "hi", "उत्तर|जवाब", "आत्मविश्वास|विश्वास(?: स्तर)?|भरोसा", "प्रश्न|सवाल", "है|होगा|हैं",
        "सही|अंतिम|अन्तिम|मेरा|इसलिए|का|अतः", "विकल्प", "इसलिए|अतः",
    ),
    Language(
        "ar", "الإجابة|الاجابة|إجابة|اجابة|الجواب|جواب|إجابتي", "(?:مستوى |درجة )?(?:الثقة|ثقة)", "السؤال|سؤال",
        "هي|هو|ستكون", "الصحيحة|الصحيح|النهائية|النهائي|إذن|إذا|الأفضل", "الخيار|أختار|اختار", "لذلك|إذن|وبالتالي",
    ),
    Language(
        "fr", "r[ée]ponses?", "(?:niveau de |degré de )?confiance|certitude", "question|problème|utilisateur",
        "est|serait|sont|doit être", "finale|correcte|la|ma|bonne|donc|définitive|exacte|meilleure",
        "option|choix|je choisis|on choisit", "donc|ainsi|par conséquent|en conclusion|finalement", comma=True,
    ),
    Language(
        "bn", "উত্তর|জবাব", "আত্মবিশ্বাস|আস্থা|নিশ্চয়তা", "প্রশ্ন", "হল|হলো|হচ্ছে|হবে|হয়",
            "সঠিক|চূড়ান্ত|শেষ|আমার|অতএব|তাই",
        "বিকল্প", "অতএব|তাই|সুতরাং",
    ),
    Language(
        "pt", "respostas?", "(?:nível de |grau de )?confiança|certeza", "pergunta|questão|usuário",
        "é|são|seria|deve ser", "final|correta|certa|a|minha|definitiva|portanto|melhor|então",
        "opção|alternativa|escolho|escolhemos", "portanto|logo|assim|então|em conclusão", comma=True,
    ),
    Language(
        "ru", "ответ|ответы|ответом", "(?:уровень )?уверенност[ьи]|достоверность", "вопрос|задача|пользователь",
        "будет|это|является|есть|равен", "окончательный|правильный|верный|мой|итоговый|итак|значит|правильным",
        "вариант|выбираю|выберем", "итак|следовательно|таким образом|значит|поэтому", comma=True,
    ),
    Language(
        "ja", "答え|答案|回答|解答|正解|こたえ", "信頼度|確信度|自信度|自信|信頼性", "質問|問題|問い|ユーザー",
        "は、?|が", "最終的な|最終|正しい|最も適切な|したがって、?|よって、?|の|正解の", "選択肢|選ぶのは",
        "したがって|よって|ゆえに|つまり",
    ),
    Language(
        "de", "antwort(?:en)?|lösung", "vertrauen|konfidenz|sicherheit|zuversicht|gewissheit", "frage|aufgabe|nutzer",
        "ist|lautet|wäre|sind|muss sein",
        "die|meine|endgültige|richtige|korrekte|finale|beste|also|daher|somit|abschließende",
        "option|auswahl|wähle|buchstabe", "also|daher|somit|folglich|deshalb|insgesamt", comma=True,
    ),
    Language(
        "ko", "정답|답변|답안|답|해답", "신뢰도|확신도|자신감|확신", "질문|문제|사용자", "은|는|이|입니다",
        "최종|올바른|정확한|따라서|그러므로|가장 적절한",
        "선택지|보기", "따라서|그러므로|그래서|결론적으로",
    ),
    Language(
        "vi", "đáp án|câu trả lời|trả lời|đáp số", "(?:mức )?độ tin cậy|mức độ tự tin|sự tự tin|tự tin|độ chắc chắn",
        "câu hỏi|bài toán|người dùng", "là|sẽ là", "đúng|cuối cùng|chính xác|của tôi|vậy|do đó|đúng nhất",
            "chọn|phương án",
        "vậy|do đó|vì vậy|như vậy", comma=True,
    ),
    Language(
        "tr", "cevap(?:ı|ım)?|yanıt(?:ı|ım)?", "güven(?: düzeyi| seviyesi)?|eminlik", "soru|problem|kullanıcı",
        "olmalı|olarak|şudur|budur", "doğru|nihai|son|kesin|benim|en iyi|bu nedenle", "seçenek|şık|seçiyorum",
        "bu nedenle|dolayısıyla|o halde|sonuç olarak", comma=True,
    ),
    Language(
        "it", "rispost[ae]", "(?:livello di )?(?:fiducia|confidenza|sicurezza)|certezza", "domanda|problema|utente",
        "è|sarebbe|sono|deve essere", "finale|corretta|giusta|la|mia|definitiva|quindi|esatta|migliore",
        "opzione|scelgo|scelta", "quindi|dunque|pertanto|perciò|in conclusione", comma=True,
    ),
    Language(
        "id", "jawaban(?:nya)?|jawab", "(?:tingkat )?(?:keyakinan|kepercayaan)", "pertanyaan|soal|pengguna",
        "adalah|ialah|yaitu", "akhir|benar|yang|tepat|saya|jadi|terbaik|paling", "pilihan|opsi|pilih",
        "jadi|oleh karena itu|maka|dengan demikian", comma=True,
    ),
    Language("sw", "jibu|majibu", "uhakika|imani", "swali", "ni", "sahihi|la|mwisho|langu", "chaguo|nachagua",
        "kwa hiyo"),
    Language("nl", "antwoord(?:en)?", "vertrouwen|zekerheid", "vraag", "is|luidt",
        "het|mijn|juiste|definitieve|beste|dus",
             "optie|keuze|kies", "dus|daarom", comma=True),
    Language("pl", "odpowied[źz]i?", "pewność|zaufanie", "pytanie|zadanie", "to|jest|brzmi",
        "poprawna|prawidłowa|ostateczna|moja",
             "opcja|wybieram", "zatem|więc", comma=True),
    Language("sv", "svar(?:et)?", "säkerhet|konfidens|tillförlitlighet", "fråga", "är|er",
        "slutligt|rätt|korrekt|mitt|riktigt",
             "alternativ|väljer", "alltså|därför", comma=True),
    Language("uk", "відповідь", "впевненість", "питання|задача", "це|є", "правильна|остаточна|моя", "варіант",
        "отже", comma=True),
    Language("cs", "odpověď", "jistota|důvěra", "otázka", "je", "správná|konečná|moje", "možnost",
    "tedy", comma=True),
    Language("ro", "răspuns(?:ul)?", "încredere", "întrebare", "este", "corect|final|meu", "opțiunea",
        "deci", comma=True),
    Language("el", "απάντηση", "εμπιστοσύνη|βεβαιότητα", "ερώτηση", "είναι", "σωστή|τελική|η", "επιλογή",
        "άρα", comma=True),
    Language("he", "תשובה|התשובה", "ביטחון", "שאלה", "היא", "הנכונה|הסופית", "אפשרות", "לכן"),
    Language("fa", "پاسخ|جواب", "اطمینان|اعتماد", "سوال", "است", "نهایی|درست|صحیح", "گزینه", "بنابراین"),
    Language("th", "คำตอบ", "ความมั่นใจ|ความเชื่อมั่น", "คำถาม", "คือ", "สุดท้าย|ที่ถูกต้อง", "เลือก|ข้อ", "ดังนั้น"),
    Language("ta", "பதில்|விடை", "நம்பிக்கை", "கேள்வி"),
    Language("te", "సమాధానం|జవాబు", "విశ్వాసం", "ప్రశ్న"),
)  # fmt: skip
