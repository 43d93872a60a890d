"""Push in the coordinator: signals add and wake pages by trust, keys are verified, and promises are kept."""

from itertools import pairwise

import pytest
from tests.engine.memory_web import MemoryWeb, Reply, page, robots
from tests.runtime.push.push_setup import HOME, HUB, Bench, atom, text

from vedette.adapters.crawl_store.store import SiteRow
from vedette.discover.push.credit import SignalTrust
from vedette.discover.push.indexnow import Ping
from vedette.errors import SiteError, UsageError
from vedette.model import Site
from vedette.runtime.commands.executor import DEFAULT_DELAY_S
from vedette.runtime.push.promises import check_promises
from vedette.runtime.push.signals import SIGNAL_SHARE, Mention
from vedette.runtime.push.subscriptions import Verification
from vedette.web.commands.commands import SetSite

FEED, PAGE, NEW = f"{HOME}feed.xml", f"{HOME}page", f"{HOME}new"
KEY = "0123456789abcdef"
KEY_FILE = f"{HOME}{KEY}.txt"
PINGED = f"indexnow {'example.org'}"


def small_web() -> MemoryWeb:
    """Return a home page, a page, a feed, an unlinked new page, and a key file."""
    return MemoryWeb(
        {
            HOME: page("/page", "/feed.xml"),
            PAGE: text("<p>as it was"),
            FEED: Reply(200, (("content-type", "application/atom+xml"),), atom(PAGE)),
            NEW: text("<p>something new"),
            KEY_FILE: text(KEY, "text/plain"),
        }
    )


def crawled(**more: object) -> Bench:
    """Fetch everything that is linked."""
    return Bench(small_web(), **more).run(30, at_once_s=10.0)  # type: ignore[arg-type]  # each test names real fields


def subscribed(bench: Bench) -> str:
    """Return the token of an active subscription to the feed."""
    push, wall_s = bench.push, bench.settings.clock.wall_now()
    push.subscriptions.add_offer(FEED, HUB, FEED, wall_s)
    (errand,) = push.subscriptions.take_requests(wall_s)
    push.subscriptions.on_answer(errand.token, "")
    assert push.subscriptions.verify(errand.token, Verification("subscribe", FEED, 3_600.0), wall_s) == ""
    return errand.token


def delivered(bench: Bench, token: str, *said: Mention) -> dict[str, object]:
    """Deliver something from a hub with a valid signature."""
    return bench.push.handle(bench.now_s, "delivered", token=token, said=list(said))


def ping(*urls: str, key: str = KEY) -> Ping:
    """Send a ping as a site does."""
    return Ping(key, f"{HOME}{key}.txt", urls)


# signals


def test_a_pushed_entry_is_found_and_fetched() -> None:
    """An unlinked page is known and fetched soon after its feed was pushed."""
    bench = crawled()
    assert bench.asked(NEW) == []
    reply = delivered(bench, subscribed(bench), Mention(NEW, bench.now_s))
    bench.run(10)
    assert (reply["status"], reply["new"]) == (202, 1)
    assert len(bench.asked(NEW)) == 1
    assert bench.credit(f"websub {FEED}") > 0.5


def test_pushed_pages_trigger_alerts() -> None:
    """A pushed entry counts as found in its feed, with the date given there, and so does a pinged page."""
    bench = crawled()
    born_s = bench.now_s - 5.0
    delivered(bench, subscribed(bench), Mention(NEW, born_s))
    bench.push.handle(bench.now_s, "pinged", ping=ping(f"{HOME}pinged"))
    bench.run(60)
    state = bench.state
    ids = state.urls.find_ids([NEW, f"{HOME}pinged", FEED, KEY_FILE]).tolist()
    finds = state.store.get_discoveries(ids)
    assert [(finds[id_].source, finds[id_].how) for id_ in ids[:2]] == [(ids[2], "push"), (ids[3], "push")]
    assert state.store.find_births(ids) == {ids[0]: born_s}


def test_a_pushed_change_of_a_known_page_is_fetched_at_once() -> None:
    """A page due in days is fetched within seconds if its feed says that it changed, which it has."""
    bench = crawled()
    before = len(bench.asked(PAGE))
    bench.web.replies[PAGE] = text("<p>all of it is otherwise now")
    delivered(bench, subscribed(bench), Mention(PAGE, bench.now_s))
    bench.run(10)
    assert len(bench.asked(PAGE)) == before + 1
    assert bench.credit(f"websub {FEED}") > 0.5


def test_old_entries_of_a_feed_have_no_effect() -> None:
    """Entries older than the last fetch of their page, and those without a date, have no effect."""
    bench = crawled()
    before = len(bench.asked(PAGE))
    reply = delivered(bench, subscribed(bench), Mention(PAGE, bench.now_s - 1e6), Mention(HOME))
    bench.run(10)
    assert reply["signalled"] == 0
    assert len(bench.asked(PAGE)) == before


def test_a_push_counts_as_a_poll_of_the_feed() -> None:
    """After a push, the feed is due a whole interval later."""
    bench = crawled()
    bench.run(300, at_once_s=100.0)
    delivered(bench, subscribed(bench))
    row = bench.drive.pages()[FEED]
    assert row.due_s == bench.now_s + bench.settings.config.crawl.source_interval_s


def test_pushed_urls_out_of_scope_are_ignored() -> None:
    """A hub can't make us fetch anything out of scope or disallowed by robots.txt."""
    bench = Bench(small_web())
    bench.web.replies[f"{HOME}robots.txt"] = robots("Disallow: /secret")
    bench.run(30)
    said = (Mention("https://elsewhere.example.com/"), Mention(f"{HOME}secret"), Mention("javascript:x"))
    delivered(bench, subscribed(bench), *said)
    bench.run(20)
    assert bench.asked(f"{HOME}secret") == bench.asked("https://elsewhere.example.com/") == []


def test_false_signals_lose_all_credit() -> None:
    """A source with false signals loses credit each time, until its signals have no effect."""
    bench = crawled()
    token, believed = subscribed(bench), [bench.credit(f"websub {FEED}")]
    for _ in range(2):
        bench.run(1_000, at_once_s=1_000.0)  # longer than a signal may be late
        delivered(bench, token, Mention(PAGE, bench.now_s))
        bench.run(6)
        believed.append(bench.credit(f"websub {FEED}"))
    assert believed == sorted(set(believed), reverse=True)
    bench.push.store.save_credit(f"websub {FEED}", SignalTrust(0.0, 60.0), 0, 0.0)
    before = len(bench.asked(PAGE))
    delivered(bench, token, Mention(PAGE, bench.now_s))
    bench.run(20)
    assert len(bench.asked(PAGE)) == before


def test_signals_take_no_more_than_their_share_of_a_host() -> None:
    """Many changes at once are fetched no faster than the share of the host's delays allows, after a burst."""
    pages = [f"{HOME}p{number}" for number in range(30)]
    web = MemoryWeb({HOME: page(*pages)})
    web.replies.update({url: text(f"<p>{url}") for url in pages})
    bench = Bench(web).run(60, at_once_s=20.0)
    before = sum(len(bench.asked(url)) for url in pages)
    delivered(bench, _other_topic(bench), *(Mention(url, bench.now_s) for url in pages))
    bench.run(50, at_once_s=2.0)
    woken = sum(len(bench.asked(url)) for url in pages) - before
    assert 5 < woken <= 50 * SIGNAL_SHARE + 6


def _other_topic(bench: Bench) -> str:
    """Return a subscription to the home page instead of a feed."""
    wall_s = bench.settings.clock.wall_now()
    bench.push.subscriptions.add_offer(HOME, HUB, HOME, wall_s)
    (errand,) = bench.push.subscriptions.take_requests(wall_s)
    assert bench.push.subscriptions.verify(errand.token, Verification("subscribe", HOME, 3_600.0), wall_s) == ""
    return errand.token


# subscriptions


@pytest.mark.parametrize(
    ("intent", "ignored"),
    [
        (Verification("subscribe", FEED, 3_600.0), 0),
        (Verification("subscribe", f"{HOME}other", 3_600.0), 1),
        (Verification("unsubscribe", FEED), 1),
        (Verification("publish", FEED), 1),
    ],
)
def test_only_requested_subscriptions_are_verified(intent: Verification, ignored: int) -> None:
    """Verifications of another topic, or of an unsubscription that was not requested, are refused and counted."""
    bench = crawled()
    bench.push.subscriptions.add_offer(FEED, HUB, FEED, 1.0)
    (errand,) = bench.push.subscriptions.take_requests(2.0)
    reply = bench.push.handle(bench.now_s, "intent", token=errand.token, intent=intent)
    assert bool(reply["why_not"]) is bool(ignored)
    assert len(bench.push.store.list_ignored(5)) == ignored


def test_verification_needs_a_pending_request() -> None:
    """Without one, or after it was answered, the verification fails."""
    bench = crawled()
    bench.push.subscriptions.add_offer(FEED, HUB, FEED, 1.0)
    row = bench.push.store.list_subscriptions(1)[0]
    assert bench.push.subscriptions.verify(row.token, Verification("subscribe", FEED), 1.0)
    token = subscribed(bench)
    assert bench.push.subscriptions.verify(token, Verification("subscribe", FEED), 1.0)
    assert bench.push.subscriptions.verify("guessed", Verification("subscribe", FEED), 1.0)


def test_a_subscription_is_renewed_before_its_lease_ends() -> None:
    """The hub is contacted again while the old lease is valid, and the new one counts from then."""
    bench = crawled()
    token = subscribed(bench)
    row = bench.push.store.find_by_token(token)
    assert row is not None
    assert bench.push.subscriptions.take_requests(row.next_wall_s - 1.0) == []
    assert row.next_wall_s < row.lease_wall_s
    (again,) = bench.push.subscriptions.take_requests(row.next_wall_s)
    assert again.token == token
    assert bench.push.subscriptions.verify(token, Verification("subscribe", FEED, 3_600.0), row.next_wall_s) == ""
    later = bench.push.store.find_by_token(token)
    assert later is not None
    assert later.lease_wall_s > row.lease_wall_s


def test_a_failing_hub_is_retried_ever_more_rarely() -> None:
    """After each failure the next attempt is later, and the reason is stored."""
    bench = crawled()
    bench.push.subscriptions.add_offer(FEED, HUB, FEED, 0.0)
    wall_s, waits = 0.0, []
    for _ in range(4):
        (errand,) = bench.push.subscriptions.take_requests(wall_s)
        bench.push.subscriptions.on_answer(errand.token, "no connection")
        row = bench.push.store.list_subscriptions(1)[0]
        waits.append(row.next_wall_s - wall_s)
        wall_s = row.next_wall_s
    assert waits == sorted(set(waits))
    assert row.why == "no connection"


def test_a_feed_that_is_no_longer_ours_is_left() -> None:
    """If its site is gone, the hub is unsubscribed, deliveries get 410 Gone, and nothing is renewed."""
    bench = crawled()
    token = subscribed(bench)
    bench.drive.rule(bench.drive.rules.__class__(recrawl=True))
    assert delivered(bench, token)["status"] == 410
    (errand,) = bench.push.subscriptions.take_requests(bench.settings.clock.wall_now() + 3_600.0)
    assert dict(errand.form)["hub.mode"] == "unsubscribe"
    assert bench.push.subscriptions.verify(token, Verification("unsubscribe", FEED), 1.0) == ""


def test_no_hub_is_contacted_without_a_public_url() -> None:
    """The subscription stays pending."""
    bench = crawled(public_url="")
    bench.push.subscriptions.add_offer(FEED, HUB, FEED, 1.0)
    assert bench.push.subscriptions.take_requests(2.0) == []
    assert [row.standing for row in bench.push.store.list_subscriptions(5)] == ["wanted"]


def test_an_unknown_question_is_wrong_usage() -> None:
    """A newer client learns that the coordinator is older."""
    with pytest.raises(UsageError):
        crawled().push.handle(0.0, "dance")


# pings


def test_a_ping_waits_for_its_key_and_then_counts() -> None:
    """The first ping with a key is accepted; its URL is fetched after the key file, and later ones count at once."""
    bench = crawled()
    assert bench.push.pings.on_ping(ping(NEW), bench.now_s).status == 202
    bench.run(15)
    assert len(bench.asked(KEY_FILE)) == 1
    assert len(bench.asked(NEW)) == 1
    bench.web.replies[PAGE] = text("<p>all of it is otherwise now")
    assert bench.push.pings.on_ping(ping(PAGE), bench.now_s).status == 200
    bench.run(15)
    assert len(bench.asked(PAGE)) == 2
    assert bench.credit(PINGED) > 0.5


def test_a_wrong_key_is_refused_and_its_urls_forgotten() -> None:
    """A key whose file is missing or different has no effect."""
    bench = crawled()
    bench.web.replies[f"{HOME}another-key.txt"] = text("something else", "text/plain")
    for key in ("missing-key", "another-key"):
        assert bench.push.pings.on_ping(ping(NEW, key=key), bench.now_s).status == 202
        bench.run(15)
        assert bench.push.pings.on_ping(ping(NEW, key=key), bench.now_s).status == 403
    assert bench.asked(NEW) == []
    assert bench.push.store.list_ignored(5)[0].source == PINGED


def test_pings_for_hosts_of_no_site_are_refused() -> None:
    """No lookup is made for a host that belongs to no site."""
    bench = crawled()
    other = Ping(KEY, f"https://example.com/{KEY}.txt", ("https://example.com/a",))
    assert bench.push.pings.on_ping(other, bench.now_s).status == 422
    bench.run(5)
    assert bench.asked(other.key_url) == []


def test_guessing_keys_is_limited() -> None:
    """Many keys for one host soon get "too many requests", and few files are requested."""
    bench = crawled()
    statuses = []
    for number in range(20):
        statuses.append(bench.push.pings.on_ping(ping(NEW, key=f"guess-{number:04}"), bench.now_s).status)
        bench.run(2)
    assert set(statuses) == {202, 429}
    assert sum(len(bench.asked(f"{HOME}guess-{number:04}.txt")) for number in range(20)) < 10


def test_guessed_keys_do_not_lock_the_owner_out() -> None:
    """Whatever keys a client makes up, the owner's key is checked if it comes from elsewhere."""
    bench = crawled()
    for number in range(20):
        bench.push.pings.on_ping(ping(NEW, key=f"guess-{number:04}"), bench.now_s, "192.0.2.1")
        bench.run(2)
    assert bench.push.pings.on_ping(ping(NEW), bench.now_s, "192.0.2.1").status == 429
    assert bench.push.pings.on_ping(ping(NEW), bench.now_s, "198.51.100.7").status == 202


def test_all_guesses_together_are_limited() -> None:
    """Many clients get further than one, but the host gets at most one request for a key file per minute."""
    bench = crawled()
    for number in range(100):
        bench.push.pings.on_ping(ping(NEW, key=f"guess-{number:04}"), bench.now_s, f"client {number}")
        bench.run(2)
    assert sum(len(bench.asked(f"{HOME}guess-{number:04}.txt")) for number in range(100)) <= 60


# promises


def test_a_promise_is_kept_whatever_the_price() -> None:
    """A page that never changes is fetched at least as often as promised, and others are not."""
    bench = crawled(sites=(Site(HOME, promise=("60 /page",)),))
    bench.run(400, at_once_s=2.0)
    times = bench.asked(PAGE)
    assert max(later - sooner for sooner, later in pairwise(times)) <= 60
    assert len(times) < 20


def test_a_promise_never_breaks_politeness() -> None:
    """Even with a promise, the host's delay is respected."""
    bench = crawled(sites=(Site(HOME, promise=("20 /page",)),), delay_s=5.0)
    bench.run(100)
    log = bench.drive.asked_of("example.org")
    assert all(later.sent_s - sooner.ended_s >= 5.0 - 1e-6 for sooner, later in pairwise(log))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"promise": ("2 /page",), "delay_s": 5.0}, "shortest interval for this source is 10s"),
        ({"promise": ("900 /page",), "hours": "22:00-06:00"}, "closed for 16h"),
        ({"promise": ("900 https://example.com/",)}, "does not belong"),
    ],
)
def test_impossible_promises_are_refused(changes: dict[str, object], said: str) -> None:
    """A promise that delays or hours don't allow, or for another site's page, is refused with what is possible."""
    bench = crawled()
    bench.drive.book.save_site(_row(Site(HOME)))
    with pytest.raises(SiteError, match=said):
        check_promises(SetSite(HOME, changes, "promise"), bench.state, DEFAULT_DELAY_S)


def test_a_crawl_delay_counts_as_politeness() -> None:
    """The robots.txt delay is known, and no promise goes below it."""
    bench = Bench(small_web())
    bench.web.replies[f"{HOME}robots.txt"] = robots("Crawl-delay: 30")
    bench.run(60)
    bench.drive.book.save_site(_row(Site(HOME)))
    with pytest.raises(SiteError, match="is 1min"):
        check_promises(SetSite(HOME, {"promise": ("45 /page",)}, "promise"), bench.state, DEFAULT_DELAY_S)
    check_promises(SetSite(HOME, {"promise": ("900 /page",)}, "promise"), bench.state, DEFAULT_DELAY_S)


def _row(site: Site) -> SiteRow:
    return SiteRow(site, paused=False, added_s=0.0)
