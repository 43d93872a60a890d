"""Pages with status 200 that say that they do not exist are distinguished from pages about such pages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.parse.quality.soft404 import find_missing_notice

SORRY = "Sorry. Go back to the start page, or try the search."
ARTICLE = "The harbour was quiet at dawn, and nobody asked about the cargo that came in with the tide. " * 20

MISSING = [
    "Page not found",
    "404",
    "Error 404 - Example Ltd",
    "Example | Page Not Found",
    "404 Not Found",
    "Sorry, this page doesn’t exist",  # noqa: RUF001 - the apostrophe that people write
    "Oops! That page can't be found.",
    "The page you requested could not be found",
    "Seite nicht gefunden – Beispiel GmbH",  # noqa: RUF001 - the dash that people write
    "Page introuvable",
    "Erreur 404 : cette page n'existe plus",
    "Página no encontrada",
    "Página não encontrada | Exemplo",
    "Pagina non trovata",
    "Pagina niet gevonden",
    "Nie znaleziono strony",
    "Страница не найдена",
    "Сторінку не знайдено",
    "Stránka nenalezena",
    "Sidan kunde inte hittas",
    "Siden blev ikke fundet",
    "Sivua ei löydy",
    "Sayfa bulunamadı",  # noqa: RUF001 - Turkish
    "Az oldal nem található",
    "Η σελίδα δεν βρέθηκε",  # noqa: RUF001 - Greek
    "ページが見つかりません",
    "页面不存在",
    "페이지를 찾을 수 없습니다",
    "الصفحة غير موجودة",
    "הדף לא נמצא",
    "Halaman tidak ditemukan",
]
THERE = [
    "How to write a 404 page",
    "What to do when a page is not found: a guide for editors",
    "Peugeot 404 Cabriolet",
    "Room 404, second floor",
    "Changelog",
    "Found objects",
    "Lost and found",
    "Notes on founding a company",
    "",
]


def words_of(text: str) -> int:
    """Count words as the page's reader does."""
    return len(text.split())


@pytest.mark.parametrize("title", MISSING)
def test_a_short_page_that_says_so_is_missing(title: str) -> None:
    """A title or first heading that says "not found" counts, in many languages and with any addition by the site."""
    assert find_missing_notice(title, [], SORRY, words_of(SORRY))
    assert find_missing_notice("Example", [title], SORRY, words_of(SORRY))


@pytest.mark.parametrize("title", MISSING)
def test_a_long_page_is_there_whatever_its_title(title: str) -> None:
    """A long article about missing pages is not missing."""
    assert find_missing_notice(title, [title], ARTICLE, words_of(ARTICLE)) is None


@pytest.mark.parametrize("title", THERE)
def test_a_short_page_with_another_title_is_there(title: str) -> None:
    """A number or a word that also appears on error pages is not enough."""
    text = "It was built in France, and few of them are left."
    assert find_missing_notice(title, [title], text, words_of(text)) is None


def test_a_list_of_changes_may_speak_of_what_was_not_found() -> None:
    """Neither later headings nor the text make a page count as missing."""
    text = "Fixed a crash when the configuration was not found. The error is shown now. Sorting is stable."
    assert find_missing_notice("Changes in version 2", ["Changes", "Not found"], text, words_of(text)) is None


def test_a_very_short_text_may_say_it_in_a_sentence() -> None:
    """Some sites give their error pages the site's title."""
    text = "We are sorry. The page that you are looking for could not be found."
    assert find_missing_notice("Example Ltd", ["Example Ltd"], text, words_of(text))


def test_the_reason_quotes_the_page() -> None:
    """The reason quotes the deciding words."""
    reason = find_missing_notice("Beispiel | Seite nicht gefunden", [], SORRY, words_of(SORRY))
    assert reason is not None
    assert "Seite nicht gefunden" in reason


@given(st.text(), st.lists(st.text(), max_size=3), st.text(), st.integers(0, 200))
def test_no_text_makes_it_fail(title: str, headings: list[str], main: str, words: int) -> None:
    """For any text, the result is a reason or none."""
    assert find_missing_notice(title, headings, main, words) != ""


def test_a_hostile_title_is_read_only_so_far() -> None:
    """A megabyte of partial phrases takes no longer than a short title."""
    assert find_missing_notice("page " * 200_000, ["page " * 200_000], "page " * 50, 50) is None
