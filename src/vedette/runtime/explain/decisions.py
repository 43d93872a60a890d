"""Collect the facts of decisions about a URL: refresh, polling, first fetch, budget and ranking.

They are plain values; ``web.console.explain.decision_text`` puts them into words. They are read from disk, so no
coordinator needs to run.
"""

import sqlite3
from math import inf, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from vedette.adapters.crawl_store.reader import StateReader
from vedette.adapters.index_store.generations import Generations
from vedette.adapters.index_store.impact_store import ImpactEstimates, read_info, read_link_impact
from vedette.adapters.index_store.indexer_store import read_anchors
from vedette.engine.coordinator.state import CrawlRules
from vedette.engine.ports import KnownPage, PageRow
from vedette.engine.scheduling.fetch_cost import BusySites
from vedette.engine.scheduling.policy_memory import PolicyVerdict
from vedette.engine.scheduling.polling import WAITS, SourcePoller, SourceSummary
from vedette.engine.scheduling.price_controller import load_policy
from vedette.engine.scheduling.refresh import RefreshScheduler
from vedette.engine.scheduling.schedule import is_good, is_source
from vedette.errors import StoreError
from vedette.frontier.impact.estimates import ImpactOrder, UnseenWithGain
from vedette.frontier.impact.url_features import MAX_TEXT_LENGTH, tokenize_texts
from vedette.model import Site, fingerprint
from vedette.runtime.monitoring.budget import count_site_today
from vedette.runtime.search.reputation_store import ReputationFile, describe_ranking, load_ranking_status
from vedette.text import hash_words

JsonObject = dict[str, Any]


def collect_polling(id_: int, reader: StateReader, now_s: float, live: JsonObject | None = None) -> JsonObject | None:
    """Collect the facts of the polling decision about a discovery source; None if the page is no source.

    ``live`` has the estimates of a running coordinator (``commands``); otherwise those last saved are used.
    """
    summary, reason = (SourceSummary(**live["told"]), live["reason"]) if live else _load_stored(id_, reader, now_s)
    looks = reader.store.get_known_pages([id_])
    if summary is None or not looks:
        return None
    share = dict(zip(summary.alike, summary.alike_share, strict=True))
    alike = {look.url: share[look.page.id] for look in reader.store.get_known_pages(summary.alike)}
    alike = dict(sorted(alike.items(), key=lambda one: -one[1]))
    reason = WAITS if looks[0].page.due_s == inf else reason
    return {**summary._asdict(), "alike": list(alike), "alike_share": list(alike.values()), "reason": reason}


def _load_stored(id_: int, reader: StateReader, now_s: float) -> tuple[SourceSummary | None, str]:
    poller = SourcePoller(reader.store)
    return poller.summarize_source(id_, now_s), poller.explain([id_], now_s).get(id_, "")


# Worth and price come from a running coordinator, which alone knows the budget; otherwise they are omitted.


MAX_MATCHES, MAX_NAMES = 3, 8


def collect_first_fetch(id_: int, url: str, depth: int, folder: Path, live: JsonObject | None) -> JsonObject:
    """Collect the facts of the decision on a URL's first fetch: expected gain, matching queries, worth, price.

    ``gain`` is None if there is no estimate; ``why`` says why.
    """
    index = folder / "index"
    expected, info = ImpactEstimates(index), read_info(index) or {}
    ids = np.array([id_], np.uint32)
    own, gain = float(expected.get_known(ids)[0]), float(expected.get_gains(ids, [url])[0])
    names = _load_names(url, folder)
    batch = UnseenWithGain(np.array([depth]), np.array([id_]), np.array([max(len(names), 1)]), np.array([gain]))
    return {
        "gain": gain if isfinite(gain) else None,
        "weighed": isfinite(own),
        "usual": _estimate_usual(expected, url),
        "by_links": read_link_impact(index, id_),
        "why": None if isfinite(gain) else str(info.get("why") or "there is no estimate yet"),
        "matches": _find_matches(url, names, info.get("frequent")),
        "names": [text[:MAX_TEXT_LENGTH] for text in names],
        "worth": live.get("first_worth") if live else None,
        "price": live.get("price") if live else None,
        "reason": ImpactOrder().reason((), batch, 0, 0.0),
    }


def _estimate_usual(expected: ImpactEstimates, url: str) -> float | None:
    """Estimate the usual gain of a first fetch among URLs of the same host or folder."""
    usual = float(expected.get_gains(np.zeros(1, np.uint32), [url])[0])
    return usual if isfinite(usual) else None


def _load_names(url: str, folder: Path) -> list[str]:
    """Load the anchor texts of links to a URL that was not fetched yet."""
    generation = Generations(folder).current()
    try:
        return [text for _, text in read_anchors(generation, [fingerprint(url)], MAX_NAMES)] if generation else []
    except (sqlite3.Error, StoreError):  # it is just being created, or was deleted
        return []


def _find_matches(url: str, names: list[str], frequent: object) -> list[JsonObject]:
    """Find the frequent queries whose words all occur in a URL or in links to it, most frequent first."""
    strings = tokenize_texts([url], [(0, text) for text in names])
    owner = np.repeat(strings.is_anchor, np.diff(strings.start))
    in_links, in_address = (frozenset(strings.words[which].tolist()) for which in (owner, ~owner))
    found = []
    for query, share in _parse_queries(frequent):
        words = hash_words(query.encode("utf-8", "replace")).tolist()
        if words and all(word in in_links or word in in_address for word in words):
            places = [name for name, some in (("links", in_links), ("address", in_address)) if some & set(words)]
            found.append({"query": query, "share": share, "places": places})
    return sorted(found, key=lambda one: -float(str(one["share"])))[:MAX_MATCHES]


def _parse_queries(frequent: object) -> list[tuple[str, float]]:
    """Parse the frequent queries with their shares from impact data, ignoring malformed rows."""
    rows = frequent if isinstance(frequent, list) else []
    return [
        (row[0], float(row[1]))
        for row in rows
        if isinstance(row, list) and len(row) > 1 and isinstance(row[0], str) and isinstance(row[1], int | float)
    ]


def collect_budget(
    url: str, page: PageRow | None, site: Site, decisions: JsonObject, reader: StateReader, now_s: float
) -> JsonObject:
    """Collect the facts of the budget decision about a URL: kind of fetch, cost, its site's fetches today.

    ``decisions`` has the facts of ``refresh`` and ``look`` (polling). ``cost`` is None if unknown; it is higher if the
    site ``is_busy`` now.
    """
    own, everything = count_site_today(reader.store, site.start, now_s)
    kind = _fetch_kind(url, page, is_looked_at=decisions["look"] is not None)
    refresh = decisions["refresh"] if kind == "refresh" else None
    return {
        "kind": kind,
        "cost": refresh["cost"] if refresh else None,
        "is_busy": bool(BusySites([site]).find_factors([url], now_s)[0] > 1),
        "site_today": int(own),
        "all_today": int(everything),
        "site_share": site.share,
    }


def _fetch_kind(url: str, page: PageRow | None, *, is_looked_at: bool) -> str:
    if page is None:
        return "first"
    if not is_good(page.status):
        return "gone"
    return "look" if is_looked_at or is_source(url, page.kind) else "refresh"


def collect_ranking(id_: int, url: str, folder: Path, now_s: float) -> JsonObject | None:
    """Collect the facts of ranking decisions about a page; None before any search was recorded.

    ``likes``, ``looks`` and ``expected`` are None if learning is not in use, or has no data on the page.
    """
    generations = Generations(folder)
    status = load_ranking_status(generations.folder)
    if status is None or not status.searches:
        return None
    tried = next((page for page in status.promoted if page.url == url), None)
    return {
        "order": describe_ranking(status, now_s),
        "guard_until_s": status.guard.until_s if status.guard.is_active(now_s) else None,
        **_describe_reputation(id_, generations.current()),
        "general": status.general if status.is_learned else None,
        "tried": tried._asdict() if tried else None,
    }


def _describe_reputation(id_: int, generation: Path | None) -> JsonObject:
    nothing = {"likes": None, "looks": None, "expected": None}
    if generation is None:
        return nothing
    file = ReputationFile(generation)
    file.refresh()
    reputation = file.reputation
    at = int(np.searchsorted(reputation.page, id_)) if reputation is not None else 0
    if reputation is None or at >= len(reputation.page) or reputation.page[at] != id_:
        return nothing
    return {
        "likes": float(reputation.likes[at]),
        "looks": float(reputation.looks[at]),
        "expected": float(reputation.mean[at]),
    }


_CHANGE_WORDS = {
    "bytes": "any changed byte",
    "text": "changed visible text",
    "main": "changed main text",
    "links": "changed links",
    "queries": "changed main text that affects words people search for",
}


def collect_refresh(id_: int, site: Site | None, reader: StateReader, now_s: float) -> JsonObject | None:
    """Collect the facts of the refresh decision about a fetched page; None if a fixed rule decides.

    Also None before the policy has learned anything.
    """
    looks = reader.store.get_known_pages([id_])
    policy = load_policy(reader.store)
    if not looks or policy is None:
        return None
    rules = CrawlRules(sites=(site,) if site else (), refresh=policy)
    verdict = RefreshScheduler(rules, reader.store).explain_page(looks[0], now_s)
    return _describe_page(looks[0], verdict, site) | _describe_signal(looks[0], reader) if verdict is not None else None


def _describe_signal(look: KnownPage, reader: StateReader) -> JsonObject:
    """Return the kind and time of a change signal received since the page's last fetch, as plain values."""
    signal = reader.store.find_signal(look.page.id)
    at_s, kind = signal if signal is not None and signal[0] > look.page.fetched_s else (None, None)
    return {"signal": kind, "signal_s": at_s}


def _describe_page(look: KnownPage, verdict: PolicyVerdict, site: Site | None) -> JsonObject:
    page, state = look.page, look.state
    return {
        **verdict._asdict(),
        "refetched": state.before_s is not None,
        "changed": page.changed_s == page.fetched_s if state.before_s is not None else None,
        "gain": state.gain,
        "views": state.views,
        "counts": _CHANGE_WORDS[site.change] if site else None,
    }
