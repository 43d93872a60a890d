"""What the first page and the filters say of an index: how much of what, and how fresh."""

from collections.abc import Mapping, Sequence

import numpy as np

from vedette.adapters.index_store.page_table import PageTable
from vedette.index.fields import PUBLIC
from vedette.index.query.retrieval import Range
from vedette.model import Site, origin_of
from vedette.policy import Ints
from vedette.runtime.search.index_snapshot import LiveIndexSnapshot
from vedette.serve.slate import SearchResult, Snippet
from vedette.web.ports import FacetCount, IndexOverview

MAX_SITES = 100
MAX_NEWEST = 8


def build_overview(
    shelf: LiveIndexSnapshot,
    hosts: Mapping[int, str],
    sites: Sequence[Site],
    allowed: tuple[str, ...],
    now_s: float,
    since_s: float | None,
) -> IndexOverview:
    """Everything that a reader may see; with ``since_s`` also the newest pages that say they are younger than that."""
    table = shelf.table
    ids = _select_visible(table, allowed)
    if not len(ids):
        return IndexOverview(waiting=sum(not site.secrets for site in sites))
    fetched_s = table.rows["fetched_s"][ids]
    of_hosts = _count_values(table.rows["host"][ids])
    names = [FacetCount(hosts.get(host, ""), pages) for host, pages in of_hosts]
    present = {count.value for count in names}
    return IndexOverview(
        pages=len(ids),
        sites=tuple(names[:MAX_SITES]),
        kinds=_count_names(table, table.rows["kind"][ids]),
        languages=_count_names(table, table.rows["language"][ids]),
        newest_s=float(fetched_s.max()),
        median_age_s=max(now_s - float(np.median(fetched_s)), 0.0),
        waiting=sum(origin_of(site.start).host not in present for site in sites if not site.secrets),
        newest_pages=_list_newest(shelf, ids, since_s) if since_s is not None else (),
    )


def _select_visible(table: PageTable, allowed: tuple[str, ...]) -> Ints:
    ids = table.indexed
    access = table.rows["access"][ids]
    numbers = [number for number in np.unique(access).tolist() if table.get_name(number) in {PUBLIC, *allowed}]
    return ids[np.isin(access, numbers)]


def _count_values(values: Ints) -> list[tuple[int, int]]:
    """Values and how often each, the most frequent first."""
    found, counts = np.unique(values, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return list(zip(found[order].tolist(), counts[order].tolist(), strict=True))


def _count_names(table: PageTable, numbers: Ints) -> tuple[FacetCount, ...]:
    return tuple(
        FacetCount(name, pages) for number, pages in _count_values(numbers) if (name := table.get_name(number))
    )


def _list_newest(shelf: LiveIndexSnapshot, ids: Ints, since_s: float) -> tuple[SearchResult, ...]:
    rows = shelf.table.rows[ids]
    young = np.flatnonzero(rows["date_s"] >= since_s)
    latest = ids[young[np.argsort(-rows["date_s"][young], kind="stable")][: 2 * MAX_NEWEST]]
    # A row is written before the index commits: what is named here must be found by whoever follows the link.
    latest = np.array(
        [id_ for id_ in latest.tolist() if len(shelf.finder.find(Range("id", id_, id_), 1).ids)], np.int64
    )
    found = []
    for id_, stored in zip(latest[:MAX_NEWEST].tolist(), shelf.get_stored(latest[:MAX_NEWEST]), strict=True):
        row = shelf.table.rows[id_]
        if stored is not None:
            found.append(
                SearchResult(
                    id_,
                    stored.url,
                    stored.title,
                    Snippet(),
                    origin_of(stored.url).host,
                    stored.kind,
                    stored.language,
                    float(row["fetched_s"]),
                    float(row["date_s"]),
                    stored.published_s,
                    0.0,
                )
            )
    return tuple(found)
