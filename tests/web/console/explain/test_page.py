"""The console's Explain page."""

from typing import Any

import pytest
from tests.web.console.explain_facts import DOCS, Desk, facts
from tests.web.small_operator import Console, signed_in
from tests.web.small_search import NOW_S

from vedette.web.commands.commands import AddRules, FetchNow, RemoveRules, Rule


def page_text(console: Console, url: str = "https://docs.example.org/a") -> str:
    """Return the text of the page about a URL."""
    return str(console.client.get("/console/explain", params={"url": url}).text)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, "It was fetched 4\N{NARROW NO-BREAK SPACE}min ago and will be fetched again in about 2"),
        ({"site": None, "refusal": "outside the scope of every site"}, "It is not fetched: it is outside the scope"),
        (
            {"robots": {**facts("")["robots"], "verdict": "disallowed", "line": "Disallow: /a"}},
            "It is not fetched: robots.txt disallows it by the line “Disallow: /a”.",
        ),
        (
            {"hidden": [{"kind": "block", "query": "", "value": "example.org"}]},
            "does not appear in search results because you hid it",
        ),
        ({"known": None, "page": None}, "It is unknown: no fetched page, sitemap or feed links to it"),
        (
            {"page": None, "known": {**facts("")["known"], "standing": "waiting", "ahead": 3}},
            "It is waiting for its first fetch, 3 URLs ahead of it",
        ),
        ({"known": {**facts("")["known"], "standing": "failed", "why": "too slow"}}, "not be fetched: too slow."),
    ],
)
def test_explaining_begins_with_one_sentence(changed: dict[str, Any], words: str) -> None:
    """It says whether the URL is fetched, when, and why not."""
    assert words in page_text(signed_in(Desk(DOCS, **changed)))


def test_the_page_reloads_until_a_requested_fetch_is_done() -> None:
    """The page reloads while it waits, until the fetch is done or time is up."""
    url = "https://docs.example.org/a"
    desk = Desk(DOCS)
    console = signed_in(desk)
    answer = console.post("/console/explain/fetch", url=url)
    assert console.operator.orders == [FetchNow((url,))]
    waiting = console.client.get(answer.headers["location"])
    assert waiting.headers["refresh"].startswith("2; url=/console/explain?")
    desk.changed = {"page": {**facts("")["page"], "fetched_s": NOW_S + 1}}
    received = console.client.get(answer.headers["location"])
    assert "This URL was fetched just now" in received.text
    assert "refresh" not in received.headers
    desk.changed = {}
    tired = console.client.get("/console/explain", params={"url": url, "since": str(NOW_S), "looks": "9999"})
    assert "refresh" not in tired.headers


def test_a_page_its_folder_or_its_domain_can_be_hidden_where_it_is_explained() -> None:
    """There are three buttons for three rules, and one that removes a rule."""
    console = signed_in(Desk(DOCS))
    for what in ("page", "below", "domain"):
        console.post("/console/explain/hide", url="https://docs.example.org/a/b?c", what=what)
    console.post("/console/results/remove", kind="block", query="", value="example.org")
    assert console.operator.orders == [
        AddRules((Rule("conceal", "", "https://docs.example.org/a/b?c"),)),
        AddRules((Rule("conceal", "", "https://docs.example.org/a/*"),)),
        AddRules((Rule("block", "", "example.org"),)),
        RemoveRules((Rule("block", "", "example.org"),)),
    ]
