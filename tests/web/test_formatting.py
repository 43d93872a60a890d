"""Formatting of pages: ages, numbers, URLs and quotations, for any input."""

import math
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vedette.serve.slate import Snippet
from vedette.web import formatting as words

ANY_NUMBER = st.floats(allow_nan=True, allow_infinity=True)


def plain(text: str) -> str:
    """Return the visible text with ordinary spaces."""
    return text.replace(words.THIN, " ")


@pytest.mark.parametrize(
    ("seconds", "message"),
    [
        (0, "just now"),
        (59, "just now"),
        (61, "1 min ago"),
        (3_599, "59 min ago"),
        (3_601, "1 h ago"),
        (47 * 3_600, "47 h ago"),
        (3 * 86_400, "3 days ago"),
        (90 * 86_400, "2 months ago"),
        (3 * 366 * 86_400, "3 years ago"),
        (-500, "just now"),
    ],
)
def test_ages_have_a_fitting_unit(seconds: float, message: str) -> None:
    """The unit fits the age, and the future is shown as now."""
    assert plain(words.ago(1e9, 1e9 - seconds)) == message


@given(ANY_NUMBER, ANY_NUMBER)
def test_any_time_has_a_text(now_s: float, then_s: float) -> None:
    """Whatever a clock or a page says, there is a text; a time beyond the calendar is left out."""
    assert words.ago(now_s, then_s)
    assert bool(words.exact(then_s)) == bool(words.day(then_s)) == bool(words.stamp(then_s))


def test_the_first_centuries_have_four_digits() -> None:
    """A page that claims to be from the year 13 gets a time that programs can parse."""
    assert words.stamp(-61_756_000_000).startswith("0013-")


@given(st.integers())
def test_numbers_are_grouped_in_thousands(count: int) -> None:
    """Without thin spaces, a number is the same as before, and no group has more than three digits."""
    shown = words.number(count)
    assert int(shown.replace(words.THIN, "")) == count
    assert all(len(group.lstrip("-")) <= 3 for group in shown.split(words.THIN))


@given(ANY_NUMBER)
def test_features_values_are_short(value: float) -> None:
    """A value never breaks its column, and NaN is a dash."""
    shown = words.real(value)
    assert 1 <= len(shown) <= 24
    assert (shown == "\N{EM DASH}") == (not math.isfinite(value))
    assert shown.strip("-\N{MINUS SIGN}") == shown or float(value) < 0


def test_crumbs_are_decoded_and_cannot_deceive() -> None:
    """Folders look as their author wrote them; characters that change the text direction or hide are left out."""
    assert words.crumbs("https://ar.example.org/%D8%B4%D8%B1%D8%AD/") == ["ar.example.org", "شرح"]
    assert words.crumbs("https://example.org/%E2%80%AEfdp.exe%00") == ["example.org", "fdp.exe"]
    assert words.crumbs("https://user:word@example.org/a?b=/c#/d") == ["example.org", "a"]


def test_the_end_of_a_long_host_stays() -> None:
    """The owner's domain is at the end of a host, so a long name before it cannot hide it."""
    assert words.crumbs("https://" + "www.bank.example." * 20 + "evil.example/")[0].endswith("evil.example")


@given(st.text())
def test_every_url_has_bounded_crumbs(url: str) -> None:
    """There are few crumbs, each short, whatever the URL contains."""
    found = words.crumbs(url + "/x" * 50)
    assert 1 <= len(found) <= words.MAX_CRUMBS + 1
    assert all(len(crumb) <= words.MAX_CRUMB_LENGTH for crumb in found)


@pytest.mark.parametrize("url", ["javascript:alert(1)", " https://x/", "data:text/html,x", "", "vbscript:x", "//x/"])
def test_links_lead_to_the_web_only(url: str) -> None:
    """A URL that is not a web URL is not linked."""
    assert words.linkable(url) == ""


MARKS = st.lists(st.tuples(st.integers(-5, 60), st.integers(-5, 60)), max_size=6).map(tuple)


@given(st.text(max_size=50), MARKS)
def test_a_marked_snippet_has_its_whole_text_and_no_other_tags(text: str, marks: tuple[tuple[int, int], ...]) -> None:
    """Marks may overlap, cross or be outside: the text stays the same, and nothing in it becomes markup."""
    shown = str(words.marked(Snippet(text, marks)))
    bare = shown.replace("<mark>", "").replace("</mark>", "")
    assert "<" not in bare
    assert unescape(bare) == unescape(str(words.marked(Snippet(text))))
    assert shown.count("<mark>") == shown.count("</mark>") <= len(marks)


@given(st.text(alphabet="ab<>&\"'", max_size=50))
def test_snippets_read_as_they_were_written(text: str) -> None:
    """The page's text is shown, character for character."""
    assert unescape(str(words.marked(Snippet(text)))) == text
