"""The crawl state in ``state.db``: pages, hosts, sites and what belongs to them."""
