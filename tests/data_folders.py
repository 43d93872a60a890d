"""Data folders with content, written through the same code that a crawl uses."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Self

import xxhash

from vedette.adapters.ads.campaign_store import AdRow, AdTarget, AdvertiserRow, CampaignRow, CampaignStore
from vedette.adapters.archive.warc_record import Exchange, compute_digest
from vedette.adapters.archive.warc_writer import WarcWriter
from vedette.adapters.crawl_store.data_folder import State, lock_folder, open_state
from vedette.adapters.crawl_store.new_page_store import AlertRow
from vedette.adapters.crawl_store.operator_store import Action
from vedette.adapters.crawl_store.search_store import RuleRow, UserKeyRow
from vedette.adapters.crawl_store.store import SiteRow
from vedette.engine.messages import ArchiveLocation, Content
from vedette.engine.ports import (
    Discovery,
    FailedUrl,
    FirstCrawl,
    HostRow,
    LinkBatch,
    PageRow,
    RefreshState,
    UnlistedLink,
    UrlState,
)
from vedette.fetch.robots.state import UNKNOWN, RobotsResponse, apply_event
from vedette.frontier.pattern_yield import HostYield
from vedette.index.fields import StoredPage, pack_page
from vedette.model import Origin, Site, origin_of
from vedette.parse.change.comparison import StoredVersion

NOW_S = 1_800_000_000.0
DAY_S = 86_400.0
HOST = "www.example.org"
SITE = Site(f"https://{HOST}/", exclude=("/private/",), delay_s=2.5, change="main")
URLS = tuple(f"https://{HOST}/{name}" for name in ("", "a?b=c", "private/", "broken", "later"))
BODIES = ("<title>Grüße</title><a href=/a?b=c>a</a>".encode() * 20, b"\x00\xff" * 50)
ROBOTS = apply_event(UNKNOWN, RobotsResponse(NOW_S - 1, 200, b"User-agent: *\nDisallow: /private/\n", 0, ()), "vedette")
ORIGIN = Origin("https", HOST, 443)
CONTENT = Content(
    StoredVersion(bytes(16), b"", bytes(range(16)), bytes(128), 7, b"parts"),
    charset="utf-8",
    language="en",
    description="An example",
    canonical="https://www.example.org/",
    directives="noarchive",
    words=120,
    published_s=NOW_S - 86_400,
    objections=(("thin", "3 words, 0 links"),),
    stored=pack_page(StoredPage("https://www.example.org/", "Grüße", body="Grüße an alle")),
    private="https://www.example.org/",
    identity=bytes(range(16)),
)

REMEMBERED = RefreshState(1, NOW_S, 120, None, before_s=NOW_S - DAY_S, gain=0.25, views=2.0, memory=b"mark" + bytes(48))
FIND = Discovery(2, 1, "feed", 1)
FIRST_CRAWL = FirstCrawl(0, 12345, NOW_S - DAY_S, over=True)
WATCH = AlertRow("harbour", "0123456789abcdef", HOST, "grüße", "https://hooks.example.org/new", "ann", NOW_S)
ADVERTISER = AdvertiserRow("ann", "wiki", "00" * 32, NOW_S, "9.00")
CAMPAIGN = CampaignRow("spring", "ann", "5.00", "2027-01-01", "", paused=True, added_s=NOW_S)
AD = AdRow(
    *(1, "spring", "Grüße zum Frühling", "Karten, heute noch", "https://cards.example.org/"),
    targets=(AdTarget("exact", "grusse", "0.60"), AdTarget("broad", "karten kaufen")),
    negatives=("gratis",),
    bid="0.40",
    standing="approved",
    added_s=NOW_S,
)
# Formats 8 and 9 knew neither budgets of advertisers nor bids of phrases.
OLD_TARGETS = tuple(target._replace(bid="") for target in AD.targets)
OLD_MARKET = [ADVERTISER._replace(budget=""), CAMPAIGN, AD._replace(targets=OLD_TARGETS)]
GROUP = (f"https://{HOST}/", b"mark" + bytes(80))


@contextmanager
def opened(folder: Path, now_s: float = NOW_S) -> Iterator[State]:
    """Open the state of a folder, and close it cleanly."""
    with lock_folder(folder):
        state = open_state(folder, "test", now_s)
        try:
            yield state
        except BaseException:
            state.db.close()
            raise
        state.close(clean=True)


@dataclass
class Fetches:
    """Fetch pages into an open state, as a fetcher and its coordinator would."""

    state: State
    name: str = "w0"
    rotate_bytes: int = 1_000_000_000
    writer: WarcWriter = field(init=False)

    def __post_init__(self) -> None:
        self.writer = WarcWriter(self.state.folder / "warc", self.name, "test", rotate_bytes=self.rotate_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.writer.close()

    def know(self, *urls: str, at_s: float = NOW_S) -> None:
        """Add URLs and queue them."""
        hosts = self.state.urls.intern_hosts([origin_of(url).host for url in urls])
        self.state.urls.add(LinkBatch(urls, hosts, [1] * len(urls), [2] * len(urls)), at_s)

    def end(self, url: str, fate: UrlState) -> int:
        """End a waiting URL with this outcome, and return its id."""
        urls = self.state.urls
        (id_,) = urls.find_ids([url]).tolist()
        (host,) = urls.intern_hosts([origin_of(url).host])
        held = [one.id for one in urls.lease([host] * urls.count_waiting(host), 0, inf)]
        urls.acknowledge([id_], fate, 0)
        urls.release_leases([other for other in held if other != id_], 0)
        return int(id_)

    def page(self, url: str, body: bytes, at_s: float = NOW_S, status: int = 200) -> PageRow:
        """Fetch a page: archive, store, acknowledge and commit it."""
        self.know(url)
        id_ = self.end(url, UrlState.FETCHED)
        head = b"HTTP/1.1 %d OK\r\nContent-Type: text/html\r\n\r\n" % status
        stood = self.writer.append(Exchange(url, at_s, b"GET / HTTP/1.1\r\n\r\n", head, body, "192.0.2.1"))
        row = PageRow(
            id_,
            self.state.urls.intern_hosts([origin_of(url).host])[0],
            status,
            "page",
            at_s,
            at_s,
            title="a title",
            content_type="text/html",
            etag='"1"',
            last_modified="",
            digest=xxhash.xxh3_128_hexdigest(body),
            payload_digest=compute_digest(body),
            location="",
            body_bytes=len(body),
            place=ArchiveLocation(stood.file, stood.offset, stood.length),
            interval_s=DAY_S,
            due_s=at_s + DAY_S,
        )
        self.state.store.save_pages([(row, ([URLS[1], URLS[4]], ()))])
        self.state.store.acknowledge_archive(self.writer.flush(), at_s)
        self.state.commit()
        return row


def write_sample(folder: Path) -> None:
    """Write the folder that is the sample of the current format."""
    with opened(folder) as state:
        book = state.store
        book.save_site(SiteRow(SITE, paused=True, added_s=NOW_S))
        with Fetches(state) as fetches:
            fetches.know(*URLS)
            for url, body in zip(URLS, BODIES, strict=False):
                fetches.page(url, body)
            book.add_note(
                fetches.end(URLS[2], UrlState.REFUSED), "disallowed by robots.txt: Disallow: /private/", NOW_S
            )
            failed = fetches.end(URLS[3], UrlState.FAILED)
            book.add_note(failed, "too slow", NOW_S)
            book.save_failure(FailedUrl(failed, 1, NOW_S, NOW_S + 3600.0))
        book.save_contents([(1, 1, CONTENT)])
        book.hold_urls([(3, 0, "www.example.org /private/*")])
        book.save_yields({HOST: json.dumps(HostYield(HOST, "example.org").to_json())})
        book.save_robots(ORIGIN, ROBOTS)
        book.save_hosts([HostRow(HOST, NOW_S + 5, 1, "status 503")])
        book.save_user_key(UserKeyRow("wiki", "00" * 32, {"scopes": ["search"], "rate": None, "sites": []}, NOW_S))
        book.add_search_rule(RuleRow("pin", "grusse", URLS[0], NOW_S))
        book.log_action(Action(NOW_S, f"added {SITE.start}", "the console", ({"order": "remove_site"},)))
        book.set_token("11" * 32)
        book.add_unlisted_links([UnlistedLink("www.example.net", URLS[0], NOW_S)])
        book.save_refresh_states([REMEMBERED])
        book.save_groups([GROUP])
        book.save_discoveries([FIND])
        book.save_first_crawls([FIRST_CRAWL])
        book.add_alert(WATCH)
        market = CampaignStore(state.db)
        market.save_advertiser(ADVERTISER)
        market.save_campaign(CAMPAIGN)
        market.save_ad(AD)
