"""Describe decisions about a URL for console and command line: the facts of ``runtime.explain.decisions``."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from vedette.engine.scheduling.poll_counts import ALERT_WEIGHT
from vedette.timeutil import DAY_S
from vedette.web.console.ui.scales import format_interval, format_percent, format_value, format_worth
from vedette.web.formatting import counted, number


class Fact(NamedTuple):
    """A line of a section on the Explain page; ``url`` is a URL it names, ``at_s`` the time it refers to."""

    name: str
    words: str
    url: str = ""
    at_s: float | None = None


def describe_refresh(refresh: dict[str, Any] | None) -> Iterator[Fact]:
    """Describe the refresh decision about a page: change rate, probability of a change, worth and last gain.

    Nothing is yielded if a fixed rule decides.

    >>> facts = {"rate_d": 1.0, "rate_low_d": 0.5, "rate_high_d": 2.0, "chance": 0.4, "worth": 0.7, "price": 0.8}
    >>> facts |= {"refetched": True, "changed": False, "gain": None, "counts": "changed main text"}
    >>> [fact.words for fact in describe_refresh(facts)][2:]
    ['0.7 now; fetched when it reaches the price, 0.8', 'found nothing new', 'changed main text']
    """
    if refresh is None:
        return
    if refresh["rate_d"] is not None:
        rates = (refresh["rate_d"], refresh["rate_low_d"], refresh["rate_high_d"])
        yield Fact("Changes", format_interval(*rates))
    if refresh.get("median_wait_d") is not None:
        yield Fact(
            "50% chance of a change", f"{format_value(refresh['median_wait_d'] * DAY_S, 's')} after its last fetch"
        )
    if refresh["chance"] is not None:
        causes = "".join(f"; {cause}" for cause in refresh.get("causes", ()))
        yield Fact("Probability of a change", f"{format_percent(refresh['chance'])} by now{causes}")
    if refresh.get("signal"):
        yield Fact("Change reported", f"by a {refresh['signal']}", at_s=refresh["signal_s"])
    if refresh["worth"] is not None:
        yield Fact("Worth of a fetch", _describe_refresh_worth(refresh))
    yield Fact("Last fetch", _describe_last_fetch(refresh))
    if refresh["counts"]:
        yield Fact("What counts as a change", refresh["counts"])


def _describe_refresh_worth(refresh: dict[str, Any]) -> str:
    now = f"{format_worth(refresh['worth'])} now"
    if refresh["price"] is None:
        return f"{now}; there is no price yet"
    reached = refresh["worth"] >= refresh["price"]
    when = "above the price" if reached else "fetched when it reaches the price"
    return f"{now}{', ' if reached else '; '}{when}, {format_worth(refresh['price'])}"


def _describe_last_fetch(refresh: dict[str, Any]) -> str:
    """Describe what a page's last fetch found; its gain may be zero if no search would notice the change."""
    if not refresh["refetched"]:
        return "was the first, so there is nothing to compare"
    if not refresh["changed"]:
        return "found nothing new"
    if refresh["gain"] is None:
        return "found a change; its gain is not measured yet"
    return f"found a change; it gained {format_worth(refresh['gain'])} in search quality"


def describe_first_fetch(first: dict[str, Any] | None) -> Iterator[Fact]:
    """Describe the decision on a URL's first fetch: expected gain, its origin, and worth against the price.

    Nothing is yielded if the URL was fetched already.

    >>> facts = {"gain": 0.5, "weighed": True, "usual": 0.25, "why": None, "names": ["Low tide"], "worth": 9.0}
    >>> facts |= {"price": 10.0, "by_links": 0.125}
    >>> facts |= {"matches": [{"query": "low tide", "share": 0.125, "places": ["links"]}]}
    >>> [fact.words for fact in describe_first_fetch(facts)]
    ['0.5 of one search, 2 times the average for its folder or host', \
'“low tide”, 12.5% of all searches, matched by its links', \
'0.125 of one search', \
'9, below the price of 10: it waits until the price falls or similar pages gain more; \
up to one fetch in ten goes to URLs like this']
    """
    if first is None:
        return
    yield Fact("Expected gain", _describe_gain(first))
    for one in first["matches"]:
        places = " and ".join(f"its {place}" for place in one["places"])
        yield Fact(
            "Matching query", f"“{one['query']}”, {100 * one['share']:.3g}% of all searches, matched by {places}"
        )
    if first["by_links"] is not None:
        yield Fact("By links alone", f"{first['by_links']:.3g} of one search")
    if first["worth"] is not None:
        yield Fact("Worth of a first fetch", _describe_first_worth(first))


def _describe_gain(first: dict[str, Any]) -> str:
    if first["gain"] is None:
        return f"unknown: {first['why']}; until then it is fetched breadth-first, or by what similar pages gained"
    words = f"{first['gain']:.3g} of one search"
    if not first["weighed"]:
        return f"{words}, the average for its folder or host; it was found after the last estimate"
    return (
        f"{words}, {first['gain'] / first['usual']:.2g} times the average for its folder or host"
        if first["usual"]
        else words
    )


def _describe_first_worth(first: dict[str, Any]) -> str:
    worth, price = format_worth(first["worth"]), format_worth(first["price"])
    if first["price"] is None:
        return f"{worth}; there is no price without a fetch budget"
    if first["worth"] >= first["price"]:
        return f"{worth}, at a price of {price}"
    below = f"{worth}, below the price of {price}"
    until = "it waits until the price falls or similar pages gain more; up to one fetch in ten goes to URLs like this"
    return f"{below}: {until}"


def describe_polling(look: dict[str, Any] | None) -> Iterator[Fact]:
    """Describe the polling decision about a discovery source: new links, expected yield, similar sources.

    Nothing is yielded for a page that is no source.

    >>> facts = {"an_hour": 0.5, "low": 0.25, "high": 1.0, "expected": 2.04, "looks": 9, "found": 1, "wasted": 8}
    >>> facts |= {"busiest_hours": (8, 9), "alike": ["https://a.example/feed"], "alike_share": [0.62], "watched": 0.5}
    >>> for fact in describe_polling(facts):
    ...     print(fact.words)
    about 12 per day (6 to 24), most at 8:00 and 9:00 UTC
    about 2.0 new pages if polled now
    9 polls found 1 new page; 8 found nothing
    https://a.example/feed (62% of its new links)
    50%; new pages from this source count 2.5 times as much
    """
    if look is None:
        return
    yield Fact("New links", _describe_rate(look))
    yield Fact("Expected yield", f"about {look['expected']:.1f} new pages if polled now")
    yield Fact("Polls so far", _describe_polls(look))
    if look["alike"]:
        pairs = zip(look["alike"], look["alike_share"], strict=True)
        overlaps = ", ".join(f"{url} ({100 * share:.0f}% of its new links)" for url, share in pairs)
        yield Fact("Overlaps with", overlaps, url=look["alike"][0])
    if look["watched"]:
        times = 1.0 + (ALERT_WEIGHT - 1.0) * look["watched"]
        part = "all" if look["watched"] == 1 else f"{100 * look['watched']:.0f}%"
        yield Fact("Watched links", f"{part}; new pages from this source count {times:.2g} times as much")


def _describe_rate(look: dict[str, Any]) -> str:
    mean, low, high = (_format_number(24 * look[name]) for name in ("an_hour", "low", "high"))
    hours = " and ".join(f"{hour}:00" for hour in sorted(look["busiest_hours"]))
    return f"about {mean} per day ({low} to {high})" + (f", most at {hours} UTC" if hours else "")


def _describe_polls(look: dict[str, Any]) -> str:
    if not look["looks"]:
        return "none since its first fetch"
    found = f"{counted(look['looks'], 'poll')} found {counted(look['found'], 'new page')}"
    return f"{found}; {number(look['wasted'])} found nothing"


def _format_number(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def describe_ranking(ranking: dict[str, Any] | None) -> Iterator[Fact]:
    """Describe how ranking treats a page: what orders results, its clicks, and how often it was explored.

    Nothing is yielded before the first search.

    >>> facts = {"order": "by relevance: 3 clicks are too few to learn from", "guard_until_s": None, "general": None}
    >>> facts |= {"likes": None, "looks": None, "expected": None, "tried": None}
    >>> [fact.words for fact in describe_ranking(facts)]
    ['by relevance: 3 clicks are too few to learn from']
    """
    if ranking is None:
        return
    yield Fact("Ranking", ranking["order"], at_s=ranking["guard_until_s"])
    if ranking["looks"] is not None:
        yield Fact("Visitors", _describe_users(ranking))
    if ranking["tried"] is not None:
        shown, clicks = counted(ranking["tried"]["shown"], "time"), counted(ranking["tried"]["clicks"], "time")
        yield Fact("On trial", f"shown {shown}, clicked {clicks}", at_s=ranking["tried"]["first_s"])


def _describe_users(ranking: dict[str, Any]) -> str:
    looks, likes, expected = ranking["looks"], ranking["likes"], format_percent(ranking["expected"])
    words = f"about {looks:.0f} recent views, {likes:.0f} likes; expected like rate {expected}"
    return f"{words}, average page {format_percent(ranking['general'])}" if ranking["general"] else words


_KIND_LABELS = {
    "first": "a first fetch",
    "refresh": "a refresh, to pick up changes",
    "look": "a poll for new links",
    "gone": "a recheck, because it was missing or had moved",
}


def describe_budget(budget: dict[str, Any] | None) -> Iterator[Fact]:
    """Describe the budget decision about a URL: kind of its next fetch, cost, and its site's fetches today.

    Its worth is described with the expected gain of the fetch.

    >>> facts = {"kind": "first", "cost": None}
    >>> facts |= {"site_today": 12, "all_today": 48, "site_share": 0.2}
    >>> [fact.words.replace("\N{NARROW NO-BREAK SPACE}", " ") for fact in describe_budget(facts)]
    ['a first fetch', '12 of 48 fetches today, 25%; reserved share 20%']
    """
    if budget is None:
        return
    yield Fact("Purpose", _KIND_LABELS[budget["kind"]])
    if budget["cost"] is not None:
        hour = ", in a busy hour of its site" if budget["is_busy"] else ""
        cost = format_worth(budget["cost"])
        yield Fact("Cost", f"{cost} times an average fetch, by its size and the response time of its host{hour}")
    yield Fact("Fetches of its site", _describe_site(budget))


def _describe_site(budget: dict[str, Any]) -> str:
    own, everything, share = budget["site_today"], budget["all_today"], budget["site_share"]
    part = f", {format_percent(own / everything)}" if everything else ""
    limit = f"; reserved share {format_percent(share)}" if share is not None else ""
    return f"{number(own)} of {number(everything)} fetches today{part}{limit}"
