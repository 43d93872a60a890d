"""The console's pages with actions, on the real application with in-memory objects."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.routing import Mount, Route
from tests.web.console.explain_facts import DOCS, Desk, facts
from tests.web.small_operator import Console, signed_in
from tests.web.small_search import NOW_S

from vedette.config.site_settings import OWNERSHIP_PHRASE
from vedette.errors import SiteError
from vedette.model import Site
from vedette.web.commands.commands import AddSite, PauseSite, RemoveSite, Rule, SetMachine, SetSite
from vedette.web.console.ports.sites import FetchFailure, SiteLine, StoredRule, UnlistedHost

WHOLE = {"scope": "host", "sort_parameters": "yes", "drop_parameters": "\n".join(Site("").drop_parameters)}
HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>"


def test_a_site_is_previewed_and_then_added() -> None:
    """A field leads to a preview, and the preview to the command, which includes the fetched robots.txt."""
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


def test_a_preview_applies_to_its_host_only() -> None:
    """If the host is changed after the preview, the new one was not previewed."""
    console = signed_in()
    form = {**WHOLE, "site": "other.example", "asked_s": str(NOW_S - 2), "asked_of": "example.org"}
    console.post("/console/sites/add", **form)
    assert console.operator.orders == [AddSite(Site("https://other.example/"))]


def test_errors_are_next_to_their_fields_and_input_is_kept() -> None:
    """Each wrong field has an error, the others keep their values; a possible secret is not shown again."""
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


def test_a_contact_is_set_where_it_is_missed() -> None:
    """The Sites page says that there is none, accepts one, and keeps invalid input."""
    console = signed_in()
    assert "No contact is set" in console.client.get("/console/sites").text
    wrong = console.post("/console/sites/contact", contact="nobody <b>")
    assert 'id="contact-wrong"' in wrong.text
    assert 'value="nobody &lt;b&gt;"' in wrong.text
    assert console.operator.orders == []
    assert console.post("/console/sites/contact", contact=" ops@example.org ").status_code == 303
    assert console.operator.orders == [SetMachine({"crawl.contact": "ops@example.org"})]


@pytest.mark.parametrize("text", ["", "not a site", "https://user:pass@example.org/", "javascript:alert(1)", "3"])
def test_an_invalid_site_is_requested_again(text: str) -> None:
    """The field is shown again with the error."""
    answer = signed_in().post("/console/sites/preview", site=text)
    assert answer.status_code == 422
    assert 'id="site-wrong"' in answer.text


def test_robots_are_ignored_only_where_the_site_is_confirmed_as_ones_own() -> None:
    """The confirmation is never prefilled, and only its exact words count."""
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
    """The form has the current settings; only changes become a command, and nothing if there are none."""
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


def test_other_settings_do_not_change_the_robots_setting() -> None:
    """Saving other settings does not change it; the checkbox does."""
    own = Site("https://own.example/", ignore_robots=True)
    console = signed_in(Desk(own))
    form = {**WHOLE, "start": own.start, "delay": "3s"}
    console.post("/console/sites/edit", **form)
    console.post("/console/sites/edit", **form, obey_robots="yes")
    changes = [dict(order.changes) for order in console.operator.orders if isinstance(order, SetSite)]
    assert changes == [{"delay_s": 3.0}, {"delay_s": 3.0, "ignore_robots": False}]


def test_removing_is_confirmed_by_the_name_of_the_host() -> None:
    """The page says what will be deleted; only the right name removes it, with its pages if requested."""
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


def test_a_refused_command_keeps_the_form() -> None:
    """Nothing is lost if a command is refused."""
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
    """This works with links; the CSV file has the filtered rows."""
    desk = Desk(*(Site(f"https://site{number}.example/") for number in range(120)))
    console = signed_in(desk)
    assert "50 of 120" in console.client.get("/console/sites").text
    assert "site77.example" in console.client.get("/console/sites?filter=site77").text
    lines = console.client.get("/console/sites?csv=1&filter=site7").text.splitlines()
    assert len(lines) == 1 + len([number for number in range(120) if str(number).startswith("7")])


def test_links_change_nothing() -> None:
    """All of these pages accept commands by POST only."""
    console = signed_in(Desk(DOCS))
    mount = next(route for route in console.app.routes if isinstance(route, Mount) and route.path == "/console")
    for route in mount.routes:
        if isinstance(route, Route) and "GET" in (route.methods or ()) and route.path != "/live":
            parameters = {"site": DOCS.start, "url": DOCS.start, "host": "docs.example.org", "paused": "yes"}
            console.client.get(f"/console{route.path}", params=parameters)
    assert console.operator.orders == []


class TroubledDesk(Desk):
    """A service whose only site has had an error."""

    mishap: FetchFailure | None = None

    def list_sites(self) -> list[SiteLine]:
        """Return the site with its last error."""
        return [line._replace(mishap=self.mishap, trouble="too slow", state="trouble") for line in super().list_sites()]


@pytest.fixture(scope="module")
def shared() -> tuple[Console, TroubledDesk]:
    """A console for many examples, with its service."""
    desk = TroubledDesk(DOCS)
    return signed_in(desk), desk


@settings(max_examples=25)  # each is four pages
@given(text=st.one_of(st.just(HOSTILE), st.text(min_size=1, max_size=60)))
def test_text_from_the_web_is_escaped(shared: tuple[Console, TroubledDesk], text: str) -> None:
    """URLs, titles, reasons and hosts are escaped."""
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
def test_no_input_is_a_server_error(shared: tuple[Console, TroubledDesk], text: str) -> None:
    """No text in any field is a server error."""
    console, _ = shared
    fields = {**WHOLE, "site": "example.org", "delay": text, "include": text, "share": text, "readers": text}
    assert console.post("/console/sites/preview", **fields).status_code in {200, 422}
    assert console.post("/console/sites/preview", site=text).status_code in {200, 422}
    asked = {"url": text, "since": text, "looks": text}
    assert console.client.get("/console/explain", params=asked).status_code in {200, 422}
    assert console.post("/console/results/add", kind="conceal", url=text).status_code in {303, 422}
