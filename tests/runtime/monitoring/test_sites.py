"""The console's data on sites and URLs, with a real data folder without a running process."""

from pathlib import Path

from tests.data_folders import HOST, NOW_S, SITE, URLS, opened, write_sample
from tests.wire_server import WireServer, whole

from vedette.adapters.clock import start_clock
from vedette.adapters.crawl_store.search_store import RuleRow
from vedette.adapters.crawl_store.store import SiteRow
from vedette.config import Config
from vedette.fetch.connect_to import ConnectOverride, Endpoint
from vedette.model import Site
from vedette.runtime.monitoring.sites import FolderSiteService
from vedette.runtime.processes.settings import RuntimeSettings

START = Site("http://docs.test/a/b")
ROBOTS = b"User-agent: *\nDisallow: /a/\n"


def sample_desk(folder: Path, port: int) -> FolderSiteService:
    """The service for the sample of the current format, with one paused site and one active."""
    write_sample(folder)
    with opened(folder) as state:
        state.store.save_site(SiteRow(Site("http://docs.test/"), paused=False, added_s=NOW_S))
        state.store.add_search_rule(RuleRow("block", "", "spam.test", NOW_S))
    detours = (ConnectOverride("*", None, Endpoint("127.0.0.1", port)),)
    clock = start_clock(NOW_S, 1.0)
    return FolderSiteService(RuntimeSettings(Config(), clock, folder, "vedette", detours=detours, allow_private=True))


def test_a_preview_does_not_request_known_hosts(tmp_path: Path) -> None:
    """A stored copy is shown from the state; a known host without one is not contacted either."""
    with WireServer(lambda _: whole(ROBOTS)) as server:
        desk = sample_desk(tmp_path, server.port)
        known = desk.preview_site(Site(f"https://{HOST}/private/x")).robots
        assert (known.says, known.line, known.asked_s) == ("disallowed", "Disallow: /private/", None)
        assert desk.preview_site(START).robots.says == "unasked"
        assert desk.preview_site(Site("http://new.test/"), asked_s=NOW_S).robots.says == "unasked"
        assert server.questions == []


def test_warnings_name_what_overlaps_what_is_disallowed_and_what_is_blocked(tmp_path: Path) -> None:
    """This includes overlapping sites, a disallowed start URL, and a blocked domain."""
    with WireServer(lambda _: whole(ROBOTS)) as server:
        desk = sample_desk(tmp_path, server.port)
        around = desk.preview_site(Site(f"https://{HOST}/private/", scope="domain")).warnings
        assert any("robots.txt disallows" in words for words in around)
        assert any(SITE.start in words for words in around)
        assert any("already covers this URL" in words for words in desk.preview_site(START).warnings)
        assert any("blocked" in words for words in desk.preview_site(Site("http://www.spam.test/")).warnings)


def test_the_list_of_sites_counts_what_each_has_and_names_its_last_error(tmp_path: Path) -> None:
    """It shows pages, known URLs, the last fetch, and the last failure that was not a refusal."""
    desk = sample_desk(tmp_path, 1)
    sample, other = desk.list_sites()
    assert (sample.state, sample.pages, sample.known) == ("paused", 2, len(URLS))
    assert sample.mishap is not None
    assert (sample.mishap.url, sample.mishap.why) == (URLS[3], "too slow")
    assert sample.fetched_s == NOW_S
    assert (other.pages, other.mishap, other.fetched_s) == (0, None, None)


def test_a_site_below_a_path_is_counted_by_its_path(tmp_path: Path) -> None:
    """This is true however many such sites share a host."""
    desk = sample_desk(tmp_path, 1)
    with opened(tmp_path) as state:
        state.store.save_site(SiteRow(Site(f"https://{HOST}/private/", scope="prefix"), paused=False, added_s=NOW_S))
    assert desk.list_sites()[-1].known == 1


def test_what_leaves_with_a_site_is_what_no_other_site_takes(tmp_path: Path) -> None:
    """The preview is the same as what removing the site with its pages deletes."""
    desk = sample_desk(tmp_path, 1)
    excluded = 1
    assert desk.preview_removal(SITE.start) == (len(URLS) - excluded, 2)
    with opened(tmp_path) as state:
        state.store.save_site(SiteRow(Site(URLS[1], scope="domain"), paused=False, added_s=NOW_S))
    assert desk.preview_removal(SITE.start) == (0, 0)
    assert desk.preview_removal("https://unknown.test/") == (0, 0)


def test_explaining_names_the_rules_that_hide_a_url(tmp_path: Path) -> None:
    """Covers a concealed prefix, a block and a hide for one query; unrelated rules are not shown."""
    desk = sample_desk(tmp_path, 1)
    rules = (("conceal", "", f"https://{HOST}/a*"), ("block", "", "example.org"), ("hide", "q", URLS[1]))
    with opened(tmp_path) as state:
        for kind, query, value in rules:
            state.store.add_search_rule(RuleRow(kind, query, value, NOW_S))
    assert [rule["kind"] for rule in desk.explain_url(URLS[1])["hidden"]] == ["block", "conceal", "hide"]
    assert [rule["kind"] for rule in desk.explain_url(URLS[4])["hidden"]] == ["block"]
