"""Vedette: a search engine in a box.

    import vedette

    folder = vedette.open_folder("my-data")
    folder.add_site("https://example.org/docs/", scope="prefix")
    folder.crawl(max_pages=200, contact="me@example.org")
    for result in folder.search("consumer lag").results:
        print(result.title, result.url)

These names are the public API; docs/python-api.md describes them. The modules behind them are imported on first use, so
``import vedette`` costs almost nothing:

>>> import vedette
>>> vedette.load_policy("uniform").name
'uniform'

The path of a URL, stage by stage:

1. discover  it is found in a link, normalised, checked against scope, and gets an id
2. order     it waits in the frontier of its host, ordered by the worth of its first fetch
3. fetch     when its host may be requested and its worth covers the price, politely
4. parse     text, title, links; what changed, and whether it matters
5. index     it becomes searchable; the gain in search quality is measured
6. refresh   its next due time follows from its change model, its worth and the price
7. serve     a query gets a slate of results, with reasons and propensities
8. learn     views and clicks change the worth of later fetches
"""

from typing import TYPE_CHECKING

from vedette.compiled import warn_if_edited
from vedette.errors import VedetteError
from vedette.version import __version__

if TYPE_CHECKING:
    from vedette.api import (
        CrawlOptions,
        CrawlSummary,
        DataFolder,
        SearchResult,
        Site,
        Slate,
        load_policy,
        open_folder,
        run_experiment,
    )

__all__ = [
    "CrawlOptions",
    "CrawlSummary",
    "DataFolder",
    "SearchResult",
    "Site",
    "Slate",
    "VedetteError",
    "__version__",
    "load_policy",
    "open_folder",
    "run_experiment",
]

warn_if_edited()

if not TYPE_CHECKING:  # for type checkers: the names above, and no others

    def __getattr__(name: str) -> object:
        """Import the public Python API lazily, when one of its names is first used."""
        if name not in __all__:
            raise AttributeError(f"module 'vedette' has no attribute {name!r}")
        from vedette import api

        return getattr(api, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
