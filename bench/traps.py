"""How much of a crawl goes into traps, and are real pages missed? Synthetic webs in memory, no network.

Each host is crawled breadth first, one request a host and turn, with and without budgets (``frontier.traps``). A fetch
of a calendar, member page, folder maze, farm host, mirror, parameter copy or page that is not there is wasted. Worlds:

    made    as it is: half of the hosts have one kind of trap, most have parameter copies
    half    every second host has every kind of trap and copy at once, and session ids are not known as such
    harsh   every host has
    calm    no traps; parameter copies and mirrors stay

Without budgets a crawl would never end; it stops at twice the number of fetches that the crawl with budgets took. The
last line is one JSON object.

    python bench/traps.py [--size small] [--seeds 1 2 3 4 5] [--worlds made half harsh calm] [--no-sitemaps]
    python -m bench.traps --cost

``--cost`` measures the CPU time of the trap budgets in the coordinator instead: the calls of a crawl of 80 hosts with
100 pages and 40 links each, in batches of up to eight tasks, in microseconds of CPU per page.
"""

import argparse
import json
import re
import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import get_args

import xxhash

from vedette.discover.formats.sitemaps import is_sitemap, parse_sitemap
from vedette.discover.urls.duplicate_rules import CopyRule, CopyRules
from vedette.discover.urls.normalize import normalize, resolve
from vedette.engine.coordinator.results import build_redirect_yield
from vedette.engine.coordinator.trap_filter import TrapFilter
from vedette.frontier.pattern_yield import FetchYield
from vedette.frontier.traps import PERMIT, Deferral, TrapDetector
from vedette.frontier.url_patterns import url_to_pattern
from vedette.lab.worlds.synthetic import SIZES, SyntheticWorld, open_synthetic_world
from vedette.lab.worlds.synthetic.grammar import build_library
from vedette.lab.worlds.synthetic.sites import SiteFeature, WorldSize, build_sites
from vedette.lab.worlds.synthetic.web import build_web
from vedette.lab.worlds.world import Reply, WorldRequest
from vedette.model import Site, registrable_domain
from vedette.parse.html.page import parse_page

_PARAGRAPH = re.compile(r"<p>(.*?)</p>", re.DOTALL)
_HREF = re.compile(rb'<a [^>]*?href="([^"]+)"')
_TAG = re.compile(r"<[^>]*>")
_CANONICAL = re.compile(r'<link rel="canonical" href="([^"]*)"')
_WASTEFUL = {"trap", "copy"}
_STEPS = {"harsh": 1, "half": 2}
_AS_IT_IS = Site("http://a.test/", drop_parameters=())
_TIDY = Site("http://a.test/")


def half_small(seed: int) -> SyntheticWorld:
    """The world ``half`` to be served, without what takes long and is no trap: ill hosts and faults below ``/odd/``."""
    return harsh(SIZES["small"], seed, _STEPS["half"], healthy=True)


def half_few(seed: int) -> SyntheticWorld:
    """The same, with a third of the hosts."""
    return harsh(WorldSize(hosts=8, pages=700), seed, _STEPS["half"], healthy=True)


def half_medium(seed: int) -> SyntheticWorld:
    """The world ``half_small``, ten times as large."""
    return harsh(SIZES["medium"], seed, _STEPS["half"], healthy=True)


def harsh(size: WorldSize, seed: int, step: int = 1, *, healthy: bool = False) -> SyntheticWorld:
    """A world in which every host has every trap, or one in this many."""
    proses = build_library(seed)
    sites = build_sites(size, seed, proses, calm=False)
    every = tuple(feature for feature in get_args(SiteFeature) if feature != "odd")
    sites = tuple(site if site.index % step else replace(site, features=every) for site in sites)
    if healthy:
        sites = tuple(
            replace(site, host_fault="", features=tuple(each for each in site.features if each != "odd"))
            for site in sites
        )
    return SyntheticWorld(f"harsh:{size.hosts}:{seed}", build_web(seed, sites), proses, calm=False)


@dataclass(slots=True)
class _NoRules:
    """Nothing is known about copies here."""

    copy_rules: CopyRules = field(default_factory=CopyRules)

    def find_fetched_bare(self, url: str) -> CopyRule | None:  # noqa: ARG002 - there are no rules
        """No URL is another spelling."""
        return None


@dataclass(slots=True)
class Tally:
    """What became of a crawl."""

    fetched: dict[str, str] = field(default_factory=dict)
    known: dict[str, None] = field(default_factory=dict)


class Simulation:
    """A crawl of a synthetic world: one queue per host, and the held-back URLs by pattern."""

    def __init__(self, world: SyntheticWorld, traps: TrapDetector | None, spelling: Site, *, sitemaps: bool) -> None:
        self.world = world
        self.traps = traps
        self.tally = Tally()
        self._spelling = spelling
        self._sitemaps = sitemaps
        self._queues: dict[str, deque[str]] = {}
        self._aside: dict[str, dict[str, deque[str]]] = {}
        self._texts: dict[int, str] = {}
        self._trials: dict[str, None] = {}
        self._filter = TrapFilter(_NoRules()) if traps else None
        if self._filter and traps:
            self._filter.traps = traps

    def run(self, most: int) -> Tally:
        """From the home page of every ordinary host until nothing may be requested, or this many fetches were made."""
        open_sites = [site for site in self.world.sites.values() if site.robots != "closed"]
        for site in open_sites:
            self._found(f"http://{site.name}/", None)
        for site in open_sites if self._sitemaps else ():
            self._read_sitemap(f"http://{site.name}/sitemap.xml")
        while len(self.tally.fetched) < most:
            before = len(self.tally.fetched)
            for host in list(self._queues):
                if len(self.tally.fetched) < most:
                    self._turn(host)
            if len(self.tally.fetched) == before and not (self._look_again() or self._try_held()):
                break
        return self.tally

    def _try_held(self) -> bool:
        """Queue trials of held-back URLs, as the coordinator does when nothing else waits."""
        chosen: list[tuple[str, str]] = []
        for host, patterns in self._aside.items():
            held = {f"{host} {pattern}": len(urls) for pattern, urls in patterns.items() if urls}
            for place, count in self._filter.plan_trials(held).items() if self._filter else ():
                urls = patterns[place.split(" ")[1]]
                chosen += [(host, urls.popleft()) for _ in range(count)]
        for host, url in chosen:
            self._trials[url] = None
            self._queues.setdefault(host, deque()).append(url)
        return bool(chosen)

    def _read_sitemap(self, url: str) -> None:
        reply = self._reply(url)
        if reply.status == 200 and is_sitemap(reply.body):
            sitemap = parse_sitemap(reply.body, url)
            for entry in sitemap.entries:
                self._found(entry.loc, None, is_named=True)
            for child in sitemap.children:
                self._read_sitemap(child)

    def _found(self, url: str, from_url: str | None, *, is_named: bool = False) -> None:
        url = normalize(url, self._spelling)
        host = url.split("/", 3)[2]
        if url in self.tally.known or not host.endswith(".test") or "/private/" in url:
            return
        self.tally.known[url] = None
        if self.traps:
            self.traps.add_url(url, from_url, is_named=is_named)
        self._queues.setdefault(host, deque()).append(url)

    def _turn(self, host: str) -> None:
        """The next URL of a host that may be requested."""
        queue = self._queues[host]
        while queue:
            url = queue.popleft()
            verdict = self.traps.judge_url(url, is_idle=url in self._trials) if self.traps else PERMIT
            if verdict is PERMIT:
                self._fetch(url)
                self._release(host)
                return
            if isinstance(verdict, Deferral):
                self._aside.setdefault(host, {}).setdefault(url_to_pattern(url), deque()).append(url)

    def _release(self, host: str) -> bool:
        """Release held-back URLs that may be requested now, one of each pattern; return whether there was any."""
        assert self.traps is not None or not self._aside
        released = False
        for pattern, urls in self._aside.get(host, {}).items():
            if (
                self.traps
                and urls
                and self.traps.judge_pattern(host, pattern) is PERMIT
                and urls[0] not in self._queues[host]
            ):
                self._queues[host].append(urls.popleft())
                released = True
        return released

    def _look_again(self) -> bool:
        released = [self._release(host) for host in self._aside]
        return any(released)

    def _reply(self, url: str) -> Reply:
        """The answer at the world's start, or a little later from a host that is ill just then."""
        _, _, host, target = url.split("/", 3)
        for patience_s in range(0, 86_400, 900):
            reply = self.world.reply(WorldRequest(host, "/" + target), self.world.start_s + patience_s)
            if reply.status not in {429, 503}:
                break
        return reply

    def _fetch(self, url: str) -> None:
        account = self.traps.on_request(url) if self.traps else None
        reply = self._reply(url)
        self.tally.fetched[url] = sort_of(self.world, url, reply.status)
        brought, links = self._read(url, reply)
        if self.traps and account:
            self.traps.on_result(account, brought)
        for link in links:
            target = resolve(link, url)
            if target:
                self._found(target, url)

    def _read(self, url: str, reply: Reply) -> tuple[FetchYield, tuple[str, ...]]:
        headers = dict(reply.headers)
        if reply.status != 200 or "html" not in headers.get("content-type", "html"):
            if "location" not in headers:
                return FetchYield(status=reply.status, is_free=True), ()
            location = resolve(headers["location"], url) or url
            return build_redirect_yield(url, location, reply.status), (location,)
        text = reply.body.decode("utf-8", "replace")
        main = text.partition("<footer>")[0]
        words = " ".join(_TAG.sub(" ", part) for part in _PARAGRAPH.findall(main)).split()
        named = _CANONICAL.search(text)
        canonical = named[1] if named else url
        digest = xxhash.xxh64_intdigest(" ".join(words).encode())
        first = self._texts.setdefault(digest, canonical) if words else canonical
        is_missing = "<h1>Page not found</h1>" in text
        return FetchYield(len(words), 200, is_copy=first != url, is_missing=is_missing), tuple(
            link.href for link in parse_page(text).links
        )


def sort_of(world: SyntheticWorld, url: str, status: int) -> str:
    """``waste`` by its sort, ``page``, or what else was fetched."""
    kind = world.classify_url(url)
    host = url.split("/", 3)[2]
    if kind in _WASTEFUL or "?" in url:
        return f"waste: {'copy' if '?' in url and kind != 'trap' else _sort(host, url, world)}"
    if host not in world.sites:
        return "waste: mirror"
    if kind == "unknown" and status == 200:
        return "waste: not there"
    return "page" if kind == "page" and status == 200 else f"other: {kind} {status}"


def _sort(host: str, url: str, world: SyntheticWorld) -> str:
    if host not in world.sites:
        return "mirror" if host.startswith("mirror.") else "farm"
    return url.split("/", 4)[3].partition("?")[0]


@dataclass(frozen=True, slots=True)
class Figures:
    """What one crawl shows."""

    pages: int
    fetches: int
    wasted: int
    pages_fetched: int
    trap_urls: int
    real_urls: int
    sorts: dict[str, int]

    @property
    def recall(self) -> float:
        """The share of real pages that were fetched."""
        return self.pages_fetched / self.pages

    @property
    def waste(self) -> float:
        """The share of fetches that were wasted."""
        return self.wasted / self.fetches


def figures_of(world: SyntheticWorld, tally: Tally) -> Figures:
    """The figures of a crawl."""
    sites = [site for site in world.sites.values() if site.robots != "closed"]
    pages = [url for site in sites for url in world.live_pages(site.name, world.start_s)]
    kinds = Counter(tally.fetched.values())
    known = Counter(is_trap(world, url) for url in tally.known)
    wasted = sum(times for kind, times in kinds.items() if kind.startswith("waste"))
    return Figures(
        len(pages),
        len(tally.fetched),
        wasted,
        sum(url in tally.fetched for url in pages),
        known[True],
        known[False],
        dict(sorted(kinds.items())),
    )


def is_trap(world: SyntheticWorld, url: str) -> bool:
    """Whether a URL, by its spelling, leads to nothing that is not had elsewhere."""
    return world.classify_url(url) in _WASTEFUL or "?" in url or url.split("/", 3)[2] not in world.sites


def worlds_of(names: list[str], size: str, seed: int) -> Iterator[tuple[str, SyntheticWorld, Site]]:
    """The worlds of these names, each with the way in which URLs are spelled there."""
    for name in names:
        if name in _STEPS:
            yield name, harsh(SIZES[size], seed, _STEPS[name]), _AS_IT_IS
        else:
            yield name, open_synthetic_world(size, seed, calm=name == "calm"), _TIDY


@dataclass(frozen=True, slots=True)
class Row:
    """One crawl of one world."""

    world: str
    seed: int
    budgets: bool
    figures: Figures

    def __str__(self) -> str:
        one = self.figures
        budgets = "yes" if self.budgets else "no"
        return (
            f"{self.world:8}{self.seed:5}{budgets:>9}{one.pages:8}{one.recall:10.1%}{one.fetches:9}{one.waste:9.1%}"
            f"{one.trap_urls:11}{one.real_urls:11}"
        )


def rows_of(name: str, seed: int, world: SyntheticWorld, spelling: Site, *, sitemaps: bool) -> Iterator[Row]:
    """A world crawled with budgets, then without."""
    most = 10**9
    for traps in (TrapDetector(), None):
        tally = Simulation(world, traps, spelling, sitemaps=sitemaps).run(most)
        row = Row(name, seed, traps is not None, figures_of(world, tally))
        most = 2 * row.figures.fetches
        yield row


def calls_of(hosts: int) -> Iterator[tuple[str, str, str | None]]:
    """What a coordinator would report about a crawl of the loopback web: ``found``, ``went``, ``came``, with URLs."""
    from bench.peers.pages import address, made_page, path_of

    pages = {
        f"http://{address(host)}:8000{path_of(number)}": (host, number, 8000)
        for host in range(hosts)
        for number in range(100)
    }
    starts = [f"http://{address(host)}:8000/" for host in range(hosts)]
    queues = [deque([start]) for start in starts]
    known = dict.fromkeys(starts)
    yield from (("found", start, None) for start in starts)
    while any(queues):
        for queue in queues:
            batch = [queue.popleft() for _ in range(min(8, len(queue)))]
            yield from (("went", url, None) for url in batch)
            yield from (("came", url, None) for url in batch)
            for url in batch:
                for href in _HREF.findall(made_page(*pages[url])):
                    link = resolve(href.decode(), url) or url
                    if link not in known:
                        known[link] = None
                        queues[pages[link][0]].append(link)
                        yield "found", link, url


def cost_us(hosts: int) -> tuple[int, float]:
    """How many pages a crawl of the loopback web has, and the cost of the budgets for each."""
    calls = list(calls_of(hosts))
    registrable_domain("a.test")  # so that its list is available
    ids = {url: id_ for id_, (what, url, _) in enumerate(calls) if what == "found"}
    rich = FetchYield(1500)
    thrift = TrapFilter(_NoRules())
    started_s = time.process_time()
    for what, url, source in calls:
        if what == "found":
            thrift.traps.add_url(url, source, is_named=False)
        elif what == "went":
            thrift.judge(url, _TIDY)
            thrift.on_request(ids[url], url)
        else:
            thrift.on_result(ids[url], rich)
    return len(ids), (time.process_time() - started_s) / len(ids) * 1e6


def main() -> None:
    """Crawl each world with and without budgets, print the table and the JSON line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="small", choices=list(SIZES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    parser.add_argument("--worlds", nargs="+", default=["made", "half", "harsh", "calm"])
    parser.add_argument("--no-sitemaps", action="store_true")
    parser.add_argument("--cost", action="store_true")
    arguments = parser.parse_args()
    if arguments.cost:
        pages, spent_us = cost_us(80)
        print(json.dumps({"pages": pages, "cpu_us_per_page": round(spent_us, 1)}))
        return
    print(f"{'world':8}{'seed':>5}{'budgets':>9}{'pages':>8}{'of these':>10}{'fetches':>9}{'wasted':>9}", end="")
    print(f"{'trap URLs':>11}{'real URLs':>11}")
    rows: list[Row] = []
    for seed in arguments.seeds:
        for name, world, spelling in worlds_of(arguments.worlds, arguments.size, seed):
            for row in rows_of(name, seed, world, spelling, sitemaps=not arguments.no_sitemaps):
                rows.append(row)
                print(row, flush=True)
    kept = [row for row in rows if row.budgets]
    worst = {
        name: [
            round(min(row.figures.recall for row in kept if row.world == name), 4),
            round(max(row.figures.waste for row in kept if row.world == name), 4),
        ]
        for name in arguments.worlds
    }
    print(json.dumps({"size": arguments.size, "worst_recall_and_waste": worst}))


if __name__ == "__main__":
    main()
