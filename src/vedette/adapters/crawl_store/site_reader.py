"""What a list of sites needs of a folder: how much each has, what came last, what went wrong last.

Each look goes once over a table, however many sites there are. It is for whoever can wait a moment.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from vedette.adapters.crawl_store.data_folder import read_state
from vedette.adapters.crawl_store.reader import FailedFetch, SiteCount, StateReader
from vedette.discover.urls.scope import SiteIndex
from vedette.model import Refusal, Site, origin_of

_FETCHED = "status BETWEEN 200 AND 299"
_KNOWN = "SELECT name, count(*) FROM url JOIN host ON host.id = url.host GROUP BY url.host"
_PAGES = f"SELECT name, count(*) FROM page JOIN host ON host.id = page.host WHERE {_FETCHED} GROUP BY page.host"  # noqa: S608 - our own words
_BELOW = (
    f"SELECT name, url, (SELECT 1 FROM page WHERE page.id = url.id AND {_FETCHED}) "  # noqa: S608 - our own words
    "FROM url JOIN host ON host.id = url.host WHERE name IN (SELECT value FROM json_each(?))"
)
_LAST_FETCH = "SELECT name, max(fetched_s) FROM page JOIN host ON host.id = page.host GROUP BY page.host"
# Of several rows of a group, SQLite gives the other columns of the one that has the maximum.
_LAST_MISHAP = (
    "SELECT name, url, why, max(at_s) FROM note JOIN url ON url.id = url_id JOIN host ON host.id = url.host "
    "WHERE NOT EXISTS (SELECT 1 FROM json_each(?) WHERE substr(why, 1, length(value)) = value) GROUP BY url.host"
)
_WITH_PAGES = f"SELECT url, (SELECT 1 FROM page WHERE page.id = url.id AND {_FETCHED}) FROM url WHERE partition = ?"  # noqa: S608 - our own words


class SiteReader(StateReader):
    """What people may ask of a folder, and what a list of its sites needs."""

    def count_by_site(self, sites: Sequence[Site]) -> dict[str, SiteCount]:
        """For each site, by its start, the URLs known and the pages kept that lie where it does."""
        known, pages = dict(self._db.execute(_KNOWN)), dict(self._db.execute(_PAGES))
        counts = {site.start: SiteCount(0, 0) for site in sites}
        index = SiteIndex(sites)
        for host, urls in known.items():
            for site in index.find_by_host(host):
                if site.scope != "prefix":
                    before = counts[site.start]
                    counts[site.start] = SiteCount(before.known + urls, before.pages + pages.get(host, 0))
        return counts | self._count_prefix_sites([site for site in sites if site.scope == "prefix"])

    def find_last_fetches(self) -> dict[str, float]:
        """When each host was last asked for a page and answered."""
        return dict(self._db.execute(_LAST_FETCH))

    def find_last_failures(self) -> dict[str, FailedFetch]:
        """The latest fetch of each host that failed for good."""
        refusals = json.dumps([str(refusal) for refusal in Refusal])
        return {
            name: FailedFetch(url, why, at_s) for name, url, why, at_s in self._db.execute(_LAST_MISHAP, (refusals,))
        }

    def iter_urls_with_pages(self, partition: int) -> Iterator[tuple[str, bool]]:
        """All URLs of a partition, and whether a page of each is kept."""
        for url, page in self._db.execute(_WITH_PAGES, (partition,)):
            yield url, bool(page)

    def _count_prefix_sites(self, sites: Sequence[Site]) -> dict[str, SiteCount]:
        folders: dict[str, list[tuple[str, str]]] = {}
        for site in sites:
            folder = site.start.partition("?")[0].rpartition("/")[0] + "/"
            folders.setdefault(origin_of(site.start).host, []).append((folder, site.start))
        counts = {site.start: [0, 0] for site in sites}
        for host, url, page in self._db.execute(_BELOW, (json.dumps(list(folders)),)):
            for folder, start in folders[host]:
                if url.startswith(folder):
                    counts[start][0] += 1
                    counts[start][1] += bool(page)
        return {start: SiteCount(*both) for start, both in counts.items()}


@contextmanager
def open_site_reader(folder: Path) -> Iterator[SiteReader]:
    """A view of a folder that holds a crawl; nothing is written or held."""
    with read_state(folder) as db:
        yield SiteReader(db)
