"""Detect soft 404s: pages with status 200 that say they do not exist.

Two conditions must hold: the page is short, and its title or first heading says so explicitly. The second alone would
catch every article about missing pages, the first alone every short page. A title is checked in pieces, since sites add
their name with a dash or a bar; the phrase must make up most of a piece, so *How to write a 404 page* does not match.
If title and heading do not match, a sentence in a very short text may.
"""

import re
from collections.abc import Sequence

SHORT_WORDS, SHORT_LETTERS = 150, 1_200
VERY_SHORT_WORDS, VERY_SHORT_LETTERS = 40, 300
MAX_PIECE_LENGTH = 120
MIN_PIECE_SHARE = 0.6

# Phrases by language; "~" matches a few words in between ("the page you want was not found").
_SENTENCES = {
    "en": (
        r"(?:page|file|document|url|content)~not (?:be )?found|page~can ?(?:not|'t) be found|page~couldn't be found",
        r"page~(?:does not|doesn't|no longer) exists?|page~is (?:gone|missing|not here)|no such page",
        r"page~(?:has been|was) (?:removed|deleted)|we (?:could not|couldn't|can't|cannot) find~page",
    ),
    "de": (r"seite~nicht gefunden(?: werden)?", r"seite~(?:existiert|gibt es) nicht(?: mehr)?"),
    "fr": (r"page~(?:non trouvée|introuvable|inexistante)", r"page~n'existe (?:pas|plus)"),
    "es": (r"p[áa]gina~no (?:encontrada|existe|disponible)", r"no (?:se )?(?:ha )?enc(?:o|ue)ntr\w{1,4}~p[áa]gina"),
    "pt": (r"p[áa]gina~n[ãa]o (?:foi )?(?:encontrada|existe)",),
    "it": (r"pagina~non (?:è stata )?(?:trovata|esiste)",),
    "nl": (r"pagina~niet gevonden", r"pagina~bestaat niet(?: meer)?"),
    "pl": (r"nie znaleziono~strony", r"strona~nie (?:została znaleziona|istnieje)"),
    "ru": (r"страница~не (?:найдена|существует)",),
    "uk": (r"(?:сторінка|сторінку)~не (?:знайдена|знайдено|існує)",),
    "cs": (r"stránka~(?:nenalezena|nebyla nalezena|neexistuje)",),
    "sv": (r"sidan~(?:kunde inte hittas|hittades inte|finns inte)",),
    "da, no": (r"siden~(?:blev ikke fundet|ble ikke funnet|fin[dn]es ikke|kunne ikke findes)",),
    "fi": (r"sivua~ei (?:löydy|löytynyt|löydetty|ole)",),
    "tr": (r"sayfa~(?:bulunamad\u0131|mevcut değil)",),
    "hu": (r"oldal~nem (?:található|létezik)",),
    "ro": (r"pagin[ăa]~nu (?:a fost g[ăa]sit[ăa]|exist[ăa])",),
    "el": (r"σελίδα~δεν (?:βρέθηκε|υπάρχει)",),
    "ja": (r"ページ[がはを]?(?:見つかりません(?:でした)?|存在しません)", r"お探しのページ.{0,10}(?:ません|ない).{0,4}"),
    "zh": (
        r"(?:页面|頁面|网页|網頁).{0,4}(?:不存在|未找到|找不到)",
        r"(?:找不到|未找到|無法找到|无法找到).{0,8}(?:页面|頁面|网页|網頁)",
    ),
    "ko": (r"페이지.{0,4}(?:찾을 수 없|존재하지 않)\S{0,6}",),
    "ar": (r"الصفحة~غير موجودة", r"لم يتم العثور على~الصفحة"),
    "he": (r"(?:הדף|העמוד)~(?:לא נמצא|אינו קיים)",),
    "id, ms": (r"halaman~tidak (?:ditemukan|dijumpai)",),
    "vi": (r"không tìm thấy~trang", r"trang~không tồn tại"),
}
# Sufficient in a title or a heading; in a text they may be about anything.
_TITLE_PATTERNS = (
    r"(?:http )?(?:errore? |fehler |erreur |erro |fout |błąd |ошибка |помилка |chyba |fel |hata )?404(?: error)?",
    r"(?:not|nicht|niet|non|no|ikke) (?:found|gefunden|gevonden|trouvée?|trovat[oa]|encontrad[oa]|fundet|funnet)",
    r"n[ãa]o encontrad[oa]|nie znaleziono|nenalezeno|bulunamad\u0131|nem található",
    r"не (?:найдена|найдено|найден|знайдено)",
)
_BETWEEN = r"\b[^.!?|]{0,40}?\b"


def _compile_any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns).replace("~", _BETWEEN), re.IGNORECASE)


_ALL_SENTENCES = tuple(pattern for patterns in _SENTENCES.values() for pattern in patterns)
_SENTENCE = _compile_any(*_ALL_SENTENCES)
_NOTICE = _compile_any(*_ALL_SENTENCES, *_TITLE_PATTERNS)
_PIECES = re.compile(r"\s[-\u2013\u2014|·•:»«/]+\s|[|·•»«:!?]|\.\s")
_LETTERS = re.compile(r"\w")
_CURLY = "\N{RIGHT SINGLE QUOTATION MARK}"


def find_missing_notice(title: str, headings: Sequence[str], main: str, words: int) -> str | None:
    """Return why a page counts as a soft 404, which says that it does not exist; None if it does not.

    >>> find_missing_notice("Page not found | Example", [], "Sorry, nothing is here.", 4)
    'says "Page not found" and little else (4 words)'
    >>> find_missing_notice("How to write a 404 page", [], "Say sorry, and offer a search.", 6)
    """
    if words > SHORT_WORDS or len(main) > SHORT_LETTERS:
        return None
    said = next(filter(None, map(_find_notice, (title, *headings[:1]))), None)
    if said is None and words <= VERY_SHORT_WORDS and len(main) <= VERY_SHORT_LETTERS:
        found = _SENTENCE.search(main.replace(_CURLY, "'"))
        said = found and found[0]
    return f'says "{said}" and little else ({words} words)' if said else None


def _find_notice(text: str) -> str | None:
    """Find the "not found" notice of a soft 404 in a title or heading, if a piece of it says little else."""
    for piece in _PIECES.split(text[: 4 * MAX_PIECE_LENGTH].replace(_CURLY, "'")):
        said = [found[0] for found in _NOTICE.finditer(piece[:MAX_PIECE_LENGTH])]
        if said and sum(map(_count_letters, said)) >= MIN_PIECE_SHARE * _count_letters(piece):
            return " ".join(said)
    return None


def _count_letters(text: str) -> int:
    return len(_LETTERS.findall(text))
