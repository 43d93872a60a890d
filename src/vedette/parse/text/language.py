"""Detect the language of a page: its declaration is a hint, its text decides.

Declarations often come from a template, so a German page that declares English must be detected as German. CLD2, a
detector made for web pages in a browser, reads two short windows of the text, a third and two thirds down, where
neither menu nor footer is: 10 to 20 microseconds, whatever the page's size. In Latin letters they are just short enough
(256 bytes) that it does not read them twice if it is unsure. The declared language is its hint, which decides between
close relatives (Danish and Norwegian, Croatian and Serbian). If CLD2 is unsure, the declaration counts if the text is
at least in its script. Otherwise it reads wider windows; if these do not help either, the language is unknown.
"""

import re
from functools import lru_cache

WINDOW_LENGTH, WIDE_WINDOW_LENGTH = 125, 300

_PRIMARY = re.compile(r"\s*+([a-z]{2,3})(?![a-z0-9])", re.IGNORECASE | re.ASCII)
# Old and finer names that map to one name here (IANA language subtag registry), and subtags that name no language.
_ALIASES = {
    "iw": "he",
    "in": "id",
    "ji": "yi",
    "jw": "jv",
    "mo": "ro",
    "nb": "no",
    "nn": "no",
    "cmn": "zh",
    "fil": "tl",
}
_NO_LANGUAGE = dict.fromkeys(("un", "und", "mul", "mis", "zxx", "xx", "zzb", "zze", "zzh", "zzp", "tlh"), "")
_NAMES = _ALIASES | _NO_LANGUAGE

_TWO_LETTERS = re.compile(r"[A-Za-z][^A-Za-z]*+[A-Za-z]")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_SCRIPTS = {
    language: re.compile(f"[{letters}]")
    for languages, letters in (
        ("ru uk bg be mk sr kk ky mn tg tt", "\u0400-\u052f"),
        ("el", "\u0370-\u03ff\u1f00-\u1fff"),
        ("he yi", "\u0590-\u05ff"),
        ("ar fa ur ps ug ckb", "\u0600-\u06ff\u0750-\u077f"),
        ("hi mr ne sa", "\u0900-\u097f"),
        ("bn as", "\u0980-\u09ff"),
        ("th", "\u0e00-\u0e7f"),
        ("ka", "\u10a0-\u10ff"),
        ("hy", "\u0530-\u058f"),
        ("zh", "\u4e00-\u9fff\u3400-\u4dbf"),
        ("ja", "\u3040-\u30ff\u4e00-\u9fff"),
        ("ko", "\uac00-\ud7af\u1100-\u11ff"),
    )
    for language in languages.split()
}


def detect_language(text: str, declared: str) -> str:
    """Detect the language of a text as a primary subtag (BCP 47); empty if there is too little text.

    >>> detect_language("Der Laden ist am Sonntag geschlossen.", "en-GB"), detect_language("12 34", "en")
    ('de', '')
    """
    hint = _parse_primary(declared)
    sample = _sample_windows(text, WINDOW_LENGTH)
    found = _detect_or_hint(sample, hint)
    if found or len(sample) == len(text):
        return found
    return _detect_or_hint(_sample_windows(text, WIDE_WINDOW_LENGTH), hint)


def _sample_windows(text: str, characters: int) -> str:
    third = len(text) // 3
    if third <= characters:
        return text
    return f"{text[third : third + characters]} {text[2 * third : 2 * third + characters]}"


def _detect_or_hint(sample: str, hint: str) -> str:
    return _run_cld2(sample, hint) or (hint if hint and _is_in_script(hint, sample) else "")


@lru_cache(maxsize=512)
def _parse_primary(declared: str) -> str:
    """Parse the primary language subtag of a declared language; empty if it has none."""
    found = _PRIMARY.match(declared[:64])
    if found is None:
        return ""
    subtag = found[1].lower()
    return _NAMES.get(subtag, subtag)


def _run_cld2(sample: str, hint: str) -> str:
    """Run the CLD2 language detector on a text sample; empty if it is not sure."""
    # Its tables are some megabytes, which only a process that parses pages needs.
    import pycld2  # type: ignore[import-untyped]  # it ships no types

    known = hint if hint in _load_hints() else None
    try:
        sure, _, found = pycld2.detect(sample.encode("utf-8", "replace"), isPlainText=True, hintLanguage=known)
    except pycld2.error:  # it rejects control characters and noncharacters
        printable = "".join(character if character.isprintable() else " " for character in sample)
        return _run_cld2(printable, hint) if printable != sample else ""
    return _parse_primary(found[0][1]) if sure else ""


@lru_cache(maxsize=1)
def _load_hints() -> frozenset[str]:
    import pycld2

    # A hint at Chinese is evidence against its traditional script, which then resembles Japanese.
    return frozenset(code for _, code in pycld2.LANGUAGES if code not in {"zh", "ja"})


def _is_in_script(language: str, sample: str) -> bool:
    """Check whether most letters of a text are in the script of a language."""
    if sample.isascii():
        return language not in _SCRIPTS and _TWO_LETTERS.search(sample) is not None
    fitting = len(_SCRIPTS.get(language, _LATIN).findall(sample))
    return fitting >= 2 and 2 * fitting > sum(map(str.isalpha, sample))
