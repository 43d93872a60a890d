"""The robots.txt of a site before it is added: a real server gets one polite request."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from tests.wire_server import Question, Said, WireServer, whole

from vedette.adapters.clock import Clock, real_clock, start_clock
from vedette.config import Config
from vedette.fetch.connect_to import ConnectOverride, Endpoint
from vedette.model import Site
from vedette.runtime.monitoring.site_preview import RobotsPreviewer
from vedette.runtime.processes.settings import RuntimeSettings
from vedette.web.console.ports.sites import RobotsPreview

START = Site("http://docs.test/a/b")
ROBOTS = b"User-agent: *\nDisallow: /a/\nAllow: /a/b$\nCrawl-delay: 3\nSitemap: http://docs.test/map.xml\n"
AGENT = "vedette/test (+mailto:us@example.org)"


def settings(port: int, clock: Clock | None = None) -> RuntimeSettings:
    """A crawl whose .test hosts are at an allowed loopback port."""
    config = Config()
    crawl = replace(config.crawl, delay_s=0.02)
    detours = (ConnectOverride("*.test", None, Endpoint("127.0.0.1", port)),)
    time = clock or real_clock()
    return RuntimeSettings(replace(config, crawl=crawl), time, Path(), AGENT, detours=detours, allow_private=True)


def preview_site(script: Mapping[str, Said] | Said, site: Site = START) -> tuple[RobotsPreview, list[Question]]:
    """Return the preview of a site whose host responds this way, and the requests."""
    answers = script if isinstance(script, Mapping) else {"/robots.txt": script}
    with WireServer(lambda question: answers[question.target]) as server:
        _, robots = RobotsPreviewer(settings(server.port)).preview(site)
        return robots, server.questions


def test_the_file_is_asked_for_once_and_says_what_it_means_for_the_start() -> None:
    """It shows the matching line, the delay and the sitemaps, with a single request under our own name."""
    robots, questions = preview_site(whole(ROBOTS))
    assert (robots.says, robots.line) == ("allowed", "Allow: /a/b$")
    assert robots.crawl_delay_s == 3.0
    assert robots.sitemaps == ("http://docs.test/map.xml",)
    assert robots.asked_s is not None
    assert [(question.target, question.header("user-agent")) for question in questions] == [("/robots.txt", AGENT)]


def test_a_disallowed_start_url_is_shown_with_its_line() -> None:
    """The line is that of the longest match, as in the crawl."""
    robots, _ = preview_site(whole(ROBOTS), Site("http://docs.test/a/c"))
    assert (robots.says, robots.line) == ("disallowed", "Disallow: /a/")


@pytest.mark.parametrize(
    ("answer", "says", "words"),
    [
        (whole(b"", status="404 Not Found"), "allowed", "There is no robots.txt (status 404)"),
        (whole(b"", status="503 Busy"), "waits", "status 503"),
        (Said(b"", "reset"), "waits", "robots.txt failed once"),
    ],
)
def test_a_failing_robots_txt_is_shown_with_its_consequences(answer: Said, says: str, words: str) -> None:
    """4xx allows everything; 5xx and timeouts make the host wait."""
    robots, _ = preview_site(answer)
    assert robots.says == says
    assert words in robots.words


def test_redirects_are_followed_within_the_host_only() -> None:
    """One hop on the same host finds the file; another host is named, but not requested."""
    near = whole(b"", "Location: /other.txt", status="301 Moved")
    robots, questions = preview_site({"/robots.txt": near, "/other.txt": whole(ROBOTS)})
    assert robots.line == "Allow: /a/b$"
    assert len(questions) == 2
    far = whole(b"", "Location: http://elsewhere.test/robots.txt", status="301 Moved")
    robots, questions = preview_site(far)
    assert (robots.says, len(questions)) == ("unasked", 1)
    assert "http://elsewhere.test/robots.txt" in robots.words


def test_a_ring_of_redirects_ends() -> None:
    """After a few hops it is left to the crawler."""
    robots, questions = preview_site(whole(b"", "Location: /robots.txt", status="302 Found"))
    assert robots.says == "unasked"
    assert 1 < len(questions) < 6


def test_a_preview_requests_a_host_once() -> None:
    """The result is cached, even for another start URL on the host."""
    with WireServer(lambda _: whole(ROBOTS)) as server:
        scout = RobotsPreviewer(settings(server.port))
        first, second = scout.preview(START)[1], scout.preview(Site("http://docs.test/a/c"))[1]
        assert (first.says, second.says) == ("allowed", "disallowed")
        assert second.asked_s == first.asked_s
        assert len(server.questions) == 1


def test_private_addresses_are_not_asked_unless_they_are_allowed() -> None:
    """Neither an override nor an IP literal helps; the site itself may allow it."""
    with WireServer(lambda _: whole(ROBOTS)) as server:
        scout = RobotsPreviewer(replace(settings(server.port), allow_private=False))
        for site in (
            START,
            Site(f"http://127.0.0.1:{server.port}/"),
            Site(f"http://[::ffff:127.0.0.1]:{server.port}/"),
        ):
            lookup, robots = scout.preview(site)
            assert lookup.addresses
            assert (robots.says, robots.asked_s) == ("unasked", None)
            assert "private" in robots.words
        assert server.questions == []
        assert scout.preview(replace(START, allow_private=True))[1].says == "allowed"


def test_public_hosts_are_not_asked_without_a_contact() -> None:
    """Without a contact address, nothing is sent, so this test needs no network."""
    _, robots = RobotsPreviewer(settings(1)).preview(Site("http://93.184.216.34/"))
    assert (robots.says, robots.asked_s) == ("unasked", None)
    assert "contact" in robots.words


def test_a_name_that_does_not_exist_is_told() -> None:
    """The preview reports what the resolver says."""
    _, robots = RobotsPreviewer(settings(1)).preview(Site("https://nowhere.invalid/"))
    assert robots.asked_s is None
    assert "does not resolve" in robots.words


def test_the_time_of_the_last_request_is_world_time() -> None:
    """So the coordinator can respect the host's delay."""
    clock = start_clock(5_000.0, 1000.0)
    with WireServer(lambda _: whole(ROBOTS)) as server:
        before_s = clock.now()
        robots = RobotsPreviewer(settings(server.port, clock)).preview(START)[1]
        assert robots.asked_s is not None
        assert before_s < robots.asked_s <= clock.now()
