"""What counts as a change depends on the site's rule: it decides what is learned, and a new rule applies at once."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.engine.memory_web import Drive, MemoryWeb, Reply, page, rules_for

from vedette.model import ChangeRule, Site

A = "https://a.test"
START = f"{A}/start"
DAY_S = 86_400.0
MAIN = "<p>" + "The tide comes in twice a day and leaves the harbour dry when it goes out again. " * 6 + "</p>"


def letters(now_s: float) -> str:
    """Return a different word for each day."""
    return "".join(chr(ord("a") + int(digit)) for digit in str(int(now_s // DAY_S)))


def html(body: str) -> Reply:
    """Return a page with this body."""
    return Reply(200, (("content-type", "text/html"),), f"<title>Tides</title><body>{body}</body>".encode())


# Each is another page every day, in one way only.
WAYS: dict[str, Callable[[float], Reply]] = {
    "bytes": lambda now_s: html(f"<!-- {letters(now_s)} --><main>{MAIN}</main>"),
    "frame": lambda now_s: html(f"<main>{MAIN}</main><footer>seen by {letters(now_s)}</footer>"),
    "words": lambda now_s: html(f"<main>{MAIN}<p>Today the {letters(now_s)} sails.</p></main>"),
    "links": lambda now_s: html(f'<main>{MAIN}<a href="/x/{letters(now_s)}">tides</a></main>'),
    "nothing": lambda _now_s: html(MAIN),
}


def driven(change: ChangeRule) -> Drive:
    """Run a crawl for some days, with a page for each kind of change."""
    web = MemoryWeb({START: page(*(f"/p/{way}" for way in WAYS)), **{f"{A}/p/{way}": WAYS[way] for way in WAYS}})
    rules = rules_for(Site(START, change=change), recrawl=True, refresh="nutch")
    return Drive(web, rules).begin().run(4 * DAY_S)


def found_changed(drive: Drive) -> set[str]:
    """Return the kinds of changes that a refresh detected; each page was fetched more than once."""
    rows = {way: drive.pages()[f"{A}/p/{way}"] for way in WAYS}
    assert all(drive.asked_urls().count(f"{A}/p/{way}") > 1 for way in WAYS)
    return {way for way, row in rows.items() if row.changed_s > DAY_S / 2}


@pytest.mark.parametrize(
    ("rule", "counting"),
    [
        ("bytes", {"bytes", "frame", "words", "links"}),
        ("text", {"frame", "words"}),
        ("main", {"words"}),
        ("links", {"links"}),
        ("queries", {"words"}),
    ],
)
def test_the_rule_of_the_site_decides(rule: ChangeRule, counting: set[str]) -> None:
    """By default, only searchable content counts: words of title and main text, not markup, menus or link targets."""
    assert found_changed(driven(rule)) == counting


def test_the_default_change_rule_is_based_on_searches() -> None:
    """A site without a setting uses the rule based on searches."""
    assert Site(START).change == "queries"


def test_another_rule_holds_at_once_and_invents_no_change() -> None:
    """An unchanged page doesn't count as changed because the rule changes; a changed page does."""
    drive = driven("main")
    before = drive.pages()[f"{A}/p/nothing"].changed_s
    drive.rule(replace(drive.rules, sites=(Site(START, change="text"),)))
    # Not for much longer: text that differs at every fetch is a rotating box, and no change.
    assert found_changed(drive.run(5.5 * DAY_S)) == {"frame", "words"}
    assert drive.pages()[f"{A}/p/nothing"].changed_s == before
