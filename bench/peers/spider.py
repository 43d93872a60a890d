"""Scrapy with the settings that its documentation advises for broad crawls: fetch, extract links, go on.

It stores nothing: no pages, no state on disk. The last line is one JSON object. It runs in a separate environment.

    .venv-peers/bin/python bench/peers/spider.py URL...
"""

import importlib
import json
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

# By name, since only the peers' environment has it and types are checked in the other.
scrapy: Any = importlib.import_module("scrapy")
crawler: Any = importlib.import_module("scrapy.crawler")
linkextractors: Any = importlib.import_module("scrapy.linkextractors")

SETTINGS = {
    # https://docs.scrapy.org/en/latest/topics/broad-crawls.html, except that concurrency is twice the initial value.
    "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
    "CONCURRENT_REQUESTS": 200,
    "REACTOR_THREADPOOL_MAXSIZE": 20,
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "DOWNLOAD_TIMEOUT": 600,  # not 15: on a busy machine that would fail pages that loopback delivers
    "REDIRECT_ENABLED": False,
    # Breadth first, as that page advises against growing queues.
    "DEPTH_PRIORITY": 1,
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    # What both crawlers do here, and what only costs.
    "ROBOTSTXT_OBEY": True,
    "DOWNLOAD_DELAY": 0,
    "LOG_LEVEL": "ERROR",
    "TELNETCONSOLE_ENABLED": False,
}


class Broad(scrapy.Spider):  # type: ignore[misc]  # Scrapy is not here when types are checked
    """Follows every link."""

    name = "broad"

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - Scrapy passes anything
        super().__init__(*arguments, **options)
        self._links = linkextractors.LinkExtractor()

    async def start(self) -> AsyncIterator[Any]:
        """The start pages, filtered like all others: by default each would be fetched twice."""
        for url in self.start_urls:
            yield scrapy.Request(url)

    def parse(self, response: Any) -> Iterator[Any]:  # noqa: ANN401 - Scrapy is not here when types are checked
        """The requests that a page leads to."""
        for link in self._links.extract_links(response):
            yield scrapy.Request(link.url)


def main() -> None:
    """Crawl to the end and sum up."""
    process = crawler.CrawlerProcess(SETTINGS)
    spider = process.create_crawler(Broad)
    process.crawl(spider, start_urls=sys.argv[1:])
    process.start()
    told = spider.stats.get_stats()
    pages = told.get("response_received_count", 0) - told.get("robotstxt/response_count", 0)
    sys.stdout.write(json.dumps({"pages": pages, "version": scrapy.__version__}) + "\n")


if __name__ == "__main__":
    main()
