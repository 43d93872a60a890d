"""Merged numbers of several shards: nothing is counted twice, and shares are of the whole."""

from vedette.adapters.crawl_store.reader import HeldCounts
from vedette.runtime.cluster.merging import (
    merge_budget,
    merge_crawl,
    merge_discovery,
    merge_gains,
    merge_refresh,
    merge_storage,
    merge_unlisted,
)
from vedette.web.console.ports.monitoring import (
    BudgetReport,
    CalibrationBin,
    CrawlStatus,
    DiscoveryReport,
    DuePage,
    FoundPage,
    RefreshStatus,
    SpendingLine,
    StoragePart,
    StorageStatus,
)
from vedette.web.console.ports.sites import UnlistedHost


def test_refreshes_are_summed_and_shares_weighted() -> None:
    """The pages due next are the first of all shards; a shard without judged pages does not affect the share."""
    one = RefreshStatus("p", 2.0, 10, 1, (CalibrationBin(1, 0.5, 1),), 0.9, 30, (DuePage("a", 1.0, ""),))
    other = RefreshStatus("p", 4.0, 30, 2, (CalibrationBin(2, 0.5, 0),), 0.5, 10, (DuePage("b", 0.5, ""),))
    merged = merge_refresh([one, other, RefreshStatus()])
    assert (merged.price, merged.refreshes, merged.wasted, merged.judged) == (3.5, 40, 3, 40)
    assert merged.calibration == (CalibrationBin(3, 1.0, 1),)
    assert merged.current == 0.8
    assert [page.url for page in merged.soon] == ["b"]
    assert merge_refresh([]) == RefreshStatus()


def test_spending_lines_of_one_name_are_one() -> None:
    """Their shares are of the fetches of all shards; the configured share of a site is kept."""
    one = BudgetReport(1.0, "1/s", None, 5.0, (SpendingLine("first", 3, 1.0),), (SpendingLine("s", 3, 1.0, part=0.2),))
    other = BudgetReport(1.0, "1/s", None, 5.0, (SpendingLine("first", 1, 1.0), SpendingLine("gone", 4, 0.8)))
    merged = merge_budget([one, other])
    assert [(line.name, line.fetches, line.share) for line in merged.kinds] == [("first", 4, 0.5), ("gone", 4, 0.5)]
    assert merged.sites == one.sites
    assert merge_budget([]) == BudgetReport()


def test_lists_are_merged_by_what_matters() -> None:
    """New pages are sorted by time, hosts by linking domains, gains by interval, disks by the fullest."""
    found = merge_discovery([DiscoveryReport((FoundPage(1.0),), (), 1, 2, 3), DiscoveryReport((FoundPage(2.0),))])
    assert [page.found_s for page in found.pages] == [2.0, 1.0]
    rows = [[UnlistedHost("x.test", 1, 1, 9.0, "a")], [UnlistedHost("x.test", 2, 3, 4.0, "b")]]
    assert merge_unlisted(rows, 5) == [UnlistedHost("x.test", 3, 4, 4.0, "a")]
    assert merge_gains([[(1.0, 2.0)], [(0.0, 1.0), (1.0, 3.0)]]) == [(0.0, 1.0), (1.0, 5.0)]
    disks = [StorageStatus((StoragePart("Index", "i", size),), free) for size, free in ((5.0, 10), (6.0, 20))]
    assert merge_storage(disks, "2 shards") == StorageStatus((StoragePart("Index", "i", 11.0),), 10, folder="2 shards")


def test_held_urls_of_a_site_are_summed() -> None:
    """The sums from PostgreSQL are kept, and what only shards know is added."""
    told, one = CrawlStatus(known=7), CrawlStatus(unindexed=1, held=(HeldCounts("s", 2, 1),))
    merged = merge_crawl(told, [one, one])
    assert (merged.known, merged.unindexed, merged.held) == (7, 2, (HeldCounts("s", 4, 2),))
