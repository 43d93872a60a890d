"""Measure what outages during a crawl cost: fetched pages, failed pages, wasted requests.

A site of 60 pages in memory with a simulated clock, crawled by the live coordinator and fetchers. A page given up
before weeks have passed counts as failed. ``make bench-outages``.
"""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.engine.memory_web import Drive, MemoryWeb, Named, Reply, Served, page, rules_for

from vedette.model import Failure, Site

START, START_S, PAGES = "http://a.test", 1000.0, 60
MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0
ADDRESS = ("93.184.216.34",)
# Soon after the start; a name only matters when its address has run out after half an hour.
SERVER_BREAKS_S, NAME_BREAKS_S = START_S + 30.0, START_S + 1700.0
OUTAGES: tuple[tuple[str, Served, float], ...] = (
    ("TLS fault, 1 minute", Failure.TLS, MINUTE_S),
    ("no connection, 10 minutes", Failure.CONNECT, 10 * MINUTE_S),
    ("too slow, 1 hour", Failure.TIMEOUT, HOUR_S),
    ("status 503, 1 hour", Reply(503), HOUR_S),
    ("status 500, 1 hour", Reply(500), HOUR_S),
    ("no connection, 3 days", Failure.CONNECT, 3 * DAY_S),
    ("resolver silent, 1 hour", Failure.RESOLVER, HOUR_S),
    ("name does not exist, 1 hour", Failure.NAME, HOUR_S),
    ("name does not exist, 1 day", Failure.NAME, DAY_S),
)


def measure(broken: Served, for_s: float) -> dict[str, float]:
    """Crawl through an outage; return pages, failures, wasted requests, and minutes from its end to the last page."""
    name = broken if broken in {Failure.NAME, Failure.RESOLVER} else None
    since_s = SERVER_BREAKS_S if name is None else NAME_BREAKS_S
    urls = [f"{START}/", *(f"{START}/{number}" for number in range(1, PAGES))]

    def serve(fine: Reply, now_s: float) -> Served:
        return broken if name is None and since_s <= now_s < since_s + for_s else fine

    def look_up(now_s: float) -> Named:
        return name if isinstance(name, Failure) and since_s <= now_s < since_s + for_s else ADDRESS

    replies = {url: lambda now_s, url=url: serve(page(*urls, title=url), now_s) for url in urls}
    web = MemoryWeb({**replies, f"{START}/robots.txt": lambda now_s: serve(Reply(404), now_s)}, {"a.test": look_up})
    site = Site(f"{START}/", overrule=("trap", "copy"))  # the pages have no text
    rules = rules_for(site, delay_s=1.0 if name is None else 45.0)
    drive = Drive(web, rules, patient=True).begin().run()
    end_s = since_s + for_s
    return {
        "pages": len(drive.pages()),
        "failed": len(drive.given_up()),
        "in_vain": sum(since_s <= asked.sent_s < end_s for asked in drive.log) if name is None else 0,
        "minutes_after": round((max(one.fetched_s for one in drive.pages().values()) - end_s) / 60.0, 1),
    }


def main() -> None:
    """Print a table, and all numbers as JSON."""
    rows = {words: measure(broken, for_s) for words, broken, for_s in OUTAGES}
    print("| outage in mid-crawl | pages | failed | requests in vain | last page after its end |")
    print("|---|---|---|---|---|")
    for words, row in rows.items():
        pages = f"{row['pages']} of {PAGES}"
        print(f"| {words} | {pages} | {row['failed']} | {row['in_vain']} | {row['minutes_after']:.0f} min |")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
