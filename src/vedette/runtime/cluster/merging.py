"""Merge what the console shows of several shards: sums, weighted means, and the most urgent rows."""

from collections.abc import Callable, Iterable, Sequence
from heapq import merge
from itertools import islice
from math import inf
from typing import TypeVar

from vedette.web.console.ports.monitoring import (
    BudgetReport,
    CalibrationBin,
    CrawlStatus,
    DiscoveryReport,
    HostList,
    RefreshStatus,
    SpendingLine,
    StoragePart,
    StorageStatus,
)
from vedette.web.console.ports.sites import UnlistedHost

T = TypeVar("T")


def sum_counts(each: Iterable[dict[str, int]]) -> dict[str, int]:
    """Sum counts by name.

    >>> sum_counts([{"a": 1}, {"a": 2, "b": 3}])
    {'a': 3, 'b': 3}
    """
    found: dict[str, int] = {}
    for counts in each:
        for name, count in counts.items():
            found[name] = found.get(name, 0) + int(count)
    return found


def merge_hosts(every: Sequence[HostList]) -> HostList:
    """Merge the queues of shards, hosts with most waiting URLs first."""
    rows = sorted((row for one in every for row in one.rows), key=lambda row: -row.waiting)
    return HostList(tuple(rows), sum(one.total for one in every))


def merge_refresh(every: Sequence[RefreshStatus]) -> RefreshStatus:
    """Merge the refresh statuses of shards, which all use the same policy."""
    judged = sum(one.judged for one in every if one.current is not None)
    bins = [
        CalibrationBin(*(sum(column) for column in zip(*row, strict=True)))
        for row in zip(*(one.calibration for one in every if one.calibration), strict=True)
    ]
    most = max((len(one.soon) for one in every), default=0)
    return RefreshStatus(
        policy=next((one.policy for one in every if one.policy), ""),
        price=_average([(one.price, one.refreshes) for one in every if one.price is not None]),
        refreshes=sum(one.refreshes for one in every),
        wasted=sum(one.wasted for one in every),
        calibration=tuple(bins),
        current=_average([(one.current, one.judged) for one in every if one.current is not None]),
        judged=judged,
        soon=tuple(islice(merge(*(one.soon for one in every), key=lambda page: page.due_s), most)),
    )


def merge_discovery(every: Sequence[DiscoveryReport]) -> DiscoveryReport:
    """Merge the discovery reports of shards."""
    pages = sorted((page for one in every for page in one.pages), key=lambda page: -page.found_s)
    sources = sorted((line for one in every for line in one.sources), key=lambda line: -line.rate_d)
    return DiscoveryReport(
        tuple(pages),
        tuple(sources),
        sum(one.looks for one in every),
        sum(one.found for one in every),
        sum(one.wasted for one in every),
    )


def merge_budget(every: Sequence[BudgetReport]) -> BudgetReport:
    """Merge the budget reports of shards; the budget and the price are the same on all shards."""
    most = max((len(one.held) for one in every), default=0)
    first = every[0] if every else BudgetReport()
    return BudgetReport(
        per_s=first.per_s,
        budget=first.budget,
        price=_average([(one.price, one.fetches) for one in every if one.price is not None]),
        since_s=max((one.since_s for one in every), default=0.0),
        kinds=_merge_lines(one.kinds for one in every),
        sites=_merge_lines((one.sites for one in every), lambda line: -line.fetches),
        ever=_merge_lines(one.ever for one in every),
        held_urls=sum(one.held_urls for one in every),
        held=tuple(sorted((line for one in every for line in one.held), key=lambda line: -line.worth)[:most]),
    )


def _merge_lines(
    every: Iterable[Sequence[SpendingLine]], key: Callable[[SpendingLine], float] | None = None
) -> tuple[SpendingLine, ...]:
    """Sum lines of the same name; shares are relative to the new total."""
    found: dict[str, SpendingLine] = {}
    for line in (line for lines in every for line in lines):
        before = found.get(line.name)
        if before is None:
            found[line.name] = line
            continue
        names = ("fetches", "failed", "bytes", "seconds", "changed", "found", "measured", "gain")
        sums = {name: getattr(before, name) + getattr(line, name) for name in names}
        found[line.name] = before._replace(**sums, part=before.part if before.part is not None else line.part)
    total = sum(line.fetches for line in found.values())
    lines = [line._replace(share=line.fetches / total if total else 0.0) for line in found.values()]
    return tuple(lines if key is None else sorted(lines, key=key))


def merge_storage(every: Sequence[StorageStatus], place: str) -> StorageStatus:
    """Merge the disk usage of shards; the free space is that of the fullest disk."""
    sizes: dict[tuple[str, str], float] = {}
    for part in (part for one in every for part in one.parts):
        sizes[part.name, part.words] = sizes.get((part.name, part.words), 0.0) + part.size_bytes
    parts = tuple(StoragePart(name, words, size) for (name, words), size in sizes.items())
    free = min((one.free_bytes for one in every), default=0)
    return (every[0] if every else StorageStatus())._replace(parts=parts, free_bytes=free, folder=place)


def merge_unlisted(every: Iterable[Sequence[UnlistedHost]], most: int) -> list[UnlistedHost]:
    """Merge the unlisted hosts of shards; linking domains are not counted twice, since each is in one shard."""
    found: dict[str, UnlistedHost] = {}
    for row in (row for rows in every for row in rows):
        before = found.get(row.host)
        found[row.host] = (
            row
            if before is None
            else before._replace(
                pages=before.pages + row.pages,
                domains=before.domains + row.domains,
                first_s=min(before.first_s, row.first_s),
            )
        )
    return sorted(found.values(), key=lambda row: (-row.domains, -row.pages, row.host))[:most]


def merge_gains(every: Iterable[Sequence[tuple[float, float]]]) -> list[tuple[float, float]]:
    """Merge gains by the end of their intervals, earliest first."""
    found: dict[float, float] = {}
    for at_s, gain in (pair for pairs in every for pair in pairs):
        found[at_s] = found.get(at_s, 0.0) + gain
    return sorted(found.items())


def merge_crawl(told: CrawlStatus, every: Sequence[CrawlStatus]) -> CrawlStatus:
    """Add the numbers that only the shards themselves know to the sums of all shards."""
    held: dict[str, tuple[int, int]] = {}
    for row in (row for one in every for row in one.held):
        urls, real = held.get(row.start, (0, 0))
        held[row.start] = urls + row.urls, real + row.real
    rows = {row.start: row for one in every for row in one.held}
    merged = [rows[start]._replace(urls=urls, real=real) for start, (urls, real) in held.items()]
    return told._replace(
        is_busy=any(one.is_busy for one in every),
        age_s=max((one.age_s for one in every), default=0.0),
        unindexed=sum(one.unindexed for one in every),
        need_script=sum(one.need_script for one in every),
        held=tuple(sorted(merged, key=lambda row: -row.real)),
        has_budget=any(one.has_budget for one in every),
        failing=tuple(row for one in every for row in one.failing),
        exceeded=tuple(row for one in every for row in one.exceeded),
    )


def merge_latest(lists: Iterable[Sequence[T]], key: Callable[[T], float], most: int) -> list[T]:
    """Merge lists by a time, latest first."""
    return sorted((row for rows in lists for row in rows), key=lambda row: -key(row))[:most]


def _average(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Return the weighted mean, or the plain mean if all weights are 0.

    >>> _average([(1.0, 3.0), (2.0, 1.0)]), _average([(1.0, 0.0), (2.0, 0.0)]), _average([])
    (1.25, 1.5, None)
    """
    pairs = [(value, weight) for value, weight in pairs if value < inf]
    if not pairs:
        return None
    whole = sum(weight for _, weight in pairs)
    if not whole:
        return sum(value for value, _ in pairs) / len(pairs)
    return sum(value * weight for value, weight in pairs) / whole
