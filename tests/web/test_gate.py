"""Console and commands are served only under our own host names, whatever resolves here."""

from collections.abc import Iterator

import pytest
from tests.web.small_operator import SmallDesk, SmallOperator, SmallWatch
from tests.web.small_search import Ask, bearer, made_key, served

from vedette.config import Rate, Serve
from vedette.web.console.routes import ConsoleServices

SECRET, KEY = made_key("ops", "admin")
GUARDED = ("/console", "/console/", "/console/signin", "/console/sites", "/api/v1/actions")
OURS = ("127.0.0.1", "127.0.0.1:8080", "[::1]:8080", "192.0.2.7", "localhost", "LOCALHOST:99", "vedette.localhost")
FOREIGN = ("evil.example", "evil.example:8080", "127.0.0.1.evil.example", "localhost.evil.example", "", "x" * 5000)


def parts() -> ConsoleServices:
    """A console with small data."""
    return ConsoleServices(SmallOperator(), SmallWatch(), SmallDesk())


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    """A real server on loopback, without a configured name."""
    with served(Serve(rate=Rate(0, 1.0)), lambda: [KEY], console=parts()) as (ask, _):
        yield ask


@pytest.fixture(scope="module")
def named() -> Iterator[Ask]:
    """A server with two names."""
    serve = Serve(rate=Rate(0, 1.0), address="https://search.example.org", hosts=("Find.example.org",))
    with served(serve, lambda: [KEY], console=parts()) as (ask, _):
        yield ask


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize("path", GUARDED)
def test_the_console_refuses_foreign_host_names(ask: Ask, path: str, host: str) -> None:
    """Not even the sign-in page; the error says what to do if the name is yours."""
    received = ask(path, {"Host": host, **bearer(SECRET)})
    assert received.status == 421
    assert b"serve.hosts" in received.body


@pytest.mark.parametrize("host", OURS)
def test_an_address_and_this_machine_are_no_foreign_names(ask: Ask, host: str) -> None:
    """An IP address can't be made to resolve elsewhere."""
    assert ask("/console/signin", {"Host": host}).status == 200
    assert ask("/api/v1/actions", {"Host": host, **bearer(SECRET)}).status == 200


def test_an_order_under_a_foreign_name_is_not_carried_out(ask: Ask) -> None:
    """Programs get a JSON error."""
    headers = {"Host": "evil.example", "Content-Type": "application/json", **bearer(SECRET)}
    received = ask("/api/v1/orders", headers, "POST", b'{"order": "pause_site", "site": "https://docs.example.org/"}')
    assert received.complaint == (421, "foreign_host", None)


@pytest.mark.parametrize("path", ["/", "/search?q=lag", "/api/v1/search?q=lag", "/healthz", "/privacy"])
def test_search_works_with_any_host_name(ask: Ask, path: str) -> None:
    """Access to search is decided elsewhere."""
    assert ask(path, {"Host": "any.example"}).status == 200


@pytest.mark.parametrize("host", ["search.example.org", "SEARCH.example.org.:443", "find.example.org", "127.0.0.1"])
def test_configured_host_names_are_accepted(named: Ask, host: str) -> None:
    """These are the host of the address and those in the configured list."""
    assert named("/console/signin", {"Host": host}).status == 200


@pytest.mark.parametrize("host", ["example.org", "www.search.example.org", "search.example.org.evil.example"])
def test_names_beside_those_are_not(named: Ask, host: str) -> None:
    """Neither parent nor child domains."""
    assert named("/console/signin", {"Host": host}).status == 421
