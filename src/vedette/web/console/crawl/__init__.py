"""Console pages on the crawl: sites, queue, budget, refresh, discovery, push and unlisted hosts."""
