"""The console only assigns credentials that the operator allowed in the settings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.web.small_operator import Console, SmallDesk

from vedette.config import Rate, Serve
from vedette.model import Site
from vedette.web.commands.commands import AddSite, SetSite
from vedette.web.console.crawl.site_forms import is_allowed

ALLOWED = ("env:WIKI_LOGIN", "env:SITE_*", "file:/etc/vedette/one", "file:/srv/secrets/*")
START = "https://wiki.example.org/"
GOOD = ("env:WIKI_LOGIN", "env:SITE_A", "file:/etc/vedette/one", "file:/srv/secrets/a", "file:/srv/secrets/b/c")
BAD = (
    "env:HOME",
    "env:WIKI_LOGIN2",
    "env:SITE_",
    "file:/etc/passwd",
    "file:/etc/vedette/one2",
    "file:/srv/secrets/",
    "file:/srv/secrets/../../etc/shadow",
    "file:/srv/secrets/./a",
    "file:/srv/secrets//a",
    "file:srv/secrets/a",
    "file:/srv/secrets",
)


def console(*sites: Site, allowed: tuple[str, ...] = ALLOWED) -> Console:
    """A console with a signed-in operator."""
    made = Console(Serve(rate=Rate(0, 1.0), console_secrets=allowed), SmallDesk(*sites))
    assert made.sign_in().status_code == 303
    return made


def fields(place: str, **more: str) -> dict[str, str]:
    """Return the fields of a whole form."""
    return {"scope": "host", "change": "main", "sort_parameters": "yes", "secrets": place, **more}


@pytest.mark.parametrize("place", GOOD)
def test_allowed_secrets_are_accepted(place: str) -> None:
    """This is true for a new site and for an existing one."""
    new, there = console(), console(Site(START))
    new.post("/console/sites/add", **fields(place, site=START))
    there.post("/console/sites/edit", **fields(place, start=START))
    (added,), (changed,) = new.operator.orders, there.operator.orders
    assert isinstance(added, AddSite)
    assert added.site.secrets == place
    assert isinstance(changed, SetSite)
    assert changed.changes["secrets"] == place


@pytest.mark.parametrize("place", BAD)
def test_disallowed_secrets_are_refused_next_to_their_field(place: str) -> None:
    """No command is sent, the input stays, and the error says how to allow it."""
    new, there = console(), console(Site(START))
    for answer in (
        new.post("/console/sites/preview", **fields(place, site=START)),
        new.post("/console/sites/add", **fields(place, site=START)),
        there.post("/console/sites/edit", **fields(place, start=START)),
    ):
        assert answer.status_code == 422
        assert 'id="secrets-wrong"' in answer.text
        assert "serve.console_secrets" in answer.text
        assert f'value="{place}"' in answer.text
    assert new.operator.orders == there.operator.orders == []


def test_a_secret_typed_in_the_place_of_its_place_is_not_shown_again() -> None:
    """Otherwise, it would be in the page."""
    answer = console().post("/console/sites/add", **fields("Bearer hunter22", site=START))
    assert answer.status_code == 422
    assert "hunter22" not in answer.text


def test_secrets_set_by_command_are_kept_and_can_be_removed() -> None:
    """Other settings of such a site can still be changed."""
    own = console(Site(START, secrets="file:/etc/wiki/secret"))
    own.post("/console/sites/edit", **fields("file:/etc/wiki/secret", start=START, delay="7s"))
    own.post("/console/sites/edit", **fields("", start=START))
    first, second = own.operator.orders
    assert isinstance(first, SetSite)
    assert first.changes["delay_s"] == 7.0
    assert "secrets" not in first.changes
    assert isinstance(second, SetSite)
    assert second.changes["secrets"] == ""


@pytest.mark.parametrize(("allowed", "words"), [(ALLOWED, "env:SITE_\N{HORIZONTAL ELLIPSIS}"), ((), "allows none")])
def test_the_field_shows_which_secrets_are_allowed(allowed: tuple[str, ...], words: str) -> None:
    """Users see this before they try."""
    page = console(Site(START), allowed=allowed).client.get(f"/console/sites/edit?site={START}")
    assert words in page.text


@given(st.lists(st.sampled_from(["..", ".", "", "etc", "srv", "secrets", "a"]), max_size=6))
def test_no_path_leads_out_of_an_allowed_folder(steps: list[str]) -> None:
    """Every allowed path is below the folder, without any step up."""
    path = "/".join(["/srv/secrets", *steps])
    if is_allowed(f"file:{path}", ALLOWED):
        assert not {"..", ".", ""} & set(steps)
        assert steps
