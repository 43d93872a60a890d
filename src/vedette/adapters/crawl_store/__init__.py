"""The crawl store ``state.db``: pages, hosts, sites and what belongs to them."""
