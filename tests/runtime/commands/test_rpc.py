"""A coordinator's responses to clients: sites change immediately, requests come first, nothing can break it."""

import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from vedette.adapters.clock import real_clock
from vedette.adapters.crawl_store.data_folder import State, lock_folder, open_for_write, open_state
from vedette.adapters.crawl_store.reader import open_state_reader
from vedette.adapters.net.ipc import Request
from vedette.config import Config, override
from vedette.engine.coordinator.coordinator import Coordinator
from vedette.engine.coordinator.duplicates import DuplicateDetector
from vedette.engine.messages import FetchReport, FetchSuccess, FetchTask, HostUpdate
from vedette.engine.ports import FetchGain, HostRow, UrlState
from vedette.engine.scheduling.polling import PollResult
from vedette.errors import SiteError
from vedette.model import Refusal, Site
from vedette.runtime.commands.executor import execute_command
from vedette.runtime.commands.setting_commands import apply_overrides
from vedette.runtime.explain.url import collect_explanation
from vedette.runtime.processes.coordinator import build_handler
from vedette.runtime.processes.settings import RuntimeSettings, build_rules, build_schedule
from vedette.web.commands.alert_text import parse_alert
from vedette.web.commands.commands import (
    AddAlert,
    AddRules,
    AddSite,
    Command,
    ImportSites,
    PauseSite,
    RemoveSite,
    RetryFailed,
    Rule,
    SetMachine,
    SetSite,
    Undo,
    command_to_json,
)

HOME = "http://127.0.0.1/"
HOST = "127.0.0.1"


class Bench:
    """A coordinator on a real folder, with this test as its only fetcher."""

    def __init__(self, folder: Path, config: Config = Config()) -> None:  # noqa: B008 - it is frozen
        config = override(config, {"crawl.guess_sitemaps": "false"})
        self.settings = RuntimeSettings(config, real_clock(), folder, "vedette", allow_private=True, forever=True)
        self._lock = lock_folder(folder)
        self.state = open_state(folder, "here", 0.0)
        rules = build_rules(self.settings, self.state.store.list_sites())
        copies = DuplicateDetector(self.state.bands, self.state.store, self.state.urls)
        self.keeper = Coordinator(
            rules, self.state.urls, self.state.store, build_schedule(self.settings), copies, workers=1
        )
        self.desk = build_handler(self.settings, self.state, self.keeper)
        self.now_s = time.time()
        self._serial = 0

    def close(self) -> None:
        """Exit cleanly."""
        self.state.close(clean=True)
        self._lock.close()

    def order(self, order: Command) -> dict[str, object]:
        """Run an operator command."""
        return self.desk.handle(Request("order", {"order": command_to_json(order), "who": "a test"}), self.now_s)

    def fetch(self, *urls: str) -> dict[str, object]:
        """Request these pages now."""
        return self.desk.handle(Request("fetch", {"urls": list(urls)}), self.now_s)

    def asked(self, rounds: int = 6) -> list[FetchTask]:
        """Return the fetcher's tasks minute by minute, answering lookups and robots.txt requests."""
        errands: list[FetchTask] = []
        for _ in range(rounds):
            self.now_s += 60.0
            orders, lookups = self.keeper.assign_work(self.now_s, self.now_s + 300.0, {0: 100})
            for name in lookups:
                self.keeper.host_table.on_dns(name, (name,), None, self.now_s)
            given = sorted((each for order in orders for each in order.batch.tasks), key=lambda each: -each.worth)
            for errand in [each for each in given if each.robots_of is not None]:
                self.answer(errand, status=404)
            errands += [each for each in given if each.robots_of is None]
        return errands

    def answer(self, errand: FetchTask, status: int = 200, links: tuple[str, ...] = ()) -> None:
        """Report a response to the coordinator."""
        self._serial += 1
        result = FetchSuccess(
            errand, status, self.now_s, self.now_s, (), kind="page", title="T", links=links, digest="d"
        )
        news = HostUpdate(errand.host, self.now_s + 1.0, 0, "")
        self.keeper.apply_report(0, FetchReport(self._serial, (result,), (), (news,)))

    def give_back(self, errands: list[FetchTask]) -> None:
        """Return tasks that were not sent."""
        self._serial += 1
        self.keeper.apply_report(0, FetchReport(self._serial, (), tuple(errands)))

    def crawled(self, *links: str) -> None:
        """Fetch the home page, with these links."""
        self.order(AddSite(Site(HOME)))
        (home,) = self.asked()
        self.answer(home, links=links)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A new folder."""
    made = Bench(tmp_path / "data")
    yield made
    made.close()


def paths(errands: list[FetchTask]) -> list[str]:
    """Return the requested paths below the home page."""
    return [errand.url.removeprefix(HOME) for errand in errands]


def pages(*names: str) -> tuple[str, ...]:
    """Return URLs below the home page."""
    return tuple(HOME + name for name in names)


def test_an_added_site_is_fetched_at_once(bench: Bench) -> None:
    """The start URL of a new site is assigned to a fetcher without a restart."""
    assert bench.asked() == []
    bench.order(AddSite(Site(HOME)))
    assert [errand.url for errand in bench.asked()] == [HOME]
    assert bench.desk.sites_changed


@pytest.mark.parametrize(("delay", "refused"), [("0.1s", ""), ("60s", "is 2min")])
def test_promises_are_checked_against_the_configured_delay(tmp_path: Path, delay: str, refused: str) -> None:
    """The default delay might refuse what is possible; this includes undoing a change."""
    bench = Bench(tmp_path / "data", override(Config(), {"crawl.delay": delay}))
    reply = bench.order(AddSite(Site(HOME, promise=("1 /page",))))
    assert refused in str(reply.get("error", ""))
    assert bool(refused) == ("error" in reply)
    if not refused:
        removed = bench.order(RemoveSite(HOME, with_pages=False))
        assert "error" not in bench.order(Undo(int(str(removed["action"]))))
    bench.close()


def test_a_site_is_added_once(bench: Bench) -> None:
    """A second addition is an error, and the settings of the first one stay."""
    bench.order(AddSite(Site(HOME, delay_s=7.0)))
    reply = bench.order(AddSite(Site(HOME)))
    assert "sites set" in str(reply["error"])
    assert [row.site.delay_s for row in bench.state.store.list_sites()] == [7.0]


def test_a_paused_site_gets_no_requests_and_resumes_at_once(bench: Bench) -> None:
    """Tasks at the fetcher are recalled, nothing more is assigned, and it continues after the resume."""
    bench.crawled(*pages("a", "b"))
    out = bench.asked(1)
    assert sorted(paths(out)) == ["a", "b"]
    bench.order(PauseSite(HOME, paused=True))
    assert bench.desk.recalled_hosts == (HOST,)
    bench.give_back(out)
    assert bench.asked() == []
    bench.order(PauseSite(HOME, paused=False))
    assert sorted(paths(bench.asked(2))) == ["a", "b"]


def test_a_requested_url_is_sent_first_on_its_host(bench: Bench) -> None:
    """The requested URL is sent first among many known ones, even if it was fetched before or is unknown."""
    bench.crawled(*pages(*(f"p{number}" for number in range(40))))
    fetched = bench.asked(1)
    for errand in fetched:
        bench.answer(errand)
    (again,) = paths(fetched[:1])
    bench.fetch(*pages(again, "unheard"))
    assert paths(bench.asked(1))[:2] == [again, "unheard"]


def test_a_requested_fetch_survives_its_fetcher(bench: Bench) -> None:
    """If the fetcher dies with the requested URL, the next one gets it first again."""
    bench.crawled()
    bench.keeper.add_urls(pages(*(f"p{number}" for number in range(300))), 0, bench.now_s, front=0)
    bench.fetch(HOME + "p299")
    assert paths(bench.asked(1))[0] == "p299"
    bench.keeper.on_fetcher_lost(0, bench.now_s)
    assert paths(bench.asked(2))[0] == "p299"


def test_a_wish_ends_with_its_answer(bench: Bench) -> None:
    """A waiting client first sees that the URL is queued, then the result."""
    bench.crawled()
    bench.fetch(HOME + "a")
    ids = [int(bench.state.urls.find_ids([HOME + "a"])[0])]
    before = bench.desk.handle(Request("fetched", {"ids": ids}), bench.now_s)["urls"]
    (errand,) = bench.asked(1)
    bench.answer(errand)
    after = bench.desk.handle(Request("fetched", {"ids": ids}), bench.now_s)["urls"]
    assert isinstance(before, list)
    assert isinstance(after, list)
    assert (before[0]["wished"], before[0]["standing"]) == (True, "waiting")
    assert (after[0]["wished"], after[0]["standing"], after[0]["status"]) == (False, "fetched", 200)


def test_only_what_is_wished_for_is_fetched_where_that_is_the_rule(bench: Bench) -> None:
    """A tree started for one page leaves all others waiting, and fails none of them."""
    bench.crawled(*pages("a", "b", "c"))
    bench.keeper.apply_rules(replace(bench.keeper.rules, only_requested=True), (), bench.now_s)
    bench.fetch(HOME + "b")
    assert paths(bench.asked()) == ["b"]
    assert bench.state.urls.get_counts().waiting == len(pages("a", "c"))


def test_wishes_outside_of_every_site_are_refused_whole(bench: Bench) -> None:
    """If one URL does not belong to a site, the error says how to add one, and nothing is fetched."""
    bench.crawled()
    reply = bench.fetch(HOME + "a", "http://127.0.0.9/x")
    assert "vedette sites add http://127.0.0.9/" in str(reply["error"])
    assert bench.asked() == []


@pytest.mark.parametrize(("target", "revived"), [("", 2), (HOME, 2), (HOME + "a", 1)])
def test_what_failed_is_tried_again_at_once_where_the_operator_says_so(bench: Bench, target: str, revived: int) -> None:
    """This works for all URLs, a site or one URL; the reply says how many, and URLs that did not fail are refused."""
    bench.crawled(*pages("a", "b"))
    for _ in range(bench.keeper.rules.max_attempts):
        for errand in bench.asked(1):
            bench.answer(errand, status=500)
    assert bench.asked() == []
    assert f"{revived} failed URL" in str(bench.order(RetryFailed(target))["done"])
    assert len(bench.asked(1)) == revived
    assert "has not failed" in str(bench.order(RetryFailed(HOME + "a"))["error"])


def test_robots_txt_is_read_again_on_request(bench: Bench) -> None:
    """A waiting client gets the new content."""
    bench.crawled()
    url = HOME + "robots.txt"
    bench.fetch(url)
    before = bench.desk.handle(Request("fetched", {"ids": [url]}), bench.now_s)["urls"]
    bench.asked(1)
    after = bench.desk.handle(Request("fetched", {"ids": [url]}), bench.now_s)["urls"]
    assert isinstance(before, list)
    assert isinstance(after, list)
    assert (before[0]["wished"], before[0]["standing"]) == (True, "waiting")
    assert (after[0]["wished"], after[0]["standing"], after[0]["status"]) == (False, "fetched", 404)
    assert "sites list" in str(bench.fetch("http://127.0.0.9/robots.txt")["error"])


def test_a_wish_for_a_paused_site_says_so(bench: Bench) -> None:
    """Nothing of a paused site is fetched, even on request; the error says how to resume it."""
    bench.crawled()
    bench.order(PauseSite(HOME, paused=True))
    assert f"vedette sites resume {HOME}" in str(bench.fetch(HOME + "a")["error"])


def test_urls_of_a_removed_site_wait_again_when_it_comes_back(bench: Bench) -> None:
    """They are refused while no site covers them, but not lost."""
    bench.crawled(*pages("a", "b"))
    bench.order(RemoveSite(HOME))
    assert bench.asked() == []
    assert bench.state.urls.get_counts().refused == len(pages("a", "b"))
    bench.order(AddSite(Site(HOME)))
    assert sorted(paths(bench.asked(2))) == ["a", "b"]


def test_removal_keeps_pages_unless_they_are_to_go(bench: Bench) -> None:
    """Pages survive a plain removal; otherwise only those are deleted that no other site covers."""
    bench.crawled(*pages("docs/a", "b"))
    for errand in bench.asked(2):
        bench.answer(errand)
    bench.order(AddSite(Site(HOME + "docs/", scope="prefix")))
    bench.order(RemoveSite(HOME))
    assert len(list(bench.state.store.iter_pages())) == 3
    bench.order(AddSite(Site(HOME)))
    bench.order(RemoveSite(HOME, with_pages=True))
    assert [url for url, _ in bench.state.store.iter_pages()] == [HOME + "docs/a"]


def test_a_change_of_scope_holds_at_once(bench: Bench) -> None:
    """URLs covered by a new exclude pattern are recalled from the fetcher and no longer requested."""
    bench.crawled(*pages("a.zip", "b"))
    out = bench.asked(1)
    bench.order(SetSite(HOME, {"exclude": ("*.zip$",)}, "exclude=*.zip$"))
    assert bench.desk.recalled_hosts == (HOST,)
    bench.give_back(out)
    assert paths(bench.asked()) == ["b"]


def refuse(bench: Bench, errand: FetchTask, why: str) -> int:
    """Remove a URL from the queue with a judgment, and return its id."""
    bench.give_back([errand])
    (host,) = bench.state.urls.intern_hosts([HOST])
    leased = bench.state.urls.lease([host] * 10, 0, bench.now_s + 300.0)
    bench.state.urls.acknowledge([errand.id], UrlState.REFUSED, 0)
    bench.state.urls.release_leases([one.id for one in leased if one.id != errand.id], 0)
    bench.state.store.add_note(errand.id, why, bench.now_s)
    return errand.id


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("trap", f"{Refusal.TRAP}: 30 fetches brought nothing"),
        ("copy", f"{Refusal.COPY}: sid= is dropped"),
    ],
)
def test_what_an_operator_overrules_waits_again_at_once(bench: Bench, name: str, why: str) -> None:
    """Only the overruled judgment counts; the URL is noted and no longer held back."""
    bench.crawled(*pages("a"))
    (errand,) = bench.asked(1)
    id_ = refuse(bench, errand, why)
    bench.state.store.hold_urls([(id_, bench.state.urls.intern_hosts([HOST])[0], f"{HOST} /*")])
    bench.order(SetSite(HOME, {"overrule": ("spam",)}, "overrule=spam"))
    assert bench.asked() == []
    reply = bench.order(SetSite(HOME, {"overrule": ("spam", name)}, f"overrule=spam,{name}"))
    assert "1 URL queued again" in str(reply["done"])
    assert bench.state.store.get_note(id_) is None
    assert bench.state.store.count_held() == []
    assert paths(bench.asked()) == ["a"]


def test_overruling_for_one_site_wakes_nothing_of_another(bench: Bench) -> None:
    """A held-back URL counts for the first site that covers it."""
    bench.crawled(*pages("a"))
    (errand,) = bench.asked(1)
    refuse(bench, errand, f"{Refusal.TRAP}: for a reason")
    bench.order(AddSite(Site(HOME + "docs/", scope="prefix", overrule=("trap",))))
    assert "a" not in paths(bench.asked())


@pytest.mark.parametrize("call", [Request("frob"), Request("explain", {"url": "http://nowhere.test/"})])
def test_no_question_ends_the_keeper(bench: Bench, call: Request) -> None:
    """A command of another version and an unknown host get ordinary replies."""
    assert bench.desk.handle(call, bench.now_s)


@pytest.mark.parametrize(
    "request_",
    [Request("explain"), Request("fetch", {"urls": [], "speed": 9}), Request("order", {"order": [1], "who": "x"})],
)
def test_a_request_that_does_not_fit_is_refused(bench: Bench, request_: Request) -> None:
    """Missing, unknown or wrong arguments get an error, and the coordinator continues."""
    assert "error" in bench.desk.handle(request_, bench.now_s)


@pytest.mark.parametrize(
    "order", [PauseSite("http://x/", paused=True), RemoveSite("http://x/"), SetSite("http://x/", {}, "")]
)
def test_orders_for_unknown_sites_change_nothing(bench: Bench, order: Command) -> None:
    """The error says how to list the sites."""
    bench.order(AddSite(Site(HOME)))
    before = bench.state.store.list_sites()
    assert "sites list" in str(bench.order(order)["error"])
    assert bench.state.store.list_sites() == before


def actions(state: State) -> list[str]:
    """Return the folder's action log."""
    return [what for (what,) in state.db.execute("SELECT what FROM action ORDER BY id")]


def test_every_action_is_logged_and_a_confirmation_word_for_word(bench: Bench) -> None:
    """Ignoring a robots.txt requires confirming ownership of the site, and the folder records that."""
    bench.order(AddSite(Site(HOME, ignore_robots=True)))
    bench.order(PauseSite(HOME, paused=True))
    bench.order(ImportSites(((Site(HOME), False),)))
    logged = actions(bench.state)
    assert all(word in line for line, word in zip(logged, ("added", "paused", "imported"), strict=True))
    assert "the operator confirmed owning the site" in logged[0]
    assert "confirmed" not in logged[2]


def test_a_killed_folder_stays_cautious_after_its_sites_were_changed(tmp_path: Path) -> None:
    """A change without a running tree must not make a crash look like a clean shutdown."""
    folder = tmp_path / "data"
    with lock_folder(tmp_path / "data"):
        open_state(folder, "killed", 0.0).db.close()
    for _ in range(2):
        with open_for_write(folder, 0.0) as state:
            assert not state.clean
            execute_command(ImportSites(((Site(HOME), False),)), state, 0.0, "a test")


def test_nothing_of_a_blocked_domain_is_asked_for_until_the_block_is_taken_back(bench: Bench) -> None:
    """Waiting and requested URLs are refused with that reason; after the undo they wait again."""
    bench.crawled(*pages("a", "b"))
    block = bench.order(AddRules((Rule("block", "", HOST),)))
    assert bench.asked() == []
    assert "blocked" in str(bench.fetch(f"{HOME}c")["error"])
    bench.order(Undo(int(str(block["action"]))))
    assert {errand.url for errand in bench.asked()} == set(pages("a", "b"))


def test_a_host_that_was_asked_for_a_preview_rests_before_it_is_asked_again(bench: Bench) -> None:
    """After a preview fetched its robots.txt, the crawler waits before the next request."""
    asked_s = bench.now_s + 3600.0
    bench.order(AddSite(Site("http://127.0.0.9/"), asked_s=asked_s))
    assert bench.asked(30) == []
    assert bench.now_s < asked_s
    bench.now_s = asked_s
    assert [errand.url for errand in bench.asked()] == ["http://127.0.0.9/"]


def all_or_nothing(folder: Path, orders: tuple[Command, ...]) -> None:
    """Commands that are committed together."""
    with open_for_write(folder, 0.0) as state:
        for order in orders:
            execute_command(order, state, 0.0, "a test")


def test_an_order_that_fails_leaves_no_trace(tmp_path: Path) -> None:
    """Nothing is written if one of several commands is refused, and the next start needs no caution."""
    folder = tmp_path / "data"
    with open_for_write(folder, 0.0) as state:
        execute_command(AddSite(Site(HOME)), state, 0.0, "a test")
    orders = (SetSite(HOME, {"delay_s": 9.0}, "delay=9s"), AddSite(Site(HOME)))
    with pytest.raises(SiteError):
        all_or_nothing(folder, orders)
    with open_for_write(folder, 0.0) as state:
        assert state.clean
    with open_state_reader(folder) as view:
        assert [row.site.delay_s for row in view.store.list_sites()] == [None]


def test_a_view_counts_what_the_writer_has_committed(bench: Bench) -> None:
    """While a coordinator runs, a reader sees pages, sites and queues as of the last commit."""
    bench.crawled(*pages("a", "b"))
    (one, *_) = bench.asked(1)
    bench.answer(one)
    bench.state.commit()
    with open_state_reader(bench.settings.folder) as view:
        counts = view.count_sites([row.site for row in view.store.list_sites()])
        row = view.find_url(one.url)
        assert row is not None
        assert view.find_fate(row.id) is UrlState.FETCHED
        assert (view.count_known(), view.count_pages(), view.count_waiting(), view.count_leased()) == (3, 2, 0, 1)
    assert [(count.known, count.pages) for count in counts.values()] == [(3, 2)]


def test_hosts_with_something_to_do_are_listed(bench: Bench) -> None:
    """Hosts in trouble come first, then the longest queues; idle hosts are left out."""
    starts = [f"http://127.0.0.{number}/" for number in range(2, 6)]
    for start in starts:
        bench.order(AddSite(Site(start)))
    for count, start in enumerate(starts, 1):
        bench.keeper.add_urls([f"{start}{number}" for number in range(count)], 1, bench.now_s)
    bench.keeper.host_table.restore_host(HostRow("127.0.0.3", 0.0, 4, "status 503"), bench.now_s + 3600.0)
    bench.keeper.host_table.restore_host(HostRow("127.0.0.99", 0.0, 0, ""), bench.now_s)
    reply: Any = bench.desk.handle(Request("status"), bench.now_s)
    assert [row["name"] for row in reply["queue"]] == ["127.0.0.3", "127.0.0.5", "127.0.0.4", "127.0.0.2"]
    assert reply["queue_hosts"] == len(starts)
    first = reply["queue"][0]
    assert (first["waiting"], first["why"], first["trouble"], first["out"]) == (3, "status 503", "status 503", 0)
    assert first["ready_s"] == bench.now_s + 3600.0


def test_a_command_with_an_id_is_executed_once(bench: Bench) -> None:
    """If a client sends it again after a timeout, it gets the first reply, even a refusal."""
    adding = Request("order", {"order": command_to_json(AddSite(Site("http://127.0.0.7/"))), "who": "a test"}, "one")
    first = bench.desk.handle(adding, bench.now_s)
    assert bench.desk.handle(adding, bench.now_s) == first
    again: Any = bench.desk.handle(replace(adding, id="two"), bench.now_s)
    assert "error" in again
    assert bench.state.store.find_answer("two") == again
    assert [row.action.what for row in bench.state.store.list_actions(9)].count(str(first["done"])) == 1
    for number in range(300):
        bench.state.store.save_answer(f"other {number}", {}, 0.0)
    assert bench.state.store.find_answer("other 299") == {}
    assert bench.state.store.find_answer("other 0") is None


def test_budget_and_refresh_policy_change_without_a_restart(bench: Bench) -> None:
    """They apply at once and are logged; settings that need a restart, or are invalid, are refused."""
    before = (bench.keeper.rules.budget_per_s, bench.keeper.refresher.policy)
    bench.order(SetMachine({"crawl.budget": "2/s", "refresh.policy": "nutch"}))
    assert (bench.keeper.rules.budget_per_s, bench.keeper.refresher.policy) == (2.0, "nutch")
    for settings, why in (({"store.data": "x"}, "without a restart"), ({"refresh.policy": "none"}, "expected-gain")):
        refused = bench.desk.handle(
            Request("order", {"order": command_to_json(SetMachine(settings)), "who": "a test"}), bench.now_s
        )
        assert why in str(refused["error"])
    assert (bench.keeper.rules.budget_per_s, bench.keeper.refresher.policy) == (2.0, "nutch")
    (action,) = bench.state.store.list_actions(1)
    assert action.action.what == "set crawl.budget to 2/s and refresh.policy to nutch"
    bench.order(Undo(action.id))
    assert (bench.keeper.rules.budget_per_s, bench.keeper.refresher.policy) == before


def test_a_contact_opens_public_hosts_without_a_restart(bench: Bench) -> None:
    """URLs refused for lack of a contact are fetched once there is one, and fetchers send it."""
    public = "http://8.8.8.8/"
    bench.order(AddSite(Site(public)))
    assert bench.asked() == []
    bench.order(SetMachine({"crawl.contact": "ops@example.org"}))
    assert bench.keeper.rules.agent.endswith("(+mailto:ops@example.org)")
    assert [errand.url for errand in bench.asked()] == [public]
    assert "error" in bench.order(SetMachine({"crawl.contact": "nobody"}))
    bench.order(SetMachine({"crawl.contact": None}))
    assert not bench.keeper.rules.allow_public


def test_what_was_chosen_holds_in_the_next_run_before_what_is_configured(bench: Bench) -> None:
    """A restart uses the chosen values; reverted or unreadable ones come from the file."""
    bench.order(SetMachine({"refresh.policy": "nutch", "crawl.budget": "3/s"}))
    bench.order(SetMachine({"crawl.budget": None}))
    configured = override(Config(), {"refresh.policy": "uniform", "crawl.budget": "7/s"})
    held = apply_overrides(configured, bench.state.store)
    assert (held.refresh.policy, held.crawl.budget.requests) == ("nutch", 7)
    for damage in ("[", '{"refresh.policy": "of tomorrow"}', '["refresh.policy"]', '{"refresh.policy": 3}'):
        bench.state.store.set_value("settings chosen", damage)
        assert apply_overrides(configured, bench.state.store) == configured


def test_a_page_is_explained_with_rate_worth_price_and_gain(tmp_path: Path) -> None:
    """Shows the policy's estimate for a page that was fetched twice, its last gain and its cost in busy hours.

    A source has none.
    """
    without_idle_time = override(Config(), {"refresh.idle_share": "0"})
    with closing(Bench(tmp_path, without_idle_time)) as bench:
        bench.crawled(*pages("a"))
        for _ in range(2):
            bench.fetch(HOME + "a")
            for errand in bench.asked():
                bench.answer(errand)
            bench.keeper.wake_due_pages(bench.now_s)
        page = dict(bench.state.store.iter_pages())[HOME + "a"]
        bench.keeper.on_gains([FetchGain(page.id, page.fetched_s, 0.5, 3.0)], bench.now_s)
        bench.state.commit()
        report, source = (
            collect_explanation(url, bench.settings.folder, build_schedule(bench.settings), lambda _: None, bench.now_s)
            for url in (HOME + "a", HOME)
        )
        refresh = report["refresh"]
        assert (refresh["refetched"], refresh["gain"], refresh["views"]) == (True, 0.5, 3.0)
        assert refresh["rate_low_d"] <= refresh["rate_d"] <= refresh["rate_high_d"]
        assert refresh["price"] == bench.keeper.refresher.price
        assert refresh["worth"] >= 0
        assert report["page"]["rule"].startswith("expected-gain")
        assert source["refresh"] is None
        assert source["page"]["rule"].startswith("due now: waiting for its host")
        bench.order(SetSite(HOME, {"busy_hours": "00:00-12:00, 12:00-00:00 x4"}, "busy_hours"))
        bench.state.commit()
        busy = collect_explanation(
            HOME + "a", bench.settings.folder, build_schedule(bench.settings), lambda _: None, bench.now_s
        )
        assert (report["budget"]["is_busy"], busy["budget"]["is_busy"]) == (False, True)
        assert busy["budget"]["cost"] == 4 * report["budget"]["cost"]
        assert busy["refresh"]["worth"] == pytest.approx(refresh["worth"] / 4)


def test_a_source_is_explained_as_the_keeper_sees_it_now(bench: Bench) -> None:
    """This includes polls that were not saved yet, and the effect of an alert that was just created."""
    bench.crawled(*pages("a"))
    bench.order(AddAlert(parse_alert("w", HOST, "", "", "")))
    home = dict(bench.state.store.iter_pages())[HOME]
    for hour in (1, 2):
        look = PollResult(home.id, home.host, ok=True, is_list=True, is_refetch=True, links=[90 + hour], new=1)
        bench.keeper.refresher.poller.on_polls([look], home.fetched_s + 100.0 * hour)
    bench.now_s += 300.0
    bench.state.commit()
    report, kept = (
        collect_explanation(HOME, bench.settings.folder, build_schedule(bench.settings), ask, bench.now_s)["look"]
        for ask in (lambda call: bench.desk.handle(call, bench.now_s), lambda _: None)
    )
    assert (report["looks"], report["found"], report["watched"]) == (2, 2, 1.0)
    assert kept["looks"] < 2
