"""The coordinator's side of the exchange: two shards exchange links, anchor texts and robots.txt files."""

from types import SimpleNamespace
from typing import Any, cast

from tests.engine.memory_web import Drive, MemoryWeb, Reply, moved, page, robots, rules_for

from vedette.adapters.clock import Clock
from vedette.adapters.crawl_store.index_queue import load_page_records
from vedette.adapters.exchange.link_store import read_outbox
from vedette.engine.coordinator.shard import ShardMap
from vedette.model import fingerprint, partition_of
from vedette.runtime.cluster.coordinator import ExchangeHandler, build_shard
from vedette.runtime.cluster.lease import ShardSettings

# Two hosts in different shards.
HERE, THERE = sorted(("one.test", "two.test", "three.test", "four.test"), key=partition_of)[::3]
BOTH = ShardMap((0, partition_of(THERE)), (0, 1))
HOUR_S = 3600.0


class Waiting(Drive):
    """A drive that continues while everything waits for the other shard."""

    def _soonest_s(self) -> float:
        try:
            return super()._soonest_s()
        except AssertionError:
            return self.now_s + 1.0


class Shards:
    """Two shards over one web, with what the exchangers and PostgreSQL do between them."""

    def __init__(self, web: MemoryWeb) -> None:
        rules = rules_for(f"http://{HERE}/", f"http://{THERE}/", recrawl=True)
        self.drives = [Waiting(web, rules) for _ in range(2)]
        self.handlers = [self._build(number, drive) for number, drive in enumerate(self.drives)]
        self.sent, self.replies = [(0, 0), (0, 0)], [dict[str, Any](), dict[str, Any]()]
        self.batches: list[list[tuple[int, int, int, bytes]]] = [[], []]
        for drive in self.drives:
            drive.begin()

    @staticmethod
    def _build(number: int, drive: Drive) -> ExchangeHandler:
        state = cast("Any", SimpleNamespace(db=drive.db, store=drive.book, urls=drive.urls))
        shard = build_shard(ShardSettings(number, 1, BOTH, ""), state, 1.0)
        drive.keeper.shard = shard
        return ExchangeHandler(state, drive.keeper, shard, Clock(0.0, 0.0, 1.0))

    def run(self, for_s: float, step_s: float = 5.0) -> "Shards":
        """Run both shards, with an exchange every few seconds."""
        for _ in range(int(for_s / step_s)):
            for number, drive in enumerate(self.drives):
                self._exchange(number, drive)
                drive.run(step_s)
        return self

    def _exchange(self, number: int, drive: Drive) -> None:
        wanted = self.replies[number].get("wanted", ())
        batches, self.batches[number] = self.batches[number], []
        granted = [(address, 0.0) for address in wanted]
        self.replies[number] = self.handlers[number].handle(
            drive.now_s, self.sent[number], batches, granted, (), None, (0.0, False), None
        )
        drive.db.execute("COMMIT")
        for row in read_outbox(drive.db, self.sent[number], 1000):
            self.batches[row.target].append((number, row.epoch, row.sequence, row.links))
            self.sent[number] = row.epoch, row.sequence


def test_a_robots_txt_that_redirects_to_another_shard_is_followed() -> None:
    """The owner of the target requests it, and the host obeys the rules; the sitemap in it is fetched."""
    web = MemoryWeb({f"http://{HERE}/": page("/open", "/closed"), f"http://{THERE}/": page()})
    web.replies |= {f"http://{HERE}/{name}": page(title=name) for name in ("open", "closed")}
    web.replies[f"http://{HERE}/robots.txt"] = moved(f"http://{THERE}/rules.txt")
    web.replies[f"http://{THERE}/rules.txt"] = robots("Disallow: /closed")
    both = Shards(web).run(120.0)
    here, there = both.drives
    assert {f"http://{HERE}/", f"http://{HERE}/open"} <= set(here.asked_urls())
    assert f"http://{HERE}/closed" not in here.asked_urls()
    assert here.asked_urls("robots") == [f"http://{HERE}/robots.txt"]
    assert f"http://{THERE}/rules.txt" in there.asked_urls("robots")


def test_a_robots_txt_of_a_host_that_does_not_answer_makes_the_other_wait() -> None:
    """Without the rules, no page is requested."""
    web = MemoryWeb({f"http://{HERE}/": page(), f"http://{THERE}/": page()})
    web.replies[f"http://{HERE}/robots.txt"] = moved(f"http://{THERE}/rules.txt")
    web.replies[f"http://{THERE}/rules.txt"] = Reply(503)
    both = Shards(web).run(120.0)
    assert both.drives[0].asked_urls() == []
    assert "503" in both.drives[0].keeper.hosts[HERE].robots_trouble


def test_anchor_texts_reach_the_shard_of_the_page_once() -> None:
    """Anchor texts from other shards are counted once per page, no matter how often the page is fetched."""
    web = MemoryWeb({f"http://{HERE}/": page("/other", f"http://{THERE}/fish"), f"http://{THERE}/": page()})
    web.replies[f"http://{HERE}/other"] = lambda now_s: page(f"http://{THERE}/fish", title=f"at {int(now_s)}")
    web.replies[f"http://{THERE}/fish"] = page(title="Fish")
    both = Shards(web).run(2 * HOUR_S, 20.0)
    assert both.drives[0].asked_urls().count(f"http://{HERE}/") > 1
    rows = both.drives[1].db.execute("SELECT target, text, times FROM foreign_anchor").fetchall()
    assert rows == [(fingerprint(f"http://{THERE}/fish"), "x", 2)]
    assert f"http://{THERE}/fish" in both.drives[1].asked_urls()


def test_a_link_of_a_known_page_of_another_shard_finds_what_is_new() -> None:
    """A page that was fetched before links to an unknown URL in another shard: this URL is new on the web."""

    def news(now_s: float) -> Reply:
        return page(*([f"http://{THERE}/new"] if now_s > 1000.0 + HOUR_S else []), title=f"{now_s > 1000.0 + HOUR_S}")

    web = MemoryWeb({f"http://{HERE}/": news, f"http://{THERE}/": page(), f"http://{THERE}/new": page()})
    both = Shards(web).run(6 * HOUR_S, 60.0)
    there = both.drives[1]
    found = there.db.execute("SELECT url, how, steps FROM find JOIN url ON url.id = url_id").fetchall()
    assert f"http://{THERE}/new" in there.asked_urls()
    assert found == [(f"http://{THERE}/new", "page", 0)]


def declare(url: str, text: str) -> Reply:
    """A page that names a canonical URL, if one is given."""
    text = f"{text}, with enough words of its own to be worth reading for anybody who finds it. " * 8
    return Reply(200, (("content-type", "text/html"),), f'<link rel="canonical" href="{url}"><p>{text}'.encode())


def is_replaced(drive: Drive, url: str) -> bool:
    """Check whether the canonical of a page is in another shard, and can be shown."""
    id_ = int(drive.urls.find_ids([url])[0])
    return load_page_records(drive.db, [id_])[id_].is_replaced


def count_news(drive: Drive, url: str) -> int:
    """Return how often a page was queued for the indexer."""
    id_ = int(drive.urls.find_ids([url])[0])
    (count,) = drive.db.execute("SELECT count(*) FROM news WHERE page = ?", (id_,)).fetchone()
    return int(count)


def test_a_page_gives_way_to_its_canonical_in_another_shard_while_that_can_be_shown() -> None:
    """It is not replaced before the canonical was fetched, nor after that is gone; each time it is queued again."""
    web = MemoryWeb({f"http://{HERE}/": page("/print"), f"http://{THERE}/": page()})
    web.replies[f"http://{HERE}/print"] = declare(f"http://{THERE}/whole", "the same for the printer")
    both = Shards(web).run(60.0)
    here, url = both.drives[0], f"http://{HERE}/print"
    queued = [count_news(here, url)]
    assert not is_replaced(here, url)
    web.replies[f"http://{THERE}/whole"] = declare("", "the whole story")
    web.replies[f"http://{THERE}/"] = page("/whole")
    both.run(40 * HOUR_S, 300.0)  # a page that was gone is tried again
    queued.append(count_news(here, url))
    assert is_replaced(here, url)
    web.replies[f"http://{THERE}/whole"] = Reply(404)
    both.run(8 * 24 * HOUR_S, 1200.0)
    queued.append(count_news(here, url))
    assert not is_replaced(here, url)
    assert queued[0] < queued[1] < queued[2]


def test_of_two_pages_that_name_each_other_none_gives_way() -> None:
    """Otherwise neither could be found."""
    web = MemoryWeb({f"http://{HERE}/": declare(f"http://{THERE}/", "one"), f"http://{THERE}/": page()})
    web.replies[f"http://{THERE}/"] = declare(f"http://{HERE}/", "two")
    here, there = Shards(web).run(300.0).drives
    assert not is_replaced(here, f"http://{HERE}/")
    assert not is_replaced(there, f"http://{THERE}/")
