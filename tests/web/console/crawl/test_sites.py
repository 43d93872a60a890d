"""The console's pages on which an operator does something, over the real application and things in memory."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.routing import Mount, Route
from tests.web.small_operator import Console, SmallDesk, signed_in
from tests.web.small_search import NOW_S

from vedette.config.site_settings import OWNERSHIP_PHRASE
from vedette.errors import SiteError
from vedette.model import Site
from vedette.web.commands.commands import (
    AddRules,
    AddSite,
    Dismiss,
    FetchNow,
    PauseSite,
    RemoveRules,
    RemoveSite,
    Rule,
    SetSite,
)
from vedette.web.console.ports.sites import FetchFailure, SiteLine, StoredRule, UnlistedHost

DOCS = Site("https://docs.example.org/", delay_s=2.0, exclude=("/old/*",))
WHOLE = {"scope": "host", "sort_parameters": "yes", "drop_parameters": "\n".join(Site("").drop_parameters)}
HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>"


def facts(url: str, **changed: Any) -> dict[str, Any]:
    """What ``live.explaining`` tells of a page that was fetched."""
    robots = {"url": "https://docs.example.org/robots.txt", "ignored": False, "verdict": "allowed", "line": None}
    page = {"status": 200, "kind": "page", "title": "Lag", "fetched_s": NOW_S - 240, "changed_s": NOW_S - 240}
    known = {"found_s": NOW_S - 900, "depth": 1, "standing": "fetched", "front": None, "ahead": None}
    return {
        "url": url,
        "known_as": url,
        "running": True,
        "now_s": NOW_S,
        "steps": [],
        "site": {"start": DOCS.start, "scope": "host", "paused": False, "change": "main", "overrule": ()},
        "refusal": None,
        "robots": {**robots, "state": "It was read.", "crawl_delay_s": None},
        "host": {"name": "docs.example.org", "wait": "", "ready_s": 0.0},
        "known": {**known, "why": None, "ended_s": None, "copy_lost": None},
        "page": {**page, "bytes": 10, "location": "", "due_s": NOW_S + 7300, "rule": "a rule", "archived": None},
        "refresh": None,
        "content": None,
        "copies": None,
        "index": None,
        "change": None,
        "held": None,
        "spared": None,
        "hidden": [],
        **changed,
    }


class Desk(SmallDesk):
    """A desk that tells ``facts``; ``changed`` are those that differ."""

    def __init__(self, *sites: Site, **changed: Any) -> None:
        super().__init__(*sites)
        self.changed = changed

    def explain_url(self, url: str) -> dict[str, Any]:
        """Of whatever is asked."""
        return facts(url, **self.changed)


def said(console: Console, url: str = "https://docs.example.org/a") -> str:
    """What the page about a URL says."""
    return str(console.client.get("/console/explain", params={"url": url}).text)


def test_a_site_is_looked_at_first_and_then_added() -> None:
    """One field, then a page with what it would be, then the order; what the look took of the host goes with it."""
    console = signed_in()
    assert 'action="/console/sites/preview"' in console.client.get("/console/sites/add").text
    seen = console.post("/console/sites/preview", site="example.org/docs/")
    assert seen.status_code == 200
    assert "https://example.org/docs/" in seen.text
    assert "192.0.2.1" in seen.text
    assert console.operator.orders == []
    form = {**WHOLE, "site": "example.org/docs/", "scope": "prefix", "delay": "5s"}
    form |= {"asked_s": str(NOW_S - 2), "asked_of": "example.org"}
    assert console.post("/console/sites/add", **form).status_code == 303
    site = Site("https://example.org/docs/", scope="prefix", delay_s=5.0)
    assert console.operator.orders == [AddSite(site, asked_s=NOW_S - 2)]


def test_what_was_asked_of_one_host_says_nothing_of_another() -> None:
    """Whoever types another host after the look ahead adds one that was not asked."""
    console = signed_in()
    form = {**WHOLE, "site": "other.example", "asked_s": str(NOW_S - 2), "asked_of": "example.org"}
    console.post("/console/sites/add", **form)
    assert console.operator.orders == [AddSite(Site("https://other.example/"))]


def test_what_is_wrong_stands_beside_its_field_and_what_was_typed_is_kept() -> None:
    """Each wrong field has its own words; the others keep what they had; what may be a secret is not shown again."""
    console = signed_in()
    typed = {**WHOLE, "site": "example.org", "delay": "soon", "hours": "22:00-06:00", "include": "docs\n/ok/*"}
    answer = console.post("/console/sites/add", **typed, secrets="hunter2", ignore_robots="yes")
    assert answer.status_code == 422
    for field in ("delay", "include", "secrets", "ignore_robots"):
        assert f'id="{field}-wrong"' in answer.text
    assert 'id="hours-wrong"' not in answer.text
    for kept in ('value="soon"', 'value="22:00-06:00"', "docs\n/ok/*"):
        assert kept in answer.text
    assert "hunter2" not in answer.text
    assert console.operator.orders == []


@pytest.mark.parametrize("text", ["", "not a site", "https://user:pass@example.org/", "javascript:alert(1)", "3"])
def test_what_is_no_site_is_asked_for_again(text: str) -> None:
    """The first field comes back with what is wrong."""
    answer = signed_in().post("/console/sites/preview", site=text)
    assert answer.status_code == 422
    assert 'id="site-wrong"' in answer.text


def test_robots_are_ignored_only_where_the_site_is_confirmed_as_ones_own() -> None:
    """The confirmation is never filled in, and nothing but its exact words counts."""
    console = signed_in(Desk(DOCS))
    assert f'value="{OWNERSHIP_PHRASE}"' not in console.client.get("/console/sites/edit?site=" + DOCS.start).text
    assert (
        console.post(
            "/console/sites/add", **WHOLE, site="a.example", ignore_robots=OWNERSHIP_PHRASE.lower()
        ).status_code
        == 422
    )
    assert (
        console.post("/console/sites/add", **WHOLE, site="a.example", ignore_robots=OWNERSHIP_PHRASE).status_code == 303
    )
    assert console.operator.orders == [AddSite(Site("https://a.example/", ignore_robots=True))]


def test_the_settings_of_a_site_are_changed_where_they_differ() -> None:
    """The form has what is set; only what was changed is ordered, and nothing where nothing was."""
    console = signed_in(Desk(DOCS))
    shown = console.client.get("/console/sites/edit", params={"site": DOCS.start}).text
    assert 'value="2s"' in shown
    assert "/old/*" in shown
    form = {**WHOLE, "start": DOCS.start, "delay": "2s", "exclude": "/old/*", "change": "queries"}
    assert console.post("/console/sites/edit", **form).status_code == 303
    assert console.operator.orders == []
    assert console.post("/console/sites/edit", **{**form, "delay": "9s", "exclude": ""}).status_code == 303
    (order,) = console.operator.orders
    assert isinstance(order, SetSite)
    assert (order.start, dict(order.changes)) == (DOCS.start, {"delay_s": 9.0, "exclude": ()})
    assert "delay=9s" in order.typed


def test_a_site_that_ignores_robots_goes_on_until_it_is_told_not_to() -> None:
    """Saving other settings does not change it; a tick does."""
    own = Site("https://own.example/", ignore_robots=True)
    console = signed_in(Desk(own))
    form = {**WHOLE, "start": own.start, "delay": "3s"}
    console.post("/console/sites/edit", **form)
    console.post("/console/sites/edit", **form, obey_robots="yes")
    changes = [dict(order.changes) for order in console.operator.orders if isinstance(order, SetSite)]
    assert changes == [{"delay_s": 3.0}, {"delay_s": 3.0, "ignore_robots": False}]


def test_removing_is_confirmed_by_the_name_of_the_host() -> None:
    """The page says what will go; a wrong name removes nothing; the right one does, with the pages where wanted."""
    console = signed_in(Desk(DOCS))
    shown = console.client.get("/console/sites/remove", params={"site": DOCS.start}).text
    assert "docs.example.org" in shown
    wrong = console.post("/console/sites/remove", start=DOCS.start, host="docs", pages="go")
    assert wrong.status_code == 422
    assert 'id="host-wrong"' in wrong.text
    assert console.operator.orders == []
    console.post("/console/sites/remove", start=DOCS.start, host="DOCS.example.org", pages="go")
    console.post("/console/sites/remove", start=DOCS.start, host="docs.example.org", pages="stay")
    assert console.operator.orders == [RemoveSite(DOCS.start, with_pages=True), RemoveSite(DOCS.start)]


def test_pausing_and_resuming_are_one_click() -> None:
    """The list has a button for each site."""
    console = signed_in(Desk(DOCS))
    assert "Pause" in console.client.get("/console/sites").text
    console.post("/console/sites/pause", site=DOCS.start, paused="yes")
    console.post("/console/sites/pause", site=DOCS.start, paused="")
    assert console.operator.orders == [PauseSite(DOCS.start, paused=True), PauseSite(DOCS.start, paused=False)]


def test_what_the_keeper_refuses_is_told_and_the_form_is_kept() -> None:
    """Nothing is lost when an order is not carried out."""
    console = signed_in(Desk(DOCS))
    mark = console.mark()
    console.operator.refusal = SiteError("it is there already")
    headers = {"sec-fetch-site": "same-origin"}
    form = {**WHOLE, "csrf": mark, "site": "example.org", "delay": "7s"}
    answer = console.client.post("/console/sites/add", data=form, headers=headers)
    assert answer.status_code == 422
    assert "It is there already." in answer.text
    assert 'value="7s"' in answer.text


def test_the_list_sorts_filters_and_can_be_taken_away() -> None:
    """By links, and as CSV with what the filter leaves."""
    desk = Desk(*(Site(f"https://site{number}.example/") for number in range(120)))
    console = signed_in(desk)
    assert "50 of 120" in console.client.get("/console/sites").text
    assert "site77.example" in console.client.get("/console/sites?filter=site77").text
    lines = console.client.get("/console/sites?csv=1&filter=site7").text.splitlines()
    assert len(lines) == 1 + len([number for number in range(120) if str(number).startswith("7")])


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({}, "It was fetched 4\N{NARROW NO-BREAK SPACE}min ago and will be fetched again in about 2"),
        ({"site": None, "refusal": "outside the scope of every site"}, "It is not fetched: it is outside the scope"),
        (
            {"robots": {**facts("")["robots"], "verdict": "disallowed", "line": "Disallow: /a"}},
            "It is not fetched: robots.txt disallows it by the line “Disallow: /a”.",
        ),
        ({"hidden": [{"kind": "block", "query": "", "value": "example.org"}]}, "cannot be found, because you hid it"),
        ({"known": None, "page": None}, "It is not known: no page that was fetched links to it"),
        (
            {"page": None, "known": {**facts("")["known"], "standing": "waiting", "ahead": 3}},
            "It waits to be fetched for the first time, 3 URLs before it",
        ),
        ({"known": {**facts("")["known"], "standing": "failed", "why": "too slow"}}, "not be fetched: too slow."),
    ],
)
def test_explaining_begins_with_one_sentence(changed: dict[str, Any], words: str) -> None:
    """Whether it is fetched, when, and why not."""
    assert words in said(signed_in(Desk(DOCS, **changed)))


def test_fetching_now_is_ordered_and_looked_for_until_it_came() -> None:
    """The page loads itself again while it waits, and not once the page has come or patience has ended."""
    url = "https://docs.example.org/a"
    desk = Desk(DOCS)
    console = signed_in(desk)
    answer = console.post("/console/explain/fetch", url=url)
    assert console.operator.orders == [FetchNow((url,))]
    waiting = console.client.get(answer.headers["location"])
    assert waiting.headers["refresh"].startswith("2; url=/console/explain?")
    desk.changed = {"page": {**facts("")["page"], "fetched_s": NOW_S + 1}}
    came = console.client.get(answer.headers["location"])
    assert "It came just now" in came.text
    assert "refresh" not in came.headers
    desk.changed = {}
    tired = console.client.get("/console/explain", params={"url": url, "since": str(NOW_S), "looks": "9999"})
    assert "refresh" not in tired.headers


def test_a_page_its_folder_or_its_domain_can_be_hidden_where_it_is_explained() -> None:
    """Three buttons, three rules; and one that takes a rule back."""
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


def test_hosts_that_pages_link_to_are_offered_and_can_be_dismissed() -> None:
    """Adding leads to the form with the host in it; dismissing is an order."""
    desk = Desk()
    desk.hosts = [UnlistedHost("other.example", 7, 2, NOW_S - 60, "https://docs.example.org/links")]
    console = signed_in(desk)
    shown = console.client.get("/console/discover").text
    assert "None of them is crawled by itself" in shown
    assert "/console/sites/add?site=other.example" in shown
    console.post("/console/discover/dismiss", host="other.example")
    assert console.operator.orders == [Dismiss("other.example")]


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"kind": "synonym", "query": "?", "value": "lag"}, "query"),
        ({"kind": "pin", "query": "lag", "value": "no url"}, "value"),
        ({"kind": "block", "domain": "nothing"}, "domain"),
        ({"kind": "conceal", "url": "not a url*"}, "url"),
    ],
)
def test_rules_that_cannot_be_meant_are_told_beside_their_field(form: dict[str, str], field: str) -> None:
    """And what was typed is kept."""
    console = signed_in()
    answer = console.post("/console/results/add", **form)
    assert answer.status_code == 422
    assert f'id="{field}-wrong"' in answer.text
    assert console.operator.orders == []


def test_rules_are_added_as_searching_knows_them() -> None:
    """One of each kind."""
    console = signed_in()
    console.post("/console/results/add", kind="raise", domain="https://Good.example/x")
    console.post("/console/results/add", kind="synonym", query="K8s", value="Kubernetes")
    rules = [Rule("raise", "", "good.example"), Rule("synonym", "k8s", "kubernetes")]
    assert console.operator.orders == [AddRules((rule,)) for rule in rules]


def test_the_log_offers_to_undo_and_pages_back() -> None:
    """What was undone says so; earlier actions are a link away."""
    console = signed_in()
    for _ in range(60):
        console.post("/console/sites/pause", site=DOCS.start, paused="yes")
    first = console.client.get("/console/actions").text
    assert first.count('action="/console/undo"') == 50
    assert "before=" in first
    console.post("/console/undo", action="60", back="/console/actions")
    assert "undone" in console.client.get("/console/actions").text
    assert len(console.client.get("/console/actions?csv=1").text.splitlines()) == 62


def test_nothing_is_changed_by_a_link() -> None:
    """Every page of these that takes an order takes it by post only."""
    console = signed_in(Desk(DOCS))
    mount = next(route for route in console.app.routes if isinstance(route, Mount) and route.path == "/console")
    for route in mount.routes:
        if isinstance(route, Route) and "GET" in (route.methods or ()) and route.path != "/live":
            parameters = {"site": DOCS.start, "url": DOCS.start, "host": "docs.example.org", "paused": "yes"}
            console.client.get(f"/console{route.path}", params=parameters)
    assert console.operator.orders == []


class TroubledDesk(Desk):
    """Its one site has had a mishap."""

    mishap: FetchFailure | None = None

    def list_sites(self) -> list[SiteLine]:
        """With what went wrong last."""
        return [line._replace(mishap=self.mishap, trouble="too slow", state="trouble") for line in super().list_sites()]


@pytest.fixture(scope="module")
def shared() -> tuple[Console, TroubledDesk]:
    """A console for many examples, with its desk."""
    desk = TroubledDesk(DOCS)
    return signed_in(desk), desk


@settings(max_examples=25)  # each is four pages
@given(text=st.one_of(st.just(HOSTILE), st.text(min_size=1, max_size=60)))
def test_whatever_strangers_wrote_is_shown_as_text(shared: tuple[Console, TroubledDesk], text: str) -> None:
    """URLs, titles, reasons and hosts of strangers never become part of a page."""
    console, desk = shared
    url = f"https://docs.example.org/{text}{HOSTILE}"
    hidden = [{"kind": "hide", "query": text, "value": url, "added_s": 0.0}]
    page = {**facts("")["page"], "title": text + HOSTILE, "location": url}
    desk.changed = {"known_as": url, "page": page, "hidden": hidden}
    desk.hosts = [UnlistedHost("other.example", 7, 2, NOW_S - 60, url)]
    desk.kept_rules = [StoredRule(Rule("pin", text + HOSTILE, url), NOW_S)]
    desk.mishap = FetchFailure(url, text + HOSTILE, NOW_S)
    for path in ("/console/sites", "/console/explain?url=docs.example.org", "/console/discover", "/console/results"):
        answer = console.client.get(path)
        assert answer.status_code == 200
        assert "<script>alert" not in answer.text
        assert "<img" not in answer.text


@settings(max_examples=25)  # each is seven requests
@given(text=st.text(max_size=200))
def test_whatever_is_typed_is_answered(shared: tuple[Console, TroubledDesk], text: str) -> None:
    """No text in any field is an error of ours."""
    console, _ = shared
    fields = {**WHOLE, "site": "example.org", "delay": text, "include": text, "share": text, "readers": text}
    assert console.post("/console/sites/preview", **fields).status_code in {200, 422}
    assert console.post("/console/sites/preview", site=text).status_code in {200, 422}
    asked = {"url": text, "since": text, "looks": text}
    assert console.client.get("/console/explain", params=asked).status_code in {200, 422}
    assert console.post("/console/results/add", kind="conceal", url=text).status_code in {303, 422}
