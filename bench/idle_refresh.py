"""How often are the pages of a site of 200 fetched in a week without a budget, with and without idle time?

    python bench/idle_refresh.py

A coordinator and two fetchers run over a web in memory, at virtual times: no network, no sleeping. A tenth of the pages
change daily, a fifth weekly, the rest never; every page answers with its whole text. The last line is one JSON object.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from random import Random
from statistics import mean

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs as a script
from tests.engine.memory_web import Drive, MemoryWeb, Reply, Served, Server, rules_for

from vedette.timeutil import DAY_S

SITE = "https://site.test"
PAGES, DAYS = 200, 7
KINDS = {"changes daily": DAY_S, "changes weekly": 7 * DAY_S, "never changes": float("inf")}
HOUR_S = 3_600.0


def main() -> int:
    """Run both weeks and print a table."""
    print(f"{'':<16}{'pages':>6}{'fetched again':>16}{'current':>10}")
    told: dict[str, float] = {}
    for share in (0.0, 0.1):
        drive = _run(share)
        again = Counter(asked.url for asked in drive.log if asked.purpose == "page")
        busiest = Counter(asked.sent_s // HOUR_S for asked in drive.log[PAGES + 2 :]).most_common(1)
        most = busiest[0][1] if busiest else 0
        print(f"idle_share {share:.0%}: {sum(again.values())} fetches, at most {most} in an hour after the first crawl")
        for kind in KINDS:
            urls = [url for url in map(_name, range(PAGES)) if _kind(url) == kind]
            times, current = mean(again[url] - 1 for url in urls), mean(_measure_current(drive, url) for url in urls)
            told |= {f"{share:.0%} {kind}": round(times, 2), f"{share:.0%} {kind}, current": round(current, 3)}
            print(f"  {kind:<14}{len(urls):>6}{times:>16.1f}{current:>10.0%}")
    print(json.dumps(told))
    return 0


def _run(share: float) -> Drive:
    replies: dict[str, Served | Server] = {f"{SITE}/list": _page("list", [_name(number) for number in range(PAGES)])}
    replies |= {_name(number): _serve(_name(number)) for number in range(PAGES)}
    rules = rules_for(f"{SITE}/list", recrawl=True, idle_share=share)
    return Drive(MemoryWeb(replies), rules).begin().run(DAYS * DAY_S)


def _name(number: int) -> str:
    return f"{SITE}/section-{number % 10}/page-{number}"


def _kind(url: str) -> str:
    number = int(url.rpartition("-")[2])
    return "changes daily" if number % 10 == 0 else "changes weekly" if number % 10 in {1, 2} else "never changes"


def _version(url: str, now_s: float) -> int:
    """Return how often a page has changed; each at its own time of the interval."""
    interval_s, number = KINDS[_kind(url)], int(url.rpartition("-")[2])
    return int((now_s + interval_s * number / PAGES) // interval_s) if interval_s < float("inf") else 0


def _serve(url: str) -> Server:
    return lambda now_s: _page(f"{url} in version {_version(url, now_s)}", [])


def _page(title: str, links: list[str]) -> Reply:
    anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    rng = Random(title)  # noqa: S311 - a text, no secret
    words = " ".join("".join(rng.choices("abcdefghijklmnop", k=6)) for _ in range(120))
    body = f"<title>{words[:40]}</title><h1>{words[:40]}</h1><p>{words}</p>{anchors}".encode()
    return Reply(200, (("content-type", "text/html"),), body, 0.1)


def _measure_current(drive: Drive, url: str) -> float:
    """Measure for what part of the time the copy was the current one, since the first fetch."""
    fetched_s = [asked.sent_s for asked in drive.log if asked.url == url]
    moments_s = [fetched_s[0] + step * HOUR_S for step in range(int((drive.now_s - fetched_s[0]) // HOUR_S))]
    held = [max(at_s for at_s in fetched_s if at_s <= moment_s) for moment_s in moments_s]
    return mean(_version(url, at_s) == _version(url, moment_s) for at_s, moment_s in zip(held, moments_s, strict=True))


if __name__ == "__main__":
    sys.exit(main())
